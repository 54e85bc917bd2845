#include "job/agree.h"

#include "job/die.h"

bool und_agree(bool right, MPI_Comm comm, struct und_error *error)
{
    static const char failed[] = "cannot agree with the other ranks";
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int first = right ? ranks : rank;
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm), failed);
    if (first == ranks)
        return true;
    UND_MPI(MPI_Bcast(error->text, sizeof error->text, MPI_CHAR, first, comm), failed);
    return false;
}
