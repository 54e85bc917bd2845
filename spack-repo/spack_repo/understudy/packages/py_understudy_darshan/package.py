# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import Executable, depends_on, join_path, license, maintainers, version


class PyUnderstudyDarshan(PythonPackage):
    """The evaluation of Darshan for Understudy: overhead, shutdown, archives, synthetic logs."""

    homepage = "https://understudy.example.org"
    git = "https://understudy.example.org/understudy.git"

    build_directory = "studies/darshan"

    maintainers("understudy-developers")

    license("Apache-2.0", checked_by="understudy-developers")

    version("main", branch="main")

    depends_on("py-hatchling@1.25:", type="build")
    depends_on("py-understudy@main", type=("build", "run"), when="@main")

    def test_command(self):
        """its command is there"""
        understudy = Executable(join_path(self.spec["py-understudy"].prefix.bin, "understudy"))
        assert "Usage" in understudy("archive", "--help", output=str)
