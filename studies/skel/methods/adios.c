/*
 * ADIOS 1.13, the library itself: one group and one variable definition per block, without an XML
 * file. Each transfer is a block of a global array; blocks wait in ADIOS' buffer, and reach the file
 * when a step ends, at sync or close. States of an appended file are steps of it.
 *
 * The methods of ADIOS that lose data (VAR_MERGE) or refuse arrays (PHDF5, NC4) are not offered.
 * ADIOS goes on after most failures, and its MPI methods look at no result of MPI-IO: so MPI-IO is
 * given an error handler that ends the run, and closed files are looked at.
 */
#include "interfaces/method.h"

#ifdef UND_HAVE_ADIOS

#include "job/die.h"
#include "storage/run_directory.h"
#include "storage/space.h"

#include <adios.h>
#include <adios_error.h>
#include <adios_read.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { METHOD, AGGREGATORS, OSTS, STRIPE_COUNT, STRIPE_SIZE, BLOCK_SIZE, BUFFER, STATS };
enum { MPI_SHARED, POSIX, LUSTRE, AMR };
enum { MINMAX, OFF };
enum {
    HEADER_BYTES = 64 * 1024, /* more than ADIOS adds to the bytes of a step */
    GROWTH_BYTES = 16 * 1024 * 1024,
    CALL_BYTES = 2200, /* of a call in the indices: 1,770 on its rank, 385 on the one that collects (ADIOS 1.13.1) */
    MEBIBYTE = 1024 * 1024,
    LIST_BYTES = 24 * UND_MAX_DIMS,
    ERROR_BYTES = 256
};

static const char *const methods[] = {"MPI", "POSIX", "MPI_LUSTRE", "MPI_AMR", NULL};
static const char *const statistics[] = {"minmax", "off", NULL};

static const struct und_setting settings[] = {
    [METHOD] = {.name = "method",
                .choices = methods,
                .default_value = "MPI",
                .help =
                    "ADIOS' own: one file (MPI, MPI_LUSTRE), one part per rank (POSIX) or per aggregator (MPI_AMR)"},
    [AGGREGATORS] = {.name = "num_aggregators",
                     .most = INT32_MAX,
                     .default_value = "0",
                     .help = "MPI_AMR: ranks that write for the others; 0 = all ranks"},
    [OSTS] = {.name = "num_ost",
              .most = INT32_MAX,
              .default_value = "0",
              .help = "MPI_AMR: Lustre targets that parts are dealt to; 0 = striping is left to the file system"},
    [STRIPE_COUNT] = {.name = "stripe_count",
                      .most = UINT16_MAX,
                      .default_value = "0",
                      .help = "MPI_LUSTRE, MPI_AMR with num_ost: targets of a file; 0 = as ADIOS does it"},
    [STRIPE_SIZE] = {.name = "stripe_size",
                     .bytes = true,
                     .most = INT32_MAX,
                     .default_value = "0",
                     .help = "MPI_LUSTRE, MPI_AMR with num_ost: bytes of a stripe; 0 = 1MiB"},
    [BLOCK_SIZE] = {.name = "block_size",
                    .bytes = true,
                    .most = INT32_MAX,
                    .default_value = "0",
                    .help = "MPI_LUSTRE: maximum bytes of a write, which begins at a multiple of it; 0 = 1MiB"},
    [BUFFER] = {.name = "max_buffer_size",
                .bytes = true,
                .most = INT64_MAX,
                .default_value = "0",
                .help = "maximum bytes buffered until the end of a step, in MiB upwards; 0 = no limit"},
    [STATS] = {.name = "stats",
               .choices = statistics,
               .default_value = "minmax",
               .help = "of every block, in its index"},
    {.name = NULL},
};

/* The library has one state per process, and a handler of MPI's errors gets no argument: how many files use the
 * library, and what MPI-IO first had to say. */
static int users;
static int io_error = MPI_SUCCESS;

struct und_file {
    int64_t settings[UND_MAX_SETTINGS];
    MPI_Comm comm;
    int64_t group;
    int64_t step;            /* ADIOS' handle while a step is open, else 0 */
    ADIOS_FILE *read;        /* NULL: the file is written */
    ADIOS_VARINFO *variable; /* the variable that `define` named last */
    int read_step;           /* of that variable */
    bool append;
    int rank, ranks;        /* of comm */
    int64_t bytes;          /* of a step of this rank, at most; of one to come, as the one before */
    int64_t reserved;       /* that the step has room for */
    char shape[LIST_BYTES]; /* of the dataset that `define` named last */
    const struct und_directory *directory;
    int64_t *operations;
    char *part; /* NULL: this rank makes none */
    char path[];
};

/* ADIOS' words for its last error, without the end of the line. */
static const char *reason(char text[ERROR_BYTES])
{
    snprintf(text, ERROR_BYTES, "%s", adios_get_last_errmsg());
    for (size_t length = strlen(text); length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' ');)
        text[--length] = '\0';
    return text[0] ? text : "no reason given by ADIOS";
}

/* Ends the run with ADIOS' words, unless the file system is full: ADIOS may not say so. */
static _Noreturn void fail(const struct und_file *file, const char *doing, const char *what)
{
    char text[ERROR_BYTES];
    const int refusal = file->read ? 0 : und_space_refusal(file->directory, file->path, UND_FULL_BYTES);
    UND_DIE("adios: cannot %s%s%s%s: %s", doing, what ? what : "", what ? " of " : "", file->path,
            refusal != 0 ? strerror(refusal) : reason(text));
}

static void check(int code, const struct und_file *file, const char *doing, const char *what)
{
    if (code != err_no_error)
        fail(file, doing, what);
}

static void on_io_error(MPI_File *handle, int *code, ...)
{
    (void)handle;
    if (io_error == MPI_SUCCESS)
        io_error = *code;
}

/* Files that ADIOS opens from here on note errors of MPI-IO, or no longer do. */
static void watch_io(bool on)
{
    MPI_Errhandler handler = MPI_ERRORS_RETURN;
    if (on)
        UND_MPI(MPI_File_create_errhandler(on_io_error, &handler), "adios: cannot watch MPI-IO");
    UND_MPI(MPI_File_set_errhandler(MPI_FILE_NULL, handler), "adios: cannot watch MPI-IO");
    if (on)
        MPI_Errhandler_free(&handler);
}

/* ADIOS' methods that use MPI-IO look at none of its results, or at few. */
static void check_io(const struct und_file *file, const char *doing)
{
    const int refusal = io_error == MPI_SUCCESS ? 0 : und_space_refusal(file->directory, file->path, UND_FULL_BYTES);
    if (refusal != 0)
        UND_DIE("adios: cannot %s%s: %s", doing, file->path, strerror(refusal));
    UND_MPI(io_error, "adios: cannot %s%s", doing, file->path);
}

static void enter_library(void)
{
    char text[ERROR_BYTES];
    if (users++ > 0)
        return;
    if (adios_init_noxml(MPI_COMM_SELF) != err_no_error ||
        adios_read_init_method(ADIOS_READ_METHOD_BP, MPI_COMM_SELF, "verbose=0") != err_no_error)
        UND_DIE("adios: cannot initialize the library: %s", reason(text));
}

static void leave_library(void)
{
    char text[ERROR_BYTES];
    int rank;
    if (--users > 0)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (adios_read_finalize_method(ADIOS_READ_METHOD_BP) != err_no_error || adios_finalize(rank) != err_no_error)
        UND_DIE("adios: cannot finalize the library: %s", reason(text));
}

static enum ADIOS_DATATYPES adios_type(enum und_type type)
{
    switch (type) {
    case UND_I8: return adios_byte;
    case UND_I16: return adios_short;
    case UND_U16: return adios_unsigned_short;
    case UND_I32: return adios_integer;
    case UND_U32: return adios_unsigned_integer;
    case UND_I64: return adios_long;
    case UND_U64: return adios_unsigned_long;
    case UND_F32: return adios_real;
    case UND_F64: return adios_double;
    case UND_BYTE:
    case UND_U8: break;
    }
    return adios_unsigned_byte;
}

static void version(char *text, int size)
{
    snprintf(text, (size_t)size, "ADIOS %s", ADIOS_VERSION);
}

static bool settle(const int64_t *values, struct und_use *use, struct und_error *error)
{
    (void)use;
    const bool amr = values[METHOD] == AMR, lustre = values[METHOD] == LUSTRE;
    if (values[AGGREGATORS] > 0 && !amr)
        return und_fail(error, "adios.num_aggregators is an option of MPI_AMR: give adios.method=MPI_AMR");
    if (values[OSTS] > 0 && !amr)
        return und_fail(error, "adios.num_ost is an option of MPI_AMR: give adios.method=MPI_AMR");
    if (values[BLOCK_SIZE] > 0 && !lustre)
        return und_fail(error, "adios.block_size is an option of MPI_LUSTRE: give adios.method=MPI_LUSTRE");
    if ((values[STRIPE_COUNT] > 0 || values[STRIPE_SIZE] > 0) && !lustre && !(amr && values[OSTS] > 0))
        return und_fail(error, "adios.stripe_count and adios.stripe_size are options of MPI_LUSTRE, and of MPI_AMR "
                               "together with adios.num_ost");
    return true;
}

/* The groups of ranks that MPI_AMR makes: the first ones have one rank more where they cannot be equal. */
static int64_t amr_part(int64_t aggregators, int64_t rank, int64_t size)
{
    if (aggregators == 0 || aggregators > size)
        aggregators = size;
    const int64_t least = size / aggregators, more = size % aggregators;
    return rank < more * (least + 1) ? rank / (least + 1) : more + (rank - more * (least + 1)) / least;
}

static int64_t part(const int64_t *values, int64_t rank, int64_t size)
{
    if (values[METHOD] == AMR)
        return amr_part(values[AGGREGATORS], rank, size);
    return values[METHOD] == POSIX && size > 1 ? rank : -1;
}

/* All blocks of a step wait in the buffer, with an entry of the indices for each call; the ranks of MPI_AMR that write
 * for others hold theirs, too. */
static int64_t memory(const int64_t *values, const struct und_load *load)
{
    int64_t bytes = load->step_bytes + HEADER_BYTES + GROWTH_BYTES;
    if (values[BUFFER] > 0 && values[BUFFER] < bytes)
        bytes = values[BUFFER];
    bytes += load->step_calls * CALL_BYTES;
    if (values[METHOD] == AMR && values[AGGREGATORS] > 0 && values[AGGREGATORS] < load->ranks)
        bytes += ((load->ranks - 1) / values[AGGREGATORS] + 1) * load->step_bytes;
    return bytes;
}

/* The last bytes of every BP file say where its three indices begin, and, in the last, the version of the format. */
static bool is_whole(const struct und_directory *directory, const char *path, struct und_error *error)
{
    enum { INDICES = 3, TAIL_BYTES = 28 };
    unsigned char tail[TAIL_BYTES];
    uint64_t index[INDICES];
    const int descriptor = open(und_directory_name(directory, path), O_RDONLY | O_CLOEXEC);
    const off_t bytes = descriptor < 0 ? -1 : lseek(descriptor, 0, SEEK_END);
    const ssize_t read = bytes < TAIL_BYTES ? 0 : pread(descriptor, tail, TAIL_BYTES, bytes - TAIL_BYTES);
    const bool has_tail = read == TAIL_BYTES, failed = bytes < 0 || read < 0;
    const int code = errno;
    if (descriptor >= 0)
        close(descriptor);
    if (failed)
        return und_fail(error, "%s", strerror(code));
    if (has_tail) {
        memcpy(index, tail, sizeof index);
        if (tail[TAIL_BYTES - 1] == ADIOS_VERSION_BP_FORMAT && index[0] <= index[1] && index[1] <= index[2] &&
            index[2] <= (uint64_t)bytes - TAIL_BYTES)
            return true;
    }
    return und_fail(error, "it does not end with the index of a BP file");
}

/* Groups of files that are open together need names of their own. */
static const char *group_name(const struct und_file *file)
{
    const char *slash = strrchr(file->path, '/');
    return slash ? slash + 1 : file->path;
}

static size_t add_parameter(char *text, size_t capacity, size_t length, const char *name, int64_t value)
{
    return length + (size_t)snprintf(text + length, capacity - length, ";%s=%" PRId64, name, value);
}

/* Without a number of targets, MPI_AMR warns and leaves a descriptor open if it is to set the striping. */
static void make_group(struct und_file *file)
{
    char text[256] = "verbose=0";
    size_t length = strlen(text);
    const int64_t *values = file->settings;
    static const struct {
        int setting;
        const char *name;
    } passed[] = {{AGGREGATORS, "num_aggregators"},
                  {OSTS, "num_ost"},
                  {STRIPE_COUNT, "stripe_count"},
                  {STRIPE_SIZE, "stripe_size"},
                  {BLOCK_SIZE, "block_size"}};
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; ++i)
        if (values[passed[i].setting] > 0)
            length = add_parameter(text, sizeof text, length, passed[i].name, values[passed[i].setting]);
    if (values[METHOD] == AMR && values[AGGREGATORS] == 0)
        length = add_parameter(text, sizeof text, length, "num_aggregators", 0);
    if (values[METHOD] == AMR && values[OSTS] == 0)
        add_parameter(text, sizeof text, length, "striping", 0);

    check(adios_declare_group(&file->group, group_name(file), "",
                              values[STATS] == OFF ? adios_stat_no : adios_stat_default),
          file, "declare a group for ", NULL);
    check(adios_select_method(file->group, methods[values[METHOD]], text, ""), file, "select a method for ", NULL);
    const int64_t most = values[BUFFER] > 0 ? values[BUFFER] : INT64_MAX;
    adios_set_max_buffer_size((uint64_t)(most / MEBIBYTE + (most % MEBIBYTE > 0)));
}

/*
 * Has ADIOS make room for so many bytes of this step, more than they take with what ADIOS adds: it drops, in
 * silence, a block that just fills its buffer.
 */
static void reserve(struct und_file *file, int64_t bytes)
{
    uint64_t total;
    file->reserved = bytes;
    check(adios_group_size(file->step, (uint64_t)(bytes + HEADER_BYTES), &total), file, "make room for ", NULL);
}

static void begin_step(struct und_file *file, const char *mode)
{
    watch_io(true);
    check(adios_open(&file->step, group_name(file), und_directory_name(file->directory, file->path), mode, file->comm),
          file, "open ", NULL);
    watch_io(false);
    check_io(file, "open ");
    reserve(file, file->bytes);
    file->bytes = 0;
    ++*file->operations;
}

static void end_step(struct und_file *file)
{
    const int64_t step = file->step;
    file->step = 0;
    const int code = adios_close(step);
    check_io(file, "write ");
    check(code, file, "write ", NULL);
    check(adios_delete_vardefs(file->group), file, "forget the variables of ", NULL);
}

static void open_to_read(struct und_file *file)
{
    struct und_error error;
    char text[ERROR_BYTES];
    /* A part that was cut would give what is in the buffer by chance. */
    if (file->part && access(und_directory_name(file->directory, file->part), F_OK) == 0 &&
        !is_whole(file->directory, file->part, &error))
        UND_DIE("adios: cannot open %s: %s", file->part, error.text);
    file->read =
        adios_read_open_file(und_directory_name(file->directory, file->path), ADIOS_READ_METHOD_BP, file->comm);
    if (!file->read)
        UND_DIE("adios: cannot open %s: %s", file->path, reason(text));
    ++*file->operations;
}

static struct und_file *open_file(const struct und_open *how)
{
    const size_t length = strlen(how->path) + 1, more = how->part ? strlen(how->part) + 1 : 0;
    struct und_file *file = calloc(1, sizeof *file + length + more);
    UND_CHECK(file, "adios: no memory to open %s", how->path);
    memcpy(file->path, how->path, length);
    if (how->part)
        file->part = memcpy(file->path + length, how->part, more);
    if (how->settings)
        memcpy(file->settings, how->settings, sizeof file->settings);
    MPI_Comm_size(how->comm, &file->ranks);
    MPI_Comm_rank(how->comm, &file->rank);
    file->comm = file->ranks > 1 ? how->comm : MPI_COMM_SELF;
    file->append = how->append;
    file->bytes = how->bytes;
    file->directory = how->directory;
    file->operations = how->operations;
    enter_library();
    if (how->mode == UND_READ) {
        open_to_read(file);
    } else {
        make_group(file);
        begin_step(file, how->mode == UND_CREATE ? "w" : "u");
    }
    return file;
}

/* Rows of the step of an array: where its last block ends. */
static int64_t rows_of_step(const ADIOS_VARBLOCK *blocks, int count)
{
    int64_t rows = 0;
    for (int b = 0; b < count; ++b) {
        const int64_t end = (int64_t)(blocks[b].start[0] + blocks[b].count[0]);
        rows = end > rows ? end : rows;
    }
    return rows;
}

/* The step of an appended array that begins with the row; false where none does, or it has other rows. */
static bool find_step(struct und_file *file, const struct und_dataset *dataset)
{
    int64_t row = 0;
    if (adios_inq_var_blockinfo(file->read, file->variable) != err_no_error)
        fail(file, "find the steps of ", dataset->name);
    const ADIOS_VARBLOCK *blocks = file->variable->blockinfo;
    for (int step = 0; step < file->variable->nsteps; blocks += file->variable->nblocks[step++]) {
        const int64_t rows = rows_of_step(blocks, file->variable->nblocks[step]);
        file->read_step = step;
        if (row == dataset->first_row)
            return rows == dataset->shape[0];
        row += rows;
    }
    return false;
}

static void find_variable(struct und_file *file, const struct und_dataset *dataset)
{
    adios_free_varinfo(file->variable);
    file->read_step = 0;
    file->variable = adios_inq_var(file->read, dataset->name);
    if (!file->variable)
        fail(file, "find ", dataset->name);
    bool same = file->variable->ndim == dataset->ndims && file->variable->type == adios_type(dataset->type);
    for (int d = file->append; same && d < dataset->ndims; ++d)
        same = file->variable->dims[d] == (uint64_t)dataset->shape[d];
    if (!same || (file->append && !find_step(file, dataset)))
        UND_DIE("adios: %s of %s has another shape than the workload says", dataset->name, file->path);
}

/* "a,b,c", as ADIOS takes dimensions. */
static void list_dimensions(char list[LIST_BYTES], const int64_t *values, int ndims)
{
    size_t length = 0;
    for (int d = 0; d < ndims; ++d)
        length += (size_t)snprintf(list + length, LIST_BYTES - length, "%s%" PRId64, d > 0 ? "," : "", values[d]);
}

static void define(struct und_file *file, const struct und_dataset *dataset, const struct und_box *block)
{
    (void)block;
    if (file->read) {
        find_variable(file, dataset);
        return;
    }
    if (file->step == 0)
        begin_step(file, "a");
    list_dimensions(file->shape, dataset->shape, dataset->ndims);
}

/* Every block of a variable is a definition of its own, as ADIOS has it without XML. */
static void write_box(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box,
                      const void *data)
{
    enum { NUMBERS_BYTES = 1024 };
    char count[LIST_BYTES], start[LIST_BYTES];
    file->bytes += und_box_bytes(dataset, box) + NUMBERS_BYTES + 2 * (int64_t)strlen(dataset->name);
    if (file->bytes > file->reserved)
        reserve(file, file->bytes + GROWTH_BYTES);
    list_dimensions(count, box->count, dataset->ndims);
    list_dimensions(start, box->start, dataset->ndims);
    const int64_t variable =
        adios_define_var(file->group, dataset->name, "", adios_type(dataset->type), count, file->shape, start);
    if (variable == 0)
        fail(file, "define ", dataset->name);
    check(adios_write_byid(file->step, variable, data), file, "write ", dataset->name);
    ++*file->operations;
}

static void read_box(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data)
{
    uint64_t start[UND_MAX_DIMS], count[UND_MAX_DIMS];
    for (int d = 0; d < dataset->ndims; ++d) {
        start[d] = (uint64_t)box->start[d];
        count[d] = (uint64_t)box->count[d];
    }
    ADIOS_SELECTION *selection = adios_selection_boundingbox(dataset->ndims, start, count);
    if (!selection)
        fail(file, "select a part of ", dataset->name);
    watch_io(true);
    check(adios_schedule_read_byid(file->read, selection, file->variable->varid, file->read_step, 1, data), file,
          "read ", dataset->name);
    check(adios_perform_reads(file->read, 1), file, "read ", dataset->name);
    watch_io(false);
    check_io(file, "read ");
    adios_selection_delete(selection);
    ++*file->operations;
}

static void flush(const struct und_file *file, const char *path)
{
    const int descriptor = open(und_directory_name(file->directory, path), O_RDONLY | O_CLOEXEC);
    UND_CHECK(descriptor >= 0 && fsync(descriptor) == 0, "adios: cannot flush %s", path);
    close(descriptor);
}

/* ADIOS has no flush: the step ends, and what this rank wrote of it goes to storage. */
static void sync_file(struct und_file *file)
{
    if (file->step != 0)
        end_step(file);
    if (file->rank == 0 || part(file->settings, file->rank, file->ranks) < 0)
        flush(file, file->path);
    if (file->part)
        flush(file, file->part);
    ++*file->operations;
}

static void close_file(struct und_file *file)
{
    if (file->read) {
        adios_free_varinfo(file->variable);
        check(adios_read_close(file->read), file, "close ", NULL);
    } else {
        if (file->step != 0)
            end_step(file);
        check(adios_free_group(file->group), file, "close ", NULL);
    }
    ++*file->operations;
    leave_library();
    free(file);
}

const struct und_method und_method_adios = {
    .name = "adios",
    .suffix = ".bp",
    .has_files = true,
    .hides_calls = true,
    .complete = true,
    .buffers = true,
    .replaces = true,
    .settings = settings,
    .settle = settle,
    .part = part,
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

const struct und_method und_method_adios = {
    .name = "adios",
    .suffix = ".bp",
    .unavailable = "this program was built without ADIOS 1.13",
    .has_files = true,
    .buffers = true,
};

#endif
