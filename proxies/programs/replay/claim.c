#define _DEFAULT_SOURCE /* flock */
#include "programs/replay/claim.h"

#include "job/agree.h"
#include "job/die.h"
#include "storage/run_directory.h"
#include "storage/watchdog.h"
#include "text/print.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA "understudy/claim/1"
#define SERIES_PART "time_series_part" /* absent without a time series */
static const char damaged[] = "which is no claim of a run of this user";

enum { MOST_BYTES = 1 << 26, BOOT_BYTES = 64 };

/* A process by its number and when it started, in ticks since the boot, since numbers are used again. */
struct process {
    int64_t pid, start;
};

/* The boot and the system that the numbers of processes are of. */
struct system {
    char host[256], boot[BOOT_BYTES];
    int64_t pids; /* the namespace */
};

/* When the process of that number started; -1: there is none, or it has ended. */
static int64_t start_of(int64_t pid)
{
    char path[64], line[1024] = "", state = '\0';
    long long start = -1;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    FILE *file = fopen(path, "r");
    const bool there = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    /* The name in brackets may hold anything. */
    const char *end = there ? strrchr(line, ')') : NULL;
    if (!end || sscanf(end, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lld", &state,
                       &start) != 2)
        return -1;
    return state == 'Z' || state == 'X' ? -1 : start;
}

static struct system this_system(void)
{
    struct system here = {.pids = -1};
    struct stat status;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file && fgets(here.boot, sizeof here.boot, file))
        here.boot[strcspn(here.boot, "\n")] = '\0';
    if (file)
        fclose(file);
    gethostname(here.host, sizeof here.host - 1);
    if (stat("/proc/self/ns/pid", &status) == 0)
        here.pids = (int64_t)status.st_ino;
    return here;
}

/* ---- Names ---- */

/* Words that follow the name of a stream: numbers, and words of the player and its methods, each behind a point. */
static size_t known_word(const char *at)
{
    static const char *const words[] = {"made", "directories", "renamed", "dir"};
    const size_t length = strcspn(at, ".");
    for (size_t w = 0; w < sizeof words / sizeof words[0]; ++w)
        if (strlen(words[w]) == length && strncmp(words[w], at, length) == 0)
            return length;
    for (const struct und_method *const *method = und_methods; *method; ++method)
        if ((*method)->suffix && strlen((*method)->suffix + 1) == length &&
            strncmp((*method)->suffix + 1, at, length) == 0)
            return length;
    const size_t letters = at[0] && strchr("fgd", at[0]) ? 1 : 0, digits = strspn(at + letters, "0123456789");
    return digits > 0 && letters + digits == length ? length : 0;
}

static bool is_rest(const char *at)
{
    while (*at == '.') {
        const size_t length = known_word(at + 1);
        if (length == 0)
            return false;
        at += 1 + length;
    }
    return *at == '\0';
}

/* Of a file that a library makes in the directory that a file is. */
static bool is_member(const char *name)
{
    for (const struct und_method *const *method = und_methods; *method; ++method)
        if ((*method)->is_member && (*method)->is_member(name))
            return true;
    return false;
}

static bool is_name_of(const char *name, const json_t *streams, int depth)
{
    for (size_t s = 0; s < json_array_size(streams); ++s) {
        const char *stream = json_string_value(json_array_get(streams, s));
        const size_t length = stream ? strlen(stream) : 0;
        if (length > 0 && strncmp(name, stream, length) == 0 && is_rest(name + length))
            return true;
    }
    if (depth > 0 && is_member(name))
        return true;
    return depth > 0 && isdigit((unsigned char)name[0]) && is_rest(name + strspn(name, "0123456789"));
}

/* ---- Taking over ---- */

/* An output that is not finished; the path is NULL where there is none. */
struct part {
    const char *path;
    json_int_t device, inode, birth_ns;
};

struct claim {
    struct und_watch *watch;
    int directory, file;
    struct und_identity identity;
    struct stat status; /* of the directory */
    json_t *root;
    const char *schema, *host, *boot;
    json_int_t pids, nodes;
    struct part parts[UND_OUTPUTS];
    int created;
    const json_t *processes, *streams;
    int64_t removed;
    char foreign[256]; /* the name of something else in the directory */
};

static bool is_ours(const struct claim *claim, int directory, const char *name, int depth, bool *is_directory)
{
    struct stat status;
    struct und_identity identity;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !und_identity_read(directory, name, &identity))
        return false;
    *is_directory = S_ISDIR(status.st_mode);
    return status.st_uid == geteuid() && status.st_dev == claim->status.st_dev &&
           is_name_of(name, claim->streams, depth) &&
           ((S_ISREG(status.st_mode) && status.st_nlink == 1) || (*is_directory && depth == 0)) &&
           (identity.birth_ns == 0 || claim->identity.birth_ns <= identity.birth_ns);
}

/* Looks at all in the directory and those in it, or removes it. False where something else is in it. */
static bool walk(struct claim *claim, int directory, int depth, bool removing)
{
    const int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = again < 0 ? NULL : fdopendir(again);
    bool ours = listing != NULL;
    for (const struct dirent *entry; ours && (entry = readdir(listing));) {
        const char *name = entry->d_name;
        bool is_directory = false;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || (depth == 0 && strcmp(name, UND_CLAIM) == 0))
            continue;
        ours = is_ours(claim, directory, name, depth, &is_directory);
        if (!ours)
            snprintf(claim->foreign, sizeof claim->foreign, "%s", name);
        if (ours && is_directory) {
            const int below = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            ours = below >= 0 && walk(claim, below, depth + 1, removing);
            if (below >= 0)
                close(below);
        }
        if (ours && removing) {
            und_watch_call(claim->watch, claim->removed + 1);
            ours = unlinkat(directory, name, is_directory ? AT_REMOVEDIR : 0) == 0;
            claim->removed += ours && !(depth > 0 && is_member(name)); /* of the file that the directory is */
        }
    }
    if (listing)
        closedir(listing);
    else if (again >= 0)
        close(again);
    return ours;
}

/* An unfinished output of the run, beside its output: its name ends with the number of the process that wrote it. */
static void remove_part(struct claim *claim, const struct part *part)
{
    struct stat status;
    struct und_identity identity;
    char end[64];
    const json_t *writer = json_array_get(json_array_get(claim->processes, 0), 0);
    snprintf(end, sizeof end, ".%" PRId64 ".part", (int64_t)json_integer_value(writer));
    const size_t length = part->path ? strlen(part->path) : 0;
    if (length > strlen(end) && strcmp(part->path + length - strlen(end), end) == 0 &&
        lstat(part->path, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        status.st_nlink == 1 && und_identity_read(AT_FDCWD, part->path, &identity) &&
        identity.device == (uint64_t)part->device && identity.inode == (uint64_t)part->inode &&
        identity.birth_ns == (uint64_t)part->birth_ns && unlink(part->path) == 0)
        ++claim->removed;
}

static bool read_text(struct claim *claim)
{
    struct stat status;
    char *text;
    if (fstat(claim->file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        status.st_nlink != 1 || (status.st_mode & (S_IWGRP | S_IWOTH)) || status.st_size > MOST_BYTES)
        return false;
    text = malloc((size_t)status.st_size + 1);
    if (text && pread(claim->file, text, (size_t)status.st_size, 0) == (ssize_t)status.st_size)
        claim->root = json_loadb(text, (size_t)status.st_size, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    return claim->root != NULL;
}

static bool read_part(json_t *object, struct part *part)
{
    return !object || json_is_null(object) ||
           json_unpack(object, "{s:s, s:I, s:I, s:I !}", "path", &part->path, "device", &part->device, "inode",
                       &part->inode, "birth_ns", &part->birth_ns) == 0;
}

static bool read_claim(struct claim *claim)
{
    json_t *parts[UND_OUTPUTS] = {NULL};
    if (!read_text(claim) ||
        json_unpack(claim->root, "{s:s, s:s, s:s, s:I, s:I, s:b, s:o, s:o, s:o, s?o !}", "schema", &claim->schema,
                    "host", &claim->host, "boot", &claim->boot, "pids", &claim->pids, "nodes", &claim->nodes, "created",
                    &claim->created, "processes", &claim->processes, "streams", &claim->streams, "part",
                    &parts[UND_RESULT], SERIES_PART, &parts[UND_TIME_SERIES]) != 0 ||
        strcmp(claim->schema, SCHEMA) != 0 || json_array_size(claim->processes) == 0)
        return false;
    for (size_t p = 0; p < json_array_size(claim->processes); ++p) {
        const json_t *process = json_array_get(claim->processes, p);
        for (size_t i = 0; i < 2; ++i)
            if (json_array_size(process) != 2 || json_integer_value(json_array_get(process, i)) <= 0)
                return false;
    }
    return read_part(parts[UND_RESULT], &claim->parts[UND_RESULT]) &&
           read_part(parts[UND_TIME_SERIES], &claim->parts[UND_TIME_SERIES]);
}

/* Has every process of the run ended? */
static bool has_ended(const struct claim *claim, const char *directory, struct und_error *error)
{
    const struct system here = this_system();
    if (claim->nodes != 1 || strcmp(claim->boot, here.boot) != 0 || claim->pids != here.pids)
        return und_fail(error,
                        "%s is not empty: it holds the files of a run on %.255s%s, of whose processes this host knows "
                        "nothing; if that run has ended, remove the directory",
                        directory, claim->host, claim->nodes == 1 ? "" : " and other hosts");
    for (size_t p = 0; p < json_array_size(claim->processes); ++p) {
        const json_t *process = json_array_get(claim->processes, p);
        const int64_t pid = json_integer_value(json_array_get(process, 0));
        if (start_of(pid) == json_integer_value(json_array_get(process, 1)))
            return und_fail(error, "%s is not empty: the run of process %" PRId64 " on this host has its files there",
                            directory, pid);
    }
    return true;
}

/* One run at a time: the one that has the lock on the claim that is still there. */
static bool lock(const struct claim *claim, const char *directory, struct und_error *error)
{
    struct und_identity now;
    return (flock(claim->file, LOCK_EX | LOCK_NB) == 0 && und_identity_read(claim->directory, UND_CLAIM, &now) &&
            now.inode == claim->identity.inode && now.birth_ns == claim->identity.birth_ns) ||
           und_fail(error, "%s is not empty: another run removes the files of one that was killed there", directory);
}

static bool take_over(struct claim *claim, const char *directory, struct und_error *error)
{
    if (!und_identity_read(claim->file, "", &claim->identity) || fstat(claim->directory, &claim->status) != 0 ||
        !read_claim(claim))
        return und_fail(error, "%s is not empty: it holds %s, %s", directory, UND_CLAIM, damaged);
    if (!lock(claim, directory, error) || !has_ended(claim, directory, error))
        return false;
    if (!walk(claim, claim->directory, 0, false))
        return und_fail(error,
                        "%s is not empty: it holds %s, besides files of a run that was killed; expected an empty "
                        "directory, or one that does not exist",
                        directory, claim->foreign);
    if (!walk(claim, claim->directory, 0, true))
        return und_fail(error, "%s: cannot remove the files of a run that was killed: %s", directory, strerror(errno));
    for (int which = 0; which < UND_OUTPUTS; ++which)
        remove_part(claim, &claim->parts[which]);
    if (unlinkat(claim->directory, UND_CLAIM, 0) != 0)
        return und_fail(error, "%s: cannot remove %s: %s", directory, UND_CLAIM, strerror(errno));
    und_print(stderr, "understudy: %s: removed %" PRId64 " files of a run that was killed", directory, claim->removed);
    return true;
}

static bool remove_leftover(const char *directory, struct und_watch *watch, bool *created, struct und_error *error)
{
    struct claim claim = {.watch = watch, .directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    struct stat status;
    claim.file =
        claim.directory < 0 ? -1 : openat(claim.directory, UND_CLAIM, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool taken = claim.file < 0
                           ? und_fail(error, "%s is not empty: it holds %s, %s", directory, UND_CLAIM, damaged)
                           : take_over(&claim, directory, error);
    /* A directory that is named through a link is not removed. */
    *created = taken && claim.created && lstat(directory, &status) == 0 && S_ISDIR(status.st_mode);
    json_decref(claim.root);
    if (claim.file >= 0)
        close(claim.file);
    if (claim.directory >= 0)
        close(claim.directory);
    return taken;
}

/* Finds any entry of the directory, the claim of a run before others. False when it is empty. */
static bool find_entry(DIR *listing, char *name, size_t size)
{
    name[0] = '\0';
    for (const struct dirent *entry; strcmp(name, UND_CLAIM) != 0 && (entry = readdir(listing));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            (!name[0] || strcmp(entry->d_name, UND_CLAIM) == 0))
            snprintf(name, size, "%s", entry->d_name);
    return name[0] != '\0';
}

bool und_claim_prepare(const char *directory, struct und_watch *watch, bool *created, struct und_error *error)
{
    char name[256];
    *created = mkdir(directory, 0777) == 0;
    if (*created)
        return true;
    if (errno != EEXIST)
        return und_fail(error, "cannot create the directory %s: %s", directory, strerror(errno));
    DIR *listing = opendir(directory);
    if (!listing)
        return und_fail(error, "cannot read the directory %s: %s", directory, strerror(errno));
    const bool full = find_entry(listing, name, sizeof name);
    closedir(listing);
    if (full && strcmp(name, UND_CLAIM) == 0)
        return remove_leftover(directory, watch, created, error);
    if (full)
        return und_fail(error, "%s is not empty: it holds %s; expected an empty directory, or one that does not exist",
                        directory, name);
    if (access(directory, W_OK | X_OK) != 0)
        return und_fail(error, "cannot write to the directory %s: %s", directory, strerror(errno));
    return true;
}

/* ---- Making ---- */

static json_t *part_json(const struct und_directory *directory, enum und_output which)
{
    char path[4096];
    struct und_identity identity;
    json_t *text = und_directory_output_part(directory, which, path, sizeof path, &identity) ? json_string(path) : NULL;
    return text ? json_pack("{s:o, s:I, s:I, s:I}", "path", text, "device", (json_int_t)identity.device, "inode",
                            (json_int_t)identity.inode, "birth_ns", (json_int_t)identity.birth_ns)
                : json_null();
}

static char *claim_text(const struct und_run *run, const struct system *here, const struct process *processes,
                        int count, int nodes)
{
    json_t *all = json_array(), *streams = json_array();
    for (int p = 0; p < count; ++p)
        json_array_append_new(all, json_pack("[I, I]", (json_int_t)processes[p].pid, (json_int_t)processes[p].start));
    for (int s = 0; s < run->workload->stream_count; ++s)
        json_array_append_new(streams, json_string(run->workload->streams[s].name));
    json_t *root = json_pack("{s:s, s:s, s:s, s:I, s:I, s:b, s:o, s:o, s:o}", "schema", SCHEMA, "host", here->host,
                             "boot", here->boot, "pids", (json_int_t)here->pids, "nodes", (json_int_t)nodes, "created",
                             und_directory_is_created(run->directory), "processes", all, "streams", streams, "part",
                             part_json(run->directory, UND_RESULT));
    if (root && run->plan->time_series)
        json_object_set_new(root, SERIES_PART, part_json(run->directory, UND_TIME_SERIES));
    char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    return text;
}

/* The processes of this node at its first rank, and the number of nodes; ranks in a container of their own count as
 * nodes. */
static struct process *gather(MPI_Comm comm, const struct system *here, int *count, int *nodes)
{
    static const char failed[] = "cannot gather the processes of the run";
    struct process process = {.pid = getpid(), .start = start_of(getpid())};
    int64_t pids[2] = {here->pids, -here->pids};
    MPI_Comm node;
    int rank;
    UND_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), failed);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, count);
    struct process *all = malloc((size_t)*count * sizeof *all);
    UND_CHECK(all, "no memory for the processes of a node");
    UND_MPI(MPI_Gather(&process, 2, MPI_INT64_T, all, 2, MPI_INT64_T, 0, node), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, pids, 2, MPI_INT64_T, MPI_MAX, node), failed);
    *nodes = rank != 0 ? 0 : pids[0] == -pids[1] ? 1 : 2;
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, nodes, 1, MPI_INT, MPI_SUM, comm), failed);
    MPI_Comm_free(&node);
    return all;
}

static bool write_claim(const struct und_run *run, const char *text, struct und_error *error)
{
    int descriptor;
    if (!text)
        return und_fail(error, "%s: no memory to claim it", run->plan->directory);
    if (!und_directory_create_claim(run->directory, &descriptor, error))
        return false;
    const size_t bytes = strlen(text);
    const bool written = write(descriptor, text, bytes) == (ssize_t)bytes;
    const int code = errno;
    close(descriptor);
    return written || und_fail(error, "%s: cannot write %s: %s", run->plan->directory, UND_CLAIM, strerror(code));
}

bool und_claim_make(const struct und_run *run, struct und_error *error)
{
    const struct system here = this_system();
    int count, nodes;
    struct process *processes = gather(run->comm, &here, &count, &nodes);
    char *text = run->rank == 0 ? claim_text(run, &here, processes, count, nodes) : NULL;
    free(processes);
    const bool claimed = und_agree(run->rank != 0 || write_claim(run, text, error), run->comm, error);
    free(text);
    if (claimed)
        und_directory_share_claim(run->directory, run->comm);
    return claimed;
}
