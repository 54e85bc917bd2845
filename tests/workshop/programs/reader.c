/* Reads through POSIX calls: reader MODE, of files that the runner makes. */
#include "workshop.h"

enum { BLOCKS = 64, FILES = 200 };

static void shuffle(int *order, int count, unsigned seed) { /* the same on all ranks */
  for (int n = 0; n < count; n++) order[n] = n;
  for (int n = count - 1; n > 0; n--) {
    seed = seed * 1103515245u + 12345u;
    const int other = (int)((seed >> 16) % (unsigned)(n + 1)), kept = order[n];
    order[n] = order[other];
    order[other] = kept;
  }
}

int main(int argc, char **argv) {
  const int rank = start(&argc, &argv);
  int ranks, order[FILES];
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char *mode = argv[1];
  const int loader = strcmp(mode, "loader") == 0, strided = strcmp(mode, "strided") == 0;
  const int passes = loader ? 2 : strided ? 1 : 3;
  int fd = -1;
  wait_until(0.3);
  mark("in");
  if (!loader) CHECK((fd = open("in.all", O_RDONLY)) >= 0);
  mark("");
  for (int pass = 0; pass < passes; pass++) {
    wait_until(0.3 + 0.5 * pass);
    MPI_Barrier(MPI_COMM_WORLD);
    mark("in");
    if (loader) { /* as training: every file once in an epoch, by another rank in each */
      shuffle(order, FILES, 17u + (unsigned)pass);
      for (int n = rank; n < FILES; n += ranks) {
        char name[64];
        snprintf(name, sizeof name, "set/in_%05d.bin", order[n]);
        CHECK((fd = open(name, O_RDONLY)) >= 0);
        CHECK(read(fd, data, CALL) == 24000 && close(fd) == 0);
      }
    } else { /* the rank's own part, shuffled or in order; or blocks of the ranks in turn */
      shuffle(order, BLOCKS, 29u + (unsigned)pass);
      for (int n = 0; n < BLOCKS; n++) {
        const int own = strcmp(mode, "shuffled") == 0 ? order[n] : n;
        const off_t block = strided ? (off_t)n * ranks + rank : (off_t)rank * BLOCKS + own;
        CHECK(pread(fd, data, CALL, block * CALL) == CALL);
      }
    }
    mark("");
  }
  if (!loader) CHECK(close(fd) == 0);
  wait_until(0.5 * passes + 0.5);
  MPI_Finalize();
  return 0;
}
