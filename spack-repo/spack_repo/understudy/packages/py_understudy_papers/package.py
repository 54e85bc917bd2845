# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import Executable, depends_on, join_path, license, maintainers, version


class PyUnderstudyPapers(PythonPackage):
    """Simulations A to E, Equations 1 to 4, the claims of the papers and their ten systems, for
    Understudy."""

    homepage = "https://understudy.example.org"
    git = "https://understudy.example.org/understudy.git"

    build_directory = "studies/papers"

    maintainers("understudy-developers")

    license("Apache-2.0", checked_by="understudy-developers")

    version("main", branch="main")

    depends_on("py-hatchling@1.25:", type="build")
    depends_on("py-understudy@main", type=("build", "run"), when="@main")

    def test_command(self):
        """its command is there"""
        understudy = Executable(join_path(self.spec["py-understudy"].prefix.bin, "understudy"))
        assert "Usage" in understudy("compose", "--help", output=str)
