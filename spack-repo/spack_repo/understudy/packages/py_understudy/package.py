# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from pathlib import Path

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import Executable, depends_on, join_path, license, maintainers, variant, version


class PyUnderstudy(PythonPackage):
    """Understudy: learns the I/O of an application from a Darshan log or an ADIOS descriptor,
    reproduces it on any storage system as a ReFrame check, and gives a verdict. The command, its
    Python library, and the checks and workloads that come with it. Its studies are packages of
    their own: py-understudy-skel, py-understudy-darshan and py-understudy-papers."""

    homepage = "https://understudy.example.org"
    url = "https://understudy.example.org/releases/understudy-0.2.0.tar.gz"
    git = "https://understudy.example.org/understudy.git"

    maintainers("understudy-developers")

    license("Apache-2.0", checked_by="understudy-developers")

    version("main", branch="main")
    version("0.2.0", sha256="38499a69613131cbca03fff7f98b5dd42a69b1b736dc2739e1de96ae8e9fc85d")

    variant("adios2", default=False, when="@0.2.1:", description="Skeletons in Python for ADIOS2")
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
    depends_on("adios2@2.10:+python", type="run", when="+adios2")
    depends_on("reframe@4.10.3:4.10", type=("build", "run"))
    # The checks run the programs of the same version.
    depends_on("understudy@main", type="run", when="@main")
    depends_on("understudy@0.2.0", type="run", when="@0.2.0")

    def test_where(self):
        """the directories that came with the package are there"""
        understudy = Executable(join_path(self.prefix.bin, "understudy"))
        for kind in ("checks", "config", "schemas", "workloads"):
            directory = Path(understudy("doctor", "--paths", kind, output=str).strip())
            assert directory.exists(), f"{kind}: {directory} does not exist"
