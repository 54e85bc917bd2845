/*
 * Every available method alone, without the machine that schedules it: shared files of all ranks in
 * slabs and in strided blocks, files of one rank, appended states, independent and collective calls.
 * What was written is read back by other ranks in other pieces, and compared byte by byte; methods
 * that address bytes are also compared with the bytes of the file.
 *
 * Argument: a directory in which the test makes its own and removes it.
 */
#include "interfaces/method.h"
#include "job/die.h"
#include "job/init.h"
#include "options/setting.h"
#include "storage/run_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VARIABLES = 2, PATH_BYTES = 4096 };

struct scenario {
    const char *name;
    enum und_type type;
    int ndims;
    int64_t shape[UND_MAX_DIMS];
    int split[UND_MAX_DIMS]; /* 1: the ranks are laid along this dimension */
    int64_t transfer_bytes;
    bool own_file; /* every rank has a file of its own and the whole shape in it */
    int states;    /* more than 1: appended */
};

static const struct scenario scenarios[] = {
    {"whole slabs", UND_F64, 2, {8, 1000}, {1, 0}, 1 << 20, false, 1},
    {"slabs in small transfers", UND_I32, 2, {13, 1000}, {1, 0}, 3000, false, 1},
    {"more ranks than rows", UND_U8, 1, {3}, {1}, 1 << 20, false, 1},
    {"columns", UND_F32, 2, {9, 101}, {0, 1}, 1 << 20, false, 1},
    {"columns by rows", UND_I16, 2, {9, 101}, {0, 1}, 20, false, 1},
    {"planes", UND_F64, 3, {5, 7, 11}, {0, 1, 0}, 200, false, 1},
    {"cubes", UND_U64, 3, {6, 7, 10}, {0, 0, 1}, 100, false, 1},
    {"eight dimensions", UND_BYTE, 8, {2, 3, 2, 5, 2, 3, 2, 2}, {0, 0, 0, 1, 0, 0, 0, 0}, 16, false, 1},
    {"file per process", UND_I64, 2, {10, 333}, {1, 0}, 10000, true, 1},
    {"appended slabs", UND_F64, 2, {8, 100}, {1, 0}, 900, false, 3},
    {"appended columns", UND_F32, 2, {4, 37}, {0, 1}, 1 << 20, false, 3},
    {"appended file per process", UND_U16, 1, {1001}, {1}, 512, true, 4},
};
enum { SCENARIOS = (int)(sizeof scenarios / sizeof scenarios[0]) };

/* Options of ADIOS2: what is given to its deferred Puts would have to stay. */
static const char *const variants[][2] = {{"adios2.put=sync", "adios2.engine=BP5"},
                                          {"adios2.put=sync", "adios2.engine=BP4"},
                                          {"adios2.put=sync", "adios2.engine=HDF5"}};
enum { VARIANTS = (int)(sizeof variants / sizeof variants[0]) };

/* A method with values of its options, and how it is used with them. */
struct played {
    int64_t values[UND_MAX_SETTINGS];
    struct und_use use;
};

static int failures;

static void complain(const char *what, const struct und_method *method, const struct scenario *scenario, long long at)
{
    fprintf(stderr, "mpi_methods: %s: %s: %s %lld\n", method->name, scenario->name, what, at);
    ++failures;
}

/* The even rule for part `part` of `parts` along every dimension that is split. */
static void block_of(const struct scenario *scenario, int part, int parts, struct und_box *block)
{
    for (int d = 0; d < scenario->ndims; ++d) {
        int64_t n = scenario->shape[d];
        int64_t more = n % parts;
        bool split = scenario->split[d] && !scenario->own_file;
        block->start[d] = split ? part * (n / parts) + (part < more ? part : more) : 0;
        block->count[d] = split ? n / parts + (part < more) : n;
    }
}

/* The transfer that begins at element `done` of the block: whole trailing dimensions, then a run of one dimension. */
static int64_t next_box(const struct scenario *scenario, const struct und_box *block, int64_t most, int64_t done,
                        struct und_box *box)
{
    int64_t total = 1;
    for (int d = 0; d < scenario->ndims; ++d)
        total *= block->count[d];
    memset(box, 0, sizeof *box);
    if (done >= total)
        return 0;
    int64_t rest = done;
    int64_t size = 1;
    bool whole = true;
    for (int d = scenario->ndims - 1; d >= 0; --d) {
        int64_t index = rest % block->count[d];
        rest /= block->count[d];
        int64_t run = whole ? (most / size < 1 ? 1 : most / size) : 1;
        if (run > block->count[d] - index)
            run = block->count[d] - index;
        box->start[d] = block->start[d] + index;
        box->count[d] = run;
        size *= run;
        whole = whole && run == block->count[d];
    }
    return size;
}

/* Does the file hold the bytes of the variables and nothing else? */
static bool addresses_bytes(const struct und_method *method)
{
    return strcmp(method->name, "posix") == 0 || strcmp(method->name, "uring") == 0 ||
           strcmp(method->name, "stdio") == 0 || strcmp(method->name, "mpiio") == 0;
}

/* How many calls move the box: one, but POSIX and stdio have one for every run of consecutive bytes. */
static int64_t calls_of(const struct und_method *method, const struct scenario *scenario, const struct und_box *box)
{
    int64_t calls = 1;
    bool whole = true;
    for (int d = scenario->ndims - 1; d > 0; --d) {
        whole = whole && box->count[d] == scenario->shape[d];
        if (!whole)
            calls *= box->count[d - 1];
    }
    return addresses_bytes(method) && strcmp(method->name, "mpiio") != 0 ? calls : 1;
}

/* A byte that depends on every coordinate, the variable, the state and the owner of the file. */
static unsigned char byte_at(int64_t offset, int variable, int state, int owner)
{
    uint64_t x = (uint64_t)offset * 0x9e3779b97f4a7c15U + (uint64_t)(variable * 31 + state * 7 + owner * 101);
    return (unsigned char)(x >> 56 ^ x >> 17);
}

/* Fills the buffer with the box's bytes, or returns how many of them differ. */
static int64_t fill_or_compare(const struct scenario *scenario, const struct und_box *box, unsigned char *data,
                               bool compare, int variable, int state, int owner)
{
    int64_t width = und_type_bytes(scenario->type), wrong = 0, total = 1;
    for (int d = 0; d < scenario->ndims; ++d)
        total *= box->count[d];
    for (int64_t i = 0; i < total; ++i) {
        int64_t rest = i, element = 0, stride = 1;
        for (int d = scenario->ndims - 1; d >= 0; --d) {
            element += (box->start[d] + rest % box->count[d]) * stride;
            rest /= box->count[d];
            stride *= scenario->shape[d];
        }
        for (int64_t b = 0; b < width; ++b) {
            unsigned char right = byte_at(element * width + b, variable, state, owner);
            if (compare)
                wrong += data[i * width + b] != right;
            else
                data[i * width + b] = right;
        }
    }
    return wrong;
}

static void describe(const struct scenario *scenario, int variable, int state, bool collective,
                     struct und_dataset *dataset)
{
    static const char *const names[VARIABLES] = {"first", "second"};
    int64_t bytes = und_type_bytes(scenario->type);
    *dataset = (struct und_dataset){.name = names[variable], .type = scenario->type, .ndims = scenario->ndims};
    for (int d = 0; d < scenario->ndims; ++d)
        bytes *= dataset->shape[d] = scenario->shape[d];
    dataset->file_offset = (state * VARIABLES + variable) * bytes;
    dataset->first_row = state * scenario->shape[0];
    dataset->earlier_steps = state;
    dataset->exists = false;
    dataset->collective = collective;
}

/* One pass over all states and variables of an open file; returns the wrong bytes found in reading. */
static int64_t pass(const struct und_method *method, struct und_file *file, const struct scenario *scenario,
                    MPI_Comm comm, int owner, bool reading, bool collective, unsigned char *buffer, int64_t *calls)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int64_t wrong = 0, width = und_type_bytes(scenario->type);
    int64_t transfer = reading ? scenario->transfer_bytes / 2 + 1 : scenario->transfer_bytes;
    for (int state = 0; state < scenario->states; ++state) {
        for (int v = 0; v < VARIABLES; ++v) {
            struct und_dataset dataset;
            struct und_box block, box;
            describe(scenario, v, state, collective, &dataset);
            block_of(scenario, reading ? (rank + 1) % size : rank, size, &block);
            if (method->define)
                method->define(file, &dataset, &block);
            for (int64_t done = 0;;) {
                int64_t elements = next_box(scenario, &block, transfer / width, done, &box);
                int more = elements > 0;
                if (collective)
                    MPI_Allreduce(MPI_IN_PLACE, &more, 1, MPI_INT, MPI_MAX, comm);
                if (!more)
                    break;
                if (!reading) {
                    fill_or_compare(scenario, &box, buffer, false, v, state, owner);
                    method->write(file, &dataset, &box, buffer);
                } else {
                    method->read(file, &dataset, &box, buffer);
                    if (method->has_files)
                        wrong += fill_or_compare(scenario, &box, buffer, true, v, state, owner);
                }
                *calls += calls_of(method, scenario, &box);
                done += elements;
            }
        }
        if (!reading && scenario->states > 1) {
            method->sync(file);
            ++*calls;
        }
    }
    if (!reading && scenario->states == 1) {
        method->sync(file);
        ++*calls;
    }
    return wrong;
}

/* The bytes of the file are the variables one behind the other in C order, and nothing else. */
static void check_file_bytes(const struct und_method *method, const struct scenario *scenario, const char *path,
                             int owner)
{
    int descriptor = open(path, O_RDONLY);
    int64_t width = und_type_bytes(scenario->type), bytes = width, wrong = 0;
    for (int d = 0; d < scenario->ndims; ++d)
        bytes *= scenario->shape[d];
    unsigned char *data = malloc((size_t)bytes);
    for (int state = 0; state < scenario->states; ++state)
        for (int v = 0; v < VARIABLES; ++v) {
            if (descriptor < 0 || read(descriptor, data, (size_t)bytes) != (ssize_t)bytes) {
                complain("file is too short at state", method, scenario, state);
                break;
            }
            for (int64_t i = 0; i < bytes; ++i)
                wrong += data[i] != byte_at(i, v, state, owner);
        }
    if (wrong)
        complain("wrong bytes in the file:", method, scenario, (long long)wrong);
    if (descriptor >= 0 && read(descriptor, data, 1) != 0)
        complain("bytes behind the end of the file, state", method, scenario, scenario->states);
    free(data);
    close(descriptor);
}

static int create_empty(const char *path, bool is_directory, MPI_Comm comm)
{
    int rank, descriptor = -1;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0 && is_directory) {
        UND_CHECK(mkdir(path, 0700) == 0, "cannot create %s", path);
    } else if (rank == 0) {
        descriptor = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
        UND_CHECK(descriptor >= 0, "cannot create %s", path);
    }
    MPI_Barrier(comm);
    return descriptor;
}

/* Removes the file, or the directory with files of the method's names. */
static bool is_removed(const struct und_method *method, const struct played *how, const char *path)
{
    if (!how->use.directories)
        return unlink(path) == 0;
    DIR *listing = opendir(path);
    for (const struct dirent *entry; listing && (entry = readdir(listing));)
        if (method->is_member(entry->d_name))
            unlinkat(dirfd(listing), entry->d_name, 0);
    if (listing)
        closedir(listing);
    return rmdir(path) == 0;
}

static void play(const struct und_method *method, const struct played *played, const struct scenario *scenario,
                 bool collective, const char *path, MPI_Comm comm, int owner)
{
    unsigned char *buffer = malloc((size_t)scenario->transfer_bytes + 16);
    int64_t operations = 0, calls = 0, wrong;
    int created = method->has_files ? create_empty(path, played->use.directories, comm) : -1;
    const struct und_directory outside = {.root = 0};
    struct und_open how = {.path = path,
                           .directory = &outside,
                           .comm = comm,
                           .mode = UND_CREATE,
                           .append = scenario->states > 1,
                           .transfer_bytes = scenario->transfer_bytes,
                           .settings = played->values,
                           .created = &created,
                           .hints = MPI_INFO_NULL,
                           .operations = &operations};
    struct und_file *file = method->open(&how);
    if (created >= 0)
        close(created);
    created = -1;
    pass(method, file, scenario, comm, owner, false, collective, buffer, &calls);
    method->close(file);
    MPI_Barrier(comm);

    how.mode = UND_READ;
    file = method->open(&how);
    wrong = pass(method, file, scenario, comm, owner, true, collective, buffer, &calls);
    method->close(file);
    if (wrong)
        complain("wrong bytes read back:", method, scenario, (long long)wrong);
    /* Two opens and two closes besides the data calls and flushes; a flush of ADIOS ends a step, so that the next
     * state begins with another open. */
    const int64_t opens = strcmp(method->name, "adios") == 0 ? scenario->states + 1 : 2;
    if (method->has_files && operations != calls + opens + 2)
        complain("operations counted:", method, scenario, (long long)operations);
    MPI_Barrier(comm);
    free(buffer);
}

static void run_case(const struct und_method *method, const struct played *played, const struct scenario *scenario,
                     bool collective)
{
    int rank, comm_rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int owner = scenario->own_file ? rank : 0;
    MPI_Comm comm = scenario->own_file ? MPI_COMM_SELF : MPI_COMM_WORLD;
    MPI_Comm_rank(comm, &comm_rank);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s.%d%s", method->name, owner, played->use.suffix ? played->use.suffix : "");

    play(method, played, scenario, collective, path, comm, owner);
    if (comm_rank == 0 && method->has_files) {
        if (addresses_bytes(method))
            check_file_bytes(method, scenario, path, owner);
        if (!is_removed(method, played, path))
            complain("no file was made for rank", method, scenario, rank);
    } else if (comm_rank == 0 && access(path, F_OK) == 0) {
        complain("a method without files made one for rank", method, scenario, rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static int run_cases(const struct und_method *method, const struct scenario *scenario, bool collective)
{
    const bool varies = strcmp(method->name, "adios2") == 0;
    int cases = 0;
    for (int v = 0; v < (varies ? VARIANTS : 1); ++v) {
        struct und_error error;
        struct played played = {.use = {.append = scenario->states > 1, .suffix = method->suffix}};
        const char *const *texts = varies ? variants[v] : NULL;
        /* An engine that this ADIOS2 has not, as --list -v says. */
        if (varies && !und_settings_check(texts, 2, &error))
            continue;
        und_settings_read(method, texts, varies ? 2 : 0, played.values);
        if (method->settle && !method->settle(played.values, &played.use, &error)) {
            if (!strstr(error.text, "HDF5") || scenario->states == 1)
                complain(error.text, method, scenario, v);
            continue;
        }
        run_case(method, &played, scenario, collective);
        ++cases;
    }
    return cases;
}

int main(int argc, char **argv)
{
    und_init(&argc, &argv);
    int rank, cases = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 2)
        UND_DIE("usage: %s DIRECTORY", argv[0]);
    char directory[PATH_BYTES];
    snprintf(directory, sizeof directory, "%s/methods-XXXXXX", argv[1]);
    if (rank == 0)
        UND_CHECK(mkdtemp(directory), "cannot make a directory in %s", argv[1]);
    MPI_Bcast(directory, sizeof directory, MPI_CHAR, 0, MPI_COMM_WORLD);
    UND_CHECK(chdir(directory) == 0, "cannot enter %s", directory);

    int methods = 0;
    for (const struct und_method *const *method = und_methods; *method; ++method) {
        struct und_error error = {""};
        if ((*method)->unavailable || ((*method)->usable && !(*method)->usable(&error))) {
            if (rank == 0)
                printf("skipped %s: %s\n", (*method)->name,
                       (*method)->unavailable ? (*method)->unavailable : error.text);
            continue;
        }
        ++methods;
        for (int i = 0; i < SCENARIOS; ++i)
            for (int collective = 0; collective <= (*method)->collective; ++collective)
                cases += run_cases(*method, &scenarios[i], collective);
    }
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        UND_CHECK(rmdir(directory) == 0, "files were left in %s", directory);
        printf("%d cases of %d methods, %d failures\n", cases, methods, failures);
    }
    MPI_Finalize();
    return failures > 0 || cases < 3 * SCENARIOS;
}
