"""Jaguar at Oak Ridge in 2012: Cray XK6, 9,216 nodes of 16 cores, Torque, ALPS, Lustre (Spider).

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
    "name": "jaguar-xk6",
    "descr": "Cray XK6 with the Lustre file system Spider",
    "hostnames": ["^jaguar-?xk6"],
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
            "processor": {"num_cpus": 16, "num_sockets": 1, "num_cpus_per_socket": 16},
            "features": [MPI, SHARED],
            "extras": {MAX_NODES: 9216, RANKS_PER_NODE: 16, NEEDS: ["qsub"], SPACK: "jaguar-xk6"},
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
        "target_systems": ["jaguar-xk6"],
        "cc": "cc",
        "cxx": "CC",
        "ftn": "ftn",
        "features": [MPI],
    }
]
