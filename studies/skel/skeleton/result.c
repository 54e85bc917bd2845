/* The measurement: figures of all processes, gathered on rank 0 and written as JSON. */
#include "internal.h"

#include "job/mpi_settings.h"
#include "text/print.h"
#include "text/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <unistd.h>

static void put_text(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        uint32_t code;
        const size_t length = und_character(text, &code);
        if (length == 0)
            fputs("\\ufffd", out);
        else if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (char)code);
        else if (code < 0x20)
            fprintf(out, "\\u%04x", (unsigned)code);
        else
            fwrite(text, 1, length, out);
        text += length ? length : 1;
    }
    fputc('"', out);
}

static void put_key_text(FILE *out, const char *key, const char *text, const char *after)
{
    fprintf(out, "\"%s\": ", key);
    if (text)
        put_text(out, text);
    else
        fputs("null", out);
    fputs(after, out);
}

static const char *yes(bool value)
{
    return value ? "true" : "false";
}

static void put_program(FILE *out, const struct skeleton *run)
{
    const struct skeleton_options *options = &run->options;
    const char *separator = "";
    fputs(" \"program\": {", out);
    put_key_text(out, "name", options->program, ", ");
    put_key_text(out, "application", options->application, ", ");
    put_key_text(out, "method", options->method, ", ");
    put_key_text(out, "parameters", options->parameters, ", ");
    put_key_text(out, "config", run->config_text, ",\n");
    fprintf(out, "  \"steps\": %d, \"append\": %s, \"pause_s\": %.9g, \"barriers\": [", options->steps,
            yes(options->append), options->pause_s);
    for (int b = 0; b < BARRIERS; ++b) {
        if (options->barriers & 1U << b) {
            fprintf(out, "%s\"%s\"", separator, skeleton_barrier_names[b]);
            separator = ", ";
        }
    }
    fputs("],\n  \"slow_rank\": ", out);
    if (options->slow_rank >= 0)
        fprintf(out, "{\"rank\": %d, \"seconds\": %.9g}", options->slow_rank, options->slow_s);
    else
        fputs("null", out);
    fprintf(out, ", \"extra_collective_bytes\": %lld, \"repetitions\": %d, \"keep\": %s},\n",
            (long long)options->extra_collective_bytes, options->repetitions, yes(options->keep));
}

/* SHA-256 of the program that runs; empty where it cannot be read. */
static void read_program(char digits[65])
{
    digits[0] = '\0';
    FILE *file = fopen("/proc/self/exe", "rb");
    const long bytes = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *program = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (program && fseek(file, 0, SEEK_SET) == 0 && fread(program, 1, (size_t)bytes, file) == (size_t)bytes)
        und_sha256(program, (size_t)bytes, digits);
    free(program);
    if (file)
        fclose(file);
}

/* Name and ranks of each node, in the order of their first ranks. Collective; rank 0 writes. */
static void put_nodes(FILE *out, const struct skeleton *run)
{
    struct node {
        char name[NAME_BYTES];
        int ranks;
    } here = {.ranks = run->node_ranks}, *all = NULL;
    MPI_Comm firsts;
    int rank, count = 0;
    memcpy(here.name, run->host, sizeof here.name);
    PMPI_Comm_rank(run->node, &rank);
    PMPI_Comm_split(run->comm, rank == 0 ? 0 : MPI_UNDEFINED, 0, &firsts);
    if (firsts == MPI_COMM_NULL)
        return;
    PMPI_Comm_size(firsts, &count);
    if (run->rank == 0)
        all = skeleton_array(run, "the nodes", (size_t)count, sizeof *all);
    PMPI_Gather(&here, (int)sizeof here, MPI_BYTE, all, (int)sizeof here, MPI_BYTE, 0, firsts);
    PMPI_Comm_free(&firsts);
    for (int n = 0; run->rank == 0 && n < count; ++n) {
        fputs(n ? ", {" : "\"nodes\": [{", out);
        put_key_text(out, "name", all[n].name, ", ");
        fprintf(out, "\"ranks\": %d}", all[n].ranks);
    }
    if (run->rank == 0)
        fputs("],\n  ", out);
    free(all);
}

static void put_mpi_settings(FILE *out)
{
    const char *setting, *before = "";
    fputs("\"mpi_settings\": {", out);
    for (size_t position = 0; (setting = und_mpi_setting(&position)); before = ", ") {
        char name[256];
        const char *value = strchr(setting, '=');
        snprintf(name, sizeof name, "%.*s", (int)(value - setting), setting);
        fputs(before, out);
        put_key_text(out, name, value + 1, "");
    }
    fputs("}, ", out);
}

static void put_environment(FILE *out, const struct skeleton *run)
{
    const struct skeleton_options *options = &run->options;
    struct utsname system;
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "", kernel[256] = "", digits[65];
    int length = 0;
    PMPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    if (uname(&system) == 0)
        snprintf(kernel, sizeof kernel, "%.80s %.80s %.80s", system.sysname, system.release, system.machine);
    read_program(digits);
    fputs("\"understudy_version\": \"skeleton " SKELETON_VERSION "\", \"command_line\": [", out);
    for (int i = 0; i < options->argc; ++i) {
        fputs(i ? ", " : "", out);
        put_text(out, options->argv[i]);
    }
    fputs("],\n  ", out);
    put_key_text(out, "started", run->started, ", ");
    fprintf(out, "\"ranks\": %d, ", run->ranks);
    put_key_text(out, "host", run->host, ", ");
    put_key_text(out, "kernel", kernel, ",\n  ");
    fprintf(out, "\"processors\": %ld, ", sysconf(_SC_NPROCESSORS_ONLN));
    put_key_text(out, "mpi", version, ",\n  ");
    put_mpi_settings(out);
    fprintf(out, "\"libraries\": {\"%s\": \"%s\"},\n  ", skeleton_library_name, skeleton_library_version);
    put_key_text(out, "directory", options->directory, ", ");
    put_key_text(out, "program_sha256", digits[0] ? digits : NULL, ", ");
    fputs("\"commit\": null},\n", out);
}

static void put_key_number(FILE *out, const char *key, int64_t number, const char *after)
{
    if (number < 0)
        fprintf(out, "\"%s\": null%s", key, after);
    else
        fprintf(out, "\"%s\": %lld%s", key, (long long)number, after);
}

static void put_storage(FILE *out, const struct skeleton *run)
{
    const struct und_storage *storage = &run->storage;
    fputs(" \"storage\": {", out);
    put_key_text(out, "type", storage->type[0] ? storage->type : NULL, ", ");
    put_key_text(out, "source", storage->source[0] ? storage->source : NULL, ", ");
    put_key_text(out, "mount_point", storage->mount_point[0] ? storage->mount_point : NULL, ", ");
    put_key_text(out, "mount_options", storage->mount_options[0] ? storage->mount_options : NULL, ",\n  ");
    put_key_number(out, "total_bytes", storage->total_bytes, ", ");
    put_key_number(out, "free_bytes", storage->free_bytes, ", ");
    put_key_number(out, "total_inodes", storage->total_inodes, ", ");
    put_key_number(out, "free_inodes", storage->free_inodes, ",\n  ");
    fputs("\"client_version\": null, \"server_version\": null, \"health\": null, \"default_layout\": null},\n", out);
}

/* What rank 0 gets of each process for a record, in this order. */
enum figure {
    FIGURE_START, /* of the phases */
    FIGURE_END = FIGURE_START + PHASES,
    FIGURE_SECONDS = FIGURE_END + PHASES,
    FIGURE_SPENT = FIGURE_SECONDS + PHASES,
    FIGURE_LIBRARY = FIGURE_SPENT + STATES,
    FIGURE_BYTES = FIGURE_LIBRARY + LIBRARY_TIMERS,
    FIGURE_OPERATIONS,
    FIGURES = FIGURE_OPERATIONS + PHASES
};

static void figures_of(const struct record *record, double *figures)
{
    for (int p = 0; p < PHASES; ++p) {
        figures[FIGURE_START + p] = record->start_s[p] > 0 ? record->start_s[p] : 0;
        figures[FIGURE_END + p] = record->end_s[p];
        figures[FIGURE_SECONDS + p] = record->seconds[p];
        figures[FIGURE_OPERATIONS + p] = (double)record->operations[p];
    }
    memcpy(figures + FIGURE_SPENT, record->spent_s, sizeof record->spent_s);
    memcpy(figures + FIGURE_LIBRARY, record->library_s, sizeof record->library_s);
    figures[FIGURE_BYTES] = (double)record->bytes;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Smallest value with at least that share of the values at or below it. */
static double quantile(const double *sorted, int count, double share)
{
    const int index = (int)ceil(share * count) - 1;
    return sorted[index > 0 ? index : 0];
}

static double reduced(const double *all, int ranks, int figure, char operation)
{
    double value = all[figure];
    for (int r = 1; r < ranks; ++r) {
        const double next = all[(size_t)r * FIGURES + (size_t)figure];
        value = operation == '+' ? value + next : operation == '<' ? fmin(value, next) : fmax(value, next);
    }
    return value;
}

static void put_phase(FILE *out, const double *all, int ranks, int phase, double *sorted)
{
    static const char *const names[PHASES] = {"open", "write", "close"};
    const double bytes = phase == PHASE_WRITE ? reduced(all, ranks, FIGURE_BYTES, '+') : 0;
    for (int r = 0; r < ranks; ++r)
        sorted[r] = all[(size_t)r * FIGURES + FIGURE_SECONDS + (size_t)phase];
    qsort(sorted, (size_t)ranks, sizeof *sorted, by_value);
    fprintf(out,
            "      {\"phase\": \"%s\", \"bytes\": %.0f, \"operations\": %.0f, \"first_start_s\": %.9f, "
            "\"last_end_s\": %.9f,\n"
            "       \"rank_s\": {\"min\": %.9f, \"q25\": %.9f, \"median\": %.9f, \"q75\": %.9f, \"q95\": %.9f, "
            "\"max\": %.9f, \"mean\": %.9f}}",
            names[phase], bytes, reduced(all, ranks, FIGURE_OPERATIONS + phase, '+'),
            reduced(all, ranks, FIGURE_START + phase, '<'), reduced(all, ranks, FIGURE_END + phase, '>'), sorted[0],
            quantile(sorted, ranks, 0.25), quantile(sorted, ranks, 0.5), quantile(sorted, ranks, 0.75),
            quantile(sorted, ranks, 0.95), sorted[ranks - 1], reduced(all, ranks, FIGURE_SECONDS + phase, '+') / ranks);
}

/* The figures first, first + 1, ... up to `count` of every process, summed: an array over the ranks. */
static void put_ranks(FILE *out, const char *key, const double *all, int ranks, int first, int count, const char *after)
{
    fprintf(out, "       \"%s\": [", key);
    for (int r = 0; r < ranks; ++r) {
        double value = 0;
        for (int f = 0; f < count; ++f)
            value += all[(size_t)r * FIGURES + (size_t)(first + f)];
        fprintf(out, first == FIGURE_BYTES ? "%s%.0f" : "%s%.9f", r ? ", " : "", value);
    }
    fprintf(out, "]%s\n", after);
}

static void put_processes(FILE *out, const double *all, int ranks, bool has_library)
{
    static const char *const timers[LIBRARY_TIMERS] = {"communication_s",   "io_s",   "local_metadata_s",
                                                       "global_metadata_s", "open_s", "write_s",
                                                       "overflow_s",        "close_s"};
    fputs("      \"processes\": {\n", out);
    put_ranks(out, "bytes", all, ranks, FIGURE_BYTES, 1, ",");
    put_ranks(out, "open_s", all, ranks, FIGURE_SECONDS + PHASE_OPEN, 1, ",");
    put_ranks(out, "write_s", all, ranks, FIGURE_SECONDS + PHASE_WRITE, 1, ",");
    put_ranks(out, "close_s", all, ranks, FIGURE_SECONDS + PHASE_CLOSE, 1, ",");
    put_ranks(out, "total_s", all, ranks, FIGURE_SECONDS, PHASES, ",");
    put_ranks(out, "communication_s", all, ranks, FIGURE_SPENT + STATE_COMMUNICATION, 1, ",");
    put_ranks(out, "io_s", all, ranks, FIGURE_SPENT + STATE_IO, 1, ",");
    put_ranks(out, "rest_s", all, ranks, FIGURE_SPENT + STATE_REST, 1, ",");
    fputs("       \"library\": ", out);
    if (!has_library) {
        fputs("null}", out);
        return;
    }
    fputs("{\n", out);
    for (int t = 0; t < LIBRARY_TIMERS; ++t)
        put_ranks(out, timers[t], all, ranks, FIGURE_LIBRARY + t, 1, t + 1 < LIBRARY_TIMERS ? "," : "}}");
}

static double put_dump(FILE *out, const struct skeleton *run, const struct record *record, const double *all,
                       double *sorted)
{
    const double bytes = reduced(all, run->ranks, FIGURE_BYTES, '+');
    const double start_s = reduced(all, run->ranks, FIGURE_START, '<');
    fprintf(out, "     {\"dump\": %d, \"start_s\": %.9f, \"bytes\": %.0f, \"file_bytes\": ", record->step, start_s,
            bytes);
    if (record->file_bytes < 0)
        fputs("null", out);
    else
        fprintf(out, "%lld", (long long)record->file_bytes);
    fprintf(out, ", \"files\": %lld,\n      \"phases\": [\n", (long long)record->files);
    for (int p = 0; p < PHASES; ++p) {
        put_phase(out, all, run->ranks, p, sorted);
        fputs(p + 1 < PHASES ? ",\n" : "],\n", out);
    }
    put_processes(out, all, run->ranks, record->has_library);
    return reduced(all, run->ranks, FIGURE_END + PHASE_CLOSE, '>');
}

/* The next record of that group and repetition from `at` on; record_count where there is none. */
static int next_record(const struct skeleton *run, int at, int repetition, int group)
{
    while (at < run->record_count && (run->records[at].repetition != repetition || run->records[at].group != group))
        ++at;
    return at;
}

static void put_stream(FILE *out, const struct skeleton *run, int repetition, int group, double *all, double *sorted,
                       double *elapsed_s)
{
    double figures[FIGURES];
    if (run->rank == 0) {
        fputs("   {", out);
        put_key_text(out, "name", run->groups[group].name, ", ");
        fprintf(out, "\"method\": \"%s\", \"dumps\": [\n", skeleton_library_name);
    }
    for (int r = next_record(run, 0, repetition, group); r < run->record_count;) {
        const int next = next_record(run, r + 1, repetition, group);
        figures_of(&run->records[r], figures);
        PMPI_Gather(figures, FIGURES, MPI_DOUBLE, all, FIGURES, MPI_DOUBLE, 0, run->comm);
        if (run->rank == 0) {
            *elapsed_s = fmax(*elapsed_s, put_dump(out, run, &run->records[r], all, sorted));
            fputs(next < run->record_count ? "},\n" : "}]}", out);
        }
        r = next;
    }
}

static void put_repetitions(FILE *out, const struct skeleton *run, double *all, double *sorted)
{
    for (int n = 0; n < run->options.repetitions; ++n) {
        double elapsed_s = 0;
        if (run->rank == 0)
            fprintf(out, "%s  {\"repetition\": %d, \"streams\": [\n", n ? ",\n" : "", n);
        for (int g = 0; g < run->group_count; ++g) {
            put_stream(out, run, n, g, all, sorted, &elapsed_s);
            if (run->rank == 0)
                fputs(g + 1 < run->group_count ? ",\n" : "],\n", out);
        }
        if (run->rank == 0)
            fprintf(out, "   \"elapsed_s\": %.9f}", elapsed_s);
    }
}

/* A new file beside the result, which takes its name when it is complete. */
static FILE *open_temporary(struct skeleton *run)
{
    if (snprintf(run->temporary, sizeof run->temporary, "%s.XXXXXX", run->options.result) >= (int)sizeof run->temporary)
        skeleton_die(run, "--result: the path is too long");
    const int descriptor = mkstemp(run->temporary);
    const mode_t mask = umask(0);
    umask(mask);
    FILE *out = descriptor >= 0 && fchmod(descriptor, 0666 & ~mask) == 0 ? fdopen(descriptor, "w") : NULL;
    if (!out)
        skeleton_die(run, "%s: cannot be written: %s", run->options.result, strerror(errno));
    return out;
}

void skeleton_write_result(struct skeleton *run)
{
    FILE *out = NULL;
    double *all = NULL, *sorted = NULL;
    if (run->rank == 0) {
        all = skeleton_array(run, "the figures of all processes", (size_t)run->ranks * FIGURES, sizeof *all);
        sorted = skeleton_array(run, "the figures of a phase", (size_t)run->ranks, sizeof *sorted);
        out = open_temporary(run);
        fprintf(out, "{\"schema\": \"understudy/%s/1\",\n",
                run->options.kind == SKELETON_KIND_SKELETON ? "skeleton" : "application");
        put_program(out, run);
        fputs(" \"environment\": {", out);
    }
    put_nodes(out, run);
    if (run->rank == 0) {
        put_environment(out, run);
        put_storage(out, run);
        fputs(" \"repetitions\": [\n", out);
    }
    put_repetitions(out, run, all, sorted);
    if (run->rank == 0) {
        fputs("],\n \"finished\": true}\n", out);
        const bool complete = !ferror(out) && fflush(out) == 0 && fsync(fileno(out)) == 0;
        if (fclose(out) != 0 || !complete || rename(run->temporary, run->options.result) != 0)
            skeleton_die(run, "%s: cannot be written: %s", run->options.result, strerror(errno));
        run->temporary[0] = '\0';
    }
    free(all);
    free(sorted);
}
