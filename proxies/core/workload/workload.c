#include "workload/workload.h"

#include "workload/program.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_scaling(struct und_strict *at, const json_t *root, int64_t ranks, bool *is_scaled)
{
    static const char *const keys[] = {"rule", "from_ranks", NULL};
    static const char *const rules[] = {"none", "strong", "weak", NULL};
    const json_t *value = json_object_get(root, "scaling");
    const size_t mark = und_strict_key(at, "scaling");
    int rule;
    int64_t from;
    if (!und_strict_object(at, value, keys) || !und_strict_choice(at, value, "rule", rules, &rule) ||
        !und_strict_integer(at, value, "from_ranks", 1, INT64_MAX, &from))
        return false;
    if (rule == 0 && from != ranks)
        return und_strict_fail(at, "from_ranks is %" PRId64 ", expected %" PRId64 " as in ranks for the rule none",
                               from, ranks);
    *is_scaled = rule != 0;
    und_strict_up(at, mark);
    return true;
}

static bool read_source(struct und_strict *at, const json_t *root)
{
    static const char *const keys[] = {"format", "version", "reader", "notes", NULL};
    const json_t *value = json_object_get(root, "source"), *notes;
    const char *text;
    const size_t mark = und_strict_key(at, "source");
    if (!und_strict_object(at, value, keys) || !und_strict_text(at, value, "format", &text) ||
        !und_strict_text(at, value, "version", &text) || !und_strict_text(at, value, "reader", &text) ||
        !und_strict_array(at, value, "notes", 0, SIZE_MAX, &notes))
        return false;
    und_strict_key(at, "notes");
    for (size_t i = 0; i < json_array_size(notes); ++i)
        if (!json_is_string(json_array_get(notes, i))) {
            und_strict_element(at, i);
            return und_strict_fail(at, "expected a string");
        }
    und_strict_up(at, mark);
    return true;
}

static bool read_provenance(struct und_strict *at, const json_t *root)
{
    static const char *const keys[] = {"path", "origin", "confidence", "how", NULL};
    static const char *const confidences[] = {"certain", "likely", "guess", NULL};
    static const char *const origins[] = {"read", "derived", "reconstructed", "assumed", NULL};
    const json_t *array;
    if (!und_strict_array(at, root, "provenance", 0, SIZE_MAX, &array))
        return false;
    const size_t mark = und_strict_key(at, "provenance");
    for (size_t i = 0; i < json_array_size(array); ++i) {
        const json_t *value = json_array_get(array, i);
        const size_t here = und_strict_element(at, i);
        const char *path, *how;
        int origin, confidence;
        if (!und_strict_object(at, value, keys) || !und_strict_text(at, value, "path", &path) ||
            !und_strict_choice(at, value, "origin", origins, &origin) ||
            !und_strict_choice(at, value, "confidence", confidences, &confidence) ||
            !und_strict_text(at, value, "how", &how))
            return false;
        if (path[0] != '/')
            return und_strict_fail(at, "path is \"%.100s\", expected a JSON pointer that begins with /", path);
        if (how[0] == '\0')
            return und_strict_fail(at, "how is empty, expected the counter, the equation or the reason");
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    return true;
}

/* The version first: another version has other keys. */
static bool read_schema(struct und_strict *at, const json_t *root)
{
    static const char schema[] = "understudy/workload/3";
    const char *version = json_string_value(json_object_get(root, "schema"));
    int number;
    if (!version || strcmp(version, schema) == 0)
        return true;
    und_strict_key(at, "schema");
    if (sscanf(version, "understudy/workload/%d", &number) == 1 && number < 3)
        return und_strict_fail(
            at, "expected \"%s\", found \"%s\"; convert the file with: understudy describe %s -o NEW.json", schema,
            version, at->file);
    return und_strict_fail(at, "expected \"%s\", found \"%.100s\"", schema, version);
}

static bool read_root(struct und_strict *at, const json_t *root, struct und_workload *workload)
{
    static const char *const keys[] = {"schema",  "name", "description", "ranks",  "scaling",    "runtime_s",
                                       "compute", "sets", "streams",     "source", "provenance", NULL};
    static const char *const optional[] = {"labels", "overheads", NULL}; /* for people */
    static const char *const computes[] = {"sleep", "busy", "stencil", NULL};
    const char *name, *description;
    const json_t *streams;
    int compute;
    if (!read_schema(at, root) || !und_strict_object_with(at, root, keys, optional) ||
        !und_strict_identifier(at, root, "name", &name) || !und_strict_text(at, root, "description", &description) ||
        !und_strict_integer(at, root, "ranks", 1, INT32_MAX, &workload->ranks) ||
        !read_scaling(at, root, workload->ranks, &workload->scaled) ||
        !und_strict_seconds_or_null(at, root, "runtime_s") ||
        !und_strict_choice(at, root, "compute", computes, &compute) ||
        !und_strict_array(at, root, "streams", 1, SIZE_MAX, &streams) || !read_source(at, root) ||
        !read_provenance(at, root))
        return false;
    workload->compute = (enum und_compute)compute;
    workload->name = und_text_copy(name);
    if (!workload->name)
        return und_strict_no_memory(at);
    return und_program_read(at, root, workload->ranks, &workload->streams, &workload->stream_count);
}

struct und_workload *und_workload_read(const char *text, size_t bytes, const char *file, struct und_error *error)
{
    struct und_strict at = {.file = file, .error = error};
    json_t *root = und_strict_parse(&at, text, bytes);
    if (!root)
        return NULL;
    struct und_workload *workload = calloc(1, sizeof *workload);
    if (!workload)
        und_strict_no_memory(&at);
    else if (!read_root(&at, root, workload)) {
        und_workload_free(workload);
        workload = NULL;
    }
    json_decref(root);
    return workload;
}

/* The nearest whole number, at least `least`; -1 when it does not fit. */
static int64_t scaled(int64_t number, double factor, int64_t least)
{
    const double wanted = round((double)number * factor);
    if (!(wanted < 9.2e18))
        return -1;
    return (int64_t)wanted < least ? least : (int64_t)wanted;
}

/* No run has a row left, since each rank would have less than half of one: the rows that all ranks
 * would have together, at least one, go to the first ranks that had any. */
static bool share_rows(struct und_variable *variable, int64_t rows)
{
    struct und_rows *runs = calloc((size_t)variable->run_count + 1, sizeof *runs);
    int count = 0;
    if (!runs)
        return false;
    variable->shape[0] = rows;
    for (int i = 0; i < variable->run_count; ++i) {
        const struct und_rows *run = &variable->runs[i];
        const int64_t with = run->rows == 0 ? 0 : run->ranks < rows ? run->ranks : rows;
        rows -= with;
        if (with > 0)
            runs[count++] = (struct und_rows){with, 1};
        if (with < run->ranks)
            runs[count++] = (struct und_rows){run->ranks - with, 0};
    }
    free(variable->runs);
    variable->runs = runs;
    variable->run_count = count;
    return true;
}

static bool scale_runs(struct und_variable *variable, double factor, int64_t *raised)
{
    int64_t rows = 0;
    for (int i = 0; i < variable->run_count; ++i) {
        const struct und_rows *run = &variable->runs[i];
        const int64_t more = und_product(run->ranks, scaled(run->rows, factor, 0));
        if (more < 0 || more > INT64_MAX - rows)
            return false;
        rows += more;
    }
    if (rows == 0) {
        *raised += (double)variable->shape[0] * factor < 0.5;
        return share_rows(variable, scaled(variable->shape[0], factor, 1));
    }
    for (int i = 0; i < variable->run_count; ++i)
        variable->runs[i].rows = scaled(variable->runs[i].rows, factor, 0);
    variable->shape[0] = rows;
    return true;
}

static bool scale_variable(struct und_variable *variable, double factor, int64_t *raised)
{
    int longest = 0;
    for (int d = 1; d < variable->ndims; ++d)
        if (variable->shape[d] > variable->shape[longest])
            longest = d;
    if (variable->rule == UND_RUNS && longest == 0)
        return scale_runs(variable, factor, raised);
    *raised += (double)variable->shape[longest] * factor < 0.5;
    variable->shape[longest] = scaled(variable->shape[longest], factor, 1);
    return variable->shape[longest] > 0;
}

bool und_workload_scale(struct und_workload *workload, double factor, int64_t *raised, struct und_error *error)
{
    *raised = 0;
    for (int s = 0; s < workload->stream_count; ++s) {
        struct und_stream *stream = &workload->streams[s];
        int64_t sum = 0;
        for (int e = 0; e < stream->entry_count; ++e) {
            struct und_dump *dump = &stream->entries[e];
            for (int v = 0; !dump->repeats && v < dump->variable_count; ++v)
                if (!scale_variable(&dump->variables[v], factor, raised))
                    return und_fail(error,
                                    "--bytes-scale %g: streams[%d].dumps[%d].variables[%d] would have more rows than "
                                    "can be counted",
                                    factor, s, e, v);
            const int64_t bytes = und_product(und_product(und_dump_bytes(dump), stream->passes), dump->count);
            if (bytes < 0 || bytes > INT64_MAX - sum)
                return und_fail(error, "--bytes-scale %g: streams[%d] would have more than %" PRId64 " bytes", factor,
                                s, INT64_MAX);
            sum += bytes;
        }
    }
    return true;
}

void und_workload_free(struct und_workload *workload)
{
    if (!workload)
        return;
    und_streams_free(workload->streams, workload->stream_count);
    free(workload->name);
    free(workload);
}
