/* A grid with a record variable per field: each dump is one record, written collectively, the last
   record is read back. The ranks share one file for all dumps and one for each checkpoint. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

enum { X = 768, Y = 512, DUMPS = 12, FIELDS = 3 };
static const char *const names[FIELDS] = {"height", "u", "v"};

static void must(int status)
{
    if (status != NC_NOERR) {
        fprintf(stderr, "grid: %s\n", ncmpi_strerror(status));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int create(const char *name, int ids[FIELDS], int steps)
{
    int file, dims[3];
    must(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    must(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    must(ncmpi_def_dim(file, "y", Y, &dims[1]));
    must(ncmpi_def_dim(file, "x", X, &dims[2]));
    for (int n = 0; n < FIELDS; ++n)
        must(ncmpi_def_var(file, names[n], steps ? NC_FLOAT : NC_DOUBLE, 3, dims, &ids[n]));
    must(ncmpi_put_att_text(file, NC_GLOBAL, "title", 4, "grid"));
    must(ncmpi_enddef(file));
    return file;
}

int main(int argc, char **argv)
{
    int rank, ranks, ids[FIELDS], saved[FIELDS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int rows = Y / ranks;
    double *now = calloc((size_t)rows * X, sizeof *now), *next = calloc((size_t)rows * X, sizeof *next);
    float *small = malloc((size_t)rows * X * sizeof *small);
    if (!now || !next || !small)
        MPI_Abort(MPI_COMM_WORLD, 1);
    now[rows / 2 * X + X / 2] = 1000;
    const int file = create("history.nc", ids, 1);
    MPI_Offset start[3] = {0, (MPI_Offset)rank * rows, 0}, count[3] = {1, rows, X};
    for (int dump = 0; dump < DUMPS; ++dump) {
        for (int step = 0; step < 400; ++step) {
            for (int y = 1; y < rows - 1; ++y)
                for (int x = 1; x < X - 1; ++x)
                    next[y * X + x] = 0.2 * (now[y * X + x] + now[y * X + x - 1] + now[y * X + x + 1]
                        + now[(y - 1) * X + x] + now[(y + 1) * X + x]);
            double *swap = now;
            now = next;
            next = swap;
        }
        start[0] = dump;
        for (int n = 0; n < FIELDS; ++n) {
            for (int i = 0; i < rows * X; ++i)
                small[i] = (float)(now[i] * (n + 1));
            must(ncmpi_put_vara_float_all(file, ids[n], start, count, small));
        }
        if (dump % 4 == 3) {
            char name[64];
            snprintf(name, sizeof name, "restart.%d.nc", dump);
            const int restart = create(name, saved, 0);
            start[0] = 0;
            int requests[FIELDS], states[FIELDS];
            for (int n = 0; n < FIELDS; ++n)
                must(ncmpi_iput_vara_double(restart, saved[n], start, count, n ? next : now, &requests[n]));
            must(ncmpi_wait_all(restart, FIELDS, requests, states));
            must(ncmpi_close(restart));
        }
    }
    start[0] = DUMPS - 1;
    must(ncmpi_get_vara_float_all(file, ids[0], start, count, small));
    must(ncmpi_close(file));
    MPI_Finalize();
}
