"""Jaguar at Oak Ridge until 2011: Cray XT5, 18,688 nodes of 12 cores, Torque, ALPS, Spider.

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
    "name": "jaguar-xt5",
    "descr": "Cray XT5 with the Lustre file system Spider",
    "hostnames": ["^jaguar-?xt5"],
    # ReFrame 4.10 refuses the module system of that time, so the commands are given verbatim.
    "modules_system": "nomod",
    "partitions": per_filesystem(
        {
            "scheduler": "torque",
            "launcher": "alps",
            "environs": ["PrgEnv-gnu"],
            "max_jobs": 1,
            "prepare_cmds": [
                "module swap PrgEnv-pgi PrgEnv-gnu",
                "module load hdf5-parallel",
            ],
            "processor": {"num_cpus": 12, "num_sockets": 2, "num_cpus_per_socket": 6},
            "features": [MPI, SHARED],
            "extras": {MAX_NODES: 18688, RANKS_PER_NODE: 12, NEEDS: ["qsub"], SPACK: "jaguar-xt5"},
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
        "name": "PrgEnv-gnu",
        "target_systems": ["jaguar-xt5"],
        "cc": "cc",
        "cxx": "CC",
        "ftn": "ftn",
        "features": [MPI],
    }
]
