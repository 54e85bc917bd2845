/*
 * The file system of a directory: the mount, its size and fill, and the default layout of files, as the
 * measurement and understudy-storage print it. No MPI and no library here: skeletal applications carry it.
 */
#ifndef UND_MOUNT_H
#define UND_MOUNT_H

#include "text/error.h"

#include <stddef.h>
#include <stdint.h>

enum { UND_MAX_TARGETS = 2048, UND_ALL_TARGETS = -1, UND_MOUNT_TEXT = 1024, UND_POOL_BYTES = 64 };

/* A file system with less than that free is full to any program. */
enum { UND_FULL_BYTES = 64 * 1024 };

/* How a file system spreads a file over its targets. -1 and the empty string: unknown. */
struct und_file_layout {
    char backend[32];     /* empty: no layout is known */
    int64_t stripe_count; /* 0: unknown; UND_ALL_TARGETS: of a directory */
    int64_t stripe_size_bytes;
    char pool[UND_POOL_BYTES];
    int target_count; /* -1: unknown */
    int64_t targets[UND_MAX_TARGETS];
};

struct und_storage {
    char type[64];
    char source[UND_MOUNT_TEXT];
    char mount_point[UND_MOUNT_TEXT];
    char mount_options[UND_MOUNT_TEXT];
    int64_t total_bytes;
    int64_t free_bytes;   /* for this user */
    int64_t total_inodes; /* -1: the file system has no limit of its own */
    int64_t free_inodes;
    char client_version[128];
    char server_version[128];
    char health[256];
    struct und_file_layout default_layout;
};

/* Reads what the directory is on. The default layout, versions and health are for a layout backend to
 * fill in. False with the error message. */
bool und_storage_read(const char *directory, struct und_storage *storage, struct und_error *error);

void und_file_layout_unknown(struct und_file_layout *layout);

#endif
