#include "interfaces/method.h"

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

const struct und_need und_needs[UND_NEEDS] = {
    [UND_UPDATE] = {"update", UND_CAN_KEEP, "update files in place"},
    [UND_REOPEN] = {"reopen", UND_CAN_KEEP, "open appended files again"},
    [UND_REWRITE] = {"rewrite", UND_CAN_EMPTY, "rewrite files"},
    [UND_EXTENDS] = {"extends", UND_CAN_SHARE, "share a file with another method"},
    [UND_READS_OTHER] = {"reads", UND_CAN_SHARE, "read the files of another stream"},
    [UND_READS_OPEN] = {"continues", UND_CAN_READ_BACK, "read files that another stream has open"},
    [UND_CONTINUES] = {"continues", UND_CAN_READ_BACK, "go on with the files of a dump"},
    [UND_SMALL_FILE_SETS] = {"flood", UND_CAN_EACH_FILE, "play the layout flood"},
    [UND_WRITE_THROUGH] = {"write_through", UND_CAN_WRITE_THROUGH, "write through to storage"},
    [UND_LOOKS_UP] = {"lookups", UND_CAN_LOOK_UP, "read files between writes"},
    [UND_MAKES_CALLS] = {"calls", UND_CAN_CALL, "make calls of the system"},
    [UND_BEGINS] = {"nonblocking", UND_CAN_BEGIN, "begin moves and wait for them later"},
};
