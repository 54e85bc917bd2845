#include "text/strict.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_IDENTIFIER = 100 };

json_t *und_strict_parse(struct und_strict *at, const char *text, size_t bytes)
{
    json_error_t why;
    at->length = 0;
    at->path[0] = '\0';
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        und_fail(at->error, "%s: line %d, column %d: not valid JSON: %s", at->file, why.line, why.column, why.text);
    return root;
}

static size_t go_down(struct und_strict *at, const char *format, ...) __attribute__((format(printf, 2, 3)));

static size_t go_down(struct und_strict *at, const char *format, ...)
{
    const size_t mark = at->length, capacity = sizeof at->path - mark;
    va_list list;
    va_start(list, format);
    const int wanted = vsnprintf(at->path + mark, capacity, format, list);
    va_end(list);
    at->length += wanted < 0 ? 0 : (size_t)wanted < capacity ? (size_t)wanted : capacity - 1;
    return mark;
}

size_t und_strict_key(struct und_strict *at, const char *key)
{
    return go_down(at, "%s%s", at->length > 0 ? "." : "", key);
}

size_t und_strict_element(struct und_strict *at, size_t index)
{
    return go_down(at, "[%zu]", index);
}

void und_strict_up(struct und_strict *at, size_t mark)
{
    at->length = mark;
    at->path[mark] = '\0';
}

bool und_strict_fail(struct und_strict *at, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return und_fail(at->error, "%s: %s%s%s", at->file, at->path, at->length > 0 ? ": " : "", text);
}

/* How a message shows what it found instead. */
static const char *shown(const json_t *value, char *text, size_t size)
{
    if (!value)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: return "null";
    case JSON_STRING: snprintf(text, size, "\"%.100s\"", json_string_value(value)); break;
    case JSON_INTEGER: snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value)); break;
    case JSON_REAL: snprintf(text, size, "%.17g", json_real_value(value)); break;
    }
    return text;
}

static bool unexpected(struct und_strict *at, const char *key, const json_t *value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The value of a key, or with NULL that in hand, is not what was expected. */
static bool unexpected(struct und_strict *at, const char *key, const json_t *value, const char *format, ...)
{
    char wanted[512], actual[128];
    va_list list;
    va_start(list, format);
    vsnprintf(wanted, sizeof wanted, format, list);
    va_end(list);
    if (key)
        und_strict_key(at, key);
    return und_strict_fail(at, "expected %s, found %s", wanted, shown(value, actual, sizeof actual));
}

static bool is_listed(const char *word, const char *const *words)
{
    for (; *words; ++words)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static const char *joined(const char *const *words, const char *last, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (const char *const *word = words; *word && length < size; ++word) {
        const char *between = word == words ? "" : word[1] ? ", " : last;
        length += (size_t)snprintf(text + length, size - length, "%s%s", between, *word);
    }
    return text;
}

bool und_strict_object(struct und_strict *at, const json_t *value, const char *const *keys)
{
    static const char *const none[] = {NULL};
    return und_strict_object_with(at, value, keys, none);
}

bool und_strict_object_with(struct und_strict *at, const json_t *value, const char *const *keys,
                            const char *const *optional)
{
    char list[512];
    if (!json_is_object(value))
        return unexpected(at, NULL, value, "an object with the keys %s", joined(keys, " and ", list, sizeof list));
    const char *key;
    json_t *ignored;
    /* jansson's iteration takes a mutable object, but changes nothing. */
    json_object_foreach((json_t *)(uintptr_t)value, key, ignored)
    {
        if (is_listed(key, keys) || is_listed(key, optional))
            continue;
        char more[256];
        return und_strict_fail(at, "unknown key \"%.100s\", expected %s%s%s", key,
                               joined(keys, *optional ? ", " : " or ", list, sizeof list),
                               *keys && *optional ? ", " : "", joined(optional, " or ", more, sizeof more));
    }
    for (; *keys; ++keys)
        if (!json_object_get(value, *keys))
            return und_strict_fail(at, "the key \"%s\" is missing", *keys);
    return true;
}

bool und_strict_array(struct und_strict *at, const json_t *object, const char *key, size_t least, size_t most,
                      const json_t **array)
{
    const json_t *value = json_object_get(object, key);
    const size_t size = json_array_size(value);
    *array = value;
    if (!json_is_array(value))
        return unexpected(at, key, value, "an array");
    if (size >= least && size <= most)
        return true;
    und_strict_key(at, key);
    return most == SIZE_MAX
               ? und_strict_fail(at, "expected at least %zu element%s, found %zu", least, least == 1 ? "" : "s", size)
               : und_strict_fail(at, "expected %zu to %zu elements, found %zu", least, most, size);
}

bool und_strict_text(struct und_strict *at, const json_t *object, const char *key, const char **text)
{
    const json_t *value = json_object_get(object, key);
    *text = json_string_value(value);
    return *text || unexpected(at, key, value, "a string");
}

static bool is_identifier(const char *text)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    static const char later[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    return strspn(text, first) > 0 && text[strspn(text, later)] == '\0' && strlen(text) <= MOST_IDENTIFIER;
}

bool und_strict_identifier(struct und_strict *at, const json_t *object, const char *key, const char **text)
{
    const json_t *value = json_object_get(object, key);
    *text = json_string_value(value);
    return (*text && is_identifier(*text)) ||
           unexpected(at, key, value,
                      "a name of at most %d letters, digits, '_', '.' and '-' that begins with a letter or digit",
                      MOST_IDENTIFIER);
}

bool und_strict_choice(struct und_strict *at, const json_t *object, const char *key, const char *const *choices,
                       int *choice)
{
    char list[512];
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);
    for (*choice = 0; text && choices[*choice]; ++*choice)
        if (strcmp(text, choices[*choice]) == 0)
            return true;
    return unexpected(at, key, value, "%s", joined(choices, " or ", list, sizeof list));
}

static bool integer(struct und_strict *at, const char *key, const json_t *value, int64_t least, int64_t most,
                    int64_t *number)
{
    if (json_is_integer(value) && json_integer_value(value) >= least && json_integer_value(value) <= most) {
        *number = json_integer_value(value);
        return true;
    }
    if (most == INT64_MAX)
        return unexpected(at, key, value, "an integer of at least %" PRId64, least);
    return unexpected(at, key, value, "an integer from %" PRId64 " to %" PRId64, least, most);
}

bool und_strict_integer(struct und_strict *at, const json_t *object, const char *key, int64_t least, int64_t most,
                        int64_t *number)
{
    return integer(at, key, json_object_get(object, key), least, most, number);
}

bool und_strict_integer_or_null(struct und_strict *at, const json_t *object, const char *key, int64_t least,
                                int64_t *number)
{
    const json_t *value = json_object_get(object, key);
    return !value || json_is_null(value) || und_strict_integer(at, object, key, least, INT64_MAX, number);
}

bool und_strict_seconds(struct und_strict *at, const json_t *object, const char *key, double *seconds)
{
    const json_t *value = json_object_get(object, key);
    *seconds = json_number_value(value);
    return (json_is_number(value) && *seconds >= 0) || unexpected(at, key, value, "seconds, a number of at least 0");
}

bool und_strict_seconds_or_null(struct und_strict *at, const json_t *object, const char *key)
{
    double ignored;
    return json_is_null(json_object_get(object, key)) || und_strict_seconds(at, object, key, &ignored);
}

bool und_strict_positive(struct und_strict *at, const json_t *object, const char *key, double most, double *number)
{
    const json_t *value = json_object_get(object, key);
    *number = json_number_value(value);
    return (json_is_number(value) && *number > 0 && *number <= most) ||
           unexpected(at, key, value, "a number above 0 and at most %.15g", most);
}

bool und_strict_share(struct und_strict *at, const json_t *object, const char *key, double *share)
{
    const json_t *value = json_object_get(object, key);
    *share = json_number_value(value);
    return (json_is_number(value) && *share >= 0 && *share <= 1) || unexpected(at, key, value, "a number from 0 to 1");
}

bool und_strict_flag_or_null(struct und_strict *at, const json_t *object, const char *key, bool *flag)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return true;
    *flag = json_is_true(value);
    return json_is_boolean(value) || unexpected(at, key, value, "true or false");
}

bool und_strict_integers(struct und_strict *at, const json_t *object, const char *key, size_t least, size_t most,
                         int64_t *numbers, size_t *count)
{
    const json_t *array;
    if (!und_strict_array(at, object, key, least, most, &array))
        return false;
    const size_t mark = und_strict_key(at, key);
    *count = json_array_size(array);
    for (size_t i = 0; i < *count; ++i) {
        const size_t here = und_strict_element(at, i);
        if (!integer(at, NULL, json_array_get(array, i), 1, INT64_MAX, &numbers[i]))
            return false;
        und_strict_up(at, here);
    }
    und_strict_up(at, mark);
    return true;
}
