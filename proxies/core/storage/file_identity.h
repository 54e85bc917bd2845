/*
 * The identity of a file: device, inode and time of birth, and a mark of it in 8 bytes. A name is what is open, with
 * an empty name, or a name in an open directory. Safe in a signal handler.
 */
#ifndef UND_FILE_IDENTITY_H
#define UND_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

/* Which file it is, whatever its name. The number of an inode may be used again once the file is gone, hence the
 * time of birth, which is 0 where the file system keeps none. */
struct und_identity {
    uint64_t device, inode, birth_ns;
};

/* Enough of an identity to recognize the file: 0 where there is none; UND_UNKNOWN of one that this run has created and
 * nobody can tell from others. */
enum { UND_UNKNOWN = 1 };

/* Asks no server for sizes. False with errno. */
bool und_identity_read(int parent, const char *name, struct und_identity *identity);

/* The mark of the file; 0 with errno where there is none. */
uint64_t und_identity_mark(int parent, const char *name);

/* Does it have the mark? Always true of UND_UNKNOWN; false with errno where it cannot be looked at, and else with 0. */
bool und_identity_matches(int parent, const char *name, uint64_t mark);

#endif
