"""Archer in Edinburgh in 2017: Cray XC30, 4,920 nodes of 24 cores, PBS Pro, ALPS, Lustre.

Nodes, cores, the 48 OSTs of the file system, the default stripe count and the software versions
are those of the study on workload replication at the Cray User Group 2017. Assumed, because it
does not state them: the scratch path, the slowest bandwidth to expect, by which time limits are
set, and the names of the modules. The budget to charge is given at run time: -J A=BUDGET.
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
    "name": "archer",
    "descr": "Cray XC30 with Lustre",
    "hostnames": ["^(eslogin|archer)"],
    # ReFrame 4.10 refuses the module system of that time, so the commands are given verbatim.
    "modules_system": "nomod",
    "partitions": per_filesystem(
        {
            "scheduler": "pbs",
            "launcher": "alps",
            "environs": ["PrgEnv-gnu"],
            "max_jobs": 1,
            "prepare_cmds": [
                "module swap PrgEnv-cray PrgEnv-gnu",
                "module swap gcc gcc/5.1.0",
                "module swap cray-mpich cray-mpich/7.2.6",
                "module load cray-hdf5-parallel/1.8.14",
            ],
            "processor": {"num_cpus": 24, "num_sockets": 2, "num_cpus_per_socket": 12},
            "features": [MPI, SHARED],
            "extras": {MAX_NODES: 4920, RANKS_PER_NODE: 24, NEEDS: ["qsub"], SPACK: "archer"},
        },
        work={
            "descr": "one of three Lustre file systems, the one of 48 OSTs and 1.3 PB",
            "features": [LUSTRE, STRIPING],
            "extras": {
                TYPE: "lustre",
                SCRATCH: "/fs3/$USER",
                SLOWEST: 1e9,
                # Fig. 9 of the study: nodes doubled up to 64, four stripes or one for each.
                SPACES: {"scaling": {"nodes": powers_of_two(64)}},
                STRIPE_COUNT: 4,
                STRIPE_COUNT_MAX: 48,
            },
        },
    ),
}

environments = [
    {
        "name": "PrgEnv-gnu",
        "target_systems": ["archer"],
        "cc": "cc",
        "cxx": "CC",
        "ftn": "ftn",
        "features": [MPI],
    }
]
