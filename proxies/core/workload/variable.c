#include "workload/variable.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const und_type_names[] = {"byte", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", NULL};
const char *const und_rule_names[] = {"even", "grid", "runs", "cyclic", NULL};
const char *const und_bare_names[] = {"open", "stat", "create", "mkdir", "rename", "unlink", "sync", "seek", NULL};

char *und_text_copy(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *twin = malloc(bytes);
    if (twin)
        memcpy(twin, text, bytes);
    return twin;
}

int64_t und_product(int64_t a, int64_t b)
{
    return a < 0 || b < 0 || (b > 0 && a > INT64_MAX / b) ? -1 : a * b;
}

int64_t und_variable_bytes(const struct und_variable *variable)
{
    int64_t bytes = und_product(variable->count, und_type_bytes(variable->type));
    for (int d = 0; d < variable->ndims; ++d)
        bytes = und_product(bytes, variable->shape[d]);
    return bytes;
}

int64_t und_variables_bytes(const struct und_variable *variables, int count)
{
    int64_t sum = 0;
    for (int v = 0; v < count; ++v) {
        const int64_t bytes = und_variable_bytes(&variables[v]);
        if (bytes < 0 || sum > INT64_MAX - bytes)
            return -1;
        sum += bytes;
    }
    return sum;
}

int64_t und_variables_new_bytes(const struct und_variable *variables, int count)
{
    int64_t sum = 0;
    for (int v = 0; v < count; ++v)
        sum += variables[v].place ? 0 : und_variable_bytes(&variables[v]);
    return sum;
}

bool und_strict_no_memory(struct und_strict *at)
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
        all = und_product(all, variable->grid[d]);
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

bool und_rows_read(struct und_strict *at, const json_t *object, const char *what, int64_t ranks, int64_t most,
                   int *count, struct und_rows **runs, int64_t *sum)
{
    const json_t *array;
    if (!und_strict_array(at, object, "runs", 1, 4096, &array))
        return false;
    const size_t mark = und_strict_key(at, "runs");
    *count = (int)json_array_size(array);
    *runs = calloc((size_t)*count, sizeof **runs);
    if (!*runs)
        return und_strict_no_memory(at);
    int64_t all_ranks = 0;
    *sum = 0;
    for (int i = 0; i < *count; ++i) {
        struct und_rows *run = &(*runs)[i];
        const size_t here = und_strict_element(at, (size_t)i);
        if (!read_run(at, json_array_get(array, (size_t)i), what, run))
            return false;
        const int64_t rows = und_product(run->ranks, run->rows);
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
        !und_rows_read(at, rule, "rows", ranks, variable->shape[0], &variable->run_count, &variable->runs, &rows))
        return false;
    return rows == variable->shape[0] ||
           und_strict_fail(at, "the rows add up to %" PRId64 ", expected %" PRId64 " as in shape[0]", rows,
                           variable->shape[0]);
}

bool und_split_read(struct und_strict *at, const json_t *object, const char *key, int64_t ranks,
                    struct und_variable *variable)
{
    static const char *const keys[] = {"rule", NULL};
    static const char *const cyclic[] = {"rule", "block", NULL};
    const json_t *rule = json_object_get(object, key);
    const size_t mark = und_strict_key(at, key);
    if (!json_is_object(rule) || !json_object_get(rule, "rule"))
        return und_strict_fail(at, "expected an object with the key \"rule\": even, grid, runs or cyclic");
    int choice;
    if (!und_strict_choice(at, rule, "rule", und_rule_names, &choice))
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

bool und_variables_check_names(struct und_strict *at, const struct und_variable *variables, int all)
{
    json_t *counts = json_object();
    bool right = counts != NULL || und_strict_no_memory(at);
    for (int v = 0; right && v < all; ++v) {
        const struct und_variable *variable = &variables[v];
        const size_t here = und_strict_element(at, (size_t)v);
        if (json_object_get(counts, variable->name))
            right = und_strict_fail(at, "the name %s is taken by a variable before it", variable->name);
        else
            right = json_object_set_new(counts, variable->name, json_integer(variable->count)) == 0 ||
                    und_strict_no_memory(at);
        if (right)
            und_strict_up(at, here);
    }
    for (int v = 0; right && v < all; ++v) {
        const char *name = variables[v].name, *digits = strrchr(name, '_');
        char stem[128];
        if (variables[v].count > 1 || !digits || digits == name || (size_t)(digits - name) >= sizeof stem)
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

void und_variables_free(struct und_variable *variables, int count)
{
    for (int v = 0; v < count; ++v) {
        free(variables[v].name);
        free(variables[v].place);
        free(variables[v].runs);
    }
    free(variables);
}

void und_operations_free(struct und_operations *operations, int count)
{
    for (int i = 0; i < count; ++i)
        free(operations[i].runs);
    free(operations);
}
