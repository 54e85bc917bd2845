"""Edison at NERSC in 2015: Cray XC30, 5,576 nodes of 24 cores, Slurm, Lustre.

Nodes, cores and the scratch file system (2.1 PB, 48 GiB/s at its peak) are those of the
evaluation of Darshan 3.0.0, which states neither OSTs nor a default stripe count. Assumed,
because it does not state them: the scratch path and the names of the modules.
"""

from understudy.reframe.systems import (
    LUSTRE,
    MAX_NODES,
    MPI,
    NEEDS,
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
    "name": "edison",
    "descr": "Cray XC30 with Lustre",
    "hostnames": ["^edison"],
    # ReFrame 4.10 refuses the module system of that time, so the commands are given verbatim.
    "modules_system": "nomod",
    "partitions": per_filesystem(
        {
            "scheduler": "slurm",
            "launcher": "srun",
            "environs": ["PrgEnv-gnu"],
            "max_jobs": 1,
            "sched_options": {"use_nodes_option": True},
            "prepare_cmds": [
                "module swap PrgEnv-intel PrgEnv-gnu",
                "module load cray-hdf5-parallel",
            ],
            "processor": {"num_cpus": 24, "num_sockets": 2, "num_cpus_per_socket": 12},
            "features": [MPI, SHARED],
            "extras": {MAX_NODES: 5576, RANKS_PER_NODE: 24, NEEDS: ["sbatch"], SPACK: "edison"},
        },
        scratch={
            "descr": "one of the Lustre file systems, 2.1 PB, 48 GiB/s at its peak",
            "features": [LUSTRE, STRIPING],
            "extras": {
                TYPE: "lustre",
                SCRATCH: "/scratch1/scratchdirs/$USER",
                STRIPE_COUNT: None,  # not published
                STRIPE_COUNT_MAX: None,  # not published
            },
        },
    ),
}

environments = [
    {
        "name": "PrgEnv-gnu",
        "target_systems": ["edison"],
        "cc": "cc",
        "cxx": "CC",
        "ftn": "ftn",
        "features": [MPI],
    }
]
