#include "options/setting.h"

#include "options/option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct und_setting *rows_of(const struct und_method *method)
{
    static const struct und_setting none[] = {{.name = NULL}};
    return method->settings ? method->settings : none;
}

/* Is `text` the name, up to the character that ends it? Gives what follows. */
static const char *behind(const char *text, const char *name, char end)
{
    const size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && text[length] == end ? text + length + 1 : NULL;
}

bool und_setting_is_of(const char *text, const struct und_method *method)
{
    return behind(text, method->name, '.') != NULL;
}

static bool read_value(const struct und_setting *row, const char *text, int64_t *value)
{
    char *end;
    if (row->choices) {
        for (*value = 0; row->choices[*value]; ++*value)
            if (strcmp(text, row->choices[*value]) == 0)
                return true;
        return false;
    }
    errno = 0;
    *value = row->bytes ? und_bytes_read(text) : strtoll(text, &end, 10);
    const bool whole = row->bytes || (errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0');
    return whole && *value >= 0 && *value <= row->most;
}

static bool refuse_value(const struct und_setting *row, const char *text, struct und_error *error)
{
    char words[256] = "";
    size_t length = 0;
    for (int i = 0; row->refused && row->refused[i]; ++i)
        if (strcmp(strchr(text, '=') + 1, row->refused[i]) == 0)
            return und_fail(error, "--method-option %s: %s", text, row->why_refused);
    if (row->bytes)
        return und_fail(error, "--method-option %s: expected bytes up to %" PRId64 ", such as 1048576, 1MiB or 1MB",
                        text, row->most);
    if (!row->choices)
        return und_fail(error, "--method-option %s: expected a whole number from 0 to %" PRId64, text, row->most);
    for (int i = 0; row->choices[i] && length < sizeof words; ++i)
        length += (size_t)snprintf(words + length, sizeof words - length, "%s%s",
                                   i == 0                ? ""
                                   : row->choices[i + 1] ? ", "
                                                         : " or ",
                                   row->choices[i]);
    return und_fail(error, "--method-option %s: expected %s", text, words);
}

static bool check_row(const struct und_method *method, const char *text, const char *rest, struct und_error *error)
{
    char names[512] = "none";
    size_t length = 0;
    for (const struct und_setting *row = rows_of(method); row->name; ++row) {
        const char *value = behind(rest, row->name, '=');
        int64_t number;
        if (value)
            return read_value(row, value, &number) || refuse_value(row, text, error);
        if (length < sizeof names)
            length +=
                (size_t)snprintf(names + length, sizeof names - length, "%s%s", length > 0 ? ", " : "", row->name);
    }
    return und_fail(error, "--method-option %s: expected %s.OPTION=VALUE with one of the options %s", text,
                    method->name, names);
}

static bool check(const char *text, struct und_error *error)
{
    for (const struct und_method *const *at = und_methods; *at; ++at) {
        const char *rest = behind(text, (*at)->name, '.');
        if (rest && (*at)->unavailable)
            return und_fail(error, "--method-option %s: the method %s cannot be used: %s", text, (*at)->name,
                            (*at)->unavailable);
        if (rest)
            return check_row(*at, text, rest, error);
    }
    return und_fail(error, "--method-option %s: expected METHOD.OPTION=VALUE, see --list -v", text);
}

bool und_settings_check(const char *const *texts, int count, struct und_error *error)
{
    for (int i = 0; i < count; ++i)
        if (!check(texts[i], error))
            return false;
    return true;
}

/* The last value that the texts give to the option; NULL: none does. */
static const char *given(const struct und_method *method, const struct und_setting *setting, const char *const *texts,
                         int count)
{
    const char *value = NULL;
    while (count-- > 0 && !value) {
        const char *rest = behind(texts[count], method->name, '.');
        value = rest ? behind(rest, setting->name, '=') : NULL;
    }
    return value;
}

void und_settings_read(const struct und_method *method, const char *const *texts, int count,
                       int64_t values[UND_MAX_SETTINGS])
{
    memset(values, 0, UND_MAX_SETTINGS * sizeof *values);
    for (const struct und_setting *row = rows_of(method); row->name; ++row) {
        const char *value = given(method, row, texts, count);
        read_value(row, value ? value : row->default_value, values++);
    }
}

bool und_settings_prefer(const struct und_method *method, const char *name, const char *value, const char *const *texts,
                         int count, int64_t values[UND_MAX_SETTINGS])
{
    int64_t wanted;
    for (const struct und_setting *row = rows_of(method); row->name; ++row, ++values)
        if (strcmp(row->name, name) == 0 && read_value(row, value, &wanted)) {
            if (!given(method, row, texts, count))
                *values = wanted;
            return *values == wanted;
        }
    return false;
}

void und_settings_list(const struct und_method *method, FILE *stream)
{
    for (const struct und_setting *row = rows_of(method); row->name; ++row) {
        fprintf(stream, "         -m %s.%s=", method->name, row->name);
        for (int i = 0; row->choices && row->choices[i]; ++i)
            fprintf(stream, "%s%s", i > 0 ? "|" : "", row->choices[i]);
        if (!row->choices)
            fprintf(stream, "%s", row->bytes ? "BYTES" : "N");
        fprintf(stream, "  %s (default %s)\n", row->help, row->default_value);
    }
}
