#include "programs/replay/memory.h"

#include "job/agree.h"
#include "job/die.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number behind `key` at the beginning of a line, or of the file where the key is empty; -1: none. */
static int64_t number_in(const char *path, const char *key)
{
    char line[256];
    int64_t number = -1;
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    while (number < 0 && fgets(line, sizeof line, file)) {
        const size_t length = strlen(key);
        char *end;
        if (strncmp(line, key, length) != 0)
            continue;
        const long long value = strtoll(line + length, &end, 10);
        if (end == line + length)
            break;
        number = value;
    }
    fclose(file);
    return number;
}

/* Names of a memory controller's files, by the version of control groups. */
static const struct {
    const char *controllers; /* in /proc/self/cgroup */
    const char *mount, *limit, *usage, *cache;
} versions[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

static int64_t left_in_group(const char *root, int version, const char *group)
{
    char path[PATH_MAX];
    const char *mount = versions[version].mount;
    snprintf(path, sizeof path, "%s%s%.1024s/%s", root, mount, group, versions[version].limit);
    const int64_t limit = number_in(path, "");
    snprintf(path, sizeof path, "%s%s%.1024s/%s", root, mount, group, versions[version].usage);
    const int64_t usage = number_in(path, "");
    snprintf(path, sizeof path, "%s%s%.1024s/memory.stat", root, mount, group);
    const int64_t cache = number_in(path, versions[version].cache);
    if (limit < 0 || usage < 0)
        return INT64_MAX;
    const int64_t used = usage - (cache > 0 && cache < usage ? cache : 0);
    return used < limit ? limit - used : 0;
}

/* The minimum that a group or one of those above it leaves. */
static int64_t left_in_groups(const char *root)
{
    char path[PATH_MAX], line[2048];
    int64_t least = INT64_MAX;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        for (int v = 0; v < 2; ++v) {
            char *group = strstr(line, versions[v].controllers);
            if (!group)
                continue;
            group += strlen(versions[v].controllers);
            group[strcspn(group, "\n")] = '\0';
            for (bool more = true; more;) {
                const int64_t left = left_in_group(root, v, strcmp(group, "/") == 0 ? "" : group);
                least = left < least ? left : least;
                char *slash = strrchr(group, '/');
                more = slash != NULL;
                if (slash)
                    *slash = '\0';
            }
        }
    if (file)
        fclose(file);
    return least;
}

int64_t und_memory_available(const char *root, const char **limit)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    const int64_t kibibytes = number_in(path, "MemAvailable:"), group = left_in_groups(root);
    const int64_t node = kibibytes < 0 ? INT64_MAX : kibibytes * 1024;
    *limit = group < node ? "the limit of the control group" : "MemAvailable";
    return group < node ? group : node;
}

bool und_memory_fits(int64_t bytes_per_rank, MPI_Comm comm, struct und_error *error)
{
    MPI_Comm node;
    int rank_on_node, ranks_on_node;
    bool fits = true;
    UND_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "cannot find the nodes");
    MPI_Comm_rank(node, &rank_on_node);
    MPI_Comm_size(node, &ranks_on_node);
    MPI_Comm_free(&node);
    if (rank_on_node == 0) {
        const char *limit;
        char host[256] = "";
        const int64_t available = und_memory_available("", &limit);
        gethostname(host, sizeof host - 1);
        fits = bytes_per_rank <= available / ranks_on_node;
        if (!fits)
            und_fail(error,
                     "%s: each of %d ranks needs %" PRId64 " bytes of memory, but only %" PRId64
                     " are available to all of them (%s): give another --transfer, a smaller --bytes-scale, a smaller "
                     "buffer of the method, or fewer ranks per node",
                     host, ranks_on_node, bytes_per_rank, available, limit);
    }
    return und_agree(fits, comm, error);
}
