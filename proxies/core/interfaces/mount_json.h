/* A struct und_storage as JSON. */
#ifndef UND_MOUNT_JSON_H
#define UND_MOUNT_JSON_H

#include "interfaces/mount.h"

#include <jansson.h>

/* As schemas/player.schema.json defines "storage"; NULL when memory is out. */
json_t *und_storage_json(const struct und_storage *storage);

#endif
