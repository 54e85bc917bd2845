#include "job/environment.h"

#include "commit.h"
#include "job/die.h"
#include "text/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

void und_mpi_read(char *text, size_t size)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    for (char *tab = version; (tab = strchr(tab, '\t')) != NULL;)
        *tab = ' ';
    snprintf(text, size, "%.250s", version);
}

static void read_machine(struct und_environment *environment)
{
    struct utsname system;
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(environment->started, sizeof environment->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (uname(&system) == 0)
        snprintf(environment->kernel, sizeof environment->kernel, "%.80s %.80s %.80s", system.sysname, system.release,
                 system.machine);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    environment->processors = online > 0 ? online : 1;
    und_mpi_read(environment->mpi, sizeof environment->mpi);
}

static void read_program(char digits[65])
{
    FILE *file = fopen("/proc/self/exe", "rb");
    if (!file)
        return;
    const long bytes = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *program = bytes > 0 ? malloc((size_t)bytes) : NULL;
    rewind(file);
    if (program && fread(program, 1, (size_t)bytes, file) == (size_t)bytes)
        und_sha256(program, (size_t)bytes, digits);
    free(program);
    fclose(file);
}

/* The first rank of every node tells rank 0 of its node. */
static void read_nodes(MPI_Comm comm, struct und_environment *environment)
{
    static const char failed[] = "cannot list the nodes";
    struct und_node here;
    MPI_Comm node, firsts;
    int rank;
    memset(&here, 0, sizeof here);
    gethostname(here.name, sizeof here.name - 1);
    UND_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), failed);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &here.ranks);
    MPI_Comm_free(&node);
    UND_MPI(MPI_Comm_split(comm, rank == 0 ? 0 : MPI_UNDEFINED, 0, &firsts), failed);
    if (firsts == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(firsts, &rank);
    MPI_Comm_size(firsts, &environment->node_count);
    if (rank == 0) {
        environment->nodes = und_allocate(environment->node_count, sizeof here, "the nodes");
    }
    UND_MPI(MPI_Gather(&here, (int)sizeof here, MPI_BYTE, environment->nodes, (int)sizeof here, MPI_BYTE, 0, firsts),
            failed);
    MPI_Comm_free(&firsts);
}

void und_environment_read(MPI_Comm comm, struct und_environment *environment)
{
    int rank;
    memset(environment, 0, sizeof *environment);
    MPI_Comm_rank(comm, &rank);
    read_nodes(comm, environment);
    if (rank != 0)
        return;
    read_machine(environment);
    read_program(environment->program_sha256);
}

void und_environment_free(struct und_environment *environment)
{
    free(environment->nodes);
    environment->nodes = NULL;
}

const char *und_version(void)
{
    return UND_VERSION;
}

const char *und_commit(void)
{
    return UND_COMMIT[0] ? UND_COMMIT : NULL;
}
