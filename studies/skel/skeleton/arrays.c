/* Decompositions, and arrays with their contents. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DIMENSIONS = 8 };

static void make_grid(int64_t ranks, int dimensions, int64_t *sides)
{
    int64_t factors[64];
    int count = 0;
    for (int64_t factor = 2; ranks > 1; ++factor) {
        if (factor * factor > ranks)
            factor = ranks;
        for (; ranks % factor == 0; ranks /= factor)
            factors[count++] = factor;
    }
    for (int d = 0; d < dimensions; ++d)
        sides[d] = 1;
    while (count > 0) {
        int shortest = 0;
        for (int d = 1; d < dimensions; ++d)
            if (sides[d] < sides[shortest])
                shortest = d;
        sides[shortest] *= factors[--count];
    }
    for (int d = 1; d < dimensions; ++d) /* the longest first */
        for (int e = d; e > 0 && sides[e] > sides[e - 1]; --e) {
            const int64_t side = sides[e];
            sides[e] = sides[e - 1];
            sides[e - 1] = side;
        }
}

int64_t skeleton_grid(int64_t ranks, int dimensions, int index)
{
    int64_t sides[MAX_DIMENSIONS];
    make_grid(ranks, dimensions, sides);
    return sides[index];
}

int64_t skeleton_coordinate(int64_t rank, int64_t ranks, int dimensions, int index)
{
    int64_t sides[MAX_DIMENSIONS];
    make_grid(ranks, dimensions, sides);
    for (int d = dimensions - 1; d > index; --d)
        rank /= sides[d];
    return rank % sides[index];
}

int64_t skeleton_of_rank(int64_t rank, int64_t count, const int64_t *numbers)
{
    return rank < count ? numbers[rank] : -1;
}

void skeleton_check_block(const struct skeleton *run, const char *variable, int64_t offset, int64_t size, int64_t whole)
{
    if (size < 1 || offset < 0 || offset > whole - size)
        skeleton_die(run, "%s: a block of size %lld at offset %lld exceeds the global size of %lld", variable,
                     (long long)size, (long long)offset, (long long)whole);
}

void *skeleton_array(const struct skeleton *run, const char *name, size_t count, size_t element_bytes)
{
    if (count == 0)
        return NULL;
    void *array = count <= SIZE_MAX / element_bytes ? calloc(count, element_bytes) : NULL;
    if (!array)
        skeleton_die(run, "%s: no memory for %zu elements of %zu bytes", name, count, element_bytes);
    return array;
}

static uint64_t next_random(uint64_t *state) /* xorshift64*: Vigna 2016 */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

void skeleton_fill(const struct skeleton *run, void *data, size_t count, enum skeleton_type type,
                   enum skeleton_fill fill)
{
    static const size_t element_bytes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
    const size_t bytes = element_bytes[type];
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)run->rank + 1);
    unsigned char *at = data;
    for (size_t i = 0; i < count; ++i, at += bytes) {
        const uint64_t random = next_random(&state);
        const uint64_t whole = fill == SKELETON_FILL_RANK    ? (uint64_t)run->rank
                               : fill == SKELETON_FILL_INDEX ? (uint64_t)i
                               : fill == SKELETON_FILL_ZERO  ? 0
                                                             : random;
        const double real = fill == SKELETON_FILL_RANDOM ? (double)(random >> 11) * 0x1p-53 : (double)whole;
        const float single = (float)real;
        const uint32_t four = (uint32_t)whole;
        const uint16_t two = (uint16_t)whole;
        const uint8_t byte = (uint8_t)whole;
        memcpy(at,
               type == SKELETON_F64   ? (const void *)&real
               : type == SKELETON_F32 ? (const void *)&single
               : bytes == 8           ? (const void *)&whole
               : bytes == 4           ? (const void *)&four
               : bytes == 2           ? (const void *)&two
                                      : (const void *)&byte,
               bytes);
    }
}
