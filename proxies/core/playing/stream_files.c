/* The files of a prepared dump: created, opened, in turns rank after rank, checked, closed and looked at. */
#include "job/die.h"
#include "job/stop.h"
#include "playing/layout_log.h"
#include "playing/small_file_set.h"
#include "playing/stream_internal.h"
#include "storage/run_directory.h"
#include "storage/space.h"
#include "storage/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rows are left once all are done. */
static void leave(const struct und_stream_player *player, struct und_files *files)
{
    if (!player->small_files)
        und_files_leave(files);
}

static void create_part(const struct und_stream_player *player, const struct und_slot *slot)
{
    struct und_error error;
    int created;
    if (!und_files_have_directory(slot->folder, 0, false, &error) ||
        !und_files_create(slot->subfile, 0, und_layout_log_request(player->run->layout_log), &created, &error))
        UND_DIE("%s: %s", player->plan->method->name, error.text);
    leave(player, slot->subfile);
    UND_CHECK(close(created) == 0, "%s: cannot create %s", player->plan->method->name, slot->part);
}

/* From the rank that created the file to all that open it. */
static void share_mark(const struct und_stream_player *player, struct und_slot *slot)
{
    int size;
    if (slot->stands_for_it)
        slot->mark = und_files_share(slot->files, slot->k);
    MPI_Comm_size(slot->comm, &size);
    if (size > 1 && !player->stream->in_turn)
        UND_MPI(MPI_Bcast(&slot->mark, sizeof slot->mark, MPI_BYTE, 0, slot->comm),
                "cannot agree on the creation of %s", slot->path);
}

/* One rank creates the file and all of the file's ranks wait for it, because some MPI libraries
 * hang in an open that fails on one rank. A rank that fails ends the run, the others with it. */
static int create_file(const struct und_stream_player *player, struct und_slot *slot)
{
    int created = -1;
    struct und_error error;
    if (slot->stands_for_it && !player->makes_files && player->stream->opening != UND_OPEN_NEW) {
        if (!und_files_truncate(slot->files, slot->k, &created, &error))
            UND_DIE("%s: %s", player->plan->method->name, error.text);
    } else if (slot->stands_for_it &&
               (!und_files_create(slot->files, slot->k, und_layout_log_request(player->run->layout_log), &created,
                                  &error) ||
                (slot->in_parts && !und_files_have_directory(slot->folder, 0, true, &error))))
        UND_DIE("%s: %s", player->plan->method->name, error.text);
    leave(player, slot->files);
    share_mark(player, slot);
    if (slot->makes)
        create_part(player, slot);
    return created;
}

/* Bytes of this rank in the file, of the prepared dump. */
static int64_t bytes_in_slot(const struct und_stream_player *player, int s)
{
    int64_t bytes = 0;
    const int first = player->small_files ? player->row_variable : 0,
              end = player->small_files ? first + 1 : player->piece_count;
    for (int p = first; p < end; ++p)
        if (player->pieces[p].slot == s)
            bytes += player->pieces[p].cut.elements * und_type_bytes(player->pieces[p].dataset.type);
    return bytes;
}

/* The baton is a message along the ranks of the group: the marks of the files that are there. */
static int begin_baton(const struct und_stream_player *player, int *rank, int *size)
{
    MPI_Comm_rank(player->group_comm, rank);
    MPI_Comm_size(player->group_comm, size);
    for (int s = 0; s < player->files; ++s)
        player->marks[s] = player->slots[s].mark;
    return player->files * (int)sizeof *player->marks;
}

void und_stream_player_take_turn(struct und_stream_player *player)
{
    int rank, size;
    if (!player->stream->in_turn)
        return;
    const int bytes = begin_baton(player, &rank, &size);
    if (rank > 0)
        UND_MPI(MPI_Recv(player->marks, bytes, MPI_BYTE, rank - 1, 0, player->group_comm, MPI_STATUS_IGNORE),
                "cannot wait for the turn of this rank in the stream %s", player->stream->name);
    for (int s = 0; s < player->files; ++s)
        player->slots[s].mark = player->marks[s];
}

void und_stream_player_pass_turn(struct und_stream_player *player)
{
    int rank, size;
    if (!player->stream->in_turn)
        return;
    const int bytes = begin_baton(player, &rank, &size);
    if (rank < size - 1)
        UND_MPI(MPI_Send(player->marks, bytes, MPI_BYTE, rank + 1, 0, player->group_comm),
                "cannot pass the turn to the next rank in the stream %s", player->stream->name);
}

/* The file is another's, or cannot be looked at. */
static _Noreturn void die_of_another(const struct und_stream_player *player, const struct und_slot *slot)
{
    UND_CHECK(errno == 0, "%s: cannot look at %s", player->plan->method->name, slot->path);
    UND_DIE("%s: %s is no longer the file that this run created", player->plan->method->name, slot->path);
}

/* Files that are there: the rank that has created one looks whether it still is, and tells the others. */
void und_stream_player_check(struct und_stream_player *player, bool opens)
{
    const bool exist = !player->makes_files;
    bool any = exist;
    if (player->small_files && player->plan->method->has_files)
        und_small_file_set_check_directories(player->small_files);
    for (int s = 0; s < player->files; ++s)
        any = any || player->slots[s].exists;
    if (!opens || !any || player->mode != UND_CREATE || !player->plan->method->has_files)
        return;
    for (int s = 0; s < player->files; ++s) {
        const struct und_slot *slot = &player->slots[s];
        player->marks[s] = (struct und_shared){0, 0};
        if (exist || slot->exists)
            player->marks[s] = und_files_share(slot->files, slot->k);
        if (!und_identity_matches(AT_FDCWD, und_directory_name(player->run->directory, slot->path),
                                  und_directory_shared(player->run->directory, player->marks[s])))
            die_of_another(player, slot);
    }
    /* Those that have not created it have zeros. */
    const int words = (int)(sizeof *player->marks / sizeof(uint64_t));
    UND_MPI(
        MPI_Allreduce(MPI_IN_PLACE, player->marks, player->files * words, MPI_UINT64_T, MPI_MAX, player->group_comm),
        "cannot agree on the files of the stream %s", player->stream->name);
    for (int s = 0; s < player->files; ++s)
        player->slots[s].mark = player->marks[s];
}

/* An interface that opens a file by its name may find another by now. */
static void check_file(const struct und_stream_player *player, const struct und_slot *slot, int descriptor)
{
    const struct und_method *method = player->plan->method;
    const char *name = descriptor < 0 ? und_directory_name(player->run->directory, slot->path) : "";
    if (player->mode == UND_CREATE && method->has_files && !method->replaces &&
        !und_identity_matches(descriptor < 0 ? AT_FDCWD : descriptor, name,
                              und_directory_shared(player->run->directory, slot->mark)))
        die_of_another(player, slot);
}

/* Those who come to a file in turns find it made by the first. */
static enum und_mode mode_of(const struct und_stream_player *player, const struct und_slot *slot, bool goes_on)
{
    const bool is_made = player->stream->in_turn && player->plan->method->has_files && !slot->stands_for_it;
    if (player->mode != UND_CREATE)
        return player->mode;
    return goes_on || is_made ? UND_EXTEND : UND_CREATE;
}

/* Is the file that a method creates this rank's to remove as soon as it is there? */
static bool adopts(const struct und_slot *slot, const struct und_open *how)
{
    return how->creates && slot->stands_for_it;
}

void und_stream_player_hand(const struct und_stream_player *player, const struct und_slot *slot,
                            void (*hand)(struct und_files *files, int64_t k))
{
    if (!player->plan->method->replaces || player->mode != UND_CREATE || slot->exists)
        return;
    if (slot->stands_for_it)
        hand(slot->files, slot->k);
    if (slot->makes)
        hand(slot->subfile, 0);
}

static void open_by_method(const struct und_stream_player *player, struct und_slot *slot, const struct und_open *how)
{
    const struct und_method *method = player->plan->method;
    if (adopts(slot, how))
        und_stop_hold();
    else if (!method->descriptor)
        check_file(player, slot, -1);
    und_stream_player_hand(player, slot, und_files_lend);
    und_files_enter(slot->files, slot->k);
    slot->file = method->open(how);
    if (adopts(slot, how)) {
        und_files_adopt(slot->files, slot->k, method->descriptor ? method->descriptor(slot->file) : -1);
        und_stop_release();
    }
    leave(player, slot->files);
}

/* Does an open of the file make it, or empty it? */
static bool creates(const struct und_stream_player *player, const struct und_slot *slot)
{
    return player->mode == UND_CREATE && player->plan->method->has_files && !slot->exists &&
           !und_stream_player_continues(player);
}

/* Has the file ranks that open it at the same time, of which this is one? */
static bool has_several(const struct und_stream_player *player, const struct und_slot *slot)
{
    int size = 0;
    if (slot->comm != MPI_COMM_NULL && !slot->borrowed && !player->stream->in_turn)
        MPI_Comm_size(slot->comm, &size);
    return size > 1;
}

void und_stream_player_take_away(struct und_stream_player *player, bool backup, bool shared)
{
    struct und_error error;
    for (int s = 0; s < player->files; ++s) {
        const struct und_slot *slot = &player->slots[s];
        if (slot->comm == MPI_COMM_NULL || slot->is_created || !slot->stands_for_it || player->makes_files ||
            !creates(player, slot) || (shared && !has_several(player, slot)))
            continue;
        und_watch_enter(player->run->watch, "remove", slot->path, false);
        if (!und_files_may_go(slot->files, slot->k, false, backup, &error) ||
            !und_files_take_away(slot->files, slot->k, false, backup, &error))
            UND_DIE("%s: %s", player->plan->method->name, error.text);
        leave(player, slot->files);
        und_watch_leave(player->run->watch);
    }
}

static bool creates_by_method(const struct und_stream_player *player, const struct und_slot *slot)
{
    return creates(player, slot) && player->plan->creates && player->makes_files;
}

bool und_stream_player_opens_together(const struct und_stream_player *player)
{
    for (int s = 0; s < player->files; ++s)
        if (has_several(player, &player->slots[s]) &&
            (player->plan->method->collective || creates_by_method(player, &player->slots[s])))
            return true;
    return false;
}

void und_stream_player_create(struct und_stream_player *player)
{
    for (int s = 0; s < player->files; ++s) {
        struct und_slot *slot = &player->slots[s];
        if (!has_several(player, slot) || !creates(player, slot))
            continue;
        und_watch_enter(player->run->watch, "create", slot->path, true);
        slot->created = create_file(player, slot);
        slot->is_created = true;
    }
    und_stream_player_leave(player);
}

static void open_slot(struct und_stream_player *player, int s)
{
    struct und_slot *slot = &player->slots[s];
    const struct und_method *method = player->plan->method;
    const bool goes_on = slot->exists || und_stream_player_continues(player);
    const bool by_method = creates_by_method(player, slot);
    int created = slot->is_created                      ? slot->created
                  : creates(player, slot) && !by_method ? create_file(player, slot)
                                                        : -1;
    slot->is_created = false;
    const bool turns = player->stream->in_turn;
    const struct und_open how = {
        .path = slot->path,
        .directory = player->run->directory,
        .comm = turns ? MPI_COMM_SELF : slot->comm,
        .mode = mode_of(player, slot, goes_on),
        .write_through = player->stream->write_through,
        .turns = turns,
        .append = und_stream_grows(player->stream),
        .looks_up = player->stream->lookups.every_bytes > 0 || player->plan->is_read_open || player->mix.buffer,
        .lasting = player->plan->lasting || player->stream->sync_bytes > 0,
        .transfer_bytes = player->plan->most_transfer_bytes,
        .bytes = bytes_in_slot(player, s),
        .part = slot->makes ? slot->part : NULL,
        .settings = player->plan->settings,
        .creates = by_method && (!turns || slot->stands_for_it),
        .hints = und_layout_log_hints(player->run->layout_log, player->index),
        .created = &created,
        .operations = &player->operations,
    };
    open_by_method(player, slot, &how);
    if (by_method)
        share_mark(player, slot);
    if (!adopts(slot, &how))
        check_file(player, slot, method->descriptor ? method->descriptor(slot->file) : -1);
    slot->opened = true;
    if (created >= 0)
        UND_CHECK(close(created) == 0, "%s: cannot close %s", method->name, slot->path);
}

void und_stream_player_open(struct und_stream_player *player)
{
    for (int s = 0; s < player->files; ++s) {
        struct und_slot *slot = &player->slots[s];
        if (slot->comm == MPI_COMM_NULL)
            continue;
        if (slot->borrowed) {
            slot->file = player->base->slots[s].file;
            continue;
        }
        und_stream_player_enter(player, "open", slot->path, true);
        open_slot(player, s);
    }
    player->is_open[und_stream_player_set(player)] = true;
    und_stream_player_note_opening(player);
    und_stream_player_leave(player);
}

bool und_stream_player_find(struct und_stream_player *player, struct und_error *error)
{
    const struct und_stream *stream = player->stream;
    const bool exact = !player->plan->suffix;
    const bool may_have_more = und_stream_updates(stream) || stream->followed_by >= 0;
    for (int64_t i = 0; i < und_stream_player_rows(player) && player->plan->method->has_files; ++i) {
        const struct und_slot *slot = und_stream_player_slot(player, i);
        struct stat status;
        if (slot->comm == MPI_COMM_NULL || !slot->stands_for_it)
            continue;
        if (stat(und_directory_name(player->run->directory, slot->path), &status) != 0)
            return und_fail(error, "--restart-from: cannot find %s: %s", slot->path, strerror(errno));
        const int64_t bytes = (int64_t)status.st_size;
        if (exact && (may_have_more ? bytes < slot->payload : bytes != slot->payload))
            return und_fail(error,
                            "--restart-from: %s has %" PRId64 " bytes, expected %" PRId64 " for %d ranks; another "
                            "number of ranks can read only files that all ranks share",
                            slot->path, bytes, slot->payload, player->run->ranks);
    }
    return true;
}

void und_stream_player_close(struct und_stream_player *player)
{
    for (int s = 0; s < player->files; ++s) /* a content of operations alone has opened none */
        if (player->slots[s].comm != MPI_COMM_NULL && player->slots[s].file) {
            und_stream_player_enter(player, "close", player->slots[s].path, true);
            if (!player->slots[s].borrowed)
                player->plan->method->close(player->slots[s].file);
            und_stream_player_hand(player, &player->slots[s], und_files_take_back);
            player->slots[s].file = NULL;
        }
    player->is_open[und_stream_player_set(player)] = false;
    if (und_stream_player_returns(player))
        und_stream_player_close(und_stream_player_returns(player));
    und_stream_player_leave(player);
}

/* Size of a file that this rank has made; once it is closed, it must be whole. */
static int64_t look_at(const struct und_stream_player *player, const struct und_slot *slot, struct und_files *files,
                       int64_t k, const char *path)
{
    const struct und_method *method = player->plan->method;
    struct und_error error;
    int64_t bytes;
    struct stat status;
    if (player->stream->behind >= 0 && stat(und_directory_name(player->run->directory, path), &status) == 0)
        bytes = (int64_t)status.st_size; /* a rank of another stream has created it */
    else if (!und_files_look(files, k, &bytes, &error))
        UND_DIE("%s: %s", method->name, error.text);
    leave(player, files);
    if (!slot->file && method->whole && !method->whole(player->run->directory, path, &error)) {
        const int refusal = und_space_refusal(player->run->directory, path, UND_FULL_BYTES);
        UND_DIE("%s: cannot write all of %s: %s", method->name, path, refusal ? strerror(refusal) : error.text);
    }
    return bytes;
}

int64_t und_stream_player_file_count(struct und_stream_player *player)
{
    int64_t files = player->caller ? und_caller_files(player->caller) : 0;
    for (int64_t i = 0; i < und_stream_player_rows(player) && player->plan->method->has_files; ++i) {
        const struct und_slot *slot = player->small_files ? player->slots : &player->slots[i];
        if (slot->comm != MPI_COMM_NULL && (player->mode != UND_CREATE || slot->opened))
            files += slot->stands_for_it + slot->makes;
    }
    return files;
}

void und_stream_player_look(struct und_stream_player *player, int64_t *file_bytes)
{
    *file_bytes = 0;
    if (player->mode == UND_READ)
        return;
    for (int64_t i = 0; i < und_stream_player_rows(player) && player->plan->method->has_files; ++i) {
        struct und_slot *slot = und_stream_player_slot(player, i);
        int64_t stored = 0, all = 0;
        if (slot->comm == MPI_COMM_NULL || !slot->opened)
            continue;
        /* Not every method's close waits for the other ranks. */
        UND_MPI(MPI_Barrier(slot->comm), "cannot wait for the ranks of %s", slot->path);
        if (slot->stands_for_it)
            stored += look_at(player, slot, slot->files, slot->k, slot->path);
        if (slot->makes)
            stored += look_at(player, slot, slot->subfile, 0, slot->part);
        *file_bytes += stored - slot->stored;
        all = slot->stored = stored;
        if (slot->in_parts)
            UND_MPI(MPI_Reduce(&stored, &all, 1, MPI_INT64_T, MPI_SUM, 0, slot->comm), "cannot add up the parts of %s",
                    slot->path);
        /* A full disk that the interface did not report shows here at the latest. */
        if (slot->stands_for_it && !slot->file && !player->plan->packs && all < slot->payload &&
            player->run->plan->deadline_s <= 0)
            UND_DIE("%s: %s has %" PRId64 " bytes on storage, less than the %" PRId64 " written to it",
                    player->plan->method->name, slot->path, all, slot->payload);
    }
    und_stream_player_leave_rows(player);
}

bool und_stream_player_note_hints(const struct und_stream_player *player)
{
    if (player->small_files)
        return false;
    const struct und_run *run = player->run;
    for (int s = 0; s < player->files; ++s)
        if (player->slots[s].file && player->slots[s].stands_for_it)
            return und_layout_log_note_hints(run->layout_log, player->index, player->plan->method,
                                             player->slots[s].file);
    return false;
}

void und_stream_player_note_layouts(struct und_stream_player *player)
{
    struct und_layout_log *layout_log = player->run->layout_log;
    /* Files that stay open are closed by another dump than the one that made them. */
    if (!player->stream->stays_open && !player->makes_files)
        return;
    if (player->mode != UND_CREATE || !player->plan->method->has_files)
        return;
    for (int64_t i = 0; i < und_stream_player_rows(player); ++i) {
        const struct und_slot *slot = und_stream_player_slot(player, i);
        if (slot->comm == MPI_COMM_NULL || slot->file || slot->exists)
            continue;
        if (slot->stands_for_it)
            und_layout_log_note_layout(layout_log, player->index, slot->path);
        if (slot->makes)
            und_layout_log_note_layout(layout_log, player->index, slot->part);
        if (player->small_files) /* all are created in the same way: one of each rank tells */
            break;
    }
    und_stream_player_leave_rows(player);
}
