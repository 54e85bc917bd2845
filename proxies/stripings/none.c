/*
 * File systems whose files cannot be given a layout, or tell none. Of NFS the mount options tell the
 * version that client and server have agreed on.
 */
#include "interfaces/layout_backend.h"

#include <stdio.h>
#include <string.h>

static bool none_handles(const struct und_storage *storage)
{
    (void)storage;
    return false;
}

static void none_describe(const char *root, struct und_storage *storage)
{
    (void)root;
    const char *version = strstr(storage->mount_options, ",vers=");
    if (strcmp(storage->type, "nfs") == 0 && version)
        snprintf(storage->client_version, sizeof storage->client_version, "NFS %.*s",
                 (int)strcspn(version + strlen(",vers="), ","), version + strlen(",vers="));
}

const struct und_layout_backend und_layout_backend_none = {
    .name = "none",
    .handles = none_handles,
    .describe = none_describe,
};
