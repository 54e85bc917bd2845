#include "workload/order.h"

uint64_t und_order_key(const struct und_order *order, int64_t dump, int64_t variable, int64_t rank)
{
    return und_mix(und_mix(und_mix(und_mix(order->seed) ^ (uint64_t)dump) ^ (uint64_t)variable) ^ (uint64_t)rank);
}

/* A Feistel network of four rounds is a permutation of the numbers of 2 * half bits, at most four
 * times n; numbers that are no thing's are permuted again until one is. */
static int64_t shuffled(uint64_t key, int64_t n, int64_t position)
{
    int half = 1;
    while (half < 31 && ((int64_t)1 << (2 * half)) < n)
        ++half;
    if (((int64_t)1 << (2 * half)) < n)
        return position; /* more than 2^62 things: none can be there */
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t number = (uint64_t)position;
    do {
        uint64_t left = number >> half, right = number & mask;
        for (uint64_t round = 0; round < 4; ++round) {
            const uint64_t next = left ^ (und_mix(key ^ (round << 56) ^ right) & mask);
            left = right;
            right = next;
        }
        number = left << half | right;
    } while (number >= (uint64_t)n);
    return (int64_t)number;
}

/* Column by column of a table with `step` columns whose last row may be short. */
static int64_t strided(int64_t step, int64_t n, int64_t position)
{
    const int64_t rows = n / step, longer = n % step, in_longer = longer * (rows + 1);
    if (position < in_longer)
        return position % (rows + 1) * step + position / (rows + 1);
    position -= in_longer;
    return position % rows * step + longer + position / rows;
}

int64_t und_order_at(const struct und_order *order, uint64_t key, int64_t n, int64_t position)
{
    switch (order->rule) {
    case UND_CONSECUTIVE: return position;
    case UND_STRIDED: return strided(order->step, n, position);
    case UND_SHUFFLED: return shuffled(key, n, position);
    }
    return position;
}
