/*
 * drift: particles that drift through a field of heat, and warm it, as a small application with output by ADIOS2. Each
 * process has a slab of the field, of its own height, and the particles in it, whose numbers change from step to step
 * (a crude model, to give the arrays values and the processes something to do and to say to each other). It is measured
 * by the same files as a skeletal application:
 *
 *     understudy skel measure drift.cpp -d drift
 *     mpirun -n 4 drift/build/drift -c drift.xml -o /scratch/run -r drift.json -s 8
 *
 * The environment sets the size: DRIFT_ROWS rows of a process on average, DRIFT_PARTICLES of a process at first,
 * DRIFT_SWEEPS sweeps over the field between two outputs.
 */
#include "skeleton/output.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace {

constexpr int64_t COLUMNS = 1024;

int64_t setting(const char *name, int64_t usual)
{
    const char *text = std::getenv(name);
    return text ? std::max<int64_t>(1, std::atoll(text)) : usual;
}

/* The place behind the edges of what is closed to a ring. */
double around(double place, double length)
{
    place -= std::floor(place / length) * length;
    return place < length ? place : 0.0;
}

struct Particle {
    double x, y, vx, vy;
    uint64_t id;
};

struct Drift {
    int rank, ranks;
    std::vector<int64_t> begins; /* first row of each process, and the number of all rows */
    std::vector<double> field, next;
    std::vector<Particle> particles;
    uint64_t seed = 0, all_particles = 0, offset = 0;

    int64_t rows() const { return begins[(size_t)rank + 1] - begins[(size_t)rank]; }
    double uniform() /* xorshift64*: Vigna 2016 */
    {
        seed ^= seed >> 12;
        seed ^= seed << 25;
        seed ^= seed >> 27;
        return (double)((seed * UINT64_C(2685821657736338717)) >> 11) * 0x1p-53;
    }
    void begin();
    void exchange_rows();
    void sweep();
    void move();
    void count();
};

Drift drift;

void Drift::begin()
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int64_t mean = setting("DRIFT_ROWS", 256);
    begins.assign(1, 0);
    for (int r = 0; r < ranks; ++r) /* from half to one and a half of the mean */
        begins.push_back(begins.back() + std::max<int64_t>(1, mean / 2 + mean * (r * 7 % 5) / 4));
    field.assign((size_t)((rows() + 2) * COLUMNS), 0.0);
    next = field;
    seed = UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)rank + 1);
    particles.resize((size_t)(setting("DRIFT_PARTICLES", 20000) * (rank % 3 + 1) / 2));
    for (size_t p = 0; p < particles.size(); ++p)
        particles[p] = {uniform() * COLUMNS,
                        (double)begins[(size_t)rank] + uniform() * (double)rows(),
                        uniform() - 0.5,
                        16 * (uniform() - 0.3),
                        ((uint64_t)rank << 32) + p};
}

void Drift::exchange_rows()
{
    const int above = (rank + ranks - 1) % ranks, below = (rank + 1) % ranks;
    double *first = field.data() + COLUMNS, *last = field.data() + rows() * COLUMNS;
    MPI_Sendrecv(first, (int)COLUMNS, MPI_DOUBLE, above, 0, last + COLUMNS, (int)COLUMNS, MPI_DOUBLE, below, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, (int)COLUMNS, MPI_DOUBLE, below, 1, field.data(), (int)COLUMNS, MPI_DOUBLE, above, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void Drift::sweep()
{
    exchange_rows();
    for (int64_t row = 1; row <= rows(); ++row)
        for (int64_t column = 0; column < COLUMNS; ++column) {
            const int64_t at = row * COLUMNS + column, line = row * COLUMNS;
            const double sum = field[(size_t)(at - COLUMNS)] + field[(size_t)(at + COLUMNS)] +
                               field[(size_t)(line + (column + COLUMNS - 1) % COLUMNS)] +
                               field[(size_t)(line + (column + 1) % COLUMNS)];
            next[(size_t)at] = 0.6 * field[(size_t)at] + 0.1 * sum;
        }
    field.swap(next);
}

/* Particles warm the field where they are, move on, and change over to the process of their row. */
void Drift::move()
{
    const auto all = (double)begins.back();
    std::vector<std::vector<Particle>> leaving((size_t)ranks);
    for (Particle particle : particles) {
        const int64_t row = (int64_t)particle.y - begins[(size_t)rank] + 1;
        field[(size_t)(row * COLUMNS + (int64_t)particle.x)] += 1;
        particle.x = around(particle.x + particle.vx, (double)COLUMNS);
        particle.y = around(particle.y + particle.vy, all);
        const auto owner = std::upper_bound(begins.begin(), begins.end(), (int64_t)particle.y) - begins.begin() - 1;
        leaving[(size_t)owner].push_back(particle);
    }
    std::vector<int> sent((size_t)ranks), taken((size_t)ranks), from((size_t)ranks), to((size_t)ranks);
    for (size_t r = 0; r < leaving.size(); ++r)
        sent[r] = (int)(leaving[r].size() * sizeof(Particle));
    MPI_Alltoall(sent.data(), 1, MPI_INT, taken.data(), 1, MPI_INT, MPI_COMM_WORLD);
    int sent_bytes = 0, taken_bytes = 0;
    std::vector<Particle> buffer;
    for (size_t r = 0; r < leaving.size(); ++r) {
        from[r] = sent_bytes;
        to[r] = taken_bytes;
        sent_bytes += sent[r];
        taken_bytes += taken[r];
        buffer.insert(buffer.end(), leaving[r].begin(), leaving[r].end());
    }
    particles.resize((size_t)taken_bytes / sizeof(Particle));
    MPI_Alltoallv(buffer.data(), sent.data(), from.data(), MPI_BYTE, particles.data(), taken.data(), to.data(),
                  MPI_BYTE, MPI_COMM_WORLD);
}

void Drift::count()
{
    const uint64_t here = particles.size();
    offset = 0;
    MPI_Exscan(&here, &offset, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&here, &all_particles, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        offset = 0;
}

void compute(int, int step)
{
    if (step == 0)
        drift.begin();
    for (int64_t n = setting("DRIFT_SWEEPS", 20); n > 0; --n)
        drift.sweep();
    drift.move();
    drift.count();
}

void attributes(skel::Output &output)
{
    output.attribute<std::string>("unit/T", "K");
    output.attribute_array<double>("spacing", {1, 1});
}

std::vector<double> column(double Particle::*member)
{
    std::vector<double> values;
    for (const Particle &particle : drift.particles)
        values.push_back(particle.*member);
    return values;
}

void write_step(skel::Output &output, int rank, int step)
{
    static std::vector<double> x, y, vx, vy; /* ADIOS2 takes them at the end of the step */
    static std::vector<uint64_t> id;
    x = column(&Particle::x);
    y = column(&Particle::y);
    vx = column(&Particle::vx);
    vy = column(&Particle::vy);
    id.clear();
    for (const Particle &particle : drift.particles)
        id.push_back(particle.id);
    const skel::Layout slab{{(size_t)drift.begins.back(), COLUMNS},
                            {{{(size_t)drift.begins[(size_t)rank], 0}, {(size_t)drift.rows(), COLUMNS}}}};
    const skel::Layout part{{drift.all_particles}, {{{drift.offset}, {x.size()}}}};
    output.value<int32_t>("step", step, rank == 0);
    output.value<double>("time", 0.5 * step, rank == 0);
    output.put<double>("T", slab, drift.field.data() + COLUMNS);
    output.put<double>("particles/x", part, x.data());
    output.put<double>("particles/y", part, y.data());
    output.put<double>("particles/vx", part, vx.data());
    output.put<double>("particles/vy", part, vy.data());
    output.put<uint64_t>("particles/id", part, id.data());
}

} // namespace

int main(int argc, char **argv)
{
    skel::Program program;
    program.name = "drift";
    program.application = "drift";
    program.config = "drift.xml";
    program.io = "output";
    program.file = "drift";
    program.ranks = 0;
    program.steps = 8;
    program.kind = SKELETON_KIND_APPLICATION;
    program.compute = compute;
    return skel::play(argc, argv, program, attributes, write_step);
}
