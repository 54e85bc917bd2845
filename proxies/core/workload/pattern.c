#include "workload/pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Waves of a smooth content in one period: 8192 values of 8 bytes are one wave. */
enum { WAVES = 16 };

/* Copying into the page cache is some 5 % slower from memory that does not begin where a page does. */
enum { PAGE_BYTES = 4096 };

/* splitmix64 (Steele, Lea, Flood 2014): its output function mixes all bits of its argument. */
int64_t und_pattern_memory(int64_t largest_transfer_bytes)
{
    /* A hash stamped at the end of a transfer may reach beyond it. */
    const int64_t bytes = UND_PERIOD + largest_transfer_bytes + UND_STAMP_REACH;
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

struct und_pattern *und_pattern_new(uint64_t seed, int64_t largest_transfer_bytes)
{
    struct und_pattern *pattern = malloc(sizeof *pattern);
    if (pattern)
        *pattern = (struct und_pattern){.seed = seed, .capacity = largest_transfer_bytes, .bases = NULL};
    return pattern;
}

void und_pattern_free(struct und_pattern *pattern)
{
    for (struct und_base *base = pattern ? pattern->bases : NULL, *next; base; base = next) {
        next = base->next;
        free(base->bytes);
        free(base);
    }
    free(pattern);
}

enum und_type und_content_type(const struct und_content *content, enum und_type type)
{
    return content->kind == UND_CONSTANT || content->kind == UND_SMOOTH ? type : UND_BYTE;
}

bool und_content_equal(const struct und_content *content, const struct und_content *other)
{
    return content->kind == other->kind && !(content->compressibility < other->compressibility) &&
           !(content->compressibility > other->compressibility);
}

static void fill_random(unsigned char *bytes, uint64_t seed, double compressibility)
{
    const size_t zeros = (size_t)lround(compressibility * UND_STAMP_STEP);
    uint64_t state = und_mix(seed);
    for (int64_t i = 0; i < UND_PERIOD; i += (int64_t)sizeof state) {
        state = und_mix(state);
        memcpy(bytes + i, &state, sizeof state);
    }
    for (int64_t block = 0; block < UND_PERIOD; block += UND_STAMP_STEP)
        memset(bytes + block + UND_STAMP_STEP - zeros, 0, zeros);
}

#define PUT(ctype)                            \
    do {                                      \
        const ctype element = (ctype)value;   \
        memcpy(at, &element, sizeof element); \
    } while (0)

static void put(unsigned char *at, enum und_type type, double value)
{
    switch (type) {
    case UND_I8: PUT(int8_t); break;
    case UND_BYTE:
    case UND_U8: PUT(uint8_t); break;
    case UND_I16: PUT(int16_t); break;
    case UND_U16: PUT(uint16_t); break;
    case UND_I32: PUT(int32_t); break;
    case UND_U32: PUT(uint32_t); break;
    case UND_I64: PUT(int64_t); break;
    case UND_U64: PUT(uint64_t); break;
    case UND_F32: PUT(float); break;
    case UND_F64: PUT(double); break;
    }
}

/* Waves around a mean that no type's zero is, or the mean alone. A period holds whole waves. */
static void fill_values(unsigned char *bytes, uint64_t seed, enum und_type type, bool waves)
{
    static const struct {
        double mean, amplitude;
    } scales[] = {
        [UND_BYTE] = {128, 100},    [UND_I8] = {20, 100},   [UND_U8] = {128, 100},  [UND_I16] = {3000, 25000},
        [UND_U16] = {30000, 25000}, [UND_I32] = {1e8, 1e9}, [UND_U32] = {2e9, 1e9}, [UND_I64] = {1e17, 4e18},
        [UND_U64] = {9e18, 4e18},   [UND_F32] = {300, 50},  [UND_F64] = {300, 50},
    };
    const int64_t size = und_type_bytes(type), count = UND_PERIOD / size;
    const double turn = 2 * acos(-1.0), phase = (double)(und_mix(seed) >> 11) * 0x1p-53;
    for (int64_t i = 0; i < count; ++i) {
        const double wave = waves ? sin(turn * (phase + (double)i * WAVES / (double)count)) : 0;
        put(bytes + i * size, type, scales[type].mean + scales[type].amplitude * wave);
    }
}

static bool little_endian(void)
{
    const uint16_t number = 1;
    unsigned char first;
    memcpy(&first, &number, 1);
    return first == 1;
}

static void fill(struct und_base *base, uint64_t seed)
{
    const int size = (int)und_type_bytes(base->type);
    base->stamp_stride = 0;
    base->stamp_first = 0;
    switch (base->content.kind) {
    case UND_RANDOM:
        fill_random(base->bytes, seed, base->content.compressibility);
        base->stamp_stride = 1;
        break;
    case UND_ZERO: memset(base->bytes, 0, UND_PERIOD); break;
    case UND_CONSTANT: fill_values(base->bytes, seed, base->type, false); break;
    case UND_SMOOTH:
        fill_values(base->bytes, seed, base->type, true);
        base->stamp_stride = size;
        base->stamp_first = little_endian() ? 0 : size - 1;
        break;
    }
}

struct und_base *und_pattern_base(struct und_pattern *pattern, const struct und_content *content, enum und_type type)
{
    const enum und_type matters = und_content_type(content, type);
    for (struct und_base *base = pattern->bases; base; base = base->next)
        if (base->type == matters && und_content_equal(&base->content, content))
            return base;
    struct und_base *base = malloc(sizeof *base);
    unsigned char *bytes = aligned_alloc(PAGE_BYTES, (size_t)und_pattern_memory(pattern->capacity));
    if (!base || !bytes) {
        free(base);
        free(bytes);
        return NULL;
    }
    base->content = *content;
    base->type = matters;
    base->bytes = bytes;
    base->capacity = pattern->capacity;
    base->continued = false;
    fill(base, pattern->seed);
    und_base_continue(base);
    base->next = pattern->bases;
    pattern->bases = base;
    return base;
}

uint64_t und_pattern_identity(uint64_t seed, const char *name, size_t length, int64_t generation)
{
    uint64_t identity = und_mix(seed);
    for (size_t i = 0; i < length; ++i)
        identity = und_mix(identity ^ (unsigned char)name[i]);
    return und_mix(identity ^ (uint64_t)generation);
}

uint64_t und_pattern_numbered(uint64_t identity, int64_t number)
{
    return und_mix(identity ^ (uint64_t)number);
}

unsigned char *und_base_buffer(struct und_base *base)
{
    base->continued = false;
    return base->bytes + UND_PERIOD;
}

void und_base_continue(struct und_base *base)
{
    if (base->continued)
        return;
    const int64_t bytes = base->capacity + UND_STAMP_REACH;
    for (int64_t done = 0; done < bytes; done += UND_PERIOD) {
        const int64_t some = bytes - done < UND_PERIOD ? bytes - done : UND_PERIOD;
        memcpy(base->bytes + UND_PERIOD + done, base->bytes, (size_t)some);
    }
    base->continued = true;
}

/* Where byte `offset` of a file stands in the base. */
static int64_t place_of(uint64_t identity, int64_t offset)
{
    return (int64_t)(((uint64_t)offset + identity * UND_STAMP_STEP) % UND_PERIOD);
}

/* Sets the hashes of bytes of the file that are in memory. */
static inline void stamp(const struct und_base *base, uint64_t identity, int64_t offset, int64_t bytes,
                         unsigned char *data)
{
    /* From the block of the first byte: the period is a multiple of the step, so its hash is in the base. */
    const int64_t first = offset - (int64_t)((uint64_t)offset % UND_STAMP_STEP), end = offset + bytes;
    if (base->stamp_stride == 1) {
        for (int64_t at = first; at < end; at += UND_STAMP_STEP) {
            const uint64_t word = und_mix(identity ^ (uint64_t)at);
            memcpy(data + (at - offset), &word, sizeof word);
        }
    } else if (base->stamp_stride > 1) {
        for (int64_t at = first; at < end; at += UND_STAMP_STEP) {
            unsigned char *to = data + (at - offset) + base->stamp_first;
            const uint64_t word = und_mix(identity ^ (uint64_t)at);
            for (int i = 0; i < UND_STAMP_BYTES; ++i)
                to[i * base->stamp_stride] = (unsigned char)(word >> 8 * i);
        }
    }
}

const unsigned char *und_base_consecutive(struct und_base *base, uint64_t identity, int64_t offset, int64_t bytes)
{
    unsigned char *data = base->bytes + place_of(identity, offset);
    stamp(base, identity, offset, bytes, data);
    return data;
}

/* Bytes from offset to the end of the period, where the base is complete whatever lies behind it. */
static int64_t within_period(uint64_t identity, int64_t offset, int64_t bytes)
{
    const int64_t left = UND_PERIOD - place_of(identity, offset);
    return bytes < left ? bytes : left;
}

void und_base_copy(struct und_base *base, uint64_t identity, int64_t offset, int64_t bytes, unsigned char *data)
{
    while (bytes > 0) {
        const int64_t some = within_period(identity, offset, bytes);
        memcpy(data, und_base_consecutive(base, identity, offset, some), (size_t)some);
        offset += some;
        data += some;
        bytes -= some;
    }
}

int und_filling_phase(const struct und_filling *filling)
{
    return filling->base ? (int)(filling->place / UND_STAMP_STEP) : UND_ANY_PHASE;
}

int und_base_phase(uint64_t identity, int64_t offset)
{
    return offset % UND_STAMP_STEP == 0 ? (int)(place_of(identity, offset) / UND_STAMP_STEP) : UND_ANY_PHASE;
}

void und_base_fill(struct und_base *base, uint64_t identity, int64_t offset, int64_t bytes, unsigned char *data,
                   struct und_filling *filling)
{
    const int64_t place = place_of(identity, offset);
    const bool is_blocks = offset % UND_STAMP_STEP == 0 && bytes % UND_STAMP_STEP == 0;
    if (is_blocks && filling->base == base && filling->place == place && filling->bytes >= bytes) {
        stamp(base, identity, offset, bytes, data);
        return;
    }
    und_base_copy(base, identity, offset, bytes, data);
    *filling = (struct und_filling){.base = is_blocks ? base : NULL, .place = place, .bytes = bytes};
}

int64_t und_base_compare(struct und_base *base, uint64_t identity, int64_t offset, int64_t bytes,
                         const unsigned char *data, int64_t *wrong)
{
    int64_t differing = 0;
    while (bytes > 0) {
        const int64_t some = within_period(identity, offset, bytes);
        const unsigned char *right = und_base_consecutive(base, identity, offset, some);
        if (memcmp(data, right, (size_t)some) != 0)
            for (int64_t i = 0; i < some; ++i)
                if (data[i] != right[i] && differing++ == 0)
                    *wrong = offset + i;
        offset += some;
        data += some;
        bytes -= some;
    }
    return differing;
}
