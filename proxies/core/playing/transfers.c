/* The bytes of a prepared dump: written, flushed, read, compared, call by call. */
#include "job/die.h"
#include "playing/small_file_set.h"
#include "playing/stream_internal.h"
#include "storage/direct.h"
#include "storage/watchdog.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int64_t und_stream_player_calls(const struct und_stream_player *player, int variable)
{
    int64_t calls = 0;
    for (int p = player->first_pieces[variable]; p < player->first_pieces[variable + 1]; ++p)
        calls += player->pieces[p].cut.calls;
    return calls * (player->small_files ? und_small_file_set_rows_of(player->small_files, variable) : 1);
}

struct und_pace *und_stream_player_pace(struct und_stream_player *player)
{
    return &player->pace;
}

/* Goes to the transfer at a position of the stream's order. */
static inline void point_at(struct und_piece *piece, int64_t position)
{
    const struct und_order *order = piece->rule;
    if (order->rule == UND_CONSECUTIVE && position > 0)
        und_cut_next(&piece->cut);
    else
        und_cut_go(&piece->cut, und_order_at(order, piece->order, piece->cut.calls, position));
}

static void drain(struct und_stream_player *player, struct und_file *file, struct und_verification *verification);

/* Do the moves of the piece go on? Ranks whose calls are collective do as the first of them. */
static bool goes_on(struct und_stream_player *player, struct und_piece *piece, int64_t position)
{
    struct und_stonewall *wall = &player->wall;
    if (player->queue.in_flight > 0 && und_pace_is_ahead(&player->pace))
        drain(player, player->slots[piece->slot].file, NULL); /* the wait is no latency */
    und_pace_keep(&player->pace, player->run, wall->end_s);
    int over = und_stonewall_is_over(wall);
    if (piece->together && wall->deadline_s > 0)
        UND_MPI(MPI_Bcast(&over, 1, MPI_INT, 0, player->slots[piece->slot].comm),
                "cannot agree on the deadline with the ranks of %s", player->slots[piece->slot].path);
    if (!over)
        return true;
    wall->stops = wall->stops || position < piece->to;
    piece->to = position < piece->to ? position : piece->to;
    piece->stopped = true;
    return false;
}

/* The same for a transfer, with its bytes, of a pace, or with a deadline. */
static bool go_on(struct und_stream_player *player, struct und_piece *piece, int64_t position)
{
    if (!goes_on(player, piece, position))
        return false;
    point_at(piece, position);
    player->pace.bytes = piece->cut.many * und_type_bytes(piece->dataset.type);
    player->wall.bytes += player->pace.bytes;
    return true;
}

/* False: the moves of the piece have ended. */
static inline bool go_to(struct und_stream_player *player, struct und_piece *piece, int64_t position)
{
    und_watch_call(player->run->watch, position);
    if (player->pace.is_kept)
        return go_on(player, piece, position);
    point_at(piece, position);
    return true;
}

/* The transfers of a piece that this move makes. */
static void begin_move(struct und_stream_player *player, struct und_piece *piece)
{
    struct und_stonewall *wall = &player->wall;
    const int64_t calls = piece->cut.calls, left = wall->most - wall->transfers;
    piece->from = und_smaller(wall->again, calls);
    piece->to = wall->stops && !piece->together ? piece->from : piece->from + und_smaller(calls - piece->from, left);
    piece->stopped = false;
    wall->again -= piece->from;
    if (piece->from > 0)
        und_cut_go(&piece->cut, piece->from - 1);
}

/* Counts what the move has made; `bytes`: of the dump before it. */
static void end_move(struct und_stream_player *player, const struct und_piece *piece, int64_t bytes)
{
    struct und_stonewall *wall = &player->wall;
    wall->transfers += piece->to - piece->from;
    if (!player->pace.is_kept)
        wall->bytes += piece->cut.elements * und_type_bytes(piece->dataset.type);
    player->bytes += wall->bytes - bytes;
}

/* Do empty calls follow the transfers of this rank, with those of others? */
static bool goes_with_others(struct und_stream_player *player, struct und_piece *piece, int64_t position)
{
    if (!piece->together || piece->stopped || position >= piece->calls)
        return false;
    und_watch_call(player->run->watch, position);
    return !player->pace.is_kept || goes_on(player, piece, position);
}

/* Behind a transfer, or an empty one: is it time to flush? Where flushes are collective, all ranks count
 * transfers, which they make equally many of. */
static void flush(struct und_stream_player *player, struct und_piece *piece, int64_t position, int64_t bytes)
{
    struct und_slot *slot = &player->slots[piece->slot];
    const int64_t after = player->plan->flush_bytes;
    slot->unsynced += bytes;
    if (piece->calls_of_flush > 0 ? (position + 1) % piece->calls_of_flush != 0 : slot->unsynced < after)
        return;
    if (!player->plan->method->flushes_in_flight)
        drain(player, slot->file, NULL);
    player->plan->method->sync(slot->file);
    drain(player, slot->file, NULL);
    slot->unsynced = 0;
}

/* Consecutive bytes that this rank has written up to the end of its transfer: of a file that it has alone, all; else
 * those of the piece, `written` so far. */
static int64_t reach_of(const struct und_slot *slot, const struct und_piece *piece, int64_t end, int64_t written)
{
    int ranks, first = 0; /* dimension in which the block has more than one */
    bool whole = piece->cut.deal.blocks == 1 || piece->cut.deal.step == piece->block.count[0];
    MPI_Comm_size(slot->comm, &ranks);
    while (first < piece->dataset.ndims - 1 && piece->block.count[first] == 1)
        ++first;
    for (int d = first + 1; d < piece->dataset.ndims; ++d)
        whole = whole && piece->block.count[d] == piece->dataset.shape[d];
    return ranks == 1 ? end : whole ? written : 0;
}

/* Behind a transfer: each reads what was written last. */
static void look_up(struct und_stream_player *player, const struct und_piece *piece, int64_t written, int64_t bytes)
{
    const struct und_lookups *lookups = &player->stream->lookups;
    struct und_slot *slot = &player->slots[piece->slot];
    slot->unread += bytes;
    if (slot->unread < lookups->every_bytes)
        return;
    slot->unread %= lookups->every_bytes;
    const int64_t element = und_type_bytes(piece->dataset.type), times = ++slot->lookups;
    const int64_t end = piece->dataset.file_offset + (piece->cut.element + piece->cut.many) * element;
    const int64_t reach = reach_of(slot, piece, end, written);
    const int64_t size = reach < lookups->transfer_bytes ? reach : lookups->transfer_bytes;
    const int64_t calls = (int64_t)((double)times * lookups->calls) - (int64_t)((double)(times - 1) * lookups->calls);
    const struct und_dataset whole = {.name = piece->name, .type = UND_BYTE, .ndims = 1, .shape = {end}, .slabs = true};
    const struct und_box box = {.start = {end - size}, .count = {size}};
    struct und_latency *latency = player->latencies[UND_LATENCY_READ];
    for (int64_t i = 0; i < calls && size > 0; ++i) {
        und_watch_call(player->run->watch, i);
        const uint64_t start = und_latency_begin(latency);
        player->plan->method->read(slot->file, &whole, &box, player->looked_up);
        und_latency_end(latency, start, size);
    }
}

static void compare_read(struct und_stream_player *player, const struct und_piece *piece, const void *data);

/* Goes to one of the transfers that the rank has written of the piece, up to a position. */
static void go_back(struct und_stream_player *player, struct und_piece *piece, int64_t position)
{
    const struct und_order *order = piece->rule;
    const uint64_t of_dump = und_mix(und_mix(player->run->plan->seed + (uint64_t)player->as) + (uint64_t)player->dump);
    const uint64_t number = und_mix(of_dump + (uint64_t)player->mix.reads++) % (uint64_t)(position + 1);
    und_cut_go(&piece->cut, und_order_at(order, piece->order, piece->cut.calls, (int64_t)number));
}

/* Are there reads to be made behind the writes so far? */
static bool is_due(const struct und_mixture *mix)
{
    return mix->reads < (int64_t)((double)mix->writes * mix->share);
}

static void note_read(struct und_reads_between *in, double begin_s, double end_s)
{
    if (in->operations == 0)
        in->begin_s = begin_s;
    in->end_s = end_s;
    in->spent_s += end_s - begin_s;
}

/* Behind a transfer, at a position: reads between writes. */
static void mix_reads(struct und_stream_player *player, struct und_piece *piece, int64_t position)
{
    struct und_mixture *mix = &player->mix;
    struct und_latency *latency = player->latencies[UND_LATENCY_READ];
    const struct und_cut cut = piece->cut;
    for (++mix->writes; is_due(mix);) {
        go_back(player, piece, position);
        const int64_t before = player->operations, bytes = piece->cut.many * und_type_bytes(piece->dataset.type);
        const double begin_s = und_clock();
        const uint64_t start = und_latency_begin(latency);
        player->plan->method->read(player->slots[piece->slot].file, &piece->dataset, &piece->cut.box, mix->buffer);
        und_latency_end(latency, start, bytes);
        note_read(&mix->in, begin_s, und_clock());
        mix->in.operations += player->operations - before;
        mix->in.bytes += bytes;
        player->pace.bytes += bytes;
        compare_read(player, piece, mix->buffer);
    }
    piece->cut = cut;
}

/* Behind a transfer of so many bytes, of which the piece has `written` now. */
static void read_between(struct und_stream_player *player, struct und_piece *piece, int64_t position, int64_t written,
                         int64_t bytes)
{
    if (player->stream->lookups.every_bytes > 0)
        look_up(player, piece, written, bytes);
    if (player->mix.share > 0)
        mix_reads(player, piece, position);
}

static bool reads_between(const struct und_stream_player *player)
{
    return player->stream->lookups.every_bytes > 0 || player->mix.share > 0;
}

/* Without latencies, a loop of its own: a call costs what it did. */
__attribute__((always_inline)) static inline void write_consecutive(struct und_stream_player *player,
                                                                    struct und_piece *piece, struct und_file *file,
                                                                    struct und_latency *latency)
{
    const bool reads = reads_between(player);
    int64_t written = 0;
    const struct und_method *method = player->plan->method;
    const int64_t size = und_type_bytes(piece->dataset.type);
    const uint64_t contents = player->slots[piece->slot].contents;
    struct und_cut *cut = &piece->cut;
    const bool flushes = player->plan->flush_bytes > 0;
    for (int64_t i = piece->from; i < piece->to && go_to(player, piece, i); ++i) {
        const int64_t bytes = cut->many * size;
        const void *data = und_base_consecutive(piece->base, contents, piece->begin + cut->element * size, bytes);
        const uint64_t start = und_latency_begin(latency);
        method->write(file, &piece->dataset, &cut->box, data);
        und_latency_end(latency, start, bytes);
        if (flushes)
            flush(player, piece, i, bytes);
        if (reads)
            read_between(player, piece, i, written += bytes, bytes);
    }
}

/* The bytes of a box that need not be consecutive in its variable, run by run; returns their number. */
static int64_t gather(const struct und_stream_player *player, const struct und_piece *piece, unsigned char *to)
{
    const int64_t size = und_type_bytes(piece->dataset.type);
    unsigned char *const data = to;
    struct und_spans spans;
    int64_t element;
    und_spans_begin(&spans, &piece->dataset, &piece->cut.box);
    for (; und_spans_next(&spans, &element); to += spans.elements * size)
        und_base_copy(piece->base, player->slots[piece->slot].contents, piece->begin + element * size,
                      spans.elements * size, to);
    return to - data;
}

static void write_gathered(struct und_stream_player *player, struct und_piece *piece, struct und_file *file)
{
    const struct und_method *method = player->plan->method;
    struct und_latency *latency = player->latencies[UND_LATENCY_WRITE];
    unsigned char *buffer = und_base_buffer(piece->base);
    int64_t written = 0;
    for (int64_t i = piece->from; i < piece->to && go_to(player, piece, i); ++i) {
        const int64_t bytes = gather(player, piece, buffer);
        const uint64_t start = und_latency_begin(latency);
        method->write(file, &piece->dataset, &piece->cut.box, buffer);
        und_latency_end(latency, start, bytes);
        if (player->plan->flush_bytes > 0)
            flush(player, piece, i, bytes);
        if (reads_between(player))
            read_between(player, piece, i, written += bytes, bytes);
    }
}

void und_stream_player_hold(struct und_stream_player *player)
{
    int64_t bytes = 0;
    for (int p = 0; p < player->piece_count; ++p)
        bytes += player->pieces[p].cut.elements * und_type_bytes(player->pieces[p].dataset.type);
    if (bytes > player->held_capacity) {
        free(player->held);
        player->held = malloc((size_t)bytes);
        UND_CHECK(player->held, "no memory for the %" PRId64 " bytes of a dump of the stream %s", bytes,
                  player->stream->name);
        player->held_capacity = bytes;
    }
    unsigned char *at = player->held;
    for (int p = 0; p < player->piece_count; ++p) {
        struct und_piece *piece = &player->pieces[p];
        piece->held = at;
        for (int64_t i = 0; i < piece->cut.calls; ++i) {
            point_at(piece, i);
            at += gather(player, piece, at);
        }
    }
}

/* -- transfers in flight -------------------------------------------------------------------------------------------- */

/* Puts a place without a transfer where one with its bytes is looked for. */
static void free_place(struct und_queue *queue, int64_t place)
{
    int64_t *first = &queue->free[und_filling_phase(&queue->fillings[place])];
    queue->next[place] = *first;
    *first = place;
}

/* A place that has the bytes of a phase; else one whose bytes are not needed soon. */
static int64_t take_place(struct und_queue *queue, int phase)
{
    for (int p = 0;; ++p) {
        int64_t *first = &queue->free[(phase + p) % UND_PHASES_OF_FILLING];
        if (*first >= 0) {
            const int64_t place = *first;
            *first = queue->next[place];
            return place;
        }
    }
}

void und_stream_player_make_queue(struct und_stream_player *player)
{
    const struct und_method *method = player->plan->method;
    struct und_queue *queue = &player->queue;
    if (player->plan->depth == 0)
        return;
    if (queue->depth == 0) {
        const int64_t page = und_direct_page();
        queue->depth = player->plan->in_flight;
        queue->stride = (player->plan->most_transfer_bytes + page - 1) / page * page;
        queue->places = queue->depth + (UND_PERIOD + queue->stride - 1) / queue->stride;
        queue->flights = calloc((size_t)queue->places, sizeof *queue->flights);
        queue->fillings = calloc((size_t)queue->places, sizeof *queue->fillings);
        queue->next = calloc((size_t)queue->places, sizeof *queue->next);
        UND_CHECK(queue->flights && queue->fillings && queue->next, "no memory for %" PRId64 " transfers in flight",
                  queue->depth);
    }
    UND_CHECK(queue->stride <= INT64_MAX / queue->places, "no memory for %" PRId64 " transfers in flight",
              queue->depth);
    const int64_t bytes = queue->places * queue->stride;
    if (method->transfer_memory)
        queue->memory = method->transfer_memory(player->plan->settings, queue->depth, bytes);
    else if (!queue->memory)
        queue->memory = malloc((size_t)bytes);
    UND_CHECK(queue->memory, "no memory for the %" PRId64 " bytes of transfers in flight", bytes);
    /* Other streams have had the memory. */
    for (int p = 0; p < UND_PHASES_OF_FILLING; ++p)
        queue->free[p] = -1;
    for (int64_t k = queue->places; k-- > 0;) {
        queue->fillings[k].base = NULL;
        free_place(queue, k);
    }
}

static void compare_box(const struct und_stream_player *player, const struct und_piece *piece,
                        const unsigned char *data, struct und_verification *verification);

static struct und_latency *latency_of(const struct und_stream_player *player, bool reads)
{
    return player->latencies[reads ? UND_LATENCY_READ : UND_LATENCY_WRITE];
}

/* Waits for one of the transfers in flight, and compares what it read. */
static void retire(struct und_stream_player *player, struct und_file *file, struct und_verification *verification)
{
    struct und_queue *queue = &player->queue;
    const bool mixes = player->mix.share > 0;
    const double begin_s = mixes ? und_clock() : 0;
    unsigned char *data = player->plan->method->finish(file);
    const int64_t k = (data - queue->memory) / queue->stride;
    struct und_flight *flight = &queue->flights[k];
    und_latency_end(latency_of(player, flight->reads), flight->begin, flight->bytes);
    flight->is_busy = false;
    --queue->in_flight;
    if (mixes && flight->reads)
        note_read(&player->mix.in, begin_s, und_clock());
    if (flight->reads && (verification || player->verification)) {
        struct und_piece *piece = &player->pieces[flight->piece];
        const struct und_box box = piece->cut.box;
        piece->cut.box = flight->box;
        if (verification)
            compare_box(player, piece, data, verification);
        else
            compare_read(player, piece, data);
        piece->cut.box = box;
    }
    free_place(queue, k);
}

static void drain(struct und_stream_player *player, struct und_file *file, struct und_verification *verification)
{
    while (player->queue.in_flight > 0)
        retire(player, file, verification);
}

/* Begins a transfer of the box that the piece is at. */
static void put_in_flight(struct und_stream_player *player, struct und_piece *piece, bool reads)
{
    struct und_queue *queue = &player->queue;
    const struct und_cut *cut = &piece->cut;
    const int64_t size = und_type_bytes(piece->dataset.type), at = piece->begin + cut->element * size;
    const uint64_t contents = player->slots[piece->slot].contents;
    const bool fills = !reads && cut->consecutive;
    const int64_t k = take_place(queue, fills ? und_base_phase(contents, at) : UND_ANY_PHASE);
    unsigned char *data = queue->memory + k * queue->stride;
    struct und_flight *flight = &queue->flights[k];
    flight->piece = (int)(piece - player->pieces);
    flight->box = cut->box;
    flight->reads = reads;
    flight->is_busy = true;
    flight->element = cut->element;
    flight->bytes = cut->many * size;
    ++queue->in_flight;
    if (fills)
        und_base_fill(piece->base, contents, at, flight->bytes, data, &queue->fillings[k]);
    else
        queue->fillings[k].base = NULL;
    if (!reads && !fills)
        gather(player, piece, data);
    flight->begin = und_latency_begin(latency_of(player, reads));
    player->plan->method->begin(player->slots[piece->slot].file, &piece->dataset, &piece->cut.box, data, !reads);
}

/* Is the transfer that the piece is at still being written? */
static bool is_in_flight(const struct und_stream_player *player, const struct und_piece *piece)
{
    const struct und_queue *queue = &player->queue;
    for (int64_t k = 0; k < queue->places; ++k)
        if (queue->flights[k].is_busy && !queue->flights[k].reads &&
            queue->flights[k].piece == (int)(piece - player->pieces) && queue->flights[k].element == piece->cut.element)
            return true;
    return false;
}

/* Reads between writes are in flight with them. */
static void mix_queued(struct und_stream_player *player, struct und_piece *piece, int64_t position)
{
    struct und_mixture *mix = &player->mix;
    struct und_file *file = player->slots[piece->slot].file;
    const struct und_cut cut = piece->cut;
    for (++mix->writes; is_due(mix);) {
        go_back(player, piece, position);
        if (is_in_flight(player, piece))
            drain(player, file, NULL);
        else if (player->queue.in_flight >= piece->depth)
            retire(player, file, NULL);
        const int64_t bytes = piece->cut.many * und_type_bytes(piece->dataset.type);
        const double begin_s = und_clock();
        put_in_flight(player, piece, true);
        note_read(&mix->in, begin_s, und_clock());
        ++mix->in.operations; /* the method counts it, perhaps later */
        mix->in.bytes += bytes;
        player->pace.bytes += bytes;
    }
    piece->cut = cut;
}

static void move_queued(struct und_stream_player *player, struct und_piece *piece, bool reads,
                        struct und_verification *verification)
{
    const struct und_queue *queue = &player->queue;
    struct und_file *file = player->slots[piece->slot].file;
    const int64_t size = und_type_bytes(piece->dataset.type);
    int64_t written = 0;
    for (int64_t i = piece->from; i < piece->to && go_to(player, piece, i); ++i) {
        if (queue->in_flight >= piece->depth)
            retire(player, file, verification);
        const int64_t bytes = piece->cut.many * size;
        put_in_flight(player, piece, reads);
        if (!reads && player->plan->flush_bytes > 0)
            flush(player, piece, i, bytes);
        if (!reads && player->stream->lookups.every_bytes > 0) {
            drain(player, file, NULL);
            look_up(player, piece, written += bytes, bytes);
        }
        if (!reads && player->mix.share > 0)
            mix_queued(player, piece, i);
    }
    for (int64_t i = piece->to; !reads && player->plan->flush_bytes > 0 && goes_with_others(player, piece, i); ++i)
        flush(player, piece, i, 0);
    if (player->plan->method->define) /* which may change how the file is seen */
        drain(player, file, verification);
}

static void write_held(struct und_stream_player *player, struct und_piece *piece, struct und_file *file)
{
    struct und_latency *latency = player->latencies[UND_LATENCY_WRITE];
    const unsigned char *at = piece->held;
    const int64_t size = und_type_bytes(piece->dataset.type);
    for (int64_t i = piece->from; i < piece->to && go_to(player, piece, i); ++i) {
        const uint64_t start = und_latency_begin(latency);
        player->plan->method->write(file, &piece->dataset, &piece->cut.box, at);
        und_latency_end(latency, start, piece->cut.many * size);
        at += piece->cut.many * size;
    }
}

static void define(const struct und_stream_player *player, struct und_piece *piece)
{
    if (player->plan->method->define)
        player->plan->method->define(player->slots[piece->slot].file, &piece->dataset, &piece->block);
}

static const struct und_box empty;

static void enter(const struct und_stream_player *player, const struct und_piece *piece, const char *operation)
{
    und_stream_player_enter(player, operation, player->slots[piece->slot].path, player->plan->method->collective);
}

static void write_piece(struct und_stream_player *player, struct und_piece *piece)
{
    struct und_file *file = player->slots[piece->slot].file;
    struct und_latency *latency = player->latencies[UND_LATENCY_WRITE];
    if (piece->held) {
        write_held(player, piece, file);
    } else if (piece->cut.consecutive) {
        und_base_continue(piece->base);
        if (latency)
            write_consecutive(player, piece, file, latency);
        else
            write_consecutive(player, piece, file, NULL);
    } else {
        write_gathered(player, piece, file);
    }
    for (int64_t i = piece->to; goes_with_others(player, piece, i); ++i) {
        if (piece->dataset.collective) {
            const uint64_t start = und_latency_begin(latency);
            player->plan->method->write(file, &piece->dataset, &empty, piece->base->bytes);
            und_latency_end(latency, start, 0);
        }
        if (player->plan->flush_bytes > 0)
            flush(player, piece, i, 0);
    }
}

void und_stream_player_sync(struct und_stream_player *player)
{
    for (int s = 0; s < player->files; ++s)
        if (player->slots[s].file) {
            und_stream_player_enter(player, "flush", player->slots[s].path, true);
            player->plan->method->sync(player->slots[s].file);
            und_stream_player_hand(player, &player->slots[s], und_files_take_back);
        }
    und_stream_player_leave(player);
}

static void note_wrong(const struct und_stream_player *player, const struct und_piece *piece, int64_t at,
                       unsigned char byte, struct und_verification *verification)
{
    unsigned char right;
    und_base_copy(piece->base, player->slots[piece->slot].contents, at, 1, &right);
    snprintf(verification->first, sizeof verification->first,
             "%s: byte %" PRId64 " of the variable %s is %u instead of %u", player->slots[piece->slot].path,
             at - piece->begin, piece->name, byte, right);
}

static void compare_box(const struct und_stream_player *player, const struct und_piece *piece,
                        const unsigned char *data, struct und_verification *verification)
{
    const int64_t size = und_type_bytes(piece->dataset.type);
    const uint64_t contents = player->slots[piece->slot].contents;
    struct und_spans spans;
    int64_t element, wrong = 0;
    und_spans_begin(&spans, &piece->dataset, &piece->cut.box);
    for (; und_spans_next(&spans, &element); data += spans.elements * size) {
        const int64_t bytes = spans.elements * size, offset = piece->begin + element * size;
        const int64_t differing = und_base_compare(piece->base, contents, offset, bytes, data, &wrong);
        if (differing > 0 && verification->wrong_bytes == 0)
            note_wrong(player, piece, wrong, data[wrong - offset], verification);
        verification->wrong_bytes += differing;
        verification->bytes += bytes;
    }
}

/* Comparing while time is taken counts as waiting on purpose. */
static void compare_read(struct und_stream_player *player, const struct und_piece *piece, const void *data)
{
    if (!player->verification)
        return;
    const double begin_s = und_clock();
    const int64_t bytes = player->verification->bytes; /* what is compared here is not read back */
    compare_box(player, piece, data, player->verification);
    player->verification->bytes = bytes;
    player->pace.waited_s += und_clock() - begin_s;
}

/* With a verification everything that is read is compared, else what und_stream_player_verify says. Without latencies,
 * a loop of its own. */
__attribute__((always_inline)) static inline void read_piece(struct und_stream_player *player, struct und_piece *piece,
                                                             struct und_verification *verification,
                                                             struct und_latency *latency)
{
    const int64_t size = und_type_bytes(piece->dataset.type);
    struct und_file *file = player->slots[piece->slot].file;
    unsigned char *buffer = und_base_buffer(piece->base);
    for (int64_t i = piece->from; i < piece->to && go_to(player, piece, i); ++i) {
        const uint64_t start = und_latency_begin(latency);
        player->plan->method->read(file, &piece->dataset, &piece->cut.box, buffer);
        und_latency_end(latency, start, piece->cut.many * size);
        if (verification)
            compare_box(player, piece, buffer, verification);
        else
            compare_read(player, piece, buffer);
    }
    for (int64_t i = piece->to; goes_with_others(player, piece, i); ++i) {
        const uint64_t start = und_latency_begin(latency);
        player->plan->method->read(file, &piece->dataset, &empty, buffer);
        und_latency_end(latency, start, 0);
    }
}

void und_stream_player_move(struct und_stream_player *player, int variable, enum und_move move,
                            struct und_verification *verification)
{
    static const char *const names[] = {[UND_WRITE] = "write", [UND_FETCH] = "read", [UND_COMPARE] = "verify"};
    if (player->small_files && variable != player->row_variable)
        return;
    for (int p = player->first_pieces[variable]; p < player->first_pieces[variable + 1]; ++p) {
        struct und_piece *piece = &player->pieces[p];
        const int64_t bytes = player->wall.bytes;
        enter(player, piece, names[move]);
        define(player, piece);
        begin_move(player, piece);
        if (piece->depth > 0)
            move_queued(player, piece, move != UND_WRITE, verification);
        else if (move == UND_WRITE)
            write_piece(player, piece);
        else if (player->latencies[UND_LATENCY_READ])
            read_piece(player, piece, verification, player->latencies[UND_LATENCY_READ]);
        else
            read_piece(player, piece, verification, NULL);
        end_move(player, piece, bytes);
        if (p + 1 == player->first_pieces[variable + 1])
            drain(player, player->slots[piece->slot].file, verification);
    }
    und_stream_player_leave(player);
}

/* -- moves that are begun, and waited for later -------------------------------------------------------------------- */

static struct und_flight *new_flight(struct und_stream_player *player, int piece, const struct und_box *box, bool reads)
{
    if (player->flight_count == player->flight_capacity) {
        player->flight_capacity = 2 * player->flight_capacity + 16;
        player->flights = realloc(player->flights, (size_t)player->flight_capacity * sizeof *player->flights);
        UND_CHECK(player->flights, "no memory for %" PRId64 " transfers in flight", player->flight_capacity);
    }
    const int64_t bytes = und_box_bytes(&player->pieces[piece].dataset, box);
    struct und_flight *flight = &player->flights[player->flight_count++];
    *flight = (struct und_flight){
        .piece = piece, .box = *box, .reads = reads, .data = malloc((size_t)bytes + 1), .bytes = bytes};
    UND_CHECK(flight->data, "no memory for a transfer of %" PRId64 " bytes in flight", bytes);
    return flight;
}

static void begin_piece(struct und_stream_player *player, int number, bool reads)
{
    struct und_piece *piece = &player->pieces[number];
    struct und_file *file = player->slots[piece->slot].file;
    for (int64_t i = piece->from;; ++i) {
        const bool moves = i < piece->to;
        if (!(moves ? go_to(player, piece, i) : piece->dataset.collective && goes_with_others(player, piece, i)))
            break;
        struct und_flight *flight = new_flight(player, number, moves ? &piece->cut.box : &empty, reads);
        if (moves && !reads)
            gather(player, piece, flight->data);
        flight->begin = und_latency_begin(latency_of(player, reads));
        player->plan->method->begin(file, &piece->dataset, &flight->box, flight->data, !reads);
    }
}

void und_stream_player_begin(struct und_stream_player *player, int variable, enum und_move move)
{
    for (int p = player->first_pieces[variable]; p < player->first_pieces[variable + 1]; ++p) {
        struct und_piece *piece = &player->pieces[p];
        enter(player, piece, move == UND_WRITE ? "begin to write" : "begin to read");
        define(player, piece);
        begin_move(player, piece);
        const int64_t bytes = player->wall.bytes;
        begin_piece(player, p, move != UND_WRITE);
        end_move(player, piece, bytes);
    }
    und_stream_player_leave(player);
}

void und_stream_player_wait_all(struct und_stream_player *player)
{
    for (int s = 0; s < player->files; ++s)
        if (player->slots[s].file && player->plan->method->wait) {
            und_stream_player_enter(player, "wait for transfers of", player->slots[s].path, true);
            player->plan->method->wait(player->slots[s].file);
            player->slots[s].waited = und_ticks_now();
        }
    und_stream_player_leave(player);
    for (int64_t f = 0; f < player->flight_count; ++f) {
        struct und_flight *flight = &player->flights[f];
        struct und_piece *piece = &player->pieces[flight->piece];
        if (latency_of(player, flight->reads))
            und_latency_add(latency_of(player, flight->reads), flight->begin, player->slots[piece->slot].waited,
                            flight->bytes);
        piece->cut.box = flight->box;
        if (flight->reads)
            compare_read(player, piece, flight->data);
        free(flight->data);
    }
    player->flight_count = 0;
}
