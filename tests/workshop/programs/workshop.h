/* What the programs of the workshop share: pauses, and marks that strace shows and Darshan does not. */
#ifndef WORKSHOP_H
#define WORKSHOP_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHECK(good) \
  do { \
    if (!(good)) { perror(#good); MPI_Abort(MPI_COMM_WORLD, 1); } \
  } while (0)

/* From here on, this rank's I/O belongs to the next dump of a stream; the empty name ends it. */
static inline void mark(const char *stream) {
  char name[64];
  snprintf(name, sizeof name, "@%s", stream);
  (void)!access(name, F_OK);
}

/* Wait until a time of the run, as an application that computes meanwhile. */
static inline void wait_until(double seconds) {
  static double begin;
  if (begin == 0) begin = MPI_Wtime();
  const double left = begin + seconds - MPI_Wtime();
  if (left > 0) nanosleep(&(struct timespec){(time_t)left, (long)(1e9 * (left - (double)(time_t)left))}, NULL);
}
/* Write a part of a file in calls of CALL bytes, with a sync after each `synced` bytes if that is not 0. */
enum { CALL = 64 << 10, MAX = 4 << 20 };
static char *data;

static inline void put(int fd, off_t at, int size) {
  for (int n = 0; n < size; n += CALL) CHECK(pwrite(fd, data, CALL, at + n) == CALL);
}

static inline void put_file(const char *name, int flags, off_t at, int size, int synced) {
  const int fd = open(name, O_WRONLY | O_CREAT | flags, 0644), step = synced ? synced : size;
  CHECK(fd >= 0);
  for (int n = 0; n < size; n += step) {
    put(fd, at + n, step);
    CHECK(!synced || fsync(fd) == 0);
  }
  CHECK(close(fd) == 0);
}

/* Start: MPI, the rank, and data to write. */
static inline int start(int *argc, char ***argv) {
  int rank;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK(posix_memalign((void **)&data, 4096, MAX) == 0);
  memset(data, 'a' + rank, MAX);
  wait_until(0);
  return rank;
}
#endif
