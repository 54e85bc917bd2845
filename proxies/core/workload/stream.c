#include "workload/stream.h"

#include <stdlib.h>

bool und_content_read(struct und_strict *at, const json_t *stream, struct und_content *content)
{
    static const char *const keys[] = {"kind", "compressibility", NULL};
    static const char *const kinds[] = {"random", "zero", "constant", "smooth", NULL};
    const json_t *value = json_object_get(stream, "content");
    const size_t mark = und_strict_key(at, "content");
    int kind;
    if (!und_strict_object(at, value, keys) || !und_strict_choice(at, value, "kind", kinds, &kind) ||
        !und_strict_share(at, value, "compressibility", &content->compressibility))
        return false;
    content->kind = (enum und_kind)kind;
    if (content->kind != UND_RANDOM && content->compressibility > 0) {
        und_strict_key(at, "compressibility");
        return und_strict_fail(at, "expected 0, since the kind is %s and not random", kinds[kind]);
    }
    und_strict_up(at, mark);
    return true;
}

bool und_order_read(struct und_strict *at, const json_t *stream, struct und_order *order)
{
    static const char *const rules[] = {"consecutive", "strided", "shuffled", NULL};
    static const char *const keys[][3] = {{"rule", NULL}, {"rule", "step", NULL}, {"rule", "seed", NULL}};
    const json_t *value = json_object_get(stream, "order");
    *order = (struct und_order){.rule = UND_CONSECUTIVE, .step = 1};
    if (!value)
        return true;
    const size_t mark = und_strict_key(at, "order");
    int rule;
    int64_t seed = 0;
    if (!json_is_object(value) || !json_object_get(value, "rule"))
        return und_strict_fail(at, "expected an object with the key \"rule\": consecutive, strided or shuffled");
    if (!und_strict_choice(at, value, "rule", rules, &rule) || !und_strict_object(at, value, keys[rule]) ||
        (rule == UND_STRIDED && !und_strict_integer(at, value, "step", 1, INT64_MAX, &order->step)) ||
        (rule == UND_SHUFFLED && !und_strict_integer(at, value, "seed", 0, INT64_MAX, &seed)))
        return false;
    order->rule = (enum und_order_rule)rule;
    order->seed = (uint64_t)seed;
    und_strict_up(at, mark);
    return true;
}

bool und_lookups_read(struct und_strict *at, const json_t *stream, struct und_lookups *lookups)
{
    static const char *const keys[] = {"every_bytes", "calls", "transfer_bytes", NULL};
    const json_t *value = json_object_get(stream, "lookups");
    *lookups = (struct und_lookups){.every_bytes = 0};
    if (!value || json_is_null(value))
        return true;
    const size_t mark = und_strict_key(at, "lookups");
    if (!und_strict_object(at, value, keys) ||
        !und_strict_integer(at, value, "every_bytes", 1, INT64_MAX, &lookups->every_bytes) ||
        !und_strict_positive(at, value, "calls", UND_MAX_LOOKUPS, &lookups->calls) ||
        !und_strict_integer(at, value, "transfer_bytes", 1, INT64_MAX, &lookups->transfer_bytes))
        return false;
    und_strict_up(at, mark);
    return true;
}

const struct und_step *und_step_of(const struct und_stream *stream, int dump)
{
    int low = 0, high = stream->step_count - 1;
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        if (stream->steps[middle].first <= dump)
            low = middle;
        else
            high = middle - 1;
    }
    return &stream->steps[low];
}

const struct und_dump *und_dump_of(const struct und_stream *stream, int dump)
{
    return und_step_of(stream, dump)->dump;
}

const struct und_instruction *und_step_has(const struct und_step *step, enum und_code code)
{
    for (int i = 0; i < step->instruction_count; ++i)
        if (step->instructions[i].code == code)
            return &step->instructions[i];
    return NULL;
}

double und_dump_time(const struct und_stream *stream, int dump)
{
    const struct und_step *step = und_step_of(stream, dump);
    return step->dump->time_s + (double)(step->from + dump - step->first) * step->dump->period_s;
}

int und_stream_content(const struct und_stream *stream, int dump)
{
    const struct und_step *step = und_step_of(stream, dump);
    return step->begins ? step->content + dump - step->first : step->content;
}

int und_stream_first(const struct und_stream *stream, int dump)
{
    const struct und_step *step = und_step_of(stream, dump);
    return step->begins ? dump : step->first_of_content;
}

int und_stream_contents(const struct und_stream *stream)
{
    return und_stream_content(stream, stream->dump_count - 1) + 1;
}

bool und_stream_reuses(const struct und_stream *stream)
{
    return stream->own_set.names > 0 && stream->own_set.numbered;
}

bool und_stream_updates(const struct und_stream *stream)
{
    const bool keeps = stream->opening == UND_OPEN_KEEP || stream->opening == UND_OPEN_READ;
    return und_stream_reuses(stream) && keeps && stream->behind < 0;
}

bool und_stream_rewrites(const struct und_stream *stream)
{
    return und_stream_reuses(stream) && !und_stream_updates(stream);
}

bool und_stream_lasts(const struct und_stream *stream, int dump)
{
    return !und_stream_reuses(stream) ||
           und_stream_content(stream, dump) >= und_stream_contents(stream) - stream->own_set.names;
}

int und_stream_set(const struct und_stream *stream, int dump)
{
    const int content = und_stream_content(stream, dump);
    return und_stream_reuses(stream) ? (int)(content % stream->own_set.names) : content;
}

static int64_t moved_by(const struct und_instruction *body, int count)
{
    int64_t bytes = 0;
    for (int i = 0; i < count && bytes >= 0; i += 1 + body[i].body) {
        const bool loops = body[i].body > 0;
        const int64_t times = body[i].code == UND_DO_PASSES ? body[i].times : 1;
        const int64_t more = body[i].code == UND_DO_MOVE ? und_variable_bytes(body[i].variable)
                             : loops                     ? und_product(times, moved_by(&body[i + 1], body[i].body))
                                                         : 0;
        bytes = more < 0 || more > INT64_MAX - bytes ? -1 : bytes + more;
    }
    return bytes;
}

int64_t und_step_bytes(const struct und_step *step)
{
    return step->dump->calls.count > 0 ? und_dump_bytes(step->dump)
                                       : moved_by(step->instructions, step->instruction_count);
}

int64_t und_dump_bytes(const struct und_dump *dump)
{
    return dump->calls.count > 0 ? und_calls_bytes(&dump->calls)
                                 : und_variables_bytes(dump->variables, dump->variable_count);
}

int64_t und_dump_new_bytes(const struct und_dump *dump)
{
    return und_variables_new_bytes(dump->variables, dump->variable_count);
}

void und_streams_free(struct und_stream *streams, int count)
{
    for (int s = 0; s < count; ++s) {
        struct und_stream *stream = &streams[s];
        for (int e = 0; e < stream->entry_count; ++e) {
            if (!stream->entries[e].repeats)
                und_variables_free(stream->entries[e].variables, stream->entries[e].variable_count);
            und_operations_free(stream->entries[e].operations, stream->entries[e].operation_count);
            und_skew_free(&stream->entries[e].skew);
            und_calls_free(&stream->entries[e].calls);
        }
        if (stream->own_set.tree)
            und_tree_free(stream->own_set.tree);
        free(stream->entries);
        free(stream->steps);
        free(stream->instructions);
        free(stream->name);
        free(stream->set_name);
        free(stream->method);
    }
    free(streams);
}
