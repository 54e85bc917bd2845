#include "job/launcher.h"

#include <stddef.h>
#include <stdlib.h>

/* In this order: a launcher leaves alone what the batch job around it has set. */
static const struct {
    const char *name, *rank, *processes;
} launchers[] = {
    {"Open MPI's launcher", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"a launcher of MPICH's family", "PMI_RANK", "PMI_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {NULL, "PMIX_RANK", NULL}, /* a process that none has started has it, too, once Open MPI is up */
};

struct und_launcher und_launcher_read(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; ++i) {
        const char *rank = getenv(launchers[i].rank);
        const char *processes = launchers[i].processes ? getenv(launchers[i].processes) : NULL;
        if (rank)
            return (struct und_launcher){.name = launchers[i].name,
                                         .processes = processes ? (int)strtol(processes, NULL, 10) : 0,
                                         .rank = (int)strtol(rank, NULL, 10)};
    }
    return (struct und_launcher){.rank = 0};
}
