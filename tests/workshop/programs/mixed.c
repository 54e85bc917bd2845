/* A header by stdio, then the data by collective MPI-IO, as LAMMPS writes its restart files. */
#include "workshop.h"

enum { BLOCK = 512 << 10 };

int main(int argc, char **argv) {
  const int rank = start(&argc, &argv);
  char name[64];
  for (int k = 0; k < 8; k++) {
    wait_until(0.3 * k);
    MPI_Barrier(MPI_COMM_WORLD);
    mark("out");
    snprintf(name, sizeof name, "out.%03d.restart", k);
    if (rank == 0) {
      FILE *header = fopen(name, "w");
      CHECK(header != NULL);
      for (int n = 0; n < 100; n++) CHECK(fwrite(data, 20, 1, header) == 1);
      CHECK(fclose(header) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, 2000 + (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    mark("");
  }
  wait_until(0.3 * 8);
  MPI_Finalize();
  return 0;
}
