#include "job/slowest.h"

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

void und_slowest_find_host(struct und_host_time *hosts, int64_t count, struct und_slowest *slowest)
{
    qsort(hosts, (size_t)count, sizeof *hosts, by_time);
    slowest->hosts = count;
    slowest->host_s = hosts[count - 1].io_s;
    slowest->median_host_s = hosts[(count - 1) / 2].io_s;
    memcpy(slowest->host, hosts[count - 1].name, sizeof slowest->host);
}

static void find_rank(double io_s, const char *host, MPI_Comm comm, struct und_slowest *slowest)
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
    memcpy(slowest->rank_host, host, sizeof slowest->rank_host);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm), failed);
    UND_MPI(MPI_Bcast(slowest->rank_host, sizeof slowest->rank_host, MPI_CHAR, most.rank, comm), failed);
    und_summarize(&record, 1, comm, &summary);
    slowest->ranks = ranks;
    slowest->rank = most.rank;
    slowest->rank_s = most.io_s;
    slowest->median_rank_s = summary.quantile_s[UND_MEDIAN];
}

/* The first rank of each host has the sum of its ranks. */
static void find_host(double io_s, const char *host, MPI_Comm comm, struct und_slowest *slowest)
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
        und_slowest_find_host(hosts, count, slowest);
    free(hosts);
}

void und_slowest_find(double io_s, MPI_Comm comm, struct und_slowest *slowest)
{
    char host[UND_HOST_BYTES] = "";
    memset(slowest, 0, sizeof *slowest);
    gethostname(host, sizeof host - 1);
    find_rank(io_s, host, comm, slowest);
    find_host(io_s, host, comm, slowest);
}

void und_slowest_text(const struct und_slowest *slowest, char *text, size_t size)
{
    text[0] = '\0';
    if (slowest->hosts < 2 || slowest->median_host_s <= 0 || slowest->median_rank_s <= 0)
        return;
    snprintf(text, size,
             "slowest by I/O time: %s, %.1f x the median of %" PRId64 " hosts; rank %" PRId64
             " on %s, %.1f x the median of %" PRId64 " ranks",
             slowest->host, slowest->host_s / slowest->median_host_s, slowest->hosts, slowest->rank, slowest->rank_host,
             slowest->rank_s / slowest->median_rank_s, slowest->ranks);
}
