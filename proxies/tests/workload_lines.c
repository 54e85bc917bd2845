/* Answers for the workloads on standard input, one JSON text a line: for each one line, "ok" or the message of the
 * refusal. What else is to be answered is a row of `modes`, chosen by an option. No ranks are started. */
#include "core/print.h"
#include "core/program.h"
#include "core/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mode {
    const char *option;
    void (*answer)(const struct und_workload *workload);
};

static void print_ok(const struct und_workload *workload)
{
    (void)workload;
    und_print(stdout, "ok");
}

/* As a string of JSON, on one line. */
static void print_program(const struct und_workload *workload)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        abort();
    und_program_print(workload->name, workload->ranks, workload->streams, workload->stream_count, out);
    fclose(out);
    json_t *string = json_stringn(text, bytes);
    json_dumpf(string, stdout, JSON_ENCODE_ANY);
    putchar('\n');
    json_decref(string);
    free(text);
}

static const struct mode modes[] = {{"--check", print_ok}, {"--program", print_program}};

static const struct mode *find_mode(const char *option)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i)
        if (strcmp(option, modes[i].option) == 0)
            return &modes[i];
    return NULL;
}

static void answer(const struct mode *mode, const char *text, size_t bytes)
{
    struct und_error error;
    struct und_workload *workload = und_workload_read(text, bytes, "workload", &error);
    if (workload)
        mode->answer(workload);
    else
        und_print(stdout, "%s", error.text);
    und_workload_free(workload);
}

int main(int argc, char **argv)
{
    const struct mode *mode = find_mode(argc > 1 ? argv[1] : "--check");
    if (!mode || argc > 2) {
        und_print(stderr, "usage: workload_lines [--check | --program] < WORKLOADS");
        return 2;
    }
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t bytes; (bytes = getline(&line, &capacity, stdin)) > 0;)
        answer(mode, line, (size_t)(line[bytes - 1] == '\n' ? bytes - 1 : bytes));
    free(line);
    return 0;
}
