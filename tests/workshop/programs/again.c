/* The same names written again and again: again MODE, twelve dumps each. */
#include "workshop.h"

enum { DUMPS = 12, SIZE = 8 * CALL };

int main(int argc, char **argv) {
  const int rank = start(&argc, &argv);
  const char *mode = argv[1];
  char own[64];
  int fd = -1;
  snprintf(own, sizeof own, "out.%d", rank);
  for (int k = 0; k < DUMPS; k++) {
    wait_until(0.25 * k);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(mode, "history") == 0 && k % 4 == 3) { /* a restart file beside every fourth history file */
      char restart[64];
      mark("rst");
      snprintf(restart, sizeof restart, "rst_d01_%02d_%02d", k / 4, k % 4 * 15);
      put_file(restart, O_TRUNC, (off_t)rank * SIZE, SIZE, 0);
    }
    mark("out");
    if (strcmp(mode, "history") == 0) { /* names of dates, as WRF's */
      snprintf(own, sizeof own, "out_d01_%02d_%02d", k / 4, k % 4 * 15);
      put_file(own, O_TRUNC, (off_t)rank * 2 * CALL, 2 * CALL, 0);
    } else if (strcmp(mode, "rewrite") == 0) { /* truncated first */
      put_file(own, O_TRUNC, 0, SIZE, 0);
    } else if (strcmp(mode, "update") == 0) { /* opened without truncation */
      put_file(own, 0, 0, SIZE, 0);
    } else if (strcmp(mode, "open") == 0) { /* stays open and is updated in place, as Quantum ESPRESSO's */
      if (k == 0) CHECK((fd = open(own, O_WRONLY | O_CREAT, 0644)) >= 0);
      put(fd, 0, SIZE);
    } else if (strcmp(mode, "turns") == 0) { /* a, b, a, b: the last two are kept */
      put_file(k % 2 ? "out_b" : "out_a", 0, (off_t)rank * SIZE, SIZE, 0);
    } else if (strcmp(mode, "rename") == 0 && rank == 0) { /* beside, synced, renamed twice, as GROMACS */
      put_file("out_step.cpt", O_TRUNC, 0, MAX, MAX);
      CHECK(k == 0 || rename("out.cpt", "out_prev.cpt") == 0);
      CHECK(rename("out_step.cpt", "out.cpt") == 0);
    }
    mark("");
  }
  CHECK(fd < 0 || close(fd) == 0);
  wait_until(0.25 * DUMPS);
  MPI_Finalize();
  return 0;
}
