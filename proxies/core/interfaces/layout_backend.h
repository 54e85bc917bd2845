/*
 * A layout backend: how one file system spreads files over its targets. One file in
 * proxies/stripings/ defines one `const struct und_layout_backend und_layout_backend_<name>`; the build lists the
 * directory, nothing else names it. <name>.cmake beside it says what it links, like that of a method.
 *
 * Backends use neither MPI nor die.h: they report errors, so that programs without MPI can use them.
 * Anything that a file system does not tell is unknown (-1, an empty string), never guessed.
 */
#ifndef UND_LAYOUT_BACKEND_H
#define UND_LAYOUT_BACKEND_H

#include "interfaces/mount.h"
#include "text/error.h"

/* The layout that a user asks for a new file or directory. */
struct und_layout_request {
    int64_t stripe_count;      /* 0: not asked; UND_ALL_TARGETS: as many as there are */
    int64_t stripe_size_bytes; /* 0: not asked */
    int target_count;          /* 0: not asked */
    int64_t targets[UND_MAX_TARGETS];
    const char *pool; /* NULL: not asked */
    bool by_hint;     /* MPI is to give the layout: error messages name the hints */
};

struct und_layout_backend {
    const char *name;

    /* Is this the backend of the file system? `none` is where no other is. */
    bool (*handles)(const struct und_storage *storage);

    /* Creates a file of that name in an open directory with the layout, before its first byte, with
     * O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW and O_CLOEXEC. Returns its descriptor, or -1 with the error
     * message and errno. NULL: files cannot be given a layout. */
    int (*create)(int directory, const char *name, const struct und_layout_request *request, struct und_error *error);

    /* Gives the layout to an open, empty directory, as the default of what is created in it. NULL
     * likewise. */
    bool (*apply)(int directory, const struct und_layout_request *request, struct und_error *error);

    /* Reads the layout of an open file, or the default layout of an open directory. False with the
     * error message where it cannot be read. NULL: there is none. */
    bool (*read)(int descriptor, struct und_file_layout *layout, struct und_error *error);

    /* Optional: what the client tells of versions and health, in files below `root` ("" but in tests). */
    void (*describe)(const char *root, struct und_storage *storage);

    /* Limits of a request to `create` and `apply`. */
    bool takes_all;           /* UND_ALL_TARGETS */
    bool takes_targets;       /* a list of them */
    bool takes_pool;          /* by its name */
    size_t max_pool_length;   /* characters */
    int64_t max_stripe_count; /* of a file */
    int64_t unit_bytes;       /* stripe sizes are multiples of it */
    int64_t max_stripe_bytes;
    bool power_of_two; /* as stripe sizes are */

    bool inherits; /* a directory without a layout has that of its nearest parent with one */
};

/* All backends of this build in the order of their names, ending with NULL (generated from the
 * directory). */
extern const struct und_layout_backend *const und_layout_backends[];

/* The backend that handles the file system; `none` where no other does. */
const struct und_layout_backend *und_layout_backend_of(const struct und_storage *storage);

bool und_layout_request_is_asked(const struct und_layout_request *request);

#endif
