"""The machine at hand: memory and disk, one replay at a time, more ranks than cores allowed."""

from understudy.reframe.systems import (
    MAX_BYTES,
    MAX_NODES,
    MPI,
    NEEDS,
    RANKS_PER_NODE,
    SCRATCH,
    SHARED,
    SPACK,
    TYPE,
    per_filesystem,
)

system = {
    "name": "localhost",
    "descr": "This machine",
    "hostnames": ["^localhost$"],
    "max_local_jobs": 1,
    "partitions": per_filesystem(
        {
            "scheduler": "local",
            "launcher": "mpirun",
            "environs": ["mpi"],
            "max_jobs": 1,
            "features": [MPI, SHARED],
            "extras": {
                MAX_BYTES: 4 << 30,
                MAX_NODES: 1,
                RANKS_PER_NODE: 16,
                NEEDS: ["mpirun", "understudy-replay"],
                SPACK: "localhost",
            },
        },
        tmpfs={"descr": "memory", "extras": {TYPE: "tmpfs", SCRATCH: "/dev/shm"}},
        # /var/tmp survives a reboot, so it is on disk also where /tmp is memory.
        disk={"descr": "disk", "extras": {TYPE: "disk", SCRATCH: "/var/tmp"}},
    ),
}

environments = [
    {
        "name": "mpi",
        "target_systems": ["localhost"],
        "cc": "mpicc",
        "cxx": "",
        "ftn": "",
        "features": [MPI],
    }
]
