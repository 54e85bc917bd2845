/* Dumps of several kinds: dumps MODE. Those of near and nearfiles are closer than 1 % of the run. */
#include "workshop.h"

int main(int argc, char **argv) {
  const int rank = start(&argc, &argv);
  const char *mode = argv[1];
  const int near = strncmp(mode, "near", 4) == 0, dumps = near ? 120 : strcmp(mode, "steady") == 0 ? 1 : 8;
  const int flags = strcmp(mode, "direct") == 0 ? O_DIRECT : strcmp(mode, "osync") == 0 ? O_SYNC : 0;
  const double period_s = near ? 0.04 : 0.25;
  int fd = -1, ranks;
  char name[64];
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int k = 0; k < dumps; k++) {
    wait_until(period_s * k);
    MPI_Barrier(MPI_COMM_WORLD);
    mark("out");
    if (strcmp(mode, "near") == 0) { /* one file, which stays open */
      if (k == 0) CHECK((fd = open("out.all", O_WRONLY | O_CREAT, 0644)) >= 0);
      put(fd, (off_t)(k * ranks + rank) * 2 * CALL, 2 * CALL);
    } else if (strcmp(mode, "nearfiles") == 0) { /* a file each */
      snprintf(name, sizeof name, "out.%d", k * 50);
      put_file(name, O_TRUNC, (off_t)rank * 2 * CALL, 2 * CALL, 0);
    } else if (strcmp(mode, "funnel") == 0) { /* rank 0 writes for all */
      snprintf(name, sizeof name, "out.%03d", k);
      MPI_Gather(data, 2 * CALL, MPI_BYTE, data + MAX / 2, 2 * CALL, MPI_BYTE, 0, MPI_COMM_WORLD);
      if (rank == 0) put_file(name, O_TRUNC, 0, 8 * CALL, 0);
    } else if (strcmp(mode, "strided") == 0) { /* blocks of the ranks in turn, in one file */
      if (k == 0) CHECK((fd = open("out.all", O_WRONLY | O_CREAT, 0644)) >= 0);
      for (int n = 0; n < 8; n++) put(fd, (((off_t)k * 8 + n) * ranks + rank) * CALL, CALL);
    } else if (strcmp(mode, "steady") == 0) { /* small writes, spread over the time */
      snprintf(name, sizeof name, "out.%d", rank);
      CHECK((fd = open(name, O_WRONLY | O_CREAT, 0644)) >= 0);
      for (int n = 0; n < 300; n++, wait_until(0.01 * n)) CHECK(write(fd, data, 4096) == 4096);
    } else { /* synced after each 256 KiB, or O_DIRECT, or O_SYNC */
      snprintf(name, sizeof name, "out.%03d.%d", k, rank);
      put_file(name, O_TRUNC | flags, 0, 16 * CALL, flags ? 0 : 4 * CALL);
    }
    mark("");
  }
  CHECK(fd < 0 || close(fd) == 0);
  wait_until(period_s * dumps);
  MPI_Finalize();
  return 0;
}
