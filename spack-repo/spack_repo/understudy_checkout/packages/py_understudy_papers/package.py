from spack_repo.understudy.packages.py_understudy_papers.package import (
    PyUnderstudyPapers as Released,
)
from spack_repo.understudy_checkout.sources import REPOSITORY, changed

from spack.package import version


class PyUnderstudyPapers(Released):
    __doc__ = Released.__doc__

    git = REPOSITORY.as_uri()

    version("main", branch="main", preferred=True)

    def detect_dev_src_change(self):
        """Of `develop`: installed again only if what is in the package has changed."""
        return changed(self, ("studies/papers", "checks", "configs"))
