/* An error that one rank has found is made known to all. */
#ifndef UND_AGREE_H
#define UND_AGREE_H

#include "text/error.h"

#include <mpi.h>
#include <stdbool.h>

/* Is all right on every rank? Otherwise each gets the message of the lowest rank where it is not. Collective. */
bool und_agree(bool right, MPI_Comm comm, struct und_error *error);

#endif
