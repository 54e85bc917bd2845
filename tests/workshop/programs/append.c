/* A file that is opened to append in each of twelve dumps, as logs and tables are: append posix, or stdio. */
#include "workshop.h"

int main(int argc, char **argv) {
  const int rank = start(&argc, &argv);
  for (int k = 0; k < 12; k++) {
    wait_until(0.25 * k);
    MPI_Barrier(MPI_COMM_WORLD);
    mark("out");
    if (rank == 0 && strcmp(argv[1], "posix") == 0) {
      const int fd = open("out.0", O_WRONLY | O_CREAT | O_APPEND, 0644);
      CHECK(fd >= 0);
      for (int n = 0; n < 4; n++) CHECK(write(fd, data, CALL) == CALL);
      CHECK(close(fd) == 0);
    } else if (rank == 0) {
      FILE *file = fopen("out.0", "a");
      CHECK(file != NULL);
      for (int n = 0; n < 4; n++) CHECK(fwrite(data, CALL, 1, file) == 1);
      CHECK(fclose(file) == 0);
    }
    mark("");
  }
  wait_until(0.25 * 12);
  MPI_Finalize();
  return 0;
}
