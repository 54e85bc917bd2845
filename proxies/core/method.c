#include "core/method.h"

#include <string.h>

int64_t und_box_bytes(const struct und_dataset *dataset, const struct und_box *box)
{
    int64_t bytes = und_type_bytes(dataset->type);
    for (int d = 0; d < dataset->ndims; ++d)
        bytes *= box->count[d];
    return bytes;
}

void und_spans_begin(struct und_spans *spans, const struct und_dataset *dataset, const struct und_box *box)
{
    /* Trailing dimensions that the box fills belong to one span with the dimension before them. */
    int split = dataset->ndims - 1;
    int64_t stride = 1, elements = box->count[split];
    while (split > 0 && box->count[split] == dataset->shape[split]) {
        stride *= dataset->shape[split];
        elements *= box->count[--split];
    }
    spans->at = box->start[split] * stride;
    spans->elements = elements;
    spans->left = elements > 0;
    spans->dims = split;
    for (int d = split - 1; d >= 0; --d) {
        stride *= dataset->shape[d + 1];
        spans->at += box->start[d] * stride;
        spans->left *= box->count[d];
        spans->index[d] = 0;
        spans->count[d] = box->count[d];
        spans->stride[d] = stride;
    }
}

bool und_spans_next(struct und_spans *spans, int64_t *element)
{
    if (spans->left == 0)
        return false;
    *element = spans->at;
    --spans->left;
    for (int d = spans->dims - 1; d >= 0; --d) {
        spans->at += spans->stride[d];
        if (++spans->index[d] < spans->count[d])
            break;
        spans->at -= spans->stride[d] * spans->count[d];
        spans->index[d] = 0;
    }
    return true;
}

const struct und_method *und_method_find(const char *name)
{
    for (const struct und_method *const *method = und_methods; *method; ++method)
        if (strcmp((*method)->name, name) == 0)
            return *method;
    return NULL;
}

const char *const und_kind_names[] = {"update",    "reopen", "rewrite",       "extends", "reads",
                                      "continues", "flood",  "write_through", NULL};

bool und_method_plays(const struct und_method *method, enum und_kind_of_stream kind)
{
    switch (kind) {
    case UND_KIND_UPDATE:
    case UND_KIND_REOPEN: return method->updates;
    case UND_KIND_REWRITE: return !method->replaces && !method->store;
    case UND_KIND_CONTINUES: return method->reads_back && !method->suffix && !method->part && !method->store;
    case UND_KIND_READS:
    case UND_KIND_EXTENDS: return !method->suffix && !method->part && !method->store;
    case UND_KIND_FLOOD: return !method->part && !method->replaces && !method->store;
    case UND_KIND_WRITE_THROUGH: break;
    }
    return method->writes_through;
}
