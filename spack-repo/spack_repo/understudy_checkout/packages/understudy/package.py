from spack_repo.understudy.packages.understudy.package import Understudy as Released
from spack_repo.understudy_checkout.sources import REPOSITORY, changed

from spack.package import version


class Understudy(Released):
    __doc__ = Released.__doc__

    git = REPOSITORY.as_uri()

    version("main", branch="main", preferred=True)
    version("0.2.0", commit="f526d2627ffe38e88208eb27580a7698ead33160")

    def detect_dev_src_change(self):
        """Of `develop`: installed again only if what is compiled has changed."""
        return changed(
            self,
            ("CMakeLists.txt", "cmake", "proxies", "studies", "python/understudy/__init__.py"),
        )
