#include "core/striping.h"

#include <string.h>

const struct und_striping *und_striping_of(const struct und_storage *storage)
{
    const struct und_striping *none = NULL;
    for (const struct und_striping *const *striping = und_stripings; *striping; ++striping) {
        if ((*striping)->handles(storage))
            return *striping;
        if (strcmp((*striping)->name, "none") == 0)
            none = *striping;
    }
    return none;
}

bool und_striping_is_asked(const struct und_striping_request *request)
{
    return request->stripe_count != 0 || request->stripe_size_bytes > 0 || request->target_count > 0 || request->pool;
}
