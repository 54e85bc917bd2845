#include "job/init.h"

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

void und_init(int *argc, char ***argv)
{
    if (!getenv("OMPI_MCA_sharedfp")) {
        setenv("OMPI_MCA_sharedfp", "sm", 0);
        setenv("OMPI_MCA_sharedfp_sm_priority", "-1", 0);
    }
    signal(SIGXFSZ, SIG_IGN);
    MPI_Init(argc, argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}
