#include "workload/skew.h"

#include "workload/variable.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MAX_RUNS = 4096 };

static bool read_run(struct und_strict *at, const json_t *value, struct und_late *run)
{
    const json_t *ranks = json_array_get(value, 0), *seconds = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(ranks) || !json_is_number(seconds))
        return und_strict_fail(at, "expected an integer and a number, [ranks, seconds of each]");
    run->ranks = json_integer_value(ranks);
    run->seconds = json_number_value(seconds);
    return (run->ranks >= 1 && run->seconds >= 0) ||
           und_strict_fail(at, "expected at least 1 rank and at least 0 seconds, found [%" PRId64 ", %g]", run->ranks,
                           run->seconds);
}

bool und_skew_read(struct und_strict *at, const json_t *object, const char *key, int64_t ranks, struct und_skew *skew)
{
    const json_t *array;
    if (!json_object_get(object, key))
        return true;
    if (!und_strict_array(at, object, key, 0, MAX_RUNS, &array))
        return false;
    const size_t mark = und_strict_key(at, key);
    int64_t sum = 0;
    skew->runs = calloc(json_array_size(array) + 1, sizeof *skew->runs);
    if (!skew->runs)
        return und_strict_no_memory(at);
    for (; skew->count < (int)json_array_size(array); ++skew->count) {
        struct und_late *run = &skew->runs[skew->count];
        const size_t here = und_strict_element(at, (size_t)skew->count);
        if (!read_run(at, json_array_get(array, (size_t)skew->count), run))
            return false;
        if (run->ranks > ranks - sum)
            return und_strict_fail(at, "the ranks add up to more than the %" PRId64 " of ranks", ranks);
        sum += run->ranks;
        und_strict_up(at, here);
    }
    if (skew->count > 0 && sum != ranks)
        return und_strict_fail(at, "the ranks add up to %" PRId64 ", expected %" PRId64 " as in ranks", sum, ranks);
    und_strict_up(at, mark);
    return true;
}

void und_skew_free(struct und_skew *skew)
{
    free(skew->runs);
    *skew = (struct und_skew){.count = 0};
}

double und_skew_of(const struct und_skew *skew, int64_t rank)
{
    for (int i = 0; i < skew->count; ++i) {
        if (rank < skew->runs[i].ranks)
            return skew->runs[i].seconds;
        rank -= skew->runs[i].ranks;
    }
    return 0;
}

double und_skew_last(const struct und_skew *skew)
{
    double last_s = 0;
    for (int i = 0; i < skew->count; ++i)
        last_s = skew->runs[i].seconds > last_s ? skew->runs[i].seconds : last_s;
    return last_s;
}
