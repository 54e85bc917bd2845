/*
 * Orders of n things that are computed, never stored: each thing once, the position in the order
 * from 0 to n-1 gives the number of the thing.
 */
#ifndef UND_ORDER_H
#define UND_ORDER_H

#include <stdint.h>

/* SplitMix64 (Steele, Lea and Flood 2014): a number from all 64 bits of another. */
static inline uint64_t und_mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15U;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31);
}

enum und_order_rule { UND_CONSECUTIVE, UND_STRIDED, UND_SHUFFLED };

struct und_order {
    enum und_order_rule rule;
    int64_t step;  /* strided: 0, step, 2 * step … then 1, step + 1 … */
    uint64_t seed; /* shuffled */
};

/* Each shuffle gets a key of its own, e.g. for each dump and rank. */
uint64_t und_order_key(const struct und_order *order, int64_t dump, int64_t variable, int64_t rank);

/* The thing at a position of 0 … n-1. The key matters to shuffled orders only: equal keys, equal orders. */
int64_t und_order_at(const struct und_order *order, uint64_t key, int64_t n, int64_t position);

#endif
