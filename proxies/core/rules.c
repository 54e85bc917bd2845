#include "core/rules.h"

#include <stdio.h>
#include <string.h>

static const char *files_of(const struct und_stream *stream)
{
    return stream->append ? "append" : stream->rewrite ? "rewrite" : stream->update ? "update" : "new";
}

static const char *layout_of(const struct und_stream *stream)
{
    static const char *const names[] = {"shared", "file-per-process", "grouped", "flood"};
    return names[stream->layout];
}

static bool fault(struct und_strict *at, const char *key, const char *expected, const char *why)
{
    und_strict_key(at, key);
    return und_strict_fail(at, "expected %s, since %s", expected, why);
}

static bool check_turns(struct und_strict *at, const struct und_stream *stream)
{
    const char *why = stream->layout == UND_FILE_PER_PROCESS ? "no ranks share a file in the layout file-per-process"
                      : stream->layout == UND_FLOOD          ? "no ranks share a file in the layout flood"
                      : stream->append                       ? "the files are append and not new"
                      : stream->rewrite                      ? "the files are rewrite and not new"
                      : stream->update                       ? "the files are update and not new"
                      : stream->collective                   ? "collective calls are made by all ranks together"
                                                             : NULL;
    return !stream->turns || !why || fault(at, "turns", "false", why);
}

static bool check_flood(struct und_strict *at, const struct und_stream *stream)
{
    const bool reads = stream->operation == UND_READS;
    if (stream->layout != UND_FLOOD)
        return true;
    if (stream->append || stream->rewrite || (stream->update && !reads))
        return fault(at, "files", reads ? "new or update" : "new", "the layout is flood");
    return !stream->collective || fault(at, "collective", "false", "no ranks share a file in the layout flood");
}

bool und_rules_check_stream(struct und_strict *at, const struct und_stream *stream)
{
    const bool reads = stream->operation == UND_READS;
    const bool again = stream->rewrite || stream->update;
    char why[64];
    snprintf(why, sizeof why, "the files are %s", files_of(stream));
    if (reads && stream->rewrite)
        return fault(at, "files", "new, append or update", "the operation is read");
    if (stream->names > 1 && !again)
        return fault(at, "names", "1", why);
    if (!stream->reopen && !stream->update && !stream->append)
        return fault(at, "reopen", "true", why);
    if (stream->own_directories && stream->layout != UND_FILE_PER_PROCESS && stream->layout != UND_GROUPED)
        return fault(at, "own_directories", "false", "the layout is neither file-per-process nor grouped");
    if (stream->removes && !stream->rewrite)
        return fault(at, "removes", "false", why);
    if (stream->passes > 1 && !reads)
        return fault(at, "passes", "1", "the operation is write");
    if (stream->sync_bytes > 0 && reads)
        return fault(at, "sync_bytes", "null", "the operation is read");
    if (stream->write_through && reads)
        return fault(at, "write_through", "false", "the operation is read");
    if (stream->order.rule != UND_CONSECUTIVE && stream->collective)
        return fault(at, "order", "consecutive", "ranks make collective calls together");
    return check_turns(at, stream) && check_flood(at, stream);
}

bool und_rules_check_dump(struct und_strict *at, const struct und_stream *stream, const struct und_dump *dump)
{
    if (stream->steady && dump->compute_s > 0)
        return fault(at, "compute_s", "0", "the pace of the stream is steady");
    if (stream->layout == UND_FLOOD && dump->compute_s > 0)
        return fault(at, "compute_s", "0", "the layout is flood");
    return !stream->steady || dump->duration_s > 0 ||
           fault(at, "duration_s", "more than 0", "the pace of the stream is steady");
}

bool und_rules_check_variable(struct und_strict *at, const struct und_stream *stream,
                              const struct und_variable *variable)
{
    if (variable->collective && stream->turns)
        return fault(at, "collective", "false", "the ranks of the stream take turns");
    if (variable->collective && stream->layout == UND_FLOOD)
        return fault(at, "collective", "false", "no ranks share a file in the layout flood");
    if (variable->collective && stream->order.rule != UND_CONSECUTIVE)
        return fault(at, "collective", "false", "the order of the stream is not consecutive");
    return variable->rule != UND_GRID || stream->layout != UND_FLOOD ||
           fault(at, "decomposition", "even, runs or cyclic", "the layout is flood");
}

bool und_rules_check_directories(struct und_strict *at, const struct und_stream *stream)
{
    bool needs = stream->files_per_directory == 0 || stream->layout == UND_FLOOD;
    for (int d = 0; d < stream->dump_count; ++d)
        needs = needs || stream->dumps[d].operation_count > 0;
    return needs || fault(at, "files_per_directory", "null", "the layout is not flood and no dump has operations");
}

static bool differs(struct und_strict *at, const char *key, const struct und_stream *base)
{
    und_strict_key(at, key);
    return und_strict_fail(at, "expected that of the stream %s that it extends", base->name);
}

static bool has_contents_of_dumps(const struct und_stream *stream)
{
    return und_stream_contents(stream) < stream->dump_count;
}

bool und_rules_check_extension(struct und_strict *at, struct und_workload *workload, int s)
{
    struct und_stream *stream = &workload->streams[s], *base = &workload->streams[stream->extends];
    if (base->extended_by >= 0)
        return fault(at, "extends", "a stream that no other extends", "two would write to one place");
    if (stream->append || stream->update)
        return fault(at, "files", "new or rewrite", "the stream extends another");
    if (stream->layout == UND_FLOOD)
        return fault(at, "layout", "shared, file-per-process or grouped", "the stream extends another");
    if (stream->operation != base->operation)
        return differs(at, "operation", base);
    if (strcmp(files_of(stream), files_of(base)) != 0)
        return differs(at, "files", base);
    if (stream->names != base->names)
        return differs(at, "names", base);
    if (strcmp(layout_of(stream), layout_of(base)) != 0)
        return differs(at, "layout", base);
    if (stream->groups != base->groups)
        return differs(at, "groups", base);
    if (stream->turns)
        return fault(at, "turns", "false", "the stream extends another");
    if (base->turns)
        return fault(at, "extends", "a stream without turns", "ranks that take turns fill their files");
    if (has_contents_of_dumps(stream) || has_contents_of_dumps(base))
        return fault(at, "extends", "streams whose dumps do not continue", "two would write to one place");
    und_strict_key(at, "dumps");
    if (stream->dump_count != base->dump_count)
        return und_strict_fail(at, "expected %d, as the stream %s that it extends, found %d", base->dump_count,
                               base->name, stream->dump_count);
    if (stream->files > base->files)
        return und_strict_fail(at, "expected file indices below %d, as those of the stream %s that it extends",
                               base->files, base->name);
    for (int d = 0; d < stream->dump_count; ++d)
        if (stream->dumps[d].time_s < base->dumps[d].time_s)
            return und_strict_fail(at, "expected dump %d at %g or later, as that of the stream %s that it extends", d,
                                   base->dumps[d].time_s, base->name);
    base->extended_by = s;
    return true;
}

bool und_rules_check_contents(struct und_strict *at, const struct und_stream *stream)
{
    char why[64];
    snprintf(why, sizeof why, "the files are %s", files_of(stream));
    for (int d = 0; d < stream->dump_count; ++d) {
        if (!stream->dumps[d].continues)
            continue;
        und_strict_key(at, "dumps");
        und_strict_element(at, (size_t)d);
        if (d == 0)
            return fault(at, "continues", "false", "there is no dump before the first");
        if (stream->operation == UND_READS)
            return fault(at, "continues", "false", "the operation is read");
        if (stream->append)
            return fault(at, "continues", "false", why);
        if (!stream->reopen)
            return fault(at, "continues", "false", "the files stay open for all dumps");
        if (stream->layout == UND_FLOOD)
            return fault(at, "continues", "false", "the layout is flood");
        return !stream->turns || fault(at, "continues", "false", "the ranks of the stream take turns");
    }
    return true;
}

/* The last variable of that name among those before number `v` of the dump, and of the dumps from `first` on. */
static const struct und_variable *find_place(const struct und_stream *stream, int first, int dump, int v,
                                             const char *name)
{
    for (int d = dump; d >= first; --d) {
        const struct und_dump *here = &stream->dumps[d];
        for (int i = (d == dump ? v : here->variable_count) - 1; i >= 0 && (d == dump || !here[1].repeats); --i)
            if (strcmp(here->variables[i].name, name) == 0)
                return &here->variables[i];
    }
    return NULL;
}

static bool same_rule(const struct und_variable *a, const struct und_variable *b)
{
    if (a->rule != b->rule || a->block != b->block || a->run_count != b->run_count ||
        memcmp(a->grid, b->grid, sizeof a->grid) != 0)
        return false;
    for (int i = 0; i < a->run_count; ++i)
        if (a->runs[i].ranks != b->runs[i].ranks || a->runs[i].rows != b->runs[i].rows)
            return false;
    return true;
}

static bool same_place(const struct und_variable *a, const struct und_variable *b)
{
    return a->file == b->file && a->count == b->count && a->type == b->type && a->ndims == b->ndims &&
           memcmp(a->shape, b->shape, sizeof a->shape) == 0 && same_rule(a, b);
}

/* Each variable with a place of another has one like it, in `base` up to its dump `of` (before its variable `before`;
 * -1: in all of it). */
static bool check_places(struct und_strict *at, const struct und_dump *dump, const struct und_stream *base, int of,
                         bool own, bool *any)
{
    const size_t mark = und_strict_key(at, "variables");
    for (int v = 0; v < dump->variable_count; ++v) {
        const struct und_variable *variable = &dump->variables[v];
        if (!variable->at)
            continue;
        *any = true;
        const int before = own ? v : base->dumps[of].variable_count;
        /* Of one content; appended files that are read have all that was written before. */
        const int first = !own && base->append ? 0 : base->dumps[of].first;
        const struct und_variable *place = find_place(base, first, of, before, variable->at);
        const size_t here = und_strict_element(at, (size_t)v);
        und_strict_key(at, "at");
        if (!place)
            return und_strict_fail(at, "expected a variable that the files of the stream %s have by then, found \"%s\"",
                                   base->name, variable->at);
        if (!own && variable->file != place->file)
            return und_strict_fail(at, "expected a variable of file %d, found \"%s\"", variable->file, variable->at);
        if (own && !same_place(variable, place))
            return und_strict_fail(at,
                                   "expected a variable of the same count, type, shape, decomposition and file, found "
                                   "\"%s\"",
                                   variable->at);
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    return true;
}

bool und_rules_check_places(struct und_strict *at, struct und_workload *workload, int s)
{
    struct und_stream *stream = &workload->streams[s];
    const size_t mark = und_strict_key(at, "dumps");
    for (int d = 0; d < stream->dump_count; ++d) {
        const struct und_dump *dump = &stream->dumps[d];
        const size_t here = und_strict_element(at, (size_t)d);
        /* What repeats the dump before finds what that one has. */
        if (!(d > dump->first && dump->repeats) && !check_places(at, dump, stream, d, true, &stream->notes_places))
            return false;
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    if (stream->notes_places && (stream->layout == UND_FLOOD || stream->turns || stream->operation == UND_READS))
        return fault(at, "dumps", "no variable with the key \"at\"",
                     stream->layout == UND_FLOOD ? "the layout is flood"
                     : stream->turns             ? "the ranks of the stream take turns"
                                                 : "the stream reads the files of no other");
    return true;
}

static bool check_reading(struct und_strict *at, struct und_stream *stream, struct und_stream *base)
{
    const size_t mark = und_strict_key(at, "dumps");
    int of = 0; /* the last dump of the base */
    for (int d = 0; d < stream->dump_count; ++d) {
        const struct und_dump *dump = &stream->dumps[d];
        const size_t here = und_strict_element(at, (size_t)d);
        while (of + 1 < base->dump_count && base->dumps[of + 1].time_s <= dump->time_s)
            ++of;
        if (dump->time_s < base->dumps[of].time_s)
            return und_strict_fail(at, "expected time_s of at least %g, when the stream %s that it reads begins",
                                   base->dumps[of].time_s, base->name);
        if (!check_places(at, dump, base, of, false, &base->notes_places))
            return false;
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    return true;
}

static bool calls_together(const struct und_stream *stream)
{
    bool together = stream->collective;
    for (int d = 0; d < stream->dump_count; ++d)
        for (int v = 0; v < stream->dumps[d].variable_count; ++v)
            together = together || stream->dumps[d].variables[v].collective;
    return together;
}

bool und_rules_check_reader(struct und_strict *at, struct und_workload *workload, int s)
{
    static const char why[] = "the stream reads the files of another";
    struct und_stream *stream = &workload->streams[s], *base = &workload->streams[stream->reads];
    if (stream->operation != UND_READS)
        return fault(at, "reads", "null", "the operation is write");
    if (!stream->update)
        return fault(at, "files", "update", why);
    if (stream->names > 1)
        return fault(at, "names", "1", why);
    if (!stream->reopen)
        return fault(at, "reopen", "true", why);
    if (stream->own_directories)
        return fault(at, "own_directories", "false", why);
    if (calls_together(stream))
        return fault(at, "collective", "false", why);
    if (stream->layout == UND_FLOOD)
        return fault(at, "layout", "shared, file-per-process or grouped", why);
    if (base->operation != UND_WRITES)
        return fault(at, "reads", "a stream of the operation write", why);
    if (base->turns)
        return fault(at, "reads", "a stream without turns", why);
    if (strcmp(layout_of(stream), layout_of(base)) != 0 || stream->groups != base->groups)
        return fault(at, "layout", "that of the stream that it reads", why);
    if (strcmp(stream->method, base->method) != 0)
        return fault(at, "method", "that of the stream that it reads", why);
    if (stream->files > base->files)
        return fault(at, "dumps", "no more files than the stream that it reads has", why);
    return check_reading(at, stream, base);
}
