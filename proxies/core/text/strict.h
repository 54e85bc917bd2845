/*
 * Strict reading of a JSON document: every key required, unknown ones refused, every value checked,
 * and one error message that names the file, the place in it (streams[1].dumps[3].variables[0].shape)
 * and what was expected. The reader keeps the path of where it stands; the getters return false
 * with the error message in place.
 */
#ifndef UND_STRICT_H
#define UND_STRICT_H

#include "text/error.h"

#include <jansson.h>
#include <stdint.h>

struct und_strict {
    const char *file; /* name for messages */
    struct und_error *error;
    size_t length; /* of path */
    char path[512];
};

/* Parses the text; duplicate keys are refused. Returns a new reference, or NULL with the error message. */
json_t *und_strict_parse(struct und_strict *at, const char *text, size_t bytes);

/* Go down to a key or to an element, and back up to the mark that going down returned. */
size_t und_strict_key(struct und_strict *at, const char *key);
size_t und_strict_element(struct und_strict *at, size_t index);
void und_strict_up(struct und_strict *at, size_t mark);

/* "FILE: PATH: message"; always false. */
bool und_strict_fail(struct und_strict *at, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The value is an object with exactly these keys (a list ending with NULL); with all of the first list
 * and any of the second. */
bool und_strict_object(struct und_strict *at, const json_t *value, const char *const *keys);
bool und_strict_object_with(struct und_strict *at, const json_t *value, const char *const *keys,
                            const char *const *optional);

/* The value of a key of an object that und_strict_object has passed. */
bool und_strict_array(struct und_strict *at, const json_t *object, const char *key, size_t least, size_t most,
                      const json_t **array);
bool und_strict_text(struct und_strict *at, const json_t *object, const char *key, const char **text);
bool und_strict_identifier(struct und_strict *at, const json_t *object, const char *key, const char **text);
bool und_strict_choice(struct und_strict *at, const json_t *object, const char *key, const char *const *choices,
                       int *choice);
bool und_strict_integer(struct und_strict *at, const json_t *object, const char *key, int64_t least, int64_t most,
                        int64_t *number);
/* null, or an optional key that is not there, leaves *number and *flag as they are. */
bool und_strict_integer_or_null(struct und_strict *at, const json_t *object, const char *key, int64_t least,
                                int64_t *number);
bool und_strict_seconds(struct und_strict *at, const json_t *object, const char *key, double *seconds);
bool und_strict_seconds_or_null(struct und_strict *at, const json_t *object, const char *key);
bool und_strict_positive(struct und_strict *at, const json_t *object, const char *key, double most, double *number);
bool und_strict_share(struct und_strict *at, const json_t *object, const char *key, double *share);
bool und_strict_flag_or_null(struct und_strict *at, const json_t *object, const char *key, bool *flag);

/* The elements of an array of integers; `numbers` holds `most` of them. */
bool und_strict_integers(struct und_strict *at, const json_t *object, const char *key, size_t least, size_t most,
                         int64_t *numbers, size_t *count);

#endif
