/*
 * ADIOS2, by its C bindings: one variable per dataset, each transfer a block of a global array (Put). A dump is a step,
 * which ends at sync or close; states of an appended file are steps of it. A file of BP5 and BP4 is a directory.
 *
 * Deferred Puts (ADIOS2's default) keep the pointer until the step ends, so the player holds the dump in memory, as an
 * application does. ADIOS2 writes the reason of an error to standard error and gives its kind.
 */
#include "interfaces/method.h"

#include <string.h>

/* data.<n>, md.<n>, mmd.<n>, md.idx, profiling.json */
static bool is_member(const char *name)
{
    static const char *const stems[] = {"data.", "md.", "mmd."};
    for (size_t s = 0; s < sizeof stems / sizeof stems[0]; ++s) {
        const size_t length = strlen(stems[s]);
        const char *number = strncmp(name, stems[s], length) == 0 ? name + length : "";
        const size_t digits = strspn(number, "0123456789");
        if (digits > 0 && number[digits] == '\0')
            return true;
    }
    return strcmp(name, "md.idx") == 0 || strcmp(name, "profiling.json") == 0;
}

#ifdef UND_HAVE_ADIOS2

#include "job/die.h"
#include "storage/run_directory.h"
#include "storage/space.h"

#include <adios2_c.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENGINE, PUT, AGGREGATION, AGGREGATORS, SUBFILES, RATIO, SHM, CHUNK, DIRECT, ASYNC, STRIPE };
enum { BP5, BP4, HDF5 };
enum { DEFERRED, SYNC };
enum { TWO_LEVEL, EVERYONE, SERIAL, BY_SIZE };
enum {
    METADATA_BYTES = 16 * 1024 * 1024, /* more than ADIOS2 takes beside the bytes of a step */
    COPIED_BYTES = 4 * 1024 * 1024,    /* BP5: deferred blocks below that are copied */
    FILES_BESIDE = 4                   /* the directory and what is in it beside data */
};
#define SHM_BYTES (INT64_C(2) * (2147483648 - 102400)) /* ADIOS2's default */
/* Of a segment of shared memory: its state and two aligned buffers; with less, ADIOS2 counts below 0. */
enum { LEAST_SHM_BYTES = 4096 };

static const char *const no_yes[] = {"no", "yes", NULL};
#ifdef ADIOS2_HAVE_HDF5
static const char *const engines[] = {"BP5", "BP4", "HDF5", NULL};
static const char *const refused[] = {"SST", "SSC", "DataMan", "Inline", NULL};
static const char why_refused[] = "SST, SSC, DataMan and Inline send data to another program, and no file system is "
                                  "measured; expected BP5, BP4 or HDF5";
#else
static const char *const engines[] = {"BP5", "BP4", NULL};
static const char *const refused[] = {"SST", "SSC", "DataMan", "Inline", "HDF5", NULL};
static const char why_refused[] = "SST, SSC, DataMan and Inline send data to another program, and no file system is "
                                  "measured, and this ADIOS2 was built without HDF5; expected BP5 or BP4";
#endif
static const char *const puts_[] = {"deferred", "sync", NULL};
static const char *const aggregations[] = {"TwoLevelShm", "EveryoneWrites", "EveryoneWritesSerial",
#if ADIOS2_VERSION_MAJOR * 100 + ADIOS2_VERSION_MINOR >= 211
                                           "DataSizeBased",
#endif
                                           NULL};

static const struct und_setting settings[] = {
    [ENGINE] = {.name = "engine",
                .choices = engines,
                .refused = refused,
                .why_refused = why_refused,
                .default_value = "BP5",
                .help = "ADIOS2's own; a BP file is a directory"},
    [PUT] = {.name = "put",
             .choices = puts_,
             .default_value = "deferred",
             .help = "blocks are taken when the step ends, or copied at once"},
    [AGGREGATION] = {.name = "aggregation_type",
                     .choices = aggregations,
                     .default_value = "TwoLevelShm",
                     .help = "BP5: which ranks write"},
    [AGGREGATORS] = {.name = "num_aggregators",
                     .most = INT32_MAX,
                     .default_value = "0",
                     .help = "BP5, BP4: ranks that write, or files that ranks write to; 0 = as ADIOS2 does it"},
    [SUBFILES] = {.name = "num_subfiles",
                  .most = INT32_MAX,
                  .default_value = "0",
                  .help = "BP5 with TwoLevelShm or DataSizeBased: files of data; 0 = as ADIOS2 does it"},
    [RATIO] = {.name = "aggregator_ratio",
               .most = INT32_MAX,
               .default_value = "0",
               .help = "BP5, BP4: ranks of an aggregator; 0 = as ADIOS2 does it"},
    [SHM] = {.name = "max_shm_size",
             .bytes = true,
             .most = INT64_MAX,
             .default_value = "0",
             .help = "BP5 with TwoLevelShm: maximum memory that ranks share; 0 = as ADIOS2 does it"},
    [CHUNK] = {.name = "buffer_chunk_size",
               .bytes = true,
               .most = INT32_MAX,
               .default_value = "0",
               .help = "BP5: bytes that the buffer grows by, and of a write; 0 = as ADIOS2 does it"},
    [DIRECT] = {.name = "direct_io", .choices = no_yes, .default_value = "no", .help = "BP5: past the page cache"},
    [ASYNC] = {.name = "async_write",
               .choices = no_yes,
               .default_value = "no",
               .help = "BP5: a step returns before it is written; close waits"},
    [STRIPE] = {.name = "stripe_size",
                .bytes = true,
                .most = INT32_MAX,
                .default_value = "0",
                .help = "BP5: blocks of ranks begin at multiples of it in a file; 0 = as ADIOS2 does it"},
    {.name = NULL},
};

/* The library has one object per process: how many files use it. */
static int users;
static int64_t opened;
static adios2_adios *library;

struct und_file {
    int64_t settings[UND_MAX_SETTINGS];
    MPI_Comm comm;
    adios2_io *io;
    adios2_engine *engine;
    adios2_variable *variable; /* the one that `define` named last */
    bool reads, append, lasting, in_step;
    int rank;
    MPI_Comm node; /* of the ranks of comm that share a node; MPI_COMM_NULL: not asked for yet */
    const struct und_directory *directory;
    int64_t *operations;
    char name[32]; /* of io */
    char path[];
};

/* Ends the run with the kind of ADIOS2's error, whose text it has written, unless the file system is full. */
static _Noreturn void fail(const struct und_file *file, adios2_error code, const char *doing, const char *what)
{
    static const char *const kinds[] = {"no error", "invalid argument", "error of the system", "run-time error",
                                        "exception"};
    const int refusal = file->reads ? 0 : und_space_refusal(file->directory, file->path, UND_FULL_BYTES);
    const size_t kind = (size_t)code < sizeof kinds / sizeof kinds[0] ? (size_t)code : 4;
    if (refusal != 0)
        UND_DIE("adios2: cannot %s%s%s%s: %s", doing, what ? what : "", what ? " of " : "", file->path,
                strerror(refusal));
    UND_DIE("adios2: cannot %s%s%s%s: %s of ADIOS2, see its message", doing, what ? what : "", what ? " of " : "",
            file->path, kinds[kind]);
}

static void check(adios2_error code, const struct und_file *file, const char *doing, const char *what)
{
    if (code != adios2_error_none)
        fail(file, code, doing, what);
}

static void version(char *text, int size)
{
    snprintf(text, (size_t)size, "adios2 %s", ADIOS2_VERSION_STR);
}

/* -- options ------------------------------------------------------------------------------------------------------- */

/* Is an option given that the engine does not have? Its name; NULL: none. */
static const char *foreign_option(const int64_t *values)
{
    const int first = values[ENGINE] == HDF5 ? AGGREGATION : values[ENGINE] == BP4 ? SUBFILES : STRIPE + 1;
    if (values[ENGINE] == BP4 && values[AGGREGATION] != TWO_LEVEL)
        return settings[AGGREGATION].name;
    for (int s = first; s <= STRIPE; ++s)
        if (values[s] != 0 && !(values[ENGINE] == BP4 && s == RATIO))
            return settings[s].name;
    return NULL;
}

static bool settle(const int64_t *values, struct und_use *use, struct und_error *error)
{
    const char *foreign = foreign_option(values);
    const bool everyone = values[AGGREGATION] == EVERYONE || values[AGGREGATION] == SERIAL;
    if (foreign)
        return und_fail(error, "adios2.%s is no option of the engine %s", foreign, engines[values[ENGINE]]);
    if (values[SUBFILES] > 0 && everyone)
        return und_fail(error,
                        "adios2.num_subfiles is no option of the aggregation type %s: give "
                        "adios2.num_aggregators",
                        aggregations[values[AGGREGATION]]);
    if (values[SHM] > 0 && values[AGGREGATION] != TWO_LEVEL)
        return und_fail(error, "adios2.max_shm_size is no option of the aggregation type %s",
                        aggregations[values[AGGREGATION]]);
    if (values[SHM] > 0 && values[SHM] < LEAST_SHM_BYTES)
        return und_fail(error,
                        "adios2.max_shm_size=%" PRId64 ": expected 0, or %d bytes or more: ADIOS2 breaks with less",
                        values[SHM], LEAST_SHM_BYTES);
    if (values[AGGREGATORS] > 0 && values[RATIO] > 0)
        return und_fail(error, "adios2.num_aggregators and adios2.aggregator_ratio exclude each other");
    if (values[ASYNC] && use->lasts)
        return und_fail(error, "adios2.async_write=yes returns before a step is written, but the stream is flushed");
    if (use->within)
        return und_fail(error, "ADIOS2 writes whole steps, but the stream is flushed within its dumps: play it by "
                               "another method");
    if (values[ENGINE] == HDF5 && use->append)
        return und_fail(error, "the engine HDF5 does not keep the shapes of time steps: give adios2.engine=BP5 or BP4 "
                               "for appended files");
    use->holds = values[PUT] == DEFERRED;
    use->directories = values[ENGINE] != HDF5;
    if (values[ENGINE] == HDF5)
        use->suffix = ".h5";
    return true;
}

static int64_t members(const int64_t *values, int64_t size)
{
    const int64_t most = values[SUBFILES] > 0      ? values[SUBFILES]
                         : values[AGGREGATORS] > 0 ? values[AGGREGATORS]
                         : values[RATIO] > 0       ? (size - 1) / values[RATIO] + 1
                                                   : size;
    return FILES_BESIDE + (most < size ? most : size);
}

/* Of a step the library has a copy, of which BP4's may be growing; of deferred blocks BP5 has none but of small ones.
 * An aggregator has shared memory for two blocks of another rank. */
static int64_t memory(const int64_t *values, const struct und_load *load)
{
    const bool shares = values[ENGINE] == BP5 && values[AGGREGATION] == TWO_LEVEL && load->ranks > 1;
    const int64_t shm = values[SHM] > 0 ? values[SHM] : SHM_BYTES, two = 2 * load->step_bytes + METADATA_BYTES;
    int64_t bytes = METADATA_BYTES + (shares ? shm < two ? shm : two : 0);
    if (values[ENGINE] == BP4)
        bytes += 2 * load->step_bytes + load->step_bytes / 8;
    else if (values[ENGINE] == BP5)
        bytes += load->step_bytes;
    return bytes;
}

static void set(const struct und_file *file, const char *key, const char *value)
{
    check(adios2_set_parameter(file->io, key, value), file, "set a parameter of ", NULL);
}

static void set_number(const struct und_file *file, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    if (value > 0)
        set(file, key, text);
}

static void set_parameters(const struct und_file *file)
{
    const int64_t *values = file->settings;
    if (values[ENGINE] == BP5) {
        set(file, "AggregationType", aggregations[values[AGGREGATION]]);
        set_number(file, "NumSubFiles", values[SUBFILES]);
        set_number(file, "MaxShmSize", values[SHM]);
        set_number(file, "BufferChunkSize", values[CHUNK]);
        set_number(file, "StripeSize", values[STRIPE]);
        if (values[DIRECT])
            set(file, "DirectIO", "true");
        if (values[ASYNC])
            set(file, "AsyncWrite", "true");
    }
    set_number(file, "NumAggregators", values[AGGREGATORS]);
    set_number(file, "AggregatorRatio", values[RATIO]);
}

/* -- whole files ---------------------------------------------------------------------------------------------------- */

/* A file in the directory of a BP file. */
struct member {
    unsigned char *bytes;
    uint64_t size;
};

enum { INDEX, METADATA, META_METADATA, MEMBERS };
enum { HEADER = 64, BP_VERSION = 37, ACTIVE_BP4 = 38, ACTIVE_BP5 = 39, ROW_BP4 = 64, END_BP4 = 40 };

/* The whole index and what describes types, which are small; of metadata the size alone. A file that is missing has no
 * bytes. */
static bool load_member(const char *path, int which, struct member *member)
{
    static const char *const names[] = {"md.idx", "md.0", "mmd.0"};
    char name[PATH_MAX];
    struct stat status;
    snprintf(name, sizeof name, "%s/%s", path, names[which]);
    const int descriptor = open(name, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return errno == ENOENT;
    bool good = fstat(descriptor, &status) == 0;
    member->size = good ? (uint64_t)status.st_size : 0;
    member->bytes = malloc(which == METADATA ? 1 : member->size + 1);
    good = good && member->bytes;
    for (uint64_t done = 0; good && which != METADATA && done < member->size;) {
        const ssize_t some = pread(descriptor, member->bytes + done, member->size - done, (off_t)done);
        good = some >= 0;
        member->size = some == 0 ? done : member->size;
        done += some > 0 ? (uint64_t)some : 0;
    }
    close(descriptor);
    return good;
}

static uint64_t number_at(const struct member *member, uint64_t at)
{
    uint64_t number = 0;
    memcpy(&number, member->bytes + at, sizeof number);
    return number;
}

/* Records of the kind, their bytes, and these; those of steps begin with where their metadata are, and how many bytes. */
static bool steps_are_whole(const struct member *index, uint64_t metadata_bytes)
{
    const uint64_t number = sizeof(uint64_t);
    uint64_t at = HEADER, steps = 0;
    while (at < index->size) {
        const unsigned char kind = index->bytes[at++];
        if (index->size - at < number)
            return false;
        const uint64_t bytes = number_at(index, at);
        at += number;
        if (bytes > index->size - at || bytes < 2 * number)
            return false;
        if (kind == 's' && (number_at(index, at) > metadata_bytes ||
                            number_at(index, at + number) > metadata_bytes - number_at(index, at)))
            return false;
        steps += kind == 's';
        at += bytes;
    }
    return steps > 0;
}

/* Types: two sizes, and what has them. */
static bool types_are_whole(const struct member *types)
{
    const uint64_t number = sizeof(uint64_t);
    uint64_t at = 0;
    while (at < types->size) {
        for (int part = 0; part < 2; ++part)
            if (types->size - at < 2 * number || number_at(types, at + (uint64_t)part * number) > types->size)
                return false;
        const uint64_t bytes = 2 * number + number_at(types, at) + number_at(types, at + number);
        if (bytes > types->size - at)
            return false;
        at += bytes;
    }
    return types->size > 0;
}

static bool rows_are_whole(const struct member *index, uint64_t metadata_bytes)
{
    if (index->size == HEADER || (index->size - HEADER) % ROW_BP4 != 0)
        return false;
    for (uint64_t at = HEADER; at < index->size; at += ROW_BP4)
        if (number_at(index, at + END_BP4) > metadata_bytes)
            return false;
    return true;
}

/* The index says where metadata end, and whether the file was closed; where data end, only metadata do. */
static bool is_whole(const struct und_directory *directory, const char *path, struct und_error *error)
{
    struct member members[MEMBERS] = {{NULL, 0}};
    const struct member *index = &members[INDEX];
    const char *name = und_directory_name(directory, path);
    struct stat status;
    if (stat(name, &status) == 0 && !S_ISDIR(status.st_mode))
        return true; /* HDF5 says what it could not do */
    bool whole = true;
    for (int m = 0; whole && m < MEMBERS; ++m)
        whole = load_member(name, m, &members[m]);
    if (!whole) {
        und_fail(error, "%s", strerror(errno));
    } else if (!index->bytes || index->size < HEADER || !members[METADATA].bytes) {
        whole = und_fail(error, "it has no index of a BP file");
    } else {
        const uint64_t metadata_bytes = members[METADATA].size;
        const bool is_5 = index->bytes[BP_VERSION] == 5;
        if (index->bytes[is_5 ? ACTIVE_BP5 : ACTIVE_BP4] != 0)
            whole = und_fail(error, "it was not closed");
        else if (is_5 ? !steps_are_whole(index, metadata_bytes) || !types_are_whole(&members[META_METADATA])
                      : !rows_are_whole(index, metadata_bytes))
            whole = und_fail(error, "its metadata are shorter than its index says");
    }
    for (int m = 0; m < MEMBERS; ++m)
        free(members[m].bytes);
    return whole;
}

/* -- files --------------------------------------------------------------------------------------------------------- */

static void enter_library(const char *path)
{
    if (users++ == 0)
        library = adios2_init_mpi(MPI_COMM_SELF);
    if (!library)
        UND_DIE("adios2: cannot initialize the library for %s", path);
}

static void leave_library(const char *path)
{
    if (--users == 0 && adios2_finalize(library) != adios2_error_none)
        UND_DIE("adios2: cannot finalize the library for %s", path);
}

static void begin_step(struct und_file *file)
{
    adios2_step_status status = adios2_step_status_ok;
    check(adios2_begin_step(file->engine, adios2_step_mode_append, -1.0F, &status), file, "begin a step of ", NULL);
    if (status != adios2_step_status_ok)
        UND_DIE("adios2: cannot begin a step of %s: ADIOS2 is not ready for it", file->path);
    file->in_step = true; /* counted is its end: a data phase has as many calls as transfers */
}

static void end_step(struct und_file *file)
{
    check(adios2_end_step(file->engine), file, "write ", NULL);
    file->in_step = false;
    ++*file->operations;
}

/* ADIOS2 takes what is left of a damaged index for all, and breaks where types are cut. */
static void check_whole(const struct und_file *file)
{
    struct und_error error;
    if (file->reads && file->rank == 0 && !is_whole(file->directory, file->path, &error))
        UND_DIE("adios2: cannot open %s: %s", file->path, error.text);
    if (file->reads)
        UND_MPI(MPI_Barrier(file->comm), "adios2: cannot open %s", file->path);
}

static struct und_file *open_file(const struct und_open *how)
{
    const size_t length = strlen(how->path) + 1;
    struct und_file *file = calloc(1, sizeof *file + length);
    UND_CHECK(file, "adios2: no memory to open %s", how->path);
    memcpy(file->path, how->path, length);
    if (how->settings)
        memcpy(file->settings, how->settings, sizeof file->settings);
    MPI_Comm_rank(how->comm, &file->rank);
    file->comm = how->comm;
    file->node = MPI_COMM_NULL;
    file->reads = how->mode == UND_READ;
    file->append = how->append;
    file->lasting = how->lasting;
    file->directory = how->directory;
    file->operations = how->operations;
    check_whole(file);
    enter_library(how->path);
    snprintf(file->name, sizeof file->name, "und%" PRId64, opened++);
    file->io = adios2_declare_io(library, file->name);
    if (!file->io)
        fail(file, adios2_error_exception, "open ", NULL);
    check(adios2_set_engine(file->io, engines[file->settings[ENGINE]]), file, "open ", NULL);
    set_parameters(file);
    file->engine = adios2_open_new_comm(file->io, und_directory_name(how->directory, how->path),
                                        file->reads               ? adios2_mode_readRandomAccess
                                        : how->mode == UND_CREATE ? adios2_mode_write
                                                                  : adios2_mode_append,
                                        how->comm);
    if (!file->engine)
        fail(file, adios2_error_exception, "open ", NULL);
    ++*file->operations;
    return file;
}

static adios2_type type_of(enum und_type type)
{
    switch (type) {
    case UND_I8: return adios2_type_int8_t;
    case UND_I16: return adios2_type_int16_t;
    case UND_U16: return adios2_type_uint16_t;
    case UND_I32: return adios2_type_int32_t;
    case UND_U32: return adios2_type_uint32_t;
    case UND_I64: return adios2_type_int64_t;
    case UND_U64: return adios2_type_uint64_t;
    case UND_F32: return adios2_type_float;
    case UND_F64: return adios2_type_double;
    case UND_BYTE:
    case UND_U8: break;
    }
    return adios2_type_uint8_t;
}

static void find_variable(struct und_file *file, const struct und_dataset *dataset)
{
    size_t ndims = 0, shape[UND_MAX_DIMS] = {0}, steps = 0;
    adios2_type type = adios2_type_unknown;
    file->variable = adios2_inquire_variable(file->io, dataset->name);
    if (!file->variable)
        UND_DIE("adios2: %s has no variable %s", file->path, dataset->name);
    check(adios2_variable_ndims(&ndims, file->variable), file, "look at ", dataset->name);
    check(adios2_variable_type(&type, file->variable), file, "look at ", dataset->name);
    bool same = ndims == (size_t)dataset->ndims && type == type_of(dataset->type);
    if (same)
        check(adios2_variable_shape(shape, file->variable), file, "look at ", dataset->name);
    for (int d = file->append; same && d < dataset->ndims; ++d)
        same = shape[d] == (size_t)dataset->shape[d];
    check(adios2_variable_steps(&steps, file->variable), file, "look at ", dataset->name);
    if (!same || (uint64_t)dataset->earlier_steps >= steps)
        UND_DIE("adios2: %s of %s has another shape than the workload says", dataset->name, file->path);
    check(adios2_set_step_selection(file->variable, (size_t)dataset->earlier_steps, 1), file, "read ", dataset->name);
}

static void define(struct und_file *file, const struct und_dataset *dataset, const struct und_box *block)
{
    size_t shape[UND_MAX_DIMS], start[UND_MAX_DIMS], count[UND_MAX_DIMS];
    if (file->reads) {
        find_variable(file, dataset);
        return;
    }
    for (int d = 0; d < dataset->ndims; ++d) {
        shape[d] = (size_t)dataset->shape[d];
        start[d] = (size_t)block->start[d];
        count[d] = (size_t)block->count[d];
    }
    file->variable = adios2_inquire_variable(file->io, dataset->name);
    const bool is_new = !file->variable;
    if (!is_new)
        check(adios2_set_shape(file->variable, (size_t)dataset->ndims, shape), file, "define ", dataset->name);
    else
        file->variable = adios2_define_variable(file->io, dataset->name, type_of(dataset->type), (size_t)dataset->ndims,
                                                shape, start, count, adios2_constant_dims_false);
    if (!file->variable)
        fail(file, adios2_error_exception, "define ", dataset->name);
    /* Datasets of HDF5 are made where a step begins, by all ranks, so it begins again where one is new. Each rank that
     * puts nothing into one removes it, without the others. */
    const bool in_hdf5 = file->settings[ENGINE] == HDF5;
    if (!file->in_step || (is_new && in_hdf5))
        begin_step(file);
    if (in_hdf5 && und_box_bytes(dataset, block) == 0) {
        static const int64_t nothing;
        check(adios2_put(file->engine, file->variable, &nothing, adios2_mode_sync), file, "define ", dataset->name);
    }
}

static void select_box(const struct und_file *file, const struct und_dataset *dataset, const struct und_box *box)
{
    size_t start[UND_MAX_DIMS], count[UND_MAX_DIMS];
    for (int d = 0; d < dataset->ndims; ++d) {
        start[d] = (size_t)box->start[d];
        count[d] = (size_t)box->count[d];
    }
    check(adios2_set_selection(file->variable, (size_t)dataset->ndims, start, count), file, "select a part of ",
          dataset->name);
}

static void write_box(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box,
                      const void *data)
{
    select_box(file, dataset, box);
    check(adios2_put(file->engine, file->variable, data,
                     file->settings[PUT] == SYNC ? adios2_mode_sync : adios2_mode_deferred),
          file, "write ", dataset->name);
    ++*file->operations;
}

static void read_box(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data)
{
    select_box(file, dataset, box);
    check(adios2_get(file->engine, file->variable, data, adios2_mode_sync), file, "read ", dataset->name);
    ++*file->operations;
}

static bool flush(void *context, int descriptor, const char *name)
{
    (void)context, (void)name;
    return fsync(descriptor) == 0;
}

/* What a node has in its memory one of its ranks flushes, of all files: which rank wrote to which only ADIOS2 knows. */
static void flush_all(struct und_file *file)
{
    int rank;
    if (file->node == MPI_COMM_NULL)
        UND_MPI(MPI_Comm_split_type(file->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &file->node),
                "adios2: cannot find the nodes of %s", file->path);
    MPI_Comm_rank(file->node, &rank);
    UND_MPI(MPI_Barrier(file->comm), "adios2: cannot flush %s", file->path);
    if (rank == 0 && file->settings[ENGINE] != HDF5) {
        UND_CHECK(und_directory_visit(file->directory, file->path, flush, NULL), "adios2: cannot flush %s", file->path);
    } else if (rank == 0) {
        const int descriptor = open(und_directory_name(file->directory, file->path), O_RDONLY | O_CLOEXEC);
        UND_CHECK(descriptor >= 0 && fsync(descriptor) == 0, "adios2: cannot flush %s", file->path);
        close(descriptor);
    }
    UND_MPI(MPI_Barrier(file->comm), "adios2: cannot flush %s", file->path);
}

/* The step ends, with which ADIOS2 has written it. */
static void sync_file(struct und_file *file)
{
    if (file->in_step)
        end_step(file);
    if (file->lasting)
        flush_all(file);
}

static void close_file(struct und_file *file)
{
    adios2_bool removed;
    if (file->in_step)
        end_step(file);
    check(adios2_close(file->engine), file, "close ", NULL);
    check(adios2_remove_io(&removed, library, file->name), file, "close ", NULL);
    ++*file->operations;
    if (file->node != MPI_COMM_NULL)
        MPI_Comm_free(&file->node);
    leave_library(file->path);
    free(file);
}

const struct und_method und_method_adios2 = {
    .name = "adios2",
    .suffix = ".bp",
    .has_files = true,
    .complete = true,
    .hides_calls = true,
    .buffers = true,
    .waits = true,
    .settings = settings,
    .settle = settle,
    .is_member = is_member,
    .members = members,
    .memory = memory,
    .whole = is_whole,
    .version = version,
    .open = open_file,
    .define = define,
    .write = write_box,
    .read = read_box,
    .sync = sync_file,
    .close = close_file,
};

#else

const struct und_method und_method_adios2 = {
    .name = "adios2",
    .suffix = ".bp",
    .unavailable = "no ADIOS2 with MPI was found when this program was built",
    .has_files = true,
    .buffers = true,
    .is_member = is_member,
};

#endif
