"""Template: a cluster with LSF and CephFS. For Flux: scheduler and launcher `flux`, and `flux`
among the programs that are needed.

Copy it to systems/<name>.py of a directory in UNDERSTUDY_PATH, then replace the
example values in all lines marked EXAMPLE by those of the site; the text behind says where
to find them.
"""

from understudy.reframe.systems import (
    MAX_NODES,
    MPI,
    NEEDS,
    RANKS_PER_NODE,
    SCRATCH,
    SHARED,
    SLOWEST,
    SPACES,
    STRIPE_COUNT,
    STRIPE_COUNT_MAX,
    STRIPING,
    TYPE,
    per_filesystem,
)

system = {
    "name": "lsf-cephfs",  # EXAMPLE: the name of the file
    "descr": "Cluster with LSF and CephFS",
    "hostnames": ["^login[0-9]*$"],  # EXAMPLE
    "modules_system": "nomod",  # EXAMPLE: lmod …, where ReFrame starts on a host with it
    "partitions": per_filesystem(
        {
            # ReFrame submits to Flux only where the Python module of Flux is installed.
            "scheduler": "lsf",
            "launcher": "lrun",  # EXAMPLE: mpirun, jsrun …
            "access": ["-q batch"],  # EXAMPLE
            "environs": ["gnu-mpi"],
            "max_jobs": 1,  # replays must not run beside each other
            "processor": {"num_cpus": 40, "num_sockets": 2, "num_cpus_per_socket": 20},  # EXAMPLE
            "features": [MPI, SHARED],
            "extras": {MAX_NODES: 32, RANKS_PER_NODE: 40, NEEDS: ["bsub"]},  # EXAMPLE
        },
        cephfs={
            "descr": "CephFS",
            # A client needs the capability `p` to set layouts (ceph auth get client.NAME). Without
            # it: no feature `striping`, and "no_striping": "why" among the extras.
            "features": [STRIPING],
            "extras": {
                TYPE: "ceph",
                SCRATCH: "/ceph/scratch/$USER",  # EXAMPLE
                STRIPE_COUNT: 1,
                # OSDs of the data pool; the stripes of a file larger than count x object size
                # continue on others. EXAMPLE: ceph osd pool ls detail; None if it is not known
                STRIPE_COUNT_MAX: 24,
                SLOWEST: 300e6,  # EXAMPLE: bytes/s below which a job may run into its time limit
                # Stripes of up to the object size, which is 4 MiB by default and a multiple of
                # them.
                SPACES: {"sweep": {"stripe_size": ["1MiB", "4MiB"]}},
            },
        },
    ),
}

environments = [
    {
        "name": "gnu-mpi",
        "target_systems": ["lsf-cephfs"],  # EXAMPLE
        "modules": [],  # EXAMPLE: those of the compiler, the MPI and HDF5 that built the player
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpif90",
        "features": [MPI],
    }
]
