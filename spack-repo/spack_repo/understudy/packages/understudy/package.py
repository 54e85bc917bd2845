from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.understudy.sources import changed

from spack.package import (
    Executable,
    InstallError,
    conflicts,
    depends_on,
    join_path,
    license,
    variant,
    version,
    which,
    working_dir,
)

# The recipe stands in the project's own repository, and builds what it stands in: a checkout, or
# the clone that `spack repo add <git address>` makes.
REPOSITORY = Path(__file__).resolve().parents[5]

LIBRARIES = ("hdf5", "adios", "adios2")  # variants, and the methods that need them


class Understudy(CMakePackage):
    """The programs of Understudy: a player that reproduces the I/O of an application from its
    description with MPI processes, skeletons' support, and a tool for file systems and striping.
    The command `understudy`, the ReFrame checks and the workloads are in py-understudy."""

    homepage = REPOSITORY.as_uri()
    git = homepage

    license("Apache-2.0", checked_by="the project")

    version("main", branch="main", preferred=True)
    version("0.2.0", commit="f526d2627ffe38e88208eb27580a7698ead33160")

    variant("hdf5", default=True, description="Play through parallel HDF5")
    variant("adios", default=False, description="Play through ADIOS 1.13, for skeletons too")
    variant("adios2", default=False, description="Play through ADIOS2")

    depends_on("c", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3:")
    depends_on("jansson@2.9:")
    depends_on("hdf5@1.8.14:+mpi", when="+hdf5")
    depends_on("adios@1.13+mpi", when="+adios")
    depends_on("adios2@2.8:+mpi", when="+adios2")
    depends_on("cmocka", type="test")

    conflicts("%c=gcc@:4.8", msg="the programs are C11: GCC 4.9 or newer")
    conflicts(
        "%c=intel-oneapi-compilers-classic@:14", msg="the programs are C11: Intel 15 or newer"
    )

    # ruff: noqa: RUF012 (Spack's way)
    sanity_check_is_file = ["bin/understudy-replay", "bin/understudy-storage"]

    def detect_dev_src_change(self):
        """Of `develop`: installed again only if what is compiled has changed."""
        return changed(
            self,
            ("CMakeLists.txt", "cmake", "proxies", "studies", "python/understudy/__init__.py"),
        )

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
            # A method that was asked for is there, or the build fails.
            self.define("UND_REQUIRE", [m for m in LIBRARIES if spec.satisfies(f"+{m}")]),
        ]

    def test_play(self):
        """play a workload on two ranks and verify its files"""
        mpi = self.spec["mpi"].prefix.bin
        launcher = which("mpirun", "mpiexec", "srun", path=[str(mpi)], required=True)
        # Open MPI refuses more ranks than cores, and a user who is root, unless it is told.
        settings = REPOSITORY / "python" / "understudy" / "open-mpi.sh"
        start = ["-c", '. "$0" && exec "$@"', str(settings), launcher.path]
        player = join_path(self.prefix.bin, "understudy-replay")
        workload = join_path(self.test_suite.current_test_data_dir, "two-ranks.json")
        methods = ["posix", "stdio", "mpiio"]
        methods += [m for m in LIBRARIES if self.spec.satisfies(f"+{m}")]
        for method in methods:
            with working_dir(method, create=True):
                Executable("sh")(
                    *start, "-n", "2", player, "-w", workload, "-o", "run", "-O", "result.json",
                    "-a", method, "--verify",
                )  # fmt: skip
                text = Path("result.json").read_text(encoding="utf-8")
                assert '"verify": true' in text, f"{method}: its files were not verified"

    def test_storage(self):
        """name the file system of the working directory"""
        storage = which(join_path(self.prefix.bin, "understudy-storage"), required=True)
        assert "{" in storage(".", output=str.split)
