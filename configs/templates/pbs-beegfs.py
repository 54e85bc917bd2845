"""Template: a cluster with PBS Pro and BeeGFS.

Copy it to systems/<name>.py of a directory in UNDERSTUDY_PATH, then replace the
example values in all lines marked EXAMPLE by those of the site; the text behind says where
to find them. `understudy system new NAME` writes most of it by itself on a login node.
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
    "name": "pbs-beegfs",  # EXAMPLE: the name of the file
    "descr": "Cluster with PBS Pro and BeeGFS",
    "hostnames": ["^head[0-9]*$"],  # EXAMPLE
    "modules_system": "nomod",  # EXAMPLE: lmod, tmod4 …, where ReFrame starts on a host with it
    "partitions": per_filesystem(
        {
            "scheduler": "pbs",  # -l select=…; torque writes -l nodes=…:ppn=…
            "launcher": "mpiexec",  # EXAMPLE: mpirun, or srun-like launchers of the site
            "access": ["-q workq"],  # EXAMPLE: the queue; the account with -J A=PROJECT
            "environs": ["gnu-mpi"],
            "max_jobs": 1,  # replays must not run beside each other
            "processor": {"num_cpus": 48, "num_sockets": 2, "num_cpus_per_socket": 24},  # EXAMPLE
            "features": [MPI, SHARED],
            "extras": {MAX_NODES: 64, RANKS_PER_NODE: 48, NEEDS: ["qsub"]},  # EXAMPLE
        },
        beegfs={
            "descr": "BeeGFS",
            # Users set the targets of their files unless the administrator forbids it
            # (sysAllowUserSetPattern). Then: no feature `striping`, and
            # "no_striping": "why" among the extras.
            "features": [STRIPING],
            "extras": {
                TYPE: "beegfs",
                SCRATCH: "/mnt/beegfs/$USER",  # EXAMPLE
                STRIPE_COUNT: 4,  # EXAMPLE: beegfs-ctl --getentryinfo of that directory
                STRIPE_COUNT_MAX: 12,  # EXAMPLE: beegfs-ctl --listtargets
                SLOWEST: 500e6,  # EXAMPLE: bytes/s below which a job may run into its time limit
                # Chunks are powers of two from 64 KiB.
                SPACES: {"sweep": {"stripe_size": ["512KiB", "2MiB", "8MiB"]}},
            },
        },
    ),
}

environments = [
    {
        "name": "gnu-mpi",
        "target_systems": ["pbs-beegfs"],  # EXAMPLE
        "modules": [],  # EXAMPLE: those of the compiler, the MPI and HDF5 that built the player
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpif90",
        "features": [MPI],
    }
]
