#include "playing/layout_log.h"

#include "interfaces/layout_request.h"
#include "job/die.h"
#include "storage/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TARGET = 1 << 20 };

/* The layouts of the files of a stream that this rank created. */
struct observed {
    MPI_Info asked_hints;
    char *hints;                 /* in force, as JSON; NULL: not noted */
    int64_t files;               /* whose layout was read */
    int64_t unknown;             /* of them, those whose targets are not known */
    int64_t count[2];            /* of stripes: least, most */
    int64_t bytes[2];            /* likewise of a stripe */
    int pool[2][UND_POOL_BYTES]; /* likewise, byte by byte; MPICH 4.0 compares unsigned bytes as signed ones */
    int64_t *per_target;         /* files on each target */
    int64_t *last_file;          /* number of the file that was counted last */
    int64_t target_capacity;
};

struct und_layout_log {
    const struct und_run *run;
    const struct und_layout_backend *backend;
    struct und_file_layout layout; /* of the file at hand */
    struct observed streams[];     /* one per stream */
};

/* Ranks without files do not count. */
static void begin_observed(struct observed *observed)
{
    memset(observed, 0, sizeof *observed);
    observed->asked_hints = MPI_INFO_NULL;
    observed->count[0] = observed->bytes[0] = INT64_MAX;
    observed->count[1] = observed->bytes[1] = INT64_MIN;
    for (int i = 0; i < UND_POOL_BYTES; ++i)
        observed->pool[0][i] = UCHAR_MAX;
}

/* The pairs as MPI wants them. */
static MPI_Info info_of(const struct und_pairs *pairs)
{
    MPI_Info info = MPI_INFO_NULL;
    if (pairs->count > 0)
        UND_MPI(MPI_Info_create(&info), "cannot make the hints");
    for (int i = 0; i < pairs->count; ++i) {
        char key[MPI_MAX_INFO_KEY + 1];
        const char *end = strchr(pairs->texts[i], '=');
        snprintf(key, sizeof key, "%.*s", (int)(end - pairs->texts[i]), pairs->texts[i]);
        UND_MPI(MPI_Info_set(info, key, end + 1), "--hint %s: cannot be given to MPI", pairs->texts[i]);
    }
    return info;
}

static bool check(const struct und_layout_log *layout_log, const struct und_storage *storage, struct und_error *error)
{
    const struct und_run *run = layout_log->run;
    bool files = false;
    for (int s = 0; s < run->workload->stream_count; ++s) {
        files = files || run->plan->streams[s].method->has_files;
        if (run->plan->streams[s].creates && run->plan->streams[s].method->hints && !layout_log->backend->read)
            return und_fail(error,
                            "--hint: the layout of files on %s cannot be read back; expected no hint for it, such as "
                            "striping_factor",
                            storage->type);
    }
    for (int s = 0; und_layout_request_is_asked(&layout_log->run->plan->layout) && s < run->workload->stream_count; ++s)
        if (run->plan->streams[s].method->replaces || run->plan->streams[s].is_member)
            return und_fail(
                error,
                "--stripe-count, --stripe-size, --stripe-targets, --stripe-pool: streams[%d] is played by %s, "
                "which creates files itself; give the directory a default layout with understudy-storage",
                s, run->plan->streams[s].method->name);
    if (und_layout_request_is_asked(&layout_log->run->plan->layout) && !files)
        return und_fail(error, "--stripe-count, --stripe-size, --stripe-targets, --stripe-pool: no stream has files");
    return und_layout_backend_takes(layout_log->backend, storage, &layout_log->run->plan->layout, error);
}

struct und_layout_log *und_layout_log_new(const struct und_run *run, const struct und_storage *storage,
                                          struct und_error *error)
{
    const int streams = run->workload->stream_count;
    struct und_layout_log *layout_log =
        und_allocate(1, sizeof *layout_log + (size_t)streams * sizeof layout_log->streams[0], "the layouts");
    layout_log->run = run;
    for (int s = 0; s < streams; ++s)
        begin_observed(&layout_log->streams[s]);
    layout_log->backend = und_layout_backend_of(storage);
    if (!check(layout_log, storage, error)) {
        und_layout_log_free(layout_log);
        return NULL;
    }
    for (int s = 0; s < streams; ++s)
        layout_log->streams[s].asked_hints = info_of(&run->plan->streams[s].hints);
    return layout_log;
}

void und_layout_log_free(struct und_layout_log *layout_log)
{
    for (int s = 0; layout_log && s < layout_log->run->workload->stream_count; ++s) {
        struct observed *observed = &layout_log->streams[s];
        if (observed->asked_hints != MPI_INFO_NULL)
            MPI_Info_free(&observed->asked_hints);
        free(observed->hints);
        free(observed->per_target);
        free(observed->last_file);
    }
    free(layout_log);
}

const struct und_layout_request *und_layout_log_request(const struct und_layout_log *layout_log)
{
    return layout_log && und_layout_request_is_asked(&layout_log->run->plan->layout) ? &layout_log->run->plan->layout
                                                                                     : NULL;
}

MPI_Info und_layout_log_hints(const struct und_layout_log *layout_log, int stream)
{
    return layout_log ? layout_log->streams[stream].asked_hints : MPI_INFO_NULL;
}

bool und_layout_log_note_hints(struct und_layout_log *layout_log, int stream, const struct und_method *method,
                               const struct und_file *file)
{
    struct observed *observed = layout_log ? &layout_log->streams[stream] : NULL;
    MPI_Info info;
    int keys = 0;
    if (!observed || !method->hints_in_force || observed->hints)
        return false;
    json_t *object = json_object();
    method->hints_in_force(file, &info);
    if (info != MPI_INFO_NULL)
        UND_MPI(MPI_Info_get_nkeys(info, &keys), "cannot read the hints in force");
    for (int k = 0; k < keys; ++k) {
        char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
        int there = 0;
        UND_MPI(MPI_Info_get_nthkey(info, k, key), "cannot read the hints in force");
        UND_MPI(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there), "cannot read the hint %s", key);
        if (there)
            json_object_set_new(object, key, json_string(value)); /* one that is not UTF-8 is left out */
    }
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    observed->hints = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(object);
    UND_CHECK(observed->hints, "no memory for the hints in force");
    return true;
}

static void grow_targets(struct observed *observed, int64_t capacity)
{
    int64_t *per_target = realloc(observed->per_target, (size_t)capacity * sizeof *per_target);
    UND_CHECK(per_target, "no memory for %" PRId64 " targets", capacity);
    observed->per_target = per_target;
    int64_t *last_file = realloc(observed->last_file, (size_t)capacity * sizeof *last_file);
    UND_CHECK(last_file, "no memory for %" PRId64 " targets", capacity);
    observed->last_file = last_file;
    for (int64_t t = observed->target_capacity; t < capacity; ++t)
        per_target[t] = last_file[t] = 0;
    observed->target_capacity = capacity;
}

/* A file counts once for a target, also with several stripes on it. */
static void count_targets(struct observed *observed, const struct und_file_layout *layout)
{
    if (layout->target_count < 0)
        ++observed->unknown;
    for (int i = 0; i < layout->target_count; ++i) {
        const int64_t target = layout->targets[i];
        if (target < 0 || target >= MAX_TARGET) {
            ++observed->unknown;
            return;
        }
        if (target >= observed->target_capacity)
            grow_targets(observed, target + 64);
        observed->per_target[target] += observed->last_file[target] != observed->files;
        observed->last_file[target] = observed->files;
    }
}

static void narrow(int64_t range[2], int64_t value)
{
    range[0] = value < range[0] ? value : range[0];
    range[1] = value > range[1] ? value : range[1];
}

static void add_layout(struct observed *observed, const struct und_file_layout *layout)
{
    ++observed->files;
    narrow(observed->count, layout->stripe_count);
    narrow(observed->bytes, layout->stripe_size_bytes);
    for (size_t i = 0; i < strlen(layout->pool) + 1; ++i) {
        const int byte = (unsigned char)layout->pool[i];
        observed->pool[0][i] = byte < observed->pool[0][i] ? byte : observed->pool[0][i];
        observed->pool[1][i] = byte > observed->pool[1][i] ? byte : observed->pool[1][i];
    }
    count_targets(observed, layout);
}

/* Those of the files in a directory, which are never asked for. */
struct directory_visit {
    struct und_layout_log *layout_log;
    int stream;
};

static bool note_member(void *context, int descriptor, const char *name)
{
    const struct directory_visit *visit = context;
    struct und_error error;
    (void)name;
    if (visit->layout_log->backend->read(descriptor, &visit->layout_log->layout, &error))
        add_layout(&visit->layout_log->streams[visit->stream], &visit->layout_log->layout);
    return true;
}

void und_layout_log_note_layout(struct und_layout_log *layout_log, int stream, const char *path)
{
    if (!layout_log || !layout_log->backend->read)
        return;
    struct directory_visit visit = {.layout_log = layout_log, .stream = stream};
    if (layout_log->run->plan->streams[stream].is_member) {
        UND_CHECK(und_directory_visit(layout_log->run->directory, path, note_member, &visit),
                  "%s: cannot open a file in %s to read its layout", layout_log->backend->name, path);
        return;
    }
    const struct und_stream_plan *plan = &layout_log->run->plan->streams[stream];
    const struct und_layout_request by_hint = {
        .stripe_count = plan->hinted_count, .stripe_size_bytes = plan->hinted_size_bytes, .by_hint = true};
    const struct und_layout_request *asked = plan->creates ? &by_hint : &layout_log->run->plan->layout;
    struct und_error error;
    const int descriptor =
        open(und_directory_name(layout_log->run->directory, path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    UND_CHECK(descriptor >= 0, "%s: cannot open %s to read its layout", layout_log->backend->name, path);
    const bool read = layout_log->backend->read(descriptor, &layout_log->layout, &error);
    close(descriptor);
    if (!read && und_layout_request_is_asked(asked))
        UND_DIE("%s: %s", path, error.text);
    if (!read)
        return;
    if (!und_layout_request_agrees(asked, &layout_log->layout, path, &error))
        UND_DIE("%s", error.text);
    add_layout(&layout_log->streams[stream], &layout_log->layout);
}

/* From here on what is found is that of all ranks, on rank 0. */
static void reduce(const struct und_run *run, struct observed *observed)
{
    static const char failed[] = "cannot bring the layouts together";
    int64_t sums[2] = {observed->files, observed->unknown}, capacity = observed->target_capacity;
    int64_t least[2] = {observed->count[0], observed->bytes[0]}, most[2] = {observed->count[1], observed->bytes[1]};
    const bool root = run->rank == 0;
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, run->comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT64_T, MPI_MIN, run->comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT64_T, MPI_MAX, run->comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, observed->pool[0], UND_POOL_BYTES, MPI_INT, MPI_MIN, run->comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, observed->pool[1], UND_POOL_BYTES, MPI_INT, MPI_MAX, run->comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &capacity, 1, MPI_INT64_T, MPI_MAX, run->comm), failed);
    if (capacity > observed->target_capacity)
        grow_targets(observed, capacity);
    if (capacity > 0)
        UND_MPI(MPI_Reduce(root ? MPI_IN_PLACE : observed->per_target, root ? observed->per_target : NULL,
                           (int)capacity, MPI_INT64_T, MPI_SUM, 0, run->comm),
                failed);
    observed->files = sums[0];
    observed->unknown = sums[1];
    for (int i = 0; i < 2; ++i) {
        observed->count[i] = i == 0 ? least[0] : most[0];
        observed->bytes[i] = i == 0 ? least[1] : most[1];
    }
}

/* Those of the first rank that has any. */
static void share_hints(const struct und_run *run, struct observed *observed)
{
    static const char failed[] = "cannot bring the hints together";
    int first = observed->hints ? run->rank : run->ranks, length = observed->hints ? (int)strlen(observed->hints) : 0;
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, run->comm), failed);
    if (first == 0 || first == run->ranks)
        return;
    if (run->rank == first) {
        UND_MPI(MPI_Send(&length, 1, MPI_INT, 0, 0, run->comm), failed);
        UND_MPI(MPI_Send(observed->hints, length, MPI_CHAR, 0, 0, run->comm), failed);
    } else if (run->rank == 0) {
        UND_MPI(MPI_Recv(&length, 1, MPI_INT, first, 0, run->comm, MPI_STATUS_IGNORE), failed);
        observed->hints = und_allocate(1, (size_t)length + 1, "the hints in force");
        UND_MPI(MPI_Recv(observed->hints, length, MPI_CHAR, first, 0, run->comm, MPI_STATUS_IGNORE), failed);
    }
}

static void put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        UND_DIE("result: cannot state \"%s\": no memory, or not UTF-8", key);
}

static json_t *number_or_null(bool same, int64_t number)
{
    return same ? json_integer(number) : json_null();
}

static json_t *asked_of(const struct und_layout_log *layout_log, int s)
{
    const struct und_stream_plan *plan = &layout_log->run->plan->streams[s];
    static const struct und_layout_request nothing;
    const struct und_layout_request *request = plan->method->has_files ? &layout_log->run->plan->layout : &nothing;
    json_t *object = json_object(), *targets = request->target_count > 0 ? json_array() : json_null();
    for (int i = 0; i < request->target_count; ++i)
        json_array_append_new(targets, json_integer(request->targets[i]));
    put(object, "stripe_count", number_or_null(request->stripe_count != 0, request->stripe_count));
    put(object, "stripe_size_bytes", number_or_null(request->stripe_size_bytes > 0, request->stripe_size_bytes));
    put(object, "stripe_targets", targets);
    put(object, "pool", request->pool ? json_string(request->pool) : json_null());
    put(object, "hints", und_pairs_record(&plan->hints));
    return object;
}

/* The pool that all files are in; false where they differ. */
static bool pool_of(const struct observed *observed, char pool[UND_POOL_BYTES + 1])
{
    memset(pool, 0, UND_POOL_BYTES + 1);
    for (int i = 0; i < UND_POOL_BYTES; ++i) {
        if (observed->pool[0][i] != observed->pool[1][i])
            return false;
        pool[i] = (char)observed->pool[0][i];
        if (pool[i] == '\0')
            break;
    }
    return true;
}

static json_t *applied_of(const struct und_layout_log *layout_log, const struct observed *observed)
{
    if (observed->files == 0 && !observed->hints)
        return json_null();
    const bool any = observed->files > 0, complete = any && observed->unknown == 0;
    char pool[UND_POOL_BYTES + 1];
    const bool one_pool = any && pool_of(observed, pool);
    json_t *object = json_object(), *targets = complete ? json_array() : json_null();
    json_t *files = complete ? json_object() : json_null();
    json_t *hints = observed->hints ? json_loads(observed->hints, 0, NULL) : json_object();
    for (int64_t t = 0; complete && t < observed->target_capacity; ++t) {
        char key[32];
        if (observed->per_target[t] == 0)
            continue;
        snprintf(key, sizeof key, "%" PRId64, t);
        json_array_append_new(targets, json_integer(t));
        put(files, key, json_integer(observed->per_target[t]));
    }
    put(object, "backend", any ? json_string(layout_log->backend->name) : json_null());
    put(object, "stripe_count",
        number_or_null(any && observed->count[0] == observed->count[1] && observed->count[0] != 0, observed->count[0]));
    put(object, "stripe_size_bytes",
        number_or_null(any && observed->bytes[0] == observed->bytes[1] && observed->bytes[0] > 0, observed->bytes[0]));
    put(object, "pool", one_pool && pool[0] ? json_string(pool) : json_null());
    put(object, "targets", targets);
    put(object, "files_per_target", files);
    put(object, "hints", hints);
    return object;
}

json_t *und_layout_log_json(struct und_layout_log *layout_log)
{
    const struct und_run *run = layout_log->run;
    json_t *array = run->rank == 0 ? json_array() : NULL;
    for (int s = 0; s < run->workload->stream_count; ++s) {
        reduce(run, &layout_log->streams[s]);
        share_hints(run, &layout_log->streams[s]);
        if (run->rank != 0)
            continue;
        json_t *object = json_object();
        put(object, "stream", json_string(run->workload->streams[s].name));
        put(object, "asked", asked_of(layout_log, s));
        put(object, "applied", applied_of(layout_log, &layout_log->streams[s]));
        json_array_append_new(array, object);
    }
    return array;
}
