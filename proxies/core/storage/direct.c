#include "storage/direct.h"

#include "job/die.h"
#include "storage/files.h"
#include "storage/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int64_t und_direct_page(void)
{
    const long page = sysconf(_SC_PAGESIZE);
    return page > 4096 ? page : 4096;
}

void *und_direct_memory(int64_t bytes)
{
    void *memory = NULL;
    errno = posix_memalign(&memory, (size_t)und_direct_page(), (size_t)bytes);
    return errno == 0 ? memory : NULL;
}

int64_t und_direct_bytes(int64_t page, int64_t bytes, int64_t offset, bool *directly)
{
    const int64_t head = page - offset % page;
    *directly = head == page && bytes >= page;
    if (*directly)
        return bytes - bytes % page;
    return bytes < head ? bytes : head;
}

bool und_direct_probe(const struct und_run *run, const char *option, struct und_error *error)
{
    int descriptor;
    struct und_files *files = und_files_new(run, &(struct und_names){.stem = ".direct", .tail = ""}, NULL, 0);
    und_files_note(files, 1);
    if (!und_files_create(files, 0, NULL, &descriptor, error))
        return false;
    close(descriptor);
    const int direct = open(und_directory_name(run->directory, und_files_path(files, 0, false)),
                            O_RDWR | O_DIRECT | O_NOFOLLOW | O_CLOEXEC);
    const int code = errno;
    if (direct >= 0)
        close(direct);
    und_files_remove(run->directory, UND_ITS_FILES);
    und_files_forget(run->directory);
    return direct >= 0 || und_fail(error, "--method-option %s: the file system of %s cannot bypass the cache: %s",
                                   option, run->plan->directory, strerror(code));
}

int und_direct_open(const struct und_open *how, int descriptor, int flags, const char *method)
{
    struct stat status, direct_status;
    const int direct = open(und_directory_name(how->directory, how->path), flags | O_DIRECT);
    UND_CHECK(direct >= 0, "%s: cannot open %s with O_DIRECT", method, how->path);
    if (fstat(descriptor, &status) != 0 || fstat(direct, &direct_status) != 0 ||
        status.st_ino != direct_status.st_ino || status.st_dev != direct_status.st_dev)
        UND_DIE("%s: %s has been replaced while it was opened", method, how->path);
    return direct;
}
