/*
 * The slowest rank and the slowest host of a repetition, by their time of I/O, against the medians of all: always
 * named, since no distribution says beyond what ratio a host is at fault.
 */
#ifndef UND_STRAGGLERS_H
#define UND_STRAGGLERS_H

#include "job/environment.h"

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* The mean over the ranks of a host. */
struct und_host_time {
    char name[UND_HOST_BYTES];
    double io_s;
};

struct und_stragglers {
    int64_t ranks, rank;
    char rank_host[UND_HOST_BYTES];
    double rank_s, median_rank_s;
    int64_t hosts;
    char host[UND_HOST_BYTES];
    double host_s, median_host_s;
};

/* Of the seconds that each rank spent in I/O; filled on rank 0. Collective. */
void und_stragglers_find(double io_s, MPI_Comm comm, struct und_stragglers *stragglers);

/* The part of it that is known of hosts, of which there is at least one: their order is lost. */
void und_stragglers_find_host(struct und_host_time *hosts, int64_t count, struct und_stragglers *stragglers);

/* In a line, of more than one host; else the text is empty. */
void und_stragglers_text(const struct und_stragglers *stragglers, char *text, size_t size);

#endif
