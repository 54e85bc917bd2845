#include "text/error.h"

#include <stdarg.h>
#include <stdio.h>

bool und_fail(struct und_error *error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    return false;
}
