from pathlib import Path

from spack_repo.builtin.build_systems.python import PythonPackage
from spack_repo.understudy.sources import changed

from spack.package import Executable, depends_on, join_path, license, version

# See the recipe of understudy.
REPOSITORY = Path(__file__).resolve().parents[5]


class PyUnderstudyPapers(PythonPackage):
    """Simulations A to E, Equations 1 to 4, the claims of the papers and their ten systems, for
    Understudy."""

    homepage = REPOSITORY.as_uri()
    git = homepage
    build_directory = "studies/papers"

    license("Apache-2.0", checked_by="the project")

    version("main", branch="main", preferred=True)

    depends_on("py-hatchling@1.25:", type="build")
    depends_on("py-understudy@main", type=("build", "run"), when="@main")

    def detect_dev_src_change(self):
        """Of `develop`: installed again only if what is in the package has changed."""
        return changed(self, ("studies/papers", "checks", "configs"))

    def test_command(self):
        """its command is there"""
        understudy = Executable(join_path(self.spec["py-understudy"].prefix.bin, "understudy"))
        assert "Usage" in understudy("compose", "--help", output=str)
