/*
 * understudy-kernel-gts: the restart output of GTS, gyrokinetic particles in a torus, as an
 * application makes it: each process has a wedge of the torus with its particles, which gather the
 * field, are pushed, leave their charge on the grid and move on to the wedge beside (a crude
 * particle-in-cell cycle, to give the arrays values and the processes something to do and to say to
 * each other; no physics to be used), and 18 arrays, or 27 with electrons, go to storage by ADIOS'
 * own calls, as the group restart of traces/gts.xml.
 */
#include "kernel/kernel.h"

#ifdef UND_HAVE_ADIOS

#include "skeleton.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { NPROBE = 64, NBIN_A = 64, NRBIN = 64, MPSI = 90, SPRNG_BYTES = 4100 };

/* What a particle has; zeta runs from 0 to 1 through the wedge of the process. */
enum { PSI, THETA, ZETA, V_PARALLEL, WEIGHT, MOMENT, MARK, PROPERTIES };

/* Neighbours along the torus. */
enum { BACK, AHEAD, WAYS };

struct species {
    const char *name;
    double speed; /* thermal, in wedges per cycle */
    double charge;
    int32_t most; /* particles that there is room for */
    int32_t count, tracer;
    double tracer_energy, sum, cloud;
    double *z;         /* [most][PROPERTIES] */
    double *z0;        /* [most]: weights before the last push */
    double *marker;    /* [grid]: charge */
    double *flux_mean; /* [MPSI + 1]: charge of flux surfaces */
};

struct gts {
    struct skeleton *run;
    int rank, ranks, neighbour[WAYS];
    int32_t grid, istep;
    struct species ions, electrons;
    bool has_electrons;
    double *phi;     /* [grid][2]: on this process' plane, and on the next one */
    double *plane;   /* [grid] */
    double *leaving; /* particles on their way */
    int32_t leaving_capacity;
    double probe[NPROBE], bin_a[NBIN_A], temperature[NRBIN], density[NRBIN];
    double shear[MPSI + 1], heat[MPSI + 1];
    unsigned char random[SPRNG_BYTES];
    uint64_t seed;
};

static double uniform(struct gts *torus) /* xorshift64*: Vigna 2016 */
{
    torus->seed ^= torus->seed >> 12;
    torus->seed ^= torus->seed << 25;
    torus->seed ^= torus->seed >> 27;
    return (double)(torus->seed * UINT64_C(2685821657736338717) >> 11) * 0x1p-53;
}

static void begin_species(struct gts *torus, struct species *kind, int64_t most)
{
    kind->most = (int32_t)most;
    kind->count = (int32_t)(most - most / 16); /* room for those that come */
    kind->z = skeleton_array(torus->run, kind->name, (size_t)most * PROPERTIES, sizeof *kind->z);
    kind->z0 = skeleton_array(torus->run, kind->name, (size_t)most, sizeof *kind->z0);
    kind->marker = skeleton_array(torus->run, kind->name, (size_t)torus->grid, sizeof *kind->marker);
    kind->flux_mean = skeleton_array(torus->run, kind->name, MPSI + 1, sizeof *kind->flux_mean);
    for (int32_t i = 0; i < kind->count; ++i) {
        double *z = kind->z + (size_t)i * PROPERTIES;
        z[PSI] = uniform(torus);
        z[THETA] = uniform(torus);
        z[ZETA] = uniform(torus);
        z[V_PARALLEL] = kind->speed * (uniform(torus) + uniform(torus) + uniform(torus) - 1.5);
        z[WEIGHT] = kind->z0[i] = 0.5 + uniform(torus);
        z[MOMENT] = uniform(torus);
        z[MARK] = torus->rank;
    }
}

static void begin(struct gts *torus, int64_t particles, int64_t grid, bool electrons)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &torus->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &torus->ranks);
    torus->neighbour[AHEAD] = (torus->rank + 1) % torus->ranks;
    torus->neighbour[BACK] = (torus->rank + torus->ranks - 1) % torus->ranks;
    torus->grid = (int32_t)grid;
    torus->has_electrons = electrons;
    torus->seed = UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)torus->rank + 1);
    const uint64_t species_bytes = sizeof(double) * ((uint64_t)particles * (PROPERTIES + 1) + (uint64_t)grid);
    skeleton_check_capacity(torus->run, (electrons ? 2 : 1) * species_bytes + 3 * sizeof(double) * (uint64_t)grid);
    torus->phi = skeleton_array(torus->run, "phi", (size_t)grid * 2, sizeof *torus->phi);
    torus->plane = skeleton_array(torus->run, "phi", (size_t)grid, sizeof *torus->plane);
    torus->leaving_capacity = (int32_t)(particles / 16 + 1);
    torus->leaving = skeleton_array(torus->run, "particles on their way", (size_t)torus->leaving_capacity * PROPERTIES,
                                    sizeof(double));
    torus->ions = (struct species){.name = "ions", .speed = 0.01, .charge = 1};
    torus->electrons = (struct species){.name = "electrons", .speed = 0.02, .charge = -1};
    begin_species(torus, &torus->ions, particles);
    if (electrons)
        begin_species(torus, &torus->electrons, particles);
}

/* The grid point at or below a particle, and how far it is towards the next one. */
static int32_t locate(const struct gts *torus, const double *z, double *share)
{
    const double at = (floor(z[PSI] * MPSI) + z[THETA]) / MPSI * torus->grid;
    const int32_t point = (int32_t)fmin(at, torus->grid - 1.0);
    *share = at - point;
    return point;
}

static void deposit(const struct gts *torus, struct species *kind)
{
    memset(kind->marker, 0, (size_t)torus->grid * sizeof *kind->marker);
    memset(kind->flux_mean, 0, (MPSI + 1) * sizeof *kind->flux_mean);
    for (int32_t i = 0; i < kind->count; ++i) {
        const double *z = kind->z + (size_t)i * PROPERTIES;
        double share;
        const int32_t point = locate(torus, z, &share);
        kind->marker[point] += (1 - share) * z[WEIGHT];
        kind->marker[(point + 1) % torus->grid] += share * z[WEIGHT];
        kind->flux_mean[(int)(z[PSI] * MPSI)] += z[WEIGHT];
    }
    MPI_Allreduce(MPI_IN_PLACE, kind->flux_mean, MPSI + 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Some sweeps of relaxation on this plane; the next plane is that of the process ahead. */
static void solve_field(struct gts *torus)
{
    enum { SWEEPS = 4 };
    const int32_t grid = torus->grid;
    const double mean = (double)torus->ions.count / grid;
    for (int sweep = 0; sweep < SWEEPS; ++sweep)
        for (int32_t g = 0; g < grid; ++g) {
            const double around =
                torus->phi[2 * (g > 0 ? g - 1 : grid - 1)] + torus->phi[2 * (g < grid - 1 ? g + 1 : 0)];
            double charge = torus->ions.charge * torus->ions.marker[g];
            if (torus->has_electrons)
                charge += torus->electrons.charge * torus->electrons.marker[g] + mean;
            torus->phi[2 * (size_t)g] = 0.49 * around + 0.01 * (charge / mean - 1);
        }
    for (int32_t g = 0; g < grid; ++g)
        torus->plane[g] = torus->phi[2 * (size_t)g];
    MPI_Sendrecv_replace(torus->plane, grid, MPI_DOUBLE, torus->neighbour[BACK], 0, torus->neighbour[AHEAD], 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int32_t g = 0; g < grid; ++g)
        torus->phi[2 * (size_t)g + 1] = torus->plane[g];
}

static void push(const struct gts *torus, struct species *kind)
{
    for (int32_t i = 0; i < kind->count; ++i) {
        double *z = kind->z + (size_t)i * PROPERTIES;
        double share;
        const size_t point = (size_t)locate(torus, z, &share), next = (point + 1) % (size_t)torus->grid;
        const double *here = torus->phi + 2 * point, *there = torus->phi + 2 * next;
        const double along = (here[1] - here[0]) * (1 - share) + (there[1] - there[0]) * share;
        const double across = (there[0] - here[0]) * (1 - z[ZETA]) + (there[1] - here[1]) * z[ZETA];
        z[V_PARALLEL] = fmax(fmin(z[V_PARALLEL] - 1e-3 * kind->charge * along, 0.9), -0.9);
        z[ZETA] += z[V_PARALLEL];
        z[THETA] += 0.01 * across + 0.1 * z[V_PARALLEL];
        z[THETA] -= floor(z[THETA]);
        z[PSI] = fmin(fabs(z[PSI] + 1e-3 * across * z[MOMENT]), 1 - 1e-12);
        kind->z0[i] = z[WEIGHT];
        z[WEIGHT] *= 1 - 1e-3 * along;
    }
}

/* Takes the particles that have left the wedge that way out of the arrays, and makes them the neighbour's. */
static int pack(struct gts *torus, struct species *kind, int way)
{
    int count = 0;
    for (int32_t i = 0; i < kind->count;) {
        double *z = kind->z + (size_t)i * PROPERTIES;
        if (way == AHEAD ? z[ZETA] < 1 : z[ZETA] >= 0) {
            ++i;
            continue;
        }
        if (count == torus->leaving_capacity)
            skeleton_die(torus->run, "%s: more than %d leave a wedge at once", kind->name, torus->leaving_capacity);
        z[ZETA] += way == AHEAD ? -1 : 1;
        memcpy(torus->leaving + (size_t)count++ * PROPERTIES, z, PROPERTIES * sizeof *z);
        --kind->count;
        memmove(z, kind->z + (size_t)kind->count * PROPERTIES, PROPERTIES * sizeof *z);
    }
    return count;
}

/* Those that leave go one way, as many as come from the other side are added. */
static void shift(struct gts *torus, struct species *kind, int way)
{
    const int to = torus->neighbour[way], from = torus->neighbour[1 - way], leave = pack(torus, kind, way);
    int come = 0;
    MPI_Sendrecv(&leave, 1, MPI_INT, to, way, &come, 1, MPI_INT, from, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (come > kind->most - kind->count)
        skeleton_die(torus->run, "%s: no room for %d that come into the wedge", kind->name, come);
    MPI_Sendrecv(torus->leaving, leave * PROPERTIES, MPI_DOUBLE, to, way, kind->z + (size_t)kind->count * PROPERTIES,
                 come * PROPERTIES, MPI_DOUBLE, from, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    kind->count += come;
}

static void sum_up(struct species *kind)
{
    kind->sum = kind->tracer_energy = 0;
    kind->tracer = kind->count > 0 ? kind->count / 2 : 0;
    for (int32_t i = 0; i < kind->count; ++i)
        kind->sum += kind->z[(size_t)i * PROPERTIES + WEIGHT];
    kind->cloud = kind->sum / (kind->count + 1.0);
    if (kind->count > 0)
        kind->tracer_energy = pow(kind->z[(size_t)kind->tracer * PROPERTIES + V_PARALLEL], 2);
}

/* Radial profiles of all processes. */
static void diagnose(struct gts *torus)
{
    double profile[2][NRBIN] = {{0}};
    const struct species *ions = &torus->ions;
    for (int32_t i = 0; i < ions->count; ++i) {
        const double *z = ions->z + (size_t)i * PROPERTIES;
        const int bin = (int)(z[PSI] * NRBIN);
        profile[0][bin] += z[WEIGHT] * z[V_PARALLEL] * z[V_PARALLEL];
        profile[1][bin] += z[WEIGHT];
    }
    MPI_Allreduce(MPI_IN_PLACE, profile, 2 * NRBIN, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int bin = 0; bin < NRBIN; ++bin) {
        torus->temperature[bin] = profile[0][bin] / (profile[1][bin] + 1e-300);
        torus->density[bin] = profile[1][bin];
        torus->bin_a[bin] = torus->phi[2 * ((size_t)bin * (size_t)torus->grid / NBIN_A)];
    }
    for (int surface = 0; surface <= MPSI; ++surface) {
        torus->shear[surface] = ions->flux_mean[surface] - ions->flux_mean[surface > 0 ? surface - 1 : 0];
        torus->heat[surface] += 1e-3 * torus->shear[surface];
    }
    for (int p = 0; p < NPROBE; ++p)
        torus->probe[p] = torus->phi[2 * ((size_t)p * (size_t)torus->grid / NPROBE)];
}

static void advance_species(struct gts *torus, struct species *kind)
{
    push(torus, kind);
    shift(torus, kind, AHEAD);
    shift(torus, kind, BACK);
    sum_up(kind);
}

static void advance(struct gts *torus)
{
    deposit(torus, &torus->ions);
    if (torus->has_electrons)
        deposit(torus, &torus->electrons);
    solve_field(torus);
    advance_species(torus, &torus->ions);
    if (torus->has_electrons)
        advance_species(torus, &torus->electrons);
    diagnose(torus);
    for (size_t at = 0; at + sizeof torus->seed <= SPRNG_BYTES; at += sizeof torus->seed) {
        uniform(torus);
        memcpy(torus->random + at, &torus->seed, sizeof torus->seed);
    }
    ++torus->istep;
}

/* A variable of the group, as this process has it. */
struct variable {
    const char *name;
    const void *data;
    uint64_t bytes;
};

#define ONE(name, value)              \
    {                                 \
        name, &(value), sizeof(value) \
    }
#define MANY(name, array, count)                         \
    {                                                    \
        name, array, (uint64_t)(count) * sizeof *(array) \
    }

/* The calls of the application: the size of the group, and its variables in the order of the descriptor. */
static void write_restart(const struct gts *torus)
{
    static const int32_t nprobe = NPROBE, nrbin = NRBIN, nbin_a = NBIN_A, mpsi = MPSI, faces = MPSI + 1;
    static const int32_t random_bytes = SPRNG_BYTES;
    const struct species *ions = &torus->ions, *electrons = &torus->electrons;
    const int32_t mype = torus->rank, numberpe = torus->ranks, isize = ions->count + electrons->count;
    const struct variable variables[] = {
        ONE("mype", mype),
        ONE("numberpe", numberpe),
        ONE("istep", torus->istep),
        ONE("mgrid", torus->grid),
        ONE("mpsi", mpsi),
        ONE("nprobe", nprobe),
        ONE("nrbin", nrbin),
        ONE("nbin_a", nbin_a),
        ONE("mimax", ions->most),
        ONE("mpsi+1", faces),
        ONE("sprng_buffer_len", random_bytes),
        ONE("mi", ions->count),
        ONE("ntracer", ions->tracer),
        ONE("isize", isize),
        ONE("etracer_i0", ions->tracer_energy),
        ONE("misum", ions->sum),
        ONE("cloud_i", ions->cloud),
        MANY("buffer1", torus->random, SPRNG_BYTES),
        MANY("sn_box", torus->probe, NPROBE),
        MANY("sn0", torus->bin_a, NBIN_A),
        MANY("rdtem0", torus->temperature, NRBIN),
        MANY("rtden", torus->density, NRBIN),
        MANY("sn0_g", torus->shear, MPSI + 1),
        MANY("pmarki", ions->flux_mean, MPSI + 1),
        MANY("ddT_da", torus->heat, MPSI + 1),
        MANY("markeri", ions->marker, torus->grid),
        MANY("phi", torus->phi, 2 * (size_t)torus->grid),
        MANY("zion0", ions->z0, ions->most),
        MANY("zion", ions->z, (size_t)ions->most * PROPERTIES),
        /* Electrons */
        ONE("memax", electrons->most),
        ONE("me", electrons->count),
        ONE("ntracer_e", electrons->tracer),
        ONE("etracer_e0", electrons->tracer_energy),
        ONE("mesum", electrons->sum),
        ONE("cloud_e", electrons->cloud),
        MANY("pmarke", electrons->flux_mean, MPSI + 1),
        MANY("markere", electrons->marker, torus->grid),
        MANY("zeon0", electrons->z0, electrons->most),
        MANY("zeon", electrons->z, (size_t)electrons->most * PROPERTIES),
    };
    enum { OF_ELECTRONS = 10 };
    const size_t all = sizeof variables / sizeof variables[0];
    const size_t count = torus->has_electrons ? all : all - OF_ELECTRONS;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; ++i)
        bytes += variables[i].bytes;
    const int64_t file = skeleton_open(torus->run, "restart");
    skeleton_group_size(torus->run, file, bytes);
    for (size_t i = 0; i < count; ++i)
        skeleton_write(torus->run, file, variables[i].name, variables[i].data);
    skeleton_close(torus->run, file);
}

static void end_species(struct species *kind)
{
    free(kind->z);
    free(kind->z0);
    free(kind->marker);
    free(kind->flux_mean);
}

enum { PARTICLES, GRID, ELECTRONS, CYCLES };

static void play(const struct skeleton_options *options, const int64_t *values)
{
    struct gts torus = {.run = skeleton_start(options, MPI_COMM_WORLD)};
    begin(&torus, values[PARTICLES], values[GRID], values[ELECTRONS] != 0);
    while (skeleton_repetition(torus.run))
        while (skeleton_step(torus.run)) {
            for (int64_t cycle = 0; cycle < values[CYCLES]; ++cycle)
                advance(&torus);
            write_restart(&torus);
        }
    end_species(&torus.ions);
    end_species(&torus.electrons);
    free(torus.phi);
    free(torus.plane);
    free(torus.leaving);
    skeleton_finish(torus.run);
}

static const struct und_kernel kernel = {
    .name = "kernel-gts",
    .application = "gts",
    .config = "gts.xml",
    .options = {[PARTICLES] = {"mimax", 1, 100000000, 820000, "particles that a process has room for"},
                [GRID] = {"mgrid", 1, 100000000, 200000, "grid points of a process"},
                [ELECTRONS] = {"electrons", 0, 1, 0, "1: as many electrons as ions are pushed and written"},
                [CYCLES] = {"cycles", 1, 1000000, 1, "cycles that are computed before each output"}},
    .play = play,
};

#else

static const struct und_kernel kernel = {.name = "kernel-gts"};

#endif

int main(int argc, char **argv)
{
    return und_kernel_main(argc, argv, &kernel);
}
