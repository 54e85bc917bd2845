#include "interfaces/layout_backend.h"

#include <string.h>

const struct und_layout_backend *und_layout_backend_of(const struct und_storage *storage)
{
    const struct und_layout_backend *none = NULL;
    for (const struct und_layout_backend *const *backend = und_layout_backends; *backend; ++backend) {
        if ((*backend)->handles(storage))
            return *backend;
        if (strcmp((*backend)->name, "none") == 0)
            none = *backend;
    }
    return none;
}

bool und_layout_request_is_asked(const struct und_layout_request *request)
{
    return request->stripe_count != 0 || request->stripe_size_bytes > 0 || request->target_count > 0 || request->pool;
}
