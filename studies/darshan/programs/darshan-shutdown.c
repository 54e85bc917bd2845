/*
 * understudy-darshan-shutdown: how long Darshan's runtime takes to write its log at the end of a job, and
 * how large the log is. Drives darshan_shutdown_bench of the runtime that is preloaded (LD_PRELOAD): one
 * call fills in synthetic records and shuts Darshan down four times, once for each workload. The times are
 * those that Darshan prints of itself. Everything it writes is in a directory of its own, removed at the end.
 */
#include "job/die.h"
#include "job/environment.h"
#include "job/init.h"
#include "options/option.h"
#include "text/print.h"

#include <dlfcn.h>
#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, USAGE_ERROR = 2, MAX_SAMPLES = 1000, LOG_PATH_BYTES = PATH_MAX };

/* In the order of darshan_shutdown_bench. */
static const char *const workloads[] = {"file-per-process", "shared", "1024-per-process", "1024-shared"};
enum { WORKLOADS = sizeof workloads / sizeof workloads[0] };

typedef void shutdown_bench(int argc, char **argv);

struct arguments {
    const char *directory, *result;
    int samples, warm_up;
    bool all_modules, keep, help, version;
};

static void print_help(void)
{
    fputs("Usage: understudy-darshan-shutdown [options] -o DIR -O FILE\n\n"
          "Measures the shutdown of the Darshan runtime that LD_PRELOAD names, started by mpirun or srun:\n"
          "one file per process, one shared file, 1,024 files per process, 1,024 shared files. Needs no files:\n"
          "Darshan fills in their records. Each sample takes at least 4 s, for Darshan sleeps in between.\n\n"
          "   -o, --output DIR     where Darshan writes its logs, in a new directory that is removed\n"
          "   -O, --result FILE    the measurement\n"
          "   -n, --samples N      samples of each workload, default 10\n"
          "       --warm-up N      samples before that are not recorded, default 1\n"
          "       --all-modules    with STDIO and HEATMAP, which are disabled by default\n"
          "       --keep           keep the logs of the last sample in DIR\n"
          "   -h, --help           print this help\n"
          "   -V, --version        print the version\n\n"
          "The exit status is 0, 2 for an invalid option or directory or without Darshan.\n",
          stdout);
}

static bool read_number(const char *text, int least, int *number)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    *number = (int)value;
    return !errno && *text && !*end && value >= least && value <= MAX_SAMPLES;
}

static bool read_arguments(int argc, char **argv, struct arguments *arguments, struct und_error *error)
{
    static const struct option table[] = {
        {"output", required_argument, NULL, 'o'},
        {"result", required_argument, NULL, 'O'},
        {"samples", required_argument, NULL, 'n'},
        {"warm-up", required_argument, NULL, 'w'},
        {"all-modules", no_argument, NULL, 'a'},
        {"keep", no_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    *arguments = (struct arguments){.samples = 10, .warm_up = 1};
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, ":o:O:n:hV", table, NULL)) != -1;) {
        switch (code) {
        case 'o': arguments->directory = optarg; break;
        case 'O': arguments->result = optarg; break;
        case 'a': arguments->all_modules = true; break;
        case 'k': arguments->keep = true; break;
        case 'h': arguments->help = true; break;
        case 'V': arguments->version = true; break;
        case 'n':
            if (!read_number(optarg, 1, &arguments->samples))
                return und_fail(error, "--samples %s: expected a whole number from 1 to %d", optarg, MAX_SAMPLES);
            break;
        case 'w':
            if (!read_number(optarg, 0, &arguments->warm_up))
                return und_fail(error, "--warm-up %s: expected a whole number from 0 to %d", optarg, MAX_SAMPLES);
            break;
        case ':': return und_fail(error, "%s: a value is missing, see --help", argv[optind - 1]);
        default: return und_fail(error, "%s: no such option, see --help", argv[optind - 1]);
        }
    }
    if (arguments->help || arguments->version)
        return true;
    if (optind != argc)
        return und_fail(error, "%s: unexpected argument, see --help", argv[optind]);
    if (!arguments->directory || !arguments->directory[0])
        return und_fail(error, "--output: a directory is missing, see --help");
    if (!arguments->result || !arguments->result[0])
        return und_fail(error, "--result: a file is missing, see --help");
    return true;
}

static shutdown_bench *find_bench(const char **library, struct und_error *error)
{
    void *symbol = dlsym(RTLD_DEFAULT, "darshan_shutdown_bench");
    shutdown_bench *bench = NULL;
    Dl_info library_info;
    if (!symbol) {
        und_fail(error, "no Darshan runtime with darshan_shutdown_bench is preloaded; set LD_PRELOAD to the path of "
                        "its libdarshan.so, of Darshan 3.1 or later with MPI, for the ranks");
        return NULL;
    }
    *library = dladdr(symbol, &library_info) && library_info.dli_fname ? library_info.dli_fname : "";
    memcpy(&bench, &symbol, sizeof bench); /* ISO C converts no object pointer to a function's */
    return bench;
}

/* The settings of Darshan, on every rank. */
static void set_up_darshan(const char *directory, bool all_modules)
{
    static const char *const unset[] = {"DARSHAN_DISABLE", "DARSHAN_LOGFILE"};
    const char *const set[][2] = {
        {"DARSHAN_LOGPATH", directory},
        {"DARSHAN_LOG_DIR_PATH", directory},
        {"DARSHAN_MMAP_LOGPATH", directory},
        {"DARSHAN_INTERNAL_TIMING", "1"},
        {"DARSHAN_MOD_DISABLE", all_modules ? "" : "STDIO,HEATMAP"},
    };
    for (size_t i = 0; i < sizeof unset / sizeof unset[0]; ++i)
        unsetenv(unset[i]);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; ++i)
        if (set[i][1][0] && setenv(set[i][0], set[i][1], 1) != 0)
            UND_DIE("no memory to set %s", set[i][0]);
}

/* Darshan writes to DIR/<year>/<month>/<day> unless it was built otherwise, and creates none of these. */
static void make_folders(const char *directory)
{
    for (int day = 0; day < 2; ++day) {
        const time_t at = time(NULL) + day * 86400;
        const size_t start = strlen(directory);
        char path[LOG_PATH_BYTES];
        struct tm local;
        localtime_r(&at, &local);
        const int bytes = snprintf(path, sizeof path, "%s/%d/%d/%d", directory, local.tm_year + 1900, local.tm_mon + 1,
                                   local.tm_mday);
        if (bytes < 0 || bytes >= (int)sizeof path)
            UND_DIE("%s: the path is too long", directory);
        for (char *slash = path + start + 1;; *slash++ = '/') {
            slash += strcspn(slash, "/");
            const bool last = !*slash;
            *slash = '\0';
            UND_CHECK(mkdir(path, 0777) == 0 || errno == EEXIST, "cannot create the directory %s", path);
            if (last)
                break;
        }
    }
}

/* -- what Darshan has written: of rank 0 -- */

static struct {
    int count;
    struct log {
        char path[LOG_PATH_BYTES];
        struct timespec written;
        int64_t bytes;
    } logs[WORKLOADS];
} written_logs;

static int see_log(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)place;
    const char *end = strrchr(path, '.');
    if (kind != FTW_F || !end || strcmp(end, ".darshan") != 0)
        return 0;
    if (written_logs.count < WORKLOADS) {
        struct log *log = &written_logs.logs[written_logs.count];
        snprintf(log->path, sizeof log->path, "%s", path);
        log->written = status->st_mtim;
        log->bytes = status->st_size;
    }
    ++written_logs.count;
    return 0;
}

static int by_time(const void *first, const void *other)
{
    const struct timespec *a = &((const struct log *)first)->written, *b = &((const struct log *)other)->written;
    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec ? -1 : 1;
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

static void find_logs(const char *directory)
{
    memset(&written_logs, 0, sizeof written_logs);
    UND_CHECK(nftw(directory, see_log, 16, FTW_PHYS) == 0, "cannot list %s", directory);
    if (written_logs.count != WORKLOADS)
        UND_DIE("%s: Darshan wrote %d logs there, expected %d; see its messages above", directory, written_logs.count,
                WORKLOADS);
    qsort(written_logs.logs, WORKLOADS, sizeof written_logs.logs[0], by_time);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

/* Standard error goes to a file while Darshan prints there. */
struct capture {
    FILE *file;
    int standard;
};

static struct capture begin_capture(void)
{
    struct capture capture = {tmpfile(), -1};
    UND_CHECK(capture.file, "cannot create a temporary file");
    fflush(stderr);
    capture.standard = dup(STDERR_FILENO);
    UND_CHECK(capture.standard >= 0 && dup2(fileno(capture.file), STDERR_FILENO) >= 0,
              "cannot redirect standard error");
    return capture;
}

/* Times by workload; what else was printed goes to standard error. */
static void end_capture(struct capture *capture, json_t *seconds[WORKLOADS])
{
    char line[1024], name[128];
    int workload = -1, ranks;
    double value;
    fflush(stderr);
    dup2(capture->standard, STDERR_FILENO);
    close(capture->standard);
    rewind(capture->file);
    for (int w = 0; w < WORKLOADS; ++w)
        seconds[w] = json_object();
    while (fgets(line, sizeof line, capture->file)) {
        if (strncmp(line, "# 1", 3) == 0)
            ++workload;
        else if (sscanf(line, "darshan:%127[^\t]\t%d\t%lf", name, &ranks, &value) == 3) {
            /* Darshan starts anew before it names the workload. */
            const int of = strcmp(name, "init") == 0 ? workload + 1 : workload;
            if (of >= 0 && of < WORKLOADS)
                json_object_set_new(seconds[of], name, json_real(value));
        } else if (strncmp(line, "#darshan:", 9) != 0) {
            line[strcspn(line, "\n")] = '\0';
            und_print(stderr, "%s", line);
        }
    }
    fclose(capture->file);
    for (int w = 0; w < WORKLOADS; ++w)
        if (!json_object_get(seconds[w], "core_shutdown"))
            UND_DIE("Darshan printed no time for the workload %s; expected DARSHAN_INTERNAL_TIMING to be known to it",
                    workloads[w]);
}

static void measure(shutdown_bench *bench, const char *directory, int sample, bool kept, json_t *samples, int argc,
                    char **argv)
{
    struct capture capture = {NULL, -1};
    if (samples)
        capture = begin_capture();
    bench(argc, argv);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!samples)
        return;
    json_t *seconds[WORKLOADS];
    end_capture(&capture, seconds);
    find_logs(directory);
    for (int w = 0; w < WORKLOADS; ++w) {
        if (sample < 0)
            json_decref(seconds[w]);
        else
            json_array_append_new(samples, json_pack("{s:i, s:s, s:I, s:o}", "sample", sample, "workload", workloads[w],
                                                     "log_bytes", (json_int_t)written_logs.logs[w].bytes, "seconds",
                                                     seconds[w]));
        if (!kept)
            UND_CHECK(unlink(written_logs.logs[w].path) == 0, "cannot remove %s", written_logs.logs[w].path);
    }
}

static void keep_logs(const char *directory)
{
    for (int w = 0; w < WORKLOADS; ++w) {
        char path[LOG_PATH_BYTES + 64];
        snprintf(path, sizeof path, "%s/%s.darshan", directory, workloads[w]);
        if (access(path, F_OK) == 0)
            UND_DIE("%s: exists already", path);
        UND_CHECK(rename(written_logs.logs[w].path, path) == 0, "cannot rename %s to %s", written_logs.logs[w].path,
                  path);
    }
}

static void write_result(const struct arguments *arguments, const char *library, json_t *samples, int argc, char **argv)
{
    struct und_environment here;
    int ranks;
    json_t *command = json_array(), *nodes = json_array();
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    und_environment_read(MPI_COMM_WORLD, &here);
    if (!samples)
        return;
    for (int i = 0; i < argc; ++i)
        json_array_append_new(command, json_string(argv[i]));
    for (int n = 0; n < here.node_count; ++n)
        json_array_append_new(nodes, json_pack("{s:s, s:i}", "name", here.nodes[n].name, "ranks", here.nodes[n].ranks));
    json_t *row =
        json_pack("{s:{s:i, s:i, s:b}, s:{s:s, s:o, s:s, s:i, s:o, s:s, s:s, s:s, s:s}, s:o, s:b}", "options",
                  "samples", arguments->samples, "warm_up", arguments->warm_up, "all_modules", arguments->all_modules,
                  "environment", "version", und_version(), "command_line", command, "started", here.started, "ranks",
                  ranks, "nodes", nodes, "mpi", here.mpi, "directory", arguments->directory, "library", library,
                  "program_sha256", here.program_sha256, "samples", samples, "finished", 1);
    if (!row || json_dump_file(row, arguments->result, JSON_INDENT(1)) != 0)
        UND_DIE("%s: the measurement cannot be written", arguments->result);
    json_decref(row);
    und_environment_free(&here);
}

static int run(const struct arguments *arguments, shutdown_bench *bench, const char *library, int argc, char **argv)
{
    char directory[LOG_PATH_BYTES];
    int rank, length = snprintf(directory, sizeof directory, "%s/understudy.XXXXXX", arguments->directory);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (length < 0 || length >= LOG_PATH_BYTES / 2)
        UND_DIE("%s: the path is too long", arguments->directory);
    if (rank == 0) {
        UND_CHECK(mkdtemp(directory), "cannot create a directory in %s", arguments->directory);
        make_folders(directory);
    }
    UND_MPI(MPI_Bcast(directory, sizeof directory, MPI_CHAR, 0, MPI_COMM_WORLD), "cannot tell the directory");
    set_up_darshan(directory, arguments->all_modules);
    json_t *samples = rank == 0 ? json_array() : NULL;
    for (int sample = -arguments->warm_up; sample < arguments->samples; ++sample)
        measure(bench, directory, sample, arguments->keep && sample + 1 == arguments->samples, samples, argc, argv);
    if (rank == 0 && arguments->keep)
        keep_logs(arguments->directory);
    write_result(arguments, library, samples, argc, argv);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        UND_CHECK(nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, "cannot remove %s", directory);
    return SUCCESS;
}

int main(int argc, char **argv)
{
    struct und_error error = {""};
    struct arguments arguments;
    const char *library = "";
    shutdown_bench *bench = NULL;
    const bool read = read_arguments(argc, argv, &arguments, &error);
    if (read && arguments.help) {
        print_help();
        return und_print_end(SUCCESS);
    }
    if (read && arguments.version) {
        und_print(stdout, "understudy-darshan-shutdown %s", und_version());
        return und_print_end(SUCCESS);
    }
    if (read)
        bench = find_bench(&library, &error);
    setenv("DARSHAN_DISABLE", "1", 1); /* what MPI_Init would start, writes elsewhere */
    und_init(&argc, &argv);
    int rank, status = USAGE_ERROR;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (bench)
        status = run(&arguments, bench, library, argc, argv);
    else if (rank == 0)
        und_print(stderr, "understudy: %s", error.text);
    MPI_Finalize();
    return status;
}
