#include "job/stragglers.h"

#include "job/die.h"
#include "job/timing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char failed[] = "cannot find the slowest rank";

static int by_time(const void *left, const void *right)
{
    const double a = ((const struct und_host_time *)left)->io_s, b = ((const struct und_host_time *)right)->io_s;
    return (a > b) - (a < b);
}

void und_stragglers_find_host(struct und_host_time *hosts, int64_t count, struct und_stragglers *stragglers)
{
    qsort(hosts, (size_t)count, sizeof *hosts, by_time);
    stragglers->hosts = count;
    stragglers->host_s = hosts[count - 1].io_s;
    stragglers->median_host_s = hosts[(count - 1) / 2].io_s;
    memcpy(stragglers->host, hosts[count - 1].name, sizeof stragglers->host);
}

static void find_rank(double io_s, const char *host, MPI_Comm comm, struct und_stragglers *stragglers)
{
    const struct und_record record = {.took_place = true, .spent_s = io_s};
    struct und_summary summary;
    struct {
        double io_s;
        int rank;
    } most = {.io_s = io_s};
    int ranks;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &most.rank);
    memcpy(stragglers->rank_host, host, sizeof stragglers->rank_host);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm), failed);
    UND_MPI(MPI_Bcast(stragglers->rank_host, sizeof stragglers->rank_host, MPI_CHAR, most.rank, comm), failed);
    und_summarize(&record, 1, comm, &summary);
    stragglers->ranks = ranks;
    stragglers->rank = most.rank;
    stragglers->rank_s = most.io_s;
    stragglers->median_rank_s = summary.quantile_s[UND_MEDIAN];
}

/* The first rank of each host has the sum of its ranks. */
static void find_host(double io_s, const char *host, MPI_Comm comm, struct und_stragglers *stragglers)
{
    struct und_host_time here = {.io_s = 0}, *hosts = NULL;
    MPI_Comm node, firsts;
    int rank, ranks, count;
    UND_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), failed);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &ranks);
    memcpy(here.name, host, sizeof here.name);
    UND_MPI(MPI_Reduce(&io_s, &here.io_s, 1, MPI_DOUBLE, MPI_SUM, 0, node), failed);
    here.io_s /= ranks;
    MPI_Comm_free(&node);
    UND_MPI(MPI_Comm_split(comm, rank == 0 ? 0 : MPI_UNDEFINED, 0, &firsts), failed);
    if (firsts == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(firsts, &rank);
    MPI_Comm_size(firsts, &count);
    if (rank == 0)
        hosts = und_allocate(count, sizeof *hosts, "the times of hosts");
    UND_MPI(MPI_Gather(&here, (int)sizeof here, MPI_BYTE, hosts, (int)sizeof here, MPI_BYTE, 0, firsts), failed);
    MPI_Comm_free(&firsts);
    if (rank == 0)
        und_stragglers_find_host(hosts, count, stragglers);
    free(hosts);
}

void und_stragglers_find(double io_s, MPI_Comm comm, struct und_stragglers *stragglers)
{
    char host[UND_HOST_BYTES] = "";
    memset(stragglers, 0, sizeof *stragglers);
    gethostname(host, sizeof host - 1);
    find_rank(io_s, host, comm, stragglers);
    find_host(io_s, host, comm, stragglers);
}

void und_stragglers_text(const struct und_stragglers *stragglers, char *text, size_t size)
{
    text[0] = '\0';
    if (stragglers->hosts < 2 || stragglers->median_host_s <= 0 || stragglers->median_rank_s <= 0)
        return;
    snprintf(text, size,
             "slowest by I/O time: %s, %.1f x the median of %" PRId64 " hosts; rank %" PRId64
             " on %s, %.1f x the median of %" PRId64 " ranks",
             stragglers->host, stragglers->host_s / stragglers->median_host_s, stragglers->hosts, stragglers->rank,
             stragglers->rank_host, stragglers->rank_s / stragglers->median_rank_s, stragglers->ranks);
}
