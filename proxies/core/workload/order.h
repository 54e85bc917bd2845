/*
 * Orders of n things that are computed, never stored: each thing once, the position in the order
 * from 0 to n-1 gives the number of the thing.
 */
#ifndef UND_ORDER_H
#define UND_ORDER_H

#include <stdint.h>

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
