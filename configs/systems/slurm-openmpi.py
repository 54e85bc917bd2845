"""A cluster of today: Slurm, GCC 12 or newer, Open MPI 5, HDF5 1.14 and Lustre.

Nodes, cores and targets differ from site to site, so none are stated. Copy the file to
systems/<name>.py of a directory in UNDERSTUDY_PATH, and replace what is marked EXAMPLE; the text
behind says where to find it. The Spack environment of the same name has the programs.
"""

from understudy.reframe.systems import (
    LUSTRE,
    MAX_NODES,
    MPI,
    NEEDS,
    NO_LIMIT,
    RANKS_PER_NODE,
    SCRATCH,
    SHARED,
    SPACK,
    STRIPE_COUNT,
    STRIPE_COUNT_MAX,
    STRIPING,
    TYPE,
    per_filesystem,
)

system = {
    "name": "slurm-openmpi",  # EXAMPLE: the name of the file
    "descr": "Slurm, Open MPI 5, Lustre",
    "hostnames": ["^slurm-openmpi$"],  # EXAMPLE: ^login[0-9]+
    "modules_system": "nomod",  # EXAMPLE: lmod, where ReFrame starts on a host with Lmod
    "partitions": per_filesystem(
        {
            "scheduler": "slurm",  # squeue, if there is no accounting
            "launcher": "srun",
            "env_vars": [["SLURM_MPI_TYPE", "pmix"]],  # Open MPI 5 knows no other
            "access": [],  # EXAMPLE: ["--account=PROJECT", "--partition=compute"]
            "environs": ["gnu-openmpi"],
            "max_jobs": 1,
            "sched_options": {"use_nodes_option": True},
            "features": [MPI, SHARED],
            "extras": {
                MAX_NODES: NO_LIMIT,  # EXAMPLE: scontrol show partition: MaxNodes
                RANKS_PER_NODE: 16,  # EXAMPLE: the cores of a node (sinfo -o %c), or fewer
                NEEDS: ["sbatch", "srun"],
                SPACK: "slurm-openmpi",
            },
        },
        lustre={
            "descr": "Lustre, seen by all nodes",
            "features": [LUSTRE, STRIPING],
            "extras": {
                TYPE: "lustre",
                SCRATCH: "/lustre/scratch/$USER",  # EXAMPLE; the job's shell expands variables
                STRIPE_COUNT: None,  # EXAMPLE: lfs getstripe -d of that directory
                STRIPE_COUNT_MAX: None,  # EXAMPLE: lfs osts; a larger count is not asked for
            },
        },
    ),
}

environments = [
    {
        "name": "gnu-openmpi",
        "target_systems": ["slurm-openmpi"],  # EXAMPLE
        "modules": [],  # EXAMPLE: those of the compiler, the MPI and HDF5 that built the player
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpifort",
        "features": [MPI],
    }
]
