#include "core/environment.h"

#include "core/die.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* Magic numbers as in linux/magic.h and in the file systems' own sources. */
static const struct {
    unsigned long magic;
    const char *name;
} file_systems[] = {
    {0x0bd00bd0, "lustre"}, {0x47504653, "gpfs"},     {0x19830326, "beegfs"},   {0x00c36400, "ceph"},
    {0x6969, "nfs"},        {0x20030528, "orangefs"}, {0xaad7aaea, "panfs"},    {0x65735546, "fuse"},
    {0x01021994, "tmpfs"},  {0x858458f6, "ramfs"},    {0xef53, "ext4"},         {0x58465342, "xfs"},
    {0x9123683e, "btrfs"},  {0x2fc12fc1, "zfs"},      {0x794c7630, "overlay"},  {0x01021997, "9p"},
    {0xff534d42, "cifs"},   {0xfe534d42, "smb2"},     {0x7461636f, "ocfs2"},    {0x01161970, "gfs2"},
    {0xf2f52010, "f2fs"},   {0x4d44, "vfat"},         {0xca451a4e, "bcachefs"},
};

static void read_file_system(const char *directory, struct und_environment *environment)
{
    struct statfs kind;
    struct statvfs space;
    UND_CHECK(statfs(directory, &kind) == 0 && statvfs(directory, &space) == 0, "cannot find the file system of %s",
              directory);
    const unsigned long magic = (unsigned long)kind.f_type & 0xffffffffUL;
    snprintf(environment->file_system, sizeof environment->file_system, "0x%lx", magic);
    for (size_t i = 0; i < sizeof file_systems / sizeof file_systems[0]; ++i)
        if (file_systems[i].magic == magic)
            snprintf(environment->file_system, sizeof environment->file_system, "%s", file_systems[i].name);
    environment->total_bytes = (int64_t)(space.f_blocks * space.f_frsize);
    environment->free_bytes = (int64_t)(space.f_bavail * space.f_frsize);
    environment->free_files = space.f_files > 0 ? (int64_t)space.f_favail : -1;
}

static void read_machine(struct und_environment *environment)
{
    struct utsname system;
    const time_t now = time(NULL);
    struct tm utc;
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    gmtime_r(&now, &utc);
    strftime(environment->started, sizeof environment->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    gethostname(environment->host, sizeof environment->host - 1);
    if (uname(&system) == 0)
        snprintf(environment->kernel, sizeof environment->kernel, "%.80s %.80s %.80s", system.sysname, system.release,
                 system.machine);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    environment->processors = online > 0 ? online : 1;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    snprintf(environment->mpi, sizeof environment->mpi, "%.250s", version);
}

/* Every node has one rank 0 of its own. */
static int count_nodes(MPI_Comm comm)
{
    MPI_Comm node;
    int rank, first, nodes = 0;
    UND_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "cannot find the nodes");
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    first = rank == 0;
    UND_MPI(MPI_Reduce(&first, &nodes, 1, MPI_INT, MPI_SUM, 0, comm), "cannot count the nodes");
    return nodes;
}

void und_environment_read(const char *directory, MPI_Comm comm, struct und_environment *environment)
{
    int rank;
    memset(environment, 0, sizeof *environment);
    MPI_Comm_rank(comm, &rank);
    environment->nodes = count_nodes(comm);
    if (rank != 0)
        return;
    read_machine(environment);
    read_file_system(directory, environment);
}

const char *und_version(void)
{
    return UND_VERSION;
}
