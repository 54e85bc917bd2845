/*
 * MPI-IO: explicit offsets, independent or collective. A dataset that is contiguous on every rank
 * is written in the default view; otherwise one file view per dataset selects the rank's block, so
 * that a transfer of several rows is still one call.
 */
#include "interfaces/method.h"
#include "job/die.h"
#include "storage/run_directory.h"
#include "storage/space.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH, SPLIT };

static const char *const split_choices[] = {"no", "yes", NULL};

static const struct und_setting settings[] = {
    [DEPTH] = {.name = "depth",
               .most = UND_MAX_DEPTH,
               .default_value = "0",
               .help = "independent calls of a rank in flight at a time; 0 = as a move states"},
    [SPLIT] = {.name = "split",
               .choices = split_choices,
               .default_value = "no",
               .help = "make each collective call as two (MPI_File_write_at_all_begin and _end)"},
    {.name = NULL},
};

/* How one call tells its bytes: the count is an int, so more than that are counted in larger elements, as an
 * application does; with a rest behind them they are one element. */
struct unit {
    MPI_Datatype type;
    int count;
    int64_t bytes; /* of the call */
};

/* A call that was begun. */
struct flight {
    struct unit unit;
    bool writes;
    int64_t offset;
    void *data;
};

struct und_file {
    MPI_File handle;
    MPI_Request *requests; /* of the calls that were begun */
    struct flight *flights;
    int flight_count, flight_capacity;
    MPI_Comm comm;
    const struct und_directory *directory;
    int64_t *operations;
    bool writing;
    bool viewed;                  /* the view is not the default one */
    bool splits;                  /* collective calls are split ones */
    bool is_split;                /* one of them has begun, */
    struct flight split;          /* which is this */
    int64_t base;                 /* byte of the view where the current dataset begins */
    int64_t origin[UND_MAX_DIMS]; /* element of the dataset at `base` */
    int64_t stride[UND_MAX_DIMS]; /* bytes of the view from one index to the next */
    char path[];
};

static struct unit begin_call(int64_t bytes)
{
    struct unit unit = {.type = MPI_BYTE, .count = (int)bytes, .bytes = bytes};
    int64_t each = 1;
    if (bytes <= INT_MAX)
        return unit;
    while (bytes / each > INT_MAX)
        each *= 2;
    unit.count = (int)(bytes / each);
    MPI_Type_contiguous((int)each, MPI_BYTE, &unit.type);
    if (bytes % each != 0) {
        MPI_Datatype types[] = {unit.type, MPI_BYTE}, all;
        const int counts[] = {unit.count, (int)(bytes % each)};
        const MPI_Aint begins[] = {0, bytes - bytes % each};
        MPI_Type_create_struct(2, counts, begins, types, &all);
        MPI_Type_free(&unit.type);
        unit.type = all;
        unit.count = 1;
    }
    MPI_Type_commit(&unit.type);
    return unit;
}

/* A full disk may come as success with fewer bytes, so the count is compared as well. */
static void end_call(int code, const MPI_Status *status, struct unit *unit, const struct und_file *file,
                     const char *doing, int64_t offset)
{
    const long long bytes = unit->bytes;
    MPI_Count moved = 0; /* ROMIO leaves the status of a call that moves nothing undefined */
    if (code == MPI_SUCCESS && bytes > 0)
        MPI_Get_elements_x(status, unit->type, &moved);
    if (unit->type != MPI_BYTE)
        MPI_Type_free(&unit->type);
    ++*file->operations;
    if (code == MPI_SUCCESS && moved == bytes)
        return;
    const int refusal = file->writing ? und_space_refusal(file->directory, file->path, bytes) : 0;
    if (refusal != 0)
        UND_DIE("mpiio: cannot %s %lld bytes at byte %lld of %s: %s", doing, bytes, (long long)offset, file->path,
                strerror(refusal));
    UND_MPI(code, "mpiio: cannot %s %lld bytes at byte %lld of %s", doing, bytes, (long long)offset, file->path);
    UND_DIE("mpiio: cannot %s %lld bytes at byte %lld of %s: only %lld were moved, which MPI reports as success", doing,
            bytes, (long long)offset, file->path, (long long)moved);
}

/* Ends the split collective call that has begun, of which a file has one at a time. */
static void end_split(struct und_file *file)
{
    MPI_Status status;
    struct flight *split = &file->split;
    if (!file->is_split)
        return;
    file->is_split = false;
    const int code = split->writes ? MPI_File_write_at_all_end(file->handle, split->data, &status)
                                   : MPI_File_read_at_all_end(file->handle, split->data, &status);
    end_call(code, &status, &split->unit, file, split->writes ? "write" : "read", split->offset);
}

/* Has the call ended? Then its bytes are checked. Open MPI crashes where MPI_Wait meets an error of a file. */
static bool has_ended(struct und_file *file, int i)
{
    struct flight *flight = &file->flights[i];
    MPI_Status status;
    MPI_Count moved = 0;
    int done = 0, code = MPI_Request_get_status(file->requests[i], &done, &status);
    if (code == MPI_SUCCESS && !done)
        return false;
    if (code == MPI_SUCCESS && flight->unit.bytes > 0)
        MPI_Get_elements_x(&status, flight->unit.type, &moved);
    if (code == MPI_SUCCESS && moved == flight->unit.bytes)
        code = MPI_Wait(&file->requests[i], &status);
    end_call(code, &status, &flight->unit, file, flight->writes ? "write" : "read", flight->offset);
    return true;
}

static void wait_all(struct und_file *file)
{
    end_split(file);
    for (int i = 0; i < file->flight_count; ++i)
        while (!has_ended(file, i))
            continue;
    file->flight_count = 0;
}

/* The first that has ended, in the order of their begin. */
static void *finish(struct und_file *file)
{
    int i = 0;
    while (!has_ended(file, i))
        i = (i + 1) % file->flight_count;
    void *data = file->flights[i].data;
    --file->flight_count;
    for (; i < file->flight_count; ++i) {
        file->flights[i] = file->flights[i + 1];
        file->requests[i] = file->requests[i + 1];
    }
    return data;
}

static struct und_file *open_file(const struct und_open *how)
{
    size_t length = strlen(how->path) + 1;
    struct und_file *file = calloc(1, sizeof *file + length);
    UND_CHECK(file, "mpiio: no memory to open %s", how->path);
    memcpy(file->path, how->path, length);
    file->comm = how->comm;
    file->writing = how->mode != UND_READ;
    file->directory = how->directory;
    file->operations = how->operations;
    file->splits = how->settings && how->settings[SPLIT];

    const int access = how->mode == UND_READ ? MPI_MODE_RDONLY
                       : how->creates        ? MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL
                                             : MPI_MODE_RDWR;
    UND_MPI(MPI_File_open(how->comm, und_directory_name(how->directory, how->path), access, how->hints, &file->handle),
            "mpiio: cannot %s %s", how->creates ? "create" : "open", how->path);
    ++*file->operations;
    return file;
}

/* Does the block consist of more than one run of bytes of the dataset? */
static bool is_strided(const struct und_dataset *dataset, const struct und_box *block)
{
    int whole = dataset->ndims - 1;
    while (whole > 0 && block->count[whole] == dataset->shape[whole])
        --whole;
    int64_t runs = 1;
    for (int d = 0; d < whole; ++d)
        runs *= block->count[d];
    return runs > 1 && und_box_bytes(dataset, block) > 0;
}

static MPI_Datatype block_type(const struct und_file *file, const struct und_dataset *dataset,
                               const struct und_box *block)
{
    int shape[UND_MAX_DIMS], count[UND_MAX_DIMS], start[UND_MAX_DIMS];
    for (int d = 0; d < dataset->ndims; ++d) {
        if (dataset->shape[d] > INT_MAX)
            UND_DIE(
                "mpiio: dimension %d of %s in %s has %lld elements, more than the %d that an MPI datatype describes", d,
                dataset->name, file->path, (long long)dataset->shape[d], INT_MAX);
        shape[d] = (int)dataset->shape[d];
        count[d] = (int)block->count[d];
        start[d] = (int)block->start[d];
    }
    MPI_Datatype element, type;
    MPI_Type_contiguous((int)und_type_bytes(dataset->type), MPI_BYTE, &element);
    UND_MPI(MPI_Type_create_subarray(dataset->ndims, shape, count, start, MPI_ORDER_C, element, &type),
            "mpiio: cannot describe a block of %s in %s", dataset->name, file->path);
    MPI_Type_commit(&type);
    MPI_Type_free(&element);
    return type;
}

static void set_view(struct und_file *file, int64_t first_byte, MPI_Datatype type)
{
    UND_MPI(MPI_File_set_view(file->handle, first_byte, MPI_BYTE, type, "native", MPI_INFO_NULL),
            "mpiio: cannot set the view of %s", file->path);
}

/* The view is collective, so all ranks of the file set one as soon as one of them needs it. */
static void define(struct und_file *file, const struct und_dataset *dataset, const struct und_box *block)
{
    const int64_t bytes = und_box_bytes(dataset, block);
    int view = !dataset->slabs && is_strided(dataset, block);
    if (!dataset->slabs)
        MPI_Allreduce(MPI_IN_PLACE, &view, 1, MPI_INT, MPI_MAX, file->comm);
    if (view || file->viewed)
        wait_all(file); /* nothing may be in flight when a view is set */
    if (view && bytes > 0) {
        MPI_Datatype type = block_type(file, dataset, block);
        set_view(file, dataset->file_offset, type);
        MPI_Type_free(&type);
    } else if (view || file->viewed) {
        set_view(file, 0, MPI_BYTE);
    }
    file->viewed = view;

    file->base = view ? 0 : dataset->file_offset;
    int64_t stride = und_type_bytes(dataset->type);
    for (int d = dataset->ndims - 1; d >= 0; --d) {
        file->origin[d] = view ? block->start[d] : 0;
        file->stride[d] = stride;
        stride *= view ? block->count[d] : dataset->shape[d];
    }
}

static int64_t view_offset(const struct und_file *file, int ndims, const struct und_box *box)
{
    int64_t offset = file->base;
    for (int d = 0; d < ndims; ++d)
        offset += (box->start[d] - file->origin[d]) * file->stride[d];
    return offset;
}

/* Begins a split collective call; the one before it has ended. */
static void begin_split(struct und_file *file, struct unit unit, int64_t offset, void *data, bool writes)
{
    end_split(file);
    file->split = (struct flight){.unit = unit, .writes = writes, .offset = offset, .data = data};
    UND_MPI(writes ? MPI_File_write_at_all_begin(file->handle, offset, data, unit.count, unit.type)
                   : MPI_File_read_at_all_begin(file->handle, offset, data, unit.count, unit.type),
            "mpiio: cannot begin to %s %lld bytes at byte %lld of %s", writes ? "write" : "read", (long long)unit.bytes,
            (long long)offset, file->path);
    file->is_split = true;
}

static void write_box(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box,
                      const void *data)
{
    struct unit unit = begin_call(und_box_bytes(dataset, box));
    const int64_t offset = unit.count > 0 ? view_offset(file, dataset->ndims, box) : 0;
    MPI_Status status;
    if (dataset->collective && file->splits) {
        begin_split(file, unit, offset, (void *)(uintptr_t)data, true);
        end_split(file);
        return;
    }
    int code = dataset->collective ? MPI_File_write_at_all(file->handle, offset, data, unit.count, unit.type, &status)
                                   : MPI_File_write_at(file->handle, offset, data, unit.count, unit.type, &status);
    end_call(code, &status, &unit, file, "write", offset);
}

static void read_box(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data)
{
    struct unit unit = begin_call(und_box_bytes(dataset, box));
    const int64_t offset = unit.count > 0 ? view_offset(file, dataset->ndims, box) : 0;
    MPI_Status status;
    if (dataset->collective && file->splits) {
        begin_split(file, unit, offset, data, false);
        end_split(file);
        return;
    }
    int code = dataset->collective ? MPI_File_read_at_all(file->handle, offset, data, unit.count, unit.type, &status)
                                   : MPI_File_read_at(file->handle, offset, data, unit.count, unit.type, &status);
    end_call(code, &status, &unit, file, "read", offset);
}

static void make_room(struct und_file *file)
{
    if (file->flight_count < file->flight_capacity)
        return;
    file->flight_capacity = 2 * file->flight_capacity + 16;
    file->requests = realloc(file->requests, (size_t)file->flight_capacity * sizeof *file->requests);
    file->flights = realloc(file->flights, (size_t)file->flight_capacity * sizeof *file->flights);
    UND_CHECK(file->requests && file->flights, "mpiio: no memory for %d calls in flight to %s", file->flight_capacity,
              file->path);
}

static void begin_box(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data,
                      bool writes)
{
    if (dataset->collective && file->splits) {
        const struct unit unit = begin_call(und_box_bytes(dataset, box));
        begin_split(file, unit, unit.count > 0 ? view_offset(file, dataset->ndims, box) : 0, data, writes);
        return;
    }
    make_room(file);
    struct flight *flight = &file->flights[file->flight_count];
    MPI_Request *request = &file->requests[file->flight_count++];
    *flight = (struct flight){.unit = begin_call(und_box_bytes(dataset, box)), .writes = writes, .data = data};
    flight->offset = flight->unit.count > 0 ? view_offset(file, dataset->ndims, box) : 0;
    const int count = flight->unit.count;
    const MPI_Datatype type = flight->unit.type;
    int code;
    if (writes)
        code = dataset->collective ? MPI_File_iwrite_at_all(file->handle, flight->offset, data, count, type, request)
                                   : MPI_File_iwrite_at(file->handle, flight->offset, data, count, type, request);
    else
        code = dataset->collective ? MPI_File_iread_at_all(file->handle, flight->offset, data, count, type, request)
                                   : MPI_File_iread_at(file->handle, flight->offset, data, count, type, request);
    UND_MPI(code, "mpiio: cannot begin to %s %lld bytes at byte %lld of %s", writes ? "write" : "read",
            (long long)flight->unit.bytes, (long long)flight->offset, file->path);
}

/* Checks a flush or a close: MPI-IO may know no class for its error. */
static void check_written(int code, const struct und_file *file, const char *doing)
{
    const int refusal =
        code != MPI_SUCCESS && file->writing ? und_space_refusal(file->directory, file->path, UND_FULL_BYTES) : 0;
    if (refusal != 0)
        UND_DIE("mpiio: cannot %s %s: %s", doing, file->path, strerror(refusal));
    UND_MPI(code, "mpiio: cannot %s %s", doing, file->path);
}

static void sync_file(struct und_file *file)
{
    check_written(MPI_File_sync(file->handle), file, "flush");
    ++*file->operations;
}

static void close_file(struct und_file *file)
{
    check_written(MPI_File_close(&file->handle), file, "close");
    ++*file->operations;
    free(file->requests);
    free(file->flights);
    free(file);
}

static void hints_in_force(const struct und_file *file, MPI_Info *hints)
{
    UND_MPI(MPI_File_get_info(file->handle, hints), "mpiio: cannot read the hints of %s", file->path);
}

/* Data sieving would read and rewrite what lies between the rows of other ranks. */
static const char *const default_hints[] = {"romio_ds_write=disable", NULL};

static int64_t depth_of(const int64_t *values, int64_t stated)
{
    const int64_t depth = values[DEPTH] > 0 ? values[DEPTH] : stated;
    return depth > 1 ? depth : 0;
}

const struct und_method und_method_mpiio = {
    .name = "mpiio",
    .has_files = true,
    .hides_calls = true,
    .collective = true,
    .hints = default_hints,
    .settings = settings,
    .can = UND_CAN_KEEP | UND_CAN_EMPTY | UND_CAN_SHARE | UND_CAN_READ_BACK | UND_CAN_EACH_FILE | UND_CAN_BEGIN,
    .open = open_file,
    .hints_in_force = hints_in_force,
    .define = define,
    .write = write_box,
    .read = read_box,
    .begin = begin_box,
    .wait = wait_all,
    .depth = depth_of,
    .finish = finish,
    .sync = sync_file,
    .close = close_file,
};
