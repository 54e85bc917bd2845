#include "workload/syscalls.h"

#include "workload/variable.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const und_syscall_names[] = {
    "open",  "close", "read", "write", "seek",    "stat",      "sync",   "truncate", "unlink", "rename", "link",
    "mkdir", "rmdir", "list", "dup",   "symlink", "attribute", "advise", "allocate", "copy",   "wait",   NULL};

/* Keys that a call needs besides `call`, and may have. */
static const char *const needed[UND_CALLS][5] = {[UND_CALL_OPEN] = {"call", "path", "flags", NULL},
                                                 [UND_CALL_CLOSE] = {"call", "of", NULL},
                                                 [UND_CALL_READ] = {"call", "of", "bytes", NULL},
                                                 [UND_CALL_WRITE] = {"call", "of", "bytes", NULL},
                                                 [UND_CALL_SEEK] = {"call", "of", "at", NULL},
                                                 [UND_CALL_STAT] = {"call", NULL},
                                                 [UND_CALL_SYNC] = {"call", "of", NULL},
                                                 [UND_CALL_TRUNCATE] = {"call", "at", NULL},
                                                 [UND_CALL_UNLINK] = {"call", "path", NULL},
                                                 [UND_CALL_RENAME] = {"call", "path", "to", NULL},
                                                 [UND_CALL_LINK] = {"call", "path", "to", NULL},
                                                 [UND_CALL_MKDIR] = {"call", "path", NULL},
                                                 [UND_CALL_RMDIR] = {"call", "path", NULL},
                                                 [UND_CALL_LIST] = {"call", "of", "bytes", NULL},
                                                 [UND_CALL_DUP] = {"call", "of", "as", NULL},
                                                 [UND_CALL_SYMLINK] = {"call", "path", NULL},
                                                 [UND_CALL_ATTRIBUTE] = {"call", NULL},
                                                 [UND_CALL_ADVISE] = {"call", "of", "advice", NULL},
                                                 [UND_CALL_ALLOCATE] = {"call", "of", "at", "length", NULL},
                                                 [UND_CALL_COPY] = {"call", "of", "into", "length", NULL},
                                                 [UND_CALL_WAIT] = {"call", NULL}};
static const char *const allowed[UND_CALLS][4] = {[UND_CALL_OPEN] = {"as", "fails", NULL},
                                                  [UND_CALL_CLOSE] = {NULL},
                                                  [UND_CALL_READ] = {"at", "moved", "depth", NULL},
                                                  [UND_CALL_WRITE] = {"at", "depth", NULL},
                                                  [UND_CALL_SEEK] = {"from_end", NULL},
                                                  [UND_CALL_STAT] = {"path", "of", "fails", "itself"},
                                                  [UND_CALL_SYNC] = {"data_only", NULL},
                                                  [UND_CALL_TRUNCATE] = {"path", "of", "fails", NULL},
                                                  [UND_CALL_UNLINK] = {"fails", NULL},
                                                  [UND_CALL_RENAME] = {"exclusive", "fails", NULL},
                                                  [UND_CALL_LINK] = {"fails", NULL},
                                                  [UND_CALL_MKDIR] = {"fails", NULL},
                                                  [UND_CALL_RMDIR] = {"fails", NULL},
                                                  [UND_CALL_LIST] = {NULL},
                                                  [UND_CALL_DUP] = {NULL},
                                                  [UND_CALL_SYMLINK] = {"to", "fails", NULL},
                                                  [UND_CALL_ATTRIBUTE] = {"path", "of", "fails", NULL},
                                                  [UND_CALL_ADVISE] = {NULL},
                                                  [UND_CALL_ALLOCATE] = {NULL},
                                                  [UND_CALL_COPY] = {"moved", NULL},
                                                  [UND_CALL_WAIT] = {NULL}};

/* -- trees ------------------------------------------------------------------------------------------------------- */

static bool read_entry(struct und_strict *at, const json_t *value, int64_t before, struct und_entry *entry,
                       int64_t *count)
{
    static const char *const none[] = {NULL}, *const keys[] = {"in",  "directory", "bytes", "count",
                                                               "top", "name",      NULL};
    *entry = (struct und_entry){.in = -1, .name = -1};
    *count = 1;
    if (!und_strict_object_with(at, value, none, keys) || !und_strict_integer_or_null(at, value, "in", 0, &entry->in) ||
        !und_strict_flag_or_null(at, value, "directory", &entry->directory) ||
        !und_strict_integer_or_null(at, value, "bytes", 0, &entry->bytes) ||
        !und_strict_flag_or_null(at, value, "top", &entry->top) ||
        !und_strict_integer_or_null(at, value, "name", 0, &entry->name) ||
        !und_strict_integer_or_null(at, value, "count", 1, count))
        return false;
    entry->exists = entry->directory || json_object_get(value, "bytes");
    if (entry->directory && json_object_get(value, "bytes"))
        return und_strict_fail(at, "bytes: expected none of a directory");
    if (entry->top && (entry->exists || *count > 1))
        return und_strict_fail(at, "top: expected no directory, bytes and count with it");
    if (entry->name >= before || (entry->name >= 0 && *count > 1))
        return und_strict_fail(at,
                               "name: expected the number of an entry before this one, which is %" PRId64 ", and "
                               "no count",
                               before);
    if (entry->in >= before)
        return und_strict_fail(at, "in: expected the number of an entry before this one, which is %" PRId64, before);
    return *count <= UND_MAX_PATHS - before || und_strict_fail(at, "expected at most %d entries", UND_MAX_PATHS);
}

bool und_tree_read(struct und_strict *at, const json_t *set, struct und_tree *tree)
{
    const json_t *array;
    int64_t capacity = 0, before = 0;
    if (!und_strict_array(at, set, "entries", 1, UND_MAX_PATHS, &array) ||
        !und_strict_integer(at, set, "stored_bytes", 0, INT64_MAX, &tree->stored_bytes))
        return false;
    const size_t mark = und_strict_key(at, "entries");
    for (size_t i = 0; i < json_array_size(array); ++i) {
        struct und_entry entry;
        int64_t count;
        const size_t here = und_strict_element(at, i);
        if (!read_entry(at, json_array_get(array, i), tree->count, &entry, &count))
            return false;
        if (tree->count + count > capacity) {
            capacity = 2 * (tree->count + count);
            struct und_entry *grown = realloc(tree->entries, (size_t)capacity * sizeof *grown);
            if (!grown)
                return und_strict_no_memory(at);
            tree->entries = grown;
        }
        const int64_t all = und_product(entry.bytes, count);
        if (all < 0 || all > tree->stored_bytes - before)
            return und_strict_fail(at, "expected at most the %" PRId64 " bytes of stored_bytes up to here",
                                   tree->stored_bytes);
        before += all;
        while (count-- > 0)
            tree->entries[tree->count++] = entry;
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    return true;
}

void und_tree_free(struct und_tree *tree)
{
    free(tree->entries);
    free(tree);
}

int64_t und_tree_files(const struct und_tree *tree)
{
    int64_t files = 0;
    for (int64_t i = 0; i < tree->count; ++i)
        files += !tree->entries[i].directory && !tree->entries[i].top;
    return files;
}

/* -- calls ------------------------------------------------------------------------------------------------------- */

/* Around a call. */
struct loops {
    const struct und_tree *tree;
    struct und_call_list *list;
    int64_t capacity;
    int64_t ranks; /* that the program has, or one within `ranks` */
    int64_t passes[UND_MAX_LOOPS];
    int depth;
    bool by_ranks;
};

static bool read_numbers(struct und_strict *at, const json_t *value, const char *key, size_t least, size_t most,
                         int64_t *numbers, size_t *count)
{
    const json_t *array;
    if (!und_strict_array(at, value, key, least, most, &array))
        return false;
    *count = json_array_size(array);
    for (size_t i = 0; i < *count; ++i) {
        const json_t *number = json_array_get(array, i);
        numbers[i] = json_integer_value(number);
        if (json_is_integer(number))
            continue;
        und_strict_key(at, key);
        return und_strict_fail(at, "expected integers");
    }
    return true;
}

static bool read_linear(struct und_strict *at, const json_t *value, const char *key, const struct loops *loops,
                        int64_t most, struct und_linear *linear)
{
    size_t count = 0;
    int64_t numbers[1 + UND_MAX_LOOPS], low, high;
    if (!json_is_array(json_object_get(value, key)))
        return und_strict_integer(at, value, key, 0, most, &linear->base);
    if (!read_numbers(at, value, key, 1, 1 + (size_t)loops->depth, numbers, &count))
        return false;
    low = high = linear->base = numbers[0];
    linear->count = (int)count - 1;
    bool fits = true;
    for (int i = 0; i < linear->count && fits; ++i) {
        int64_t far;
        linear->factors[i] = numbers[1 + i];
        fits = !__builtin_mul_overflow(linear->factors[i], loops->passes[i] - 1, &far) &&
               !__builtin_add_overflow(far < 0 ? low : high, far, far < 0 ? &low : &high);
    }
    if (fits && low >= 0 && high <= most)
        return true;
    und_strict_key(at, key);
    return und_strict_fail(at, "expected from 0 to %" PRId64 " in all passes", most);
}

static bool read_flags(struct und_strict *at, const json_t *value, struct und_call *call)
{
    static const char *const flags[] = {"read",   "write",  "create", "exclusive", "truncate",
                                        "append", "direct", "sync",   "directory", NULL};
    const json_t *array;
    if (!und_strict_array(at, value, "flags", 1, 9, &array))
        return false;
    for (size_t i = 0; i < json_array_size(array); ++i) {
        const char *word = json_string_value(json_array_get(array, i));
        int bit = 0;
        while (flags[bit] && (!word || strcmp(word, flags[bit]) != 0))
            ++bit;
        if (!flags[bit]) {
            und_strict_key(at, "flags");
            return und_strict_fail(at, "expected read, write, create, exclusive, truncate, append, direct, sync or "
                                       "directory");
        }
        call->flags |= 1 << bit;
    }
    return (call->flags & (UND_FLAG_READ | UND_FLAG_WRITE)) != 0 ||
           und_strict_fail(at, "flags: expected read or write among them");
}

static bool read_arguments(struct und_strict *at, const json_t *value, const struct loops *loops, struct und_call *call)
{
    const int64_t paths = loops->tree->count - 1, most = call->kind == UND_CALL_LIST ? 1 << 30 : INT32_MAX;
    call->has_path = json_object_get(value, "path") != NULL;
    call->has_other = json_object_get(value, "to") != NULL;
    call->has_place = json_object_get(value, "at") != NULL;
    call->handle = call->other = -1;
    call->depth = 1;
    if ((call->has_path && !read_linear(at, value, "path", loops, paths, &call->path)) ||
        (call->has_other && !read_linear(at, value, "to", loops, paths, &call->to)) ||
        (json_object_get(value, "bytes") && !und_strict_integer(at, value, "bytes", 0, most, &call->bytes)) ||
        (call->has_place && !read_linear(at, value, "at", loops, INT64_MAX - call->bytes, &call->place)) ||
        (json_object_get(value, "of") && !und_strict_integer(at, value, "of", 0, UND_MAX_HANDLES - 1, &call->handle)) ||
        (json_object_get(value, "into") &&
         !und_strict_integer(at, value, "into", 0, UND_MAX_HANDLES - 1, &call->other)) ||
        (json_object_get(value, "length") &&
         !und_strict_integer(at, value, "length", 1, INT64_MAX - call->place.base, &call->length)) ||
        (json_object_get(value, "depth") && !und_strict_integer(at, value, "depth", 2, UND_MAX_DEPTH, &call->depth)) ||
        (json_object_get(value, "as") && !und_strict_integer(at, value, "as", 0, UND_MAX_HANDLES - 1, &call->other)))
        return false;
    const bool moves = call->kind == UND_CALL_READ || call->kind == UND_CALL_WRITE,
               copies = call->kind == UND_CALL_COPY;
    const int64_t asked = copies ? call->length : call->bytes;
    call->moved = moves || copies ? asked : 0;
    return (!json_object_get(value, "moved") || und_strict_integer(at, value, "moved", 0, asked, &call->moved)) &&
           und_strict_flag_or_null(at, value, "exclusive", &call->exclusive) &&
           und_strict_flag_or_null(at, value, "fails", &call->fails) &&
           und_strict_flag_or_null(at, value, "from_end", &call->from_end) &&
           und_strict_flag_or_null(at, value, "data_only", &call->data_only) &&
           und_strict_flag_or_null(at, value, "itself", &call->itself);
}

static const char *const advices[] = {"normal", "sequential", "random", "noreuse", "willneed", "dontneed", NULL};

static bool read_call(struct und_strict *at, const json_t *value, const struct loops *loops, struct und_call *call)
{
    int kind;
    const char *optional[5] = {NULL};
    if (!und_strict_choice(at, value, "call", und_syscall_names, &kind))
        return false;
    memcpy(optional, allowed[kind], sizeof allowed[kind]);
    call->kind = (enum und_syscall)kind;
    if (!und_strict_object_with(at, value, needed[kind], optional) || !read_arguments(at, value, loops, call) ||
        (call->kind == UND_CALL_OPEN && !read_flags(at, value, call)) ||
        (call->kind == UND_CALL_ADVISE && !und_strict_choice(at, value, "advice", advices, &call->advice)))
        return false;
    const bool by_either =
        call->kind == UND_CALL_STAT || call->kind == UND_CALL_TRUNCATE || call->kind == UND_CALL_ATTRIBUTE;
    if (by_either && call->has_path == (call->handle >= 0))
        return und_strict_fail(at, "expected either path or of");
    if (call->kind == UND_CALL_OPEN && call->fails == (call->other >= 0))
        return und_strict_fail(at, "expected as, the handle, unless the call fails");
    if (call->depth > 1 && !call->has_place)
        return und_strict_fail(at, "depth: expected with at alone");
    return call->handle < 0 || !call->fails || und_strict_fail(at, "fails: expected with path alone");
}

static bool read_list(struct und_strict *at, const json_t *array, struct loops *loops);

static bool read_loop(struct und_strict *at, const json_t *value, const char *verb, struct loops *loops)
{
    static const char *const repeat[] = {"repeat", "do", NULL}, *const by[] = {"ranks", "do", NULL};
    const bool ranks = strcmp(verb, "ranks") == 0;
    struct und_call_list *list = loops->list;
    const int64_t here = list->count - 1, outer = loops->ranks;
    int64_t numbers[2] = {0, 1};
    size_t count;
    const json_t *body;
    if (!und_strict_object(at, value, ranks ? by : repeat) ||
        !(ranks ? read_numbers(at, value, verb, 2, 2, numbers, &count)
                : und_strict_integer(at, value, verb, 1, INT64_MAX, &numbers[1])) ||
        !und_strict_array(at, value, "do", 1, SIZE_MAX, &body))
        return false;
    if (ranks &&
        (loops->by_ranks || loops->depth > 0 || numbers[0] < 0 || numbers[1] < 1 || numbers[1] > outer - numbers[0])) {
        und_strict_key(at, verb);
        return und_strict_fail(at, "expected the first rank and how many, outside of other loops, within %" PRId64,
                               outer);
    }
    if (loops->depth == UND_MAX_LOOPS)
        return und_strict_fail(at, "expected at most %d loops within each other", UND_MAX_LOOPS);
    list->calls[here].kind = ranks ? UND_CALL_RANKS : UND_CALL_REPEAT;
    list->calls[here].first = numbers[0];
    list->calls[here].times = numbers[1];
    loops->passes[loops->depth++] = numbers[1];
    loops->by_ranks = loops->by_ranks || ranks;
    const size_t mark = und_strict_key(at, "do");
    if (!read_list(at, body, loops))
        return false;
    und_strict_up(at, mark);
    loops->by_ranks = loops->by_ranks && !ranks;
    --loops->depth;
    list->calls[here].body = list->count - 1 - here;
    return true;
}

static bool read_list(struct und_strict *at, const json_t *array, struct loops *loops)
{
    struct und_call_list *list = loops->list;
    for (size_t i = 0; i < json_array_size(array); ++i) {
        const json_t *value = json_array_get(array, i);
        const size_t here = und_strict_element(at, i);
        const char *verb = json_object_get(value, "repeat")  ? "repeat"
                           : json_object_get(value, "ranks") ? "ranks"
                                                             : NULL;
        if (list->count == loops->capacity) {
            loops->capacity = 2 * loops->capacity + 16;
            struct und_call *grown = realloc(list->calls, (size_t)loops->capacity * sizeof *grown);
            if (!grown)
                return und_strict_no_memory(at);
            list->calls = grown;
        }
        struct und_call *call = &list->calls[list->count++];
        *call = (struct und_call){.handle = -1};
        if (!(verb ? read_loop(at, value, verb, loops) : read_call(at, value, loops, call)))
            return false;
        und_strict_up(at, here);
    }
    return true;
}

bool und_calls_read(struct und_strict *at, const json_t *object, const char *key, const struct und_tree *tree,
                    int64_t ranks, struct und_call_list *list)
{
    struct loops loops = {.tree = tree, .list = list, .ranks = ranks};
    const json_t *array;
    if (!und_strict_array(at, object, key, 1, SIZE_MAX, &array))
        return false;
    const size_t mark = und_strict_key(at, key);
    if (!read_list(at, array, &loops))
        return false;
    und_strict_up(at, mark);
    return (und_calls_bytes(list) >= 0 && und_calls_count(list) >= 0) ||
           und_strict_fail(at, "expected calls and bytes that can be counted");
}

void und_calls_free(struct und_call_list *list)
{
    free(list->calls);
    *list = (struct und_call_list){0};
}

/* -- sums -------------------------------------------------------------------------------------------------------- */

enum sum { BYTES, CALLS, MOVES };

/* By all ranks, or by one. Calls outside of `ranks` are those of the first rank. */
static int64_t sum_of(const struct und_call *calls, int64_t count, enum sum what, int64_t rank)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < count && sum >= 0; i += 1 + calls[i].body) {
        const struct und_call *here = &calls[i];
        const bool moves = here->kind == UND_CALL_READ || here->kind == UND_CALL_WRITE || here->kind == UND_CALL_COPY;
        int64_t more = what == BYTES ? here->moved : what == CALLS || moves;
        if (here->kind >= UND_CALLS) {
            const bool of_one = here->kind == UND_CALL_RANKS && rank >= 0;
            more = und_product(of_one ? rank >= here->first && rank < here->first + here->times : here->times,
                               sum_of(here + 1, here->body, what, of_one ? 0 : rank));
        } else if (rank > 0) {
            more = 0;
        }
        sum = more < 0 || more > INT64_MAX - sum ? -1 : sum + more;
    }
    return sum;
}

int64_t und_calls_bytes(const struct und_call_list *list)
{
    return sum_of(list->calls, list->count, BYTES, -1);
}

int64_t und_calls_count(const struct und_call_list *list)
{
    return sum_of(list->calls, list->count, CALLS, -1);
}

int64_t und_calls_moves_of(const struct und_call_list *list, int64_t rank)
{
    return sum_of(list->calls, list->count, MOVES, rank);
}

static bool goes_in_flight(const struct und_call *call)
{
    return call->kind < UND_CALLS && call->depth > 1;
}

int64_t und_calls_depth(const struct und_call_list *list)
{
    int64_t depth = 1;
    for (int64_t i = 0; i < list->count; ++i)
        if (goes_in_flight(&list->calls[i]))
            depth = und_larger(depth, list->calls[i].depth);
    return depth;
}

/* Calls that go in flight, of a rank that is in all loops by ranks, up to the maximum. */
static int64_t count_flights(const struct und_call *calls, int64_t count, int64_t most)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i += 1 + calls[i].body) {
        int64_t more = goes_in_flight(&calls[i]);
        if (calls[i].kind >= UND_CALLS)
            more = count_flights(&calls[i] + 1, calls[i].body, most) *
                   (calls[i].kind == UND_CALL_RANKS ? 1 : und_smaller(calls[i].times, most));
        sum = und_smaller(sum + more, most);
    }
    return sum;
}

int64_t und_calls_in_flight(const struct und_call_list *list, int64_t *largest)
{
    *largest = 0;
    for (int64_t i = 0; i < list->count; ++i)
        if (goes_in_flight(&list->calls[i]))
            *largest = und_larger(*largest, list->calls[i].bytes);
    return und_larger(1, count_flights(list->calls, list->count, und_calls_depth(list)));
}

int64_t und_calls_largest(const struct und_call_list *list)
{
    int64_t largest = 0;
    for (int64_t i = 0; i < list->count; ++i)
        largest = list->calls[i].bytes > largest ? list->calls[i].bytes : largest;
    return largest;
}
