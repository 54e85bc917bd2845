import re

from spack_repo.understudy.packages.py_understudy.package import PyUnderstudy as Released
from spack_repo.understudy_checkout.sources import REPOSITORY, changed

from spack.package import version


class PyUnderstudy(Released):
    __doc__ = Released.__doc__

    git = REPOSITORY.as_uri()

    version("main", branch="main", preferred=True)
    version("0.2.0", commit="f526d2627ffe38e88208eb27580a7698ead33160")

    def detect_dev_src_change(self):
        """Of `develop`: installed again only if what is in the package has changed."""
        project = REPOSITORY / "pyproject.toml"
        data = re.findall(r'(?m)^"([^"]+)" = "understudy/data', project.read_text())
        data += ("checks", "configs")  # of hatch_build.py
        packaged = ("pyproject.toml", "hatch_build.py", "README.md", "python/understudy")
        return changed(self, (*packaged, *data))
