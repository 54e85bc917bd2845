#include "storage/file_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* It is called while time is taken. */
bool und_identity_read(int directory, const char *name, struct und_identity *identity)
{
    struct statx status;
    const int flags = AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC | (name[0] ? 0 : AT_EMPTY_PATH);
    if (statx(directory, name, flags, STATX_INO | STATX_BTIME, &status) != 0)
        return false;
    identity->device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
    identity->inode = status.stx_ino;
    identity->birth_ns = 0;
    if (status.stx_mask & STATX_BTIME)
        identity->birth_ns = (uint64_t)status.stx_btime.tv_sec * 1000000000U + status.stx_btime.tv_nsec;
    return true;
}

uint64_t und_identity_mark(int directory, const char *name)
{
    struct und_identity identity;
    if (!und_identity_read(directory, name, &identity))
        return 0;
    uint64_t file = (identity.device * 0xbf58476d1ce4e5b9U ^ identity.inode) * 0x9e3779b97f4a7c15U >> 32;
    uint64_t birth = identity.birth_ns * 0x9e3779b97f4a7c15U >> 32;
    file = file ? file : 1;
    birth = birth || identity.birth_ns == 0 ? birth : 1;
    return file << 32 | birth;
}

bool und_identity_matches(int directory, const char *name, uint64_t mark)
{
    if (mark == UND_UNKNOWN)
        return true;
    errno = 0;
    const uint64_t actual = und_identity_mark(directory, name);
    return actual != 0 && actual >> 32 == mark >> 32 &&
           ((uint32_t)actual == (uint32_t)mark || !(uint32_t)actual || !(uint32_t)mark);
}
