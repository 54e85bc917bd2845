/* What a run needs of each node's memory and of the file system, held against what is free, before it starts. */
#include "internal.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

static const char CGROUPS[] = "/sys/fs/cgroup";

/* A number behind a word at the beginning of a line, or without a word the first in the file. -1: none, as "max". */
static double number_in(const char *path, const char *word)
{
    char line[256];
    double number = -1;
    FILE *file = fopen(path, "r");
    while (file && number < 0 && fgets(line, sizeof line, file)) {
        char *end;
        const size_t length = strlen(word);
        if (strncmp(line, word, length) != 0)
            continue;
        number = strtod(line + length, &end);
        if (end == line + length)
            number = -1;
    }
    if (file)
        fclose(file);
    return number;
}

/* What a control group leaves to use: its limit less its use, of which the page cache can be taken back. */
static double left_in(const char *group, const char *limit_file, const char *use_file, const char *cache_word)
{
    char path[2 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", group, limit_file);
    const double limit = number_in(path, "");
    if (limit < 0)
        return -1;
    snprintf(path, sizeof path, "%s/%s", group, use_file);
    const double used = number_in(path, "");
    snprintf(path, sizeof path, "%s/memory.stat", group);
    const double cache = number_in(path, cache_word);
    const double left = limit - (used > 0 ? used : 0) + (cache > 0 ? cache : 0);
    return left < limit ? left : limit;
}

static void take_smaller(double value, double *least)
{
    if (value >= 0 && value < *least)
        *least = value;
}

/* The group of this process and all above it; each may have a limit. */
static void take_groups(const char *line, double *least)
{
    char group[PATH_BYTES + 64];
    const char *path = strrchr(line, ':');
    const bool unified = strncmp(line, "0::", 3) == 0;
    if (!path || (!unified && !strstr(line, ":memory:")))
        return;
    snprintf(group, sizeof group, "%s%s%.*s", CGROUPS, unified ? "" : "/memory", (int)strcspn(path + 1, "\n"),
             path + 1);
    for (char *slash = group + strlen(group); slash && slash >= group + sizeof CGROUPS - 1;
         slash = strrchr(group, '/')) {
        *slash = '\0';
        if (unified)
            take_smaller(left_in(group, "memory.max", "memory.current", "inactive_file "), least);
        else
            take_smaller(left_in(group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "),
                         least);
    }
}

/* Memory that processes of this node can still take. SKELETON_MEMORY_BYTES stands in for it, for tests and for nodes
 * that tell it in another way. */
static double free_memory(void)
{
    char line[PATH_BYTES];
    const char *given = getenv("SKELETON_MEMORY_BYTES");
    double least = number_in("/proc/meminfo", "MemAvailable:");
    least = least < 0 ? 1e300 : 1024 * least;
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof line, file))
        take_groups(line, &least);
    if (file)
        fclose(file);
    if (given)
        take_smaller(strtod(given, NULL), &least);
    return least;
}

/* Does what is written there take the memory of the node? */
static bool is_memory(const struct skeleton *run)
{
    struct statfs status;
    if (fstatfs(run->directory, &status) != 0)
        return false;
    const unsigned long magic = (unsigned long)status.f_type & 0xffffffffUL;
    return magic == 0x01021994 || magic == 0x858458f6; /* tmpfs, ramfs */
}

/* How arrays become smaller. */
static const char *smaller(const struct skeleton *run)
{
    return run->options.adios == 1 ? " (understudy skel params --set NAME=VALUE)" : "";
}

static void check_memory(struct skeleton *run, double step_bytes)
{
    const double files_bytes = is_memory(run) ? step_bytes * run->options.steps : 0;
    const double own_bytes = 2 * step_bytes + files_bytes;
    double node_bytes = 0;
    struct {
        double missing;
        int rank;
    } here = {0, run->rank}, worst;
    PMPI_Allreduce(&own_bytes, &node_bytes, 1, MPI_DOUBLE, MPI_SUM, run->node);
    const double free_bytes = free_memory();
    here.missing = node_bytes > free_bytes ? node_bytes - free_bytes : 0;
    PMPI_Allreduce(&here, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, run->comm);
    if (worst.missing > 0)
        skeleton_leave(run, worst.rank,
                       "memory: the %d ranks of this node need %.1f GB (this one %.1f GB of arrays, as much again for "
                       "ADIOS to buffer%s), but %.1f GB are available; run on more nodes, or make the arrays "
                       "smaller%s",
                       run->node_ranks, node_bytes / 1e9, step_bytes / 1e9,
                       files_bytes > 0 ? ", and its files, for the run directory is in memory" : "", free_bytes / 1e9,
                       smaller(run));
}

static void check_disk(struct skeleton *run, double step_bytes)
{
    struct statvfs space;
    double all_bytes = 0, free_bytes = -1;
    PMPI_Allreduce(&step_bytes, &all_bytes, 1, MPI_DOUBLE, MPI_SUM, run->comm);
    all_bytes *= run->options.steps; /* a repetition's files are removed at its end */
    if (run->rank == 0 && fstatvfs(run->directory, &space) == 0 && space.f_blocks > 0)
        free_bytes = (double)space.f_bavail * (double)space.f_frsize;
    PMPI_Bcast(&free_bytes, 1, MPI_DOUBLE, 0, run->comm);
    const char *unit = all_bytes < 1e9 ? "MB" : "GB";
    const double unit_bytes = all_bytes < 1e9 ? 1e6 : 1e9;
    if (free_bytes >= 0 && all_bytes > free_bytes)
        skeleton_leave(run, 0,
                       "%s: %d steps of %d ranks need %.1f %s, but %.1f %s are free; use another directory, fewer "
                       "steps, or smaller arrays%s",
                       run->options.directory, run->options.steps, run->ranks, all_bytes / unit_bytes, unit,
                       free_bytes / unit_bytes, unit, smaller(run));
}

void skeleton_check_capacity(struct skeleton *run, uint64_t step_bytes)
{
    check_memory(run, (double)step_bytes);
    check_disk(run, (double)step_bytes);
}
