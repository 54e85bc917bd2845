/*
 * What a program in C++ that writes through ADIOS2 needs to be measured, above skeleton.h, which says what is measured:
 * open holds adios2::IO::Open and BeginStep, write the calls of Put, close EndStep and Close. Skeletal applications that
 * `understudy skel make` generates carry it with them, and applications of the studies are built from the same files.
 *
 *     void attributes(skel::Output &output) { output.attribute<std::string>("units", "K"); }
 *     void write_step(skel::Output &output, int rank, int step)
 *     {
 *         output.value<int32_t>("step", step);
 *         output.put<double>("T", {{1024, 512}, {{{rank * 256u, 0}, {256, 512}}}});
 *     }
 *     int main(int argc, char **argv)
 *     {
 *         return skel::play(argc, argv, program, attributes, write_step);
 *     }
 */
#ifndef SKELETON_OUTPUT_H
#define SKELETON_OUTPUT_H

#include "skeleton.h"

#include <adios2.h>

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

struct record;

namespace skel
{

/* A block of a process: where it begins in the global array (empty for local and joined arrays), and its shape. */
struct Block {
    adios2::Dims start, count;
};

/* Shape of the global array (empty for local arrays; adios2::JoinedDim where blocks are joined), and the blocks of one
 * process in the order in which it writes them. */
struct Layout {
    adios2::Dims shape;
    std::vector<Block> blocks;
};

/* The rows of a process in a table: rank, start of each dimension unless `local`, count of each dimension. */
Layout table(const adios2::Dims &shape, size_t dimensions, bool local, const uint64_t *numbers, size_t count, int rank);

/* Is the rank one of these? */
bool among(const int *ranks, size_t count, int rank);

struct Program {
    const char *name;        /* in messages and in the result */
    const char *application; /* what it stands for */
    const char *config;      /* adios-config XML of ADIOS2 */
    const char *io;          /* the io in it */
    const char *file;        /* name of the file without .bp */
    int ranks;               /* processes; 0: any */
    int steps;               /* that `write_step` knows: further ones are as the last */
    skeleton_kind kind = SKELETON_KIND_SKELETON;
    /* Of an application: what it does before a step is written, in no measured time. It writes contents of its own, and
     * knows any number of steps. */
    void (*compute)(int rank, int step) = nullptr;
};

class Output;
using Attributes = void (*)(Output &output);
using WriteStep = void (*)(Output &output, int rank, int step);

/* The whole program: options, steps, result. Returns its exit status. */
int play(int argc, char **argv, const Program &program, Attributes attributes, WriteStep write_step);

/* A file that is written step by step, and measured. Variables are defined when they are first written. */
class Output
{
  public:
    Output(struct skeleton *run, const Program &program);
    ~Output();
    Output(const Output &) = delete;
    Output &operator=(const Output &) = delete;

    template <class T> void attribute(const std::string &name, const T &value);
    template <class T> void attribute_array(const std::string &name, const std::vector<T> &values);
    /* A value that all processes share, and one of each process; `writes`: does this process write it? */
    template <class T> void value(const std::string &name, const T &value, bool writes = true);
    template <class T> void local_value(const std::string &name, const T &value, bool writes = true);
    /* The blocks of this process, with contents of the runtime, or with those at `data`, block behind block. */
    template <class T> void put(const std::string &name, const Layout &layout, const T *data = nullptr);

    /* The steps of a repetition. */
    void begin_step();
    void end_step();

    /* Bytes of the arrays and values of a step, without writing it: between the two, the calls above only count. */
    void begin_plan();
    uint64_t end_plan();
    void allocate();
    /* Ends the run where the file of this repetition does not hold what this process wrote. */
    void verify(WriteStep write_step, int steps);

  private:
    struct State;
    State *state;
};

}  // namespace skel

#endif
