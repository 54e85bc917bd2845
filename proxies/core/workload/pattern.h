/*
 * The contents of files: a function of the seed, the file, its generation and the place in it, the
 * same for every number of ranks and whatever stream wrote it, so that any rank can check any byte.
 *
 * Byte o of a file is base[(o + p) mod 1 MiB], where the base is made once, as the content of the
 * stream says and, where values matter, for each element type, and p is a multiple of 4096 that the
 * identity of the file gives. In random and smooth contents 8 bytes at the beginning of each 4096
 * are a hash of the identity and the place, so that no two blocks are alike; in a smooth one they
 * are the least significant bytes of 8 elements. A transfer of consecutive bytes is written
 * straight from the base, with one hash set per 4 KiB.
 *
 * One allocation holds a base and, behind it, room for the largest transfer: the base goes on
 * there, and it is also where reads arrive and where other transfers are gathered. Both begin on a
 * page of memory.
 */
#ifndef UND_PATTERN_H
#define UND_PATTERN_H

#include "workload/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UND_PERIOD = 1 << 20, UND_STAMP_STEP = 4096, UND_STAMP_BYTES = 8, UND_STAMP_REACH = 64 };

struct und_base {
    struct und_base *next;
    struct und_content content;
    enum und_type type;
    unsigned char *bytes;
    int64_t capacity; /* bytes of the largest transfer */
    bool continued;   /* the base goes on behind the period */
    int stamp_stride; /* from one byte of a hash to the next; 0: no hashes */
    int stamp_first;
};

/* The bases of a run, made as they are asked for. */
struct und_pattern {
    uint64_t seed;
    int64_t capacity;
    struct und_base *bases;
};

/* NULL when memory is out. */
struct und_pattern *und_pattern_new(uint64_t seed, int64_t largest_transfer_bytes);
void und_pattern_free(struct und_pattern *pattern);

/* The base for elements of that type, made when asked for first: not for timed regions. NULL when memory is out. */
struct und_base *und_pattern_base(struct und_pattern *pattern, const struct und_content *content, enum und_type type);

/* The type as far as it matters to the content: UND_BYTE where all types have the same bytes. */
enum und_type und_content_type(const struct und_content *content, enum und_type type);
bool und_content_equal(const struct und_content *content, const struct und_content *other);

/* Bytes that one base takes, whole pages. */
int64_t und_pattern_memory(int64_t largest_transfer_bytes);

/* The key of the contents of a file: of so many characters of its name, which a method's suffix does
 * not belong to, and how often its set was written before. Then of file `number` of many whose
 * names begin alike. */
uint64_t und_pattern_identity(uint64_t seed, const char *name, size_t length, int64_t generation);
uint64_t und_pattern_numbered(uint64_t identity, int64_t number);

/* Where reads arrive. The base is then no longer continued; see und_base_continue. */
unsigned char *und_base_buffer(struct und_base *base);

/* Makes und_base_consecutive usable again after the buffer was. Not for timed regions. */
void und_base_continue(struct und_base *base);

/* Bytes offset … offset+bytes-1 of the file, valid up to the next call; at most `capacity` bytes. */
const unsigned char *und_base_consecutive(struct und_base *base, uint64_t identity, int64_t offset, int64_t bytes);

/* The same, copied to `data`, which may be the buffer. */
void und_base_copy(struct und_base *base, uint64_t identity, int64_t offset, int64_t bytes, unsigned char *data);

/* What memory has been filled with: bytes of a base from a place on; NULL: anything. */
struct und_filling {
    const struct und_base *base;
    int64_t place, bytes;
};

/* Blocks in a period: where the bytes of a filling begin, UND_ANY_PHASE where it is not of blocks. */
enum { UND_ANY_PHASE = UND_PERIOD / UND_STAMP_STEP, UND_PHASES_OF_FILLING };
int und_filling_phase(const struct und_filling *filling);
int und_base_phase(uint64_t identity, int64_t offset);

/* The same to memory that has been filled as `filling` says: where it has the right bytes of the base, as for blocks
 * that are whole periods apart, only the hashes are set. */
void und_base_fill(struct und_base *base, uint64_t identity, int64_t offset, int64_t bytes, unsigned char *data,
                   struct und_filling *filling);

/* The number of bytes that differ, and the offset of the first in *wrong (if any does). */
int64_t und_base_compare(struct und_base *base, uint64_t identity, int64_t offset, int64_t bytes,
                         const unsigned char *data, int64_t *wrong);

#endif
