/*
 * understudy-slowfs: a file system of known behaviour. It passes every request through to a directory and waits in
 * each as long as it was told, so that a claim about storage can be checked where the truth is known. Needs libfuse 3
 * and no MPI.
 */
#include "options/option.h"
#include "text/error.h"
#include "text/print.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, FAILURE = 1, USAGE_ERROR = 2 };

/* What waits. */
enum kind { OPEN, CREATE, STAT, REMOVE, READ, WRITE, FLUSH, KINDS };

static const char *const names[KINDS] = {"open", "create", "stat", "remove", "read", "write", "flush"};
static const bool data[KINDS] = {[READ] = true, [WRITE] = true, [FLUSH] = true};

static struct {
    double wait_s[KINDS];
    double bytes_per_s[KINDS]; /* 0: at once */
    double jitter;             /* a wait is longer or shorter by up to this share */
    double keep_s;             /* the kernel knows attributes and names for so long */
    bool serial[KINDS];        /* requests of the kind wait one after the other */
    bool direct;
    int backing;
    unsigned short state[3];
    pthread_mutex_t locks[KINDS], state_lock;
} slow;

/* Of the requests since they were counted anew. */
static struct {
    pthread_mutex_t lock;
    int64_t requests[KINDS], bytes[KINDS];
    int64_t unaligned;      /* writes that begin or end within a page */
    double waited_s[KINDS]; /* of all requests together */
    int64_t now, most;      /* at once */
} counted = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double random_share(void)
{
    pthread_mutex_lock(&slow.state_lock);
    const double share = erand48(slow.state);
    pthread_mutex_unlock(&slow.state_lock);
    return share;
}

static double clock_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Time that is not used is lost: a kind that was idle is no faster afterwards. */
static void wait_as_told(enum kind kind, size_t bytes)
{
    double seconds = slow.wait_s[kind];
    if (slow.bytes_per_s[kind] > 0)
        seconds += (double)bytes / slow.bytes_per_s[kind];
    if (seconds <= 0)
        return;
    if (slow.jitter > 0)
        seconds *= 1 + slow.jitter * (2 * random_share() - 1);
    const time_t whole = (time_t)seconds;
    const struct timespec time = {.tv_sec = whole, .tv_nsec = (long)(1e9 * (seconds - (double)whole))};
    if (slow.serial[kind])
        pthread_mutex_lock(&slow.locks[kind]);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    if (slow.serial[kind])
        pthread_mutex_unlock(&slow.locks[kind]);
}

static void wait_for(enum kind kind, size_t bytes)
{
    const double begin_s = clock_s();
    pthread_mutex_lock(&counted.lock);
    ++counted.requests[kind];
    counted.bytes[kind] += (int64_t)bytes;
    counted.most = ++counted.now > counted.most ? counted.now : counted.most;
    pthread_mutex_unlock(&counted.lock);
    wait_as_told(kind, bytes);
    pthread_mutex_lock(&counted.lock);
    counted.waited_s[kind] += clock_s() - begin_s;
    --counted.now;
    pthread_mutex_unlock(&counted.lock);
}

/* The counts are those of a file of the root that no listing shows; who empties it begins to count anew. */
static const char counts_name[] = "/.understudy-requests";

static bool is_counts(const char *path)
{
    return path && strcmp(path, counts_name) == 0;
}

/* As they are when it is opened. */
struct told {
    char *text;
    size_t bytes;
};

static struct told *tell_requests(void)
{
    struct told *told = calloc(1, sizeof *told);
    FILE *file = told ? open_memstream(&told->text, &told->bytes) : NULL;
    if (!file) {
        free(told);
        return NULL;
    }
    pthread_mutex_lock(&counted.lock);
    fprintf(file, "{\"schema\": \"understudy/requests/1\", \"at_once\": %lld, \"unaligned_writes\": %lld",
            (long long)counted.most, (long long)counted.unaligned);
    for (int kind = 0; kind < KINDS; ++kind)
        fprintf(file, ",\n \"%s\": {\"requests\": %lld, \"bytes\": %lld, \"waited_s\": %.6f}", names[kind],
                (long long)counted.requests[kind], (long long)counted.bytes[kind], counted.waited_s[kind]);
    pthread_mutex_unlock(&counted.lock);
    fputs("}\n", file);
    if (fclose(file) == 0)
        return told;
    free(told->text);
    free(told);
    return NULL;
}

static int begin_anew(void)
{
    pthread_mutex_lock(&counted.lock);
    memset(counted.requests, 0, sizeof counted.requests);
    memset(counted.bytes, 0, sizeof counted.bytes);
    memset(counted.waited_s, 0, sizeof counted.waited_s);
    counted.unaligned = 0;
    counted.most = counted.now;
    pthread_mutex_unlock(&counted.lock);
    return 0;
}

static int open_counts(struct fuse_file_info *file)
{
    if (file->flags & O_TRUNC)
        begin_anew();
    struct told *told = tell_requests();
    file->fh = (uint64_t)(uintptr_t)told;
    file->direct_io = true; /* nothing of it is kept */
    return told ? 0 : -ENOMEM;
}

static struct told *told_by(const struct fuse_file_info *file)
{
    return (struct told *)(uintptr_t)file->fh;
}

static int read_counts(char *buffer, size_t bytes, off_t offset, const struct fuse_file_info *file)
{
    const struct told *told = told_by(file);
    if ((size_t)offset >= told->bytes)
        return 0;
    bytes = bytes < told->bytes - (size_t)offset ? bytes : told->bytes - (size_t)offset;
    memcpy(buffer, told->text + offset, bytes);
    return (int)bytes;
}

static int close_counts(const struct fuse_file_info *file)
{
    struct told *told = told_by(file);
    free(told->text);
    free(told);
    return 0;
}

static int look_at_counts(struct stat *status)
{
    *status = (struct stat){.st_mode = S_IFREG | 0644, .st_nlink = 1, .st_uid = getuid(), .st_gid = getgid()};
    return 0;
}

static int result_of(long status)
{
    return status < 0 ? -errno : 0;
}

/* In the directory that is passed through to. */
static const char *below(const char *path)
{
    return path[1] ? path + 1 : ".";
}

static int slow_getattr(const char *path, struct stat *status, struct fuse_file_info *file)
{
    if (is_counts(path))
        return look_at_counts(status);
    wait_for(STAT, 0);
    return result_of(file ? fstat((int)file->fh, status)
                          : fstatat(slow.backing, below(path), status, AT_SYMLINK_NOFOLLOW));
}

static int open_file(const char *path, int flags, mode_t mode, struct fuse_file_info *file)
{
    /* The kernel gives the offsets of what is appended; the backing file must not move them. Direct transfers arrive in
     * memory that the backing file could not move directly. */
    const int descriptor = openat(slow.backing, below(path), (flags & ~(O_APPEND | O_DIRECT)) | O_CLOEXEC, mode);
    if (descriptor < 0)
        return -errno;
    file->fh = (uint64_t)descriptor;
    file->direct_io = slow.direct;
    return 0;
}

static int slow_open(const char *path, struct fuse_file_info *file)
{
    if (is_counts(path))
        return open_counts(file);
    wait_for(OPEN, 0);
    return open_file(path, file->flags, 0, file);
}

static int slow_create(const char *path, mode_t mode, struct fuse_file_info *file)
{
    wait_for(CREATE, 0);
    return open_file(path, file->flags | O_CREAT, mode, file);
}

static int slow_read(const char *path, char *buffer, size_t bytes, off_t offset, struct fuse_file_info *file)
{
    if (is_counts(path))
        return read_counts(buffer, bytes, offset, file);
    wait_for(READ, bytes);
    const ssize_t moved = pread((int)file->fh, buffer, bytes, offset);
    return moved < 0 ? -errno : (int)moved;
}

static int slow_write(const char *path, const char *buffer, size_t bytes, off_t offset, struct fuse_file_info *file)
{
    enum { PAGE = 4096 };
    if (is_counts(path))
        return -EACCES;
    if (((size_t)offset % PAGE != 0 || ((size_t)offset + bytes) % PAGE != 0)) {
        pthread_mutex_lock(&counted.lock);
        ++counted.unaligned;
        pthread_mutex_unlock(&counted.lock);
    }
    wait_for(WRITE, bytes);
    const ssize_t moved = pwrite((int)file->fh, buffer, bytes, offset);
    return moved < 0 ? -errno : (int)moved;
}

static int slow_fsync(const char *path, int data_only, struct fuse_file_info *file)
{
    (void)path;
    wait_for(FLUSH, 0);
    return result_of(data_only ? fdatasync((int)file->fh) : fsync((int)file->fh));
}

static int slow_release(const char *path, struct fuse_file_info *file)
{
    return is_counts(path) ? close_counts(file) : result_of(close((int)file->fh));
}

static int slow_truncate(const char *path, off_t bytes, struct fuse_file_info *file)
{
    if (is_counts(path))
        return bytes == 0 ? begin_anew() : -EPERM;
    wait_for(STAT, 0);
    if (file)
        return result_of(ftruncate((int)file->fh, bytes));
    const int descriptor = openat(slow.backing, below(path), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
        return -errno;
    const int result = result_of(ftruncate(descriptor, bytes));
    close(descriptor);
    return result;
}

static int slow_mkdir(const char *path, mode_t mode)
{
    wait_for(CREATE, 0);
    return result_of(mkdirat(slow.backing, below(path), mode));
}

static int slow_symlink(const char *target, const char *path)
{
    wait_for(CREATE, 0);
    return result_of(symlinkat(target, slow.backing, below(path)));
}

static int slow_link(const char *path, const char *other)
{
    if (is_counts(path) || is_counts(other))
        return -EPERM;
    wait_for(CREATE, 0);
    return result_of(linkat(slow.backing, below(path), slow.backing, below(other), 0));
}

static int slow_mknod(const char *path, mode_t mode, dev_t device)
{
    wait_for(CREATE, 0);
    return result_of(mknodat(slow.backing, below(path), mode, device));
}

static int slow_unlink(const char *path)
{
    if (is_counts(path))
        return -EPERM;
    wait_for(REMOVE, 0);
    return result_of(unlinkat(slow.backing, below(path), 0));
}

static int slow_rmdir(const char *path)
{
    wait_for(REMOVE, 0);
    return result_of(unlinkat(slow.backing, below(path), AT_REMOVEDIR));
}

static int slow_rename(const char *path, const char *other, unsigned int flags)
{
    if (is_counts(path) || is_counts(other))
        return -EPERM;
    wait_for(REMOVE, 0);
    return result_of(renameat2(slow.backing, below(path), slow.backing, below(other), flags));
}

static int slow_readlink(const char *path, char *target, size_t bytes)
{
    const ssize_t length = readlinkat(slow.backing, below(path), target, bytes - 1);
    if (length < 0)
        return -errno;
    target[length] = '\0';
    return 0;
}

static int slow_readdir(const char *path, void *listing, fuse_fill_dir_t fill, off_t offset,
                        struct fuse_file_info *file, enum fuse_readdir_flags flags)
{
    (void)offset, (void)file, (void)flags;
    const int descriptor = openat(slow.backing, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (!directory)
        return -errno;
    const struct dirent *entry;
    while ((entry = readdir(directory)) && fill(listing, entry->d_name, NULL, 0, 0) == 0)
        continue;
    closedir(directory);
    return 0;
}

static int slow_statfs(const char *path, struct statvfs *status)
{
    (void)path;
    return result_of(fstatvfs(slow.backing, status));
}

static int slow_chmod(const char *path, mode_t mode, struct fuse_file_info *file)
{
    if (is_counts(path))
        return -EPERM;
    wait_for(STAT, 0);
    return result_of(file ? fchmod((int)file->fh, mode) : fchmodat(slow.backing, below(path), mode, 0));
}

static int slow_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *file)
{
    if (is_counts(path))
        return -EPERM;
    wait_for(STAT, 0);
    return result_of(file ? fchown((int)file->fh, user, group)
                          : fchownat(slow.backing, below(path), user, group, AT_SYMLINK_NOFOLLOW));
}

static int slow_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *file)
{
    if (is_counts(path)) /* as an open that empties it does */
        return 0;
    wait_for(STAT, 0);
    return result_of(file ? futimens((int)file->fh, times)
                          : utimensat(slow.backing, below(path), times, AT_SYMLINK_NOFOLLOW));
}

/* Links to a file have its number. */
static void *slow_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
    (void)connection;
    config->use_ino = 1;
    config->attr_timeout = config->entry_timeout = slow.keep_s;
    return NULL;
}

static const struct fuse_operations operations = {
    .init = slow_init,
    .getattr = slow_getattr,
    .open = slow_open,
    .create = slow_create,
    .read = slow_read,
    .write = slow_write,
    .fsync = slow_fsync,
    .release = slow_release,
    .truncate = slow_truncate,
    .mkdir = slow_mkdir,
    .symlink = slow_symlink,
    .link = slow_link,
    .mknod = slow_mknod,
    .unlink = slow_unlink,
    .rmdir = slow_rmdir,
    .rename = slow_rename,
    .readlink = slow_readlink,
    .readdir = slow_readdir,
    .statfs = slow_statfs,
    .chmod = slow_chmod,
    .chown = slow_chown,
    .utimens = slow_utimens,
};

static void print_help(void)
{
    fputs("Usage: understudy-slowfs [options] BACKING MOUNT\n\n"
          "Mounts a file system on the directory MOUNT, which passes every request through to the directory\n"
          "BACKING and waits in each as it was told. MOUNT must be empty and not below BACKING. Runs until it is\n"
          "unmounted (fusermount3 -u MOUNT, or SIGINT, SIGTERM, SIGHUP).\n\n"
          "       --open TIME            each open of a file that is there waits so long\n"
          "       --create TIME          each create of a file, link or directory\n"
          "       --stat TIME            each look at a file, by name or open, and each change of its attributes\n"
          "       --remove TIME          each unlink, rmdir and rename\n"
          "       --read TIME            each read request\n"
          "       --write TIME           each write request\n"
          "       --flush TIME           each fsync\n"
          "       --read-rate BYTES      a second; read requests wait for their bytes, too\n"
          "       --write-rate BYTES     a second; write requests wait for their bytes, too\n"
          "       --jitter SHARE         each wait is longer or shorter by up to this share, 0 to 1\n"
          "       --seed N               of the jitter; default: 1\n"
          "       --parallel-data        reads, writes and flushes wait at the same time; default: those of a\n"
          "                              kind one after the other\n"
          "       --serial-metadata      other requests of a kind wait one after the other; default: at the same\n"
          "                              time\n"
          "       --keep TIME            the kernel keeps attributes and names for so long, at most 3600s;\n"
          "                              default: 1s\n"
          "       --direct               no cache of the kernel: every read and write is a request, and\n"
          "                              files cannot be mapped into memory to share them\n"
          "   -h, --help                 print this help\n"
          "   -V, --version              print the version\n\n"
          "TIME is a number with us, ms or s (2ms); BYTES are plain, binary (MiB) or decimal (MB). By default\n"
          "nothing waits. Not every stat of a program is a request, since the kernel keeps attributes and names.\n"
          "MOUNT/.understudy-requests is a file that has the requests so far by kind, their bytes and\n"
          "waits, and the most at once, as JSON; who empties it begins to count anew. The exit status is 0, 1 when the "
          "mount fails, 2 for an invalid option or directory.\n",
          stdout);
}

/* Seconds, or -1. */
static double read_time(const char *text)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
    const char *unit = text + strspn(text, "0123456789.");
    char *end;
    const double number = strtod(text, &end);
    for (size_t i = 0; end == unit && end != text && i < sizeof units / sizeof units[0]; ++i)
        if (strcmp(unit, units[i].unit) == 0 && number >= 0 && number * units[i].seconds <= 3600)
            return number * units[i].seconds;
    return -1;
}

enum code { READ_RATE = KINDS, WRITE_RATE, JITTER, SEED, KEEP, PARALLEL_DATA, SERIAL_METADATA, DIRECT, HELP, VERSION };

#define TIME_EXPECTED "a time of at most 3600s with us, ms or s, such as 2ms"

static bool read_value(int code, const char *text, struct und_error *error)
{
    char *end = NULL;
    if (code < KINDS) {
        slow.wait_s[code] = read_time(text);
        return slow.wait_s[code] >= 0 || und_fail(error, "--%s %s: expected " TIME_EXPECTED, names[code], text);
    }
    switch (code) {
    case KEEP:
        slow.keep_s = read_time(text);
        return slow.keep_s >= 0 || und_fail(error, "--keep %s: expected " TIME_EXPECTED, text);
    case READ_RATE:
    case WRITE_RATE: {
        const int64_t bytes = und_bytes_read(text);
        slow.bytes_per_s[code == READ_RATE ? READ : WRITE] = (double)bytes;
        return bytes > 0 || und_fail(error, "--%s-rate %s: expected " UND_BYTES_EXPECTED,
                                     code == READ_RATE ? "read" : "write", text);
    }
    case JITTER:
        slow.jitter = strtod(text, &end);
        return (end != text && !*end && slow.jitter >= 0 && slow.jitter <= 1) ||
               und_fail(error, "--jitter %s: expected a number from 0 to 1", text);
    case SEED: {
        const unsigned long seed = strtoul(text, &end, 10);
        slow.state[0] = (unsigned short)seed;
        slow.state[1] = (unsigned short)(seed >> 16);
        return (end != text && !*end && text[0] != '-' && seed <= UINT32_MAX) ||
               und_fail(error, "--seed %s: expected a whole number from 0 to 2^32 - 1", text);
    }
    case PARALLEL_DATA:
    case SERIAL_METADATA:
        for (int kind = 0; kind < KINDS; ++kind)
            slow.serial[kind] = data[kind] == (code == PARALLEL_DATA) ? code == SERIAL_METADATA : slow.serial[kind];
        return true;
    default: slow.direct = true; return true;
    }
}

static bool read_arguments(int argc, char **argv, bool *help, bool *version, struct und_error *error)
{
    struct option table[KINDS + VERSION - KINDS + 2] = {
        [READ_RATE] = {"read-rate", required_argument, NULL, READ_RATE},
        [WRITE_RATE] = {"write-rate", required_argument, NULL, WRITE_RATE},
        [JITTER] = {"jitter", required_argument, NULL, JITTER},
        [SEED] = {"seed", required_argument, NULL, SEED},
        [KEEP] = {"keep", required_argument, NULL, KEEP},
        [PARALLEL_DATA] = {"parallel-data", no_argument, NULL, PARALLEL_DATA},
        [SERIAL_METADATA] = {"serial-metadata", no_argument, NULL, SERIAL_METADATA},
        [DIRECT] = {"direct", no_argument, NULL, DIRECT},
        [HELP] = {"help", no_argument, NULL, HELP},
        [VERSION] = {"version", no_argument, NULL, VERSION},
    };
    for (int kind = 0; kind < KINDS; ++kind)
        table[kind] = (struct option){names[kind], required_argument, NULL, kind};
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, ":hV", table, NULL)) != -1;) {
        if (!und_option_known(code, argv, error))
            return false;
        *help = *help || code == HELP || code == 'h';
        *version = *version || code == VERSION || code == 'V';
        if (code < HELP && !read_value(code, optarg, error))
            return false;
    }
    return *help || *version || optind + 2 == argc ||
           und_fail(error, "expected two directories, BACKING and MOUNT, found %d, see --help", argc - optind);
}

/* So that nothing is hidden by the mount. */
static bool check_empty(const char *mount, struct und_error *error)
{
    DIR *listing = opendir(mount);
    if (!listing)
        return und_fail(error, "cannot open the directory %s: %s", mount, strerror(errno));
    const struct dirent *entry;
    while ((entry = readdir(listing)) && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0))
        continue;
    const bool empty = !entry;
    closedir(listing);
    return empty || und_fail(error, "%s is not empty; expected an empty directory to mount on", mount);
}

/* A file system that asks itself hangs, and so does everybody who looks at it. */
static bool check_apart(const char *path, const char *mount, struct und_error *error)
{
    char *outer = realpath(path, NULL), *inner = realpath(mount, NULL);
    const size_t length = outer ? strlen(outer) : 0;
    const bool below = outer && inner && strncmp(outer, inner, length) == 0 && (inner[length] == '/' || length == 1);
    const bool exist = outer && inner;
    free(outer);
    free(inner);
    if (!exist)
        return und_fail(error, "cannot find the directories %s and %s: %s", path, mount, strerror(errno));
    return !below || und_fail(error, "MOUNT is below BACKING: %s is in %s", mount, path);
}

static bool open_backing(const char *path, const char *mount, struct und_error *error)
{
    struct stat backing, mounted;
    slow.backing = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (slow.backing < 0 || fstat(slow.backing, &backing) != 0)
        return und_fail(error, "cannot open the directory %s: %s", path, strerror(errno));
    if (stat(mount, &mounted) != 0)
        return und_fail(error, "cannot find the directory %s: %s", mount, strerror(errno));
    if (backing.st_dev == mounted.st_dev && backing.st_ino == mounted.st_ino)
        return und_fail(error, "BACKING and MOUNT are one directory: %s", mount);
    return check_apart(path, mount, error) && check_empty(mount, error);
}

/* Until it is unmounted or a signal comes. */
static int serve(char *program, const char *mount)
{
    enum { IDLE_THREADS = 16 };
    char option[] = "-o", named[] = "fsname=understudy-slowfs,subtype=slowfs";
    char *words[] = {program, option, named, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, words);
    struct fuse_loop_config threads = {.clone_fd = 0, .max_idle_threads = IDLE_THREADS};
    struct fuse *fuse = fuse_new(&args, &operations, sizeof operations, NULL);
    int status = FAILURE;
    umask(0);
    if (fuse && fuse_mount(fuse, mount) == 0) {
        struct fuse_session *session = fuse_get_session(fuse);
        if (fuse_set_signal_handlers(session) == 0) {
            status = fuse_loop_mt(fuse, &threads) < 0 ? FAILURE : SUCCESS;
            fuse_remove_signal_handlers(session);
        }
        fuse_unmount(fuse);
    }
    if (fuse)
        fuse_destroy(fuse);
    fuse_opt_free_args(&args);
    return status;
}

int main(int argc, char **argv)
{
    struct und_error error;
    bool help = false, version = false;
    slow.state[0] = 1;
    slow.keep_s = 1;
    pthread_mutex_init(&slow.state_lock, NULL);
    for (int kind = 0; kind < KINDS; ++kind) {
        pthread_mutex_init(&slow.locks[kind], NULL);
        slow.serial[kind] = data[kind];
    }
    if (!read_arguments(argc, argv, &help, &version, &error) ||
        (!help && !version && !open_backing(argv[optind], argv[optind + 1], &error))) {
        und_print(stderr, "understudy: %s", error.text);
        return USAGE_ERROR;
    }
    if (help || version) {
        if (help)
            print_help();
        else
            und_print(stdout, "understudy-slowfs %s", UND_VERSION);
        return und_print_end(SUCCESS);
    }
    return serve(argv[0], argv[optind + 1]);
}
