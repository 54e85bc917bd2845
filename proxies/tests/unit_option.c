/* The options: every kind of value, right and wrong, and the message for each error. */
#include "options/option.h"
#include "unit_test.h"
#include "workload/workload.h"

enum { MOST_ARGUMENTS = 40 };

enum {
#define UND_OPTION(kind, member, name, letter, argument, default_value, key, help) +1
    ROWS = 0
#include "options/option.def"
#undef UND_OPTION
};

/* Splits a command line at its blanks ("" is an empty argument) and reads it. */
static bool read_line(const char *line, struct und_options *options, struct und_error *error)
{
    static char text[512], program[] = "understudy-replay";
    char *argv[MOST_ARGUMENTS] = {program};
    int argc = 1;
    snprintf(text, sizeof text, "%s", line);
    for (char *at = text; *at;) {
        argv[argc++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
        if (strcmp(argv[argc - 1], "\"\"") == 0)
            argv[argc - 1][0] = '\0';
    }
    error->text[0] = '\0';
    return und_options_read(options, argc, argv, error);
}

TEST(test_bytes)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {
        {"0", 0},
        {"1", 1},
        {"4194304", 4194304},
        {"4MiB", 4194304},
        {"4MB", 4000000},
        {"4kB", 4000},
        {"4KiB", 4096},
        {"3GB", INT64_C(3000000000)},
        {"3GiB", INT64_C(3) << 30},
        {"2TB", INT64_C(2000000000000)},
        {"2TiB", INT64_C(2) << 40},
        {"4m", -1},
        {"4M", -1},
        {"4 MiB", -1},
        {"4mib", -1},
        {"4KB", -1},
        {"-1", -1},
        {"+1", -1},
        {" 1", -1},
        {"1.5MiB", -1},
        {"", -1},
        {"MiB", -1},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775808", -1},
        {"8388608TiB", -1},
        {"7PB", INT64_C(7000000000000000)},
        {"7EiB", INT64_C(7) << 60},
        {"8EiB", -1},
        {"9EB", INT64_C(9000000000000000000)},
        {"10EB", -1},
        {"0x10", -1},
    };
    for (size_t i = 0; i < COUNT(cases); ++i)
        if (und_bytes_read(cases[i].text) != cases[i].bytes)
            fail_msg("%s gives %lld", cases[i].text, (long long)und_bytes_read(cases[i].text));
}

TEST(test_defaults)
{
    struct und_options options;
    struct und_error error;
    assert_true(read_line("-w w.json -o d", &options, &error));
    assert_string_equal(options.workload, "w.json");
    assert_string_equal(options.directory, "d");
    assert_string_equal(options.output, "result.json");
    assert_null(options.method);
    assert_int_equal(options.transfer_bytes, 0);
    assert_int_equal(options.repetitions, 1);
    assert_int_equal(options.seed, 1);
    assert_true(options.time_scale == 1.0 && options.bytes_scale == 1.0);
    assert_false(options.collective || options.independent || options.fsync || options.keep || options.verify ||
                 options.restart || options.verbose || options.dry_run || options.list || options.help ||
                 options.version || options.drop_cache);
    assert_true(options.compute < 0 && options.restart_dump < 0 && options.shift_ranks == 1);
    assert_true(options.watchdog > 1799 && options.watchdog < 1801);
    assert_null(options.restart_stream);
    assert_null(options.restart_from);
    assert_int_equal(options.settings.count, 0);
}

/* Reading back needs no directory of its own, but files of an earlier run. */
TEST(test_restart)
{
    struct und_options options;
    struct und_error error;
    assert_true(read_line("-w f -o d --compute stencil --restart --restart-stream s --restart-dump 0 --shift-ranks 0 "
                          "--drop-cache -m a.b=c -m d.e=f",
                          &options, &error));
    assert_int_equal(options.compute, UND_STENCIL);
    assert_string_equal(options.restart_stream, "s");
    assert_true(options.restart_dump == 0 && options.shift_ranks == 0 && options.drop_cache);
    assert_int_equal(options.settings.count, 2);
    assert_string_equal(options.settings.texts[1], "d.e=f");
    assert_true(read_line("-w f --restart-from d", &options, &error));
    assert_true(options.restart);
    assert_string_equal(options.directory, "d");
}

TEST(test_all_given)
{
    struct und_options options;
    struct und_error error;
    assert_true(
        read_line("-w w.json -a null -t 2MB -c -o d -i 3 -ek --time-scale 0 --bytes-scale=0.5 --verify --restart "
                  "-O r.json --seed 7 -v",
                  &options, &error));
    assert_string_equal(options.method, "null");
    assert_string_equal(options.output, "r.json");
    assert_int_equal(options.transfer_bytes, 2000000);
    assert_int_equal(options.repetitions, 3);
    assert_int_equal(options.seed, 7);
    assert_true(options.time_scale == 0.0 && options.bytes_scale == 0.5);
    assert_true(options.collective && options.fsync && options.keep && options.verify && options.restart &&
                options.verbose);
}

TEST(test_invalid_input)
{
    static const struct {
        const char *line;
        const char *message;
    } cases[] = {
        {"", "no workload given: expected -w FILE, see --help"},
        {"-w f", "no directory given: expected -o DIR, see --help"},
        {"-w f -o d -t 4m", "--transfer 4m: expected " UND_BYTES_EXPECTED},
        {"-t 0", "--transfer 0: expected " UND_BYTES_EXPECTED},
        {"-t 8EiB", "--transfer 8EiB: expected " UND_BYTES_EXPECTED},
        {"-i 0", "--repetitions 0: expected a whole number of at least 1"},
        {"-i 2x", "--repetitions 2x: expected a whole number of at least 1"},
        {"--seed -1", "--seed -1: expected a whole number of at least 0"},
        {"--time-scale -1", "--time-scale -1: expected a number of at least 0"},
        {"--time-scale nan", "--time-scale nan: expected a number of at least 0"},
        {"--bytes-scale 0", "--bytes-scale 0: expected a number above 0"},
        {"--bytes-scale inf", "--bytes-scale inf: expected a number above 0"},
        {"-o \"\"", "--directory : expected a name that is not empty"},
        {"-w f -o d -c --independent", "--collective and --independent exclude each other"},
        {"--compute pray", "--compute pray: expected sleep, busy or stencil"},
        {"-w f -o d --restart-dump 1", "--restart-dump: expected together with --restart or --restart-from"},
        {"-w f -o d --restart-stream s", "--restart-stream: expected together with --restart or --restart-from"},
        {"-w f -o d --drop-cache", "--drop-cache: expected together with --restart or --restart-from"},
        {"-w f -o d --restart-from e", "--restart-from and --directory exclude each other: nothing is written"},
        {"-w f -k --restart-from e", "--restart-from and --keep exclude each other: nothing is written"},
        {"--shift-ranks -1", "--shift-ranks -1: expected a whole number of at least 0"},
        {"--foo", "--foo: no such option, or short for several, see --help"},
        {"--ver", "--ver: no such option, or short for several, see --help"},
        {"-Z", "-Z: no such option, see --help"},
        {"-t", "-t: a value is missing, see --help"},
        {"--keep=3", "--keep=3: takes no value, see --help"},
        {"extra", "extra: expected options only, see --help"},
    };
    for (size_t i = 0; i < COUNT(cases); ++i) {
        struct und_options options;
        struct und_error error;
        assert_false(read_line(cases[i].line, &options, &error));
        assert_string_equal(error.text, cases[i].message);
    }
}

TEST(test_what_needs_nothing_else)
{
    static const char *const lines[] = {"--help", "--version", "--list", "-w f --dry-run"};
    struct und_options options;
    struct und_error error;
    for (size_t i = 0; i < COUNT(lines); ++i)
        assert_true(read_line(lines[i], &options, &error));
}

/* Every option of the help can be given: the rows and getopt's table are the same. */
TEST(test_help)
{
    char text[8192] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    und_options_help(file);
    rewind(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 1000);
    fclose(file);
    int count = 0;
    for (const char *line = text; (line = strchr(line, '\n')) && *++line;) {
        char name[64] = "";
        struct und_options options;
        struct und_error error;
        if (strncmp(line, "  ", 2) != 0)
            continue;
        memcpy(name, line + 6, strcspn(line + 6, " "));
        if (!read_line(name, &options, &error))
            assert_null(strstr(error.text, "no such option"));
        ++count;
    }
    assert_int_equal(count, ROWS);
}

RUN(T(test_bytes), T(test_defaults), T(test_restart), T(test_all_given), T(test_invalid_input), T(test_help),
    T(test_what_needs_nothing_else))
