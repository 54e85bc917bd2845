#include "core/workload.h"

#include "core/rules.h"
#include "core/strict.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {"byte", "i8",  "u8",  "i16", "u16", "i32",
                                         "u32",  "i64", "u64", "f32", "f64", NULL};

static char *copy(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *twin = malloc(bytes);
    if (twin)
        memcpy(twin, text, bytes);
    return twin;
}

/* a * b of positive numbers, or -1 when the product or one of them does not fit. */
static int64_t product(int64_t a, int64_t b)
{
    return a < 0 || b < 0 || (b > 0 && a > INT64_MAX / b) ? -1 : a * b;
}

int64_t und_variable_bytes(const struct und_variable *variable)
{
    int64_t bytes = product(variable->count, und_type_bytes(variable->type));
    for (int d = 0; d < variable->ndims; ++d)
        bytes = product(bytes, variable->shape[d]);
    return bytes;
}

int64_t und_dump_bytes(const struct und_dump *dump)
{
    int64_t sum = 0;
    for (int v = 0; v < dump->variable_count; ++v) {
        const int64_t bytes = und_variable_bytes(&dump->variables[v]);
        if (bytes < 0 || sum > INT64_MAX - bytes)
            return -1;
        sum += bytes;
    }
    return sum;
}

int64_t und_dump_new_bytes(const struct und_dump *dump)
{
    int64_t sum = 0;
    for (int v = 0; v < dump->variable_count; ++v)
        sum += dump->variables[v].at ? 0 : und_variable_bytes(&dump->variables[v]);
    return sum;
}

int und_stream_set(const struct und_stream *stream, int dump)
{
    const int content = stream->dumps[dump].content;
    return stream->rewrite || stream->update ? (int)(content % stream->names) : content;
}

int und_stream_contents(const struct und_stream *stream)
{
    return stream->dumps[stream->dump_count - 1].content + 1;
}

static bool no_memory(struct und_strict *at)
{
    return und_strict_fail(at, "no memory to read it");
}

static bool read_grid(struct und_strict *at, const json_t *rule, int64_t ranks, struct und_variable *variable)
{
    static const char *const keys[] = {"rule", "grid", NULL};
    size_t count;
    if (!und_strict_object(at, rule, keys) ||
        !und_strict_integers(at, rule, "grid", 1, UND_MAX_DIMS, variable->grid, &count))
        return false;
    if ((int)count != variable->ndims)
        return und_strict_fail(at, "the grid has %zu dimensions, expected %d as in the shape", count, variable->ndims);
    int64_t all = 1;
    for (size_t d = 0; d < count; ++d)
        all = product(all, variable->grid[d]);
    if (all != ranks)
        return und_strict_fail(at, "the product of the grid is %" PRId64 ", expected %" PRId64 " as in ranks", all,
                               ranks);
    return true;
}

static bool read_run(struct und_strict *at, const json_t *run, const char *what, struct und_rows *rows)
{
    if (!json_is_array(run) || json_array_size(run) != 2 || !json_is_integer(json_array_get(run, 0)) ||
        !json_is_integer(json_array_get(run, 1)))
        return und_strict_fail(at, "expected two integers, [ranks, %s of each]", what);
    rows->ranks = json_integer_value(json_array_get(run, 0));
    rows->rows = json_integer_value(json_array_get(run, 1));
    if (rows->ranks < 1 || rows->rows < 0)
        return und_strict_fail(at, "expected at least 1 rank and at least 0 %s, found [%" PRId64 ", %" PRId64 "]", what,
                               rows->ranks, rows->rows);
    return true;
}

/* The key runs: [ranks, `what` of each], whose ranks add up to those of the workload, and the rest to at
 * most `most`; *sum says to what. */
static bool read_runs(struct und_strict *at, const json_t *object, const char *what, int64_t ranks, int64_t most,
                      int *count, struct und_rows **runs, int64_t *sum)
{
    const json_t *array;
    if (!und_strict_array(at, object, "runs", 1, 4096, &array))
        return false;
    const size_t mark = und_strict_key(at, "runs");
    *count = (int)json_array_size(array);
    *runs = calloc((size_t)*count, sizeof **runs);
    if (!*runs)
        return no_memory(at);
    int64_t all_ranks = 0;
    *sum = 0;
    for (int i = 0; i < *count; ++i) {
        struct und_rows *run = &(*runs)[i];
        const size_t here = und_strict_element(at, (size_t)i);
        if (!read_run(at, json_array_get(array, (size_t)i), what, run))
            return false;
        const int64_t rows = product(run->ranks, run->rows);
        if (run->ranks > ranks - all_ranks)
            return und_strict_fail(at, "the ranks add up to more than the %" PRId64 " of ranks", ranks);
        if (rows < 0 || rows > most - *sum)
            return und_strict_fail(at, "the %s add up to more than %" PRId64, what, most);
        all_ranks += run->ranks;
        *sum += rows;
        und_strict_up(at, here);
    }
    if (all_ranks != ranks)
        return und_strict_fail(at, "the ranks add up to %" PRId64 ", expected %" PRId64 " as in ranks", all_ranks,
                               ranks);
    und_strict_up(at, mark);
    return true;
}

static bool read_slabs(struct und_strict *at, const json_t *rule, int64_t ranks, struct und_variable *variable)
{
    static const char *const keys[] = {"rule", "runs", NULL};
    int64_t rows;
    if (!und_strict_object(at, rule, keys) ||
        !read_runs(at, rule, "rows", ranks, variable->shape[0], &variable->run_count, &variable->runs, &rows))
        return false;
    return rows == variable->shape[0] ||
           und_strict_fail(at, "the rows add up to %" PRId64 ", expected %" PRId64 " as in shape[0]", rows,
                           variable->shape[0]);
}

static bool read_decomposition(struct und_strict *at, const json_t *object, int64_t ranks,
                               struct und_variable *variable)
{
    static const char *const rules[] = {"even", "grid", "runs", "cyclic", NULL}, *const keys[] = {"rule", NULL};
    static const char *const cyclic[] = {"rule", "block", NULL};
    const json_t *rule = json_object_get(object, "decomposition");
    const size_t mark = und_strict_key(at, "decomposition");
    if (!json_is_object(rule) || !json_object_get(rule, "rule"))
        return und_strict_fail(at, "expected an object with the key \"rule\": even, grid, runs or cyclic");
    int choice;
    if (!und_strict_choice(at, rule, "rule", rules, &choice))
        return false;
    variable->rule = (enum und_rule)choice;
    bool right = false;
    switch (variable->rule) {
    case UND_EVEN: right = und_strict_object(at, rule, keys); break;
    case UND_GRID: right = read_grid(at, rule, ranks, variable); break;
    case UND_RUNS: right = read_slabs(at, rule, ranks, variable); break;
    case UND_CYCLIC:
        right = und_strict_object(at, rule, cyclic) &&
                und_strict_integer(at, rule, "block", 1, INT64_MAX, &variable->block);
        break;
    }
    if (right)
        und_strict_up(at, mark);
    return right;
}

/* How the variable is moved: as the rest of the stream, or in its own way. */
static bool read_calls(struct und_strict *at, const json_t *value, const struct und_stream *stream,
                       struct und_variable *variable)
{
    variable->transfer_bytes = stream->transfer_bytes;
    variable->collective = stream->collective;
    return und_strict_integer_or_null(at, value, "transfer_bytes", 1, &variable->transfer_bytes) &&
           und_strict_flag_or_null(at, value, "collective", &variable->collective);
}

static bool read_variable(struct und_strict *at, const json_t *value, int64_t ranks, const struct und_stream *stream,
                          struct und_variable *variable)
{
    static const char *const keys[] = {"name", "label", "count", "type", "shape", "decomposition", "file", NULL};
    static const char *const optional[] = {"transfer_bytes", "collective", "at", NULL};
    const char *name, *label, *place = NULL;
    int64_t file;
    int type;
    size_t ndims;
    if (!und_strict_object_with(at, value, keys, optional) || !und_strict_identifier(at, value, "name", &name) ||
        !und_strict_text(at, value, "label", &label) ||
        !und_strict_integer(at, value, "count", 1, INT64_MAX, &variable->count) ||
        !und_strict_choice(at, value, "type", type_names, &type) ||
        !und_strict_integers(at, value, "shape", 1, UND_MAX_DIMS, variable->shape, &ndims) ||
        !und_strict_integer(at, value, "file", 0, UND_MAX_FILES - 1, &file) ||
        !read_calls(at, value, stream, variable) ||
        (json_object_get(value, "at") && !json_is_null(json_object_get(value, "at")) &&
         !und_strict_identifier(at, value, "at", &place)))
        return false;
    variable->name = copy(name);
    variable->at = place ? copy(place) : NULL;
    if (!variable->name || (place && !variable->at))
        return no_memory(at);
    variable->type = (enum und_type)type;
    variable->ndims = (int)ndims;
    variable->file = (int)file;
    return read_decomposition(at, value, ranks, variable) && und_rules_check_variable(at, stream, variable);
}

/* Two variables may not get the same name, also not by the numbers that a count adds. */
static bool check_names(struct und_strict *at, const struct und_dump *dump)
{
    json_t *counts = json_object();
    bool right = counts != NULL || no_memory(at);
    for (int v = 0; right && v < dump->variable_count; ++v) {
        const struct und_variable *variable = &dump->variables[v];
        const size_t here = und_strict_element(at, (size_t)v);
        if (json_object_get(counts, variable->name))
            right = und_strict_fail(at, "the name %s is taken by a variable before it", variable->name);
        else
            right = json_object_set_new(counts, variable->name, json_integer(variable->count)) == 0 || no_memory(at);
        if (right)
            und_strict_up(at, here);
    }
    for (int v = 0; right && v < dump->variable_count; ++v) {
        const char *name = dump->variables[v].name, *digits = strrchr(name, '_');
        char stem[128];
        if (dump->variables[v].count > 1 || !digits || digits == name || (size_t)(digits - name) >= sizeof stem)
            continue;
        memcpy(stem, name, (size_t)(digits - name));
        stem[digits - name] = '\0';
        char *end;
        const long long number = strtoll(digits + 1, &end, 10);
        const int64_t count = json_integer_value(json_object_get(counts, stem));
        const bool plain = digits[1] >= '0' && digits[1] <= '9' && *end == '\0' && (digits[1] != '0' || !digits[2]);
        if (count > 1 && plain && number < count) {
            und_strict_element(at, (size_t)v);
            right = und_strict_fail(at, "the name %s is also that of number %lld of the %" PRId64 " variables %s", name,
                                    number, count, stem);
        }
    }
    json_decref(counts);
    return right;
}

static bool read_variables(struct und_strict *at, const json_t *array, int64_t ranks, const struct und_stream *stream,
                           struct und_dump *dump)
{
    dump->variables = calloc(json_array_size(array), sizeof *dump->variables);
    if (!dump->variables)
        return no_memory(at);
    dump->variable_count = (int)json_array_size(array);
    for (int v = 0; v < dump->variable_count; ++v) {
        const size_t here = und_strict_element(at, (size_t)v);
        if (!read_variable(at, json_array_get(array, (size_t)v), ranks, stream, &dump->variables[v]))
            return false;
        und_strict_up(at, here);
    }
    return check_names(at, dump);
}

static bool read_operations(struct und_strict *at, const json_t *array, int64_t ranks, struct und_dump *dump)
{
    static const char *const keys[] = {"operation", "runs", NULL};
    static const char *const names[] = {"open", "stat", "create", "mkdir", "rename", "unlink", "sync", "seek", NULL};
    const size_t count = json_array_size(array);
    if (count == 0)
        return true;
    dump->operations = calloc(count, sizeof *dump->operations);
    if (!dump->operations)
        return no_memory(at);
    dump->operation_count = (int)count;
    for (int i = 0; i < dump->operation_count; ++i) {
        struct und_operations *made = &dump->operations[i];
        const json_t *value = json_array_get(array, (size_t)i);
        const size_t here = und_strict_element(at, (size_t)i);
        int operation;
        int64_t sum;
        if (!und_strict_object(at, value, keys) || !und_strict_choice(at, value, "operation", names, &operation) ||
            !read_runs(at, value, "operations", ranks, INT64_MAX, &made->run_count, &made->runs, &sum))
            return false;
        made->operation = (enum und_bare)operation;
        und_strict_up(at, here);
    }
    return true;
}

/* How many dumps the entry stands for, and their period. */
static bool read_repeat(struct und_strict *at, const json_t *value, int64_t *count, double *period_s)
{
    static const char *const keys[] = {"count", "period_s", NULL};
    const json_t *repeat = json_object_get(value, "repeat");
    *count = 1;
    *period_s = 0;
    if (!repeat)
        return true;
    const size_t mark = und_strict_key(at, "repeat");
    if (!und_strict_object(at, repeat, keys) || !und_strict_integer(at, repeat, "count", 2, UND_MAX_DUMPS, count) ||
        !und_strict_seconds(at, repeat, "period_s", period_s))
        return false;
    if (*period_s <= 0) {
        und_strict_key(at, "period_s");
        return und_strict_fail(at, "expected more than 0");
    }
    und_strict_up(at, mark);
    return true;
}

/* What the entry says of one dump. */
static bool read_dump(struct und_strict *at, const json_t *value, const json_t *before, int64_t ranks,
                      const struct und_stream *stream, struct und_dump *dump)
{
    static const char *const keys[] = {"time_s", "duration_s", "overhead_bytes", "variables", NULL};
    static const char *const optional[] = {"repeat", "operations", "compute_s", "continues", NULL};
    const json_t *array, *operations = json_object_get(value, "operations");
    int64_t ignored;
    dump->duration_s = -1;
    if (!und_strict_object_with(at, value, keys, optional) || !und_strict_seconds(at, value, "time_s", &dump->time_s) ||
        (!json_is_null(json_object_get(value, "duration_s")) &&
         !und_strict_seconds(at, value, "duration_s", &dump->duration_s)) ||
        (json_object_get(value, "compute_s") && !und_strict_seconds(at, value, "compute_s", &dump->compute_s)) ||
        (json_object_get(value, "continues") && !und_strict_flag(at, value, "continues", &dump->continues)) ||
        !und_strict_integer_or_null(at, value, "overhead_bytes", INT64_MIN, &ignored) ||
        (operations && !und_strict_array(at, value, "operations", 0, 4096, &operations)) ||
        !und_strict_array(at, value, "variables", json_array_size(operations) > 0 ? 0 : 1, SIZE_MAX, &array))
        return false;
    /* Most dumps repeat the one before: they share its variables, so memory follows what differs. */
    if (before && json_equal(array, json_object_get(before, "variables"))) {
        dump->repeats = true;
        dump->variables = dump[-1].variables;
        dump->variable_count = dump[-1].variable_count;
    } else if (json_array_size(array) > 0) {
        const size_t mark = und_strict_key(at, "variables");
        if (!read_variables(at, array, ranks, stream, dump))
            return false;
        und_strict_up(at, mark);
    }
    const size_t mark = und_strict_key(at, "operations");
    if (!read_operations(at, operations, ranks, dump))
        return false;
    und_strict_up(at, mark);
    dump->described_bytes = product(und_dump_bytes(dump), stream->passes);
    if (dump->described_bytes < 0)
        return und_strict_fail(at, "the dump has more than %" PRId64 " bytes", INT64_MAX);
    return true;
}

static bool has_space(struct und_strict *at, struct und_stream *stream, int64_t count)
{
    if (count > stream->dump_capacity) {
        const int64_t capacity =
            count > 2 * (int64_t)stream->dump_capacity ? count : 2 * (int64_t)stream->dump_capacity;
        struct und_dump *grown = realloc(stream->dumps, (size_t)capacity * sizeof *grown);
        if (!grown)
            return no_memory(at);
        stream->dumps = grown;
        stream->dump_capacity = (int)capacity;
    }
    return true;
}

/* Which content of the files the last dump has. */
static void count_content(struct und_stream *stream)
{
    const int last = stream->dump_count - 1;
    struct und_dump *dump = &stream->dumps[last];
    const bool goes_on = last > 0 && dump->continues;
    dump->first = goes_on ? dump[-1].first : last;
    dump->content = goes_on ? dump[-1].content : last > 0 ? dump[-1].content + 1 : 0;
}

/* The dumps of an entry: all share what the first one has. */
static bool read_entry(struct und_strict *at, const json_t *value, const json_t *before, int64_t ranks,
                       struct und_stream *stream, int64_t *bytes)
{
    int64_t count = 1;
    double period_s = 0;
    if (json_is_object(value) && !read_repeat(at, value, &count, &period_s))
        return false;
    if (!has_space(at, stream, stream->dump_count + count))
        return false;
    struct und_dump *dump = &stream->dumps[stream->dump_count];
    *dump = (struct und_dump){.time_s = 0};
    ++stream->dump_count;
    if (!read_dump(at, value, before, ranks, stream, dump) || !und_rules_check_dump(at, stream, dump))
        return false;
    count_content(stream);
    if (before && dump->time_s < dump[-1].time_s)
        return und_strict_fail(at, "time_s is %g, expected at least the %g of the dump before", dump->time_s,
                               dump[-1].time_s);
    if (dump->described_bytes > (INT64_MAX - *bytes) / count)
        return und_strict_fail(at, "the dumps up to here have more than %" PRId64 " bytes", INT64_MAX);
    *bytes += count * dump->described_bytes;
    for (int64_t k = 1; k < count; ++k) {
        dump[k] = dump[0];
        dump[k].time_s = dump[0].time_s + (double)k * period_s;
        dump[k].repeats = dump[k].repeats_operations = true;
        ++stream->dump_count;
        count_content(stream);
    }
    return isfinite(stream->dumps[stream->dump_count - 1].time_s) ||
           und_strict_fail(at, "the last repetition has no finite time");
}

static bool read_dumps(struct und_strict *at, const json_t *array, int64_t ranks, struct und_stream *stream)
{
    const json_t *before = NULL;
    int64_t bytes = 0;
    stream->files = 1;
    for (size_t i = 0; i < json_array_size(array); ++i) {
        const json_t *value = json_array_get(array, i);
        const size_t here = und_strict_element(at, i);
        const int first = stream->dump_count;
        if (!read_entry(at, value, before, ranks, stream, &bytes))
            return false;
        for (int v = 0; v < stream->dumps[first].variable_count; ++v)
            if (stream->dumps[first].variables[v].file >= stream->files)
                stream->files = stream->dumps[first].variables[v].file + 1;
        before = value;
        und_strict_up(at, here);
    }
    return true;
}

static bool read_groups(struct und_strict *at, const json_t *value, int64_t ranks, struct und_stream *stream)
{
    if (stream->layout == UND_GROUPED)
        return und_strict_integer(at, value, "groups", 1, ranks, &stream->groups);
    stream->groups = stream->layout == UND_SHARED ? 1 : ranks;
    if (json_is_null(json_object_get(value, "groups")))
        return true;
    und_strict_key(at, "groups");
    return und_strict_fail(at, "expected null, since the layout is not grouped");
}

static bool read_content(struct und_strict *at, const json_t *stream, struct und_content *content)
{
    static const char *const keys[] = {"kind", "compressibility", NULL};
    static const char *const kinds[] = {"random", "zero", "constant", "smooth", NULL};
    const json_t *value = json_object_get(stream, "content");
    const size_t mark = und_strict_key(at, "content");
    int kind;
    if (!und_strict_object(at, value, keys) || !und_strict_choice(at, value, "kind", kinds, &kind) ||
        !und_strict_share(at, value, "compressibility", &content->compressibility))
        return false;
    content->kind = (enum und_kind)kind;
    if (content->kind != UND_RANDOM && content->compressibility > 0) {
        und_strict_key(at, "compressibility");
        return und_strict_fail(at, "expected 0, since the kind is %s and not random", kinds[kind]);
    }
    und_strict_up(at, mark);
    return true;
}

static bool read_order(struct und_strict *at, const json_t *stream, struct und_order *order)
{
    static const char *const rules[] = {"consecutive", "strided", "shuffled", NULL};
    static const char *const keys[][3] = {{"rule", NULL}, {"rule", "step", NULL}, {"rule", "seed", NULL}};
    const json_t *value = json_object_get(stream, "order");
    *order = (struct und_order){.rule = UND_CONSECUTIVE, .step = 1};
    if (!value)
        return true;
    const size_t mark = und_strict_key(at, "order");
    int rule;
    int64_t seed = 0;
    if (!json_is_object(value) || !json_object_get(value, "rule"))
        return und_strict_fail(at, "expected an object with the key \"rule\": consecutive, strided or shuffled");
    if (!und_strict_choice(at, value, "rule", rules, &rule) || !und_strict_object(at, value, keys[rule]) ||
        (rule == UND_STRIDED && !und_strict_integer(at, value, "step", 1, INT64_MAX, &order->step)) ||
        (rule == UND_SHUFFLED && !und_strict_integer(at, value, "seed", 0, INT64_MAX, &seed)))
        return false;
    order->rule = (enum und_order_rule)rule;
    order->seed = (uint64_t)seed;
    und_strict_up(at, mark);
    return true;
}

/* The keys that a stream need not have; those that are not there keep their defaults. */
static bool read_optional(struct und_strict *at, const json_t *value, struct und_stream *stream)
{
    static const char *const paces[] = {"burst", "steady", NULL};
    int pace = 0;
    stream->names = stream->passes = 1;
    stream->reopen = !stream->append;
    const struct {
        const char *key;
        int64_t most, *number;
    } numbers[] = {{"names", UND_MAX_NAMES, &stream->names}, {"passes", UND_MAX_PASSES, &stream->passes}};
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {{"reopen", &stream->reopen},
                 {"direct", &stream->direct},
                 {"write_through", &stream->write_through},
                 {"removes", &stream->removes},
                 {"own_directories", &stream->own_directories}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i)
        if (json_object_get(value, numbers[i].key) &&
            !und_strict_integer(at, value, numbers[i].key, 1, numbers[i].most, numbers[i].number))
            return false;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; ++i)
        if (json_object_get(value, flags[i].key) && !und_strict_flag(at, value, flags[i].key, flags[i].flag))
            return false;
    if ((json_object_get(value, "pace") && !und_strict_choice(at, value, "pace", paces, &pace)) ||
        !und_strict_integer_or_null(at, value, "sync_bytes", 1, &stream->sync_bytes) ||
        !und_strict_integer_or_null(at, value, "files_per_directory", 1, &stream->files_per_directory))
        return false;
    stream->steady = pace == 1;
    return read_order(at, value, &stream->order);
}

static bool read_stream(struct und_strict *at, const json_t *value, int64_t ranks, struct und_stream *stream)
{
    static const char *const keys[] = {"name",   "label",  "role",    "operation",      "files",
                                       "layout", "groups", "method",  "transfer_bytes", "collective",
                                       "sync",   "turns",  "content", "dumps",          NULL};
    static const char *const optional[] = {"names",         "reopen",
                                           "extends",       "order",
                                           "passes",        "pace",
                                           "direct",        "sync_bytes",
                                           "write_through", "files_per_directory",
                                           "removes",       "own_directories",
                                           "reads",         NULL};
    static const char *const roles[] = {"checkpoint", "visualization", "output", "restart", "input", NULL};
    static const char *const operations[] = {"write", "read", NULL}, *const files[] = {"new", "append", "rewrite",
                                                                                       "update", NULL};
    static const char *const layouts[] = {"shared", "file-per-process", "grouped", "flood", NULL};
    const char *name, *label, *method;
    const json_t *dumps;
    int role, operation, kind, layout;
    if (!und_strict_object_with(at, value, keys, optional) || !und_strict_identifier(at, value, "name", &name) ||
        !und_strict_text(at, value, "label", &label) || !und_strict_choice(at, value, "role", roles, &role) ||
        !und_strict_choice(at, value, "operation", operations, &operation) ||
        !und_strict_choice(at, value, "files", files, &kind) ||
        !und_strict_choice(at, value, "layout", layouts, &layout) ||
        !und_strict_identifier(at, value, "method", &method) ||
        !und_strict_integer(at, value, "transfer_bytes", 1, INT64_MAX, &stream->transfer_bytes) ||
        !und_strict_flag(at, value, "collective", &stream->collective) ||
        !und_strict_flag(at, value, "sync", &stream->sync) || !und_strict_flag(at, value, "turns", &stream->turns) ||
        !read_content(at, value, &stream->content) || !und_strict_array(at, value, "dumps", 1, SIZE_MAX, &dumps))
        return false;
    stream->name = copy(name);
    stream->method = copy(method);
    if (!stream->name || !stream->method)
        return no_memory(at);
    stream->role = (enum und_role)role;
    stream->operation = (enum und_operation)operation;
    stream->append = kind == 1;
    stream->rewrite = kind == 2;
    stream->update = kind == 3;
    stream->layout = (enum und_layout)layout;
    if (!read_groups(at, value, ranks, stream) || !read_optional(at, value, stream) ||
        !und_rules_check_stream(at, stream))
        return false;
    const size_t mark = und_strict_key(at, "dumps");
    if (!read_dumps(at, dumps, ranks, stream))
        return false;
    und_strict_up(at, mark);
    return und_rules_check_directories(at, stream) && und_rules_check_contents(at, stream);
}

/* The stream before this one that a key names; -1: none. */
static bool read_base(struct und_strict *at, const json_t *value, const char *key, const json_t *places, int s,
                      int *base)
{
    const json_t *named = json_object_get(value, key);
    *base = -1;
    if (!named || json_is_null(named))
        return true;
    const char *name;
    if (!und_strict_text(at, value, key, &name))
        return false;
    const json_t *place = json_object_get(places, name);
    if (place && json_integer_value(place) < s) {
        *base = (int)json_integer_value(place);
        return true;
    }
    und_strict_key(at, key);
    return und_strict_fail(at, "expected the name of a stream before it, found \"%.100s\"", name);
}

/* The streams into whose files this one writes, or whose files it reads. */
static bool read_bases(struct und_strict *at, const json_t *value, const json_t *places, struct und_workload *workload,
                       int s)
{
    struct und_stream *stream = &workload->streams[s];
    stream->extended_by = -1;
    return read_base(at, value, "extends", places, s, &stream->extends) &&
           read_base(at, value, "reads", places, s, &stream->reads) &&
           (stream->extends < 0 || und_rules_check_extension(at, workload, s)) &&
           (stream->reads < 0 || und_rules_check_reader(at, workload, s)) &&
           (stream->reads >= 0 || und_rules_check_places(at, workload, s));
}

/* Before any memory is taken for them. What is no valid count is found later. */
static bool check_dump_count(struct und_strict *at, const json_t *streams)
{
    int64_t sum = 0;
    for (size_t s = 0; s < json_array_size(streams); ++s) {
        const json_t *dumps = json_object_get(json_array_get(streams, s), "dumps");
        for (size_t d = 0; d < json_array_size(dumps); ++d) {
            const json_t *repeat = json_object_get(json_array_get(dumps, d), "repeat");
            const int64_t count = json_integer_value(json_object_get(repeat, "count"));
            sum += count > 1 && count <= UND_MAX_DUMPS ? count : 1;
        }
    }
    return sum <= UND_MAX_DUMPS ||
           und_strict_fail(at, "expected at most %d dumps in all streams, found %" PRId64, UND_MAX_DUMPS, sum);
}

/* `places` has the number of each stream by its name. */
static bool read_streams_at(struct und_strict *at, const json_t *array, json_t *places, struct und_workload *workload)
{
    for (int s = 0; s < workload->stream_count; ++s) {
        const size_t here = und_strict_element(at, (size_t)s);
        if (!read_stream(at, json_array_get(array, (size_t)s), workload->ranks, &workload->streams[s]))
            return false;
        const char *name = workload->streams[s].name;
        const json_t *taken = json_object_get(places, name);
        if (taken)
            return und_strict_fail(at, "the name %s is taken by streams[%d]", name, (int)json_integer_value(taken));
        if (json_object_set_new(places, name, json_integer(s)) != 0)
            return no_memory(at);
        if (!read_bases(at, json_array_get(array, (size_t)s), places, workload, s))
            return false;
        und_strict_up(at, here);
    }
    return true;
}

static bool read_streams(struct und_strict *at, const json_t *array, struct und_workload *workload)
{
    workload->streams = calloc(json_array_size(array), sizeof *workload->streams);
    if (!workload->streams)
        return no_memory(at);
    workload->stream_count = (int)json_array_size(array);
    json_t *places = json_object();
    const bool right = places ? read_streams_at(at, array, places, workload) : no_memory(at);
    json_decref(places);
    return right;
}

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

static bool read_root(struct und_strict *at, const json_t *root, struct und_workload *workload)
{
    static const char *const keys[] = {"schema",  "name",    "description", "ranks",      "scaling", "runtime_s",
                                       "compute", "streams", "source",      "provenance", NULL};
    static const char *const schemas[] = {"understudy/workload/2", NULL};
    static const char *const computes[] = {"sleep", "busy", "stencil", NULL};
    const char *name, *description;
    const json_t *streams;
    int schema, compute;
    const char *version = json_string_value(json_object_get(root, "schema"));
    if (version && strcmp(version, "understudy/workload/1") == 0) {
        und_strict_key(at, "schema");
        return und_strict_fail(
            at, "expected \"understudy/workload/2\", found \"%s\"; convert the file with: understudy migrate %s",
            version, at->file);
    }
    /* The version first: another version has other keys. */
    if (json_is_object(root) && json_object_get(root, "schema") &&
        !und_strict_choice(at, root, "schema", schemas, &schema))
        return false;
    if (!und_strict_object(at, root, keys) || !und_strict_identifier(at, root, "name", &name) ||
        !und_strict_text(at, root, "description", &description) ||
        !und_strict_integer(at, root, "ranks", 1, INT32_MAX, &workload->ranks) ||
        !read_scaling(at, root, workload->ranks, &workload->scaled) ||
        !und_strict_seconds_or_null(at, root, "runtime_s") ||
        !und_strict_choice(at, root, "compute", computes, &compute) ||
        !und_strict_array(at, root, "streams", 1, SIZE_MAX, &streams) || !read_source(at, root) ||
        !read_provenance(at, root))
        return false;
    workload->compute = (enum und_compute)compute;
    workload->name = copy(name);
    if (!workload->name)
        return no_memory(at);
    und_strict_key(at, "streams");
    return check_dump_count(at, streams) && read_streams(at, streams, workload);
}

struct und_workload *und_workload_read(const char *text, size_t bytes, const char *file, struct und_error *error)
{
    struct und_strict at = {.file = file, .error = error};
    json_t *root = und_strict_parse(&at, text, bytes);
    if (!root)
        return NULL;
    struct und_workload *workload = calloc(1, sizeof *workload);
    if (!workload)
        no_memory(&at);
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
        const int64_t more = product(run->ranks, scaled(run->rows, factor, 0));
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
        for (int i = 0; i < stream->dump_count; ++i) {
            struct und_dump *dump = &stream->dumps[i];
            for (int v = 0; !dump->repeats && v < dump->variable_count; ++v)
                if (!scale_variable(&dump->variables[v], factor, raised))
                    return und_fail(error,
                                    "--bytes-scale %g: streams[%d].dumps[%d].variables[%d] would have more rows than "
                                    "can be counted",
                                    factor, s, i, v);
            const int64_t bytes = product(und_dump_bytes(dump), stream->passes);
            if (bytes < 0 || bytes > INT64_MAX - sum)
                return und_fail(error, "--bytes-scale %g: streams[%d] would have more than %" PRId64 " bytes", factor,
                                s, INT64_MAX);
            sum += bytes;
        }
    }
    return true;
}

static void free_dump(struct und_dump *dump)
{
    for (int v = 0; !dump->repeats && v < dump->variable_count; ++v) {
        free(dump->variables[v].name);
        free(dump->variables[v].at);
        free(dump->variables[v].runs);
    }
    if (!dump->repeats)
        free(dump->variables);
    for (int i = 0; !dump->repeats_operations && i < dump->operation_count; ++i)
        free(dump->operations[i].runs);
    if (!dump->repeats_operations)
        free(dump->operations);
}

void und_workload_free(struct und_workload *workload)
{
    if (!workload)
        return;
    for (int s = 0; s < workload->stream_count; ++s) {
        struct und_stream *stream = &workload->streams[s];
        for (int i = 0; i < stream->dump_count; ++i)
            free_dump(&stream->dumps[i]);
        free(stream->dumps);
        free(stream->name);
        free(stream->method);
    }
    free(workload->streams);
    free(workload->name);
    free(workload);
}
