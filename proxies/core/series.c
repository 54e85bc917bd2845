#include "core/series.h"

#include "core/created.h"
#include "core/die.h"
#include "core/parts.h"
#include "core/space.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Less than that free is a full disk to whoever writes. */
enum { LITTLE_BYTES = 64 * 1024 };

int64_t und_series_piece_memory(void)
{
    return (int64_t)(sizeof(struct und_piece) + sizeof(int64_t));
}

static void *room_for(int64_t count, size_t size, const struct und_stream *stream)
{
    void *room = calloc((size_t)count, size);
    UND_CHECK(room, "no memory for %" PRId64 " times %zu bytes of the stream %s", count, size, stream->name);
    return room;
}

/* Made before the first dump is, and found again for each piece. */
static struct und_base *base_of(const struct und_series *series, enum und_type type)
{
    struct und_pattern *pattern = series->run->pattern;
    struct und_base *base = und_pattern_base(pattern, &series->stream->content, type);
    UND_CHECK(base, "no memory for transfers of %" PRId64 " bytes: give a smaller size with --transfer", pattern->room);
    return base;
}

static void make_bases(const struct und_series *series)
{
    for (int d = 0; d < series->stream->dump_count; ++d)
        for (int v = 0; !series->stream->dumps[d].repeats && v < series->stream->dumps[d].variable_count; ++v)
            base_of(series, series->stream->dumps[d].variables[v].type);
}

static int64_t most_pieces(const struct und_stream *stream)
{
    int64_t most = 1;
    for (int d = 0; d < stream->dump_count; ++d) {
        int64_t here = 0;
        for (int v = 0; v < stream->dumps[d].variable_count; ++v)
            here += stream->dumps[d].variables[v].count;
        most = here > most ? here : most;
    }
    return most;
}

static int64_t path_room(const struct und_series *series)
{
    return (int64_t)strlen(series->run->options->directory) + UND_PATH_ROOM;
}

struct und_series *und_series_new(const struct und_run *run, int stream, int64_t as, enum und_mode mode)
{
    const struct und_stream *what = &run->workload->streams[stream];
    struct und_series *series = room_for(1, sizeof *series, what);
    series->run = run;
    series->stream = what;
    series->plan = &run->plans[stream];
    series->index = stream;
    series->as = as;
    series->mode = mode;
    series->group = und_group_of(as, run->ranks, what->groups);
    series->dump = -1;
    make_bases(series);
    series->slots = room_for(what->files, sizeof *series->slots, what);
    const int64_t pieces = most_pieces(what);
    series->pieces = room_for(pieces, sizeof *series->pieces, what);
    series->calls = room_for(pieces, sizeof *series->calls, what);
    if (what->append) {
        series->lineages = room_for(pieces, sizeof *series->lineages, what);
        series->lineage_room = (int)pieces;
    }
    for (int s = 0; s < what->files; ++s) {
        series->slots[s].comm = MPI_COMM_NULL;
        series->slots[s].path = room_for(path_room(series), 1, what);
        if (series->plan->method->part) {
            series->slots[s].folder = room_for(path_room(series), 1, what);
            series->slots[s].part = room_for(2 * path_room(series), 1, what);
        }
    }
    series->group_comm = MPI_COMM_SELF;
    if (what->groups < run->ranks)
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
    for (int s = 0; s < series->stream->files; ++s) {
        drop_comm(&series->slots[s]);
        free(series->slots[s].path);
        free(series->slots[s].folder);
        free(series->slots[s].part);
    }
    if (series->group_comm != MPI_COMM_SELF)
        MPI_Comm_free(&series->group_comm);
    free(series->slots);
    free(series->pieces);
    free(series->lineages);
    free(series->calls);
    free(series);
}

bool und_series_begins(const struct und_series *series, int dump)
{
    return !series->stream->append || dump == 0;
}

bool und_series_ends(const struct und_series *series, int dump)
{
    return !series->stream->append || dump == series->stream->dump_count - 1;
}

/* Marks the files in which this rank has bytes in the dump. */
static void mark_files(const struct und_series *series, const struct und_dump *dump, int *files)
{
    for (int v = 0; v < dump->variable_count; ++v) {
        const struct und_variable *variable = &dump->variables[v];
        struct und_dataset dataset;
        struct und_box block;
        int64_t content;
        if (files[variable->file])
            continue;
        und_layout_place(variable, series->run->ranks, &series->group, series->as, &dataset, &block, &content);
        files[variable->file] = und_box_bytes(&dataset, &block) > 0;
    }
}

/* Finds the communicator of each file: the group's, or the part of it that has bytes in the file. */
static void choose_comms(struct und_series *series, int dump)
{
    const struct und_stream *stream = series->stream;
    const int count = stream->files;
    const int from = stream->append ? 0 : dump, to = stream->append ? stream->dump_count : dump + 1;
    if (series->comms_for == stream->dumps[from].variables)
        return;
    series->comms_for = stream->dumps[from].variables;

    int *mine = room_for(2 * (int64_t)count, sizeof *mine, stream), *rather = mine + count;
    for (int d = from; d < to; ++d)
        if (d == from || !stream->dumps[d].repeats)
            mark_files(series, &stream->dumps[d], mine);
    /* The minimum says whether all ranks of the group have bytes, that of the negative whether any has. */
    for (int s = 0; s < count; ++s)
        rather[s] = -mine[s];
    int *least = room_for(2 * (int64_t)count, sizeof *least, stream);
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

/* DIR/<stream>[.<dump>][.f<file>][.<rank> or .g<group>][<suffix of the method>] */
static void name_file(const struct und_series *series, int dump, int file, char *path)
{
    const struct und_stream *stream = series->stream;
    const size_t room = (size_t)path_room(series);
    int length = snprintf(path, room, "%s/%s", series->run->options->directory, stream->name);
    if (!stream->append)
        length += snprintf(path + length, room - (size_t)length, ".%06d", dump);
    if (stream->files > 1)
        length += snprintf(path + length, room - (size_t)length, ".f%d", file);
    if (stream->layout == UND_FILE_PER_PROCESS)
        length += snprintf(path + length, room - (size_t)length, ".%08" PRId64, series->as);
    else if (stream->layout == UND_GROUPED)
        length += snprintf(path + length, room - (size_t)length, ".g%" PRId64, series->group.index);
    if (series->plan->method->suffix)
        snprintf(path + length, room - (size_t)length, "%s", series->plan->method->suffix);
}

/* <path>.dir/<name of the file>.<k>, where the method keeps the bytes of the slot's ranks in parts. */
static void name_part(const struct und_series *series, struct und_slot *slot)
{
    const struct und_method *method = series->plan->method;
    const int64_t *values = series->plan->settings;
    const size_t room = (size_t)path_room(series);
    int rank = 0, size = 1;
    slot->in_parts = slot->makes = false;
    if (!method->part || slot->comm == MPI_COMM_NULL)
        return;
    if (!series->stream->turns) {
        MPI_Comm_rank(slot->comm, &rank);
        MPI_Comm_size(slot->comm, &size);
    }
    const int64_t part = method->part(values, rank, size);
    if (part < 0)
        return;
    slot->in_parts = true;
    slot->makes =
        series->stream->turns ? slot->stands_for_it : rank == 0 || method->part(values, rank - 1, size) != part;
    snprintf(slot->folder, room, "%s.dir", slot->path);
    snprintf(slot->part, 2 * room, "%s/%s.%" PRId64, slot->folder, strrchr(slot->path, '/') + 1, part);
}

static void begin_files(struct und_series *series, int dump)
{
    for (int s = 0; s < series->stream->files; ++s) {
        struct und_slot *slot = &series->slots[s];
        slot->payload = 0;
        slot->stored = 0;
        name_file(series, dump, s, slot->path);
        name_part(series, slot);
        if (series->mode != UND_CREATE || !series->plan->method->has_files)
            continue;
        if (slot->stands_for_it)
            und_created_reserve(slot->path, UND_DATA_FILE);
        if (slot->makes) {
            und_created_reserve(slot->folder, UND_DATA_DIRECTORY);
            und_created_reserve(slot->part, UND_DATA_FILE);
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

/* The lineage of the piece: most often that of the same number, since states are alike. */
static struct und_lineage *find_lineage(struct und_series *series, int hint)
{
    const struct und_piece *piece = &series->pieces[hint];
    for (int i = 0; i < series->lineage_count; ++i) {
        struct und_lineage *lineage = &series->lineages[(hint + i) % series->lineage_count];
        if (lineage->slot == piece->slot && strcmp(lineage->name, piece->name) == 0)
            return lineage;
    }
    if (series->lineage_count == series->lineage_room) {
        const int more = 2 * series->lineage_room;
        struct und_lineage *grown = realloc(series->lineages, (size_t)more * sizeof *grown);
        UND_CHECK(grown, "no memory for %d datasets of the stream %s", more, series->stream->name);
        series->lineages = grown;
        series->lineage_room = more;
    }
    struct und_lineage *lineage = &series->lineages[series->lineage_count++];
    memset(lineage, 0, sizeof *lineage);
    lineage->slot = piece->slot;
    memcpy(lineage->name, piece->name, sizeof lineage->name);
    memcpy(lineage->stored_name, piece->name, sizeof lineage->stored_name);
    return lineage;
}

/* Where a state of an appended file goes on with a dataset of the states before it. */
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
    int64_t content;
    und_layout_place(variable, series->run->ranks, &ranks, first, &dataset, &block, &content);
    return und_dataset_elements(&dataset) * und_type_bytes(variable->type);
}

/* In turns a file holds rank after rank: this one's bytes begin behind those of the ranks before it. */
static void begin_turns(struct und_series *series, const struct und_dump *dump)
{
    for (int s = 0; s < series->stream->files; ++s)
        series->slots[s].begin = 0;
    for (int v = 0; v < dump->variable_count; ++v) {
        const struct und_variable *variable = &dump->variables[v];
        series->slots[variable->file].begin +=
            variable->count * bytes_of_ranks(series, variable, series->group.first, series->as);
    }
}

/* Where the part of the variable stands in the file. In turns every rank has a dataset of its own. */
static void place_piece(struct und_series *series, const struct und_variable *variable, struct und_piece *piece)
{
    struct und_slot *slot = &series->slots[variable->file];
    const struct und_group own = alone(series->as);
    const struct und_group *group = series->stream->turns ? &own : &series->group;
    und_layout_place(variable, series->run->ranks, group, series->as, &piece->dataset, &piece->block, &piece->content);
    const int64_t bytes = und_dataset_elements(&piece->dataset) * und_type_bytes(variable->type);
    piece->dataset.file_offset = slot->payload;
    if (series->stream->turns) {
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
    if (series->stream->turns)
        length = snprintf(piece->name, sizeof piece->name, "domain_%08" PRId64 "/", series->as);
    const size_t room = sizeof piece->name - (size_t)length;
    if (variable->count > 1)
        snprintf(piece->name + length, room, "%s_%" PRId64, variable->name, number);
    else
        snprintf(piece->name + length, room, "%s", variable->name);
}

/* Adds the variable to the dump's pieces, if its file has bytes of it and this rank is one of the file's. */
static void add_piece(struct und_series *series, const struct und_variable *variable, int64_t number, int64_t identity)
{
    struct und_slot *slot = &series->slots[variable->file];
    struct und_piece *piece = &series->pieces[series->piece_count];
    if (slot->comm == MPI_COMM_NULL)
        return;
    place_piece(series, variable, piece);
    if (und_dataset_elements(&piece->dataset) == 0)
        return;
    name_piece(series, variable, number, piece);
    piece->slot = variable->file;
    piece->base = base_of(series, variable->type);
    piece->identity = und_pattern_identity((uint64_t)series->run->options->seed, series->index, series->dump, identity);
    piece->dataset.name = piece->name;
    piece->dataset.first_row = 0;
    piece->dataset.collective = und_plan_collective(variable, series->plan, series->run->options);
    und_cut_begin(&piece->cut, &piece->dataset, &piece->block, und_plan_transfer_bytes(variable, series->run->options));
    piece->calls = piece->cut.calls;
    if (series->stream->append)
        continue_lineage(series, series->piece_count);
    ++series->piece_count;
}

/* Collective calls: every rank of a file makes as many as the one with the most. */
static void agree_on_calls(struct und_series *series)
{
    for (int s = 0; s < series->stream->files; ++s) {
        int count = 0;
        if (series->slots[s].comm == MPI_COMM_NULL)
            continue;
        for (int p = 0; p < series->piece_count; ++p)
            if (series->pieces[p].slot == s && series->pieces[p].dataset.collective)
                series->calls[count++] = series->pieces[p].calls;
        if (count == 0)
            continue;
        UND_MPI(MPI_Allreduce(MPI_IN_PLACE, series->calls, count, MPI_INT64_T, MPI_MAX, series->slots[s].comm),
                "cannot agree on the number of calls for %s", series->slots[s].path);
        count = 0;
        for (int p = 0; p < series->piece_count; ++p)
            if (series->pieces[p].slot == s && series->pieces[p].dataset.collective)
                series->pieces[p].calls = series->calls[count++];
    }
}

void und_series_prepare(struct und_series *series, int dump)
{
    const struct und_dump *what = &series->stream->dumps[dump];
    int64_t identity = 0;
    series->dump = dump;
    choose_comms(series, dump);
    if (und_series_begins(series, dump))
        begin_files(series, dump);
    series->piece_count = 0;
    if (series->stream->turns)
        begin_turns(series, what);
    for (int v = 0; v < what->variable_count; ++v)
        for (int64_t number = 0; number < what->variables[v].count; ++number)
            add_piece(series, &what->variables[v], number, identity++);
    agree_on_calls(series);
    for (int p = 0; p < series->piece_count && series->mode == UND_CREATE; ++p)
        und_base_continue(series->pieces[p].base);
}

static void create_part(const struct und_series *series, const struct und_slot *slot)
{
    und_created_share(slot->folder);
    const int created = und_created_file(slot->part);
    UND_CHECK(created >= 0 && close(created) == 0, "%s: cannot create %s", series->plan->method->name, slot->part);
}

/* One rank creates the file and all of the file's ranks wait for it, because some MPI libraries
 * hang in an open that fails on one rank. A rank that fails ends the run, the others with it. */
static int create_file(const struct und_series *series, const struct und_slot *slot)
{
    int created = -1, size, done = 1;
    if (slot->stands_for_it) {
        created = und_created_file(slot->path);
        UND_CHECK(created >= 0, "%s: cannot create %s", series->plan->method->name, slot->path);
        if (slot->in_parts)
            UND_CHECK(und_created_make(slot->folder), "%s: cannot make %s", series->plan->method->name, slot->folder);
    }
    MPI_Comm_size(slot->comm, &size);
    if (size > 1 && !series->stream->turns)
        UND_MPI(MPI_Bcast(&done, 1, MPI_INT, 0, slot->comm), "cannot agree on the creation of %s", slot->path);
    if (slot->makes)
        create_part(series, slot);
    return created;
}

/* Bytes of this rank in the file, of the prepared dump. */
static int64_t bytes_in_slot(const struct und_series *series, int s)
{
    int64_t bytes = 0;
    for (int p = 0; p < series->piece_count; ++p)
        if (series->pieces[p].slot == s)
            bytes += und_box_bytes(&series->pieces[p].dataset, &series->pieces[p].block);
    return bytes;
}

/* The baton is an empty message along the ranks of the group. */
static void baton(const struct und_series *series, bool receives)
{
    int rank, size;
    if (!series->stream->turns)
        return;
    MPI_Comm_rank(series->group_comm, &rank);
    MPI_Comm_size(series->group_comm, &size);
    if (receives && rank > 0)
        UND_MPI(MPI_Recv(NULL, 0, MPI_BYTE, rank - 1, 0, series->group_comm, MPI_STATUS_IGNORE),
                "cannot wait for the turn of this rank in the stream %s", series->stream->name);
    if (!receives && rank < size - 1)
        UND_MPI(MPI_Send(NULL, 0, MPI_BYTE, rank + 1, 0, series->group_comm),
                "cannot pass the turn to the next rank in the stream %s", series->stream->name);
}

void und_series_take_turn(const struct und_series *series)
{
    baton(series, true);
}

void und_series_pass_turn(const struct und_series *series)
{
    baton(series, false);
}

void und_series_open(struct und_series *series)
{
    for (int s = 0; s < series->stream->files; ++s) {
        struct und_slot *slot = &series->slots[s];
        if (slot->comm == MPI_COMM_NULL)
            continue;
        const bool creates = series->mode == UND_CREATE && series->plan->method->has_files;
        int created = creates ? create_file(series, slot) : -1;
        const bool turns = series->stream->turns;
        const struct und_open how = {
            .path = slot->path,
            .comm = turns ? MPI_COMM_SELF : slot->comm,
            .mode = turns && creates && !slot->stands_for_it ? UND_EXTEND : series->mode,
            .turns = turns,
            .append = series->stream->append,
            .transfer_bytes = series->plan->most_transfer_bytes,
            .bytes = bytes_in_slot(series, s),
            .part = slot->makes ? slot->part : NULL,
            .settings = series->plan->settings,
            .created = &created,
            .operations = &series->operations,
        };
        int rank;
        MPI_Comm_rank(how.comm, &rank);
        und_created_opening(slot->path, rank);
        slot->file = series->plan->method->open(&how);
        und_created_opened();
        if (created >= 0)
            UND_CHECK(close(created) == 0, "%s: cannot close %s", series->plan->method->name, slot->path);
    }
}

/* The kernel forgets pages only when they are clean. */
static void drop_file(const struct und_series *series, const char *path)
{
    const char *method = series->plan->method->name;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT)
        return;
    UND_CHECK(descriptor >= 0, "%s: cannot open %s to drop it from memory", method, path);
    UND_CHECK(fsync(descriptor) == 0, "%s: cannot flush %s", method, path);
    const int code = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    if (code != 0)
        UND_DIE("%s: cannot drop %s from memory: %s", method, path, strerror(code));
    close(descriptor);
}

void und_series_drop_cache(struct und_series *series, int dump)
{
    if (series->plan->method->part)
        choose_comms(series, dump);
    for (int s = 0; s < series->stream->files && series->plan->method->has_files; ++s) {
        struct und_slot slot = series->slots[s];
        slot.path = room_for(path_room(series), 1, series->stream);
        name_file(series, dump, s, slot.path);
        drop_file(series, slot.path);
        name_part(series, &slot);
        if (slot.in_parts)
            drop_file(series, slot.part);
        free(slot.path);
    }
}

bool und_series_find(const struct und_series *series, struct und_error *error)
{
    const bool exact = !series->plan->method->suffix, append = series->stream->append;
    for (int s = 0; s < series->stream->files && series->plan->method->has_files; ++s) {
        const struct und_slot *slot = &series->slots[s];
        struct stat status;
        if (slot->comm == MPI_COMM_NULL || !slot->stands_for_it)
            continue;
        if (stat(slot->path, &status) != 0)
            return und_fail(error, "--restart-from: cannot find %s: %s", slot->path, strerror(errno));
        const int64_t bytes = (int64_t)status.st_size;
        if (exact && (append ? bytes < slot->payload : bytes != slot->payload))
            return und_fail(error,
                            "--restart-from: %s has %" PRId64 " bytes, expected %" PRId64 " for %d ranks; another "
                            "number of ranks can read only files that all ranks share",
                            slot->path, bytes, slot->payload, series->run->ranks);
    }
    return true;
}

void und_series_sync(struct und_series *series)
{
    for (int s = 0; s < series->stream->files; ++s)
        if (series->slots[s].comm != MPI_COMM_NULL)
            series->plan->method->sync(series->slots[s].file);
}

void und_series_close(struct und_series *series)
{
    for (int s = 0; s < series->stream->files; ++s)
        if (series->slots[s].comm != MPI_COMM_NULL) {
            series->plan->method->close(series->slots[s].file);
            series->slots[s].file = NULL;
        }
}

void und_series_count(struct und_series *series, int64_t *bytes, int64_t *operations)
{
    *bytes = series->bytes;
    *operations = series->operations;
    series->bytes = 0;
    series->operations = 0;
}

/* Size of a file that this rank has made; once it is closed, it must be whole. */
static int64_t look_at(const struct und_series *series, const char *path, bool closed)
{
    const struct und_method *method = series->plan->method;
    struct stat status;
    struct und_error error;
    UND_CHECK(stat(path, &status) == 0, "%s: cannot find %s again", method->name, path);
    if (closed && method->whole && !method->whole(path, &error)) {
        const char *why = und_space_is_out(path, LITTLE_BYTES) ? strerror(ENOSPC) : error.text;
        UND_DIE("%s: cannot write all of %s: %s", method->name, path, why);
    }
    return (int64_t)status.st_size;
}

void und_series_look(struct und_series *series, int64_t *files, int64_t *file_bytes)
{
    *files = 0;
    *file_bytes = 0;
    for (int s = 0; s < series->stream->files && series->plan->method->has_files; ++s) {
        struct und_slot *slot = &series->slots[s];
        int64_t stored = 0, all = 0;
        if (slot->comm == MPI_COMM_NULL)
            continue;
        *files += slot->stands_for_it + slot->makes;
        if (series->mode == UND_READ)
            continue;
        /* Not every method's close waits for the other ranks. */
        UND_MPI(MPI_Barrier(slot->comm), "cannot wait for the ranks of %s", slot->path);
        if (slot->stands_for_it)
            stored += look_at(series, slot->path, !slot->file);
        if (slot->makes)
            stored += look_at(series, slot->part, !slot->file);
        *file_bytes += stored - slot->stored;
        all = slot->stored = stored;
        if (slot->in_parts)
            UND_MPI(MPI_Reduce(&stored, &all, 1, MPI_INT64_T, MPI_SUM, 0, slot->comm), "cannot add up the parts of %s",
                    slot->path);
        /* A full disk that the interface did not report shows here at the latest. */
        if (slot->stands_for_it && !slot->file && !series->plan->packs && all < slot->payload)
            UND_DIE("%s: %s has %" PRId64 " bytes on storage, less than the %" PRId64 " written to it",
                    series->plan->method->name, slot->path, all, slot->payload);
    }
}
