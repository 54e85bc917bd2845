/* The bytes of a prepared dump: written, read, compared, call by call. */
#include "core/parts.h"

#include <inttypes.h>
#include <stdio.h>

static void write_consecutive(struct und_series *series, struct und_piece *piece, struct und_file *file)
{
    const struct und_method *method = series->plan->method;
    const int64_t size = und_type_bytes(piece->dataset.type);
    struct und_cut *cut = &piece->cut;
    for (int64_t left = cut->calls; left > 0; --left) {
        const int64_t bytes = und_box_bytes(&piece->dataset, &cut->box);
        method->write(file, &piece->dataset, &cut->box,
                      und_base_consecutive(piece->base, piece->identity, piece->content + cut->element * size, bytes));
        und_cut_next(cut);
    }
}

/* The bytes of a box that is not consecutive in its variable are gathered run by run. */
static void write_gathered(struct und_series *series, struct und_piece *piece, struct und_file *file)
{
    const struct und_method *method = series->plan->method;
    const int64_t size = und_type_bytes(piece->dataset.type);
    unsigned char *buffer = und_base_buffer(piece->base);
    struct und_cut *cut = &piece->cut;
    for (int64_t left = cut->calls; left > 0; --left) {
        unsigned char *to = buffer;
        struct und_spans spans;
        int64_t element;
        und_spans_begin(&spans, &piece->dataset, &cut->box);
        for (; und_spans_next(&spans, &element); to += spans.elements * size)
            und_base_copy(piece->base, piece->identity, piece->content + element * size, spans.elements * size, to);
        method->write(file, &piece->dataset, &cut->box, buffer);
        und_cut_next(cut);
    }
}

static void define(const struct und_series *series, struct und_piece *piece)
{
    if (series->plan->method->define)
        series->plan->method->define(series->slots[piece->slot].file, &piece->dataset, &piece->block);
}

static const struct und_box empty;

void und_series_write(struct und_series *series)
{
    for (int p = 0; p < series->piece_count; ++p) {
        struct und_piece *piece = &series->pieces[p];
        struct und_file *file = series->slots[piece->slot].file;
        define(series, piece);
        if (piece->cut.consecutive) {
            und_base_continue(piece->base);
            write_consecutive(series, piece, file);
        } else {
            write_gathered(series, piece, file);
        }
        for (int64_t more = piece->cut.calls; more < piece->calls; ++more)
            series->plan->method->write(file, &piece->dataset, &empty, piece->base->bytes);
        series->bytes += und_box_bytes(&piece->dataset, &piece->block);
    }
}

void und_series_read(struct und_series *series)
{
    for (int p = 0; p < series->piece_count; ++p) {
        struct und_piece *piece = &series->pieces[p];
        unsigned char *buffer = und_base_buffer(piece->base);
        struct und_file *file = series->slots[piece->slot].file;
        define(series, piece);
        for (int64_t left = piece->cut.calls; left > 0; --left) {
            series->plan->method->read(file, &piece->dataset, &piece->cut.box, buffer);
            und_cut_next(&piece->cut);
        }
        for (int64_t more = piece->cut.calls; more < piece->calls; ++more)
            series->plan->method->read(file, &piece->dataset, &empty, buffer);
        series->bytes += und_box_bytes(&piece->dataset, &piece->block);
    }
}

static void note_wrong(const struct und_series *series, const struct und_piece *piece, int64_t at, unsigned char found,
                       struct und_verification *verification)
{
    unsigned char right;
    und_base_copy(piece->base, piece->identity, at, 1, &right);
    snprintf(verification->first, sizeof verification->first,
             "%s: byte %" PRId64 " of the variable %s is %u instead of %u", series->slots[piece->slot].path,
             at - piece->content, piece->name, found, right);
}

static void compare_box(const struct und_series *series, const struct und_piece *piece, const unsigned char *data,
                        struct und_verification *verification)
{
    const int64_t size = und_type_bytes(piece->dataset.type);
    struct und_spans spans;
    int64_t element, wrong = 0;
    und_spans_begin(&spans, &piece->dataset, &piece->cut.box);
    for (; und_spans_next(&spans, &element); data += spans.elements * size) {
        const int64_t bytes = spans.elements * size, offset = piece->content + element * size;
        const int64_t differing = und_base_compare(piece->base, piece->identity, offset, bytes, data, &wrong);
        if (differing > 0 && verification->wrong_bytes == 0)
            note_wrong(series, piece, wrong, data[wrong - offset], verification);
        verification->wrong_bytes += differing;
        verification->bytes += bytes;
    }
}

void und_series_compare(struct und_series *series, struct und_verification *verification)
{
    for (int p = 0; p < series->piece_count; ++p) {
        struct und_piece *piece = &series->pieces[p];
        unsigned char *buffer = und_base_buffer(piece->base);
        struct und_file *file = series->slots[piece->slot].file;
        define(series, piece);
        for (int64_t left = piece->cut.calls; left > 0; --left) {
            series->plan->method->read(file, &piece->dataset, &piece->cut.box, buffer);
            compare_box(series, piece, buffer, verification);
            und_cut_next(&piece->cut);
        }
        for (int64_t more = piece->cut.calls; more < piece->calls; ++more)
            series->plan->method->read(file, &piece->dataset, &empty, buffer);
    }
}
