"""Sith at Oak Ridge in 2012: Linux cluster, 40 nodes of 32 cores, Torque, InfiniBand, Spider.

Nodes, cores and the 672 OSTs of the file system widow1 are those of the study on skeletal
applications at Euro-Par 2012, which states no default stripe count. Assumed, because it does not
state them: the scratch path and the names of the modules. The project to charge is given at run
time: -J A=PROJECT.
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
    "name": "sith",
    "descr": "InfiniBand cluster with the Lustre file system Spider",
    "hostnames": ["^sith"],
    # ReFrame 4.10 refuses the module system of that time, so the commands are given verbatim.
    "modules_system": "nomod",
    "partitions": per_filesystem(
        {
            "scheduler": "torque",
            "launcher": "mpirun",
            "environs": ["gnu"],
            "max_jobs": 1,
            "prepare_cmds": [
                "module load gcc",
                "module load openmpi",
                "module load hdf5-parallel",
            ],
            "processor": {"num_cpus": 32, "num_sockets": 4, "num_cpus_per_socket": 8},
            "features": [MPI, SHARED],
            "extras": {MAX_NODES: 40, RANKS_PER_NODE: 32, NEEDS: ["qsub"], SPACK: "sith"},
        },
        widow1={
            "descr": "one of three Lustre file systems, 5 PB",
            "features": [LUSTRE, STRIPING],
            "extras": {
                TYPE: "lustre",
                SCRATCH: "/tmp/work/$USER",
                STRIPE_COUNT: None,  # not published
                STRIPE_COUNT_MAX: 672,
            },
        },
    ),
}

environments = [
    {
        "name": "gnu",
        "target_systems": ["sith"],
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpif90",
        "features": [MPI],
    }
]
