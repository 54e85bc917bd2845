// Writes a BP file with every kind of variable of ADIOS2: unequal blocks, several blocks of a rank,
// ranks and steps without a block, values, texts, joined arrays, empty blocks, attributes.
//
//     mpirun -n 4 blocks FILE.bp ENGINE [operator | KEY VALUE]...

#include <adios2.h>
#include <complex>
#include <mpi.h>
#include <numeric>
#include <string>
#include <vector>

namespace
{

template <class T> struct Written {
    adios2::Variable<T> variable;
    std::vector<T> data;
};

class Output
{
  public:
    Output(adios2::IO &io, size_t rank, size_t size)
        : r(rank), n(size), step(io.DefineVariable<int32_t>("step")), time(io.DefineVariable<double>("time")),
          name(io.DefineVariable<std::string>("name")),
          each(io.DefineVariable<int64_t>("each", {adios2::LocalValueDim}))
    {
        const size_t rows = n * (n + 1) / 2, gy = n % 2 ? 1 : 2, gx = n / gy;
        slabs = define<double>(io, "slabs", {rows, 5}, {r * (r + 1) / 2, 0}, {r + 1, 5});
        columns = define<float>(io, "columns", {6, 3 * n}, {0, 3 * r}, {6, 3});
        grid = define<int32_t>(io, "group/grid", {4 * gy, 5 * gx}, {4 * (r / gx), 5 * (r % gx)}, {4, 5});
        some = define<uint64_t>(io, "some", {8 * n}, {0}, {8});
        local = define<int16_t>(io, "local", {}, {}, {r + 1, 2});
        several = define<uint8_t>(io, "several", {}, {}, {n});
        joined = define<double>(io, "joined", {adios2::JoinedDim, 3}, {}, {r + 2, 3});
        empty = define<float>(io, "empty", {4 * n}, {0}, {4});
        wave = define<std::complex<double>>(io, "wave", {2 * n}, {2 * r}, {2});
        growing = define<double>(io, "growing", {n}, {r}, {1});
        growing.data.resize(16);
        cube = define<float>(io, "reversed", {n, 3, 4}, {n - 1 - r, 0, 0}, {1, 3, 4});
        io.DefineAttribute<std::string>("title", "blocks");
        const std::vector<std::string> units{"m", "s"};
        io.DefineAttribute<std::string>("units", units.data(), units.size());
        io.DefineAttribute<double>("dt", 0.25);
        const int32_t sizes[] = {1, 2, 3};
        io.DefineAttribute<int32_t>("sizes", sizes, 3);
        io.DefineAttribute<std::string>("unit", "K", "slabs");
    }

    void put(adios2::Engine &engine, int k)
    {
        const double now = 0.5 * k;
        if (r == 0) {
            engine.Put(step, k);
            engine.Put(name, "step " + std::to_string(k));
        }
        if (r == 0 && k > 0) {
            engine.Put(time, now);
        }
        if (k == 1 && r == n - 1) {
            return;  // the last rank writes nothing in this step
        }
        put(engine, slabs);
        if (k != 1) {
            put(engine, columns);
        }
        put(engine, grid);
        for (size_t b = 0; b < 2 && r % 2 == 0; ++b) {
            some.variable.SetSelection({{8 * r + 8 * b}, {8}});
            put(engine, some);
        }
        put(engine, local);
        for (size_t b = 0; b < r; ++b) {
            several.variable.SetSelection({{}, {b + 1}});
            put(engine, several);
        }
        engine.Put(each, int64_t(100 * k + r));
        put(engine, joined);
        empty.variable.SetSelection({{4 * r}, {r == 1 ? 0U : 4U}});
        put(engine, empty);
        put(engine, wave);
        const size_t rows = k + 1;
        growing.variable.SetShape({n * rows});
        growing.variable.SetSelection({{r * rows}, {rows}});
        put(engine, growing);
        put(engine, cube);
    }

  private:
    template <class T>
    Written<T> define(adios2::IO &io, const char *text, const adios2::Dims &shape, const adios2::Dims &start,
                      const adios2::Dims &count)
    {
        const size_t elements = std::accumulate(count.begin(), count.end(), size_t(1), std::multiplies<size_t>());
        std::vector<T> data(elements);
        for (size_t k = 0; k < elements; ++k) {
            data[k] = T(100 * r + k);
        }
        return {io.DefineVariable<T>(text, shape, start, count), data};
    }

    template <class T> void put(adios2::Engine &engine, Written<T> &written)
    {
        engine.Put(written.variable, written.data.data(), adios2::Mode::Sync);
    }

    size_t r, n;
    adios2::Variable<int32_t> step;
    adios2::Variable<double> time;
    adios2::Variable<std::string> name;
    adios2::Variable<int64_t> each;
    Written<double> slabs, joined, growing;
    Written<float> columns, empty, cube;
    Written<int32_t> grid;
    Written<uint64_t> some;
    Written<int16_t> local;
    Written<uint8_t> several;
    Written<std::complex<double>> wave;
};

}  // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    {
        adios2::ADIOS adios(MPI_COMM_WORLD);
        adios2::IO io = adios.DeclareIO("blocks");
        io.SetEngine(argv[2]);
        const bool compressed = argc > 3 && std::string(argv[3]) == "operator";
        for (int k = compressed ? 4 : 3; k + 1 < argc; k += 2) {
            io.SetParameter(argv[k], argv[k + 1]);
        }
        if (compressed) {
            const size_t n = size, r = rank;
            auto image = io.DefineVariable<float>("image", {30 * n, 40}, {30 * r, 0}, {30, 40});
            image.AddOperation("bzip2", {{"blockSize100k", "1"}});
            const std::vector<float> data(1200, 1.5F);
            adios2::Engine engine = io.Open(argv[1], adios2::Mode::Write);
            engine.BeginStep();
            engine.Put(image, data.data(), adios2::Mode::Sync);
            engine.EndStep();
            engine.Close();
        } else {
            Output output(io, rank, size);
            adios2::Engine engine = io.Open(argv[1], adios2::Mode::Write);
            for (int k = 0; k < 3; ++k) {
                engine.BeginStep();
                output.put(engine, k);
                engine.EndStep();
            }
            engine.Close();
        }
    }
    MPI_Finalize();
}
