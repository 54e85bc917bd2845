/* A storm of operations without bytes, as mdtest makes it: directories, creates, stats, renames, unlinks. */
#include "workshop.h"

enum { FILES = 24 };

int main(int argc, char **argv) {
  const int rank = start(&argc, &argv);
  char name[64], other[64];
  struct stat found;
  for (int k = 0; k < 3; k++) {
    wait_until(0.5 * k);
    MPI_Barrier(MPI_COMM_WORLD);
    mark("storm");
    snprintf(name, sizeof name, "storm.%d.%d", k, rank);
    CHECK(mkdir(name, 0755) == 0);
    for (int n = 0; n < FILES; n++) {
      snprintf(name, sizeof name, "storm.%d.%d/f.%d", k, rank, n);
      const int fd = open(name, O_WRONLY | O_CREAT, 0644);
      CHECK(fd >= 0 && close(fd) == 0);
    }
    for (int n = 0; n < FILES; n++) {
      snprintf(name, sizeof name, "storm.%d.%d/f.%d", k, rank, n);
      CHECK(stat(name, &found) == 0);
    }
    for (int n = 0; n < FILES; n++) {
      snprintf(name, sizeof name, "storm.%d.%d/f.%d", k, rank, n);
      snprintf(other, sizeof other, "storm.%d.%d/g.%d", k, rank, n);
      CHECK(n % 4 || rename(name, other) == 0);
      CHECK(unlink(n % 4 ? name : other) == 0);
    }
    mark("");
  }
  MPI_Finalize();
  return 0;
}
