/* Names of the files of a series, and the directories that they lie in. */
#include "core/die.h"
#include "core/parts.h"
#include "core/storage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t und_series_path_capacity(const struct und_series *series)
{
    return (int64_t)strlen(series->run->plan->directory) + UND_PATH_CAPACITY;
}

/* The stream whose files these are: itself, or the first of those that it extends. */
static const struct und_stream *root_of(const struct und_series *series)
{
    const struct und_stream *stream = series->stream;
    while (stream->behind >= 0)
        stream = &series->run->workload->streams[stream->behind];
    return stream;
}

/* Not where the method keeps files in directories itself, replaces them by name, or has no tree. */
static bool has_directory(const struct und_series *series)
{
    const struct und_method *method = series->plan->method;
    return series->stream->set->owner_directories && method->has_files && !method->part && !method->replaces &&
           !method->store;
}

/* DIR/<stream>.d<rank or group> */
static int name_directory(const struct und_series *series, char *path)
{
    return snprintf(path, (size_t)und_series_path_capacity(series), "%s/%s.d%" PRId64, series->run->plan->directory,
                    series->stream->set->name, series->group.index);
}

/* DIR/[<directory>/]<stream>[.<dump or set>][.f<file>][.<rank> or .g<group>][<suffix of the method>] */
void und_series_name_file(const struct und_series *series, int dump, int file, char *path)
{
    if (series->base) {
        und_series_name_file(series->base, series->base->dump, file, path);
        return;
    }
    const struct und_stream *stream = root_of(series);
    const size_t capacity = (size_t)und_series_path_capacity(series);
    int length = has_directory(series) ? name_directory(series, path)
                                       : snprintf(path, capacity, "%s", series->run->plan->directory);
    length += snprintf(path + length, capacity - (size_t)length, "/%s", stream->set->name);
    if (!und_stream_grows(stream))
        length += snprintf(path + length, capacity - (size_t)length, ".%06d", und_stream_set(stream, dump));
    if (stream->own.files > 1)
        length += snprintf(path + length, capacity - (size_t)length, ".f%d", file);
    if (stream->own.owner == UND_EACH_RANK)
        length += snprintf(path + length, capacity - (size_t)length, ".%08" PRId64, series->as);
    else if (stream->own.owner == UND_EACH_GROUP)
        length += snprintf(path + length, capacity - (size_t)length, ".g%" PRId64, series->group.index);
    if (series->plan->method->suffix)
        snprintf(path + length, capacity - (size_t)length, "%s", series->plan->method->suffix);
}

/* <path>.dir/<name of the file>.<k>, where the method keeps the bytes of the slot's ranks in subfiles. */
void und_series_name_part(const struct und_series *series, struct und_slot *slot)
{
    const struct und_method *method = series->plan->method;
    const int64_t *values = series->plan->settings;
    const size_t capacity = (size_t)und_series_path_capacity(series);
    int rank = 0, size = 1;
    slot->in_parts = slot->makes = false;
    if (!method->part || slot->comm == MPI_COMM_NULL)
        return;
    if (!series->stream->in_turn) {
        MPI_Comm_rank(slot->comm, &rank);
        MPI_Comm_size(slot->comm, &size);
    }
    const int64_t part = method->part(values, rank, size);
    if (part < 0)
        return;
    slot->in_parts = true;
    slot->makes =
        series->stream->in_turn ? slot->stands_for_it : rank == 0 || method->part(values, rank - 1, size) != part;
    snprintf(slot->folder, capacity, "%s.dir", slot->path);
    snprintf(slot->part, 2 * capacity, "%s/%s.%" PRId64, slot->folder, strrchr(slot->path, '/') + 1, part);
}

/* The first rank of the group makes it, and the others wait. */
void und_series_make_directory(struct und_series *series)
{
    struct und_error error;
    if (series->directory || series->mode != UND_CREATE || !has_directory(series) || series->stream->behind >= 0)
        return;
    series->directory = malloc((size_t)und_series_path_capacity(series));
    UND_CHECK(series->directory, "no memory for the directory of the stream %s", series->stream->name);
    name_directory(series, series->directory);
    und_storage_reserve(series->directory, UND_DATA_DIRECTORY, NULL);
    bool made = true;
    if (series->as == series->group.first)
        made = und_storage_create_directory(series->directory, &error);
    UND_MPI(MPI_Barrier(series->group_comm), "cannot wait for the directory %s", series->directory);
    if (!made || !und_storage_share(series->directory, &error))
        UND_DIE("%s: %s", series->plan->method->name, error.text);
}
