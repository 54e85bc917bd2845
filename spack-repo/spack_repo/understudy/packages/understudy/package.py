# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import (
    Executable,
    InstallError,
    cache_extra_test_sources,
    conflicts,
    depends_on,
    join_path,
    license,
    maintainers,
    run_after,
    variant,
    version,
    which,
    working_dir,
)


class Understudy(CMakePackage):
    """The programs of Understudy: a player that reproduces the I/O of an application from its
    description with MPI processes, skeletons' support, and a tool for file systems and striping.
    The command `understudy`, the ReFrame checks and the workloads are in py-understudy."""

    homepage = "https://understudy.example.org"
    url = "https://understudy.example.org/releases/understudy-0.2.0.tar.gz"
    git = "https://understudy.example.org/understudy.git"

    maintainers("understudy-developers")

    license("Apache-2.0", checked_by="understudy-developers")

    version("main", branch="main")
    version("0.2.0", sha256="38499a69613131cbca03fff7f98b5dd42a69b1b736dc2739e1de96ae8e9fc85d")

    variant("hdf5", default=True, description="Play through parallel HDF5")
    variant("adios", default=False, description="Play through ADIOS 1.13, for skeletons too")
    variant("adios2", default=False, when="@0.2.1:", description="Play through ADIOS2")
    variant("uring", default=False, when="@0.2.1: platform=linux", description="Play by io_uring")

    depends_on("c", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3:")
    depends_on("jansson@2.9:")
    depends_on("hdf5@1.8.14:+mpi", when="+hdf5")
    depends_on("adios@1.13+mpi", when="+adios")
    depends_on("adios2@2.8:+mpi", when="+adios2")
    depends_on("liburing@2.2:", when="+uring")
    depends_on("cmocka", type="test")

    conflicts("%c=gcc@:4.8", msg="the programs are C11: GCC 4.9 or newer")
    conflicts(
        "%c=intel-oneapi-compilers-classic@:14", msg="the programs are C11: Intel 15 or newer"
    )

    sanity_check_is_file = ["bin/understudy-replay", "bin/understudy-storage"]

    def libraries(self):
        """The methods that need a library, of those that are asked for."""
        return [m for m in ("hdf5", "adios", "adios2", "uring") if self.spec.satisfies("+" + m)]

    def cmake_args(self):
        spec = self.spec
        if spec.satisfies("+hdf5"):  # CMake would take another, such as the system's
            header = Path(spec["hdf5"].prefix.include, "hdf5.h")
            if not header.is_file():
                raise InstallError(f"{header}: not found; expected the headers of {spec['hdf5']}")
        return [
            self.define("BUILD_TESTING", self.run_tests),
            self.define("UND_WERROR", False),  # of compilers that are not ours
            self.define("UND_INSTALL_SUITE", False),
            self.define_from_variant("UND_HDF5", "hdf5"),
            self.define_from_variant("UND_ADIOS", "adios"),
            self.define_from_variant("UND_ADIOS2", "adios2"),
            self.define_from_variant("UND_URING", "uring"),
            # A method that was asked for is there, or the build fails.
            self.define("UND_REQUIRE", self.libraries()),
        ]

    # For test_play: a workload of two ranks, and what Open MPI needs to start more ranks than
    # cores, and as root.
    settings = "python/understudy/open-mpi.sh"
    workload = "spack-repo/spack_repo/understudy/packages/understudy/test/two-ranks.json"

    @run_after("install")
    def keep_test_sources(self):
        cache_extra_test_sources(self, [self.settings, self.workload])

    def test_play(self):
        """play a workload on two ranks and verify its files"""
        mpi = self.spec["mpi"].prefix.bin
        launcher = which("mpirun", "mpiexec", "srun", path=[str(mpi)], required=True)
        kept = self.test_suite.current_test_cache_dir
        start = ["-c", '. "$0" && exec "$@"', join_path(kept, self.settings), launcher.path]
        player = join_path(self.prefix.bin, "understudy-replay")
        replay = [player, "-w", join_path(kept, self.workload), "-o", "run", "-O", "result.json"]
        methods = ["posix", "stdio", "mpiio", *self.libraries()]
        if "uring" in methods:  # which a container may forbid
            listed = Executable(player)("--list", output=str)
            methods = [m for m in methods if f"\n{m:8} unavailable: " not in listed]
        for method in methods:
            with working_dir(method, create=True):
                Executable("sh")(*start, "-n", "2", *replay, "-a", method, "--verify")
                text = Path("result.json").read_text(encoding="utf-8")
                assert '"verify": true' in text, f"{method}: its files were not verified"

    def test_storage(self):
        """name the file system of the working directory"""
        storage = which(join_path(self.prefix.bin, "understudy-storage"), required=True)
        assert "{" in storage(".", output=str.split)
