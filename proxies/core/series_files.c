/* The files of a prepared dump: created, opened, in turns rank after rank, checked, closed and looked at. */
#include "core/die.h"
#include "core/flood.h"
#include "core/parts.h"
#include "core/run_directory.h"
#include "core/space.h"
#include "core/stop.h"
#include "core/striped.h"
#include "core/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rows are left once all are done. */
static void leave(const struct und_series *series, struct und_files *files)
{
    if (!series->flood)
        und_files_leave(files);
}

static void create_part(const struct und_series *series, const struct und_slot *slot)
{
    struct und_error error;
    int created;
    if (!und_files_have_directory(slot->folder, 0, false, &error) ||
        !und_files_create(slot->subfile, 0, und_striped_request(series->run->striped), &created, &error))
        UND_DIE("%s: %s", series->plan->method->name, error.text);
    leave(series, slot->subfile);
    UND_CHECK(created < 0 || close(created) == 0, "%s: cannot create %s", series->plan->method->name, slot->part);
}

/* From the rank that created the file to all that open it. */
static void share_mark(const struct und_series *series, struct und_slot *slot)
{
    int size;
    if (slot->stands_for_it)
        slot->mark = und_files_share(slot->files, slot->k);
    MPI_Comm_size(slot->comm, &size);
    if (size > 1 && !series->stream->in_turn)
        UND_MPI(MPI_Bcast(&slot->mark, sizeof slot->mark, MPI_BYTE, 0, slot->comm),
                "cannot agree on the creation of %s", slot->path);
}

/* One rank creates the file and all of the file's ranks wait for it, because some MPI libraries
 * hang in an open that fails on one rank. A rank that fails ends the run, the others with it. */
static int create_file(const struct und_series *series, struct und_slot *slot)
{
    int created = -1;
    struct und_error error;
    if (slot->stands_for_it && !series->makes_files && series->stream->opening != UND_OPEN_NEW) {
        if (!und_files_truncate(slot->files, slot->k, &created, &error))
            UND_DIE("%s: %s", series->plan->method->name, error.text);
    } else if (slot->stands_for_it &&
               (!und_files_create(slot->files, slot->k, und_striped_request(series->run->striped), &created, &error) ||
                (slot->in_parts && !und_files_have_directory(slot->folder, 0, true, &error))))
        UND_DIE("%s: %s", series->plan->method->name, error.text);
    leave(series, slot->files);
    share_mark(series, slot);
    if (slot->makes)
        create_part(series, slot);
    return created;
}

/* Bytes of this rank in the file, of the prepared dump. */
static int64_t bytes_in_slot(const struct und_series *series, int s)
{
    int64_t bytes = 0;
    const int first = series->flood ? series->row_variable : 0, end = series->flood ? first + 1 : series->piece_count;
    for (int p = first; p < end; ++p)
        if (series->pieces[p].slot == s)
            bytes += series->pieces[p].cut.elements * und_type_bytes(series->pieces[p].dataset.type);
    return bytes;
}

/* The baton is a message along the ranks of the group: the marks of the files that are there. */
static int begin_baton(const struct und_series *series, int *rank, int *size)
{
    MPI_Comm_rank(series->group_comm, rank);
    MPI_Comm_size(series->group_comm, size);
    for (int s = 0; s < series->files; ++s)
        series->marks[s] = series->slots[s].mark;
    return series->files * (int)sizeof *series->marks;
}

void und_series_take_turn(struct und_series *series)
{
    int rank, size;
    if (!series->stream->in_turn)
        return;
    const int bytes = begin_baton(series, &rank, &size);
    if (rank > 0)
        UND_MPI(MPI_Recv(series->marks, bytes, MPI_BYTE, rank - 1, 0, series->group_comm, MPI_STATUS_IGNORE),
                "cannot wait for the turn of this rank in the stream %s", series->stream->name);
    for (int s = 0; s < series->files; ++s)
        series->slots[s].mark = series->marks[s];
}

void und_series_pass_turn(struct und_series *series)
{
    int rank, size;
    if (!series->stream->in_turn)
        return;
    const int bytes = begin_baton(series, &rank, &size);
    if (rank < size - 1)
        UND_MPI(MPI_Send(series->marks, bytes, MPI_BYTE, rank + 1, 0, series->group_comm),
                "cannot pass the turn to the next rank in the stream %s", series->stream->name);
}

/* Of another, or one that cannot be looked at. */
static _Noreturn void die_of_another(const struct und_series *series, const struct und_slot *slot)
{
    UND_CHECK(errno == 0, "%s: cannot look at %s", series->plan->method->name, slot->path);
    UND_DIE("%s: %s is no longer the file that this run created", series->plan->method->name, slot->path);
}

/* Files that are there: the rank that has created one looks whether it still is, and tells the others. */
void und_series_check(struct und_series *series, bool opens)
{
    const bool made = !series->makes_files;
    bool any = made;
    if (series->flood && series->plan->method->has_files)
        und_flood_check_directories(series->flood);
    for (int s = 0; s < series->files; ++s)
        any = any || series->slots[s].exists;
    if (!opens || !any || series->mode != UND_CREATE || !series->plan->method->has_files)
        return;
    for (int s = 0; s < series->files; ++s) {
        const struct und_slot *slot = &series->slots[s];
        series->marks[s] = (struct und_shared){0, 0};
        if (made || slot->exists)
            series->marks[s] = und_files_share(slot->files, slot->k);
        if (!und_identity_matches(AT_FDCWD, und_directory_name(series->run->directory, slot->path),
                                  und_directory_shared(series->run->directory, series->marks[s])))
            die_of_another(series, slot);
    }
    /* Those that have not created it have zeros. */
    const int words = (int)(sizeof *series->marks / sizeof(uint64_t));
    UND_MPI(
        MPI_Allreduce(MPI_IN_PLACE, series->marks, series->files * words, MPI_UINT64_T, MPI_MAX, series->group_comm),
        "cannot agree on the files of the stream %s", series->stream->name);
    for (int s = 0; s < series->files; ++s)
        series->slots[s].mark = series->marks[s];
}

/* An interface that opens a file by its name may find another by now. */
static void check_file(const struct und_series *series, const struct und_slot *slot, int descriptor)
{
    const struct und_method *method = series->plan->method;
    const char *name = descriptor < 0 ? und_directory_name(series->run->directory, slot->path) : "";
    if (series->mode == UND_CREATE && method->has_files && !method->store && !method->replaces &&
        !und_identity_matches(descriptor < 0 ? AT_FDCWD : descriptor, name,
                              und_directory_shared(series->run->directory, slot->mark)))
        die_of_another(series, slot);
}

/* Those who come to a file in turns find it made by the first. */
static enum und_mode mode_of(const struct und_series *series, const struct und_slot *slot, bool goes_on)
{
    const bool is_made = series->stream->in_turn && series->plan->method->has_files && !slot->stands_for_it;
    if (series->mode != UND_CREATE)
        return series->mode;
    return goes_on || is_made ? UND_EXTEND : UND_CREATE;
}

/* Is the file that a method creates this rank's to remove as soon as it is there? */
static bool adopts(const struct und_slot *slot, const struct und_open *how)
{
    return how->creates && slot->stands_for_it;
}

void und_series_hand(const struct und_series *series, const struct und_slot *slot,
                     void (*hand)(struct und_files *files, int64_t k))
{
    if (!series->plan->method->replaces || series->mode != UND_CREATE || slot->exists)
        return;
    if (slot->stands_for_it)
        hand(slot->files, slot->k);
    if (slot->makes)
        hand(slot->subfile, 0);
}

static void open_by_method(const struct und_series *series, struct und_slot *slot, const struct und_open *how)
{
    const struct und_method *method = series->plan->method;
    if (adopts(slot, how))
        und_stop_hold();
    else if (!method->descriptor)
        check_file(series, slot, -1);
    und_series_hand(series, slot, und_files_lend);
    und_files_enter(slot->files, slot->k);
    slot->file = method->open(how);
    if (adopts(slot, how)) {
        und_files_adopt(slot->files, slot->k, method->descriptor ? method->descriptor(slot->file) : -1);
        und_stop_release();
    }
    leave(series, slot->files);
}

/* Does an open of the file make it, or empty it? */
static bool creates(const struct und_series *series, const struct und_slot *slot)
{
    return series->mode == UND_CREATE && series->plan->method->has_files && !slot->exists &&
           !und_series_continues(series);
}

/* Has the file ranks that open it at the same time, of which this is one? */
static bool has_several(const struct und_series *series, const struct und_slot *slot)
{
    int size = 0;
    if (slot->comm != MPI_COMM_NULL && !slot->borrowed && !series->stream->in_turn)
        MPI_Comm_size(slot->comm, &size);
    return size > 1;
}

void und_series_take_away(struct und_series *series, bool backup, bool shared)
{
    struct und_error error;
    for (int s = 0; s < series->files; ++s) {
        const struct und_slot *slot = &series->slots[s];
        if (slot->comm == MPI_COMM_NULL || slot->is_created || !slot->stands_for_it || series->makes_files ||
            !creates(series, slot) || (shared && !has_several(series, slot)))
            continue;
        und_watch_enter(series->run->watch, "remove", slot->path, false);
        if (!und_files_may_go(slot->files, slot->k, false, backup, &error) ||
            !und_files_take_away(slot->files, slot->k, false, backup, &error))
            UND_DIE("%s: %s", series->plan->method->name, error.text);
        leave(series, slot->files);
        und_watch_leave(series->run->watch);
    }
}

static bool creates_by_method(const struct und_series *series, const struct und_slot *slot)
{
    return creates(series, slot) && series->plan->creates && series->makes_files;
}

bool und_series_opens_together(const struct und_series *series)
{
    for (int s = 0; s < series->files; ++s)
        if (has_several(series, &series->slots[s]) &&
            (series->plan->method->collective || creates_by_method(series, &series->slots[s])))
            return true;
    return false;
}

void und_series_create(struct und_series *series)
{
    for (int s = 0; s < series->files; ++s) {
        struct und_slot *slot = &series->slots[s];
        if (!has_several(series, slot) || !creates(series, slot))
            continue;
        und_watch_enter(series->run->watch, "create", slot->path, true);
        slot->created = create_file(series, slot);
        slot->is_created = true;
    }
    und_series_leave(series);
}

static void open_slot(struct und_series *series, int s)
{
    struct und_slot *slot = &series->slots[s];
    const struct und_method *method = series->plan->method;
    const bool goes_on = slot->exists || und_series_continues(series);
    const bool by_method = creates_by_method(series, slot);
    int created = slot->is_created                      ? slot->created
                  : creates(series, slot) && !by_method ? create_file(series, slot)
                                                        : -1;
    slot->is_created = false;
    const bool turns = series->stream->in_turn;
    const struct und_open how = {
        .path = slot->path,
        .directory = series->run->directory,
        .comm = turns ? MPI_COMM_SELF : slot->comm,
        .mode = mode_of(series, slot, goes_on),
        .write_through = series->stream->write_through,
        .turns = turns,
        .append = und_stream_grows(series->stream),
        .looks_up = series->stream->lookups.every_bytes > 0 || series->plan->is_read_open,
        .lasting = series->plan->lasting || series->stream->sync_bytes > 0,
        .transfer_bytes = series->plan->most_transfer_bytes,
        .bytes = bytes_in_slot(series, s),
        .part = slot->makes ? slot->part : NULL,
        .settings = series->plan->settings,
        .creates = by_method && (!turns || slot->stands_for_it),
        .hints = und_striped_hints(series->run->striped, series->index),
        .created = &created,
        .operations = &series->operations,
    };
    open_by_method(series, slot, &how);
    if (by_method)
        share_mark(series, slot);
    if (!adopts(slot, &how))
        check_file(series, slot, method->descriptor ? method->descriptor(slot->file) : -1);
    slot->opened = true;
    if (created >= 0)
        UND_CHECK(close(created) == 0, "%s: cannot close %s", method->name, slot->path);
}

void und_series_open(struct und_series *series)
{
    for (int s = 0; s < series->files; ++s) {
        struct und_slot *slot = &series->slots[s];
        if (slot->comm == MPI_COMM_NULL)
            continue;
        if (slot->borrowed) {
            slot->file = series->base->slots[s].file;
            continue;
        }
        und_series_enter(series, "open", slot->path, true);
        open_slot(series, s);
    }
    series->is_open[und_series_set(series)] = true;
    und_series_note_opening(series);
    und_series_leave(series);
}

bool und_series_find(struct und_series *series, struct und_error *error)
{
    const struct und_stream *stream = series->stream;
    const bool exact = !series->plan->method->suffix;
    const bool may_have_more = und_stream_updates(stream) || stream->followed_by >= 0;
    for (int64_t i = 0; i < und_series_rows(series) && series->plan->method->has_files; ++i) {
        const struct und_slot *slot = und_series_slot(series, i);
        struct stat status;
        if (slot->comm == MPI_COMM_NULL || !slot->stands_for_it)
            continue;
        if (stat(und_directory_name(series->run->directory, slot->path), &status) != 0)
            return und_fail(error, "--restart-from: cannot find %s: %s", slot->path, strerror(errno));
        const int64_t bytes = (int64_t)status.st_size;
        if (exact && (may_have_more ? bytes < slot->payload : bytes != slot->payload))
            return und_fail(error,
                            "--restart-from: %s has %" PRId64 " bytes, expected %" PRId64 " for %d ranks; another "
                            "number of ranks can read only files that all ranks share",
                            slot->path, bytes, slot->payload, series->run->ranks);
    }
    return true;
}

void und_series_close(struct und_series *series)
{
    for (int s = 0; s < series->files; ++s)
        if (series->slots[s].comm != MPI_COMM_NULL) {
            und_series_enter(series, "close", series->slots[s].path, true);
            if (!series->slots[s].borrowed)
                series->plan->method->close(series->slots[s].file);
            und_series_hand(series, &series->slots[s], und_files_take_back);
            series->slots[s].file = NULL;
        }
    series->is_open[und_series_set(series)] = false;
    if (und_series_returns(series))
        und_series_close(und_series_returns(series));
    und_series_leave(series);
}

/* Size of a file that this rank has made; once it is closed, it must be whole. */
static int64_t look_at(const struct und_series *series, const struct und_slot *slot, struct und_files *files, int64_t k,
                       const char *path)
{
    const struct und_method *method = series->plan->method;
    struct und_error error;
    int64_t bytes;
    struct stat status;
    if (series->stream->behind >= 0 && stat(und_directory_name(series->run->directory, path), &status) == 0)
        bytes = (int64_t)status.st_size; /* a rank of another stream has created it */
    else if (!und_files_look(files, k, &bytes, &error))
        UND_DIE("%s: %s", method->name, error.text);
    leave(series, files);
    if (!slot->file && method->whole && !method->whole(series->run->directory, path, &error)) {
        const int refusal = und_space_refusal(series->run->directory, path, UND_FULL_BYTES);
        UND_DIE("%s: cannot write all of %s: %s", method->name, path, refusal ? strerror(refusal) : error.text);
    }
    return bytes;
}

int64_t und_series_file_count(struct und_series *series)
{
    int64_t files = series->caller ? und_caller_files(series->caller) : 0;
    for (int64_t i = 0; i < und_series_rows(series) && series->plan->method->has_files; ++i) {
        const struct und_slot *slot = series->flood ? series->slots : &series->slots[i];
        if (slot->comm != MPI_COMM_NULL && (series->mode != UND_CREATE || slot->opened))
            files += slot->stands_for_it + slot->makes;
    }
    return files;
}

void und_series_look(struct und_series *series, int64_t *file_bytes)
{
    *file_bytes = 0;
    if (series->mode == UND_READ)
        return;
    for (int64_t i = 0; i < und_series_rows(series) && series->plan->method->has_files; ++i) {
        struct und_slot *slot = und_series_slot(series, i);
        int64_t stored = 0, all = 0;
        if (slot->comm == MPI_COMM_NULL || !slot->opened)
            continue;
        /* Not every method's close waits for the other ranks. */
        UND_MPI(MPI_Barrier(slot->comm), "cannot wait for the ranks of %s", slot->path);
        if (slot->stands_for_it)
            stored += look_at(series, slot, slot->files, slot->k, slot->path);
        if (slot->makes)
            stored += look_at(series, slot, slot->subfile, 0, slot->part);
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
    und_series_leave_rows(series);
}

bool und_series_note_hints(const struct und_series *series)
{
    if (series->flood)
        return false;
    const struct und_run *run = series->run;
    for (int s = 0; s < series->files; ++s)
        if (series->slots[s].file && series->slots[s].stands_for_it)
            return und_striped_note_hints(run->striped, series->index, series->plan->method, series->slots[s].file);
    return false;
}

void und_series_note_layouts(struct und_series *series)
{
    struct und_striped *striped = series->run->striped;
    /* Files that stay open are closed by another dump than the one that made them. */
    if (!series->stream->stays_open && !series->makes_files)
        return;
    if (series->mode != UND_CREATE || !series->plan->method->has_files)
        return;
    for (int64_t i = 0; i < und_series_rows(series); ++i) {
        const struct und_slot *slot = und_series_slot(series, i);
        if (slot->comm == MPI_COMM_NULL || slot->file || slot->exists)
            continue;
        if (slot->stands_for_it)
            und_striped_note_layout(striped, series->index, slot->path);
        if (slot->makes)
            und_striped_note_layout(striped, series->index, slot->part);
        if (series->flood) /* all are created in the same way: one of each rank tells */
            break;
    }
    und_series_leave_rows(series);
}
