import re
from pathlib import Path

from spack_repo.builtin.build_systems.python import PythonPackage
from spack_repo.understudy.sources import changed

from spack.package import Executable, depends_on, join_path, license, variant, version

# See the recipe of understudy.
REPOSITORY = Path(__file__).resolve().parents[5]


class PyUnderstudy(PythonPackage):
    """Understudy: learns the I/O of an application from a Darshan log or an ADIOS descriptor,
    reproduces it on any storage system as a ReFrame check, and gives a verdict. The command, its
    Python library, and the checks and workloads that come with it. Its studies are packages of
    their own: py-understudy-skel, py-understudy-darshan and py-understudy-papers."""

    homepage = REPOSITORY.as_uri()
    git = homepage

    license("Apache-2.0", checked_by="the project")

    version("main", branch="main", preferred=True)
    version("0.2.0", commit="f526d2627ffe38e88208eb27580a7698ead33160")

    variant("polars", default=False, description="Data frames and Parquet of run records")

    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-hatchling@1.25:", type="build")
    depends_on("py-click@8.1:", type=("build", "run"))
    depends_on("py-prometheus-client@0.16:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-jsonschema@4.10:", type=("build", "run"))
    depends_on("py-matplotlib@3.6:", type=("build", "run"))
    depends_on("py-numpy@1.24:", type=("build", "run"))
    depends_on("py-polars@1.29:", type=("build", "run"), when="+polars")
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-scipy@1.10:", type=("build", "run"))
    depends_on("reframe@4.10.3:4.10", type=("build", "run"))
    # The checks run the programs of the same version.
    depends_on("understudy@main", type="run", when="@main")
    depends_on("understudy@0.2.0", type="run", when="@0.2.0")

    def detect_dev_src_change(self):
        """Of `develop`: installed again only if what is in the package has changed."""
        project = REPOSITORY / "pyproject.toml"
        data = re.findall(r'(?m)^"([^"]+)" = "understudy/data', project.read_text())
        data += ("checks", "configs")  # of hatch_build.py
        packaged = ("pyproject.toml", "hatch_build.py", "README.md", "python/understudy")
        return changed(self, (*packaged, *data))

    def test_where(self):
        """the directories that came with the package are there"""
        understudy = Executable(join_path(self.prefix.bin, "understudy"))
        for kind in ("checks", "config", "schemas", "workloads"):
            directory = Path(understudy("doctor", "--paths", kind, output=str).strip())
            assert directory.exists(), f"{kind}: {directory} does not exist"
