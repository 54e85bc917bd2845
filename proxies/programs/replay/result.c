#include "programs/replay/result.h"

#include "interfaces/mount_json.h"
#include "job/die.h"
#include "job/mpi_settings.h"
#include "storage/run_directory.h"
#include "text/sha256.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct und_result {
    const struct und_run *run;
    const char *path;
    FILE *file;
    FILE *series;        /* NULL: none */
    int64_t repetitions; /* begun */
    int stream;          /* that is being written; -1: none */
    bool restart;        /* it is its restart */
    int64_t dumps;       /* written of it */
    double elapsed_s;
};

static void add_text(struct und_result *result, const char *text)
{
    UND_CHECK(fputs(text, result->file) >= 0, "result: cannot write %s", result->path);
}

/* Writes an object, or with JSON_EMBED its keys, and frees it. */
static void add(struct und_result *result, json_t *object, size_t flags)
{
    UND_CHECK(json_dumpf(object, result->file, flags | JSON_REAL_PRECISION(12)) == 0, "result: cannot write %s",
              result->path);
    json_decref(object);
}

/* Every value goes through here: jansson returns NULL where memory is out or a string is not UTF-8. */
static void put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        UND_DIE("result: cannot state \"%s\": no memory, or not UTF-8", key);
}

static json_t *text_or_null(const char *text)
{
    return text && text[0] ? json_string(text) : json_null();
}

/* Version of each library that the methods of this run use: "hdf5 1.10.8" gives hdf5: 1.10.8. */
static json_t *libraries_of(const struct und_run *run)
{
    json_t *object = json_object();
    for (int s = 0; s < run->workload->stream_count; ++s) {
        const struct und_method *method = run->plan->streams[s].method;
        char text[256] = "";
        if (!method->version)
            continue;
        method->version(text, sizeof text);
        char *version = strchr(text, ' ');
        if (version)
            *version++ = '\0';
        put(object, version ? text : method->name, json_string(version ? version : text));
    }
    return object;
}

static json_t *mpi_settings(void)
{
    json_t *object = json_object();
    const char *setting;
    for (size_t position = 0; (setting = und_mpi_setting(&position));) {
        char name[256];
        const char *value = strchr(setting, '=');
        snprintf(name, sizeof name, "%.*s", (int)(value - setting), setting);
        put(object, name, json_string(value + 1));
    }
    return object;
}

static json_t *nodes_of(const struct und_environment *environment)
{
    json_t *array = json_array();
    for (int n = 0; n < environment->node_count; ++n) {
        json_t *object = json_object();
        put(object, "name", json_string(environment->nodes[n].name));
        put(object, "ranks", json_integer(environment->nodes[n].ranks));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *environment_of(const struct und_run *run, const struct und_environment *environment, int argc,
                              char **argv)
{
    json_t *object = json_object(), *command = json_array();
    for (int i = 0; i < argc; ++i)
        if (json_array_append_new(command, json_string(argv[i])) != 0)
            UND_DIE("result: cannot state argument %d of the command line: no memory, or not UTF-8", i);
    put(object, "understudy_version", json_string(und_version()));
    put(object, "command_line", command);
    put(object, "started", json_string(environment->started));
    put(object, "ranks", json_integer(run->ranks));
    put(object, "nodes", nodes_of(environment));
    put(object, "host", json_string(environment->nodes[0].name));
    put(object, "kernel", json_string(environment->kernel));
    put(object, "processors", json_integer(environment->processors));
    put(object, "mpi", json_string(environment->mpi));
    put(object, "mpi_settings", mpi_settings());
    put(object, "libraries", libraries_of(run));
    put(object, "directory", json_string(run->plan->directory));
    put(object, "program_sha256", text_or_null(environment->program_sha256));
    put(object, "commit", text_or_null(und_commit()));
    return object;
}

struct und_result *und_result_new(const struct und_run *run, const struct und_options *options, const char *text,
                                  size_t bytes, const struct und_environment *environment,
                                  const struct und_storage *storage, int argc, char **argv, const int *descriptors,
                                  const char *path)
{
    char digits[65];
    json_t *head = json_object();
    struct und_result *result = calloc(1, sizeof *result);
    UND_CHECK(result, "no memory for the result");
    result->run = run;
    result->path = path;
    result->file = fdopen(descriptors[UND_RESULT], "w");
    UND_CHECK(result->file, "result: cannot write %s", path);
    if (run->plan->time_series) {
        result->series = fdopen(descriptors[UND_TIME_SERIES], "w");
        UND_CHECK(result->series, "result: cannot write %s", run->plan->time_series);
    }
    /* Small parts are written when the run is over, not between its repetitions. */
    setvbuf(result->file, NULL, _IOFBF, 1 << 20);
    und_sha256(text, bytes, digits);
    put(head, "schema", json_string("understudy/player/1"));
    put(head, "workload", json_stringn(text, bytes));
    put(head, "workload_sha256", json_string(digits));
    put(head, "options", und_options_record(options));
    put(head, "environment", environment_of(run, environment, argc, argv));
    put(head, "storage", und_storage_json(storage));
    add_text(result, "{");
    add(result, head, JSON_INDENT(1) | JSON_EMBED);
    add_text(result, ",\n\"repetitions\": [");
    return result;
}

static json_t *phase_of(const char *name, const struct und_summary *summary)
{
    json_t *object = json_object(), *seconds = json_object();
    put(seconds, "min", json_real(summary->min_s));
    put(seconds, "q25", json_real(summary->quantile_s[UND_Q25]));
    put(seconds, "median", json_real(summary->quantile_s[UND_MEDIAN]));
    put(seconds, "q75", json_real(summary->quantile_s[UND_Q75]));
    put(seconds, "q95", json_real(summary->quantile_s[UND_Q95]));
    put(seconds, "max", json_real(summary->max_s));
    put(seconds, "mean", json_real(summary->mean_s));
    put(object, "phase", json_string(name));
    put(object, "bytes", json_integer(summary->bytes));
    put(object, "operations", json_integer(summary->operations));
    put(object, "first_start_s", json_real(summary->first_start_s));
    put(object, "last_end_s", json_real(summary->last_end_s));
    if (summary->bytes > 0) {
        put(object, "first_end_s", json_real(summary->first_end_s));
        put(object, "first_end_bytes", json_integer(summary->first_end_bytes));
    }
    put(object, "rank_s", seconds);
    return object;
}

static json_t *range_of(int64_t least, int64_t most)
{
    json_t *object = json_object();
    put(object, "min", json_integer(least));
    put(object, "max", json_integer(most));
    return object;
}

static json_t *deadline_of(const struct und_stops *stops)
{
    json_t *object = json_object();
    put(object, "stopped_ranks", json_integer(stops->ranks));
    put(object, "bytes", json_integer(stops->bytes));
    put(object, "rank_bytes", range_of(stops->least_bytes, stops->most_bytes));
    put(object, "rank_transfers", range_of(stops->least_transfers, stops->most_transfers));
    return object;
}

static json_t *dump_of(const struct und_run *run, const struct und_event *event, const struct und_outcome *outcome,
                       double *elapsed_s)
{
    static const char *const names[UND_PHASES] = {"open", "metadata", "write", "read", "sync", "close"};
    json_t *object = json_object(), *phases = json_array();
    double start_s = -1;
    for (int p = 0; p < UND_PHASES; ++p) {
        if (!outcome->took_place[p])
            continue;
        if (start_s < 0 || outcome->phases[p].first_start_s < start_s)
            start_s = outcome->phases[p].first_start_s;
        if (outcome->phases[p].last_end_s > *elapsed_s)
            *elapsed_s = outcome->phases[p].last_end_s;
        json_array_append_new(phases, phase_of(names[p], &outcome->phases[p]));
    }
    if (start_s < 0) /* no call: it is where the schedule has it */
        start_s = event->time_s;
    put(object, "dump", json_integer(event->dump));
    put(object, "scheduled_s", json_real(event->time_s));
    put(object, "start_s", json_real(start_s));
    put(object, "lateness_s", json_real(start_s - event->time_s));
    put(object, "described_bytes",
        json_integer(und_dump_of(&run->workload->streams[event->stream], event->dump)->described_bytes));
    put(object, "bytes", json_integer(outcome->bytes));
    put(object, "file_bytes", outcome->file_bytes < 0 ? json_null() : json_integer(outcome->file_bytes));
    put(object, "files", json_integer(outcome->files));
    put(object, "phases", phases);
    if (outcome->stops)
        put(object, "deadline", deadline_of(outcome->stops));
    return object;
}

/* The histogram as pairs of the nanoseconds that a bucket reaches up to, and its operations. */
static json_t *latency_of(const struct und_latency *latency)
{
    static const struct {
        const char *key;
        double share;
    } quantiles[] = {{"p50_s", 0.5}, {"p99_s", 0.99}, {"p999_s", 0.999}};
    json_t *object = json_object(), *pairs = json_array();
    put(object, "count", json_integer((json_int_t)und_latency_count(latency)));
    put(object, "bytes", json_integer(latency->bytes));
    for (size_t q = 0; q < sizeof quantiles / sizeof quantiles[0]; ++q)
        put(object, quantiles[q].key, json_real(1e-9 * (double)und_latency_quantile(latency, quantiles[q].share)));
    put(object, "max_s", json_real(1e-9 * (double)latency->most_ns));
    for (int b = 0; b < UND_LATENCY_BUCKETS; ++b)
        if (latency->counts[b] > 0)
            json_array_append_new(pairs,
                                  json_pack("[I,I]", (json_int_t)und_latency_upper(b), (json_int_t)latency->counts[b]));
    put(object, "histogram_ns", pairs);
    return object;
}

static const char *const kinds[UND_LATENCIES] = {"write", "read", "file"};

/* Of kinds with operations. */
static json_t *latencies_of(struct und_latency *const *latencies)
{
    json_t *object = json_object();
    for (int kind = 0; kind < UND_LATENCIES; ++kind)
        if (latencies[kind] && und_latency_count(latencies[kind]) > 0)
            put(object, kinds[kind], latency_of(latencies[kind]));
    return object;
}

static json_t *name_of(const struct und_stream *stream, bool restart)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s", stream->name, restart ? "-restart" : "");
    return json_string(name);
}

/* The keys before the dumps of a stream. */
static json_t *stream_of(const struct und_run *run, int s, bool restart, struct und_latency *const *latencies)
{
    const struct und_stream *stream = &run->workload->streams[s];
    const struct und_stream_plan *plan = &run->plan->streams[s];
    const bool reads = restart || stream->operation == UND_READS;
    json_t *object = json_object();
    put(object, "name", name_of(stream, restart));
    put(object, "operation", json_string(reads ? "read" : "write"));
    put(object, "method", json_string(plan->method->name));
    put(object, "transfer_bytes", json_integer(plan->transfer_bytes));
    put(object, "collective", json_boolean(plan->collective));
    put(object, "sync", json_boolean(plan->sync && !reads));
    if (latencies)
        put(object, "latency", latencies_of(latencies));
    return object;
}

void und_result_begin(struct und_result *result)
{
    fprintf(result->file, "%s\n{\"repetition\": %" PRId64 ", \"streams\": [", result->repetitions > 0 ? "," : "",
            result->repetitions);
    ++result->repetitions;
    result->stream = -1;
    result->elapsed_s = 0;
}

void und_result_take(void *taker, const struct und_event *event, const struct und_outcome *outcome)
{
    struct und_result *result = taker;
    if (event->stream != result->stream || event->restart != result->restart) {
        add_text(result, result->stream < 0 ? "\n{" : "]},\n{");
        add(result, stream_of(result->run, event->stream, event->restart, outcome->latencies), JSON_EMBED);
        add_text(result, ", \"dumps\": [");
        result->stream = event->stream;
        result->restart = event->restart;
        result->dumps = 0;
    }
    add_text(result, result->dumps++ > 0 ? ",\n" : "\n");
    add(result, dump_of(result->run, event, outcome, &result->elapsed_s), 0);
}

void und_result_take_series(void *taker, int stream, bool restart, enum und_latency_kind kind,
                            const struct und_interval *interval)
{
    struct und_result *result = taker;
    json_t *line = json_object();
    put(line, "repetition", json_integer(result->repetitions - 1));
    put(line, "stream", name_of(&result->run->workload->streams[stream], restart));
    put(line, "operation", json_string(kinds[kind]));
    put(line, "time_s", json_real(interval->begin_s));
    put(line, "interval_s", json_real(interval->seconds));
    put(line, "bytes", json_integer((json_int_t)interval->bytes));
    put(line, "operations", json_integer((json_int_t)interval->count));
    put(line, "bytes_per_s", json_real((double)interval->bytes / interval->seconds));
    put(line, "p50_s", json_real(1e-9 * (double)und_interval_quantile(interval, 0.5)));
    put(line, "p99_s", json_real(1e-9 * (double)und_interval_quantile(interval, 0.99)));
    put(line, "p999_s", json_real(1e-9 * (double)und_interval_quantile(interval, 0.999)));
    put(line, "max_s", json_real(1e-9 * (double)interval->most_ns));
    UND_CHECK(json_dumpf(line, result->series, JSON_REAL_PRECISION(12)) == 0 && putc('\n', result->series) == '\n',
              "result: cannot write %s", result->run->plan->time_series);
    json_decref(line);
}

static void put_slowest(json_t *object, const char *key, json_t *what, double io_s, double median_s)
{
    put(what, "io_s", json_real(io_s));
    put(what, "median_io_s", json_real(median_s));
    put(object, key, what);
}

static void put_stragglers(json_t *object, const struct und_stragglers *stragglers)
{
    json_t *rank = json_object(), *host = json_object();
    put(rank, "rank", json_integer(stragglers->rank));
    put(rank, "host", json_string(stragglers->rank_host));
    put_slowest(object, "slowest_rank", rank, stragglers->rank_s, stragglers->median_rank_s);
    put(host, "host", json_string(stragglers->host));
    put_slowest(object, "slowest_host", host, stragglers->host_s, stragglers->median_host_s);
}

void und_result_end(struct und_result *result, const struct und_stragglers *stragglers)
{
    add_text(result, result->stream < 0 ? "], " : "]}], ");
    json_t *rest = json_object();
    put(rest, "elapsed_s", json_real(result->elapsed_s));
    put_stragglers(rest, stragglers);
    add(result, rest, JSON_EMBED);
    add_text(result, "}");
}

static json_t *verification_of(const struct und_run *run, const struct und_verification *verification)
{
    if (!run->plan->verify)
        return json_null();
    json_t *object = json_object();
    put(object, "bytes", json_integer(verification->bytes));
    put(object, "wrong_bytes", json_integer(verification->wrong_bytes));
    return object;
}

static void finish(FILE *file, const char *path)
{
    UND_CHECK(fflush(file) == 0 && fsync(fileno(file)) == 0, "result: cannot write %s", path);
    UND_CHECK(fclose(file) == 0, "result: cannot close %s", path);
}

void und_result_finish(struct und_result *result, const struct und_verification *verification, json_t *striping)
{
    json_t *rest = json_object();
    put(rest, "striping", striping);
    put(rest, "verification", verification_of(result->run, verification));
    put(rest, "finished", json_true());
    add_text(result, "],");
    add(result, rest, JSON_INDENT(1) | JSON_EMBED);
    add_text(result, "}\n");
    finish(result->file, result->path);
    if (result->series)
        finish(result->series, result->run->plan->time_series);
    free(result);
}
