#include "text/print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

size_t und_character(const char *text, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* by the number of bytes */
    const unsigned char *c = (const unsigned char *)text;
    const size_t length = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;
    *code = length < 2 ? c[0] : c[0] & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; ++i) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (c[i] & 0x3fU);
    }
    const bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return *code < least[length] || *code > 0x10ffff || surrogate ? 0 : length;
}

/* Control and format characters, ends of lines and paragraphs, spaces that are none of ASCII, and what has no meaning
 * of its own: the categories Cc, Cf, Co, Zl, Zp and Zs of Unicode. */
static bool is_hidden(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0x0, 0x1f},        {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
        {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x1680, 0x1680},
        {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},   {0x3000, 0x3000},
        {0xe000, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd},
        {0x110cd, 0x110cd}, {0x13430, 0x1345f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0x10ffff},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; ++i)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return false;
}

static size_t put_hex(char *to, char letter, uint32_t code, int digits)
{
    size_t length = 0;
    to[length++] = '\\';
    to[length++] = letter;
    while (digits-- > 0)
        to[length++] = "0123456789abcdef"[code >> 4 * digits & 0xf];
    return length;
}

static size_t put_escape(char *to, uint32_t code)
{
    static const char escapes[] = {'\t', 't', '\n', 'n', '\r', 'r'};
    for (size_t i = 0; i < sizeof escapes; i += 2)
        if (code == (uint32_t)escapes[i]) {
            to[0] = '\\';
            to[1] = escapes[i + 1];
            return 2;
        }
    return code < 0x100     ? put_hex(to, 'x', code, 2)
           : code < 0x10000 ? put_hex(to, 'u', code, 4)
                            : put_hex(to, 'U', code, 8);
}

size_t und_escape(char *to, size_t size, const char *text)
{
    size_t length = 0;
    while (*text) {
        char piece[16];
        uint32_t code;
        const size_t bytes = und_character(text, &code);
        size_t more = bytes;
        if (bytes == 0)
            more = put_hex(piece, 'x', (unsigned char)*text, 2);
        else if (is_hidden(code))
            more = put_escape(piece, code);
        else
            memcpy(piece, text, bytes);
        if (length + more >= size)
            break;
        memcpy(to + length, piece, more);
        length += more;
        text += bytes ? bytes : 1;
    }
    if (size > 0)
        to[length] = '\0';
    return length;
}

void und_print(FILE *stream, const char *format, ...)
{
    char text[UND_PRINT_BYTES], line[UND_ESCAPED * UND_PRINT_BYTES + 1];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    size_t length = und_escape(line, sizeof line - 1, text);
    line[length++] = '\n';
    fwrite(line, 1, length, stream);
}

void und_line_add(struct und_line *line, const char *text)
{
    line->length += und_escape(line->text + line->length, sizeof line->text - 1 - line->length, text);
}

void und_line_add_number(struct und_line *line, long long number)
{
    char digits[24], *at = digits + sizeof digits - 1;
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    und_line_add(line, at);
}

void und_line_write(struct und_line *line, int descriptor)
{
    line->text[line->length++] = '\n';
    /* Nothing can be done about a message that cannot be written. */
    if (write(descriptor, line->text, line->length) < 0)
        return;
}

int und_print_end(int status)
{
    enum { FAILURE = 1 };
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    und_print(stderr, "understudy: cannot write to standard output: %s",
              errno ? strerror(errno) : "an earlier write failed");
    return status == 0 ? FAILURE : status;
}
