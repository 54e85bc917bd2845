/* Answers for the workloads on standard input, one JSON text a line: for each one line, "ok" or the message of the
 * refusal. No ranks are started. */
#include "text/print.h"
#include "workload/workload.h"

#include <stdio.h>
#include <stdlib.h>

static void answer(const char *text, size_t bytes)
{
    struct und_error error;
    struct und_workload *workload = und_workload_read(text, bytes, "workload", &error);
    und_print(stdout, "%s", workload ? "ok" : error.text);
    und_workload_free(workload);
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t bytes; (bytes = getline(&line, &capacity, stdin)) > 0;)
        answer(line, (size_t)(line[bytes - 1] == '\n' ? bytes - 1 : bytes));
    free(line);
    return 0;
}
