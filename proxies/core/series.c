#include "core/series.h"

#include "core/caller.h"
#include "core/die.h"
#include "core/flood.h"
#include "core/fold.h"
#include "core/metadata.h"
#include "core/parts.h"
#include "core/run_directory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t und_series_piece_memory(void)
{
    return (int64_t)(sizeof(struct und_piece) + sizeof(int64_t));
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static void *allocate(int64_t count, size_t size, const struct und_stream *stream)
{
    void *capacity = calloc((size_t)count, size);
    UND_CHECK(capacity, "no memory for %" PRId64 " times %zu bytes of the stream %s", count, size, stream->name);
    return capacity;
}

/* Made before the first dump is, and found again for each piece. */
static struct und_base *base_of(const struct und_series *series, enum und_type type)
{
    struct und_pattern *pattern = series->run->pattern;
    struct und_base *base = und_pattern_base(pattern, &series->stream->content, type);
    UND_CHECK(base, "no memory for transfers of %" PRId64 " bytes: give a smaller size with --transfer",
              pattern->capacity);
    return base;
}

static void make_bases(const struct und_series *series)
{
    const struct und_stream *stream = series->stream;
    for (int e = 0; e < stream->entry_count; ++e)
        for (int v = 0; !stream->entries[e].repeats && v < stream->entries[e].variable_count; ++v)
            base_of(series, stream->entries[e].variables[v].type);
}

static int64_t most_pieces(const struct und_stream *stream)
{
    int64_t most = 1;
    for (int e = 0; e < stream->entry_count; ++e) {
        int64_t here = 0;
        for (int v = 0; v < stream->entries[e].variable_count; ++v)
            here += stream->own.owner == UND_EACH_ROW ? 1 : stream->entries[e].variables[v].count;
        most = here > most ? here : most;
    }
    return most;
}

struct und_series *und_series_new(const struct und_run *run, int stream, int64_t as, enum und_mode mode)
{
    const struct und_stream *what = &run->workload->streams[stream];
    struct und_series *series = allocate(1, sizeof *series, what);
    series->run = run;
    series->stream = what;
    series->plan = &run->plan->streams[stream];
    series->index = stream;
    series->as = as;
    series->mode = mode;
    series->group = und_group_of(as, run->ranks, what->own.groups);
    series->dump = -1;
    series->group_comm = MPI_COMM_SELF;
    make_bases(series);
    const int64_t pieces = most_pieces(what);
    series->pieces = allocate(pieces, sizeof *series->pieces, what);
    series->first_pieces = allocate(pieces + 1, sizeof *series->first_pieces, what);
    if (what->own.owner == UND_EACH_ROW) {
        series->flood = und_flood_new(run, stream, as);
        series->files = series->sets = 1;
        series->all_slots = series->slots = allocate(1, sizeof *series->slots, what);
        series->slots->comm = MPI_COMM_SELF;
        series->slots->stands_for_it = series->makes_files = true;
        series->is_open = allocate(1, sizeof *series->is_open, what);
        return series;
    }
    if (what->own.tree) {
        series->caller = und_caller_new(run, stream, as, true);
        series->sets = 1;
        series->is_open = allocate(1, sizeof *series->is_open, what);
        return series;
    }
    series->files = what->own.files;
    series->sets = und_stream_updates(what) && what->stays_open ? smaller((int)what->own.names, what->dump_count) : 1;
    const int slots = series->sets * series->files;
    series->all_slots = series->slots = allocate(slots, sizeof *series->slots, what);
    series->is_open = allocate(series->sets, sizeof *series->is_open, what);
    series->calls = allocate(pieces, sizeof *series->calls, what);
    series->marks = allocate(series->files + 1, sizeof *series->marks, what);
    series->directories = und_series_new_directories(series);
    if (what->own.names > 0)
        series->made = allocate(what->own.names, sizeof *series->made, what);
    if (what->lookups.every_bytes > 0)
        series->looked_up = allocate(und_fold_lookups_memory(what), 1, what);
    if (und_stream_grows(what)) {
        series->lineages = allocate(pieces, sizeof *series->lineages, what);
        series->lineage_capacity = (int)pieces;
    }
    for (int s = 0; s < slots; ++s) {
        series->slots[s].comm = MPI_COMM_NULL;
        series->slots[s].files =
            s < series->files ? und_series_new_files(series, s) : series->slots[s % series->files].files;
        series->slots[s].path = series->slots[s].room = allocate(und_series_path_capacity(series), 1, what);
    }
    if (what->own.groups < run->ranks)
        UND_MPI(MPI_Comm_split(run->comm, (int)series->group.index, (int)as, &series->group_comm),
                "cannot group the ranks of the stream %s", what->name);
    return series;
}

static void drop_comm(struct und_slot *slot)
{
    if (slot->splits)
        MPI_Comm_free(&slot->comm);
    slot->comm = MPI_COMM_NULL;
    slot->splits = false;
}

void und_series_free(struct und_series *series)
{
    if (series->metadata)
        und_metadata_free(series->metadata);
    if (series->flood)
        und_flood_free(series->flood);
    if (series->caller)
        und_caller_free(series->caller);
    for (int s = 0; s < series->sets * series->files && !series->flood; ++s) {
        struct und_slot *slot = &series->all_slots[s];
        drop_comm(slot);
        if (s < series->files)
            und_files_free(slot->files);
        und_files_free(slot->subfile);
        und_files_free(slot->folder);
        free(slot->room);
    }
    if (series->group_comm != MPI_COMM_SELF)
        MPI_Comm_free(&series->group_comm);
    free(series->all_slots);
    free(series->pieces);
    free(series->first_pieces);
    free(series->is_open);
    free(series->places);
    free(series->lineages);
    und_files_free(series->directories);
    free(series->calls);
    free(series->marks);
    free(series->made);
    free(series->looked_up);
    free(series->flights);
    free(series);
}

int64_t und_series_rows(const struct und_series *series)
{
    return series->flood ? und_flood_count(series->flood) : series->files;
}

void und_series_go_to_row(struct und_series *series, int64_t index)
{
    const struct und_item item = und_flood_item(series->flood, index);
    struct und_slot *slot = series->slots;
    und_watch_call(series->run->watch, index);
    slot->files = und_flood_files(series->flood);
    slot->k = index;
    slot->path = item.path;
    slot->payload = item.bytes;
    slot->stored = 0;
    slot->contents = item.contents;
    series->row_variable = item.variable;
    und_files_enter(slot->files, index);
}

void und_series_leave_rows(struct und_series *series)
{
    if (series->flood)
        und_files_leave(und_flood_files(series->flood));
}

struct und_slot *und_series_slot(struct und_series *series, int64_t index)
{
    if (!series->flood)
        return &series->slots[index];
    und_series_go_to_row(series, index);
    return series->slots;
}

void und_series_take_operations(struct und_series *series)
{
    series->metadata = und_metadata_new(series->run, series->index);
}

/* The data files that operations act on: those that this rank has open, or of a flood all. */
static int64_t count_targets(const struct und_series *series)
{
    int64_t files = 0;
    if (series->flood)
        return und_flood_count(series->flood);
    for (int s = 0; s < series->files; ++s)
        files += series->slots[s].file != NULL;
    return files;
}

static const struct und_slot *slot_at(const struct und_series *series, int64_t index)
{
    int s = 0;
    for (;; ++s)
        if (series->slots[s].file && index-- == 0)
            return &series->slots[s];
}

static const char *target_path(void *context, int64_t index)
{
    const struct und_series *series = context;
    return series->flood ? und_flood_item(series->flood, index).path : slot_at(series, index)->path;
}

static struct und_file *target_file(void *context, int64_t index)
{
    return slot_at(context, index)->file;
}

int64_t und_series_operate(struct und_series *series, const struct und_operations *operations)
{
    const struct und_targets targets = {.count = count_targets(series),
                                        .path = target_path,
                                        .file = series->flood ? NULL : target_file,
                                        .context = series};
    return und_metadata_operate(series->metadata, operations, &targets, &series->pace.waited_s);
}

void und_series_verify(struct und_series *series, struct und_verification *verification)
{
    series->verification = verification;
    if (series->caller)
        und_caller_verify(series->caller, verification);
}

void und_series_read_from(struct und_series *series, struct und_series *base)
{
    series->base = base;
}

void und_series_lend(struct und_series *series, struct und_series *last)
{
    series->lends = true;
    last->lender = series;
}

struct und_series *und_series_returns(const struct und_series *series)
{
    return series->dump + 1 == series->stream->dump_count ? series->lender : NULL;
}

/* Does the dump begin a set of files? */
static bool begins(const struct und_series *series, int dump)
{
    const struct und_stream *stream = series->stream;
    return stream->stays_open ? dump < stream->own.names : und_stream_first(stream, dump) == dump;
}

bool und_series_is_open(const struct und_series *series)
{
    return series->is_open[und_series_set(series)];
}

bool und_series_ends_use(const struct und_series *series)
{
    const struct und_stream *stream = series->stream;
    return stream->stays_open && !series->lends && series->dump >= stream->dump_count - stream->own.names;
}

/* Marks the files in which this rank has bytes in the dump. */
static void mark_files(const struct und_series *series, const struct und_dump *dump, int *files)
{
    for (int v = 0; v < dump->variable_count; ++v) {
        const struct und_variable *variable = &dump->variables[v];
        struct und_dataset dataset;
        struct und_box block;
        if (files[variable->file])
            continue;
        und_layout_place(variable, series->run->ranks, &series->group, series->as, &dataset, &block);
        files[variable->file] = und_box_bytes(&dataset, &block) > 0;
    }
}

/* Finds the communicator of each file: the group's, or the part of it that has bytes in the file. */
static void choose_comms(struct und_series *series, int dump)
{
    const struct und_stream *stream = series->stream;
    const int count = stream->own.files;
    const bool all = und_series_shares_files(stream) && !series->base;
    const struct und_step *here = und_step_of(stream, dump), *end = stream->steps + stream->step_count;
    const struct und_step *from = all ? stream->steps : here, *to = from + 1;
    while (to < end && (all || !to->begins))
        ++to;
    const void *key = from->dump->variables ? (const void *)from->dump->variables : from->dump;
    if (series->slots[0].comms_for == key && (all || to == from + 1))
        return;
    series->slots[0].comms_for = key;

    int *mine = allocate(2 * (int64_t)count, sizeof *mine, stream), *rather = mine + count;
    for (const struct und_step *step = from; step < to; ++step)
        if (step == from || !step->dump->repeats)
            mark_files(series, step->dump, mine);
    /* The minimum says whether all ranks of the group have bytes, that of the negative whether any has. */
    for (int s = 0; s < count; ++s)
        rather[s] = -mine[s];
    int *least = allocate(2 * (int64_t)count, sizeof *least, stream);
    UND_MPI(MPI_Allreduce(mine, least, 2 * count, MPI_INT, MPI_MIN, series->group_comm),
            "cannot agree on the files of the stream %s", stream->name);
    for (int s = 0; s < count; ++s) {
        struct und_slot *slot = &series->slots[s];
        drop_comm(slot);
        if (least[s] == 1) {
            slot->comm = series->group_comm;
        } else if (least[count + s] == -1) {
            UND_MPI(MPI_Comm_split(series->group_comm, mine[s] ? 0 : MPI_UNDEFINED, 0, &slot->comm),
                    "cannot group the ranks of a file of the stream %s", stream->name);
            slot->splits = slot->comm != MPI_COMM_NULL;
        }
        int rank = -1;
        if (slot->comm != MPI_COMM_NULL)
            MPI_Comm_rank(slot->comm, &rank);
        slot->stands_for_it = rank == 0;
    }
    free(mine);
    free(least);
}

static struct und_group alone(int64_t rank)
{
    return (struct und_group){.index = rank, .first = rank, .end = rank + 1};
}

/* Bytes of one variable that ranks first … end-1 have. */
static int64_t bytes_of_ranks(const struct und_series *series, const struct und_variable *variable, int64_t first,
                              int64_t end)
{
    const struct und_group ranks = {.index = 0, .first = first, .end = end};
    struct und_dataset dataset;
    struct und_box block;
    und_layout_place(variable, series->run->ranks, &ranks, first, &dataset, &block);
    return und_dataset_elements(&dataset) * und_type_bytes(variable->type);
}

/* Bytes of the group in a file of the dump. */
static int64_t bytes_in_file(const struct und_series *series, const struct und_dump *dump, int file)
{
    int64_t bytes = 0;
    for (int v = 0; v < dump->variable_count; ++v)
        if (dump->variables[v].file == file)
            bytes += dump->variables[v].count *
                     bytes_of_ranks(series, &dump->variables[v], series->group.first, series->group.end);
    return bytes;
}

/* What the streams that this one extends have in the file of the dump. Files that are written again are
 * there from their first dump on, with bytes or without. */
static void find_bytes_before(struct und_series *series, int dump, int s)
{
    struct und_slot *slot = &series->slots[s];
    const struct und_workload *workload = series->run->workload;
    slot->before = 0;
    slot->exists = false;
    for (int b = series->stream->behind; b >= 0; b = workload->streams[b].behind) {
        const struct und_stream *base = &workload->streams[b];
        slot->before += bytes_in_file(series, und_dump_of(base, dump), s);
        slot->exists = slot->exists || slot->before > 0;
        for (int e = 0; und_stream_rewrites(base) && !slot->exists && e < base->entry_count; ++e)
            slot->exists = !base->entries[e].repeats && bytes_in_file(series, &base->entries[e], s) > 0;
    }
}

/* The files of the stream that this one extends, as far as this rank creates them. */
static void share_files(struct und_series *series, int file)
{
    struct und_files *files = und_files_noted(series->all_slots[file].files);
    for (int s = file; s < series->sets * series->files; s += series->files)
        series->all_slots[s].files = files;
}

static void begin_files(struct und_series *series, int dump)
{
    und_series_make_directory(series);
    for (int s = 0; s < series->files; ++s) {
        struct und_slot *slot = &series->slots[s];
        find_bytes_before(series, dump, s);
        slot->payload = slot->before;
        slot->stored = slot->stands_for_it ? slot->before : 0;
        if (series->stream->behind >= 0)
            share_files(series, s);
        slot->unsynced = slot->unread = slot->lookups = 0;
        slot->opened = false;
        slot->mark = (struct und_shared){0, 0};
        slot->k = und_series_number(series, dump);
        snprintf(slot->room, (size_t)und_series_path_capacity(series), "%s", und_series_path(series, dump, s));
        und_series_name_part(series, slot);
        if (series->mode != UND_CREATE || !series->plan->method->has_files || slot->exists)
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
    series->lineage_count = 0;
}

static bool joins(const struct und_lineage *lineage, const struct und_piece *piece)
{
    const struct und_dataset *a = &lineage->dataset, *b = &piece->dataset;
    return a->type == b->type && a->ndims == b->ndims &&
           memcmp(a->shape + 1, b->shape + 1, sizeof a->shape[0] * (size_t)(a->ndims - 1)) == 0;
}

/* The lineage of the piece: usually that of the same number, since time steps are alike. */
static struct und_lineage *find_lineage(struct und_series *series, int hint)
{
    const struct und_piece *piece = &series->pieces[hint];
    for (int i = 0; i < series->lineage_count; ++i) {
        struct und_lineage *lineage = &series->lineages[(hint + i) % series->lineage_count];
        if (lineage->slot == piece->slot && strcmp(lineage->name, piece->name) == 0)
            return lineage;
    }
    if (series->lineage_count == series->lineage_capacity) {
        const int more = 2 * series->lineage_capacity;
        struct und_lineage *grown = realloc(series->lineages, (size_t)more * sizeof *grown);
        UND_CHECK(grown, "no memory for %d datasets of the stream %s", more, series->stream->name);
        series->lineages = grown;
        series->lineage_capacity = more;
    }
    struct und_lineage *lineage = &series->lineages[series->lineage_count++];
    memset(lineage, 0, sizeof *lineage);
    lineage->slot = piece->slot;
    memcpy(lineage->name, piece->name, sizeof lineage->name);
    memcpy(lineage->stored_name, piece->name, sizeof lineage->stored_name);
    return lineage;
}

/* Where a time step of an appended file continues a dataset of the time steps before it. */
static void continue_lineage(struct und_series *series, int p)
{
    struct und_piece *piece = &series->pieces[p];
    struct und_lineage *lineage = find_lineage(series, p);
    if (lineage->rows > 0 && !joins(lineage, piece)) {
        snprintf(lineage->stored_name, sizeof lineage->stored_name, "%.120s_state%d", lineage->name, series->dump);
        lineage->rows = 0;
    }
    lineage->dataset = piece->dataset;
    memcpy(piece->name, lineage->stored_name, sizeof piece->name);
    piece->dataset.first_row = lineage->rows;
    lineage->rows += piece->dataset.shape[0];
}

/* In turns a file holds rank after rank: this one's bytes begin behind those of the ranks before it. */
static void begin_turns(struct und_series *series, const struct und_dump *dump)
{
    for (int s = 0; s < series->files; ++s)
        series->slots[s].begin = 0;
    for (int v = 0; v < dump->variable_count; ++v) {
        const struct und_variable *variable = &dump->variables[v];
        series->slots[variable->file].begin +=
            variable->count * bytes_of_ranks(series, variable, series->group.first, series->as);
    }
}

/* The ranks of a dataset: those of the file, or in turns each for itself. */
static const struct und_group *ranks_of_dataset(const struct und_series *series, const struct und_group *own)
{
    return series->stream->in_turn ? own : &series->group;
}

/* Where the part of the variable stands in the file. In turns every rank has a dataset of its own. */
static void place_piece(struct und_series *series, const struct und_variable *variable, struct und_piece *piece)
{
    struct und_slot *slot = &series->slots[variable->file];
    const struct und_group own = alone(series->as);
    und_layout_place(variable, series->run->ranks, ranks_of_dataset(series, &own), series->as, &piece->dataset,
                     &piece->block);
    const int64_t bytes = und_dataset_elements(&piece->dataset) * und_type_bytes(variable->type);
    piece->dataset.file_offset = slot->payload;
    if (series->stream->in_turn) {
        piece->dataset.file_offset = slot->begin;
        slot->begin += bytes;
        slot->payload += bytes_of_ranks(series, variable, series->group.first, series->group.end);
    } else {
        slot->payload += bytes;
    }
}

static void name_piece(const struct und_series *series, const struct und_variable *variable, int64_t number,
                       struct und_piece *piece)
{
    int length = 0;
    if (series->stream->in_turn)
        length = snprintf(piece->name, sizeof piece->name, "domain_%08" PRId64 "/", series->as);
    const size_t capacity = sizeof piece->name - (size_t)length;
    if (variable->count > 1)
        snprintf(piece->name + length, capacity, "%s_%" PRId64, variable->name, number);
    else
        snprintf(piece->name + length, capacity, "%s", variable->name);
}

static struct und_place *find_place(const struct und_series *series, const char *name)
{
    for (int i = series->place_count - 1; i >= 0; --i)
        if (strcmp(series->places[i].name, name) == 0)
            return &series->places[i];
    return NULL;
}

/* Notes where the variable begins that is added next; under a name that has been used before it is that place anew. */
static void note_place(struct und_series *series, const struct und_variable *variable)
{
    const struct und_place *other = variable->place ? find_place(series, variable->place) : NULL;
    const struct und_place place = {variable->name, other ? other->offset : series->slots[variable->file].payload};
    struct und_place *old = find_place(series, variable->name);
    if (!old && series->place_count == series->place_capacity) {
        series->place_capacity = 2 * series->place_capacity + 8;
        series->places = realloc(series->places, (size_t)series->place_capacity * sizeof *series->places);
        UND_CHECK(series->places, "no memory for %d places of the stream %s", series->place_capacity,
                  series->stream->name);
    }
    *(old ? old : &series->places[series->place_count++]) = place;
}

/* Where values matter, those of a dataset begin with one, wherever its bytes do. */
static int64_t begin_of(const struct und_piece *piece)
{
    const int64_t offset = piece->dataset.file_offset;
    return offset - offset % und_type_bytes(piece->base->type);
}

/* Adds the variable to the dump's pieces, if its file has bytes of it and this rank is one of the file's. */
static void add_piece(struct und_series *series, const struct und_variable *variable, int64_t number, int64_t identity)
{
    struct und_slot *slot = &series->slots[variable->file];
    struct und_piece *piece = &series->pieces[series->piece_count];
    const struct und_group own = alone(series->as);
    if (slot->comm == MPI_COMM_NULL) {
        if (series->stream->notes_places && !variable->place) /* readers on this rank look for what is behind it */
            slot->payload += bytes_of_ranks(series, variable, series->group.first, series->group.end);
        return;
    }
    const struct und_place *place = NULL;
    const int64_t payload = slot->payload;
    place_piece(series, variable, piece);
    const int64_t elements = und_dataset_elements(&piece->dataset);
    if (variable->place) {
        place = find_place(series->base ? series->base : series, variable->place);
        slot->payload = payload;
        piece->dataset.file_offset =
            place ? place->offset + number * elements * und_type_bytes(variable->type) : payload;
    }
    if (elements == 0)
        return;
    if (variable->place && !place)
        UND_DIE("%s has no place of the variable %s", slot->path, variable->place);
    name_piece(series, variable, number, piece);
    piece->slot = variable->file;
    piece->base = base_of(series, variable->type);
    piece->begin = begin_of(piece);
    piece->rule = &series->stream->order;
    piece->order = und_order_key(&series->stream->order, series->dump, identity, series->as);
    piece->dataset.name = piece->name;
    piece->dataset.first_row = 0;
    piece->dataset.exists = und_stream_updates(series->stream) && series->mode == UND_CREATE && !series->makes_files;
    piece->dataset.collective = und_plan_collective(variable, series->plan);
    const struct und_deal deal =
        und_layout_deal(variable, series->run->ranks, ranks_of_dataset(series, &own), series->as, &piece->block);
    und_cut_begin_dealt(&piece->cut, &piece->dataset, &piece->block, &deal,
                        und_plan_transfer_bytes(variable, series->plan));
    piece->calls = piece->cut.calls;
    piece->calls_of_flush = series->plan->method->collective
                                ? (series->plan->flush_bytes - 1) / und_plan_transfer_bytes(variable, series->plan) + 1
                                : 0;
    if (und_stream_grows(series->stream))
        continue_lineage(series, series->piece_count);
    ++series->piece_count;
}

/* Collective calls, of data or, between them, of flushes: every rank of a file makes as many as the one with
 * the maximum, unless the ranks take turns and each has the file alone. */
static bool goes_together(const struct und_series *series, const struct und_piece *piece)
{
    return !series->stream->in_turn &&
           (piece->dataset.collective ||
            (series->plan->flush_bytes > 0 && series->plan->method->collective && series->mode == UND_CREATE));
}

static void agree_on_calls(struct und_series *series)
{
    for (int s = 0; s < series->files; ++s) {
        int count = 0;
        if (series->slots[s].comm == MPI_COMM_NULL)
            continue;
        for (int p = 0; p < series->piece_count; ++p)
            if (series->pieces[p].slot == s && goes_together(series, &series->pieces[p]))
                series->calls[count++] = series->pieces[p].calls;
        if (count == 0)
            continue;
        UND_MPI(MPI_Allreduce(MPI_IN_PLACE, series->calls, count, MPI_INT64_T, MPI_MAX, series->slots[s].comm),
                "cannot agree on the number of calls for %s", series->slots[s].path);
        count = 0;
        for (int p = 0; p < series->piece_count; ++p)
            if (series->pieces[p].slot == s && goes_together(series, &series->pieces[p]))
                series->pieces[p].calls = series->calls[count++];
    }
}

/* Files that the stream which writes them has open: read through the same open, where all its ranks do so. */
static void borrow_files(struct und_series *series)
{
    for (int s = 0; s < series->files; ++s) {
        struct und_slot *slot = &series->slots[s], *base = &series->base->slots[s];
        int mine, its = 0, borrows;
        slot->borrowed = false;
        if (slot->comm == MPI_COMM_NULL)
            continue;
        MPI_Comm_size(slot->comm, &mine);
        if (base->file)
            MPI_Comm_size(base->comm, &its);
        borrows = its == mine;
        UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &borrows, 1, MPI_INT, MPI_MIN, slot->comm), "cannot agree on who reads %s",
                slot->path);
        slot->borrowed = borrows;
    }
}

/* Of those that several dumps use. */
static int set_of(const struct und_series *series)
{
    return und_stream_grows(series->stream) ? 0 : und_stream_set(series->stream, series->dump);
}

void und_series_note_opening(struct und_series *series)
{
    if (series->made)
        series->made[set_of(series)] = true;
}

/* Chooses the files of the dump. */
static void prepare_files(struct und_series *series, bool goes_on)
{
    const struct und_stream *stream = series->stream;
    const bool updates = und_stream_updates(stream);
    series->makes_files = !series->made || !series->made[set_of(series)];
    if (series->sets > 1)
        series->slots = series->all_slots + (ptrdiff_t)und_series_set(series) * series->files;
    if (!goes_on)
        choose_comms(series, series->dump);
    /* Another than the first may be all that is read of a set that stays open. */
    const bool grows = und_stream_grows(stream) && series->dump > 0;
    if (!grows && (begins(series, series->dump) || (updates && !und_series_is_open(series))))
        begin_files(series, series->dump);
    for (int s = 0; s < series->files && updates && !goes_on; ++s)
        series->slots[s].payload = 0;
    if (series->base)
        borrow_files(series);
}

/* What the files of the dump contain: files whose names are used again are told apart by how often they were. */
static void choose_contents(struct und_series *series)
{
    const struct und_series *maker = series->base ? series->base : series;
    const struct und_stream *stream = maker->stream;
    const bool again = stream->operation == UND_WRITES && und_stream_reuses(stream);
    const int64_t generation = again ? und_stream_content(stream, maker->dump) / stream->own.names : 0;
    const char *suffix = series->plan->method->suffix;
    for (int s = 0; s < series->files; ++s) {
        struct und_slot *slot = &series->slots[s];
        const char *name = slot->comm == MPI_COMM_NULL ? NULL : strrchr(slot->path, '/') + 1;
        if (name)
            slot->contents = und_pattern_identity(series->run->plan->seed, name,
                                                  strlen(name) - (suffix ? strlen(suffix) : 0), generation);
    }
}

/* Chooses what this rank moves in them. */
static void prepare_pieces(struct und_series *series, const struct und_dump *what, bool goes_on)
{
    int64_t identity = 0;
    choose_contents(series);
    if (!goes_on && !und_stream_grows(series->stream))
        series->place_count = 0;
    if (series->stream->in_turn)
        begin_turns(series, what);
    for (int v = 0; v < what->variable_count; ++v) {
        if (series->stream->notes_places && !series->base)
            note_place(series, &what->variables[v]);
        series->first_pieces[v] = series->piece_count;
        for (int64_t number = 0; number < what->variables[v].count; ++number)
            add_piece(series, &what->variables[v], number, identity++);
    }
    series->first_pieces[what->variable_count] = series->piece_count;
    agree_on_calls(series);
}

/* What each file with a row of the variable has. */
static void add_row(struct und_series *series, const struct und_variable *variable)
{
    static const struct und_order consecutive = {.rule = UND_CONSECUTIVE, .step = 1};
    struct und_piece *piece = &series->pieces[series->piece_count++];
    memset(piece, 0, sizeof *piece);
    snprintf(piece->name, sizeof piece->name, "%s", variable->name);
    piece->rule = &consecutive;
    piece->base = base_of(series, variable->type);
    piece->dataset =
        (struct und_dataset){.name = piece->name, .type = variable->type, .ndims = variable->ndims, .slabs = true};
    memcpy(piece->dataset.shape, variable->shape, sizeof piece->dataset.shape);
    piece->dataset.shape[0] = 1;
    memcpy(piece->block.count, piece->dataset.shape, sizeof piece->block.count);
    und_cut_begin(&piece->cut, &piece->dataset, &piece->block, und_plan_transfer_bytes(variable, series->plan));
    piece->calls = piece->cut.calls;
}

static void prepare_rows(struct und_series *series, const struct und_dump *what)
{
    und_flood_prepare(series->flood, series->dump, series->mode == UND_CREATE && series->plan->method->has_files);
    for (int v = 0; v < what->variable_count; ++v) {
        series->first_pieces[v] = v;
        add_row(series, &what->variables[v]);
    }
    series->first_pieces[what->variable_count] = what->variable_count;
}

void und_series_prepare(struct und_series *series, int dump)
{
    if (series->metadata)
        und_metadata_prepare(series->metadata, dump);
    const struct und_dump *what = und_dump_of(series->stream, dump);
    const bool goes_on = und_stream_first(series->stream, dump) < dump;
    series->dump = dump;
    series->piece_count = 0;
    if (series->caller)
        return;
    if (series->flood) {
        prepare_rows(series, what);
    } else {
        prepare_files(series, goes_on);
        prepare_pieces(series, what, goes_on);
    }
    for (int p = 0; p < series->piece_count && series->mode == UND_CREATE; ++p)
        und_base_continue(series->pieces[p].base);
}

void und_series_drop_cache(struct und_series *series, int dump)
{
    const struct und_method *method = series->plan->method;
    if (series->flood)
        und_flood_prepare(series->flood, dump, false);
    else if (method->part)
        choose_comms(series, dump);
    for (int64_t i = 0; i < und_series_rows(series) && method->has_files; ++i)
        und_directory_drop_cache(series->run->directory, method->name,
                                 series->flood ? und_flood_item(series->flood, i).path
                                               : und_series_path(series, dump, (int)i));
    for (int s = 0; s < series->files && method->part && !series->flood; ++s) {
        series->slots[s].k = und_series_number(series, dump);
        und_series_name_part(series, &series->slots[s]);
        if (series->slots[s].in_parts)
            und_directory_drop_cache(series->run->directory, method->name, series->slots[s].part);
    }
}

void und_series_call(struct und_series *series, und_note_call *note, void *context)
{
    und_caller_play(series->caller, &und_dump_of(series->stream, series->dump)->calls, &series->pace, note, context);
}

void und_series_count(struct und_series *series, int64_t *bytes, int64_t *operations, double *waited_s)
{
    if (series->caller)
        und_caller_count(series->caller, &series->bytes, &series->operations);
    /* Calls through an open of another stream are counted there. */
    if (series->base) {
        series->operations += series->base->operations;
        series->base->operations = 0;
    }
    *bytes = series->bytes;
    *operations = series->operations;
    *waited_s = series->pace.waited_s;
    series->bytes = 0;
    series->operations = 0;
    series->pace.waited_s = 0;
}
