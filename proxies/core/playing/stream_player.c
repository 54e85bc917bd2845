#include "playing/stream_player.h"

#include "job/die.h"
#include "plan/fold.h"
#include "playing/caller.h"
#include "playing/metadata.h"
#include "playing/small_file_set.h"
#include "playing/stream_internal.h"
#include "storage/direct.h"
#include "storage/run_directory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t und_stream_player_piece_memory(void)
{
    return (int64_t)(sizeof(struct und_piece) + sizeof(int64_t));
}

/* Made before the first dump is, and found again for each piece. */
static struct und_base *base_of(const struct und_stream_player *player, enum und_type type)
{
    struct und_pattern *pattern = player->run->pattern;
    struct und_base *base = und_pattern_base(pattern, &player->stream->content, type);
    UND_CHECK(base, "no memory for transfers of %" PRId64 " bytes: give a smaller size with --transfer",
              pattern->capacity);
    return base;
}

static void make_bases(const struct und_stream_player *player)
{
    const struct und_stream *stream = player->stream;
    for (int e = 0; e < stream->entry_count; ++e)
        for (int v = 0; !stream->entries[e].repeats && v < stream->entries[e].variable_count; ++v)
            base_of(player, stream->entries[e].variables[v].type);
}

static int64_t most_pieces(const struct und_stream *stream)
{
    int64_t most = 1;
    for (int e = 0; e < stream->entry_count; ++e) {
        int64_t here = 0;
        for (int v = 0; v < stream->entries[e].variable_count; ++v)
            here += stream->own_set.owner == UND_EACH_ROW ? 1 : stream->entries[e].variables[v].count;
        most = here > most ? here : most;
    }
    return most;
}

/* The memory of reads between writes, which direct I/O can use. */
static void make_mix(struct und_stream_player *player)
{
    if (player->run->plan->mix_reads <= 0 || player->mode != UND_CREATE || player->stream->operation != UND_WRITES ||
        player->stream->own_set.tree)
        return;
    player->mix.buffer = und_direct_memory(player->plan->most_transfer_bytes);
    UND_CHECK(player->mix.buffer, "no memory for reads of %" PRId64 " bytes", player->plan->most_transfer_bytes);
}

struct und_stream_player *und_stream_player_new(const struct und_run *run, int stream, int64_t as, enum und_mode mode)
{
    const struct und_stream *what = &run->workload->streams[stream];
    struct und_stream_player *player = und_allocate(1, sizeof *player, what->name);
    player->run = run;
    player->stream = what;
    player->plan = &run->plan->streams[stream];
    player->index = stream;
    player->as = as;
    player->mode = mode;
    player->group = und_group_of(as, run->ranks, what->own_set.groups);
    player->dump = -1;
    player->group_comm = MPI_COMM_SELF;
    make_bases(player);
    make_mix(player);
    const int64_t pieces = most_pieces(what);
    player->pieces = und_allocate(pieces, sizeof *player->pieces, what->name);
    player->first_pieces = und_allocate(pieces + 1, sizeof *player->first_pieces, what->name);
    if (what->own_set.owner == UND_EACH_ROW) {
        player->small_files = und_small_file_set_new(run, stream, as);
        player->files = player->sets = 1;
        player->all_slots = player->slots = und_allocate(1, sizeof *player->slots, what->name);
        player->slots->comm = MPI_COMM_SELF;
        player->slots->stands_for_it = player->makes_files = true;
        player->is_open = und_allocate(1, sizeof *player->is_open, what->name);
        return player;
    }
    if (what->own_set.tree) {
        player->caller = und_caller_new(run, stream, as, true);
        player->sets = 1;
        player->is_open = und_allocate(1, sizeof *player->is_open, what->name);
        return player;
    }
    player->files = what->own_set.files;
    player->sets =
        und_stream_updates(what) && what->stays_open ? (int)und_smaller(what->own_set.names, what->dump_count) : 1;
    const int slots = player->sets * player->files;
    player->all_slots = player->slots = und_allocate(slots, sizeof *player->slots, what->name);
    player->is_open = und_allocate(player->sets, sizeof *player->is_open, what->name);
    player->calls = und_allocate(pieces, sizeof *player->calls, what->name);
    player->marks = und_allocate(player->files + 1, sizeof *player->marks, what->name);
    player->directories = und_stream_player_new_directories(player);
    if (what->own_set.names > 0)
        player->opened_sets = und_allocate(what->own_set.names, sizeof *player->opened_sets, what->name);
    if (what->lookups.every_bytes > 0)
        player->looked_up = und_allocate(und_fold_lookups_memory(what), 1, what->name);
    if (und_stream_grows(what)) {
        player->lineages = und_allocate(pieces, sizeof *player->lineages, what->name);
        player->lineage_capacity = (int)pieces;
    }
    for (int s = 0; s < slots; ++s) {
        player->slots[s].comm = MPI_COMM_NULL;
        player->slots[s].files =
            s < player->files ? und_stream_player_new_files(player, s) : player->slots[s % player->files].files;
        player->slots[s].path = player->slots[s].room =
            und_allocate(und_stream_player_path_capacity(player), 1, what->name);
    }
    if (what->own_set.groups < run->ranks)
        UND_MPI(MPI_Comm_split(run->comm, (int)player->group.index, (int)as, &player->group_comm),
                "cannot group the ranks of the stream %s", what->name);
    return player;
}

static void drop_comm(struct und_slot *slot)
{
    if (slot->splits)
        MPI_Comm_free(&slot->comm);
    slot->comm = MPI_COMM_NULL;
    slot->splits = false;
}

void und_stream_player_free(struct und_stream_player *player)
{
    if (player->metadata)
        und_metadata_free(player->metadata);
    if (player->small_files)
        und_small_file_set_free(player->small_files);
    if (player->caller)
        und_caller_free(player->caller);
    for (int s = 0; s < player->sets * player->files && !player->small_files; ++s) {
        struct und_slot *slot = &player->all_slots[s];
        drop_comm(slot);
        if (s < player->files)
            und_files_free(slot->files);
        und_files_free(slot->subfile);
        und_files_free(slot->folder);
        free(slot->room);
    }
    if (player->group_comm != MPI_COMM_SELF)
        MPI_Comm_free(&player->group_comm);
    free(player->all_slots);
    free(player->pieces);
    free(player->first_pieces);
    free(player->is_open);
    free(player->places);
    free(player->lineages);
    und_files_free(player->directories);
    free(player->calls);
    free(player->marks);
    free(player->opened_sets);
    free(player->looked_up);
    free(player->mix.buffer);
    free(player->held);
    free(player->flights);
    if (!player->plan->method->transfer_memory)
        free(player->queue.memory);
    free(player->queue.flights);
    free(player->queue.fillings);
    free(player->queue.next);
    free(player);
}

int64_t und_stream_player_rows(const struct und_stream_player *player)
{
    return player->small_files ? player->rows : player->files;
}

void und_stream_player_go_to_row(struct und_stream_player *player, int64_t index)
{
    const struct und_item item = und_small_file_set_item(player->small_files, index);
    struct und_slot *slot = player->slots;
    und_watch_call(player->run->watch, index);
    slot->files = und_small_file_set_files(player->small_files);
    slot->k = index;
    slot->path = item.path;
    slot->payload = item.bytes;
    slot->stored = 0;
    slot->contents = item.contents;
    player->row_variable = item.variable;
    und_files_enter(slot->files, index);
    player->row_begin = und_latency_begin(player->latencies[UND_LATENCY_FILE]);
}

/* Waiting on purpose, or comparing, is no part of a latency. */
void und_stream_player_note_row(struct und_stream_player *player)
{
    if (!player->pace.is_kept && !player->verification)
        und_latency_end(player->latencies[UND_LATENCY_FILE], player->row_begin, player->slots->payload);
}

void und_stream_player_leave_out_rows(struct und_stream_player *player, int64_t rows)
{
    player->rows = rows;
}

void und_stream_player_leave_rows(struct und_stream_player *player)
{
    if (player->small_files)
        und_files_leave(und_small_file_set_files(player->small_files));
}

struct und_slot *und_stream_player_slot(struct und_stream_player *player, int64_t index)
{
    if (!player->small_files)
        return &player->slots[index];
    und_stream_player_go_to_row(player, index);
    return player->slots;
}

void und_stream_player_take_operations(struct und_stream_player *player)
{
    player->metadata = und_metadata_new(player->run, player->index);
}

/* The data files that operations act on: those that this rank has open, or all of a set of small files. */
static int64_t count_targets(const struct und_stream_player *player)
{
    int64_t files = 0;
    if (player->small_files)
        return und_small_file_set_count(player->small_files);
    for (int s = 0; s < player->files; ++s)
        files += player->slots[s].file != NULL;
    return files;
}

static const struct und_slot *slot_at(const struct und_stream_player *player, int64_t index)
{
    int s = 0;
    for (;; ++s)
        if (player->slots[s].file && index-- == 0)
            return &player->slots[s];
}

static const char *target_path(void *context, int64_t index)
{
    const struct und_stream_player *player = context;
    return player->small_files ? und_small_file_set_item(player->small_files, index).path
                               : slot_at(player, index)->path;
}

static struct und_file *target_file(void *context, int64_t index)
{
    return slot_at(context, index)->file;
}

int64_t und_stream_player_operate(struct und_stream_player *player, const struct und_operations *operations)
{
    const struct und_targets targets = {.count = count_targets(player),
                                        .path = target_path,
                                        .file = player->small_files ? NULL : target_file,
                                        .context = player};
    return und_metadata_operate(player->metadata, operations, &targets, &player->pace.waited_s);
}

void und_stream_player_verify(struct und_stream_player *player, struct und_verification *verification)
{
    player->verification = verification;
    if (player->caller)
        und_caller_verify(player->caller, verification);
}

void und_stream_player_read_from(struct und_stream_player *player, struct und_stream_player *base)
{
    player->base = base;
}

void und_stream_player_lend(struct und_stream_player *player, struct und_stream_player *last)
{
    player->lends = true;
    last->lender = player;
}

struct und_stream_player *und_stream_player_returns(const struct und_stream_player *player)
{
    return player->dump + 1 == player->stream->dump_count ? player->lender : NULL;
}

/* Does the dump begin a set of files? */
static bool begins(const struct und_stream_player *player, int dump)
{
    const struct und_stream *stream = player->stream;
    return stream->stays_open ? dump < stream->own_set.names : und_stream_first(stream, dump) == dump;
}

bool und_stream_player_is_open(const struct und_stream_player *player)
{
    return player->is_open[und_stream_player_set(player)];
}

bool und_stream_player_ends_use(const struct und_stream_player *player)
{
    const struct und_stream *stream = player->stream;
    return stream->stays_open && !player->lends && player->dump >= stream->dump_count - stream->own_set.names;
}

/* Marks the files in which this rank has bytes in the dump. */
static void mark_files(const struct und_stream_player *player, const struct und_dump *dump, int *files)
{
    for (int v = 0; v < dump->variable_count; ++v) {
        const struct und_variable *variable = &dump->variables[v];
        struct und_dataset dataset;
        struct und_box block;
        if (files[variable->file])
            continue;
        und_decomposition_place(variable, player->run->ranks, &player->group, player->as, &dataset, &block);
        files[variable->file] = und_box_bytes(&dataset, &block) > 0;
    }
}

/* Finds the communicator of each file: the group's, or the part of it that has bytes in the file. */
static void choose_comms(struct und_stream_player *player, int dump)
{
    const struct und_stream *stream = player->stream;
    const int count = stream->own_set.files;
    const bool all = und_stream_player_shares_files(stream) && !player->base;
    const struct und_step *here = und_step_of(stream, dump), *end = stream->steps + stream->step_count;
    const struct und_step *from = all ? stream->steps : here, *to = from + 1;
    while (to < end && (all || !to->begins))
        ++to;
    const void *key = from->dump->variables ? (const void *)from->dump->variables : from->dump;
    if (player->slots[0].comms_for == key && (all || to == from + 1))
        return;
    player->slots[0].comms_for = key;

    int *has_bytes = und_allocate(2 * (int64_t)count, sizeof *has_bytes, stream->name), *rather = has_bytes + count;
    for (const struct und_step *step = from; step < to; ++step)
        if (step == from || !step->dump->repeats)
            mark_files(player, step->dump, has_bytes);
    /* The minimum says whether all ranks of the group have bytes, that of the negative whether any has. */
    for (int s = 0; s < count; ++s)
        rather[s] = -has_bytes[s];
    int *least = und_allocate(2 * (int64_t)count, sizeof *least, stream->name);
    UND_MPI(MPI_Allreduce(has_bytes, least, 2 * count, MPI_INT, MPI_MIN, player->group_comm),
            "cannot agree on the files of the stream %s", stream->name);
    for (int s = 0; s < count; ++s) {
        struct und_slot *slot = &player->slots[s];
        drop_comm(slot);
        if (least[s] == 1) {
            slot->comm = player->group_comm;
        } else if (least[count + s] == -1) {
            UND_MPI(MPI_Comm_split(player->group_comm, has_bytes[s] ? 0 : MPI_UNDEFINED, 0, &slot->comm),
                    "cannot group the ranks of a file of the stream %s", stream->name);
            slot->splits = slot->comm != MPI_COMM_NULL;
        }
        int rank = -1;
        if (slot->comm != MPI_COMM_NULL)
            MPI_Comm_rank(slot->comm, &rank);
        slot->stands_for_it = rank == 0;
    }
    free(has_bytes);
    free(least);
}

static struct und_group alone(int64_t rank)
{
    return (struct und_group){.index = rank, .first = rank, .end = rank + 1};
}

/* Bytes of one variable that ranks first … end-1 have. */
static int64_t bytes_of_ranks(const struct und_stream_player *player, const struct und_variable *variable,
                              int64_t first, int64_t end)
{
    const struct und_group ranks = {.index = 0, .first = first, .end = end};
    struct und_dataset dataset;
    struct und_box block;
    und_decomposition_place(variable, player->run->ranks, &ranks, first, &dataset, &block);
    return und_dataset_elements(&dataset) * und_type_bytes(variable->type);
}

/* Bytes of the group in a file of the dump. */
static int64_t bytes_in_file(const struct und_stream_player *player, const struct und_dump *dump, int file)
{
    int64_t bytes = 0;
    for (int v = 0; v < dump->variable_count; ++v)
        if (dump->variables[v].file == file)
            bytes += dump->variables[v].count *
                     bytes_of_ranks(player, &dump->variables[v], player->group.first, player->group.end);
    return bytes;
}

/* The bytes that the streams before this one have in the file of the dump. Files that are written again are
 * there from their first dump on, with bytes or without. */
static void find_bytes_before(struct und_stream_player *player, int dump, int s)
{
    struct und_slot *slot = &player->slots[s];
    const struct und_workload *workload = player->run->workload;
    slot->before = 0;
    slot->exists = false;
    for (int b = player->stream->behind; b >= 0; b = workload->streams[b].behind) {
        const struct und_stream *base = &workload->streams[b];
        slot->before += bytes_in_file(player, und_dump_of(base, dump), s);
        slot->exists = slot->exists || slot->before > 0;
        for (int e = 0; und_stream_rewrites(base) && !slot->exists && e < base->entry_count; ++e)
            slot->exists = !base->entries[e].repeats && bytes_in_file(player, &base->entries[e], s) > 0;
    }
}

/* The files of the stream that this one extends, as far as this rank creates them. */
static void share_files(struct und_stream_player *player, int file)
{
    struct und_files *files = und_files_noted(player->all_slots[file].files);
    for (int s = file; s < player->sets * player->files; s += player->files)
        player->all_slots[s].files = files;
}

static void begin_files(struct und_stream_player *player, int dump)
{
    und_stream_player_make_directory(player);
    for (int s = 0; s < player->files; ++s) {
        struct und_slot *slot = &player->slots[s];
        find_bytes_before(player, dump, s);
        slot->payload = slot->before;
        slot->stored = slot->stands_for_it ? slot->before : 0;
        if (player->stream->behind >= 0)
            share_files(player, s);
        slot->unsynced = slot->unread = slot->lookups = 0;
        slot->opened = false;
        slot->mark = (struct und_shared){0, 0};
        slot->k = und_stream_player_number(player, dump);
        snprintf(slot->room, (size_t)und_stream_player_path_capacity(player), "%s",
                 und_stream_player_path(player, dump, s));
        und_stream_player_name_part(player, slot);
        if (player->mode != UND_CREATE || !player->plan->method->has_files || slot->exists)
            continue;
        if (slot->stands_for_it) {
            und_files_note(slot->files, slot->k + 1);
            und_files_enter(slot->files, slot->k); /* their directory is open before time is taken */
            und_files_leave(slot->files);
        }
        if (slot->makes) {
            und_files_note(slot->folder, 1);
            und_files_note(slot->subfile, 1);
        }
    }
    player->lineage_count = 0;
}

static bool joins(const struct und_lineage *lineage, const struct und_piece *piece)
{
    const struct und_dataset *a = &lineage->dataset, *b = &piece->dataset;
    return a->type == b->type && a->ndims == b->ndims &&
           memcmp(a->shape + 1, b->shape + 1, sizeof a->shape[0] * (size_t)(a->ndims - 1)) == 0;
}

/* The lineage of the piece: usually that of the same number, since time steps are alike. */
static struct und_lineage *find_lineage(struct und_stream_player *player, int hint)
{
    const struct und_piece *piece = &player->pieces[hint];
    for (int i = 0; i < player->lineage_count; ++i) {
        struct und_lineage *lineage = &player->lineages[(hint + i) % player->lineage_count];
        if (lineage->slot == piece->slot && strcmp(lineage->name, piece->name) == 0)
            return lineage;
    }
    if (player->lineage_count == player->lineage_capacity) {
        const int more = 2 * player->lineage_capacity;
        struct und_lineage *grown = realloc(player->lineages, (size_t)more * sizeof *grown);
        UND_CHECK(grown, "no memory for %d datasets of the stream %s", more, player->stream->name);
        player->lineages = grown;
        player->lineage_capacity = more;
    }
    struct und_lineage *lineage = &player->lineages[player->lineage_count++];
    memset(lineage, 0, sizeof *lineage);
    lineage->slot = piece->slot;
    memcpy(lineage->name, piece->name, sizeof lineage->name);
    memcpy(lineage->stored_name, piece->name, sizeof lineage->stored_name);
    return lineage;
}

/* Where a time step of an appended file continues a dataset of the time steps before it. */
static void continue_lineage(struct und_stream_player *player, int p)
{
    struct und_piece *piece = &player->pieces[p];
    struct und_lineage *lineage = find_lineage(player, p);
    if (lineage->rows > 0 && !joins(lineage, piece)) {
        snprintf(lineage->stored_name, sizeof lineage->stored_name, "%.120s_state%d", lineage->name, player->dump);
        lineage->rows = lineage->steps = 0;
    }
    lineage->dataset = piece->dataset;
    memcpy(piece->name, lineage->stored_name, sizeof piece->name);
    piece->dataset.first_row = lineage->rows;
    piece->dataset.earlier_steps = lineage->steps++;
    lineage->rows += piece->dataset.shape[0];
}

/* In turns a file holds rank after rank: this one's bytes begin behind those of the ranks before it. */
static void begin_turns(struct und_stream_player *player, const struct und_dump *dump)
{
    for (int s = 0; s < player->files; ++s)
        player->slots[s].begin = 0;
    for (int v = 0; v < dump->variable_count; ++v) {
        const struct und_variable *variable = &dump->variables[v];
        player->slots[variable->file].begin +=
            variable->count * bytes_of_ranks(player, variable, player->group.first, player->as);
    }
}

/* The ranks of a dataset: those of the file, or in turns each for itself. */
static const struct und_group *ranks_of_dataset(const struct und_stream_player *player,
                                                const struct und_group *rank_group)
{
    return player->stream->in_turn ? rank_group : &player->group;
}

/* Where the part of the variable stands in the file. In turns every rank has a dataset of its own. */
static void place_piece(struct und_stream_player *player, const struct und_variable *variable, struct und_piece *piece)
{
    struct und_slot *slot = &player->slots[variable->file];
    const struct und_group rank_group = alone(player->as);
    und_decomposition_place(variable, player->run->ranks, ranks_of_dataset(player, &rank_group), player->as,
                            &piece->dataset, &piece->block);
    const int64_t bytes = und_dataset_elements(&piece->dataset) * und_type_bytes(variable->type);
    piece->dataset.file_offset = slot->payload;
    if (player->stream->in_turn) {
        piece->dataset.file_offset = slot->begin;
        slot->begin += bytes;
        slot->payload += bytes_of_ranks(player, variable, player->group.first, player->group.end);
    } else {
        slot->payload += bytes;
    }
}

static void name_piece(const struct und_stream_player *player, const struct und_variable *variable, int64_t number,
                       struct und_piece *piece)
{
    int length = 0;
    if (player->stream->in_turn)
        length = snprintf(piece->name, sizeof piece->name, "domain_%08" PRId64 "/", player->as);
    const size_t capacity = sizeof piece->name - (size_t)length;
    if (variable->count > 1)
        snprintf(piece->name + length, capacity, "%s_%" PRId64, variable->name, number);
    else
        snprintf(piece->name + length, capacity, "%s", variable->name);
}

static struct und_place *find_place(const struct und_stream_player *player, const char *name)
{
    for (int i = player->place_count - 1; i >= 0; --i)
        if (strcmp(player->places[i].name, name) == 0)
            return &player->places[i];
    return NULL;
}

/* Notes where the variable begins that is added next; under a name that has been used before it is that place anew. */
static void note_place(struct und_stream_player *player, const struct und_variable *variable)
{
    const struct und_place *other = variable->place ? find_place(player, variable->place) : NULL;
    const struct und_place place = {variable->name, other ? other->offset : player->slots[variable->file].payload};
    struct und_place *old = find_place(player, variable->name);
    if (!old && player->place_count == player->place_capacity) {
        player->place_capacity = 2 * player->place_capacity + 8;
        player->places = realloc(player->places, (size_t)player->place_capacity * sizeof *player->places);
        UND_CHECK(player->places, "no memory for %d places of the stream %s", player->place_capacity,
                  player->stream->name);
    }
    *(old ? old : &player->places[player->place_count++]) = place;
}

/* Where values matter, those of a dataset begin with one, wherever its bytes do. */
static int64_t begin_of(const struct und_piece *piece)
{
    const int64_t offset = piece->dataset.file_offset;
    return offset - offset % und_type_bytes(piece->base->type);
}

/* Collective calls, of data or, between them, of flushes: every rank of a file makes as many as the one with
 * the maximum, unless the ranks take turns and each has the file alone. */
static bool goes_together(const struct und_stream_player *player, const struct und_piece *piece)
{
    return !player->stream->in_turn &&
           (piece->dataset.collective ||
            (player->plan->flush_bytes > 0 && player->plan->method->collective && player->mode == UND_CREATE));
}

/* Adds the variable to the dump's pieces, if its file has bytes of it and this rank is one of the file's. */
static void add_piece(struct und_stream_player *player, const struct und_variable *variable, int64_t number,
                      int64_t identity)
{
    struct und_slot *slot = &player->slots[variable->file];
    struct und_piece *piece = &player->pieces[player->piece_count];
    const struct und_group rank_group = alone(player->as);
    if (slot->comm == MPI_COMM_NULL) {
        if (player->stream->notes_places && !variable->place) /* readers on this rank look for what is behind it */
            slot->payload += bytes_of_ranks(player, variable, player->group.first, player->group.end);
        return;
    }
    const struct und_place *place = NULL;
    const int64_t payload = slot->payload;
    place_piece(player, variable, piece);
    const int64_t elements = und_dataset_elements(&piece->dataset);
    if (variable->place) {
        place = find_place(player->base ? player->base : player, variable->place);
        slot->payload = payload;
        piece->dataset.file_offset =
            place ? place->offset + number * elements * und_type_bytes(variable->type) : payload;
    }
    if (elements == 0)
        return;
    if (variable->place && !place)
        UND_DIE("%s has no place of the variable %s", slot->path, variable->place);
    name_piece(player, variable, number, piece);
    piece->slot = variable->file;
    piece->held = NULL;
    piece->base = base_of(player, variable->type);
    piece->begin = begin_of(piece);
    piece->rule = &player->stream->order;
    piece->order = und_order_key(&player->stream->order, player->dump, identity, player->as);
    piece->dataset.name = piece->name;
    piece->dataset.first_row = piece->dataset.earlier_steps = 0;
    piece->dataset.exists = und_stream_updates(player->stream) && player->mode == UND_CREATE && !player->makes_files;
    piece->dataset.collective = und_plan_collective(variable, player->plan);
    piece->together = goes_together(player, piece);
    const struct und_deal deal = und_decomposition_deal(
        variable, player->run->ranks, ranks_of_dataset(player, &rank_group), player->as, &piece->block);
    und_cut_begin_dealt(&piece->cut, &piece->dataset, &piece->block, &deal,
                        und_plan_transfer_bytes(variable, player->plan));
    piece->calls = piece->cut.calls;
    piece->depth = und_smaller(und_plan_depth(variable, player->plan), player->plan->in_flight);
    piece->calls_of_flush = player->plan->method->collective
                                ? (player->plan->flush_bytes - 1) / und_plan_transfer_bytes(variable, player->plan) + 1
                                : 0;
    if (und_stream_grows(player->stream))
        continue_lineage(player, player->piece_count);
    ++player->piece_count;
}

static void agree_on_calls(struct und_stream_player *player)
{
    for (int s = 0; s < player->files; ++s) {
        int count = 0;
        if (player->slots[s].comm == MPI_COMM_NULL)
            continue;
        for (int p = 0; p < player->piece_count; ++p)
            if (player->pieces[p].slot == s && player->pieces[p].together)
                player->calls[count++] = player->pieces[p].calls;
        if (count == 0)
            continue;
        UND_MPI(MPI_Allreduce(MPI_IN_PLACE, player->calls, count, MPI_INT64_T, MPI_MAX, player->slots[s].comm),
                "cannot agree on the number of calls for %s", player->slots[s].path);
        count = 0;
        for (int p = 0; p < player->piece_count; ++p)
            if (player->pieces[p].slot == s && player->pieces[p].together)
                player->pieces[p].calls = player->calls[count++];
    }
}

/* Files that the stream which writes them has open: read through the same open, where all its ranks do so. */
static void borrow_files(struct und_stream_player *player)
{
    for (int s = 0; s < player->files; ++s) {
        struct und_slot *slot = &player->slots[s], *base = &player->base->slots[s];
        int ranks, its = 0, borrows;
        slot->borrowed = false;
        if (slot->comm == MPI_COMM_NULL)
            continue;
        MPI_Comm_size(slot->comm, &ranks);
        if (base->file)
            MPI_Comm_size(base->comm, &its);
        borrows = its == ranks;
        UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &borrows, 1, MPI_INT, MPI_MIN, slot->comm), "cannot agree on who reads %s",
                slot->path);
        slot->borrowed = borrows;
    }
}

/* The set of files, of those that several dumps use. */
static int set_of(const struct und_stream_player *player)
{
    return und_stream_grows(player->stream) ? 0 : und_stream_set(player->stream, player->dump);
}

void und_stream_player_note_opening(struct und_stream_player *player)
{
    if (player->opened_sets)
        player->opened_sets[set_of(player)] = true;
}

/* Chooses the files of the dump. */
static void prepare_files(struct und_stream_player *player, bool goes_on)
{
    const struct und_stream *stream = player->stream;
    const bool updates = und_stream_updates(stream);
    player->makes_files = !player->opened_sets || !player->opened_sets[set_of(player)];
    if (player->sets > 1)
        player->slots = player->all_slots + (ptrdiff_t)und_stream_player_set(player) * player->files;
    if (!goes_on)
        choose_comms(player, player->dump);
    /* Another than the first may be all that is read of a set that stays open. */
    const bool grows = und_stream_grows(stream) && player->dump > 0;
    if (!grows && (begins(player, player->dump) || (updates && !und_stream_player_is_open(player))))
        begin_files(player, player->dump);
    for (int s = 0; s < player->files && updates && !goes_on; ++s)
        player->slots[s].payload = 0;
    if (player->base)
        borrow_files(player);
}

/* The contents of the files of the dump: files whose names are used again are told apart by how often they were. */
static void choose_contents(struct und_stream_player *player)
{
    const struct und_stream_player *maker = player->base ? player->base : player;
    const struct und_stream *stream = maker->stream;
    const bool again = stream->operation == UND_WRITES && und_stream_reuses(stream);
    const int64_t generation = again ? und_stream_content(stream, maker->dump) / stream->own_set.names : 0;
    const char *suffix = player->plan->suffix;
    for (int s = 0; s < player->files; ++s) {
        struct und_slot *slot = &player->slots[s];
        const char *name = slot->comm == MPI_COMM_NULL ? NULL : strrchr(slot->path, '/') + 1;
        if (name)
            slot->contents = und_pattern_identity(player->run->plan->seed, name,
                                                  strlen(name) - (suffix ? strlen(suffix) : 0), generation);
    }
}

/* Chooses what this rank moves in them. */
static void prepare_pieces(struct und_stream_player *player, const struct und_dump *what, bool goes_on)
{
    int64_t identity = 0;
    choose_contents(player);
    if (!goes_on && !und_stream_grows(player->stream))
        player->place_count = 0;
    if (player->stream->in_turn)
        begin_turns(player, what);
    for (int v = 0; v < what->variable_count; ++v) {
        if (player->stream->notes_places && !player->base)
            note_place(player, &what->variables[v]);
        player->first_pieces[v] = player->piece_count;
        for (int64_t number = 0; number < what->variables[v].count; ++number)
            add_piece(player, &what->variables[v], number, identity++);
    }
    player->first_pieces[what->variable_count] = player->piece_count;
    agree_on_calls(player);
}

/* The piece of each file with a row of the variable. */
static void add_row(struct und_stream_player *player, const struct und_variable *variable)
{
    static const struct und_order consecutive = {.rule = UND_CONSECUTIVE, .step = 1};
    struct und_piece *piece = &player->pieces[player->piece_count++];
    memset(piece, 0, sizeof *piece);
    snprintf(piece->name, sizeof piece->name, "%s", variable->name);
    piece->rule = &consecutive;
    piece->base = base_of(player, variable->type);
    piece->dataset =
        (struct und_dataset){.name = piece->name, .type = variable->type, .ndims = variable->ndims, .slabs = true};
    memcpy(piece->dataset.shape, variable->shape, sizeof piece->dataset.shape);
    piece->dataset.shape[0] = 1;
    memcpy(piece->block.count, piece->dataset.shape, sizeof piece->block.count);
    und_cut_begin(&piece->cut, &piece->dataset, &piece->block, und_plan_transfer_bytes(variable, player->plan));
    piece->calls = piece->cut.calls;
    piece->depth = und_smaller(und_plan_depth(variable, player->plan), player->plan->in_flight);
}

static void prepare_rows(struct und_stream_player *player, const struct und_dump *what)
{
    und_small_file_set_prepare(player->small_files, player->dump,
                               player->mode == UND_CREATE && player->plan->method->has_files);
    for (int v = 0; v < what->variable_count; ++v) {
        player->first_pieces[v] = v;
        add_row(player, &what->variables[v]);
    }
    player->first_pieces[what->variable_count] = what->variable_count;
    player->rows = und_small_file_set_count(player->small_files);
}

void und_stream_player_prepare(struct und_stream_player *player, int dump)
{
    if (player->metadata)
        und_metadata_prepare(player->metadata, dump);
    const struct und_dump *what = und_dump_of(player->stream, dump);
    const bool goes_on = und_stream_first(player->stream, dump) < dump;
    player->dump = dump;
    player->piece_count = 0;
    if (player->caller)
        return;
    if (player->small_files) {
        prepare_rows(player, what);
    } else {
        prepare_files(player, goes_on);
        prepare_pieces(player, what, goes_on);
    }
    if (player->plan->holds && player->mode == UND_CREATE)
        und_stream_player_hold(player);
    und_stream_player_make_queue(player);
    for (int p = 0; p < player->piece_count && player->mode == UND_CREATE; ++p)
        und_base_continue(player->pieces[p].base);
}

void und_stream_player_drop_cache(struct und_stream_player *player, int dump)
{
    const struct und_method *method = player->plan->method;
    if (player->small_files)
        und_small_file_set_prepare(player->small_files, dump, false);
    else if (method->part)
        choose_comms(player, dump);
    for (int64_t i = 0; i < und_stream_player_rows(player) && method->has_files; ++i)
        und_directory_drop_cache(player->run->directory, method->name,
                                 player->small_files ? und_small_file_set_item(player->small_files, i).path
                                                     : und_stream_player_path(player, dump, (int)i));
    for (int s = 0; s < player->files && method->part && !player->small_files; ++s) {
        player->slots[s].k = und_stream_player_number(player, dump);
        und_stream_player_name_part(player, &player->slots[s]);
        if (player->slots[s].in_parts)
            und_directory_drop_cache(player->run->directory, method->name, player->slots[s].part);
    }
}

void und_stream_player_note_latencies(struct und_stream_player *player, struct und_latency *const *latencies)
{
    for (int kind = 0; latencies && kind < UND_LATENCIES; ++kind)
        player->latencies[kind] = latencies[kind];
    if (player->caller && latencies)
        und_caller_note_latencies(player->caller, latencies[UND_LATENCY_WRITE], latencies[UND_LATENCY_READ]);
}

void und_stream_player_read_written(struct und_stream_player *player, const int64_t *written)
{
    player->written = written;
}

void und_stream_player_begin_moves(struct und_stream_player *player, bool timed)
{
    const struct und_plan *plan = player->run->plan;
    const double deadline_s = timed ? plan->deadline_s : 0;
    und_stonewall_begin(&player->wall, deadline_s, player->written ? player->written[player->dump] : INT64_MAX);
    player->mix.share = timed && player->mix.buffer ? plan->mix_reads : 0;
    player->mix.writes = player->mix.reads = 0;
    player->mix.in = (struct und_reads_between){.bytes = 0};
    und_pace_stop(&player->pace, timed ? (double)plan->rate_bytes : 0, deadline_s > 0);
}

bool und_stream_player_take_reads(struct und_stream_player *player, struct und_reads_between *reads)
{
    *reads = player->mix.in;
    player->mix.in = (struct und_reads_between){.bytes = 0};
    return player->mix.share > 0;
}

int64_t und_stream_player_transfers(const struct und_stream_player *player)
{
    return player->wall.transfers;
}

bool und_stream_player_is_over(struct und_stream_player *player)
{
    struct und_stonewall *wall = &player->wall;
    if (wall->transfers > 0 && und_stonewall_is_over(wall))
        wall->stops = true;
    return wall->stops || wall->transfers >= wall->most;
}

bool und_stream_player_is_stopped(const struct und_stream_player *player)
{
    return player->wall.stops;
}

void und_stream_player_wear_out(struct und_stream_player *player, int64_t from, int64_t most)
{
    und_stonewall_wear(&player->wall, player->wall.transfers - from, most);
}

struct und_stop und_stream_player_stop(const struct und_stream_player *player)
{
    return und_stonewall_stop(&player->wall);
}

void und_stream_player_call(struct und_stream_player *player, und_note_call *note, void *context)
{
    und_caller_play(player->caller, &und_dump_of(player->stream, player->dump)->calls, &player->pace, note, context);
}

void und_stream_player_count(struct und_stream_player *player, int64_t *bytes, int64_t *operations, double *waited_s)
{
    if (player->caller)
        und_caller_count(player->caller, &player->bytes, &player->operations);
    /* Calls through an open of another stream are counted there. */
    if (player->base) {
        player->operations += player->base->operations;
        player->base->operations = 0;
    }
    *bytes = player->bytes;
    *operations = player->operations;
    *waited_s = player->pace.waited_s;
    player->bytes = 0;
    player->operations = 0;
    player->pace.waited_s = 0;
}
