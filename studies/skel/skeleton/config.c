/* The adios-config: which method a group has, and replacing it. */
#include "internal.h"

#include <adios.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Puts the characters in place of the five names of XML and of numbers up to 127. */
static void decode(char *text)
{
    static const struct {
        const char *name;
        char character;
    } entities[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    char *to = text;
    while (*text) {
        size_t length = 1;
        char character = *text, *end;
        for (size_t i = 0; i < sizeof entities / sizeof entities[0]; ++i)
            if (strncmp(text, entities[i].name, strlen(entities[i].name)) == 0) {
                length = strlen(entities[i].name);
                character = entities[i].character;
            }
        if (strncmp(text, "&#", 2) == 0 && isdigit((unsigned char)text[2])) {
            const long code = strtol(text + 2, &end, 10);
            if (*end == ';' && code > 0 && code < 128) {
                length = (size_t)(end + 1 - text);
                character = (char)code;
            }
        }
        *to++ = character;
        text += length;
    }
    *to = '\0';
}

/* Value of an attribute in the tag that reaches from `at` to `end`; false where it has none. */
static bool attribute(const char *at, const char *end, const char *name, char *value, size_t size)
{
    const size_t length = strlen(name);
    for (; at + length + 2 < end; ++at) {
        if (!isspace((unsigned char)at[0]) || strncmp(at + 1, name, length) != 0)
            continue;
        const char *quote = at + 1 + length;
        quote += strspn(quote, " \t\r\n");
        if (*quote++ != '=')
            continue;
        quote += strspn(quote, " \t\r\n");
        const char *close = *quote == '"' || *quote == '\'' ? strchr(quote + 1, *quote) : NULL;
        if (!close || close > end || (size_t)(close - quote) > size)
            return false;
        snprintf(value, size, "%.*s", (int)(close - quote - 1), quote + 1);
        return true;
    }
    return false;
}

/* A start tag (or <empty/>, or </end>) of the config. */
struct tag {
    const char *begin, *close; /* its '<' and '>' */
    size_t name_bytes;
};

static bool has_name(const struct tag *tag, const char *name)
{
    return strlen(name) == tag->name_bytes && strncasecmp(tag->begin + 1, name, tag->name_bytes) == 0;
}

static bool is_empty(const struct tag *tag)
{
    return tag->close[-1] == '/';
}

/* The next tag from `at` on that is in no comment. */
static bool next_tag(const char *at, struct tag *tag)
{
    while ((at = strchr(at, '<')) && strncmp(at, "<!--", 4) == 0)
        if (!(at = strstr(at, "-->")))
            return false;
    if (!at || !(tag->close = strchr(at, '>')))
        return false;
    tag->begin = at;
    tag->name_bytes = 1 + strcspn(at + 2, " \t\r\n/>"); /* of an end tag with its '/' */
    return true;
}

struct method_element {
    const char *begin, *end;
    char group[256];
    char method[256];
};

/* The next <method> (or <transport>) from `at` on that is in no comment. */
static bool next_method(const char *at, struct method_element *element)
{
    struct tag tag;
    for (; next_tag(at, &tag); at = tag.close) {
        if (!has_name(&tag, "method") && !has_name(&tag, "transport"))
            continue;
        char end_tag[16];
        snprintf(end_tag, sizeof end_tag, "</%.*s>", (int)tag.name_bytes, tag.begin + 1);
        const char *end = is_empty(&tag) ? tag.close + 1 : strstr(tag.close, end_tag);
        if (!end)
            return false;
        element->begin = tag.begin;
        element->end = is_empty(&tag) ? end : end + strlen(end_tag);
        if (attribute(tag.begin, tag.close, "group", element->group, sizeof element->group) &&
            attribute(tag.begin, tag.close, "method", element->method, sizeof element->method))
            return true;
    }
    return false;
}

/* Does the attribute of the tag name this group? ADIOS compares without regard to case. */
static bool is_of_group(const struct tag *tag, const char *key, const char *group)
{
    char name[256];
    if (!attribute(tag->begin, tag->close, key, name, sizeof name))
        return false;
    decode(name);
    return strcasecmp(name, group) == 0;
}

bool skeleton_group_has_transforms(const struct skeleton *run, const char *group)
{
    struct tag tag = {.close = run->config_text};
    bool within = false, any = false;
    char transform[256];
    while (next_tag(tag.close, &tag))
        if (has_name(&tag, "adios-group"))
            within = is_of_group(&tag, "name", group);
        else if (within && has_name(&tag, "var") &&
                 attribute(tag.begin, tag.close, "transform", transform, sizeof transform))
            any = any || (transform[0] && strcasecmp(transform, "none") != 0);
    return any;
}

bool skeleton_group_aggregates_time(const struct skeleton *run, const char *group)
{
    struct tag tag = {.close = run->config_text};
    bool any = false;
    char bytes[256];
    while (next_tag(tag.close, &tag))
        if (has_name(&tag, "time-aggregation") && is_of_group(&tag, "group", group))
            any = attribute(tag.begin, tag.close, "buffer-size", bytes, sizeof bytes) && strtoll(bytes, NULL, 10) > 0;
    return any;
}

/* Methods of ADIOS 1.13.1 that write files and work, as in python/understudy/skel/descriptor.py. */
static const char *const working[] = {"POSIX", "MPI", "MPI_LUSTRE", "MPI_AMR", "MPI_AGGREGATE"};

static bool is_working(const char *method)
{
    for (size_t i = 0; i < sizeof working / sizeof working[0]; ++i)
        if (strcasecmp(working[i], method) == 0)
            return true;
    return false;
}

/* Before the config is used: a method that loses data and says nothing is not started. */
static void check_methods(struct skeleton *run)
{
    struct method_element element = {.end = run->config_text};
    while (next_method(element.end, &element))
        if (!is_working(element.method))
            skeleton_leave(run, 0,
                           "%s %s: in ADIOS 1.13.1 it writes no files, loses data or aborts; expected one of POSIX, "
                           "MPI, MPI_LUSTRE, MPI_AMR, MPI_AGGREGATE",
                           run->options.method ? "--method" : "method", element.method);
}

int64_t skeleton_buffer_bytes(const struct skeleton *run, const char *group)
{
    struct tag tag = {.close = run->config_text};
    struct method_element element = {.end = run->config_text};
    char text[256];
    int64_t bytes = INT64_MAX;
    while (next_method(element.end, &element)) {
        decode(element.group);
        if (strcasecmp(element.group, group) == 0 && strcasecmp(element.method, "POSIX") == 0)
            return INT64_MAX;
    }
    while (next_tag(tag.close, &tag))
        if (has_name(&tag, "buffer") && (attribute(tag.begin, tag.close, "max-size-MB", text, sizeof text) ||
                                         attribute(tag.begin, tag.close, "size-MB", text, sizeof text))) {
            const int64_t size = strtoll(text, NULL, 10);
            if (size > 0 && size <= INT64_MAX >> 20)
                bytes = size << 20;
        }
    return bytes;
}

bool skeleton_method_has_timers(const struct skeleton *run, const char *group)
{
    static const char *const timed[] = {"POSIX", "MPI_LUSTRE", "MPI_AMR", "MPI_AGGREGATE"};
    struct method_element element = {.end = run->config_text};
    bool any = false;
    while (next_method(element.end, &element)) {
        decode(element.group);
        if (strcmp(element.group, group) != 0)
            continue;
        for (size_t i = 0; i < sizeof timed / sizeof timed[0]; ++i)
            any = any || strcasecmp(timed[i], element.method) == 0;
    }
    return any;
}

/* The config with every method replaced by that of the options. */
static char *replace_methods(struct skeleton *run, const char *text)
{
    const char *parameters = run->options.parameters ? run->options.parameters : "";
    char *replaced = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&replaced, &bytes);
    if (!out)
        skeleton_die(run, "no memory for %s", run->options.config);
    struct method_element element = {.end = text};
    const char *done = text;
    while (next_method(element.end, &element)) {
        fprintf(out, "%.*s<method group=\"%s\" method=\"%s\">%s</method>", (int)(element.begin - done), done,
                element.group, run->options.method, parameters);
        done = element.end;
    }
    fputs(done, out);
    if (fclose(out) != 0)
        skeleton_die(run, "no memory for %s", run->options.config);
    return replaced;
}

static char *read_text(struct skeleton *run, const char *path)
{
    run->config_file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    ssize_t bytes = run->config_file ? getdelim(&text, &size, EOF, run->config_file) : -1;
    if (bytes <= 0)
        skeleton_die(run, "%s: cannot be read: %s", path, run->config_file && bytes < 0 ? "empty" : strerror(errno));
    return text;
}

static const char CONFIG_NAME[] = "adios-config.xml";

/* Collective. Until it is known to have failed, every process may have to remove the file. */
static void write_config(struct skeleton *run)
{
    int code = 0;
    run->wrote_config = true;
    if (run->rank == 0) {
        const int descriptor =
            openat(run->directory, CONFIG_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
        code = file ? 0 : errno;
        if (file && (fputs(run->config_text, file) == EOF || fflush(file) != 0))
            skeleton_die(run, "%s: cannot be written: %s", run->config, strerror(errno));
        if (run->config_file)
            fclose(run->config_file);
        run->config_file = file;
    }
    PMPI_Bcast(&code, 1, MPI_INT, 0, run->comm);
    run->wrote_config = code == 0;
    if (code)
        skeleton_leave(run, 0, "%s: cannot be written: %s", run->config, strerror(code));
}

/* Safe in a signal handler. */
void skeleton_remove_config(const struct skeleton *run)
{
    if (run->wrote_config)
        skeleton_remove_regular(run->directory, CONFIG_NAME);
}

int skeleton_init_adios(struct skeleton *run)
{
    char path[64] = "";
    if (run->config_file)
        snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(run->config_file));
    const int failed = adios_init(run->config_file ? path : run->config, run->comm);
    if (run->config_file)
        fclose(run->config_file);
    run->config_file = NULL;
    return failed;
}

void skeleton_prepare_config(struct skeleton *run)
{
    const struct skeleton_options *options = &run->options;
    snprintf(run->config, sizeof run->config, "%s", options->config);
    int64_t bytes = 0;
    if (run->rank == 0) {
        run->config_text = read_text(run, options->config);
        if (options->method) {
            char *replaced = replace_methods(run, run->config_text);
            free(run->config_text);
            run->config_text = replaced;
        }
        bytes = (int64_t)strlen(run->config_text) + 1;
    }
    if (options->method) {
        if (!skeleton_file_path(run, CONFIG_NAME, run->config))
            skeleton_die(run, "%s: the path is too long", options->directory);
        write_config(run);
    }
    PMPI_Bcast(&bytes, 1, MPI_INT64_T, 0, run->comm);
    if (run->rank != 0)
        run->config_text = skeleton_array(run, "the config", (size_t)bytes, 1);
    PMPI_Bcast(run->config_text, (int)bytes, MPI_CHAR, 0, run->comm);
    check_methods(run);
}
