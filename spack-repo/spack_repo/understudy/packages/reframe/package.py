from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import depends_on, license, variant, version


class Reframe(PythonPackage):
    """ReFrame runs regression tests and benchmarks of HPC systems.

    A newer version than the one of Spack's own repository, which takes its place. Its bounds are
    of what runs; those of the Python package are of what was new when it was made."""

    homepage = "https://reframe-hpc.readthedocs.io"
    pypi = "reframe-hpc/reframe_hpc-4.10.4.tar.gz"

    license("BSD-3-Clause")

    version("4.10.4", sha256="0d3b0246664fa5b98dc50deed239282300fd74684c607f6b23b5484b924e988b")

    variant("analytics", default=False, description="Compare results of its database (polars)")

    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-hatchling", type="build")
    with_run = ("build", "run")
    depends_on("py-archspec@0.2.4:", type=with_run)
    depends_on("py-argcomplete@3.1:", type=with_run)
    depends_on("py-clustershell@1.8.4:", type=with_run)
    depends_on("py-fasteners@0.19:", type=with_run)
    depends_on("py-jinja2@3.0.2:", type=with_run)
    depends_on("py-jsonschema@4:", type=with_run)
    depends_on("py-lxml@4.9:", type=with_run)
    depends_on("py-pyyaml@6:", type=with_run)
    depends_on("py-requests@2.28:", type=with_run)
    depends_on("py-semver@3:", type=with_run)
    depends_on("py-tabulate@0.9:", type=with_run)
    depends_on("py-polars@1.29:", type=with_run, when="+analytics")
