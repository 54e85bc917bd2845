#include "playing/stencil.h"

#include "job/die.h"
#include "job/timing.h"
#include "plan/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Side of a rank's tile: a sweep takes some ten microseconds, so that the end comes in time. */
enum { SIDE = 128, EDGE = SIDE + 2 };

enum { NORTH, SOUTH, WEST, EAST, NEIGHBOURS };

struct und_stencil {
    MPI_Comm comm; /* Cartesian */
    int neighbour[NEIGHBOURS];
    int now; /* which of the two fields is current */
    double field[2][EDGE][EDGE];
    double out[2][SIDE], in[2][SIDE]; /* columns, west and east */
};

int64_t und_stencil_memory(void)
{
    return (int64_t)sizeof(struct und_stencil);
}

struct und_stencil *und_stencil_new(MPI_Comm comm)
{
    struct und_stencil *stencil = calloc(1, sizeof *stencil);
    int sides[2] = {0, 0}, periodic[2] = {1, 1}, ranks;
    if (!stencil)
        return NULL;
    MPI_Comm_size(comm, &ranks);
    UND_MPI(MPI_Dims_create(ranks, 2, sides), "cannot form a grid of %d ranks", ranks);
    UND_MPI(MPI_Cart_create(comm, 2, sides, periodic, 1, &stencil->comm), "cannot form a grid of %d by %d ranks",
            sides[0], sides[1]);
    MPI_Comm_set_errhandler(stencil->comm, MPI_ERRORS_RETURN);
    MPI_Cart_shift(stencil->comm, 0, 1, &stencil->neighbour[NORTH], &stencil->neighbour[SOUTH]);
    MPI_Cart_shift(stencil->comm, 1, 1, &stencil->neighbour[WEST], &stencil->neighbour[EAST]);
    for (int i = 0; i < EDGE; ++i)
        for (int j = 0; j < EDGE; ++j)
            stencil->field[0][i][j] = 1.0 + (i * 31 + j * 17) % 64 / 64.0;
    return stencil;
}

void und_stencil_free(struct und_stencil *stencil)
{
    if (stencil)
        MPI_Comm_free(&stencil->comm);
    free(stencil);
}

static void exchange(struct und_stencil *stencil)
{
    double(*field)[EDGE] = stencil->field[stencil->now];
    const int *with = stencil->neighbour;
    MPI_Request requests[2 * NEIGHBOURS];
    MPI_Status statuses[2 * NEIGHBOURS]; /* gcc takes MPICH's MPI_STATUSES_IGNORE for an array of no elements */
    int count = 0;
    for (int i = 0; i < SIDE; ++i) {
        stencil->out[0][i] = field[i + 1][1];
        stencil->out[1][i] = field[i + 1][SIDE];
    }
    /* The tag is the direction in which the edge travels. */
    const struct {
        double *out, *in;
        int to, from;
    } edges[NEIGHBOURS] = {
        {&field[1][1], &field[EDGE - 1][1], with[NORTH], with[SOUTH]},
        {&field[SIDE][1], &field[0][1], with[SOUTH], with[NORTH]},
        {stencil->out[0], stencil->in[1], with[WEST], with[EAST]},
        {stencil->out[1], stencil->in[0], with[EAST], with[WEST]},
    };
    static const char failed[] = "cannot exchange the edges of the stencil";
    for (int e = 0; e < NEIGHBOURS; ++e) {
        UND_MPI(MPI_Irecv(edges[e].in, SIDE, MPI_DOUBLE, edges[e].from, e, stencil->comm, &requests[count++]), failed);
        UND_MPI(MPI_Isend(edges[e].out, SIDE, MPI_DOUBLE, edges[e].to, e, stencil->comm, &requests[count++]), failed);
    }
    UND_MPI(MPI_Waitall(count, requests, statuses), failed);
    for (int i = 0; i < SIDE; ++i) {
        field[i + 1][0] = stencil->in[0][i];
        field[i + 1][EDGE - 1] = stencil->in[1][i];
    }
}

/* One sweep; returns the largest change. */
static double sweep(struct und_stencil *stencil)
{
    const double(*from)[EDGE] = (const double(*)[EDGE])stencil->field[stencil->now];
    double(*to)[EDGE] = stencil->field[1 - stencil->now];
    double most = 0;
    for (int i = 1; i <= SIDE; ++i)
        for (int j = 1; j <= SIDE; ++j) {
            const double value =
                0.5 * from[i][j] + 0.125 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
            const double change = value > from[i][j] ? value - from[i][j] : from[i][j] - value;
            most = change > most ? change : most;
            to[i][j] = value;
        }
    stencil->now = 1 - stencil->now;
    return most;
}

int64_t und_stencil_until(struct und_stencil *stencil, double until)
{
    double change = 0, took_s = 0;
    for (int64_t sweeps = 0;; ++sweeps) {
        const double begin = und_clock();
        /* Not below 0 as soon as one rank has no time for another sweep like its longest of late. The change rides
         * along, as it does in a solver. */
        double state[2] = {begin + took_s - until, change};
        UND_MPI(MPI_Allreduce(MPI_IN_PLACE, state, 2, MPI_DOUBLE, MPI_MAX, stencil->comm),
                "cannot agree on the end of the stencil");
        if (state[0] >= 0) {
            und_wait(until, UND_SLEEP);
            return sweeps;
        }
        exchange(stencil);
        change = sweep(stencil);
        took_s = fmax(0.95 * took_s, und_clock() - begin);
    }
}
