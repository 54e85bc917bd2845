#include "job/mpi_settings.h"

#include <stdbool.h>
#include <string.h>

extern char **environ;

static bool is_named(const char *variable)
{
    static const char *const prefixes[] = {
        "OMPI_MCA_io",
        "OMPI_MCA_fcoll",
        "OMPI_MCA_fbtl",
        "OMPI_MCA_fs",
        "OMPI_MCA_sharedfp",
        "OMPI_MCA_common_ompio",
        "OMPI_MCA_btl",
        "OMPI_MCA_pml",
        "OMPI_MCA_mtl",
        "OMPI_MCA_coll",
        "OMPI_MCA_osc",
        "ROMIO_",
        "MPICH_",
        "MVAPICH_",
        "MV2_",
        "I_MPI_",
        "UCX_",
        "FI_",
    };
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; ++i)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0 && strchr(variable, '='))
            return true;
    return false;
}

const char *und_mpi_setting(size_t *position)
{
    while (environ && environ[*position]) {
        const char *variable = environ[(*position)++];
        if (is_named(variable))
            return variable;
    }
    return NULL;
}
