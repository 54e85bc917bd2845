#include "core/program.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum layout { SHARED, FILE_PER_PROCESS, GROUPED, FLOOD };
static const char *const layout_names[] = {"shared", "file-per-process", "grouped", "flood", NULL};
enum files { FILES_NEW, APPEND, REWRITE, UPDATE };
static const char *const files_names[] = {"new", "append", "rewrite", "update", NULL};

/* What the keys of a stream say of its files. */
struct keys {
    const struct und_stream *stream;
    enum files files;
    enum layout layout;
    int64_t names, groups, passes, files_per_directory;
    bool reopen, removes, backup, own_directories, turns, steady;
    bool *continues; /* of each entry */
    int extends, reads, extended_by;
    int files_of_dump; /* highest file index + 1 */
};

/* -- what contradicts each other --------------------------------------------------------------------------------- */

static bool fault(struct und_strict *at, const char *key, const char *expected, const char *why)
{
    und_strict_key(at, key);
    return und_strict_fail(at, "expected %s, since %s", expected, why);
}

static bool check_turns(struct und_strict *at, const struct keys *keys)
{
    const char *why = keys->layout == FILE_PER_PROCESS ? "no ranks share a file in the layout file-per-process"
                      : keys->layout == FLOOD          ? "no ranks share a file in the layout flood"
                      : keys->files == APPEND          ? "the files are append and not new"
                      : keys->files == REWRITE         ? "the files are rewrite and not new"
                      : keys->files == UPDATE          ? "the files are update and not new"
                      : keys->stream->collective       ? "collective calls are made by all ranks together"
                                                       : NULL;
    return !keys->turns || !why || fault(at, "turns", "false", why);
}

static bool check_flood(struct und_strict *at, const struct keys *keys)
{
    const bool reads = keys->stream->operation == UND_READS;
    if (keys->layout != FLOOD)
        return true;
    if (keys->files == APPEND || keys->files == REWRITE || (keys->files == UPDATE && !reads))
        return fault(at, "files", reads ? "new or update" : "new", "the layout is flood");
    return !keys->stream->collective || fault(at, "collective", "false", "no ranks share a file in the layout flood");
}

static bool check_stream(struct und_strict *at, const struct keys *keys)
{
    const struct und_stream *stream = keys->stream;
    const bool reads = stream->operation == UND_READS, looks_up = stream->lookups.every_bytes > 0;
    char are[64];
    snprintf(are, sizeof are, "the files are %s", files_names[keys->files]);
    const struct {
        bool wrong;
        const char *key, *expected, *why;
    } rows[] = {
        {reads && keys->files == REWRITE, "files", "new, append or update", "the operation is read"},
        {keys->names > 1 && keys->files != REWRITE && keys->files != UPDATE, "names", "1", are},
        {!keys->reopen && keys->files != UPDATE && keys->files != APPEND, "reopen", "true", are},
        {keys->own_directories && keys->layout != FILE_PER_PROCESS && keys->layout != GROUPED, "own_directories",
         "false", "the layout is neither file-per-process nor grouped"},
        {keys->removes && keys->files != REWRITE, "removes", "false", are},
        {keys->backup && !keys->removes, "backup", "false", "removes is false"},
        {keys->passes > 1 && !reads, "passes", "1", "the operation is write"},
        {stream->sync_bytes > 0 && reads, "sync_bytes", "null", "the operation is read"},
        {stream->flush_bytes > 0 && (reads || stream->sync_bytes > 0), "flush_bytes", "null",
         "the operation is read or sync_bytes is given"},
        {stream->chunk_bytes > UINT32_MAX, "chunk_bytes", "at most 4294967295", "HDF5 has no larger chunks"},
        {looks_up && (reads || keys->layout == FLOOD || stream->order.rule != UND_CONSECUTIVE), "lookups", "null",
         "the operation is read, the layout flood or the order not consecutive"},
        {stream->write_through && reads, "write_through", "false", "the operation is read"},
        {stream->order.rule != UND_CONSECUTIVE && stream->collective, "order", "consecutive",
         "ranks make collective calls together"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i)
        if (rows[i].wrong)
            return fault(at, rows[i].key, rows[i].expected, rows[i].why);
    return check_turns(at, keys) && check_flood(at, keys);
}

static bool check_dump(struct und_strict *at, const struct keys *keys, const struct und_dump *dump)
{
    if ((keys->steady || keys->layout == FLOOD) && dump->compute_s > 0)
        return fault(at, "compute_s", "0", keys->steady ? "the pace of the stream is steady" : "the layout is flood");
    return !keys->steady || dump->duration_s > 0 ||
           fault(at, "duration_s", "more than 0", "the pace of the stream is steady");
}

static bool check_variable(struct und_strict *at, const void *context, const struct und_variable *variable)
{
    const struct keys *keys = context;
    if (variable->collective && keys->turns)
        return fault(at, "collective", "false", "the ranks of the stream take turns");
    if (variable->collective && keys->layout == FLOOD)
        return fault(at, "collective", "false", "no ranks share a file in the layout flood");
    if (variable->collective && keys->stream->order.rule != UND_CONSECUTIVE)
        return fault(at, "collective", "false", "the order of the stream is not consecutive");
    return variable->rule != UND_GRID || keys->layout != FLOOD ||
           fault(at, "decomposition", "even, runs or cyclic", "the layout is flood");
}

static bool check_directories(struct und_strict *at, const struct keys *keys)
{
    bool needs = keys->files_per_directory == 0 || keys->layout == FLOOD;
    for (int e = 0; e < keys->stream->entry_count; ++e)
        needs = needs || keys->stream->entries[e].operation_count > 0;
    return needs || fault(at, "files_per_directory", "null", "the layout is not flood and no dump has operations");
}

static const char *why_not_continue(const struct keys *keys, int entry)
{
    return entry == 0                             ? "there is no dump before the first"
           : keys->stream->operation == UND_READS ? "the operation is read"
           : keys->files == APPEND                ? "the files are append"
           : !keys->reopen                        ? "the files stay open for all dumps"
           : keys->layout == FLOOD                ? "the layout is flood"
           : keys->turns                          ? "the ranks of the stream take turns"
                                                  : NULL;
}

static bool check_continues(struct und_strict *at, const struct keys *keys)
{
    for (int e = 0; e < keys->stream->entry_count; ++e) {
        const char *why = keys->continues[e] ? why_not_continue(keys, e) : NULL;
        if (why) {
            und_strict_key(at, "dumps");
            und_strict_element(at, (size_t)e);
            return fault(at, "continues", "false", why);
        }
    }
    return true;
}

static bool differs(struct und_strict *at, const char *key, const struct keys *base)
{
    und_strict_key(at, key);
    return und_strict_fail(at, "expected that of the stream %s that it extends", base->stream->name);
}

static bool any_continues(const struct keys *keys)
{
    bool any = false;
    for (int e = 0; e < keys->stream->entry_count; ++e)
        any = any || keys->continues[e];
    return any;
}

/* A dump of a stream and the one behind it. */
struct cursor {
    int entry, number;
};

static double next_time(const struct und_stream *stream, struct cursor *at)
{
    const struct und_dump *dump = &stream->entries[at->entry];
    const double time_s = dump->time_s + (double)at->number * dump->period_s;
    if (++at->number == dump->count)
        *at = (struct cursor){at->entry + 1, 0};
    return time_s;
}

static bool check_times(struct und_strict *at, const struct und_stream *stream, const struct und_stream *base)
{
    struct cursor own = {0, 0}, other = {0, 0};
    for (int d = 0; d < stream->dump_count; ++d) {
        const double its_s = next_time(base, &other);
        if (next_time(stream, &own) < its_s)
            return und_strict_fail(at, "expected dump %d at %g or later, as that of the stream %s that it extends", d,
                                   its_s, base->name);
    }
    return true;
}

static bool check_extension(struct und_strict *at, struct keys *keys, struct keys *base)
{
    const struct und_stream *stream = keys->stream;
    if (base->extended_by >= 0)
        return fault(at, "extends", "a stream that no other extends", "two would write to one place");
    if (keys->files == APPEND || keys->files == UPDATE)
        return fault(at, "files", "new or rewrite", "the stream extends another");
    if (keys->layout == FLOOD)
        return fault(at, "layout", "shared, file-per-process or grouped", "the stream extends another");
    if (stream->operation != base->stream->operation)
        return differs(at, "operation", base);
    if (keys->files != base->files)
        return differs(at, "files", base);
    if (keys->names != base->names)
        return differs(at, "names", base);
    if (keys->layout != base->layout)
        return differs(at, "layout", base);
    if (keys->groups != base->groups)
        return differs(at, "groups", base);
    if (keys->turns)
        return fault(at, "turns", "false", "the stream extends another");
    if (base->turns)
        return fault(at, "extends", "a stream without turns", "ranks that take turns fill their files");
    if (any_continues(keys) || any_continues(base))
        return fault(at, "extends", "streams whose dumps do not continue", "two would write to one place");
    const size_t mark = und_strict_key(at, "dumps");
    if (stream->dump_count != base->stream->dump_count)
        return und_strict_fail(at, "expected %d, as the stream %s that it extends, found %d", base->stream->dump_count,
                               base->stream->name, stream->dump_count);
    if (keys->files_of_dump > base->files_of_dump)
        return und_strict_fail(at, "expected file indices below %d, as those of the stream %s that it extends",
                               base->files_of_dump, base->stream->name);
    if (!check_times(at, stream, base->stream))
        return false;
    und_strict_up(at, mark);
    return true;
}

/* The last variable of that name among those before number `v` of the entry, and of the entries from `first` on. */
static const struct und_variable *find_place(const struct und_stream *stream, int first, int entry, int v,
                                             const char *name)
{
    for (int e = entry; e >= first; --e) {
        const struct und_dump *here = &stream->entries[e];
        for (int i = (e == entry ? v : here->variable_count) - 1; i >= 0; --i)
            if (strcmp(here->variables[i].name, name) == 0)
                return &here->variables[i];
    }
    return NULL;
}

/* The entry that the content of an entry began with. */
static int first_of(const struct keys *keys, int entry)
{
    while (entry > 0 && keys->continues[entry])
        --entry;
    return entry;
}

/* The variable that the files have under a name: of one content, or where they are appended to of all that was
 * written before. `v`: of entry `of` those before it count, and with `again` those of its repetition before. */
static const struct und_variable *place_of(const struct keys *base, int of, int v, bool again, const char *name)
{
    const struct und_stream *stream = base->stream;
    const struct und_variable *place = find_place(stream, of, of, v, name);
    return place ? place
                 : find_place(stream, base->files == APPEND ? 0 : first_of(base, of), of,
                              again ? stream->entries[of].variable_count : v, name);
}

/* Each variable with a place of another has one like it: in `base` up to its entry `of`, in itself before it. */
static bool check_places(struct und_strict *at, const struct und_dump *dump, const struct keys *base, int of, bool own,
                         bool again, bool *any)
{
    const struct und_stream *stream = base->stream;
    const size_t mark = und_strict_key(at, "variables");
    for (int v = 0; v < dump->variable_count; ++v) {
        const struct und_variable *variable = &dump->variables[v];
        if (!variable->place)
            continue;
        *any = true;
        const int before = own ? v : stream->entries[of].variable_count;
        const struct und_variable *place = place_of(base, of, before, again, variable->place);
        const size_t here = und_strict_element(at, (size_t)v);
        und_strict_key(at, "at");
        if (!place)
            return und_strict_fail(at, "expected a variable that the files of the stream %s have by then, found \"%s\"",
                                   stream->name, variable->place);
        if (!own && variable->file != place->file)
            return und_strict_fail(at, "expected a variable of file %d, found \"%s\"", variable->file, variable->place);
        if (own && !und_variables_are_alike(variable, place))
            return und_strict_fail(at,
                                   "expected a variable of the same count, type, shape, decomposition and file, found "
                                   "\"%s\"",
                                   variable->place);
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    return true;
}

static bool check_own_places(struct und_strict *at, const struct keys *keys, struct und_stream *stream)
{
    const size_t mark = und_strict_key(at, "dumps");
    for (int e = 0; e < stream->entry_count; ++e) {
        const size_t here = und_strict_element(at, (size_t)e);
        const struct und_dump *dump = &stream->entries[e];
        const bool again = dump->count > 1 && (keys->continues[e] || keys->files == APPEND);
        if (!check_places(at, dump, keys, e, true, false, &stream->notes_places) ||
            (again && !check_places(at, dump, keys, e, true, true, &stream->notes_places)))
            return false;
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    if (stream->notes_places && (keys->layout == FLOOD || keys->turns || stream->operation == UND_READS))
        return fault(at, "dumps", "no variable with the key \"at\"",
                     keys->layout == FLOOD ? "the layout is flood"
                     : keys->turns         ? "the ranks of the stream take turns"
                                           : "the stream reads the files of no other");
    return true;
}

/* Each dump of the stream begins when the base has files, and finds the places that it asks for. */
static bool check_reading(struct und_strict *at, const struct und_stream *stream, const struct keys *base,
                          struct und_stream *source)
{
    const size_t mark = und_strict_key(at, "dumps");
    const double first_s = source->entries[0].time_s;
    int of = 0; /* the last entry of the base that has begun */
    for (int e = 0; e < stream->entry_count; ++e) {
        const struct und_dump *dump = &stream->entries[e];
        const size_t here = und_strict_element(at, (size_t)e);
        if (dump->time_s < first_s)
            return und_strict_fail(at, "expected time_s of at least %g, when the stream %s that it reads begins",
                                   first_s, source->name);
        for (int k = 0, checked = -1; k < dump->count; ++k) {
            const double time_s = dump->time_s + (double)k * dump->period_s;
            while (of + 1 < source->entry_count && source->entries[of + 1].time_s <= time_s)
                ++of;
            if (of > checked && !check_places(at, dump, base, of, false, false, &source->notes_places))
                return false;
            checked = of;
        }
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    return true;
}

static bool calls_together(const struct und_stream *stream)
{
    bool together = stream->collective;
    for (int e = 0; e < stream->entry_count; ++e)
        for (int v = 0; v < stream->entries[e].variable_count; ++v)
            together = together || stream->entries[e].variables[v].collective;
    return together;
}

static bool check_reader(struct und_strict *at, const struct keys *keys, const struct keys *base,
                         struct und_stream *source)
{
    static const char why[] = "the stream reads the files of another";
    const struct und_stream *stream = keys->stream;
    if (stream->operation != UND_READS)
        return fault(at, "reads", "null", "the operation is write");
    if (keys->files != UPDATE)
        return fault(at, "files", "update", why);
    if (keys->names > 1)
        return fault(at, "names", "1", why);
    if (!keys->reopen)
        return fault(at, "reopen", "true", why);
    if (keys->own_directories)
        return fault(at, "own_directories", "false", why);
    if (calls_together(stream))
        return fault(at, "collective", "false", why);
    if (keys->layout == FLOOD)
        return fault(at, "layout", "shared, file-per-process or grouped", why);
    if (source->operation != UND_WRITES)
        return fault(at, "reads", "a stream of the operation write", why);
    if (base->turns)
        return fault(at, "reads", "a stream without turns", why);
    if (keys->layout != base->layout || keys->groups != base->groups)
        return fault(at, "layout", "that of the stream that it reads", why);
    if (strcmp(stream->method, source->method) != 0)
        return fault(at, "method", "that of the stream that it reads", why);
    if (keys->files_of_dump > base->files_of_dump)
        return fault(at, "dumps", "no more files than the stream that it reads has", why);
    return check_reading(at, stream, base, source);
}

/* -- the keys ---------------------------------------------------------------------------------------------------- */

static bool read_groups(struct und_strict *at, const json_t *value, int64_t ranks, struct keys *keys)
{
    if (keys->layout == GROUPED)
        return und_strict_integer(at, value, "groups", 1, ranks, &keys->groups);
    keys->groups = keys->layout == SHARED ? 1 : ranks;
    if (json_is_null(json_object_get(value, "groups")))
        return true;
    und_strict_key(at, "groups");
    return und_strict_fail(at, "expected null, since the layout is not grouped");
}

/* The keys that a stream need not have; those that are not there keep their defaults. */
static bool read_optional(struct und_strict *at, const json_t *value, struct und_stream *stream, struct keys *keys)
{
    static const char *const paces[] = {"burst", "steady", NULL};
    int pace = 0;
    keys->names = keys->passes = 1;
    keys->reopen = keys->files != APPEND;
    const struct {
        const char *key;
        int64_t most, *number;
    } numbers[] = {{"names", UND_MAX_NAMES, &keys->names}, {"passes", UND_MAX_PASSES, &keys->passes}};
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {{"reopen", &keys->reopen},
                 {"direct", &stream->direct},
                 {"write_through", &stream->write_through},
                 {"fill", &stream->fill},
                 {"removes", &keys->removes},
                 {"backup", &keys->backup},
                 {"own_directories", &keys->own_directories}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i)
        if (json_object_get(value, numbers[i].key) &&
            !und_strict_integer(at, value, numbers[i].key, 1, numbers[i].most, numbers[i].number))
            return false;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; ++i)
        if (json_object_get(value, flags[i].key) && !und_strict_flag(at, value, flags[i].key, flags[i].flag))
            return false;
    if ((json_object_get(value, "pace") && !und_strict_choice(at, value, "pace", paces, &pace)) ||
        !und_strict_integer_or_null(at, value, "sync_bytes", 1, &stream->sync_bytes) ||
        !und_strict_integer_or_null(at, value, "flush_bytes", 1, &stream->flush_bytes) ||
        !und_strict_integer_or_null(at, value, "chunk_bytes", 1, &stream->chunk_bytes) ||
        !und_strict_integer_or_null(at, value, "files_per_directory", 1, &keys->files_per_directory))
        return false;
    keys->steady = pace == 1;
    return und_order_read(at, value, &stream->order) && und_lookups_read(at, value, &stream->lookups);
}

/* What the entry says of one dump. */
static bool read_dump(struct und_strict *at, const json_t *value, const json_t *before, int64_t ranks,
                      const struct keys *keys, struct und_dump *dump, bool *continues)
{
    static const char *const names[] = {"time_s", "duration_s", "overhead_bytes", "variables", NULL};
    static const char *const optional[] = {"repeat", "operations", "compute_s", "continues", "skew", NULL};
    const json_t *array, *operations = json_object_get(value, "operations");
    const struct und_variable_reading how = {.ranks = ranks,
                                             .transfer_bytes = keys->stream->transfer_bytes,
                                             .collective = keys->stream->collective,
                                             .check = check_variable,
                                             .context = keys};
    int64_t ignored;
    dump->duration_s = -1;
    if (!und_strict_object_with(at, value, names, optional) ||
        !und_strict_seconds(at, value, "time_s", &dump->time_s) ||
        (!json_is_null(json_object_get(value, "duration_s")) &&
         !und_strict_seconds(at, value, "duration_s", &dump->duration_s)) ||
        (json_object_get(value, "compute_s") && !und_strict_seconds(at, value, "compute_s", &dump->compute_s)) ||
        (json_object_get(value, "continues") && !und_strict_flag(at, value, "continues", continues)) ||
        !und_strict_integer_or_null(at, value, "overhead_bytes", INT64_MIN, &ignored) ||
        (operations && !und_strict_array(at, value, "operations", 0, SIZE_MAX, &operations)) ||
        !und_strict_array(at, value, "variables", json_array_size(operations) > 0 ? 0 : 1, SIZE_MAX, &array))
        return false;
    /* Most dumps repeat the one before: they share its variables, so memory follows what differs. */
    if (before && json_equal(array, json_object_get(before, "variables"))) {
        dump->repeats = true;
        dump->variables = dump[-1].variables;
        dump->variable_count = dump[-1].variable_count;
    } else if (json_array_size(array) > 0) {
        const size_t mark = und_strict_key(at, "variables");
        if (!und_variables_read(at, array, &how, &dump->variables, &dump->variable_count))
            return false;
        und_strict_up(at, mark);
    }
    if (!und_skew_read(at, value, "skew", ranks, &dump->skew))
        return false;
    const size_t mark = und_strict_key(at, "operations");
    if (!und_operations_read(at, operations, ranks, &dump->operations, &dump->operation_count))
        return false;
    und_strict_up(at, mark);
    dump->described_bytes = und_product(und_dump_bytes(dump), keys->passes);
    if (dump->described_bytes < 0)
        return und_strict_fail(at, "the dump has more than %" PRId64 " bytes", INT64_MAX);
    return true;
}

static bool read_entry(struct und_strict *at, const json_t *value, const json_t *before, int64_t ranks,
                       struct keys *keys, struct und_stream *stream, int64_t *bytes)
{
    int64_t count = 1;
    double period_s = 0;
    if (json_is_object(value) && !und_repeat_read(at, value, &count, &period_s))
        return false;
    const int e = stream->entry_count++;
    struct und_dump *dump = &stream->entries[e];
    dump->count = (int)count;
    dump->period_s = period_s;
    if (!read_dump(at, value, before, ranks, keys, dump, &keys->continues[e]) || !check_dump(at, keys, dump))
        return false;
    const double last_s = before ? dump[-1].time_s + (double)(dump[-1].count - 1) * dump[-1].period_s : 0;
    if (before && dump->time_s < last_s)
        return und_strict_fail(at, "time_s is %g, expected at least the %g of the dump before", dump->time_s, last_s);
    if (dump->described_bytes > (INT64_MAX - *bytes) / count)
        return und_strict_fail(at, "the dumps up to here have more than %" PRId64 " bytes", INT64_MAX);
    *bytes += count * dump->described_bytes;
    stream->dump_count += (int)count;
    return isfinite(dump->time_s + (double)(count - 1) * period_s) ||
           und_strict_fail(at, "the last repetition has no finite time");
}

static bool read_entries(struct und_strict *at, const json_t *array, int64_t ranks, struct keys *keys,
                         struct und_stream *stream)
{
    const size_t mark = und_strict_key(at, "dumps");
    const json_t *before = NULL;
    int64_t bytes = 0;
    stream->entries = calloc(json_array_size(array), sizeof *stream->entries);
    keys->continues = calloc(json_array_size(array), sizeof *keys->continues);
    if (!stream->entries || !keys->continues)
        return und_strict_no_memory(at);
    keys->files_of_dump = 1;
    for (size_t i = 0; i < json_array_size(array); ++i) {
        const json_t *value = json_array_get(array, i);
        const size_t here = und_strict_element(at, i);
        if (!read_entry(at, value, before, ranks, keys, stream, &bytes))
            return false;
        const struct und_dump *dump = &stream->entries[i];
        for (int v = 0; v < dump->variable_count; ++v)
            if (dump->variables[v].file >= keys->files_of_dump)
                keys->files_of_dump = dump->variables[v].file + 1;
        before = value;
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    return true;
}

static bool read_choices(struct und_strict *at, const json_t *value, struct und_stream *stream, struct keys *keys)
{
    static const char *const roles[] = {"checkpoint", "visualization", "output", "restart", "input", NULL};
    static const char *const operations[] = {"write", "read", NULL};
    int role, operation, files, layout;
    if (!und_strict_choice(at, value, "role", roles, &role) ||
        !und_strict_choice(at, value, "operation", operations, &operation) ||
        !und_strict_choice(at, value, "files", files_names, &files) ||
        !und_strict_choice(at, value, "layout", layout_names, &layout))
        return false;
    stream->role = (enum und_role)role;
    stream->operation = (enum und_operation)operation;
    keys->files = (enum files)files;
    keys->layout = (enum layout)layout;
    return true;
}

static bool read_stream(struct und_strict *at, const json_t *value, int64_t ranks, struct und_stream *stream,
                        struct keys *keys)
{
    static const char *const names[] = {"name",   "label",  "role",    "operation",      "files",
                                        "layout", "groups", "method",  "transfer_bytes", "collective",
                                        "sync",   "turns",  "content", "dumps",          NULL};
    static const char *const optional[] = {
        "fill",    "lookups",         "chunk_bytes",   "reopen",      "backup", "reads", "files_per_directory",
        "order",   "removes",         "passes",        "sync_bytes",  "pace",   "names", "direct",
        "extends", "own_directories", "write_through", "flush_bytes", NULL};
    const char *name, *label, *method;
    const json_t *dumps;
    if (!und_strict_object_with(at, value, names, optional) || !und_strict_identifier(at, value, "name", &name) ||
        !und_strict_text(at, value, "label", &label) || !read_choices(at, value, stream, keys) ||
        !und_strict_identifier(at, value, "method", &method) ||
        !und_strict_integer(at, value, "transfer_bytes", 1, INT64_MAX, &stream->transfer_bytes) ||
        !und_strict_flag(at, value, "collective", &stream->collective) ||
        !und_strict_flag(at, value, "sync", &stream->sync) || !und_strict_flag(at, value, "turns", &keys->turns) ||
        !und_content_read(at, value, &stream->content) || !und_strict_array(at, value, "dumps", 1, SIZE_MAX, &dumps))
        return false;
    stream->name = und_text_copy(name);
    stream->method = und_text_copy(method);
    if (!stream->name || !stream->method)
        return und_strict_no_memory(at);
    keys->stream = stream;
    return read_groups(at, value, ranks, keys) && read_optional(at, value, stream, keys) && check_stream(at, keys) &&
           read_entries(at, dumps, ranks, keys, stream) && check_directories(at, keys) && check_continues(at, keys);
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
    if (place && json_integer_value(place) < s)
        *base = (int)json_integer_value(place);
    else
        und_strict_key(at, key);
    return *base >= 0 || und_strict_fail(at, "expected the name of a stream before it, found \"%.100s\"", name);
}

/* The streams into whose files this one writes, or whose files it reads. */
static bool read_bases(struct und_strict *at, const json_t *value, const json_t *places, struct und_stream *streams,
                       struct keys *keys, int s)
{
    struct keys *here = &keys[s];
    here->extended_by = -1;
    if (!read_base(at, value, "extends", places, s, &here->extends) ||
        !read_base(at, value, "reads", places, s, &here->reads))
        return false;
    if (here->extends >= 0) {
        if (!check_extension(at, here, &keys[here->extends]))
            return false;
        keys[here->extends].extended_by = s;
    }
    return here->reads >= 0 ? check_reader(at, here, &keys[here->reads], &streams[here->reads])
                            : check_own_places(at, here, &streams[s]);
}

/* -- the program ------------------------------------------------------------------------------------------------- */

static void describe_set(const struct keys *keys, struct und_stream *stream)
{
    static const enum und_owner owners[] = {UND_ALL_RANKS, UND_EACH_RANK, UND_EACH_GROUP, UND_EACH_ROW};
    stream->own = (struct und_file_set){
        .name = stream->name,
        .owner = owners[keys->layout],
        .groups = keys->groups,
        .files = keys->files_of_dump,
        .names = keys->files == FILES_NEW ? 0 : keys->names,
        .numbered = keys->files != APPEND,
        .owner_directories = keys->own_directories,
        .files_in_directory = keys->files_per_directory,
        .prepared = stream->operation == UND_READS && keys->reads < 0,
    };
}

static enum und_opening opening_of(const struct keys *keys)
{
    if (keys->stream->operation == UND_READS)
        return UND_OPEN_READ;
    if (keys->extends >= 0 || keys->files == APPEND || keys->files == UPDATE)
        return UND_OPEN_KEEP;
    return keys->files == REWRITE && !keys->removes ? UND_OPEN_TRUNCATE : UND_OPEN_NEW;
}

static void describe_stream(struct und_stream *streams, struct keys *keys, int s)
{
    struct und_stream *stream = &streams[s];
    const struct keys *here = &keys[s];
    const int base = here->extends >= 0 ? here->extends : here->reads;
    describe_set(here, stream);
    stream->set = base >= 0 ? streams[base].set : &stream->own;
    stream->behind = here->extends;
    stream->followed_by = -1;
    stream->source = here->reads;
    stream->opening = opening_of(here);
    stream->has_backup = here->extends < 0 ? here->backup : streams[here->extends].has_backup;
    stream->in_turn = here->turns;
    stream->passes = here->passes;
    stream->stays_open = !here->reopen && here->layout != FLOOD;
    if (here->extends >= 0)
        streams[here->extends].followed_by = s;
}

/* Instructions of a step are written one behind the other. */
struct writer {
    struct und_stream *stream;
    const struct keys *keys;
    struct und_instruction *next;
    int content;          /* contents that have begun */
    int first_of_content; /* dump that the last one began with */
};

static struct und_instruction *put(struct writer *writer, enum und_code code)
{
    *writer->next = (struct und_instruction){.code = code};
    return writer->next++;
}

/* A loop whose body is what is written from here to und `end`. */
static void end(const struct writer *writer, struct und_instruction *loop)
{
    if (loop)
        loop->body = (int)(writer->next - loop - 1);
}

static void put_operations(struct writer *writer, const struct und_dump *dump)
{
    static const enum und_bare order[] = {UND_MKDIR, UND_CREATE_EMPTY, UND_OPEN,   UND_STAT,
                                          UND_SEEK,  UND_SYNC,         UND_RENAME, UND_UNLINK};
    for (size_t k = 0; k < sizeof order / sizeof order[0]; ++k)
        for (int i = 0; i < dump->operation_count; ++i)
            if (dump->operations[i].operation == order[k])
                put(writer, UND_DO_OPERATE)->operations = &dump->operations[i];
}

static void put_pace(struct writer *writer, const struct und_dump *dump)
{
    if (writer->keys->steady)
        put(writer, UND_DO_SPREAD)->seconds = dump->duration_s;
    else if (dump->compute_s > 0)
        put(writer, UND_DO_COMPUTE)->seconds = dump->compute_s;
}

static void put_moves(struct writer *writer, const struct und_dump *dump)
{
    for (int v = 0; v < dump->variable_count; ++v)
        put(writer, UND_DO_MOVE)->variable = &dump->variables[v];
}

static struct und_instruction *put_passes(struct writer *writer)
{
    if (writer->keys->passes == 1)
        return NULL;
    struct und_instruction *loop = put(writer, UND_DO_PASSES);
    loop->times = writer->keys->passes;
    return loop;
}

static void put_sync(struct writer *writer, bool described)
{
    if (writer->stream->operation == UND_WRITES)
        put(writer, UND_DO_SYNC)->described = described;
}

static void put_flood(struct writer *writer, const struct und_dump *dump, bool syncs)
{
    if (writer->stream->operation == UND_READS)
        put_operations(writer, dump);
    if (dump->variable_count > 0) {
        put_pace(writer, dump);
        struct und_instruction *passes = put_passes(writer), *files = put(writer, UND_DO_EACH_FILE);
        put(writer, UND_DO_OPEN);
        put_moves(writer, dump);
        put_sync(writer, syncs);
        put(writer, UND_DO_CLOSE);
        end(writer, files);
        end(writer, passes);
    }
    if (writer->stream->operation == UND_WRITES)
        put_operations(writer, dump);
}

static void put_files(struct writer *writer, const struct und_dump *dump, bool opens, bool syncs, bool closes)
{
    struct und_instruction *turns = writer->keys->turns ? put(writer, UND_DO_IN_TURN) : NULL;
    if (opens && writer->keys->removes && writer->keys->extends < 0)
        put(writer, UND_DO_REMOVE)->backup = writer->keys->backup;
    if (opens)
        put(writer, UND_DO_OPEN);
    put_operations(writer, dump);
    if (dump->variable_count > 0) {
        put_pace(writer, dump);
        struct und_instruction *passes = put_passes(writer);
        put_moves(writer, dump);
        end(writer, passes);
    }
    if (dump->variable_count > 0 || (syncs && writer->stream->stays_open))
        put_sync(writer, syncs);
    if (closes)
        put(writer, UND_DO_CLOSE);
    end(writer, turns);
}

/* The step of dumps from … from+count-1 of entry e. */
static void put_step(struct writer *writer, int e, int from, int count, bool opens, bool closes)
{
    struct und_stream *stream = writer->stream;
    const struct keys *keys = writer->keys;
    const struct und_dump *dump = &stream->entries[e];
    const struct und_step *last = stream->step_count > 0 ? &stream->steps[stream->step_count - 1] : NULL;
    struct und_step *step = &stream->steps[stream->step_count++];
    const bool syncs = stream->sync && stream->operation == UND_WRITES;
    step->dump = dump;
    step->first = last ? last->first + last->count : 0;
    step->from = from;
    step->count = count;
    step->begins = !keys->continues[e];
    step->content = step->begins ? writer->content : writer->content - 1;
    step->first_of_content = writer->first_of_content;
    if (step->begins) {
        writer->content += count;
        writer->first_of_content = step->first + count - 1;
    }
    struct und_instruction *begin = writer->next;
    if (step->begins && keys->files != APPEND)
        put(writer, UND_DO_BEGIN);
    if (dump->skew.count > 0)
        put(writer, UND_DO_SKEW)->skew = &dump->skew;
    if (keys->layout == FLOOD)
        put_flood(writer, dump, syncs);
    else
        put_files(writer, dump, opens, syncs, closes);
    step->instructions = begin;
    step->instruction_count = (int)(writer->next - begin);
}

/* The contents that begin with entry `begin`, of which the last goes on up to `end`: open while dumps have data. */
static void put_contents(struct writer *writer, int begin, int end)
{
    const struct und_dump *entries = writer->stream->entries;
    const int alone = end > begin + 1 ? entries[begin].count - 1 : entries[begin].count;
    int first = begin, last = end - 1;
    while (first < end && entries[first].variable_count == 0)
        ++first;
    while (last >= begin && entries[last].variable_count == 0)
        --last;
    if (alone > 0)
        put_step(writer, begin, 0, alone, first == begin, first == begin);
    for (int e = end > begin + 1 ? begin : end; e < end; ++e) {
        const int before = e == begin ? 0 : entries[e].count - 1; /* the last dump of an entry is a step of its own */
        if (before > 0)
            put_step(writer, e, 0, before, e == first, false);
        put_step(writer, e, entries[e].count - 1, 1, e == first && before == 0, e == last);
    }
}

static bool lower(struct und_strict *at, const struct keys *keys, struct und_stream *stream)
{
    size_t room = 0;
    for (int e = 0; e < stream->entry_count; ++e)
        room += 2 * (size_t)(stream->entries[e].variable_count + stream->entries[e].operation_count + 10);
    stream->instructions = calloc(room, sizeof *stream->instructions);
    stream->steps = calloc(2 * (size_t)stream->entry_count, sizeof *stream->steps);
    if (!stream->instructions || !stream->steps)
        return und_strict_no_memory(at);
    struct writer writer = {.stream = stream, .keys = keys, .next = stream->instructions};
    for (int e = 0, end; e < stream->entry_count; e = end) {
        end = e + 1;
        if (stream->stays_open) {
            put_step(&writer, e, 0, stream->entries[e].count, true, false);
            continue;
        }
        while (end < stream->entry_count && keys->continues[end])
            ++end;
        put_contents(&writer, e, end);
    }
    return true;
}

/* -- streams ----------------------------------------------------------------------------------------------------- */

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
static bool read_all(struct und_strict *at, const json_t *array, int64_t ranks, json_t *places,
                     struct und_stream *streams, struct keys *keys)
{
    for (int s = 0; s < (int)json_array_size(array); ++s) {
        const json_t *value = json_array_get(array, (size_t)s);
        const size_t here = und_strict_element(at, (size_t)s);
        if (!read_stream(at, value, ranks, &streams[s], &keys[s]))
            return false;
        const char *name = streams[s].name;
        const json_t *taken = json_object_get(places, name);
        if (taken)
            return und_strict_fail(at, "the name %s is taken by streams[%d]", name, (int)json_integer_value(taken));
        if (json_object_set_new(places, name, json_integer(s)) != 0)
            return und_strict_no_memory(at);
        if (!read_bases(at, value, places, streams, keys, s))
            return false;
        describe_stream(streams, keys, s);
        if (!lower(at, &keys[s], &streams[s]))
            return false;
        und_strict_up(at, here);
    }
    return true;
}

bool und_streams_read(struct und_strict *at, const json_t *array, int64_t ranks, struct und_stream **streams,
                      int *count)
{
    *count = 0;
    if (!check_dump_count(at, array))
        return false;
    *streams = calloc(json_array_size(array), sizeof **streams);
    struct keys *keys = calloc(json_array_size(array), sizeof *keys);
    json_t *places = json_object();
    if (*streams)
        *count = (int)json_array_size(array);
    const bool right =
        *streams && keys && places ? read_all(at, array, ranks, places, *streams, keys) : und_strict_no_memory(at);
    for (int s = 0; keys && s < *count; ++s)
        free(keys[s].continues);
    free(keys);
    json_decref(places);
    return right;
}
