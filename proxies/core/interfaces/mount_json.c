#include "interfaces/mount_json.h"

/* Names of mounts need not be UTF-8, which JSON is. */
static json_t *text_or_null(const char *text)
{
    json_t *value = text[0] ? json_string(text) : NULL;
    return value ? value : json_null();
}

static json_t *number_or_null(int64_t number)
{
    return number < 0 ? json_null() : json_integer(number);
}

static json_t *layout_of(const struct und_file_layout *layout)
{
    if (!layout->backend[0])
        return json_null();
    json_t *targets = layout->target_count < 0 ? json_null() : json_array();
    for (int i = 0; i < layout->target_count; ++i)
        json_array_append_new(targets, json_integer(layout->targets[i]));
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "backend", text_or_null(layout->backend), "stripe_count",
                     layout->stripe_count == 0 ? json_null() : json_integer(layout->stripe_count), "stripe_size_bytes",
                     number_or_null(layout->stripe_size_bytes), "pool", text_or_null(layout->pool), "targets", targets);
}

json_t *und_storage_json(const struct und_storage *storage)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}",      //
                     "type", text_or_null(storage->type),                      //
                     "source", text_or_null(storage->source),                  //
                     "mount_point", text_or_null(storage->mount_point),        //
                     "mount_options", text_or_null(storage->mount_options),    //
                     "total_bytes", json_integer(storage->total_bytes),        //
                     "free_bytes", json_integer(storage->free_bytes),          //
                     "total_inodes", number_or_null(storage->total_inodes),    //
                     "free_inodes", number_or_null(storage->free_inodes),      //
                     "client_version", text_or_null(storage->client_version),  //
                     "server_version", text_or_null(storage->server_version),  //
                     "health", text_or_null(storage->health),                  //
                     "default_layout", layout_of(&storage->default_layout));
}
