/*
 * A workload as a program, read as docs/reference/program.md defines it. What is refused here is what the grammar or the
 * page of rules in that document excludes; no key changes the meaning of another.
 */
#include "workload/program.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 8, MOST_SETS = 1 << 20 };

/* All sets, noted under their names together with the stream that is the first to use them. */
struct sets {
    int64_t ranks;
    struct und_file_set *all;
    int *owners; /* -1: no stream has used it yet */
    int count;
    json_t *numbers; /* by name */
};

/* A step is read instruction by instruction. */
struct reader {
    struct und_stream *stream;
    const struct sets *sets;
    const json_t *streams;      /* numbers by name, of those before */
    int set;                    /* -1: no instruction has named it yet */
    int64_t files_in_directory; /* of what operations make, where the set is another stream's; 0: none */
    bool moves;                 /* an instruction that moves bytes has been read */
    bool in_flight;             /* moves were begun, and not waited for */
    bool has_open;              /* an open has been read */
    bool opens;                 /* the step in hand has one */
    bool each_file;             /* a loop over files is being read */
    bool orders;                /* a loop over files has been read */
    unsigned kinds;             /* of operations of the step in hand */
    struct und_dump *dump;      /* of the step in hand */
    bool begins;
    int variables, operations; /* of it, read so far */
    struct und_instruction *next;
};

static bool read_index(struct und_strict *at, const json_t *value, struct und_file_set *set)
{
    const json_t *index = json_object_get(value, "index");
    set->numbered = true;
    if (!index || (json_is_string(index) && strcmp(json_string_value(index), "k") == 0))
        return true;
    if (json_is_string(index) && strcmp(json_string_value(index), "none") == 0) {
        set->numbered = false;
        set->names = 1;
        return true;
    }
    return json_is_integer(index)
               ? und_strict_integer(at, value, "index", 1, UND_MAX_NAMES, &set->names)
               : (und_strict_key(at, "index"), und_strict_fail(at, "expected \"k\", \"none\", or n for k modulo n"));
}

static bool read_set(struct und_strict *at, const json_t *value, int64_t ranks, struct und_file_set *set)
{
    static const char *const keys[] = {"name", "of", NULL};
    static const char *const optional[] = {
        "files",   "groups",       "index", "own_directories", "files_per_directory", "prepared",
        "entries", "stored_bytes", NULL};
    static const char *const owners[] = {"all ranks", "each rank", "each group", "each row", "callers", NULL};
    int owner;
    int64_t files = 1;
    if (!und_strict_object_with(at, value, keys, optional) || !und_strict_identifier(at, value, "name", &set->name) ||
        !und_strict_choice(at, value, "of", owners, &owner) ||
        !und_strict_integer_or_null(at, value, "files", 1, &files) || !read_index(at, value, set) ||
        !und_strict_flag_or_null(at, value, "own_directories", &set->owner_directories) ||
        !und_strict_flag_or_null(at, value, "prepared", &set->prepared) ||
        !und_strict_integer_or_null(at, value, "files_per_directory", 1, &set->files_in_directory))
        return false;
    set->owner = (enum und_owner)owner;
    set->files = files <= UND_MAX_FILES ? (int)files : UND_MAX_FILES + 1;
    set->groups = set->owner == UND_ALL_RANKS ? 1 : ranks;
    if (set->files > UND_MAX_FILES) {
        und_strict_key(at, "files");
        return und_strict_fail(at, "expected at most %d, found %" PRId64, UND_MAX_FILES, files);
    }
    if (set->owner == UND_CALLERS) {
        set->files = 0;
        set->tree = calloc(1, sizeof *set->tree);
        return set->tree ? und_tree_read(at, value, set->tree) : und_strict_no_memory(at);
    }
    if (set->owner == UND_EACH_GROUP)
        return und_strict_integer(at, value, "groups", 1, ranks, &set->groups);
    if (!json_object_get(value, "groups"))
        return true;
    und_strict_key(at, "groups");
    return und_strict_fail(at, "expected none, since the files are not of each group");
}

static bool read_sets(struct und_strict *at, const json_t *root, struct sets *sets)
{
    const json_t *array;
    if (!und_strict_array(at, root, "sets", 1, MOST_SETS, &array))
        return false;
    const size_t mark = und_strict_key(at, "sets");
    sets->all = calloc(json_array_size(array), sizeof *sets->all);
    sets->owners = calloc(json_array_size(array), sizeof *sets->owners);
    sets->numbers = json_object();
    if (!sets->all || !sets->owners || !sets->numbers)
        return und_strict_no_memory(at);
    while (sets->count < (int)json_array_size(array)) {
        const int s = sets->count++;
        struct und_file_set *set = &sets->all[s];
        const size_t here = und_strict_element(at, (size_t)s);
        sets->owners[s] = -1;
        if (!read_set(at, json_array_get(array, (size_t)s), sets->ranks, set))
            return false;
        if (json_object_get(sets->numbers, set->name))
            return und_strict_fail(at, "the name %s is taken by a set before it", set->name);
        if (json_object_set_new(sets->numbers, set->name, json_integer(s)) != 0)
            return und_strict_no_memory(at);
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    return true;
}

/* The number that a key names among those before. */
static bool read_named(struct und_strict *at, const json_t *value, const char *key, const json_t *numbers,
                       const char *what, int *number)
{
    const char *name;
    if (!und_strict_text(at, value, key, &name))
        return false;
    const json_t *member = json_object_get(numbers, name);
    if (!member) {
        und_strict_key(at, key);
        return und_strict_fail(at, "expected the name of %s, found \"%.100s\"", what, name);
    }
    *number = (int)json_integer_value(member);
    return true;
}

/* A stream has one set of files. */
static bool use_set(struct und_strict *at, const json_t *value, const char *key, struct reader *reader)
{
    int set;
    if (!read_named(at, value, key, reader->sets->numbers, "a set", &set))
        return false;
    if (reader->set >= 0 && set != reader->set) {
        und_strict_key(at, key);
        return und_strict_fail(at, "expected %s, the set that the stream has used before",
                               reader->sets->all[reader->set].name);
    }
    reader->set = set;
    return true;
}

static struct und_instruction *put(struct reader *reader, enum und_code code)
{
    *reader->next = (struct und_instruction){.code = code};
    return reader->next++;
}

/* The stream behind whose bytes this one writes, or whose files it reads. */
static bool read_base(struct und_strict *at, const json_t *value, struct reader *reader)
{
    struct und_stream *stream = reader->stream;
    return (!json_object_get(value, "behind") ||
            read_named(at, value, "behind", reader->streams, "a stream before it", &stream->behind)) &&
           (!json_object_get(value, "last") ||
            read_named(at, value, "last", reader->streams, "a stream before it", &stream->source));
}

/* All opens of a stream are alike, as all moves are but for what they move. */
static bool read_open(struct und_strict *at, const json_t *value, struct reader *reader)
{
    static const char *const keys[] = {"open", "mode", NULL};
    static const char *const optional[] = {"behind", "last", "direct", "write_through", "chunk_bytes", "fill", NULL};
    static const char *const modes[] = {"new", "truncate", "keep", "read", NULL};
    struct und_stream *stream = reader->stream, here = {.direct = false};
    int mode;
    if (!und_strict_object_with(at, value, keys, optional) || !use_set(at, value, "open", reader) ||
        !und_strict_choice(at, value, "mode", modes, &mode) || !read_base(at, value, reader) ||
        !und_strict_flag_or_null(at, value, "direct", &here.direct) ||
        !und_strict_flag_or_null(at, value, "write_through", &here.write_through) ||
        !und_strict_flag_or_null(at, value, "fill", &here.fill) ||
        !und_strict_integer_or_null(at, value, "chunk_bytes", 1, &here.chunk_bytes))
        return false;
    here.opening = (enum und_opening)mode;
    if (reader->opens)
        return und_strict_fail(at, "expected one open in a step");
    if (reader->has_open &&
        (stream->opening != here.opening || stream->direct != here.direct || stream->fill != here.fill ||
         stream->write_through != here.write_through || stream->chunk_bytes != here.chunk_bytes))
        return und_strict_fail(at, "expected an open as those before it in the stream");
    stream->opening = here.opening;
    stream->direct = here.direct;
    stream->write_through = here.write_through;
    stream->fill = here.fill;
    stream->chunk_bytes = here.chunk_bytes;
    reader->opens = reader->has_open = true;
    put(reader, UND_DO_OPEN);
    return true;
}

static bool read_operate(struct und_strict *at, const json_t *value, struct reader *reader)
{
    static const char *const keys[] = {"operate", "runs", NULL};
    struct und_operations *operations = &reader->dump->operations[reader->operations++];
    int64_t sum;
    int kind;
    if (!und_strict_object(at, value, keys) || !und_strict_choice(at, value, "operate", und_bare_names, &kind) ||
        !und_rows_read(at, value, "operations", reader->sets->ranks, INT64_MAX, &operations->run_count,
                       &operations->runs, &sum))
        return false;
    operations->operation = (enum und_bare)kind;
    const bool goes_on = reader->next > reader->stream->instructions && reader->next[-1].code == UND_DO_OPERATE &&
                         reader->next[-1].operations->operation == operations->operation;
    if (reader->kinds & 1U << kind && !goes_on)
        return und_strict_fail(at, "operate: expected all of a kind one behind the other in a step");
    reader->kinds |= 1U << kind;
    put(reader, UND_DO_OPERATE)->operations = operations;
    return true;
}

static bool has_rows(const struct reader *reader)
{
    return reader->set >= 0 && reader->sets->all[reader->set].owner == UND_EACH_ROW;
}

static bool same_order(const struct und_order *a, const struct und_order *b)
{
    return a->rule == b->rule && a->step == b->step && a->seed == b->seed;
}

/* The keys that all moves of a stream have in common. */
static bool read_calls(struct und_strict *at, const json_t *value, bool writes, struct reader *reader)
{
    struct und_stream *stream = reader->stream;
    struct und_stream here = {.operation = writes ? UND_WRITES : UND_READS};
    bool to_system = false;
    int64_t flush = 0;
    if (!und_order_read(at, value, &here.order) || !und_lookups_read(at, value, &here.lookups) ||
        !und_strict_integer_or_null(at, value, "flush_bytes", 1, &flush) ||
        !und_strict_flag_or_null(at, value, "to_system", &to_system))
        return false;
    here.flush_bytes = to_system ? flush : 0;
    here.sync_bytes = to_system ? 0 : flush;
    if (!reader->moves) {
        reader->moves = true;
        stream->operation = here.operation;
        stream->order = has_rows(reader) ? stream->order : here.order;
        stream->lookups = here.lookups;
        stream->flush_bytes = here.flush_bytes;
        stream->sync_bytes = here.sync_bytes;
    }
    const bool ordered = has_rows(reader) || same_order(&stream->order, &here.order);
    return (ordered && stream->operation == here.operation && stream->flush_bytes == here.flush_bytes &&
            stream->sync_bytes == here.sync_bytes && stream->lookups.every_bytes == here.lookups.every_bytes) ||
           und_strict_fail(
               at, "expected a %s in the order of those before it in the stream, which flushes and looks up as they do",
               stream->operation == UND_WRITES ? "write" : "read");
}

static bool read_variable(struct und_strict *at, const json_t *value, const char *verb, int64_t ranks,
                          struct und_variable *variable)
{
    const char *name, *place = NULL;
    int64_t file = 0;
    int type;
    size_t ndims;
    variable->count = variable->depth = 1;
    if (!und_strict_identifier(at, value, verb, &name) ||
        !und_strict_choice(at, value, "type", und_type_names, &type) ||
        !und_strict_integers(at, value, "shape", 1, UND_MAX_DIMS, variable->shape, &ndims) ||
        !und_strict_integer_or_null(at, value, "count", 1, &variable->count) ||
        !und_strict_integer(at, value, "transfer_bytes", 1, INT64_MAX, &variable->transfer_bytes) ||
        !und_strict_flag_or_null(at, value, "collective", &variable->collective) ||
        !und_strict_flag_or_null(at, value, "nonblocking", &variable->nonblocking) ||
        (json_object_get(value, "depth") &&
         !und_strict_integer(at, value, "depth", 2, UND_MAX_DEPTH, &variable->depth)) ||
        (json_object_get(value, "file") && !und_strict_integer(at, value, "file", 0, UND_MAX_FILES - 1, &file)) ||
        (json_object_get(value, "at") && !und_strict_identifier(at, value, "at", &place)))
        return false;
    variable->name = und_text_copy(name);
    variable->place = place ? und_text_copy(place) : NULL;
    variable->type = (enum und_type)type;
    variable->ndims = (int)ndims;
    variable->file = (int)file;
    if (!variable->name || (place && !variable->place))
        return und_strict_no_memory(at);
    variable->rule = UND_EVEN;
    return !json_object_get(value, "split") || und_split_read(at, value, "split", ranks, variable);
}

static bool read_move(struct und_strict *at, const json_t *value, const char *verb, struct reader *reader)
{
    static const char *const writes[] = {"write", "type", "shape", "transfer_bytes", NULL};
    static const char *const reads[] = {"read", "type", "shape", "transfer_bytes", NULL};
    static const char *const optional[] = {"split", "count", "file",        "at",        "collective", "nonblocking",
                                           "depth", "order", "flush_bytes", "to_system", "lookups",    NULL};
    const bool is_write = strcmp(verb, "write") == 0;
    struct und_variable *variable = &reader->dump->variables[reader->variables++];
    if (!und_strict_object_with(at, value, is_write ? writes : reads, optional) ||
        !read_calls(at, value, is_write, reader) ||
        (!reader->dump->repeats && !read_variable(at, value, verb, reader->sets->ranks, variable)))
        return false;
    reader->stream->notes_places = reader->stream->notes_places || variable->place;
    if (has_rows(reader) && !reader->each_file)
        return und_strict_fail(at, "expected each_file around it, since the files are of each row");
    reader->in_flight = reader->in_flight || json_is_true(json_object_get(value, "nonblocking"));
    put(reader, UND_DO_MOVE)->variable = variable;
    return true;
}

/* All loops over files of a stream are in one. */
static bool take_order(struct und_strict *at, struct reader *reader, const struct und_order *order)
{
    if (!has_rows(reader))
        return und_strict_fail(at, "each_file: expected a set of files of each row");
    if (reader->orders && !same_order(&reader->stream->order, order))
        return und_strict_fail(at, "order: expected that of the loops before it in the stream");
    reader->stream->order = *order;
    return reader->orders = true;
}

static bool read_body(struct und_strict *at, const json_t *array, struct reader *reader, int depth);

static bool read_loop(struct und_strict *at, const json_t *value, const char *verb, enum und_code code,
                      struct reader *reader, int depth)
{
    static const char *const repeat[] = {"repeat", "do", NULL}, *const turns[] = {"in_turn", NULL};
    static const char *const files[] = {"each_file", "do", NULL}, *const order[] = {"order", NULL};
    struct und_stream *stream = reader->stream;
    struct und_instruction *loop = put(reader, code);
    struct und_order of_files = {.rule = UND_CONSECUTIVE};
    const json_t *body;
    int64_t times = 1;
    const bool right =
        code == UND_DO_IN_TURN ? und_strict_object(at, value, turns)
        : code == UND_DO_PASSES
            ? und_strict_object(at, value, repeat) && und_strict_integer(at, value, "repeat", 1, UND_MAX_PASSES, &times)
            : und_strict_object_with(at, value, files, order) && use_set(at, value, "each_file", reader) &&
                  und_order_read(at, value, &of_files) && take_order(at, reader, &of_files);
    if (!right || !und_strict_array(at, value, code == UND_DO_IN_TURN ? verb : "do", 1, SIZE_MAX, &body))
        return false;
    const size_t mark = und_strict_key(at, code == UND_DO_IN_TURN ? verb : "do");
    if (code == UND_DO_IN_TURN && reader->opens)
        return und_strict_fail(at, "expected the open of the step in it, since ranks open one after the other");
    stream->in_turn = stream->in_turn || code == UND_DO_IN_TURN;
    stream->passes = times > stream->passes ? times : stream->passes;
    loop->times = times;
    const bool each_file = reader->each_file;
    reader->each_file = each_file || code == UND_DO_EACH_FILE;
    if (!read_body(at, body, reader, depth + 1))
        return false;
    reader->each_file = each_file;
    loop->body = (int)(reader->next - loop - 1);
    und_strict_up(at, mark);
    return true;
}

static bool read_word(struct und_strict *at, const char *word, struct reader *reader)
{
    static const struct {
        const char *word;
        enum und_code code;
    } words[] = {{"begin", UND_DO_BEGIN},      {"remove", UND_DO_REMOVE}, {"rename", UND_DO_REMOVE},
                 {"spread", UND_DO_SPREAD},    {"sync", UND_DO_SYNC},     {"close", UND_DO_CLOSE},
                 {"wait_all", UND_DO_WAIT_ALL}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
        if (strcmp(words[i].word, word) == 0) {
            struct und_instruction *instruction = put(reader, words[i].code);
            reader->begins = reader->begins || instruction->code == UND_DO_BEGIN;
            if (instruction->code == UND_DO_REMOVE)
                instruction->backup = strcmp(word, "rename") == 0;
            if (instruction->code == UND_DO_SPREAD)
                instruction->seconds = reader->dump->duration_s;
            if (instruction->code == UND_DO_SYNC)
                instruction->described = reader->stream->sync = true;
            return instruction->code != UND_DO_SPREAD || instruction->seconds > 0 ||
                   und_strict_fail(at, "expected a step with \"lasting\" of more than 0");
        }
    return und_strict_fail(at, "unknown instruction \"%.100s\"", word);
}

/* The calls of a step are all that it has, but for the time that it computes. */
static bool read_calls_of(struct und_strict *at, const json_t *value, struct reader *reader)
{
    static const char *const keys[] = {"calls", "do", NULL};
    struct und_call_list *list = &reader->dump->calls;
    if (!und_strict_object(at, value, keys) || !use_set(at, value, "calls", reader))
        return false;
    const struct und_tree *tree = reader->sets->all[reader->set].tree;
    if (!tree || list->count > 0)
        return und_strict_fail(at, "expected one such instruction in a step, with a set of callers");
    put(reader, UND_DO_CALLS);
    return und_calls_read(at, value, "do", tree, reader->sets->ranks, list);
}

static bool read_instruction(struct und_strict *at, const json_t *value, struct reader *reader, int depth)
{
    static const char *const wait[] = {"wait", NULL}, *const compute[] = {"compute", NULL};
    if (json_is_string(value))
        return read_word(at, json_string_value(value), reader);
    if (json_object_get(value, "open"))
        return read_open(at, value, reader);
    if (json_object_get(value, "write") || json_object_get(value, "read"))
        return read_move(at, value, json_object_get(value, "write") ? "write" : "read", reader);
    if (json_object_get(value, "operate"))
        return read_operate(at, value, reader);
    if (json_object_get(value, "calls"))
        return read_calls_of(at, value, reader);
    if (json_object_get(value, "repeat"))
        return read_loop(at, value, "repeat", UND_DO_PASSES, reader, depth);
    if (json_object_get(value, "in_turn"))
        return read_loop(at, value, "in_turn", UND_DO_IN_TURN, reader, depth);
    if (json_object_get(value, "each_file"))
        return read_loop(at, value, "each_file", UND_DO_EACH_FILE, reader, depth);
    if (json_object_get(value, "wait")) {
        put(reader, UND_DO_SKEW)->skew = &reader->dump->skew;
        return und_strict_object(at, value, wait) &&
               und_skew_read(at, value, "wait", reader->sets->ranks, &reader->dump->skew);
    }
    if (!json_object_get(value, "compute"))
        return und_strict_fail(at, "expected an instruction: a word, or an object with the key open, write, read, "
                                   "operate, repeat, in_turn, each_file, calls, wait or compute");
    put(reader, UND_DO_COMPUTE);
    return und_strict_object(at, value, compute) &&
           und_strict_seconds(at, value, "compute", &reader->dump->compute_s) &&
           (reader->next[-1].seconds = reader->dump->compute_s, true);
}

/* Behind writes there is a place to flush, as options or a method may ask for it. */
static void put_place_to_sync(struct reader *reader, const json_t *next)
{
    const bool flushes = json_is_string(next) && strcmp(json_string_value(next), "sync") == 0;
    if (reader->stream->operation == UND_WRITES && !flushes)
        put(reader, UND_DO_SYNC);
}

static bool read_body(struct und_strict *at, const json_t *array, struct reader *reader, int depth)
{
    bool moved = false;
    if (depth > MOST_DEPTH)
        return und_strict_fail(at, "expected at most %d loops within each other", MOST_DEPTH);
    for (size_t i = 0; i < json_array_size(array); ++i) {
        const json_t *value = json_array_get(array, i);
        const bool waits = json_is_string(value) && strcmp(json_string_value(value), "wait_all") == 0;
        const bool moves = json_object_get(value, "write") || json_object_get(value, "read") || waits;
        const size_t here = und_strict_element(at, i);
        if (moved && !moves)
            put_place_to_sync(reader, value);
        if (reader->in_flight && !moves && !json_object_get(value, "compute"))
            return und_strict_fail(at, "expected moves, compute or wait_all behind a nonblocking move");
        if (!read_instruction(at, value, reader, depth))
            return false;
        reader->in_flight = reader->in_flight && !waits;
        moved = moves && !reader->in_flight;
        und_strict_up(at, here);
    }
    if (reader->in_flight)
        return und_strict_fail(at, "expected wait_all behind nonblocking moves");
    if (moved)
        put_place_to_sync(reader, NULL);
    return true;
}

/* The instructions of a step, counted. */
struct counts {
    size_t instructions, operations, moves;
    const json_t **list; /* of its moves; NULL: they are only counted */
};

static bool count_body(const json_t *array, struct counts *counts, int depth)
{
    bool right = depth <= MOST_DEPTH + 1;
    for (size_t i = 0; right && i < json_array_size(array); ++i) {
        const json_t *value = json_array_get(array, i), *turns = json_object_get(value, "in_turn");
        counts->instructions += 2;
        counts->operations += json_object_get(value, "operate") != NULL;
        if (json_object_get(value, "write") || json_object_get(value, "read")) {
            if (counts->list)
                counts->list[counts->moves] = value;
            ++counts->moves;
        }
        right = count_body(turns ? turns : json_object_get(value, "do"), counts, depth + 1);
    }
    return right;
}

static bool list_moves(const json_t *body, struct counts *counts)
{
    *counts = (struct counts){0};
    if (!count_body(body, counts, 0))
        return false;
    const json_t **list = calloc(1 + counts->moves, sizeof *list);
    *counts = (struct counts){.list = list};
    return list && count_body(body, counts, 0);
}

static bool same_moves(const struct counts *a, const struct counts *b)
{
    bool same = a->list && a->moves == b->moves;
    for (size_t i = 0; same && i < b->moves; ++i)
        same = json_equal(a->list[i], b->list[i]);
    return same;
}

/* Room for what a step has, which shares its moves with the one before where these are the same. */
static bool make_room_for(struct und_dump *dump, const struct counts *here, const struct counts *before)
{
    dump->variable_count = (int)here->moves;
    dump->operation_count = (int)here->operations;
    dump->repeats = same_moves(before, here);
    dump->variables = dump->repeats ? dump[-1].variables : calloc(1 + here->moves, sizeof *dump->variables);
    dump->operations = calloc(1 + here->operations, sizeof *dump->operations);
    return dump->variables && dump->operations;
}

static bool make_room(struct und_strict *at, const json_t *steps, struct und_stream *stream)
{
    struct counts before = {0}, here;
    const int count = (int)json_array_size(steps);
    size_t instructions = 1;
    stream->entries = calloc((size_t)count, sizeof *stream->entries);
    stream->steps = calloc((size_t)count, sizeof *stream->steps);
    bool right = stream->entries && stream->steps;
    while (right && stream->entry_count < count) {
        const json_t *step = json_array_get(steps, (size_t)stream->entry_count);
        right = list_moves(json_object_get(step, "do"), &here) &&
                make_room_for(&stream->entries[stream->entry_count], &here, &before);
        ++stream->entry_count;
        instructions += here.instructions + 1;
        free(before.list);
        before = here;
    }
    free(before.list);
    stream->instructions = calloc(instructions, sizeof *stream->instructions);
    return (right && stream->instructions) ||
           und_strict_fail(at, "no memory to read it, or more than %d loops within each other", MOST_DEPTH);
}

static bool read_times(struct und_strict *at, const json_t *value, struct und_dump *dump)
{
    static const char *const keys[] = {"at", "do", NULL}, *const optional[] = {"repeat", "every", "lasting", NULL};
    int64_t count = 1;
    dump->duration_s = -1;
    if (!und_strict_object_with(at, value, keys, optional) || !und_strict_seconds(at, value, "at", &dump->time_s) ||
        (json_object_get(value, "repeat") && (!und_strict_integer(at, value, "repeat", 1, UND_MAX_DUMPS, &count) ||
                                              !und_strict_seconds(at, value, "every", &dump->period_s))) ||
        (json_object_get(value, "lasting") && !und_strict_seconds(at, value, "lasting", &dump->duration_s)))
        return false;
    dump->count = (int)count;
    return isfinite(dump->time_s + (double)(count - 1) * dump->period_s) ||
           und_strict_fail(at, "the last repetition has no finite time");
}

/* The properties of a step besides its instructions. */
static bool end_step(struct und_strict *at, struct reader *reader, int s, int *contents, int64_t *bytes)
{
    struct und_stream *stream = reader->stream;
    struct und_step *step = &stream->steps[s];
    struct und_dump *dump = reader->dump;
    const struct und_step *last = s > 0 ? step - 1 : NULL;
    step->dump = dump;
    dump->described_bytes = und_step_bytes(step);
    const int64_t all = und_product(dump->count, dump->described_bytes);
    step->first = stream->dump_count;
    step->count = dump->count;
    const bool numbered = reader->set >= 0 && (reader->sets->all[reader->set].numbered || stream->source >= 0);
    if (s == 0 && numbered && !reader->begins && dump->calls.count == 0)
        return und_strict_fail(at, "do: expected begin in the first step, since the set has an index");
    step->begins = reader->begins || s == 0 || dump->calls.count > 0 ||
                   (reader->set >= 0 && !reader->sets->all[reader->set].numbered);
    step->content = step->begins ? *contents : *contents - 1;
    step->first_of_content = last ? (last->begins ? last->first + last->count - 1 : last->first_of_content) : 0;
    *contents += step->begins ? dump->count : 0;
    stream->dump_count += dump->count;
    stream->step_count = s + 1;
    if (all < 0 || all > INT64_MAX - *bytes)
        return und_strict_fail(at, "the steps up to here have more than %" PRId64 " bytes", INT64_MAX);
    *bytes += all;
    if (last && dump->time_s < dump[-1].time_s + (double)(dump[-1].count - 1) * dump[-1].period_s)
        return und_strict_fail(at, "at is %g, expected at least the time of the step before", dump->time_s);
    return dump->repeats || und_variables_check_names(at, dump->variables, dump->variable_count);
}

static bool read_steps(struct und_strict *at, const json_t *value, struct reader *reader)
{
    const json_t *steps, *body;
    struct und_stream *stream = reader->stream;
    int contents = 0;
    int64_t bytes = 0;
    if (!und_strict_array(at, value, "steps", 1, UND_MAX_DUMPS, &steps))
        return false;
    const size_t mark = und_strict_key(at, "steps");
    if (!make_room(at, steps, stream))
        return false;
    reader->next = stream->instructions;
    for (int s = 0; s < (int)json_array_size(steps); ++s) {
        const json_t *step = json_array_get(steps, (size_t)s);
        const size_t here = und_strict_element(at, (size_t)s);
        struct und_instruction *begin = reader->next;
        reader->dump = &stream->entries[s];
        reader->begins = reader->opens = false;
        reader->kinds = 0;
        reader->variables = reader->operations = 0;
        if (!read_times(at, step, reader->dump) || !und_strict_array(at, step, "do", 1, SIZE_MAX, &body))
            return false;
        const size_t within = und_strict_key(at, "do");
        if (!read_body(at, body, reader, 0))
            return false;
        und_strict_up(at, within);
        stream->steps[s].instructions = begin;
        stream->steps[s].instruction_count = (int)(reader->next - begin);
        if (!end_step(at, reader, s, &contents, &bytes))
            return false;
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    return true;
}

/* -- the page of rules ------------------------------------------------------------------------------------------- */

static bool check_moves(struct und_strict *at, const struct und_stream *stream)
{
    const bool rows = stream->own_set.owner == UND_EACH_ROW;
    for (int e = 0; e < stream->entry_count; ++e)
        for (int v = 0; v < stream->entries[e].variable_count; ++v) {
            const struct und_variable *variable = &stream->entries[e].variables[v];
            const char *why =
                variable->file >= stream->set->files ? "file: expected one of the set"
                : variable->collective && (rows || stream->in_turn)
                    ? "collective: expected false, since no ranks call together"
                : variable->collective && stream->order.rule != UND_CONSECUTIVE
                    ? "collective: expected false, since the order is not consecutive"
                : variable->nonblocking &&
                        (rows || stream->lookups.every_bytes > 0 || stream->flush_bytes + stream->sync_bytes > 0)
                    ? "nonblocking: expected false in files of each row, with lookups and with flush_bytes"
                : variable->depth > 1 &&
                        (rows || stream->lookups.every_bytes > 0 || variable->collective || variable->nonblocking)
                    ? "depth: expected none in files of each row, with lookups, collective and nonblocking"
                : variable->place && (rows || stream->in_turn) ? "at: expected none, since each rank has its own bytes"
                : variable->rule == UND_GRID && rows ? "split: expected even, runs or cyclic in files of each row"
                                                     : NULL;
            if (why)
                return und_strict_fail(at, "the variable %s: %s", variable->name, why);
        }
    return true;
}

/* In each step: open before moves, close behind them, unless the stream closes its files behind their last use. */
static bool check_order(struct und_strict *at, const struct und_stream *stream)
{
    const bool numbered = stream->own_set.numbered && !stream->stays_open && stream->source < 0;
    const bool rows = stream->own_set.owner == UND_EACH_ROW;
    bool is_open = false, opened = false; /* since the content began */
    for (int s = 0; s < stream->step_count; ++s)
        for (int i = 0; i < stream->steps[s].instruction_count; ++i) {
            const struct und_instruction *here = &stream->steps[s].instructions[i];
            const bool looks = here->code == UND_DO_MOVE || here->code == UND_DO_SYNC || here->code == UND_DO_CLOSE;
            if (looks && !is_open && (here->code != UND_DO_SYNC || here->described))
                return und_strict_fail(at, "steps[%d]: expected open before what moves, flushes or closes files", s);
            if (here->code == UND_DO_BEGIN && is_open && !stream->stays_open)
                return und_strict_fail(at, "steps[%d]: expected close before begin", s);
            if (here->code == UND_DO_CLOSE && stream->stays_open)
                return und_strict_fail(at, "steps[%d]: expected no close, since the stream has close_last", s);
            if (here->code == UND_DO_OPERATE && !is_open && !rows && und_step_has(&stream->steps[s], UND_DO_OPEN))
                return und_strict_fail(at, "steps[%d]: expected operate behind open, before close", s);
            if (here->code == UND_DO_BEGIN && !stream->own_set.numbered && stream->source < 0)
                return und_strict_fail(at, "steps[%d]: expected no begin, since the set has no index", s);
            opened = opened && here->code != UND_DO_BEGIN;
            if (here->code == UND_DO_OPEN && opened && numbered)
                return und_strict_fail(at, "steps[%d]: expected begin before files are opened again", s);
            opened = opened || here->code == UND_DO_OPEN;
            is_open = here->code == UND_DO_OPEN || (is_open && here->code != UND_DO_CLOSE);
        }
    return !is_open || stream->stays_open || und_strict_fail(at, "expected close, or close_last, behind open");
}

static bool has_other_than_calls(const struct und_stream *stream)
{
    bool other = stream->behind >= 0 || stream->source >= 0 || stream->stays_open;
    for (int s = 0; s < stream->step_count; ++s)
        for (int i = 0; i < stream->steps[s].instruction_count; ++i) {
            const enum und_code code = stream->steps[s].instructions[i].code;
            other = other || (code != UND_DO_CALLS && code != UND_DO_COMPUTE);
        }
    return other;
}

static bool has_moves(const struct und_stream *stream)
{
    for (int e = 0; e < stream->entry_count; ++e)
        if (stream->entries[e].variable_count > 0)
            return true;
    return false;
}

static bool check_rules(struct und_strict *at, const struct und_stream *stream)
{
    const bool rows = stream->own_set.owner == UND_EACH_ROW, reads = stream->operation == UND_READS;
    const bool looks_up = stream->lookups.every_bytes > 0, moves = has_moves(stream);
    const struct {
        bool wrong;
        const char *what;
    } rules[] = {
        {stream->in_turn && (rows || stream->own_set.owner == UND_EACH_RANK || stream->own_set.names > 0),
         "in_turn: expected a set of files of several ranks with the index k"},
        {stream->passes > 1 && !reads, "repeat: expected reads"},
        {looks_up && (reads || rows || stream->order.rule != UND_CONSECUTIVE),
         "lookups: expected writes in the order of their bytes to files of ranks"},
        {stream->flush_bytes + stream->sync_bytes > 0 && reads, "flush_bytes: expected writes"},
        {reads != (stream->opening == UND_OPEN_READ) && moves, "mode: expected read for reads, and another for writes"},
        {stream->stays_open && stream->own_set.numbered && !reads && moves && stream->opening != UND_OPEN_KEEP,
         "close_last: expected an open that keeps what is there"},
        {!stream->own_set.numbered && stream->source < 0 && !reads && moves && stream->opening != UND_OPEN_KEEP,
         "mode: expected keep, since the set has no index"},
        {rows && stream->stays_open, "close_last: expected false in files of each row"},
        {stream->stays_open && stream->own_set.names == 0 && stream->source < 0,
         "close_last: expected a set with an index that comes again, or none"},
        {stream->own_set.tree && has_other_than_calls(stream),
         "expected calls and compute alone with a set of callers"},
        {stream->chunk_bytes > UINT32_MAX, "chunk_bytes: expected at most 4294967295, since HDF5 has no larger chunks"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i)
        if (rules[i].wrong)
            return und_strict_fail(at, "%s", rules[i].what);
    return check_moves(at, stream) && check_order(at, stream);
}

/* -- streams ----------------------------------------------------------------------------------------------------- */

/* Those whose set another stream was the first to use: behind its bytes, or for what it wrote. */
static bool join(struct und_strict *at, const struct reader *reader, struct und_stream *streams, int s)
{
    struct und_stream *stream = &streams[s];
    const int base = stream->behind >= 0 ? stream->behind : stream->source;
    if (base < 0 || streams[base].set != stream->set)
        return und_strict_fail(at, "expected behind or last with a stream of the set %s, since others have used it",
                               reader->sets->all[reader->set].name);
    if (stream->source >= 0) {
        stream->own_set.numbered = true;
        stream->own_set.names = 1;
        stream->own_set.prepared = false;
        streams[base].notes_places = streams[base].notes_places || stream->notes_places;
        stream->notes_places = false;
        return und_dump_time(stream, 0) >= und_dump_time(&streams[base], 0) ||
               und_strict_fail(at, "expected steps at %g or later, when the stream %s begins",
                               und_dump_time(&streams[base], 0), streams[base].name);
    }
    if (streams[base].followed_by >= 0)
        return und_strict_fail(at, "expected behind with a stream that no other is behind");
    streams[base].followed_by = s;
    stream->has_backup = streams[base].has_backup;
    return stream->dump_count == streams[base].dump_count ||
           und_strict_fail(at, "expected %d dumps, as the stream %s that it is behind, found %d",
                           streams[base].dump_count, streams[base].name, stream->dump_count);
}

/* As far as its moves use them. */
static int files_of(const struct und_stream *stream)
{
    int files = 1;
    for (int e = 0; e < stream->entry_count; ++e)
        for (int v = 0; v < stream->entries[e].variable_count; ++v)
            files = stream->entries[e].variables[v].file >= files ? stream->entries[e].variables[v].file + 1 : files;
    return files;
}

static bool take_set(struct und_strict *at, struct reader *reader, struct und_stream *streams, int s)
{
    struct und_stream *stream = &streams[s];
    if (reader->set < 0)
        return und_strict_fail(at, "expected an open, or the key set");
    int *owner = &reader->sets->owners[reader->set];
    stream->own_set = reader->sets->all[reader->set];
    reader->sets->all[reader->set].tree = NULL; /* it is the stream's */
    stream->own_set.name = stream->set_name = und_text_copy(stream->own_set.name);
    stream->set = &stream->own_set;
    if (!stream->set_name)
        return und_strict_no_memory(at);
    if (*owner < 0) {
        *owner = s;
        if (stream->behind >= 0 || stream->source >= 0)
            return und_strict_fail(at, "expected neither behind nor last, since no stream has used the set before");
        return true;
    }
    stream->own_set.files = files_of(stream);
    stream->own_set.files_in_directory = reader->files_in_directory;
    stream->set = &streams[*owner].own_set;
    return join(at, reader, streams, s);
}

/* A call may ask for nothing. */
static int64_t largest_of(const struct und_call_list *calls)
{
    const int64_t largest = und_calls_largest(calls);
    return largest > 0 ? largest : 1;
}

static bool read_stream(struct und_strict *at, const json_t *value, struct reader *reader, struct und_stream *streams,
                        int s)
{
    static const char *const keys[] = {"name", "role", "method", "steps", NULL};
    static const char *const optional[] = {"content", "set", "behind", "last", "close_last", "files_per_directory",
                                           NULL};
    static const char *const roles[] = {"checkpoint", "visualization", "output", "restart", "input", NULL};
    struct und_stream *stream = &streams[s];
    const char *name, *method;
    int role;
    *stream = (struct und_stream){.behind = -1, .followed_by = -1, .source = -1, .passes = 1};
    stream->order = (struct und_order){.rule = UND_CONSECUTIVE, .step = 1};
    if (!und_strict_object_with(at, value, keys, optional) || !und_strict_identifier(at, value, "name", &name) ||
        !und_strict_choice(at, value, "role", roles, &role) || !und_strict_identifier(at, value, "method", &method) ||
        (json_object_get(value, "content") && !und_content_read(at, value, &stream->content)) ||
        (json_object_get(value, "set") && !use_set(at, value, "set", reader)) || !read_base(at, value, reader) ||
        !und_strict_flag_or_null(at, value, "close_last", &stream->stays_open) ||
        !und_strict_integer_or_null(at, value, "files_per_directory", 1, &reader->files_in_directory))
        return false;
    stream->role = (enum und_role)role;
    stream->name = und_text_copy(name);
    stream->method = und_text_copy(method);
    if (!stream->name || !stream->method)
        return und_strict_no_memory(at);
    if (!read_steps(at, value, reader) || !take_set(at, reader, streams, s))
        return false;
    /* One that moves nothing is known by its files. */
    const bool read =
        stream->opening == UND_OPEN_READ || stream->source >= 0 || reader->sets->all[reader->set].prepared;
    if (!reader->moves && read)
        stream->operation = UND_READS;
    for (const struct und_instruction *here = stream->instructions; here < reader->next; ++here)
        stream->has_backup = stream->has_backup || (here->code == UND_DO_REMOVE && here->backup);
    stream->transfer_bytes = 1;
    for (int e = stream->entry_count - 1; e >= 0; --e)
        if (stream->entries[e].calls.count > 0)
            stream->transfer_bytes = largest_of(&stream->entries[e].calls);
        else if (stream->entries[e].variable_count > 0)
            stream->transfer_bytes = stream->entries[e].variables[0].transfer_bytes;
    return check_rules(at, stream);
}

static bool read_all(struct und_strict *at, const json_t *array, struct sets *sets, json_t *numbers,
                     struct und_stream *streams, int *count)
{
    int64_t dumps = 0;
    for (; *count < (int)json_array_size(array);) {
        const int s = (*count)++;
        struct reader reader = {.stream = &streams[s], .sets = sets, .streams = numbers, .set = -1};
        const size_t here = und_strict_element(at, (size_t)s);
        if (!read_stream(at, json_array_get(array, (size_t)s), &reader, streams, s))
            return false;
        if (json_object_get(numbers, streams[s].name))
            return und_strict_fail(at, "the name %s is taken by a stream before it", streams[s].name);
        if (json_object_set_new(numbers, streams[s].name, json_integer(s)) != 0)
            return und_strict_no_memory(at);
        dumps += streams[s].dump_count;
        if (dumps > UND_MAX_DUMPS)
            return und_strict_fail(at, "expected at most %d dumps in all streams", UND_MAX_DUMPS);
        und_strict_up(at, here);
    }
    return true;
}

bool und_program_read(struct und_strict *at, const json_t *root, int64_t ranks, struct und_stream **streams, int *count)
{
    struct sets sets = {.ranks = ranks};
    const json_t *array;
    json_t *numbers = json_object();
    *count = 0;
    bool right = numbers && read_sets(at, root, &sets) && und_strict_array(at, root, "streams", 1, SIZE_MAX, &array);
    if (right) {
        const size_t mark = und_strict_key(at, "streams");
        *streams = calloc(json_array_size(array), sizeof **streams);
        right = *streams ? read_all(at, array, &sets, numbers, *streams, count) : und_strict_no_memory(at);
        if (right)
            und_strict_up(at, mark);
    }
    json_decref(numbers);
    json_decref(sets.numbers);
    for (int i = 0; i < sets.count; ++i)
        if (sets.all[i].tree)
            und_tree_free(sets.all[i].tree);
    free(sets.all);
    free(sets.owners);
    return right;
}
