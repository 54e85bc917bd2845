/*
 * understudy-storage: prints what a directory is on, as the measurement of the player states it, and
 * gives an empty directory a default layout for the programs that cannot ask for one themselves.
 * Needs no MPI.
 */
#include "interfaces/layout_request.h"
#include "interfaces/mount_json.h"
#include "options/option.h"
#include "text/print.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, FAILURE = 1, USAGE_ERROR = 2 };

struct arguments {
    const char *directory;
    struct und_layout_request request;
    bool help, list, version;
};

static void print_help(void)
{
    fputs("Usage: understudy-storage [options] DIR\n\n"
          "Prints what the directory is on as one JSON object: mount, size, fill, versions, health, default\n"
          "layout. With a layout, gives it to the directory, which must be empty, as the default of new\n"
          "files, and reads it back.\n\n"
          "       --stripe-count N       targets of a file; -1: all\n"
          "       --stripe-size BYTES    consecutive bytes on one target\n"
          "       --stripe-targets LIST  these targets, such as 0,4-7\n"
          "       --stripe-pool NAME     targets of this pool\n"
          "       --list                 list the file systems whose layouts are known\n"
          "   -h, --help                 print this help\n"
          "   -V, --version              print the version\n\n"
          "BYTES are plain (4194304), binary (4MiB) or decimal (4MB). The exit status is 0, 1 when the file\n"
          "system gave another layout than was asked, 2 for an invalid option or directory.\n",
          stdout);
}

static bool read_value(struct arguments *arguments, int option, const char *text, struct und_error *error)
{
    struct und_layout_request *request = &arguments->request;
    switch (option) {
    case 'h': arguments->help = true; return true;
    case 'l': arguments->list = true; return true;
    case 'V': arguments->version = true; return true;
    case 'c':
        return und_targets_read(text, &request->stripe_count) ||
               und_fail(error, "--stripe-count %s: expected a whole number of at least 1, or -1 for all", text);
    case 's':
        request->stripe_size_bytes = und_bytes_read(text);
        return request->stripe_size_bytes > 0 ||
               und_fail(error, "--stripe-size %s: expected " UND_BYTES_EXPECTED, text);
    case 't':
        return und_layout_request_read_targets(text, request) ||
               und_fail(error, "--stripe-targets %s: expected a list of numbers such as 0,4-7", text);
    default:
        request->pool = text;
        return text[0] || und_fail(error, "--stripe-pool: expected a name that is not empty");
    }
}

static bool read_arguments(int argc, char **argv, struct arguments *arguments, struct und_error *error)
{
    static const struct option table[] = {
        {"stripe-count", required_argument, NULL, 'c'},
        {"stripe-size", required_argument, NULL, 's'},
        {"stripe-targets", required_argument, NULL, 't'},
        {"stripe-pool", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {"list", no_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, ":hV", table, NULL)) != -1;) {
        if (!und_option_known(code, argv, error))
            return false;
        if (!read_value(arguments, code, optarg, error))
            return false;
    }
    if (arguments->help || arguments->list || arguments->version)
        return true;
    if (optind + 1 != argc)
        return und_fail(error, "expected one directory, found %d, see --help", argc - optind);
    arguments->directory = argv[optind];
    return true;
}

/* An open, empty directory. */
static int open_empty(const char *path, struct und_error *error)
{
    const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = descriptor < 0 ? NULL : opendir(path);
    if (!listing) {
        und_fail(error, "cannot open the directory %s: %s", path, strerror(errno));
        return -1;
    }
    const struct dirent *entry;
    while ((entry = readdir(listing)) && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0))
        continue;
    if (entry)
        und_fail(error, "%s is not empty: it holds %s; expected an empty directory for a layout", path, entry->d_name);
    const bool empty = !entry;
    closedir(listing);
    if (empty)
        return descriptor;
    close(descriptor);
    return -1;
}

static int give_layout(const struct arguments *arguments, const struct und_layout_backend *backend,
                       struct und_storage *storage, struct und_error *error)
{
    struct und_file_layout *layout = &storage->default_layout;
    if (!und_layout_backend_takes(backend, storage, &arguments->request, error))
        return USAGE_ERROR;
    if (!backend->apply) {
        und_fail(error, "%s: %s cannot give a directory a default layout", arguments->directory, backend->name);
        return USAGE_ERROR;
    }
    const int descriptor = open_empty(arguments->directory, error);
    if (descriptor < 0)
        return USAGE_ERROR;
    const bool given = backend->apply(descriptor, &arguments->request, error) &&
                       backend->read(descriptor, layout, error) &&
                       und_layout_request_agrees(&arguments->request, layout, arguments->directory, error);
    close(descriptor);
    return given ? SUCCESS : FAILURE;
}

/* In ASCII: names of mounts are text from outside. */
static bool print_json(const json_t *object)
{
    char *text = object ? json_dumps(object, JSON_INDENT(1) | JSON_ENSURE_ASCII) : NULL;
    for (const char *at = text; at && *at; ++at)
        if (*at == 0x7f)
            fputs("\\u007f", stdout);
        else
            putchar(*at);
    const bool printed = text && putchar('\n') != EOF && fflush(stdout) == 0;
    free(text);
    return printed;
}

static int run(int argc, char **argv, struct und_error *error)
{
    static struct arguments arguments;
    static struct und_storage storage;
    if (!read_arguments(argc, argv, &arguments, error))
        return USAGE_ERROR;
    if (arguments.help) {
        print_help();
        return SUCCESS;
    }
    if (arguments.list) {
        und_layout_backend_list(stdout);
        return SUCCESS;
    }
    if (arguments.version) {
        und_print(stdout, "understudy-storage %s", UND_VERSION);
        return SUCCESS;
    }
    if (!und_storage_read(arguments.directory, &storage, error))
        return USAGE_ERROR;
    const struct und_layout_backend *backend = und_layout_backend_of(&storage);
    if (und_layout_request_is_asked(&arguments.request)) {
        const int status = give_layout(&arguments, backend, &storage, error);
        if (status != SUCCESS)
            return status;
    }
    und_layout_backend_describe(arguments.directory, "", &storage);
    json_t *object = und_storage_json(&storage);
    const bool printed = print_json(object);
    json_decref(object);
    if (printed)
        return SUCCESS;
    und_fail(error, "cannot print what %s is on: %s", arguments.directory, strerror(errno));
    return FAILURE;
}

int main(int argc, char **argv)
{
    struct und_error error = {""};
    const int status = run(argc, argv, &error);
    if (error.text[0] && status != SUCCESS)
        und_print(stderr, "understudy: %s", error.text);
    return status == SUCCESS ? und_print_end(status) : status;
}
