/*
 * Parallel HDF5: one dataset per variable, moved by hyperslabs through the MPI-IO driver. Datasets
 * are contiguous and not filled but where asked for; in appended files they are chunked and grow along
 * dimension 0.
 */
#include "interfaces/method.h"

#ifdef UND_HAVE_HDF5

#include "job/die.h"
#include "storage/run_directory.h"
#include "storage/space.h"

#include <hdf5.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An index of chunks has at least that many entries in a node. HDF5's own 32 makes a node of 3 kB, which every
 * dataset has, however few its chunks are. */
enum { CHUNKS_OF_NODE = 4 };

enum { MOST_CHUNK_BYTES = 4 * 1024 * 1024, CACHE_BYTES = 1024 * 1024 };

enum { ALIGNMENT, CHUNK, DEFLATE, SHUFFLE, LIBVER, COLLECTIVE_METADATA, FLUSH, FILL };
enum { EARLIEST, LATEST };
enum { STATE, NEVER };

static const char *const no_yes[] = {"no", "yes", NULL};
static const char *const versions[] = {"earliest", "latest", NULL};
static const char *const flushes[] = {"state", "never", NULL};

static const struct und_setting settings[] = {
    [ALIGNMENT] = {.name = "alignment",
                   .bytes = true,
                   .most = INT64_MAX,
                   .default_value = "0",
                   .help = "objects of at least that size begin at multiples of it (H5Pset_alignment); 0 = none"},
    [CHUNK] = {.name = "chunk",
               .bytes = true,
               .most = UINT32_MAX,
               .default_value = "0",
               .help = "maximum bytes of a chunk; 0 = contiguous, in appended files 4MiB"},
    [DEFLATE] = {.name = "deflate",
                 .most = 9,
                 .default_value = "0",
                 .help = "compress chunks (gzip level); 0 = do not"},
    [SHUFFLE] = {.name = "shuffle", .choices = no_yes, .default_value = "no", .help = "reorder the bytes of chunks"},
    [LIBVER] = {.name = "libver", .choices = versions, .default_value = "earliest", .help = "file format"},
    [COLLECTIVE_METADATA] = {.name = "collective_metadata",
                             .choices = no_yes,
                             .default_value = "no",
                             .help = "metadata are read and written collectively"},
    [FLUSH] = {.name = "flush",
               .choices = flushes,
               .default_value = "state",
               .help = "when appended files are flushed; -e wins"},
    [FILL] = {.name = "fill",
              .choices = no_yes,
              .default_value = "no",
              .help = "fill datasets when they are made, as HDF5 does unless it is told not to"},
    {.name = NULL},
};

struct und_file {
    int64_t settings[UND_MAX_SETTINGS];
    hid_t handle;
    hid_t transfer; /* property list: independent calls, but for filters */
    hid_t together; /* property list: collective calls */
    hid_t type;     /* of the current dataset; a predefined one, never closed */
    hid_t dataset;  /* the one that `define` named last; negative before */
    hid_t space;    /* its extent, and the hyperslab of the box in hand */
    hid_t memory;   /* a contiguous buffer with the counts of the last box */
    hid_t nothing;  /* memory of an empty box */
    hsize_t memory_count[UND_MAX_DIMS];
    int memory_ndims;
    hsize_t first_row;
    bool reading;
    bool append;
    bool alone; /* opened without the driver of MPI-IO */
    const struct und_directory *directory;
    int64_t *operations;
    char path[];
};

static herr_t keep_innermost(unsigned depth, const H5E_error2_t *error, void *text)
{
    if (depth == 0 && error->desc)
        snprintf(text, 200, "%s", error->desc);
    return 0;
}

/* Ends the run with the description that lies deepest in HDF5's stack of errors, unless the file
 * system is full: the MPI-IO beneath may not say so. */
static _Noreturn void fail(const struct und_file *file, const char *doing, const char *what)
{
    char text[200] = "no reason given by HDF5";
    const int refusal = file->reading ? 0 : und_space_refusal(file->directory, file->path, UND_FULL_BYTES);
    if (refusal != 0)
        snprintf(text, sizeof text, "%s", strerror(refusal));
    else
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, text);
    UND_DIE("hdf5: cannot %s%s%s%s: %s", doing, what ? what : "", what ? " of " : "", file->path, text);
}

static hid_t checked(hid_t id, const struct und_file *file, const char *doing, const char *what)
{
    if (id < 0)
        fail(file, doing, what);
    return id;
}

static void check(herr_t code, const struct und_file *file, const char *doing, const char *what)
{
    if (code < 0)
        fail(file, doing, what);
}

static hid_t native_type(enum und_type type)
{
    switch (type) {
    case UND_I8: return H5T_NATIVE_INT8;
    case UND_I16: return H5T_NATIVE_INT16;
    case UND_U16: return H5T_NATIVE_UINT16;
    case UND_I32: return H5T_NATIVE_INT32;
    case UND_U32: return H5T_NATIVE_UINT32;
    case UND_I64: return H5T_NATIVE_INT64;
    case UND_U64: return H5T_NATIVE_UINT64;
    case UND_F32: return H5T_NATIVE_FLOAT;
    case UND_F64: return H5T_NATIVE_DOUBLE;
    case UND_BYTE:
    case UND_U8: break;
    }
    return H5T_NATIVE_UINT8;
}

static void version(char *text, int size)
{
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    snprintf(text, (size_t)size, "hdf5 %u.%u.%u", major, minor, release);
}

/* In turns every rank opens the file for itself, without the MPI driver; the baton is lock enough. */
static hid_t file_access(const struct und_file *file, const struct und_open *how)
{
    hid_t access = checked(H5Pcreate(H5P_FILE_ACCESS), file, "open ", NULL);
    if (!how->turns)
        check(H5Pset_fapl_mpio(access, how->comm, how->hints), file, "open ", NULL);
#if H5_VERSION_GE(1, 10, 7)
    if (how->turns)
        check(H5Pset_file_locking(access, false, true), file, "open ", NULL);
#endif
    const int64_t alignment = file->settings[ALIGNMENT];
    if (alignment > 0)
        check(H5Pset_alignment(access, (hsize_t)alignment, (hsize_t)alignment), file, "align ", NULL);
    if (file->settings[LIBVER] == LATEST)
        check(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), file, "open ", NULL);
    if (file->settings[COLLECTIVE_METADATA] && !how->turns) {
        check(H5Pset_coll_metadata_write(access, true), file, "open ", NULL);
        check(H5Pset_all_coll_metadata_ops(access, true), file, "open ", NULL);
    }
    return access;
}

static hid_t create_file(const struct und_file *file, hid_t access, bool creates)
{
    hid_t creation = checked(H5Pcreate(H5P_FILE_CREATE), file, "create ", NULL);
    if (file->append)
        check(H5Pset_istore_k(creation, CHUNKS_OF_NODE), file, "create ", NULL);
    hid_t handle = checked(H5Fcreate(und_directory_name(file->directory, file->path),
                                     creates ? H5F_ACC_EXCL : H5F_ACC_TRUNC, creation, access),
                           file, "create ", NULL);
    check(H5Pclose(creation), file, "create ", NULL);
    return handle;
}

static bool filters(const int64_t *values)
{
    return values[DEFLATE] > 0 || values[SHUFFLE];
}

static bool settle(const int64_t *values, struct und_use *use, struct und_error *error)
{
    use->packs = filters(values);
    if (use->append && values[FLUSH] == NEVER && !use->must_sync)
        use->sync = false;
    if (!filters(values))
        return true;
    if (values[CHUNK] == 0 && !use->append)
        return und_fail(error, "hdf5.deflate and hdf5.shuffle need hdf5.chunk, the bytes of a chunk");
    if (values[DEFLATE] > 0 && H5Zfilter_avail(H5Z_FILTER_DEFLATE) <= 0)
        return und_fail(error, "hdf5.deflate is not in this build of HDF5");
    if (use->shares && !H5_VERSION_GE(1, 10, 2))
        return und_fail(error, "hdf5.deflate and hdf5.shuffle need HDF5 1.10.2 where ranks share a file");
    if (use->shares && !use->collective)
        return und_fail(error, "hdf5.deflate and hdf5.shuffle need collective calls where ranks share a file: give "
                               "--collective");
    return true;
}

/* The cache of chunks of the open dataset (H5Pset_chunk_cache has 1 MiB), or the chunks of a call that are
 * filtered, before and after. */
static int64_t memory(const int64_t *values, const struct und_load *load)
{
    const int64_t chunk = values[CHUNK] > 0 ? values[CHUNK] : MOST_CHUNK_BYTES;
    if (!load->append && values[CHUNK] == 0)
        return 0;
    return CACHE_BYTES + (filters(values) ? 2 * (load->transfer_bytes + chunk) : 0);
}

static struct und_file *open_file(const struct und_open *how)
{
    size_t length = strlen(how->path) + 1;
    struct und_file *file = calloc(1, sizeof *file + length);
    UND_CHECK(file, "hdf5: no memory to open %s", how->path);
    memcpy(file->path, how->path, length);
    file->dataset = file->space = -1;
    file->reading = how->mode == UND_READ;
    file->append = how->append;
    file->alone = how->turns;
    if (how->settings)
        memcpy(file->settings, how->settings, sizeof file->settings);
    file->directory = how->directory;
    file->operations = how->operations;

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t access = file_access(file, how);
    file->handle = how->mode == UND_CREATE ? create_file(file, access, how->creates)
                   : how->mode == UND_READ
                       ? H5Fopen(und_directory_name(how->directory, how->path), H5F_ACC_RDONLY, access)
                       : H5Fopen(und_directory_name(how->directory, how->path), H5F_ACC_RDWR, access);
    checked(file->handle, file, how->mode == UND_CREATE ? "create " : "open ", NULL);
    check(H5Pclose(access), file, "open ", NULL);
    ++*file->operations;

    /* Filters are for collective calls, which a rank alone can make as well. */
    int size;
    MPI_Comm_size(how->comm, &size);
    const bool filtered = size == 1 && filters(file->settings);
    file->transfer = checked(H5Pcreate(H5P_DATASET_XFER), file, "open ", NULL);
    file->together = checked(H5Pcreate(H5P_DATASET_XFER), file, "open ", NULL);
    if (!how->turns) {
        const H5FD_mpio_xfer_t alone = filtered ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT;
        check(H5Pset_dxpl_mpio(file->transfer, alone), file, "open ", NULL);
        check(H5Pset_dxpl_mpio(file->together, H5FD_MPIO_COLLECTIVE), file, "open ", NULL);
    }
    const hsize_t element = 1;
    file->memory = checked(H5Screate_simple(1, &element, NULL), file, "open ", NULL);
    file->nothing = checked(H5Screate_simple(1, &element, NULL), file, "open ", NULL);
    check(H5Sselect_none(file->nothing), file, "open ", NULL);
    return file;
}

/*
 * Chunks of one time step: all of it if it fits, else cut along the slowest dimensions, into equal
 * parts where a number of parts up to twice the minimum divides the dimension, so that equal steps
 * fill their chunks.
 */
static void choose_chunk(const struct und_dataset *dataset, int64_t most_bytes, hsize_t *chunk)
{
    int64_t bytes = und_type_bytes(dataset->type);
    for (int d = 0; d < dataset->ndims; ++d)
        bytes *= dataset->shape[d];
    for (int d = 0; d < dataset->ndims; ++d) {
        int64_t n = dataset->shape[d];
        int64_t least = (bytes - 1) / most_bytes + 1;
        int64_t parts = least;
        while (parts < 2 * least && parts < n && n % parts != 0)
            ++parts;
        if (parts > n)
            parts = n;
        else if (n % parts != 0)
            parts = least;
        chunk[d] = (hsize_t)((n + parts - 1) / parts);
        bytes = bytes / n * (int64_t)chunk[d];
    }
}

static hid_t create_dataset(const struct und_file *file, const struct und_dataset *dataset)
{
    hsize_t shape[UND_MAX_DIMS], most[UND_MAX_DIMS], chunk[UND_MAX_DIMS];
    for (int d = 0; d < dataset->ndims; ++d)
        shape[d] = most[d] = (hsize_t)dataset->shape[d];

    const char *doing = "create dataset ";
    hid_t creation = checked(H5Pcreate(H5P_DATASET_CREATE), file, doing, dataset->name);
    check(H5Pset_fill_time(creation, file->settings[FILL] ? H5D_FILL_TIME_ALLOC : H5D_FILL_TIME_NEVER), file, doing,
          dataset->name);
    /* The size of a chunk behind a filter is not known before. */
    check(H5Pset_alloc_time(creation, filters(file->settings) ? H5D_ALLOC_TIME_INCR : H5D_ALLOC_TIME_EARLY), file,
          doing, dataset->name);
    if (file->append)
        most[0] = H5S_UNLIMITED;
    if (file->append || file->settings[CHUNK] > 0) {
        choose_chunk(dataset, file->settings[CHUNK] > 0 ? file->settings[CHUNK] : MOST_CHUNK_BYTES, chunk);
        check(H5Pset_chunk(creation, dataset->ndims, chunk), file, doing, dataset->name);
    }
    if (file->settings[SHUFFLE])
        check(H5Pset_shuffle(creation), file, doing, dataset->name);
    if (file->settings[DEFLATE] > 0)
        check(H5Pset_deflate(creation, (unsigned)file->settings[DEFLATE]), file, doing, dataset->name);
    hid_t space = checked(H5Screate_simple(dataset->ndims, shape, most), file, doing, dataset->name);
    hid_t links = checked(H5Pcreate(H5P_LINK_CREATE), file, doing, dataset->name);
    check(H5Pset_create_intermediate_group(links, 1), file, doing, dataset->name);
    hid_t id = checked(H5Dcreate2(file->handle, dataset->name, file->type, space, links, creation, H5P_DEFAULT), file,
                       doing, dataset->name);
    check(H5Pclose(links), file, doing, dataset->name);
    check(H5Sclose(space), file, doing, dataset->name);
    check(H5Pclose(creation), file, doing, dataset->name);
    return id;
}

static void extend_dataset(const struct und_file *file, const struct und_dataset *dataset)
{
    hsize_t shape[UND_MAX_DIMS];
    for (int d = 0; d < dataset->ndims; ++d)
        shape[d] = (hsize_t)dataset->shape[d];
    shape[0] += (hsize_t)dataset->first_row;
    check(H5Dset_extent(file->dataset, shape), file, "extend dataset ", dataset->name);
}

static void close_dataset(struct und_file *file)
{
    if (file->dataset < 0)
        return;
    check(H5Sclose(file->space), file, "close a dataset of ", NULL);
    check(H5Dclose(file->dataset), file, "close a dataset of ", NULL);
    file->dataset = file->space = -1;
}

/* A file of another workload, or of other ranks in turns, must not be read as if it were this one's. */
static void check_shape(const struct und_file *file, const struct und_dataset *dataset)
{
    hsize_t shape[H5S_MAX_RANK];
    const int ndims = H5Sget_simple_extent_dims(file->space, shape, NULL);
    bool same = ndims == dataset->ndims;
    for (int d = 1; same && d < ndims; ++d)
        same = shape[d] == (hsize_t)dataset->shape[d];
    if (!same || shape[0] < (hsize_t)(dataset->first_row + dataset->shape[0]))
        UND_DIE("hdf5: dataset %s of %s has another shape than the workload says", dataset->name, file->path);
}

static void define(struct und_file *file, const struct und_dataset *dataset, const struct und_box *block)
{
    (void)block;
    close_dataset(file);
    file->type = native_type(dataset->type);
    file->first_row = (hsize_t)dataset->first_row;
    if (file->reading || dataset->exists || dataset->first_row > 0) {
        file->dataset =
            checked(H5Dopen2(file->handle, dataset->name, H5P_DEFAULT), file, "open dataset ", dataset->name);
        if (dataset->first_row > 0 && !file->reading)
            extend_dataset(file, dataset);
    } else {
        file->dataset = create_dataset(file, dataset);
    }
    file->space = checked(H5Dget_space(file->dataset), file, "open dataset ", dataset->name);
    if (file->reading || dataset->exists)
        check_shape(file, dataset);
}

/* Points the file's hyperslab at the box and returns the memory that matches it. */
static hid_t select_box(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box)
{
    hsize_t start[UND_MAX_DIMS], count[UND_MAX_DIMS];
    bool same = file->memory_ndims == dataset->ndims;
    bool empty = false;
    for (int d = 0; d < dataset->ndims; ++d) {
        start[d] = (hsize_t)box->start[d];
        count[d] = (hsize_t)box->count[d];
        same = same && count[d] == file->memory_count[d];
        empty = empty || count[d] == 0;
    }
    if (empty) {
        check(H5Sselect_none(file->space), file, "select a part of dataset ", dataset->name);
        return file->nothing;
    }
    start[0] += file->first_row;
    check(H5Sselect_hyperslab(file->space, H5S_SELECT_SET, start, NULL, count, NULL), file, "select a part of dataset ",
          dataset->name);
    if (!same) {
        check(H5Sset_extent_simple(file->memory, dataset->ndims, count, NULL), file, "select a part of dataset ",
              dataset->name);
        memcpy(file->memory_count, count, sizeof *count * (size_t)dataset->ndims);
        file->memory_ndims = dataset->ndims;
    }
    return file->memory;
}

static void write_box(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box,
                      const void *data)
{
    hid_t memory = select_box(file, dataset, box);
    const hid_t transfer = dataset->collective ? file->together : file->transfer;
    check(H5Dwrite(file->dataset, file->type, memory, file->space, transfer, data), file, "write dataset ",
          dataset->name);
    ++*file->operations;
}

static void read_box(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data)
{
    hid_t memory = select_box(file, dataset, box);
    const hid_t transfer = dataset->collective ? file->together : file->transfer;
    check(H5Dread(file->dataset, file->type, memory, file->space, transfer, data), file, "read dataset ",
          dataset->name);
    ++*file->operations;
}

static void sync_file(struct und_file *file)
{
    check(H5Fflush(file->handle, H5F_SCOPE_GLOBAL), file, "flush ", NULL);
    ++*file->operations;
}

static void close_file(struct und_file *file)
{
    close_dataset(file);
    check(H5Sclose(file->memory), file, "close ", NULL);
    check(H5Sclose(file->nothing), file, "close ", NULL);
    check(H5Pclose(file->transfer), file, "close ", NULL);
    check(H5Pclose(file->together), file, "close ", NULL);
    check(H5Fclose(file->handle), file, "close ", NULL);
    ++*file->operations;
    free(file);
}

/* The driver's handle is the file of MPI, or of the system where no communicator shares it. */
static void hints_in_force(const struct und_file *file, MPI_Info *hints)
{
    MPI_File *handle = NULL;
    void *raw = NULL;
    *hints = MPI_INFO_NULL;
    if (file->alone)
        return;
    check(H5Fget_vfd_handle(file->handle, H5P_DEFAULT, &raw), file, "read the hints of ", NULL);
    handle = raw;
    UND_MPI(MPI_File_get_info(*handle, hints), "hdf5: cannot read the hints of %s", file->path);
}

static const char *const default_hints[] = {NULL};

const struct und_method und_method_hdf5 = {
    .name = "hdf5",
    .suffix = ".h5",
    .has_files = true,
    .hides_calls = true,
    .buffers = true,
    .collective = true,
    .most_call_bytes = INT_MAX, /* its driver of MPI-IO counts bytes in an int */
    .settings = settings,
    .settle = settle,
    .memory = memory,
    .version = version,
    .hints = default_hints,
    .can = UND_CAN_KEEP | UND_CAN_EMPTY | UND_CAN_EACH_FILE,
    .open = open_file,
    .hints_in_force = hints_in_force,
    .define = define,
    .write = write_box,
    .read = read_box,
    .sync = sync_file,
    .close = close_file,
};

#else

const struct und_method und_method_hdf5 = {
    .name = "hdf5",
    .suffix = ".h5",
    .unavailable = "no parallel HDF5 was found when this program was built",
    .has_files = true,
    .buffers = true,
    .collective = true,
};

#endif
