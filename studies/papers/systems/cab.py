"""Cab at Livermore in 2017: Appro Xtreme-X, 1,296 nodes of 16 cores, Slurm, Lustre.

Nodes, cores, the 80 OSTs of the file system lscratche and the software versions are those of the
study on workload replication at the Cray User Group 2017. The study states no default stripe
count. Assumed, because it does not state them: the scratch path and the names of the modules. The
account to charge is given at run time: -J account=ACCOUNT.
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
    "name": "cab",
    "descr": "Appro Xtreme-X with Lustre",
    "hostnames": ["^cab"],
    # ReFrame 4.10 refuses the module system of that time, so the commands are given verbatim.
    "modules_system": "nomod",
    "partitions": per_filesystem(
        {
            "scheduler": "slurm",
            "launcher": "srun",
            "environs": ["intel"],
            "max_jobs": 1,
            "sched_options": {"use_nodes_option": True},
            "prepare_cmds": [
                "module load intel/12.1",
                "module load intel-mpi/5.1",
                "module load hdf5-parallel/1.8.18",
            ],
            "processor": {"num_cpus": 16, "num_sockets": 2, "num_cpus_per_socket": 8},
            "features": [MPI, SHARED],
            "extras": {MAX_NODES: 1296, RANKS_PER_NODE: 16, NEEDS: ["sbatch"], SPACK: "cab"},
        },
        lscratche={
            "descr": "Lustre, 5 PB",
            "features": [LUSTRE, STRIPING],
            "extras": {
                TYPE: "lustre",
                SCRATCH: "/p/lscratche/$USER",
                STRIPE_COUNT: None,  # not published
                STRIPE_COUNT_MAX: 80,
            },
        },
    ),
}

environments = [
    {
        "name": "intel",
        "target_systems": ["cab"],
        "cc": "mpiicc",
        "cxx": "mpiicpc",
        "ftn": "mpiifort",
        "features": [MPI],
    }
]
