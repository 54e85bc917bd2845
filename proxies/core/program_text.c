/* The text of a program. python/understudy/semantics/text.py prints the same. */
#include "core/program.h"

#include <inttypes.h>

static void print_owner(const struct und_file_set *set, FILE *out)
{
    static const char *const owners[] = {"all ranks", "each rank", NULL, "each row"};
    if (set->owner == UND_EACH_GROUP)
        fprintf(out, "each of %" PRId64 " group%s", set->groups, set->groups == 1 ? "" : "s");
    else
        fputs(owners[set->owner], out);
}

static void print_set(const struct und_file_set *set, FILE *out)
{
    fprintf(out, "set %s: %d file%s of ", set->name, set->files, set->files == 1 ? "" : "s");
    print_owner(set, out);
    fputs(set->numbered ? ", index k" : ", no index", out);
    if (set->numbered && set->names > 0)
        fprintf(out, " mod %" PRId64, set->names);
    if (set->owner_directories)
        fputs(", own directories", out);
    if (set->files_in_directory > 0)
        fprintf(out, ", directories of %" PRId64 " file%s", set->files_in_directory,
                set->files_in_directory == 1 ? "" : "s");
    fputs(set->prepared ? ", prepared\n" : "\n", out);
}

static void print_content(const struct und_content *content, FILE *out)
{
    static const char *const kinds[] = {"random", "zero", "constant", "smooth"};
    if (content->kind != UND_RANDOM || content->compressibility > 0)
        fprintf(out, ", content %s", kinds[content->kind]);
    if (content->compressibility > 0)
        fprintf(out, " %.15g", content->compressibility);
}

static void print_list(const int64_t *values, int count, FILE *out)
{
    for (int i = 0; i < count; ++i)
        fprintf(out, "%s%" PRId64, i == 0 ? " [" : ", ", values[i]);
    fputc(']', out);
}

static void print_runs(const struct und_rows *runs, int count, FILE *out)
{
    for (int i = 0; i < count; ++i)
        fprintf(out, "%s%" PRId64 "x%" PRId64, i == 0 ? " [" : ", ", runs[i].ranks, runs[i].rows);
    fputc(']', out);
}

static void print_skew(const struct und_skew *skew, FILE *out)
{
    for (int i = 0; i < skew->count; ++i)
        fprintf(out, "%s%" PRId64 "x%.15g", i == 0 ? "skew [" : ", ", skew->runs[i].ranks, skew->runs[i].seconds + 0.0);
    fputc(']', out);
}

static void print_order(const struct und_order *order, FILE *out)
{
    if (order->rule == UND_STRIDED)
        fprintf(out, " strided %" PRId64, order->step);
    if (order->rule == UND_SHUFFLED)
        fprintf(out, " shuffled %" PRIu64, order->seed);
}

static void print_division(const struct und_variable *variable, FILE *out)
{
    fprintf(out, " %s", und_rule_names[variable->rule]);
    if (variable->rule == UND_GRID)
        print_list(variable->grid, variable->ndims, out);
    if (variable->rule == UND_RUNS)
        print_runs(variable->runs, variable->run_count, out);
    if (variable->rule == UND_CYCLIC)
        fprintf(out, " %" PRId64, variable->block);
}

static void print_move(const struct und_stream *stream, const struct und_variable *variable, FILE *out)
{
    fprintf(out, "%s %s", stream->operation == UND_WRITES ? "write" : "read", variable->name);
    if (variable->count > 1)
        fprintf(out, " times %" PRId64, variable->count);
    fprintf(out, " %s", und_type_names[variable->type]);
    print_list(variable->shape, variable->ndims, out);
    print_division(variable, out);
    if (variable->file > 0)
        fprintf(out, " file %d", variable->file);
    if (variable->place)
        fprintf(out, " at %s", variable->place);
    fprintf(out, " transfer %" PRId64, variable->transfer_bytes);
    if (variable->collective)
        fputs(" collective", out);
    if (stream->set->owner != UND_EACH_ROW)
        print_order(&stream->order, out);
    if (stream->sync_bytes > 0)
        fprintf(out, " flush %" PRId64, stream->sync_bytes);
    if (stream->flush_bytes > 0)
        fprintf(out, " flush %" PRId64 " to system", stream->flush_bytes);
    if (stream->lookups.every_bytes > 0)
        fprintf(out, " lookups %.15g of %" PRId64 " every %" PRId64, stream->lookups.calls,
                stream->lookups.transfer_bytes, stream->lookups.every_bytes);
}

static void print_open(const struct und_stream *stream, FILE *out)
{
    static const char *const modes[] = {"new", "truncate", "keep", "read"};
    fprintf(out, "open %s %s", stream->set->name, modes[stream->opening]);
    fprintf(out, "%s%s%s", stream->source >= 0 ? " last" : "", stream->direct ? " direct" : "",
            stream->write_through ? " write-through" : "");
    if (stream->chunk_bytes > 0)
        fprintf(out, " chunk %" PRId64, stream->chunk_bytes);
    if (stream->fill)
        fputs(" fill", out);
}

static void print_instruction(const struct und_stream *stream, const struct und_instruction *instruction, FILE *out)
{
    static const char *const words[] = {[UND_DO_BEGIN] = "begin",
                                        [UND_DO_SPREAD] = "spread",
                                        [UND_DO_SYNC] = "sync",
                                        [UND_DO_CLOSE] = "close",
                                        [UND_DO_IN_TURN] = "in turn"};
    switch (instruction->code) {
    case UND_DO_OPEN: print_open(stream, out); break;
    case UND_DO_OPERATE:
        fprintf(out, "operate %s", und_bare_names[instruction->operations->operation]);
        print_runs(instruction->operations->runs, instruction->operations->run_count, out);
        break;
    case UND_DO_REMOVE: fputs(instruction->backup ? "rename" : "remove", out); break;
    case UND_DO_SKEW: print_skew(instruction->skew, out); break;
    case UND_DO_COMPUTE: fprintf(out, "compute %.15g s", instruction->seconds + 0.0); break;
    case UND_DO_MOVE: print_move(stream, instruction->variable, out); break;
    case UND_DO_PASSES: fprintf(out, "passes %" PRId64, instruction->times); break;
    case UND_DO_EACH_FILE:
        fputs("files", out);
        print_order(&stream->order, out);
        break;
    default: fputs(words[instruction->code], out);
    }
    fputc('\n', out);
}

static void print_body(const struct und_stream *stream, const struct und_instruction *body, int count, int indent,
                       FILE *out)
{
    for (int i = 0; i < count; i += 1 + body[i].body) {
        if (body[i].code == UND_DO_SYNC && !body[i].described)
            continue;
        fprintf(out, "%*s", indent, "");
        print_instruction(stream, &body[i], out);
        print_body(stream, &body[i + 1], body[i].body, indent + 2, out);
    }
}

static void print_step(const struct und_stream *stream, const struct und_step *step, FILE *out)
{
    const double time_s = und_dump_time(stream, step->first);
    if (step->count == 1)
        fprintf(out, "  at %.15g s", time_s);
    else
        fprintf(out, "  repeat %d from %.15g s every %.15g s", step->count, time_s, step->dump->period_s);
    if (step->dump->duration_s >= 0)
        fprintf(out, " lasting %.15g s", step->dump->duration_s + 0.0);
    fputc('\n', out);
    print_body(stream, step->instructions, step->instruction_count, 4, out);
}

void und_program_print(const char *name, int64_t ranks, const struct und_stream *streams, int count, FILE *out)
{
    fprintf(out, "program %s of %" PRId64 " rank%s\n", name, ranks, ranks == 1 ? "" : "s");
    for (int s = 0; s < count; ++s)
        if (streams[s].set == &streams[s].own)
            print_set(&streams[s].own, out);
    for (int s = 0; s < count; ++s) {
        fprintf(out, "stream %s by %s", streams[s].name, streams[s].method);
        print_content(&streams[s].content, out);
        fputc('\n', out);
        for (int i = 0; i < streams[s].step_count; ++i)
            print_step(&streams[s], &streams[s].steps[i], out);
        if (streams[s].stays_open)
            fputs("  close after the last use\n", out);
    }
}
