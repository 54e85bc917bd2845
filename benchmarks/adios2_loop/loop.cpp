// A bare loop over ADIOS2: each rank puts its block of a global array, in transfers, as one step of a new file.
//
//   adios2_loop FILE BLOCK_BYTES TRANSFER_BYTES deferred|sync ENGINE [KEY=VALUE]...
//
// Prints the seconds from the first rank's open to the last rank's close.
#include <adios2.h>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <random>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc < 6) {
        std::fprintf(stderr, "usage: %s FILE BLOCK_BYTES TRANSFER_BYTES deferred|sync ENGINE [KEY=VALUE]...\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const size_t block = std::strtoull(argv[2], nullptr, 10), transfer = std::strtoull(argv[3], nullptr, 10);
    const adios2::Mode mode = std::string(argv[4]) == "sync" ? adios2::Mode::Sync : adios2::Mode::Deferred;

    std::vector<unsigned char> data(block);
    std::mt19937_64 random(static_cast<unsigned>(rank));
    for (size_t i = 0; i + 8 <= block; i += 8)
        reinterpret_cast<unsigned long long &>(data[i]) = random();
    {
        adios2::ADIOS adios(MPI_COMM_WORLD);
        adios2::IO io = adios.DeclareIO("loop");
        io.SetEngine(argv[5]);
        for (int i = 6; i < argc; ++i) {
            const std::string pair = argv[i];
            io.SetParameter(pair.substr(0, pair.find('=')), pair.substr(pair.find('=') + 1));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        adios2::Engine engine = io.Open(argv[1], adios2::Mode::Write);
        auto variable = io.DefineVariable<unsigned char>("data", {block * static_cast<size_t>(ranks)},
                                                         {block * static_cast<size_t>(rank)}, {block});
        engine.BeginStep();
        for (size_t at = 0; at < block; at += transfer) {
            variable.SetSelection({{block * static_cast<size_t>(rank) + at}, {transfer}});
            engine.Put(variable, &data[at], mode);
        }
        engine.EndStep();
        engine.Close();
        const double end = MPI_Wtime();
        double spans[2] = {-begin, end};
        MPI_Allreduce(MPI_IN_PLACE, spans, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0)
            std::printf("%.6f\n", spans[0] + spans[1]);
    }
    MPI_Finalize();
}
