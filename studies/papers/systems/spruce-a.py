"""Spruce A in 2017: SGI ICE X, nodes of 16 cores, Lustre.

The machine on which the applications of the study on workload replication at the Cray User Group
2017 were profiled. The study states the cores per node, the 140 OSTs, the default stripe count of
8 and the default stripe size of 1 MB. Assumed, because it does not state them: the batch system
and launcher (PBS Pro and mpiexec), the scratch path and the names of the modules. The number of
nodes is not published.
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
    "name": "spruce-a",
    "descr": "SGI ICE X with Lustre",
    "hostnames": ["^spruce"],
    "modules_system": "nomod",
    "partitions": per_filesystem(
        {
            "scheduler": "pbs",
            "launcher": "mpiexec",
            "environs": ["mpi"],
            "max_jobs": 1,
            "features": [MPI, SHARED],
            "extras": {
                MAX_NODES: NO_LIMIT,
                RANKS_PER_NODE: 16,
                NEEDS: ["qsub"],
                SPACK: "spruce-a",
            },
        },
        lustre={
            "descr": "Lustre, 140 OSTs, stripes of 1 MB",
            "features": [LUSTRE, STRIPING],
            "extras": {
                TYPE: "lustre",
                SCRATCH: "/lustre/$USER",
                STRIPE_COUNT: 8,
                STRIPE_COUNT_MAX: 140,
            },
        },
    ),
}

environments = [
    {
        "name": "mpi",
        "target_systems": ["spruce-a"],
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpif90",
        "features": [MPI],
    }
]
