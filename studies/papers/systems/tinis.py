"""Tinis in Warwick in 2017: Lenovo NeXtScale, 203 nodes of 16 cores, Slurm, GPFS.

Nodes, cores, the GPFS file system (120 disks in six pools, two NSD servers) and the software
versions are those of the study on workload replication at the Cray User Group 2017. Assumed,
because it does not state them: the scratch path, the slowest bandwidth to expect, by which time
limits are set, and the names of the modules.
"""

from understudy.reframe.systems import (
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
    "name": "tinis",
    "descr": "Lenovo NeXtScale with GPFS",
    "hostnames": ["^tinis"],
    # ReFrame 4.10 refuses the module system of that time, so the commands are given verbatim.
    "modules_system": "nomod",
    "partitions": per_filesystem(
        {
            "scheduler": "slurm",
            "launcher": "mpirun",
            "environs": ["intel"],
            "max_jobs": 1,
            "sched_options": {"use_nodes_option": True},
            "prepare_cmds": [
                "module load intel/15.5.223",
                "module load impi/5.0.3",
                "module load hdf5/1.8.16",
            ],
            "processor": {"num_cpus": 16, "num_sockets": 2, "num_cpus_per_socket": 8},
            "features": [MPI, SHARED],
            "extras": {MAX_NODES: 203, RANKS_PER_NODE: 16, NEEDS: ["sbatch"], SPACK: "tinis"},
        },
        gpfs={
            "descr": "GPFS, 0.5 PB, 120 disks in six pools",
            "extras": {
                TYPE: "gpfs",
                SCRATCH: "/gpfs/scratch/$USER",
                SLOWEST: 200e6,  # 100 MB/s of each of the two servers
                NO_STRIPING: "GPFS gives users no control of striping",
            },
        },
    ),
}

environments = [
    {
        "name": "intel",
        "target_systems": ["tinis"],
        "cc": "mpiicc",
        "cxx": "mpiicpc",
        "ftn": "mpiifort",
        "features": [MPI],
    }
]
