#include "core/contents.h"

#include <inttypes.h>
#include <stdlib.h>

struct und_contents {
    const struct und_stream *stream;
    const bool *continues;
    int files;
    bool grows, keeps;
    int entry, written; /* the entry that is written next, and how many of its dumps are */
    json_t *places;     /* the first byte of each variable, by its name */
    int64_t *ends;      /* of each file, in the dumps with these contents */
    int64_t *sizes;
};

struct und_contents *und_contents_new(const struct und_stream *stream, const bool *continues, int files, bool grows,
                                      bool keeps)
{
    struct und_contents *contents = calloc(1, sizeof *contents);
    if (!contents)
        return NULL;
    *contents = (struct und_contents){
        .stream = stream,
        .continues = continues,
        .files = files,
        .grows = grows,
        .keeps = keeps || grows,
        .places = json_object(),
        .ends = calloc((size_t)files, sizeof *contents->ends),
        .sizes = calloc((size_t)files, sizeof *contents->sizes),
    };
    if (contents->places && contents->ends && contents->sizes)
        return contents;
    und_contents_free(contents);
    return NULL;
}

void und_contents_free(struct und_contents *contents)
{
    if (!contents)
        return;
    json_decref(contents->places);
    free(contents->ends);
    free(contents->sizes);
    free(contents);
}

static int64_t place_of(const struct und_contents *contents, const struct und_variable *variable)
{
    return json_integer_value(json_object_get(contents->places, variable->place));
}

static bool add(struct und_contents *contents, const struct und_variable *variable)
{
    int64_t *end = &contents->ends[variable->file], *size = &contents->sizes[variable->file];
    const int64_t begin = variable->place ? place_of(contents, variable) : *end;
    if (!variable->place)
        *end += und_variable_bytes(variable);
    *size = *size > *end ? *size : *end;
    return json_object_set_new(contents->places, variable->name, json_integer(begin)) == 0;
}

static bool write_once(struct und_contents *contents, const struct und_dump *dump, bool begins)
{
    for (int f = 0; begins && f < contents->files; ++f) {
        contents->ends[f] = 0;
        contents->sizes[f] = contents->keeps ? contents->sizes[f] : 0;
    }
    if (begins)
        json_object_clear(contents->places);
    for (int v = 0; v < dump->variable_count; ++v)
        if (!add(contents, &dump->variables[v]))
            return false;
    return true;
}

/* So many dumps of an entry. */
static bool write_dumps(struct und_contents *contents, int entry, int count)
{
    const struct und_dump *dump = &contents->stream->entries[entry];
    const bool begins = !contents->grows && !contents->continues[entry];
    for (int v = 0; v < dump->variable_count && !begins; ++v) /* all but the last */
        if (!dump->variables[v].place && count > 1)
            contents->ends[dump->variables[v].file] += (count - 1) * und_variable_bytes(&dump->variables[v]);
    return count == 0 || write_once(contents, dump, begins);
}

/* How many dumps of the entry begin at that time or before. */
static int started(const struct und_dump *dump, double time_s)
{
    int low = 0, high = dump->count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (dump->time_s + (double)middle * dump->period_s <= time_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* All dumps that begin at that time or before. */
static bool write_until(struct und_contents *contents, double time_s)
{
    while (contents->entry < contents->stream->entry_count) {
        const struct und_dump *dump = &contents->stream->entries[contents->entry];
        const int now = started(dump, time_s);
        if (!write_dumps(contents, contents->entry, now - contents->written))
            return false;
        contents->written = now;
        if (now < dump->count)
            return true;
        ++contents->entry;
        contents->written = 0;
    }
    return true;
}

bool und_contents_check(struct und_strict *at, struct und_contents *contents, const struct und_dump *dump,
                        double time_s)
{
    int64_t behind[UND_MAX_FILES] = {0};
    if (!write_until(contents, time_s))
        return und_strict_no_memory(at);
    for (int v = 0; v < dump->variable_count; ++v) {
        const struct und_variable *variable = &dump->variables[v];
        const int64_t bytes = und_variable_bytes(variable), size = contents->sizes[variable->file];
        const int64_t begin = variable->place ? place_of(contents, variable) : behind[variable->file];
        if (begin > size || bytes > size - begin) {
            und_strict_key(at, "variables");
            return und_strict_fail(at, "expected at most %" PRId64 " bytes of file %d by then", size, variable->file);
        }
        if (!variable->place)
            behind[variable->file] += bytes;
    }
    return true;
}
