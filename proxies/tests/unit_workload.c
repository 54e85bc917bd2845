/* The descriptor: what is read, and the message for every kind of error. */
#include "core/workload.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

static const char base[] =
    "{'schema': 'understudy/workload/2', 'name': 'base', 'description': 'A base for tests.', 'ranks': 4,"
    " 'scaling': {'rule': 'none', 'from_ranks': 4}, 'runtime_s': 10.5, 'compute': 'busy',"
    " 'streams': ["
    "  {'name': 'state', 'label': '', 'role': 'checkpoint', 'operation': 'write', 'files': 'new',"
    "   'layout': 'grouped', 'groups': 2, 'method': 'posix', 'transfer_bytes': 4096, 'collective': false, 'sync': true,"
    "   'turns': false, 'content': {'kind': 'random', 'compressibility': 0.25},"
    "   'dumps': ["
    "    {'time_s': 1, 'duration_s': 0.5, 'overhead_bytes': 2048, 'variables': ["
    "      {'name': 'a', 'label': '', 'count': 3, 'type': 'f64', 'shape': [8, 6], 'file': 0,"
    "       'decomposition': {'rule': 'grid', 'grid': [2, 2]}},"
    "      {'name': 'b', 'label': '', 'count': 1, 'type': 'i16', 'shape': [7], 'file': 1,"
    "       'decomposition': {'rule': 'runs', 'runs': [[1, 4], [3, 1]]}}]},"
    "    {'time_s': 2.5, 'duration_s': null, 'overhead_bytes': null, 'variables': ["
    "      {'name': 'a', 'label': '', 'count': 3, 'type': 'f64', 'shape': [8, 6], 'file': 0,"
    "       'decomposition': {'rule': 'grid', 'grid': [2, 2]}},"
    "      {'name': 'b', 'label': '', 'count': 1, 'type': 'i16', 'shape': [7], 'file': 1,"
    "       'decomposition': {'rule': 'runs', 'runs': [[1, 4], [3, 1]]}}]}]},"
    "  {'name': 'input', 'label': 'x', 'role': 'input', 'operation': 'read', 'files': 'append',"
    "   'layout': 'file-per-process', 'groups': null, 'method': 'hdf5', 'transfer_bytes': 1, 'collective': true,"
    "   'sync': false, 'turns': false, 'content': {'kind': 'smooth', 'compressibility': 0},"
    "   'dumps': [{'time_s': 0, 'duration_s': null, 'overhead_bytes': null, 'variables': ["
    "      {'name': 'c', 'label': '', 'count': 1, 'type': 'byte', 'shape': [100], 'file': 0,"
    "       'decomposition': {'rule': 'even'}}]}]}],"
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

static void test_base(void **state)
{
    struct und_error error;
    json_t *root = parse(base);
    struct und_workload *workload = read_value(root, &error);
    (void)state;
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
    assert_true(stream->sync && !stream->collective && !und_stream_grows(stream));
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

/* A variable is moved as its stream, unless it says otherwise. */
static void test_calls_of_a_variable(void **state)
{
    struct und_error error;
    json_t *root = parse(base);
    change(root, "streams/0/dumps/0/variables/0/transfer_bytes", "512");
    change(root, "streams/0/dumps/0/variables/0/collective", "true");
    change(root, "streams/0/dumps/0/variables/1/transfer_bytes", "null");
    change(root, "streams/0/dumps/0/variables/1/collective", "null");
    struct und_workload *workload = read_value(root, &error);
    (void)state;
    if (!workload)
        fail_msg("%s", error.text);
    const struct und_dump *dumps = workload->streams[0].entries;
    assert_int_equal(dumps[0].variables[0].transfer_bytes, 512);
    assert_true(dumps[0].variables[0].collective);
    assert_int_equal(dumps[0].variables[1].transfer_bytes, 4096);
    assert_false(dumps[0].variables[1].collective);
    assert_false(dumps[1].repeats);
    assert_int_equal(dumps[1].variables[0].transfer_bytes, 4096);
    assert_true(workload->streams[1].entries[0].variables[0].collective);
    und_workload_free(workload);

    change(root, "streams/0/turns", "true");
    assert_null(read_value(root, &error));
    assert_string_equal(error.text, "w.json: streams[0].dumps[0].variables[0].collective: expected false, since the "
                                    "ranks of the stream take turns");
    json_decref(root);
}

#define VARIABLE "streams/0/dumps/0/variables/0/"
#define IN_VARIABLE "w.json: streams[0].dumps[0].variables[0]"
#define NAME_RULE \
    "expected a name of at most 100 letters, digits, '_', '.' and '-' that begins with a letter or digit, "

static void test_invalid_input(void **state)
{
    static const struct {
        const char *path, *value, *message;
    } cases[] = {
        {"schema", "'understudy/workload/4'",
         "w.json: schema: expected understudy/workload/2 or understudy/workload/3, found \"understudy/workload/4\""},
        {"schema", "'understudy/workload/1'",
         "w.json: schema: expected \"understudy/workload/2\", found \"understudy/workload/1\"; convert the file with: "
         "understudy migrate w.json"},
        {"schema", NULL, "w.json: the key \"schema\" is missing"},
        {"speed", "1",
         "w.json: unknown key \"speed\", expected schema, name, description, ranks, scaling, runtime_s, compute, "
         "streams, "
         "source or provenance"},
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
         "w.json: streams[1]: expected an object with the keys name, label, role, operation, files, layout, groups, "
         "method, transfer_bytes, collective, sync, turns, content and dumps, found 3"},
        {"streams/1/name", "'state'", "w.json: streams[1]: the name state is taken by streams[0]"},
        {"streams/0/role", "'backup'",
         "w.json: streams[0].role: expected checkpoint, visualization, output, restart or input, found \"backup\""},
        {"streams/0/operation", "'append'", "w.json: streams[0].operation: expected write or read, found \"append\""},
        {"streams/0/files", "'old'",
         "w.json: streams[0].files: expected new, append, rewrite or update, found \"old\""},
        {"streams/0/layout", "'n-1'",
         "w.json: streams[0].layout: expected shared, file-per-process, grouped or flood, found \"n-1\""},
        {"streams/0/groups", "5", "w.json: streams[0].groups: expected an integer from 1 to 4, found 5"},
        {"streams/0/groups", "null", "w.json: streams[0].groups: expected an integer from 1 to 4, found null"},
        {"streams/1/groups", "2", "w.json: streams[1].groups: expected null, since the layout is not grouped"},
        {"streams/0/transfer_bytes", "0",
         "w.json: streams[0].transfer_bytes: expected an integer of at least 1, found 0"},
        {"streams/0/collective", "1", "w.json: streams[0].collective: expected true or false, found 1"},
        {"streams/0/sync", NULL, "w.json: streams[0]: the key \"sync\" is missing"},
        {"streams/0/turns", "1", "w.json: streams[0].turns: expected true or false, found 1"},
        {"streams/1/turns", "true",
         "w.json: streams[1].turns: expected false, since no ranks share a file in the layout file-per-process"},
        {"streams/0/content", "'random'",
         "w.json: streams[0].content: expected an object with the keys kind and compressibility, found \"random\""},
        {"streams/0/content/kind", "'noise'",
         "w.json: streams[0].content.kind: expected random, zero, constant or smooth, found \"noise\""},
        {"streams/0/content/kind", "'zero'",
         "w.json: streams[0].content.compressibility: expected 0, since the kind is zero and not random"},
        {"streams/0/content/compressibility", "1.5",
         "w.json: streams[0].content.compressibility: expected a number from 0 to 1, found 1.5"},
        {"streams/0/content/compressibility", "null",
         "w.json: streams[0].content.compressibility: expected a number from 0 to 1, found null"},
        {"streams/0/dumps", "[]", "w.json: streams[0].dumps: expected at least 1 element, found 0"},
        {"streams/0/dumps/1/time_s", "0.5",
         "w.json: streams[0].dumps[1]: time_s is 0.5, expected at least the 1 of the dump before"},
        {"streams/0/dumps/1/time_s", "'1'",
         "w.json: streams[0].dumps[1].time_s: expected seconds, a number of at least 0, found \"1\""},
        {"streams/0/dumps/0/overhead_bytes", "1.5",
         "w.json: streams[0].dumps[0].overhead_bytes: expected an integer, found 1.5"},
        {"streams/0/dumps/0/variables", "[]",
         "w.json: streams[0].dumps[0].variables: expected at least 1 element, found 0"},
        {VARIABLE "count", "0", IN_VARIABLE ".count: expected an integer of at least 1, found 0"},
        {VARIABLE "type", "'f16'",
         IN_VARIABLE ".type: expected byte, i8, u8, i16, u16, i32, u32, i64, u64, f32 or f64, found \"f16\""},
        {VARIABLE "shape", "[]", IN_VARIABLE ".shape: expected 1 to 8 elements, found 0"},
        {VARIABLE "shape", "[1,1,1,1,1,1,1,1,1]", IN_VARIABLE ".shape: expected 1 to 8 elements, found 9"},
        {VARIABLE "shape", "[8, 0]", IN_VARIABLE ".shape[1]: expected an integer of at least 1, found 0"},
        {VARIABLE "shape", "[8]", IN_VARIABLE ".decomposition: the grid has 2 dimensions, expected 1 as in the shape"},
        {VARIABLE "shape", "[9000000000000000000, 6]",
         "w.json: streams[0].dumps[0]: the dump has more than 9223372036854775807 bytes"},
        {VARIABLE "decomposition/grid", "[2, 3]",
         IN_VARIABLE ".decomposition: the product of the grid is 6, expected 4 as in ranks"},
        {VARIABLE "decomposition", "{'rule': 'even', 'grid': [4]}",
         IN_VARIABLE ".decomposition: unknown key \"grid\", expected rule"},
        {VARIABLE "decomposition", "{'rule': 'odd'}",
         IN_VARIABLE ".decomposition.rule: expected even, grid, runs or cyclic, found \"odd\""},
        {VARIABLE "decomposition", "'even'",
         IN_VARIABLE ".decomposition: expected an object with the key \"rule\": even, grid, runs or cyclic"},
        {VARIABLE "decomposition", "{'rule': 'runs', 'runs': [[4, 3]]}",
         IN_VARIABLE ".decomposition.runs[0]: the rows add up to more than 8"},
        {VARIABLE "decomposition", "{'rule': 'runs', 'runs': [[4, 1]]}",
         IN_VARIABLE ".decomposition: the rows add up to 4, expected 8 as in shape[0]"},
        {VARIABLE "decomposition", "{'rule': 'runs', 'runs': [[3, 1]]}",
         IN_VARIABLE ".decomposition.runs: the ranks add up to 3, expected 4 as in ranks"},
        {VARIABLE "decomposition", "{'rule': 'runs', 'runs': [[4, 1], [1, 4]]}",
         IN_VARIABLE ".decomposition.runs[1]: the ranks add up to more than the 4 of ranks"},
        {VARIABLE "decomposition", "{'rule': 'runs', 'runs': [[4]]}",
         IN_VARIABLE ".decomposition.runs[0]: expected two integers, [ranks, rows of each]"},
        {VARIABLE "decomposition", "{'rule': 'runs', 'runs': [[0, 8]]}",
         IN_VARIABLE ".decomposition.runs[0]: expected at least 1 rank and at least 0 rows, found [0, 8]"},
        {VARIABLE "transfer_bytes", "0", IN_VARIABLE ".transfer_bytes: expected an integer of at least 1, found 0"},
        {VARIABLE "transfer_bytes", "4.5", IN_VARIABLE ".transfer_bytes: expected an integer of at least 1, found 4.5"},
        {VARIABLE "collective", "1", IN_VARIABLE ".collective: expected true or false, found 1"},
        {VARIABLE "transfer", "1",
         IN_VARIABLE ": unknown key \"transfer\", expected name, label, count, type, shape, decomposition, file, "
                     "transfer_bytes, collective or at"},
        {VARIABLE "file", "1024", IN_VARIABLE ".file: expected an integer from 0 to 1023, found 1024"},
        {VARIABLE "name", "'b'",
         "w.json: streams[0].dumps[0].variables[1]: the name b is taken by a variable before it"},
        {"streams/0/dumps/0/variables/1/name", "'a_2'",
         "w.json: streams[0].dumps[0].variables[1]: the name a_2 is also that of number 2 of the 3 variables a"},
        {"source/notes", "[1]", "w.json: source.notes[0]: expected a string"},
        {"source/path", "'/home'", "w.json: source: unknown key \"path\", expected format, version, reader or notes"},
        {"provenance/0/path", "'streams'",
         "w.json: provenance[0]: path is \"streams\", expected a JSON pointer that begins with /"},
        {"provenance/0/how", "''",
         "w.json: provenance[0]: how is empty, expected the counter, the equation or the reason"},
        {"provenance/0/origin", "'guessed'",
         "w.json: provenance[0].origin: expected read, derived, reconstructed or assumed, found \"guessed\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct und_error error;
        json_t *root = parse(base);
        change(root, cases[i].path, cases[i].value);
        assert_null(read_value(root, &error));
        assert_string_equal(error.text, cases[i].message);
        json_decref(root);
    }
}

static void test_not_json(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "w.json: line 1, column 0: not valid JSON: '[' or '{' expected near end of file"},
        {"{\"ranks\": 1, \"ranks\": 2}",
         "w.json: line 1, column 20: not valid JSON: duplicate object key near '\"ranks\"'"},
        {"[]",
         "w.json: expected an object with the keys schema, name, description, ranks, scaling, runtime_s, compute, "
         "streams, source and provenance, found an array"},
        {"{} x", "w.json: line 1, column 4: not valid JSON: end of file expected near 'x'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct und_error error;
        assert_null(und_workload_read(cases[i].text, strlen(cases[i].text), "w.json", &error));
        assert_string_equal(error.text, cases[i].message);
    }
}

/* Turns are for files that are opened and closed around every dump, by independent calls. */
static void test_turns(void **state)
{
    static const struct {
        const char *path, *value, *why;
    } cases[] = {
        {"streams/0/turns", "true", NULL},
        {"streams/0/files", "'append'", "the files are append and not new"},
        {"streams/0/collective", "true", "collective calls are made by all ranks together"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct und_error error;
        json_t *root = parse(base);
        change(root, "streams/0/turns", "true");
        change(root, cases[i].path, cases[i].value);
        struct und_workload *workload = read_value(root, &error);
        char message[256];
        snprintf(message, sizeof message, "w.json: streams[0].turns: expected false, since %s",
                 cases[i].why ? cases[i].why : "");
        if (cases[i].why)
            assert_string_equal(error.text, message);
        else
            assert_true(workload && workload->streams[0].in_turn);
        und_workload_free(workload);
        json_decref(root);
    }
}

/* Keys of kinds of streams, alone and together. */
static void test_kinds(void **state)
{
    static const struct {
        const char *path, *value, *message;
    } cases[] = {
        {"streams/0/names", "2", "names: expected 1, since the files are new"},
        {"streams/0/names", "0", "names: expected an integer from 1 to 1024, found 0"},
        {"streams/0/reopen", "false", "reopen: expected true, since the files are new"},
        {"streams/0/removes", "true", "removes: expected false, since the files are new"},
        {"streams/0/removes", "1", "removes: expected true or false, found 1"},
        {"streams/1/own_directories", "'yes'", "own_directories: expected true or false, found \"yes\""},
        {"streams/0/dumps/0/compute_s", "-1", "dumps[0].compute_s: expected seconds, a number of at least 0, found -1"},
        {"streams/0/dumps/0/compute_s", "'1 s'",
         "dumps[0].compute_s: expected seconds, a number of at least 0, found \"1 s\""},
        {"streams/0/dumps/0/skew", "[[3, 1]]", "dumps[0].skew: the ranks add up to 3, expected 4 as in ranks"},
        {"streams/0/dumps/0/skew", "[[4, 0], [1, 1]]",
         "dumps[0].skew[1]: the ranks add up to more than the 4 of ranks"},
        {"streams/0/dumps/0/skew", "[[4, -1]]",
         "dumps[0].skew[0]: expected at least 1 rank and at least 0 seconds, found [4, -1]"},
        {"streams/0/dumps/0/skew", "[4]",
         "dumps[0].skew[0]: expected an integer and a number, [ranks, seconds of each]"},
        {"streams/0/passes", "2", "passes: expected 1, since the operation is write"},
        {"streams/1/files", "'rewrite'", "files: expected new, append or update, since the operation is read"},
        {"streams/1/sync_bytes", "1", "sync_bytes: expected null, since the operation is read"},
        {"streams/0/chunk_bytes", "4294967296",
         "chunk_bytes: expected at most 4294967295, since HDF5 has no larger chunks"},
        {"streams/1/flush_bytes", "1",
         "flush_bytes: expected null, since the operation is read or sync_bytes is given"},
        {"streams/1/lookups", "{'every_bytes': 1, 'calls': 1, 'transfer_bytes': 1}",
         "lookups: expected null, since the operation is read, the layout flood or the order not consecutive"},
        {"streams/0/lookups", "{'every_bytes': 1, 'calls': 0, 'transfer_bytes': 1}",
         "lookups.calls: expected a number above 0 and at most 1000000, found 0"},
        {"streams/0/lookups", "{'every_bytes': 1, 'calls': 1}", "lookups: the key \"transfer_bytes\" is missing"},
        {"streams/1/write_through", "true", "write_through: expected false, since the operation is read"},
        {"streams/1/order", "{'rule': 'shuffled', 'seed': 1}",
         "order: expected consecutive, since ranks make collective calls together"},
        {"streams/0/order", "{'rule': 'strided', 'step': 0}", "order.step: expected an integer of at least 1, found 0"},
        {"streams/0/order", "{'rule': 'shuffled', 'step': 1}", "order: unknown key \"step\", expected rule or seed"},
        {"streams/0/pace", "'slow'", "pace: expected burst or steady, found \"slow\""},
        {"streams/0/files_per_directory", "5",
         "files_per_directory: expected null, since the layout is not flood and no dump has operations"},
        {"streams/1/layout", "'flood'", "files: expected new or update, since the layout is flood"},
        {"streams/0/extends", "'input'", "extends: expected the name of a stream before it, found \"input\""},
        {"streams/1/extends", "'state'", "files: expected new or rewrite, since the stream extends another"},
        {"streams/0/reads", "'input'", "reads: expected the name of a stream before it, found \"input\""},
        {"streams/1/reads", "'state'", "files: expected update, since the stream reads the files of another"},
        {"streams/0/dumps/0/continues", "true",
         "dumps[0].continues: expected false, since there is no dump before the first"},
        {"streams/0/dumps/0/continues", "1", "dumps[0].continues: expected true or false, found 1"},
        {"streams/0/dumps/1/variables/0/at", "'b'",
         "dumps[1].variables[0].at: expected a variable that the files of the stream state have by then, found \"b\""},
        {"streams/0/dumps/0/variables/1/at", "'a'",
         "dumps[0].variables[1].at: expected a variable of the same count, type, shape, decomposition and file, found "
         "\"a\""},
        {"streams/1/dumps/0/variables/0/at", "'c'",
         "dumps[0].variables[0].at: expected a variable that the files of the stream input have by then, found \"c\""},
        {"streams/0/dumps/0/repeat", "{'count': 1, 'period_s': 1}",
         "dumps[0].repeat.count: expected an integer from 2 to 10000000, found 1"},
        {"streams/0/dumps/0/repeat", "{'count': 2, 'period_s': 0}", "dumps[0].repeat.period_s: expected more than 0"},
        {"streams/0/dumps/0/repeat", "{'count': 3, 'period_s': 1}",
         "dumps[1]: time_s is 2.5, expected at least the 3 of the dump before"},
        {"streams/0/dumps/0/operations", "[{'operation': 'stat', 'runs': [[3, 1]]}]",
         "dumps[0].operations[0].runs: the ranks add up to 3, expected 4 as in ranks"},
        {"streams/0/dumps/0/variables", "[]", "dumps[0].variables: expected at least 1 element, found 0"},
        {"streams/0/dumps/0/variables/0/decomposition", "{'rule': 'cyclic', 'block': 0}",
         "dumps[0].variables[0].decomposition.block: expected an integer of at least 1, found 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct und_error error;
        char message[512];
        json_t *root = parse(base);
        change(root, cases[i].path, cases[i].value);
        assert_null(read_value(root, &error));
        snprintf(message, sizeof message, "w.json: streams[%c].%s", cases[i].path[8], cases[i].message);
        assert_string_equal(error.text, message);
        json_decref(root);
    }
}

static void test_ranks_that_are_late(void **state)
{
    static const double expected_s[] = {0, 0, 0.5, 2};
    struct und_error error;
    json_t *root = parse(base);
    (void)state;
    change(root, "streams/0/dumps/0/skew", "[[2, 0], [1, 0.5], [1, 2]]");
    change(root, "streams/0/dumps/1/skew", "[]");
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

/* Where all ranks share a file, none has a directory of its own; where transfers are paced, there is no time left;
 * what takes turns closes its files. */
static void test_keys_that_exclude_each_other(void **state)
{
    static const struct {
        const char *changes[2][2], *message;
    } cases[] = {
        {{{"streams/1/layout", "'shared'"}, {"streams/1/own_directories", "true"}},
         "w.json: streams[1].own_directories: expected false, since the layout is neither file-per-process nor "
         "grouped"},
        {{{"streams/0/pace", "'steady'"}, {"streams/0/dumps/0/compute_s", "1"}},
         "w.json: streams[0].dumps[0].compute_s: expected 0, since the pace of the stream is steady"},
        {{{"streams/0/turns", "true"}, {"streams/0/dumps/1/continues", "true"}},
         "w.json: streams[0].dumps[1].continues: expected false, since the ranks of the stream take turns"},
        {{{"streams/1/files", "'update'"}, {"streams/1/reads", "'state'"}},
         "w.json: streams[1].collective: expected false, since the stream reads the files of another"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct und_error error;
        json_t *root = parse(base);
        for (int c = 0; c < 2; ++c)
            change(root, cases[i].changes[c][0], cases[i].changes[c][1]);
        assert_null(read_value(root, &error));
        assert_string_equal(error.text, cases[i].message);
        json_decref(root);
    }
}

/* Many times a number that is allowed alone is refused before memory is taken for it. */
static void test_too_many_dumps(void **state)
{
    struct und_error error;
    struct rusage before, after;
    json_t *root = parse(base), *streams = json_object_get(root, "streams");
    (void)state;
    change(root, "streams/0/dumps/0/repeat", "{'count': 10000000, 'period_s': 0.001}");
    json_array_remove(json_object_get(json_array_get(streams, 0), "dumps"), 1);
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
    assert_string_equal(error.text, "w.json: streams: expected at most 10000000 dumps in all streams, found 210000001");
    assert_true(after.ru_maxrss - before.ru_maxrss < 100000);
    json_decref(root);
}

static void test_new_keys(void **state)
{
    struct und_error error;
    json_t *root = parse(base);
    (void)state;
    change(root, "streams/0/files", "'rewrite'");
    change(root, "streams/0/names", "2");
    change(root, "streams/0/order", "{'rule': 'strided', 'step': 3}");
    change(root, "streams/0/sync_bytes", "4096");
    change(root, "streams/0/dumps/0/repeat", "{'count': 3, 'period_s': 0.5}");
    change(root, "streams/0/dumps/1/variables", "[]");
    change(root, "streams/0/dumps/1/operations", "[{'operation': 'mkdir', 'runs': [[1, 7], [3, 0]]}]");
    change(root, "streams/1/passes", "2");
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
static void test_similar_names(void **state)
{
    static const char *const names[] = {"'a_3'", "'a_02'", "'a_x'", "'a_'", "'_a'", "'aa_0'", "'a_-1'"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        struct und_error error;
        json_t *root = parse(base);
        change(root, "streams/0/dumps/0/variables/1/name", names[i]);
        struct und_workload *workload = read_value(root, &error);
        assert_true((workload != NULL) == (names[i][1] != '_'));
        und_workload_free(workload);
        json_decref(root);
    }
}

static void test_scale(void **state)
{
    static const struct {
        double factor;
        int64_t a, b, first_run, c;
    } cases[] = {{2, 16, 14, 8, 200}, {0.5, 4, 5, 2, 50}, {0.001, 1, 1, 1, 1}, {1.3, 10, 8, 5, 130}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base),
        cmocka_unit_test(test_calls_of_a_variable),
        cmocka_unit_test(test_invalid_input),
        cmocka_unit_test(test_not_json),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_similar_names),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_ranks_that_are_late),
        cmocka_unit_test(test_keys_that_exclude_each_other),
        cmocka_unit_test(test_too_many_dumps),
        cmocka_unit_test(test_new_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
