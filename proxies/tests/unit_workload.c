/* The descriptor: what is read, and the message for every kind of error. */
#include "unit_test.h"
#include "workload/workload.h"

#include <jansson.h>
#include <sys/resource.h>

static const char base[] =
    "{'schema': 'understudy/workload/3', 'name': 'base', 'description': 'A base for tests.', 'ranks': 4,"
    " 'scaling': {'rule': 'none', 'from_ranks': 4}, 'runtime_s': 10.5, 'compute': 'busy',"
    " 'sets': [{'name': 'state', 'of': 'each group', 'groups': 2, 'files': 2},"
    "  {'name': 'input', 'of': 'each rank', 'index': 'none', 'prepared': true}],"
    " 'streams': ["
    "  {'name': 'state', 'role': 'checkpoint', 'method': 'posix',"
    "   'content': {'kind': 'random', 'compressibility': 0.25},"
    "   'steps': ["
    "    {'at': 1, 'lasting': 0.5, 'do': ['begin', {'open': 'state', 'mode': 'new'},"
    "      {'write': 'a', 'count': 3, 'type': 'f64', 'shape': [8, 6], 'transfer_bytes': 4096,"
    "       'split': {'rule': 'grid', 'grid': [2, 2]}},"
    "      {'write': 'b', 'type': 'i16', 'shape': [7], 'file': 1, 'transfer_bytes': 4096,"
    "       'split': {'rule': 'runs', 'runs': [[1, 4], [3, 1]]}}, 'sync', 'close']},"
    "    {'at': 2.5, 'do': ['begin', {'open': 'state', 'mode': 'new'},"
    "      {'write': 'a', 'count': 3, 'type': 'f64', 'shape': [8, 6], 'transfer_bytes': 4096,"
    "       'split': {'rule': 'grid', 'grid': [2, 2]}},"
    "      {'write': 'b', 'type': 'i16', 'shape': [7], 'file': 1, 'transfer_bytes': 4096,"
    "       'split': {'rule': 'runs', 'runs': [[1, 4], [3, 1]]}}, 'sync', 'close']}]},"
    "  {'name': 'input', 'role': 'input', 'method': 'hdf5', 'content': {'kind': 'smooth', 'compressibility': 0},"
    "   'close_last': true,"
    "   'steps': [{'at': 0, 'do': [{'open': 'input', 'mode': 'read'},"
    "      {'read': 'c', 'type': 'byte', 'shape': [100], 'transfer_bytes': 1, 'collective': true}]}]}],"
    " 'source': {'format': 'hand', 'version': '', 'reader': '', 'notes': ['none']},"
    " 'provenance': [{'path': '/streams', 'origin': 'assumed', 'confidence': 'guess', 'how': 'test'}]}";

/* JSON with apostrophes for quotation marks. */
static json_t *parse(const char *text)
{
    char *quoted = malloc(strlen(text) + 1);
    assert_non_null(quoted);
    for (size_t i = 0; i <= strlen(text); ++i)
        quoted[i] = (char)(text[i] == '\'' ? '"' : text[i]);
    json_t *value = json_loads(quoted, JSON_DECODE_ANY, NULL);
    free(quoted);
    assert_non_null(value);
    return value;
}

static struct und_workload *read_value(const json_t *root, struct und_error *error)
{
    char *text = json_dumps(root, JSON_ENCODE_ANY);
    assert_non_null(text);
    error->text[0] = '\0';
    struct und_workload *workload = und_workload_read(text, strlen(text), "w.json", error);
    free(text);
    return workload;
}

/* Sets the value at a path such as streams/0/name; NULL removes it. */
static void change(json_t *root, const char *path, const char *value)
{
    char steps[256];
    snprintf(steps, sizeof steps, "%s", path);
    json_t *at = root;
    char *step = steps;
    for (char *slash; (slash = strchr(step, '/')); step = slash + 1) {
        *slash = '\0';
        at = json_is_array(at) ? json_array_get(at, (size_t)atoll(step)) : json_object_get(at, step);
        assert_non_null(at);
    }
    if (json_is_array(at))
        assert_int_equal(json_array_set_new(at, (size_t)atoll(step), parse(value)), 0);
    else if (value)
        assert_int_equal(json_object_set_new(at, step, parse(value)), 0);
    else
        assert_int_equal(json_object_del(at, step), 0);
}

TEST(test_base)
{
    struct und_error error;
    json_t *root = parse(base);
    struct und_workload *workload = read_value(root, &error);
    if (!workload)
        fail_msg("%s", error.text);
    assert_string_equal(workload->name, "base");
    assert_int_equal(workload->ranks, 4);
    assert_int_equal(workload->compute, UND_BUSY);
    assert_int_equal(workload->stream_count, 2);
    const struct und_stream *stream = &workload->streams[0];
    assert_int_equal(stream->role, UND_CHECKPOINT);
    assert_int_equal(stream->set->owner, UND_EACH_GROUP);
    assert_int_equal(stream->set->groups, 2);
    assert_int_equal(stream->set->files, 2);
    assert_true(stream->sync && !und_stream_grows(stream));
    assert_false(stream->in_turn);
    assert_int_equal(stream->content.kind, UND_RANDOM);
    assert_true(stream->content.compressibility == 0.25);
    assert_int_equal(stream->dump_count, 2);
    assert_true(und_dump_time(stream, 1) == 2.5);
    assert_int_equal(stream->entries[0].described_bytes, 3 * 8 * 6 * 8 + 7 * 2);
    assert_false(stream->entries[0].repeats);
    assert_true(stream->entries[1].repeats && stream->entries[1].variables == stream->entries[0].variables);
    const struct und_variable *variable = &stream->entries[0].variables[1];
    assert_int_equal(variable->rule, UND_RUNS);
    assert_int_equal(variable->runs[1].ranks, 3);
    assert_int_equal(variable->runs[1].rows, 1);
    assert_int_equal(workload->streams[1].set->groups, 4);
    assert_int_equal(workload->streams[1].operation, UND_READS);
    assert_true(und_stream_grows(&workload->streams[1]));
    und_workload_free(workload);
    json_decref(root);
}

#define STEP "streams/0/steps/0/"
#define VARIABLE STEP "do/2/"
#define IN_STEP "w.json: streams[0].steps[0]"
#define IN_VARIABLE IN_STEP ".do[2]"
#define NAME_RULE \
    "expected a name of at most 100 letters, digits, '_', '.' and '-' that begins with a letter or digit, "

TEST(test_invalid_input)
{
    static const struct {
        const char *path, *value, *message;
    } cases[] = {
        {"schema", "'understudy/workload/4'",
         "w.json: schema: expected \"understudy/workload/3\", found \"understudy/workload/4\""},
        {"schema", "'understudy/workload/2'",
         "w.json: schema: expected \"understudy/workload/3\", found \"understudy/workload/2\"; convert the file with: "
         "understudy describe w.json -o NEW.json"},
        {"schema", NULL, "w.json: the key \"schema\" is missing"},
        {"speed", "1",
         "w.json: unknown key \"speed\", expected schema, name, description, ranks, scaling, runtime_s, compute, sets, "
         "streams, source, provenance, labels or overheads"},
        {"name", "'a b'", "w.json: name: " NAME_RULE "found \"a b\""},
        {"name", "''", "w.json: name: " NAME_RULE "found \"\""},
        {"name", "'../x'", "w.json: name: " NAME_RULE "found \"../x\""},
        {"name", "7", "w.json: name: " NAME_RULE "found 7"},
        {"description", "null", "w.json: description: expected a string, found null"},
        {"ranks", "0", "w.json: ranks: expected an integer from 1 to 2147483647, found 0"},
        {"ranks", "4.0", "w.json: ranks: expected an integer from 1 to 2147483647, found 4"},
        {"ranks", "'4'", "w.json: ranks: expected an integer from 1 to 2147483647, found \"4\""},
        {"scaling", "[]", "w.json: scaling: expected an object with the keys rule and from_ranks, found an array"},
        {"scaling/rule", "'more'", "w.json: scaling.rule: expected none, strong or weak, found \"more\""},
        {"scaling/from_ranks", "8", "w.json: scaling: from_ranks is 8, expected 4 as in ranks for the rule none"},
        {"runtime_s", "-1", "w.json: runtime_s: expected seconds, a number of at least 0, found -1"},
        {"compute", "'think'", "w.json: compute: expected sleep, busy or stencil, found \"think\""},
        {"streams", "[]", "w.json: streams: expected at least 1 element, found 0"},
        {"streams", "{}", "w.json: streams: expected an array, found an object"},
        {"streams/1", "3",
         "w.json: streams[1]: expected an object with the keys name, role, method and steps, found 3"},
        {"streams/1/name", "'state'", "w.json: streams[1]: the name state is taken by a stream before it"},
        {"streams/0/role", "'backup'",
         "w.json: streams[0].role: expected checkpoint, visualization, output, restart or input, found \"backup\""},
        {"sets/0/of", "'n-1'",
         "w.json: sets[0].of: expected all ranks, each rank, each group, each row or callers, found \"n-1\""},
        {"sets/0/groups", "5", "w.json: sets[0].groups: expected an integer from 1 to 4, found 5"},
        {"sets/0/groups", NULL, "w.json: sets[0].groups: expected an integer from 1 to 4, found nothing"},
        {"sets/1/groups", "2", "w.json: sets[1].groups: expected none, since the files are not of each group"},
        {"sets/0/index", "'odd'", "w.json: sets[0].index: expected \"k\", \"none\", or n for k modulo n"},
        {"sets/0/index", "0", "w.json: sets[0].index: expected an integer from 1 to 1024, found 0"},
        {"sets/0/files", "1025", "w.json: sets[0].files: expected at most 1024, found 1025"},
        {"sets/1/name", "'state'", "w.json: sets[1]: the name state is taken by a set before it"},
        {"streams/1/close_last", "1", "w.json: streams[1].close_last: expected true or false, found 1"},
        {"streams/0/content", "'random'",
         "w.json: streams[0].content: expected an object with the keys kind and compressibility, found \"random\""},
        {"streams/0/content/kind", "'noise'",
         "w.json: streams[0].content.kind: expected random, zero, constant or smooth, found \"noise\""},
        {"streams/0/content/kind", "'zero'",
         "w.json: streams[0].content.compressibility: expected 0, since the kind is zero and not random"},
        {"streams/0/content/compressibility", "1.5",
         "w.json: streams[0].content.compressibility: expected a number from 0 to 1, found 1.5"},
        {"streams/0/steps", "[]", "w.json: streams[0].steps: expected 1 to 10000000 elements, found 0"},
        {"streams/0/steps/1/at", "0.5",
         "w.json: streams[0].steps[1]: at is 0.5, expected at least the time of the step before"},
        {"streams/0/steps/1/at", "'1'",
         "w.json: streams[0].steps[1].at: expected seconds, a number of at least 0, found \"1\""},
        {STEP "repeat", "2", IN_STEP ".every: expected seconds, a number of at least 0, found nothing"},
        {STEP "do", "[]", IN_STEP ".do: expected at least 1 element, found 0"},
        {STEP "do/0", "'start'", IN_STEP ".do[0]: unknown instruction \"start\""},
        {STEP "do/0", "{'wait': [[3, 1]]}", IN_STEP ".do[0].wait: the ranks add up to 3, expected 4 as in ranks"},
        {STEP "do/0", "{'wait': [[4, 0], [1, 1]]}",
         IN_STEP ".do[0].wait[1]: the ranks add up to more than the 4 of ranks"},
        {STEP "do/0", "{'wait': [4]}",
         IN_STEP ".do[0].wait[0]: expected an integer and a number, [ranks, seconds of each]"},
        {STEP "do/0", "{'compute': -1}", IN_STEP ".do[0].compute: expected seconds, a number of at least 0, found -1"},
        {STEP "do/0", "{'operate': 'link', 'runs': [[4, 1]]}",
         IN_STEP ".do[0].operate: expected open, stat, create, mkdir, rename, unlink, sync or seek, found \"link\""},
        {STEP "do/0", "{'operate': 'stat', 'runs': [[3, 1]]}",
         IN_STEP ".do[0].runs: the ranks add up to 3, expected 4 as in ranks"},
        {STEP "do/1/mode", "'w'", IN_STEP ".do[1].mode: expected new, truncate, keep or read, found \"w\""},
        {STEP "do/1/open", "'x'", IN_STEP ".do[1].open: expected the name of a set, found \"x\""},
        {STEP "do/1/open", "'input'",
         "w.json: streams[0].steps[1].do[1].open: expected input, the set that the stream "
         "has used before"},
        {STEP "do/1/behind", "'input'",
         IN_STEP ".do[1].behind: expected the name of a stream before it, found \"input\""},
        {STEP "do/3", "{'read': 'b', 'type': 'i16', 'shape': [7], 'transfer_bytes': 1}",
         IN_STEP ".do[3]: expected a write in the order of those before it in the stream, which flushes and looks up "
                 "as they do"},
        {VARIABLE "count", "0", IN_VARIABLE ".count: expected an integer of at least 1, found 0"},
        {VARIABLE "type", "'f16'",
         IN_VARIABLE ".type: expected byte, i8, u8, i16, u16, i32, u32, i64, u64, f32 or f64, found \"f16\""},
        {VARIABLE "shape", "[]", IN_VARIABLE ".shape: expected 1 to 8 elements, found 0"},
        {VARIABLE "shape", "[1,1,1,1,1,1,1,1,1]", IN_VARIABLE ".shape: expected 1 to 8 elements, found 9"},
        {VARIABLE "shape", "[8, 0]", IN_VARIABLE ".shape[1]: expected an integer of at least 1, found 0"},
        {VARIABLE "shape", "[8]", IN_VARIABLE ".split: the grid has 2 dimensions, expected 1 as in the shape"},
        {VARIABLE "shape", "[9000000000000000000, 6]",
         IN_STEP ": the steps up to here have more than 9223372036854775807 bytes"},
        {VARIABLE "split/grid", "[2, 3]", IN_VARIABLE ".split: the product of the grid is 6, expected 4 as in ranks"},
        {VARIABLE "split", "{'rule': 'even', 'grid': [4]}", IN_VARIABLE ".split: unknown key \"grid\", expected rule"},
        {VARIABLE "split", "{'rule': 'odd'}",
         IN_VARIABLE ".split.rule: expected even, grid, runs or cyclic, found \"odd\""},
        {VARIABLE "split", "'even'",
         IN_VARIABLE ".split: expected an object with the key \"rule\": even, grid, runs or cyclic"},
        {VARIABLE "split", "{'rule': 'runs', 'runs': [[4, 3]]}",
         IN_VARIABLE ".split.runs[0]: the rows add up to more than 8"},
        {VARIABLE "split", "{'rule': 'runs', 'runs': [[4, 1]]}",
         IN_VARIABLE ".split: the rows add up to 4, expected 8 as in shape[0]"},
        {VARIABLE "split", "{'rule': 'runs', 'runs': [[3, 1]]}",
         IN_VARIABLE ".split.runs: the ranks add up to 3, expected 4 as in ranks"},
        {VARIABLE "split", "{'rule': 'runs', 'runs': [[4, 1], [1, 4]]}",
         IN_VARIABLE ".split.runs[1]: the ranks add up to more than the 4 of ranks"},
        {VARIABLE "split", "{'rule': 'runs', 'runs': [[4]]}",
         IN_VARIABLE ".split.runs[0]: expected two integers, [ranks, rows of each]"},
        {VARIABLE "split", "{'rule': 'runs', 'runs': [[0, 8]]}",
         IN_VARIABLE ".split.runs[0]: expected at least 1 rank and at least 0 rows, found [0, 8]"},
        {VARIABLE "transfer_bytes", "0", IN_VARIABLE ".transfer_bytes: expected an integer of at least 1, found 0"},
        {VARIABLE "transfer_bytes", "4.5", IN_VARIABLE ".transfer_bytes: expected an integer of at least 1, found 4.5"},
        {VARIABLE "collective", "1", IN_VARIABLE ".collective: expected true or false, found 1"},
        {VARIABLE "transfer", "1",
         IN_VARIABLE ": unknown key \"transfer\", expected write, type, shape, transfer_bytes, split, count, file, at, "
                     "collective, nonblocking, depth, order, flush_bytes, to_system or lookups"},
        {VARIABLE "lookups", "{'every_bytes': 1, 'calls': 0, 'transfer_bytes': 1}",
         IN_VARIABLE ".lookups.calls: expected a number above 0 and at most 1000000, found 0"},
        {VARIABLE "order", "{'rule': 'strided', 'step': 0}",
         IN_VARIABLE ".order.step: expected an integer of at least 1, found 0"},
        {VARIABLE "file", "1024", IN_VARIABLE ".file: expected an integer from 0 to 1023, found 1024"},
        {VARIABLE "write", "'b'", IN_STEP "[1]: the name b is taken by a variable before it"},
        {STEP "do/3/write", "'a_2'", IN_STEP "[1]: the name a_2 is also that of number 2 of the 3 variables a"},
        {"source/notes", "[1]", "w.json: source.notes[0]: expected a string"},
        {"source/path", "'/home'", "w.json: source: unknown key \"path\", expected format, version, reader or notes"},
        {"provenance/0/path", "'streams'",
         "w.json: provenance[0]: path is \"streams\", expected a JSON pointer that begins with /"},
        {"provenance/0/how", "''",
         "w.json: provenance[0]: how is empty, expected the counter, the equation or the reason"},
        {"provenance/0/origin", "'guessed'",
         "w.json: provenance[0].origin: expected read, derived, reconstructed or assumed, found \"guessed\""},
    };
    for (size_t i = 0; i < COUNT(cases); ++i) {
        struct und_error error;
        json_t *root = parse(base);
        change(root, cases[i].path, cases[i].value);
        assert_null(read_value(root, &error));
        assert_string_equal(error.text, cases[i].message);
        json_decref(root);
    }
}

TEST(test_not_json)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "w.json: line 1, column 0: not valid JSON: '[' or '{' expected near end of file"},
        {"{\"ranks\": 1, \"ranks\": 2}",
         "w.json: line 1, column 20: not valid JSON: duplicate object key near '\"ranks\"'"},
        {"[]",
         "w.json: expected an object with the keys schema, name, description, ranks, scaling, runtime_s, compute, "
         "sets, streams, source and provenance, found an array"},
        {"{} x", "w.json: line 1, column 4: not valid JSON: end of file expected near 'x'"},
    };
    for (size_t i = 0; i < COUNT(cases); ++i) {
        struct und_error error;
        assert_null(und_workload_read(cases[i].text, strlen(cases[i].text), "w.json", &error));
        assert_string_equal(error.text, cases[i].message);
    }
}

/* What can be written down, but is no program that the player can carry out. */
TEST(test_rules)
{
    static const struct {
        const char *path, *value, *message;
    } cases[] = {
        {STEP "do/5", "'sync'", "w.json: streams[0]: steps[1]: expected close before begin"},
        {STEP "do/1", "'sync'",
         "w.json: streams[0]: steps[0]: expected open before what moves, flushes or closes files"},
        {STEP "do/4", "{'repeat': 2, 'do': ['sync']}", "w.json: streams[0]: repeat: expected reads"},
        {STEP "do/4", "{'in_turn': ['sync']}",
         "w.json: streams[0].steps[0].do[4].in_turn: expected the open of the step in it, since ranks open one after "
         "the other"},
        {"streams/1/steps/0/do/0/mode", "'keep'",
         "w.json: streams[1]: mode: expected read for reads, and another for "
         "writes"},
        {"streams/1/steps/0/do/0/chunk_bytes", "4294967296",
         "w.json: streams[1]: chunk_bytes: expected at most 4294967295, since HDF5 has no larger chunks"},
        {"sets/0/files", "1", "w.json: streams[0]: the variable b: file: expected one of the set"},
        {"sets/0/of", "'each row'", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); ++i) {
        struct und_error error;
        json_t *root = parse(base);
        change(root, cases[i].path, cases[i].value);
        struct und_workload *workload = read_value(root, &error);
        assert_string_equal(workload ? cases[i].path : "none", "none");
        if (cases[i].message)
            assert_string_equal(error.text, cases[i].message);
        und_workload_free(workload);
        json_decref(root);
    }
}

TEST(test_ranks_that_are_late)
{
    static const double expected_s[] = {0, 0, 0.5, 2};
    struct und_error error;
    json_t *root = parse(base);
    json_t *stream_row = json_array_get(json_object_get(root, "streams"), 0);
    json_t *body = json_object_get(json_array_get(json_object_get(stream_row, "steps"), 0), "do");
    json_array_insert_new(body, 1, parse("{'wait': [[2, 0], [1, 0.5], [1, 2]]}"));
    struct und_workload *workload = read_value(root, &error);
    assert_non_null(workload);
    const struct und_stream *stream = &workload->streams[0];
    for (int64_t rank = 0; rank < 4; ++rank)
        assert_true(und_skew_of(&stream->entries[0].skew, rank) == expected_s[rank]);
    assert_true(und_skew_last(&stream->entries[0].skew) == 2);
    assert_true(und_skew_last(&stream->entries[1].skew) == 0);
    assert_non_null(und_step_has(&stream->steps[0], UND_DO_SKEW));
    assert_null(und_step_has(&stream->steps[1], UND_DO_SKEW));
    und_workload_free(workload);
    json_decref(root);
}

/* Many times a number that is allowed alone is refused before memory is taken for it. */
TEST(test_too_many_dumps)
{
    struct und_error error;
    struct rusage before, after;
    json_t *root = parse(base), *streams = json_object_get(root, "streams");
    json_array_remove(json_object_get(json_array_get(streams, 0), "steps"), 1);
    change(root, STEP "repeat", "10000000");
    change(root, STEP "every", "0.001");
    for (int s = 0; s < 20; ++s) {
        json_t *twin = json_deep_copy(json_array_get(streams, 0));
        char name[32];
        snprintf(name, sizeof name, "twin%d", s);
        json_object_set_new(twin, "name", json_string(name));
        json_array_append_new(streams, twin);
    }
    getrusage(RUSAGE_SELF, &before);
    assert_null(read_value(root, &error));
    getrusage(RUSAGE_SELF, &after);
    assert_string_equal(error.text, "w.json: streams[1]: expected at most 10000000 dumps in all streams");
    assert_true(after.ru_maxrss - before.ru_maxrss < 100000);
    json_decref(root);
}

TEST(test_loops_and_operations)
{
    struct und_error error;
    json_t *root = parse(base);
    change(root, "sets/0/index", "2");
    for (int step = 0; step < 2; ++step)
        for (int move = 2; move < 4; ++move) {
            char path[64];
            snprintf(path, sizeof path, "streams/0/steps/%d/do/%d/order", step, move);
            change(root, path, "{'rule': 'strided', 'step': 3}");
            snprintf(path, sizeof path, "streams/0/steps/%d/do/%d/flush_bytes", step, move);
            change(root, path, "4096");
        }
    for (int step = 0; step < 2; ++step)
        change(root, step == 0 ? STEP "do/1/mode" : "streams/0/steps/1/do/1/mode", "'truncate'");
    change(root, STEP "repeat", "3");
    change(root, STEP "every", "0.5");
    change(root, "streams/0/steps/1/do", "['begin', {'operate': 'mkdir', 'runs': [[1, 7], [3, 0]]}]");
    change(root, "streams/1/steps/0/do/1",
           "{'repeat': 2, 'do': [{'read': 'c', 'type': 'byte', 'shape': [100], 'transfer_bytes': 1}]}");
    struct und_workload *workload = read_value(root, &error);
    if (!workload)
        fail_msg("%s", error.text);
    const struct und_stream *stream = &workload->streams[0];
    assert_true(und_stream_rewrites(stream) && !und_stream_updates(stream) && !stream->stays_open);
    assert_null(und_step_has(&stream->steps[0], UND_DO_SPREAD));
    assert_int_equal(stream->set->names, 2);
    assert_int_equal(stream->order.step, 3);
    assert_int_equal(stream->sync_bytes, 4096);
    assert_int_equal(stream->behind, -1);
    assert_int_equal(stream->dump_count, 4);
    assert_true(und_dump_time(stream, 2) == 2.0 && und_dump_of(stream, 2)->duration_s == 0.5);
    assert_true(und_dump_of(stream, 2)->variables == und_dump_of(stream, 0)->variables);
    assert_int_equal(und_dump_of(stream, 3)->variable_count, 0);
    assert_int_equal(und_dump_of(stream, 3)->operations[0].operation, UND_MKDIR);
    assert_int_equal(und_dump_of(stream, 3)->operations[0].runs[0].rows, 7);
    assert_int_equal(und_stream_set(stream, 3), 1);
    assert_int_equal(workload->streams[1].entries[0].described_bytes, 200);
    und_workload_free(workload);
    json_decref(root);
}

/* Names that only look like numbered ones are allowed. */
TEST(test_similar_names)
{
    static const char *const names[] = {"'a_3'", "'a_02'", "'a_x'", "'a_'", "'_a'", "'aa_0'", "'a_-1'"};
    for (size_t i = 0; i < COUNT(names); ++i) {
        struct und_error error;
        json_t *root = parse(base);
        change(root, STEP "do/3/write", names[i]);
        struct und_workload *workload = read_value(root, &error);
        assert_true((workload != NULL) == (names[i][1] != '_'));
        und_workload_free(workload);
        json_decref(root);
    }
}

TEST(test_scale)
{
    static const struct {
        double factor;
        int64_t a, b, first_run, c;
    } cases[] = {{2, 16, 14, 8, 200}, {0.5, 4, 5, 2, 50}, {0.001, 1, 1, 1, 1}, {1.3, 10, 8, 5, 130}};
    for (size_t i = 0; i < COUNT(cases); ++i) {
        struct und_error error;
        json_t *root = parse(base);
        struct und_workload *workload = read_value(root, &error);
        int64_t raised;
        assert_true(und_workload_scale(workload, cases[i].factor, &raised, &error));
        const struct und_dump *dumps = workload->streams[0].entries;
        const struct und_variable *runs = &dumps[0].variables[1];
        int64_t rows = 0, ranks = 0;
        for (int r = 0; r < runs->run_count; ++r) {
            rows += runs->runs[r].ranks * runs->runs[r].rows;
            ranks += runs->runs[r].ranks;
        }
        assert_int_equal(dumps[0].variables[0].shape[0], cases[i].a);
        assert_int_equal(dumps[0].variables[0].shape[1], 6);
        assert_int_equal(runs->shape[0], cases[i].b);
        assert_int_equal(rows, cases[i].b);
        assert_int_equal(ranks, workload->ranks);
        assert_int_equal(runs->runs[0].rows, cases[i].first_run);
        assert_int_equal(workload->streams[1].entries[0].variables[0].shape[0], cases[i].c);
        assert_int_equal(dumps[1].described_bytes, 3 * 8 * 6 * 8 + 7 * 2);
        assert_int_equal(und_dump_bytes(&dumps[1]), 3 * cases[i].a * 6 * 8 + cases[i].b * 2);
        assert_true((raised > 0) == (cases[i].factor < 0.1));
        und_workload_free(workload);
        json_decref(root);
    }
}

RUN(T(test_base), T(test_invalid_input), T(test_not_json), T(test_rules), T(test_similar_names), T(test_scale),
    T(test_ranks_that_are_late), T(test_too_many_dumps), T(test_loops_and_operations))
