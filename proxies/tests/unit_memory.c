#define _XOPEN_SOURCE 700
/* What memory is available: by the kernel's estimate and by both versions of control groups. */
#include "programs/replay/memory.h"
#include "unit_test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/unit_memory.XXXXXX";

struct file {
    const char *path, *text;
};

/* Creates the directories of a path below the root, and the file. */
static void put(const struct file *file)
{
    char path[1024];
    snprintf(path, sizeof path, "%s%s", root, file->path);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_true(fputs(file->text, stream) >= 0);
    assert_int_equal(fclose(stream), 0);
}

static void check(const struct file *files, int count, int64_t available, const char *limit)
{
    const char *reported_limit;
    char command[128];
    assert_non_null(mkdtemp(strcpy(root, "/tmp/unit_memory.XXXXXX")));
    for (int i = 0; i < count; ++i)
        put(&files[i]);
    assert_int_equal(und_memory_available(root, &reported_limit), available);
    if (limit)
        assert_string_equal(reported_limit, limit);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static const struct file meminfo = {"/proc/meminfo", "MemTotal:       100 kB\nMemFree:  5 kB\nMemAvailable:   64 kB\n"};

TEST(test_node)
{
    const struct file no_limit[] = {meminfo,
                                    {"/proc/self/cgroup", "0::/job\n"},
                                    {"/sys/fs/cgroup/job/memory.max", "max\n"},
                                    {"/sys/fs/cgroup/job/memory.current", "50\n"}};
    check(&meminfo, 1, 65536, "MemAvailable");
    check(no_limit, 4, 65536, "MemAvailable");
    check(NULL, 0, INT64_MAX, NULL);
}

TEST(test_unified)
{
    /* A parent's limit counts, too; clean pages of files can be had again. */
    const struct file files[] = {meminfo,
                                 {"/proc/self/cgroup", "0::/job/step\n"},
                                 {"/sys/fs/cgroup/job/step/memory.max", "60000\n"},
                                 {"/sys/fs/cgroup/job/step/memory.current", "10000\n"},
                                 {"/sys/fs/cgroup/job/memory.max", "50000\n"},
                                 {"/sys/fs/cgroup/job/memory.current", "30000\n"},
                                 {"/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 4000\n"}};
    check(files, 4, 50000, "the limit of the control group");
    check(files, 7, 24000, "the limit of the control group");
}

TEST(test_legacy)
{
    const struct file files[] = {meminfo,
                                 {"/proc/self/cgroup", "5:cpu:/\n4:memory:/slurm/job\n0::/\n"},
                                 {"/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "9000\n"},
                                 {"/sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "9500\n"},
                                 {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
                                 {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n"}};
    check(files, 6, 0, "the limit of the control group");
}

RUN(T(test_node), T(test_unified), T(test_legacy))
