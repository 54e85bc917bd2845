/* Requests, what clients tell in files, and layouts of any bytes. */
#define _XOPEN_SOURCE 700
#include "interfaces/layout_request.h"
#include "unit_test.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static unsigned char answer[4096];
static ssize_t answer_size;

/* In front of the C library's: the layout of every file. */
ssize_t fgetxattr(int descriptor, const char *name, void *value, size_t size)
{
    (void)descriptor;
    if (strcmp(name, "lustre.lov") != 0 && strcmp(name, "ceph.file.layout") != 0) {
        errno = ENODATA;
        return -1;
    }
    if (answer_size < 0 || (size_t)answer_size > size) {
        errno = answer_size < 0 ? ENODATA : ERANGE;
        return -1;
    }
    memcpy(value, answer, (size_t)answer_size);
    return answer_size;
}

static const struct und_layout_backend *backend(const char *name)
{
    for (const struct und_layout_backend *const *at = und_layout_backends; *at; ++at)
        if (strcmp((*at)->name, name) == 0)
            return *at;
    fail_msg("no backend %s", name);
    return NULL;
}

static int temporary_file(int64_t bytes)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    const int descriptor = dup(fileno(file));
    fclose(file);
    assert_int_equal(ftruncate(descriptor, (off_t)bytes), 0);
    return descriptor;
}

TEST(reads_targets)
{
    static struct und_layout_request request;
    static const struct {
        const char *text;
        int count;
        int64_t first, last;
    } cases[] = {{"0", 1, 0, 0}, {"3,1", 2, 3, 1}, {"0,4-7", 5, 0, 7}, {"2147483647", 1, INT32_MAX, INT32_MAX}};
    static const char *const wrong[] = {"",    ",",   "1,", "-1",         "1-",     "4-3",
                                        "1 2", "0-x", "x",  "2147483648", "0-2048", "99999999999999999999"};
    for (size_t i = 0; i < COUNT(cases); ++i) {
        assert_true(und_layout_request_read_targets(cases[i].text, &request));
        assert_int_equal(request.target_count, cases[i].count);
        assert_int_equal(request.targets[0], cases[i].first);
        assert_int_equal(request.targets[request.target_count - 1], cases[i].last);
    }
    for (size_t i = 0; i < COUNT(wrong); ++i)
        assert_false(und_layout_request_read_targets(wrong[i], &request));
}

TEST(compares)
{
    static struct und_layout_request request;
    static struct und_file_layout layout;
    struct und_error error;
    und_file_layout_unknown(&layout);
    assert_true(und_layout_request_agrees(&request, &layout, "x", &error));
    request.stripe_count = 4;
    assert_false(und_layout_request_agrees(&request, &layout, "x", &error));
    layout.stripe_count = 4;
    assert_true(und_layout_request_agrees(&request, &layout, "x", &error));
    request.stripe_size_bytes = 1 << 20;
    assert_false(und_layout_request_agrees(&request, &layout, "x", &error));
    layout.stripe_size_bytes = 1 << 20;
    request.pool = "fast";
    assert_false(und_layout_request_agrees(&request, &layout, "x", &error));
    assert_string_equal(error.text, "x: --stripe-pool fast was asked, but the file system gave no pool");
    snprintf(layout.pool, sizeof layout.pool, "fast");
    assert_true(und_layout_request_read_targets("1,2,3,5", &request));
    assert_false(und_layout_request_agrees(&request, &layout, "x", &error));
    layout.target_count = 4;
    memcpy(layout.targets, (const int64_t[]){5, 3, 2, 1}, 4 * sizeof(int64_t));
    assert_true(und_layout_request_agrees(&request, &layout, "x", &error));
    layout.targets[0] = 4;
    assert_false(und_layout_request_agrees(&request, &layout, "x", &error));
}

static void put(size_t at, uint64_t value, size_t bytes)
{
    memcpy(answer + at, &value, bytes); /* the hosts of the tests are little-endian */
}

static size_t put_v1(size_t at, uint32_t stripe_bytes, uint16_t count, uint32_t first)
{
    memset(answer + at, 0, 32 + 24 * (size_t)count);
    put(at, 0x0bd10bd0, 4);
    put(at + 4, 1, 4);
    put(at + 24, stripe_bytes, 4);
    put(at + 28, count, 2);
    for (uint32_t i = 0; i < count; ++i)
        put(at + 32 + 24 * i + 20, first + i, 4);
    return 32 + 24 * (size_t)count;
}

/* [0, 1 MiB) on 1, [1 MiB, 100 MiB) on 2, the rest on 8 targets. */
static void put_composite(void)
{
    static const uint64_t bounds[] = {0, 1 << 20, 100 << 20, UINT64_MAX};
    size_t at = 32 + 3 * 48;
    memset(answer, 0, at);
    put(0, 0x0bd60bd0, 4);
    put(14, 3, 2);
    for (size_t i = 0; i < 3; ++i) {
        const size_t bytes = put_v1(at, 65536U << i, (uint16_t[]){1, 2, 8}[i], 10 * (uint32_t)(i + 1));
        put(32 + 48 * i + 4, 0x10, 4);
        put(32 + 48 * i + 8, bounds[i], 8);
        put(32 + 48 * i + 16, bounds[i + 1], 8);
        put(32 + 48 * i + 24, at, 4);
        put(32 + 48 * i + 28, bytes, 4);
        at += bytes;
    }
    put(4, at, 4);
    answer_size = (ssize_t)at;
}

TEST(finds_the_component_of_most_bytes)
{
    static const struct {
        int64_t bytes, count, stripe_bytes, first;
    } cases[] = {{0, 1, 65536, 10},
                 {1 << 20, 1, 65536, 10},
                 {3 << 20, 2, 131072, 20},
                 {150 << 20, 2, 131072, 20},
                 {INT64_C(1) << 30, 8, 262144, 30}};
    static struct und_file_layout layout;
    struct und_error error;
    put_composite();
    for (size_t i = 0; i < COUNT(cases); ++i) {
        const int file = temporary_file(cases[i].bytes);
        assert_true(backend("lustre")->read(file, &layout, &error));
        assert_int_equal(layout.stripe_count, cases[i].count);
        assert_int_equal(layout.stripe_size_bytes, cases[i].stripe_bytes);
        assert_int_equal(layout.target_count, cases[i].count);
        assert_int_equal(layout.targets[0], cases[i].first);
        close(file);
    }
    /* Stale, then the parity of erasure coding: not data. */
    const int file = temporary_file(1 << 20);
    put(32 + 4, 0x11, 4);
    assert_false(backend("lustre")->read(file, &layout, &error));
    put(32 + 4, 0x50, 4);
    assert_false(backend("lustre")->read(file, &layout, &error));
    close(file);
}

static void check_any(const struct und_layout_backend *backend, int file)
{
    static struct und_file_layout layout;
    struct und_error error = {""};
    if (backend->read(file, &layout, &error)) {
        assert_in_range(layout.target_count + 1, 0, UND_MAX_TARGETS + 1);
        assert_non_null(memchr(layout.pool, '\0', sizeof layout.pool));
    } else {
        assert_string_not_equal(error.text, "");
        assert_string_equal(layout.backend, "");
    }
}

/* Cut off anywhere, and with any byte changed. */
TEST(reads_any_bytes)
{
    const int file = temporary_file(3 << 20);
    put_composite();
    const ssize_t whole = answer_size;
    for (answer_size = -1; answer_size < whole; ++answer_size)
        check_any(backend("lustre"), file);
    answer_size = whole;
    for (ssize_t at = 0; at < whole; ++at)
        for (int value = 0; value < 256; value += 5) {
            put_composite();
            answer[at] = (unsigned char)value;
            check_any(backend("lustre"), file);
        }
    srand(1);
    for (int i = 0; i < 20000; ++i) {
        answer_size = rand() % (int)sizeof answer;
        for (ssize_t at = 0; at < answer_size; ++at)
            answer[at] = (unsigned char)rand();
        put(0, (uint32_t[]){0x0bd10bd0, 0x0bd30bd0, 0x0bd50bd0, 0x0bd60bd0}[i % 4], 4);
        check_any(backend("lustre"), file);
    }
    close(file);
}

TEST(reads_text_of_ceph)
{
    static const struct {
        const char *text;
        int64_t count; /* 0: refused */
        const char *pool;
    } cases[] = {
        {"stripe_unit=4194304 stripe_count=3 object_size=4194304 pool=data", 3, "data"},
        {"stripe_unit=65536 stripe_count=3 object_size=65536 pool=7 pool_namespace=n", 3, "7"},
        {"stripe_unit=65536 stripe_count=3", 3, ""},
        {"stripe_count=3", 0, ""},
        {"stripe_unit=x stripe_count=3", 0, ""},
        {"stripe_unit=65536 stripe_count=99999999999999999999", 0, ""},
        {"stripe_unit=65536 xstripe_count=3", 0, ""},
        {"", 0, ""},
    };
    static struct und_file_layout layout;
    struct und_error error;
    const int file = temporary_file(0);
    for (size_t i = 0; i < COUNT(cases); ++i) {
        answer_size = (ssize_t)strlen(cases[i].text);
        memcpy(answer, cases[i].text, strlen(cases[i].text));
        assert_int_equal(backend("ceph")->read(file, &layout, &error), cases[i].count > 0);
        if (cases[i].count > 0) {
            assert_int_equal(layout.stripe_count, cases[i].count);
            assert_string_equal(layout.pool, cases[i].pool);
        }
    }
    memset(answer, 'x', sizeof answer);
    answer_size = sizeof answer;
    check_any(backend("ceph"), file);
    close(file);
}

/* Makes the directories and the file below root. */
static void write_file(const char *root, const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0777);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

TEST(describes)
{
    static struct und_storage storage;
    char root[] = "/tmp/und_stripes_XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    memset(&storage, 0, sizeof storage);
    snprintf(storage.source, sizeof storage.source, "10.0.0.1@tcp:10.0.0.2@tcp:/scratch/home");
    backend("lustre")->describe(root, &storage);
    assert_string_equal(storage.client_version, "");
    assert_string_equal(storage.health, "");
    write_file(root, "/sys/fs/lustre/version", "2.15.5\n");
    write_file(root, "/sys/fs/lustre/health_check", "healthy\n");
    write_file(root, "/proc/fs/lustre/osc/scratch-OST0000-osc-ffff/import", "import:\n    state: FULL\n");
    write_file(root, "/proc/fs/lustre/osc/scratch-OST0003-osc-ffff/import", "import:\n    state: DISCONN\n");
    write_file(root, "/proc/fs/lustre/osc/home-OST0003-osc-ffff/import", "import:\n    state: DISCONN\n");
    write_file(root, "/proc/fs/lustre/mdc/scratch-MDT0000-mdc-ffff/import",
               "import:\n    state: FULL\n    connection:\n       target_version: 2.14.0.21\n");
    backend("lustre")->describe(root, &storage);
    assert_string_equal(storage.client_version, "2.15.5");
    assert_string_equal(storage.server_version, "2.14.0.21");
    assert_string_equal(storage.health, "healthy, scratch-OST0003-osc-ffff DISCONN");

    memset(&storage, 0, sizeof storage);
    write_file(root, "/sys/module/beegfs/version", "7.4.5\n");
    backend("beegfs")->describe(root, &storage);
    assert_string_equal(storage.client_version, "7.4.5");

    write_file(root, "/sys/kernel/debug/ceph/f.client1/status", "instance: client.1\nblocklisted: true\n");
    backend("ceph")->describe(root, &storage);
    assert_string_equal(storage.health, "blocklisted");

    memset(&storage, 0, sizeof storage);
    snprintf(storage.type, sizeof storage.type, "nfs");
    snprintf(storage.mount_options, sizeof storage.mount_options, "rw,relatime,rw,vers=4.2,rsize=1048576");
    backend("none")->describe(root, &storage);
    assert_string_equal(storage.client_version, "NFS 4.2");
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

RUN(T(reads_targets), T(compares), T(reads_any_bytes), T(finds_the_component_of_most_bytes), T(describes),
    T(reads_text_of_ceph))
