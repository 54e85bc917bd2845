#include "core/result.h"

#include "core/die.h"
#include "core/sha256.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct und_result {
    json_t *root;
    json_t *repetitions;
};

/* Every value goes through here: jansson returns NULL where memory is out or a string is not UTF-8. */
static void put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        UND_DIE("result: cannot state \"%s\": no memory, or not UTF-8", key);
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

/* As given; of one that is given twice the last counts. */
static json_t *settings_of(const struct und_options *options)
{
    json_t *object = json_object();
    for (int i = 0; i < options->setting_count; ++i) {
        char name[256];
        const char *value = strchr(options->settings[i], '=');
        snprintf(name, sizeof name, "%.*s", (int)(value - options->settings[i]), options->settings[i]);
        put(object, name, json_string(value + 1));
    }
    return object;
}

static json_t *options_of(const struct und_options *options)
{
    static const char *const computes[] = {"sleep", "busy", "stencil"};
    json_t *object = json_object();
    const bool forced = options->collective || options->independent;
    put(object, "method", text_or_null(options->method));
    put(object, "transfer_bytes", options->transfer_bytes > 0 ? json_integer(options->transfer_bytes) : json_null());
    put(object, "collective", forced ? json_boolean(options->collective) : json_null());
    put(object, "fsync", json_boolean(options->fsync));
    put(object, "repetitions", json_integer(options->repetitions));
    put(object, "keep", json_boolean(options->keep));
    put(object, "time_scale", json_real(options->time_scale));
    put(object, "bytes_scale", json_real(options->bytes_scale));
    put(object, "verify", json_boolean(options->verify));
    put(object, "compute", options->compute < 0 ? json_null() : json_string(computes[options->compute]));
    put(object, "restart", json_boolean(options->restart));
    put(object, "restart_stream", text_or_null(options->restart_stream));
    put(object, "restart_dump", options->restart_dump < 0 ? json_null() : json_integer(options->restart_dump));
    put(object, "restart_from", text_or_null(options->restart_from));
    put(object, "shift_ranks", json_integer(options->shift_ranks));
    put(object, "drop_cache", json_boolean(options->drop_cache));
    put(object, "method_options", settings_of(options));
    return object;
}

/* Version of each library that the methods of this run use: "hdf5 1.10.8" gives hdf5: 1.10.8. */
static json_t *libraries_of(const struct und_run *run)
{
    json_t *object = json_object();
    for (int s = 0; s < run->workload->stream_count; ++s) {
        const struct und_method *method = run->plans[s].method;
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
    put(object, "nodes", json_integer(environment->nodes));
    put(object, "host", json_string(environment->host));
    put(object, "kernel", json_string(environment->kernel));
    put(object, "processors", json_integer(environment->processors));
    put(object, "mpi", json_string(environment->mpi));
    put(object, "libraries", libraries_of(run));
    put(object, "directory", json_string(run->options->directory));
    put(object, "file_system", json_string(environment->file_system));
    put(object, "total_bytes", json_integer(environment->total_bytes));
    put(object, "free_bytes", json_integer(environment->free_bytes));
    return object;
}

struct und_result *und_result_new(const struct und_run *run, const char *text, size_t bytes,
                                  const struct und_environment *environment, int argc, char **argv)
{
    char digits[65];
    struct und_result *result = malloc(sizeof *result);
    UND_CHECK(result, "no memory for the result");
    und_sha256(text, bytes, digits);
    result->root = json_object();
    put(result->root, "schema", json_string("understudy/result/1"));
    put(result->root, "workload", json_stringn(text, bytes));
    put(result->root, "workload_sha256", json_string(digits));
    put(result->root, "options", options_of(run->options));
    put(result->root, "environment", environment_of(run, environment, argc, argv));
    put(result->root, "repetitions", json_array());
    result->repetitions = json_object_get(result->root, "repetitions");
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
    put(object, "rank_s", seconds);
    return object;
}

static json_t *dump_of(const struct und_run *run, const struct und_event *event, const struct und_outcome *outcome)
{
    static const char *const names[UND_PHASES] = {"open", "write", "read", "sync", "close"};
    json_t *object = json_object(), *phases = json_array();
    double start_s = -1;
    for (int p = 0; p < UND_PHASES; ++p) {
        if (!outcome->took_place[p])
            continue;
        if (start_s < 0)
            start_s = outcome->phases[p].first_start_s;
        json_array_append_new(phases, phase_of(names[p], &outcome->phases[p]));
    }
    put(object, "dump", json_integer(event->dump));
    put(object, "scheduled_s", json_real(event->time_s));
    put(object, "start_s", json_real(start_s));
    put(object, "lateness_s", json_real(start_s - event->time_s));
    put(object, "described_bytes",
        json_integer(run->workload->streams[event->stream].dumps[event->dump].described_bytes));
    put(object, "bytes", json_integer(outcome->bytes));
    put(object, "file_bytes", outcome->file_bytes < 0 ? json_null() : json_integer(outcome->file_bytes));
    put(object, "files", json_integer(outcome->files));
    put(object, "phases", phases);
    return object;
}

static json_t *stream_of(const struct und_run *run, const struct und_outcome *outcomes, int s, bool restart)
{
    const struct und_stream *stream = &run->workload->streams[s];
    const struct und_plan *plan = &run->plans[s];
    const bool reads = restart || stream->operation == UND_READS;
    json_t *object = json_object(), *dumps = json_array();
    char name[256];
    snprintf(name, sizeof name, "%s%s", stream->name, restart ? "-restart" : "");
    for (int e = 0; e < run->schedule->count; ++e) {
        const struct und_event *event = &run->schedule->events[e];
        if (event->stream == s && event->restart == restart)
            json_array_append_new(dumps, dump_of(run, event, &outcomes[e]));
    }
    put(object, "name", json_string(name));
    put(object, "operation", json_string(reads ? "read" : "write"));
    put(object, "method", json_string(plan->method->name));
    put(object, "transfer_bytes", json_integer(plan->transfer_bytes));
    put(object, "collective", json_boolean(plan->collective));
    put(object, "sync", json_boolean(plan->sync && !reads));
    put(object, "dumps", dumps);
    return object;
}

void und_result_add(struct und_result *result, const struct und_run *run, const struct und_outcome *outcomes)
{
    json_t *object = json_object(), *streams = json_array();
    double elapsed_s = 0;
    for (int e = 0; e < run->schedule->count; ++e)
        for (int p = 0; p < UND_PHASES; ++p)
            if (outcomes[e].took_place[p] && outcomes[e].phases[p].last_end_s > elapsed_s)
                elapsed_s = outcomes[e].phases[p].last_end_s;
    for (int s = 0; !run->options->restart_from && s < run->workload->stream_count; ++s)
        json_array_append_new(streams, stream_of(run, outcomes, s, false));
    for (int s = 0; s < run->workload->stream_count; ++s)
        if (und_stream_restarts(&run->workload->streams[s], run->options))
            json_array_append_new(streams, stream_of(run, outcomes, s, true));
    put(object, "repetition", json_integer((json_int_t)json_array_size(result->repetitions)));
    put(object, "elapsed_s", json_real(elapsed_s));
    put(object, "streams", streams);
    json_array_append_new(result->repetitions, object);
}

static json_t *verification_of(const struct und_run *run, const struct und_verification *verification)
{
    if (!run->options->verify)
        return json_null();
    json_t *object = json_object();
    put(object, "bytes", json_integer(verification->bytes));
    put(object, "wrong_bytes", json_integer(verification->wrong_bytes));
    return object;
}

void und_result_write(struct und_result *result, const struct und_run *run, const struct und_verification *verification,
                      int descriptor, const char *path)
{
    put(result->root, "verification", verification_of(run, verification));
    put(result->root, "finished", json_true());
    FILE *file = fdopen(descriptor, "w");
    UND_CHECK(file, "result: cannot write %s", path);
    UND_CHECK(json_dumpf(result->root, file, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) == 0 &&
                  fputc('\n', file) != EOF && fflush(file) == 0 && fsync(fileno(file)) == 0,
              "result: cannot write %s", path);
    UND_CHECK(fclose(file) == 0, "result: cannot close %s", path);
    json_decref(result->root);
    free(result);
}
