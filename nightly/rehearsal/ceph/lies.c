/*
 * Between a program and CephFS: LIE says what becomes of a layout or hint that is asked for.
 * ignored: no layout is set; count: half of the stripes; size: stripes of twice the size; hint: MPI-IO
 * calls cb_nodes 7. To be preloaded; it shares no code with the player.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static bool is(const char *lie)
{
    const char *told = getenv("LIE");
    return told && strcmp(told, lie) == 0;
}

int fsetxattr(int descriptor, const char *name, const void *value, size_t size, int flags)
{
    int (*next)(int, const char *, const void *, size_t, int);
    *(void **)&next = dlsym(RTLD_NEXT, "fsetxattr");
    if (!next)
        abort();
    unsigned long unit, count, object;
    char asked[512] = "", given[640], pool[256] = "";
    memcpy(asked, value, size < sizeof asked - 1 ? size : sizeof asked - 1);
    if (strcmp(name, "ceph.file.layout") != 0 ||
        sscanf(asked, "stripe_unit=%lu stripe_count=%lu object_size=%lu pool=%255s", &unit, &count, &object, pool) != 4)
        return next(descriptor, name, value, size, flags);
    if (is("ignored"))
        return 0;
    count = is("count") ? count / 2 : count;
    unit = is("size") ? unit * 2 : unit;
    snprintf(given, sizeof given, "stripe_unit=%lu stripe_count=%lu object_size=%lu pool=%s", unit, count, object, pool);
    return next(descriptor, name, given, strlen(given), flags);
}

int MPI_File_get_info(MPI_File file, MPI_Info *hints)
{
    const int code = PMPI_File_get_info(file, hints);
    if (code == MPI_SUCCESS && is("hint"))
        MPI_Info_set(*hints, "cb_nodes", "7");
    return code;
}
