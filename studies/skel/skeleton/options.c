/* The options of a run: defaults, the command line, --help. */
#include "internal.h"

#include "text/print.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct skeleton_options skeleton_defaults(const char *program, const char *application, enum skeleton_kind kind,
                                          const char *config)
{
    return (struct skeleton_options){
        .program = program,
        .application = application,
        .kind = kind,
        .config = config,
        .result = "result.json",
        .adios = 1,
        .steps = 1,
        .repetitions = 1,
        .barriers = SKELETON_BEFORE_OPEN,
        .slow_rank = -1,
    };
}

const char *const skeleton_barrier_names[BARRIERS] = {"open", "write", "close", "closed", "steps"};

static void print_help_of_method(const struct skeleton_options *chosen)
{
    und_print(stdout, "  -c, --config FILE          adios-config XML [%s]", chosen->config ? chosen->config : "none");
    if (chosen->adios == 1)
        fputs("  -a, --method METHOD        ADIOS method of all groups, e.g. POSIX, MPI_LUSTRE, MPI_AMR [as in the "
              "config]\n"
              "  -p, --parameters TEXT      its parameters, e.g. 'stripe_count=160;stripe_size=10485760' [none]\n",
              stdout);
    else
        fputs("  -a, --engine ENGINE        engine that writes files: BP5, BP4, HDF5 [as in the config]\n"
              "  -p, --parameter KEY=VALUE  a parameter of the engine, e.g. NumAggregators=2; may be repeated [as in "
              "the config]\n",
              stdout);
}

static void print_help(const struct skeleton_options *chosen)
{
    und_print(stdout, "Usage: mpirun -n RANKS %s -o DIR [options]", chosen->program);
    fputs("\nWrites through ADIOS and measures it, process by process.\n\n"
          "  -o, --directory DIR        run directory: empty, or created\n",
          stdout);
    und_print(stdout, "  -r, --result FILE          the result, JSON [%s]", chosen->result);
    print_help_of_method(chosen);
    und_print(stdout, "  -s, --steps N              steps in a repetition [%d]", chosen->steps);
    und_print(stdout, "  -i, --repetitions N        repetitions [%d]", chosen->repetitions);
    if (chosen->adios == 1)
        fputs("      --append               all steps of a group into one file [a file each]\n", stdout);
    else
        fputs("      --new-files            a file for each step [all steps into one file]\n"
              "      --fill CONTENTS        of arrays: rank, index, random or zero [random]\n"
              "      --verify               read back what was written, and compare\n",
              stdout);
    fputs("  -k, --keep                 leave the files of the last repetition\n"
          "  -b, --barrier LIST         wait for all ranks before open, write and close, when closed, and after\n"
          "                             the steps: any of open,write,close,closed,steps, or none [open]\n"
          "      --pause SECONDS        sleep before each step [0]\n",
          stdout);
    und_print(stdout, "      --application NAME     runs of the same name are compared in a report [%s]",
              chosen->application);
    fputs("      --slow-rank RANK:SECONDS     inject a fault: each close of this rank takes longer in I/O\n"
          "      --extra-collective BYTES     inject a fault: an allgather of so many bytes per rank in each close\n"
          "  -h, --help\n",
          stdout);
}

static bool read_whole(const char *text, int64_t minimum, int64_t maximum, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *value >= minimum && *value <= maximum;
}

static bool read_seconds(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value) && *value >= 0;
}

static bool read_barriers(const char *text, unsigned *bits)
{
    *bits = 0;
    if (strcmp(text, "none") == 0)
        return true;
    while (*text) {
        const size_t length = strcspn(text, ",");
        int bit = 0;
        while (bit < BARRIERS && (strlen(skeleton_barrier_names[bit]) != length ||
                                  strncmp(skeleton_barrier_names[bit], text, length) != 0))
            ++bit;
        if (bit == BARRIERS)
            return false;
        *bits |= 1U << bit;
        text += length + (text[length] == ',');
    }
    return *bits != 0;
}

static bool read_slow_rank(const char *text, struct skeleton_options *chosen)
{
    char digits[16];
    int64_t rank;
    const size_t length = strcspn(text, ":");
    if (length >= sizeof digits || text[length] != ':')
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (!read_whole(digits, 0, INT_MAX, &rank))
        return false;
    chosen->slow_rank = (int)rank;
    return read_seconds(text + length + 1, &chosen->slow_s);
}

static bool read_fill(const char *text, enum skeleton_fill *fill)
{
    static const char *const names[] = {"rank", "index", "random", "zero"};
    for (int f = 0; f < 4; ++f)
        if (strcmp(text, names[f]) == 0) {
            *fill = (enum skeleton_fill)f;
            return true;
        }
    return false;
}

/* One more parameter of an engine behind those before it. */
static bool add_parameter(const char *text, struct skeleton_options *chosen)
{
    const size_t length = strcspn(text, "=");
    const char *before = chosen->parameters ? chosen->parameters : "";
    if (length == 0 || text[length] != '=' || strpbrk(text, "\n"))
        return false;
    const size_t bytes = strlen(before) + strlen(text) + 2;
    char *joined = malloc(bytes);
    if (!joined)
        return false;
    snprintf(joined, bytes, "%s%s%s", before, *before ? ";" : "", text);
    chosen->parameters = joined; /* lives as long as the program */
    return true;
}

/* One option; returns what was expected where the value is wrong. */
static const char *read_option(int option, const char *value, struct skeleton_options *chosen)
{
    int64_t whole = 0;
    switch (option) {
    case 'o': chosen->directory = value; return NULL;
    case 'r': chosen->result = value; return NULL;
    case 'c': chosen->config = value; return NULL;
    case 'a': chosen->method = value; return NULL;
    case 'p':
        if (chosen->adios == 2)
            return add_parameter(value, chosen) ? NULL : "KEY=VALUE, such as NumAggregators=2";
        chosen->parameters = value;
        return NULL;
    case 'N': chosen->application = value; return NULL;
    case 'k': chosen->keep = true; return NULL;
    case 'A': chosen->append = true; return NULL;
    case 'W': chosen->append = false; return NULL;
    case 'V': chosen->verify = true; return NULL;
    case 'F': return read_fill(value, &chosen->fill) ? NULL : "rank, index, random or zero";
    case 's':
    case 'i':
        if (!read_whole(value, 1, 1000000, &whole))
            return "a whole number from 1 to 1000000";
        *(option == 's' ? &chosen->steps : &chosen->repetitions) = (int)whole;
        return NULL;
    case 'b': return read_barriers(value, &chosen->barriers) ? NULL : "some of open,write,close,closed,steps, or none";
    case 'P': return read_seconds(value, &chosen->pause_s) ? NULL : "seconds, not negative";
    case 'S': return read_slow_rank(value, chosen) ? NULL : "a rank, a colon and seconds, such as 2:0.5";
    default:
        return read_whole(value, 0, INT_MAX, &chosen->extra_collective_bytes) ? NULL : "bytes from 0 to 2147483647";
    }
}

/* clang-format off */
#define COMMON_OPTIONS                              \
    {"directory", required_argument, NULL, 'o'},    \
    {"result", required_argument, NULL, 'r'},       \
    {"config", required_argument, NULL, 'c'},       \
    {"steps", required_argument, NULL, 's'},        \
    {"repetitions", required_argument, NULL, 'i'},  \
    {"append", no_argument, NULL, 'A'},             \
    {"keep", no_argument, NULL, 'k'},               \
    {"barrier", required_argument, NULL, 'b'},      \
    {"pause", required_argument, NULL, 'P'},        \
    {"application", required_argument, NULL, 'N'},  \
    {"slow-rank", required_argument, NULL, 'S'},    \
    {"extra-collective", required_argument, NULL, 'X'}, \
    {"help", no_argument, NULL, 'h'},               \
    {NULL, 0, NULL, 0}
/* clang-format on */

int skeleton_read_options(int argc, char **argv, MPI_Comm comm, struct skeleton_options *chosen)
{
    static const struct option options_1[] = {
        {"method", required_argument, NULL, 'a'}, {"parameters", required_argument, NULL, 'p'}, COMMON_OPTIONS};
    static const struct option options_2[] = {
        {"engine", required_argument, NULL, 'a'}, {"parameter", required_argument, NULL, 'p'},
        {"new-files", no_argument, NULL, 'W'},    {"fill", required_argument, NULL, 'F'},
        {"verify", no_argument, NULL, 'V'},       COMMON_OPTIONS};
    const struct option *const options = chosen->adios == 1 ? options_1 : options_2;
    char error[1024] = "";
    int rank, option, at = -1;
    MPI_Comm_rank(comm, &rank);
    chosen->argc = argc;
    chosen->argv = argv;
    opterr = 0;
    optind = 1;
    while (!error[0] && (option = getopt_long(argc, argv, ":o:r:c:a:p:s:i:kb:h", options, &at)) != -1) {
        if (option == 'h') {
            if (rank == 0)
                print_help(chosen);
            return und_print_end(0) == 0 ? SKELETON_HELP : SKELETON_USAGE_ERROR;
        }
        if (option == ':' || option == '?') {
            snprintf(error, sizeof error, "%s: %s; see --help", argv[optind - 1],
                     option == ':' ? "the value is missing" : "unknown option");
            break;
        }
        const char *expected = read_option(option, optarg, chosen);
        const char *name = "";
        for (const struct option *row = options; row->name; ++row)
            if (row->val == option)
                name = row->name;
        if (expected)
            snprintf(error, sizeof error, "--%s %s: expected %s", name, optarg, expected);
    }
    if (!error[0] && optind < argc)
        snprintf(error, sizeof error, "%s: not an option; see --help", argv[optind]);
    if (!error[0] && !chosen->directory)
        snprintf(error, sizeof error, "--directory is missing: expected an empty directory, or one to be created");
    if (!error[0] && chosen->adios == 1 && chosen->parameters && !chosen->method)
        snprintf(error, sizeof error, "--parameters without --method: expected the method that they are for");
    if (!error[0])
        return SKELETON_GO;
    if (rank == 0)
        und_print(stderr, "%s: %s", chosen->program, error);
    return SKELETON_USAGE_ERROR;
}
