"""Titan at Oak Ridge in 2017: Cray XK7, 18,688 nodes of 16 cores, Torque, ALPS, Lustre (Spider).

Nodes, cores, 1,008 OSTs per file system, the default stripe count and the software versions are
those of the study on workload replication at the Cray User Group 2017. Assumed, because it does
not state them: the scratch path (one of the two Spider file systems, by user), the slowest
bandwidth to expect, by which time limits are set, and the names of the modules. The project to
charge is given at run time: -J A=PROJECT.
"""

from understudy.reframe.spaces import powers_of_two
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
    SPACK,
    STRIPE_COUNT,
    STRIPE_COUNT_MAX,
    STRIPING,
    TYPE,
    per_filesystem,
)

system = {
    "name": "titan",
    "descr": "Cray XK7 with the Lustre file system Spider",
    "hostnames": ["^titan"],
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
                "module swap gcc gcc/4.9.3",
                "module swap cray-mpich cray-mpich/7.5.2",
                "module load cray-hdf5-parallel/1.10.0.1",
            ],
            "processor": {"num_cpus": 16, "num_sockets": 1, "num_cpus_per_socket": 16},
            "features": [MPI, SHARED],
            "extras": {MAX_NODES: 18688, RANKS_PER_NODE: 16, NEEDS: ["qsub"], SPACK: "titan"},
        },
        spider={
            "descr": "one of two Lustre file systems of 14 PB",
            "features": [LUSTRE, STRIPING],
            "extras": {
                TYPE: "lustre",
                SCRATCH: "/lustre/atlas1/scratch/$USER",
                SLOWEST: 1e9,
                # Fig. 9 of the study: nodes doubled up to 1,024, four stripes or one for each.
                SPACES: {"scaling": {"nodes": powers_of_two(1024)}},
                STRIPE_COUNT: 4,
                STRIPE_COUNT_MAX: 1008,
            },
        },
    ),
}

environments = [
    {
        "name": "PrgEnv-gnu",
        "target_systems": ["titan"],
        "cc": "cc",
        "cxx": "CC",
        "ftn": "ftn",
        "features": [MPI],
    }
]
