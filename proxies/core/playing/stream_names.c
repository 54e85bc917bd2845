/* Names of the files of a stream, and the directories that they lie in. */
#include "job/die.h"
#include "playing/stream_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t und_stream_player_path_capacity(const struct und_stream_player *player)
{
    return (int64_t)strlen(player->run->plan->directory) + UND_PATH_CAPACITY;
}

/* The stream whose files these are: itself, or the first of those that it extends. */
static const struct und_stream *root_of(const struct und_stream_player *player)
{
    const struct und_stream *stream = player->stream;
    while (stream->behind >= 0)
        stream = &player->run->workload->streams[stream->behind];
    return stream;
}

/* Not where the method keeps files in directories itself, or replaces them by name. */
static bool has_directory(const struct und_stream_player *player)
{
    const struct und_method *method = player->plan->method;
    return player->stream->set->owner_directories && method->has_files && !method->part && !method->replaces &&
           !player->plan->is_member;
}

/* <stream>.d<rank or group> */
struct und_files *und_stream_player_new_directories(const struct und_stream_player *player)
{
    char tail[UND_NAME_BYTES];
    if (!has_directory(player))
        return NULL;
    snprintf(tail, sizeof tail, ".d%" PRId64, player->group.index);
    struct und_files *directories =
        und_files_new(player->run, &(struct und_names){.stem = player->stream->set->name, .tail = tail}, NULL, 0);
    directories->are_directories = directories->stays_open = true;
    return directories;
}

/* [<directory>/]<stream>[.<dump or set>][.f<file>][.<rank> or .g<group>][<suffix of the method>] */
struct und_files *und_stream_player_new_files(const struct und_stream_player *player, int file)
{
    const struct und_stream *stream = root_of(player);
    const char *suffix = player->plan->suffix;
    char number[UND_NAME_BYTES] = "", owner[UND_NAME_BYTES] = "", tail[UND_PATH_CAPACITY];
    if (stream->own_set.files > 1)
        snprintf(number, sizeof number, ".f%d", file);
    if (stream->own_set.owner == UND_EACH_RANK)
        snprintf(owner, sizeof owner, ".%08" PRId64, player->as);
    else if (stream->own_set.owner == UND_EACH_GROUP)
        snprintf(owner, sizeof owner, ".g%" PRId64, player->group.index);
    snprintf(tail, sizeof tail, "%.40s%.40s%.40s", number, owner, suffix ? suffix : "");
    const struct und_names names = {
        .stem = stream->set->name, .separator = ".", .digits = und_stream_grows(stream) ? 0 : 6, .tail = tail};
    struct und_files *files = und_files_new(player->run, &names, player->directories, INT64_MAX);
    files->is_member = player->plan->is_member;
    files->other = player->stream->has_backup ? ".backup" : NULL;
    return files;
}

int64_t und_stream_player_number(const struct und_stream_player *player, int dump)
{
    const struct und_stream *stream = root_of(player);
    if (player->base)
        return und_stream_player_number(player->base, player->base->dump);
    return und_stream_grows(stream) ? 0 : und_stream_set(stream, dump);
}

/* Files of another stream are called as that one calls them. */
static struct und_files *names_of(const struct und_stream_player *player, int64_t file)
{
    return player->base ? player->base->slots[file].files : player->slots[file].files;
}

const char *und_stream_player_path(const struct und_stream_player *player, int dump, int file)
{
    return und_files_path(names_of(player, file), und_stream_player_number(player, dump), false);
}

/* The directory of the dump's subfiles, which stays open, and the one of this rank's bytes. */
static void choose_part(const struct und_stream_player *player, struct und_slot *slot, int64_t part)
{
    struct und_names names = names_of(player, slot - player->slots)->names;
    const char *end = names.tail;
    char tail[UND_PATH_CAPACITY];
    if (slot->subfile && slot->part_number == part && slot->subfile->first == slot->k)
        return;
    und_files_free(slot->subfile);
    und_files_free(slot->folder);
    names.tail = tail;
    snprintf(tail, sizeof tail, "%.120s.dir", end);
    slot->folder = und_files_new(player->run, &names, NULL, 0);
    slot->folder->are_directories = slot->folder->stays_open = true;
    snprintf(tail, sizeof tail, "%.120s.%" PRId64, end, part);
    slot->subfile = und_files_new(player->run, &names, slot->folder, 1);
    slot->folder->first = slot->subfile->first = slot->k;
    slot->part_number = part;
}

/* <path>.dir/<name of the file>.<k>, where the method keeps the bytes of the slot's ranks in subfiles. */
void und_stream_player_name_part(const struct und_stream_player *player, struct und_slot *slot)
{
    const struct und_method *method = player->plan->method;
    const int64_t *values = player->plan->settings;
    int rank = 0, size = 1;
    slot->in_parts = slot->makes = false;
    if (!method->part || slot->comm == MPI_COMM_NULL)
        return;
    if (!player->stream->in_turn) {
        MPI_Comm_rank(slot->comm, &rank);
        MPI_Comm_size(slot->comm, &size);
    }
    const int64_t part = method->part(values, rank, size);
    if (part < 0)
        return;
    slot->in_parts = true;
    slot->makes =
        player->stream->in_turn ? slot->stands_for_it : rank == 0 || method->part(values, rank - 1, size) != part;
    choose_part(player, slot, part);
    slot->part = und_files_path(slot->subfile, 0, false);
}

/* The first rank of the group makes it, and the others wait. */
void und_stream_player_make_directory(struct und_stream_player *player)
{
    struct und_files *directories = player->directories;
    struct und_error error;
    if (!directories || directories->is_noted || player->mode != UND_CREATE || player->stream->behind >= 0)
        return;
    und_files_note(directories, 1);
    const bool has_directory =
        player->as != player->group.first || und_files_have_directory(directories, 0, true, &error);
    UND_MPI(MPI_Barrier(player->group_comm), "cannot wait for the directory %s", directories->path);
    if (!has_directory || !und_files_have_directory(directories, 0, false, &error))
        UND_DIE("%s: %s", player->plan->method->name, error.text);
}
