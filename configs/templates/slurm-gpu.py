"""Template: a GPU machine with Slurm, node-local NVMe and Lustre.

Copy it to systems/<name>.py of a directory in UNDERSTUDY_PATH, then replace the
example values in all lines marked EXAMPLE by those of the site; the text behind says where
to find them. `understudy system new NAME` writes most of it by itself on a login node.
"""

from understudy.reframe.systems import (
    LUSTRE,
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

GPU_NODES = {
    "scheduler": "slurm",  # jobs are asked of sacct; squeue, if there is no accounting
    "launcher": "srun",
    # EXAMPLE; or -J account=… on each run. GPUs are asked for only because many sites give their
    # nodes to no job without one; no replay uses them.
    "access": ["--account=PROJECT", "--partition=gpu", "--gpus-per-node=4"],
    "environs": ["gnu-mpi"],
    "max_jobs": 1,  # replays must not run beside each other
    # EXAMPLE: the cores of a node that may run ranks.
    "processor": {"num_cpus": 64, "num_sockets": 1, "num_cpus_per_socket": 64},
    "features": [MPI],
    "extras": {MAX_NODES: 128, RANKS_PER_NODE: 64, NEEDS: ["sbatch", "srun"]},  # EXAMPLE
}

system = {
    "name": "slurm-gpu",  # EXAMPLE: the name of the file
    "descr": "GPU nodes with NVMe, and Lustre",
    "hostnames": ["^login[0-9]+$"],  # EXAMPLE
    "modules_system": "nomod",  # EXAMPLE: lmod, where ReFrame starts on a host with Lmod
    "partitions": per_filesystem(
        GPU_NODES,
        lustre={
            "descr": "Lustre, seen by all nodes",
            "features": [LUSTRE, STRIPING, SHARED],
            "extras": {
                TYPE: "lustre",
                SCRATCH: "/lustre/scratch/$USER",  # EXAMPLE; the job's shell expands variables
                STRIPE_COUNT: 1,  # EXAMPLE: lfs getstripe -d of that directory
                STRIPE_COUNT_MAX: 32,  # EXAMPLE: lfs osts; None if it is not known
                SLOWEST: 1e9,  # EXAMPLE: bytes/s below which a job may run into its time limit
                # What is worth a run here; without it, powers of two and usual sizes.
                SPACES: {
                    "sweep": {
                        "stripe_count": ["nodes", 1, 4, 16, 32],
                        "stripe_size": ["1MiB", "16MiB"],
                        "aggregators": ["node", "per-16"],
                    },
                    "scaling": {"nodes": [1, 2, 4, 8, 16, 32, 64, 128]},
                },
            },
        },
        # Each node sees its own NVMe only: no feature `shared`, and one node. Files that ranks of
        # several nodes share cannot be on it.
        nvme={
            "descr": "NVMe of the node",
            "extras": {
                TYPE: "xfs",  # EXAMPLE: as understudy-storage names it
                SCRATCH: "/local/$USER",  # EXAMPLE; often $TMPDIR
                MAX_NODES: 1,
                SLOWEST: 500e6,
            },
        },
    ),
}

environments = [
    {
        "name": "gnu-mpi",
        "target_systems": ["slurm-gpu"],  # EXAMPLE
        "modules": [],  # EXAMPLE: those of the compiler, the MPI and HDF5 that built the player
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpif90",
        "features": [MPI],
    }
]
