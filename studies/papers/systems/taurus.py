"""Taurus in Dresden in 2017: Bullx DLC 720, an island of 1,456 nodes of 24 cores, Slurm, Lustre.

Nodes, cores, the 96 OSTs and the software versions are those of the study on workload replication
at the Cray User Group 2017, and that users cannot override the layout of their files. Assumed,
because it does not state them: the scratch path, the slowest bandwidth to expect, by which time
limits are set, and the names of the modules. The account to charge is given at run time:
-J account=ACCOUNT.
"""

from understudy.reframe.systems import (
    LUSTRE,
    MAX_NODES,
    MPI,
    NEEDS,
    NO_STRIPING,
    RANKS_PER_NODE,
    SCRATCH,
    SHARED,
    SLOWEST,
    SPACK,
    TYPE,
    per_filesystem,
)

system = {
    "name": "taurus",
    "descr": "Bullx DLC 720 with Lustre",
    "hostnames": ["^taurus"],
    # ReFrame 4.10 refuses the module system of that time, so the commands are given verbatim.
    "modules_system": "nomod",
    "partitions": per_filesystem(
        {
            "scheduler": "slurm",
            "launcher": "srun",
            "environs": ["gnu"],
            "max_jobs": 1,
            "sched_options": {"use_nodes_option": True},
            "prepare_cmds": [
                "module load gcc/5.3.0",
                "module load bullxmpi/1.2.8.4",
                "module load hdf5/1.8.18",
            ],
            "processor": {"num_cpus": 24, "num_sockets": 2, "num_cpus_per_socket": 12},
            "features": [MPI, SHARED],
            "extras": {MAX_NODES: 1456, RANKS_PER_NODE: 24, NEEDS: ["sbatch"], SPACK: "taurus"},
        },
        scratch={
            "descr": "Lustre, 2.8 PB",
            "features": [LUSTRE],
            "extras": {
                TYPE: "lustre",
                SCRATCH: "/scratch/$USER",
                SLOWEST: 960e6,  # 10 MB/s of each of the 96 OSTs, a tenth of what a disk gives
                NO_STRIPING: "users cannot override the striping of Lustre",
            },
        },
    ),
}

environments = [
    {
        "name": "gnu",
        "target_systems": ["taurus"],
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpif90",
        "features": [MPI],
    }
]
