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
