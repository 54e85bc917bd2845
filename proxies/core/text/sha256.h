/* SHA-256 (FIPS 180-4) of a text, for the identity of a descriptor. */
#ifndef UND_SHA256_H
#define UND_SHA256_H

#include <stddef.h>

/* Writes 64 hexadecimal digits and the end mark. */
void und_sha256(const void *data, size_t bytes, char digits[65]);

#endif
