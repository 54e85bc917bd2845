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
struct found {
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
    struct found found[];          /* one per stream */
};

/* Ranks without files do not count. */
static void begin_found(struct found *found)
{
    memset(found, 0, sizeof *found);
    found->asked_hints = MPI_INFO_NULL;
    found->count[0] = found->bytes[0] = INT64_MAX;
    found->count[1] = found->bytes[1] = INT64_MIN;
    for (int i = 0; i < UND_POOL_BYTES; ++i)
        found->pool[0][i] = UCHAR_MAX;
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
        if (run->plan->streams[s].method->replaces)
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
        und_allocate(1, sizeof *layout_log + (size_t)streams * sizeof layout_log->found[0], "the layouts");
    layout_log->run = run;
    for (int s = 0; s < streams; ++s)
        begin_found(&layout_log->found[s]);
    layout_log->backend = und_layout_backend_of(storage);
    if (!check(layout_log, storage, error)) {
        und_layout_log_free(layout_log);
        return NULL;
    }
    for (int s = 0; s < streams; ++s)
        layout_log->found[s].asked_hints = info_of(&run->plan->streams[s].hints);
    return layout_log;
}

void und_layout_log_free(struct und_layout_log *layout_log)
{
    for (int s = 0; layout_log && s < layout_log->run->workload->stream_count; ++s) {
        struct found *found = &layout_log->found[s];
        if (found->asked_hints != MPI_INFO_NULL)
            MPI_Info_free(&found->asked_hints);
        free(found->hints);
        free(found->per_target);
        free(found->last_file);
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
    return layout_log ? layout_log->found[stream].asked_hints : MPI_INFO_NULL;
}

bool und_layout_log_note_hints(struct und_layout_log *layout_log, int stream, const struct und_method *method,
                               const struct und_file *file)
{
    struct found *found = layout_log ? &layout_log->found[stream] : NULL;
    MPI_Info info;
    int keys = 0;
    if (!found || !method->hints_in_force || found->hints)
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
    found->hints = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(object);
    UND_CHECK(found->hints, "no memory for the hints in force");
    return true;
}

static void grow_targets(struct found *found, int64_t capacity)
{
    int64_t *per_target = realloc(found->per_target, (size_t)capacity * sizeof *per_target);
    UND_CHECK(per_target, "no memory for %" PRId64 " targets", capacity);
    found->per_target = per_target;
    int64_t *last_file = realloc(found->last_file, (size_t)capacity * sizeof *last_file);
    UND_CHECK(last_file, "no memory for %" PRId64 " targets", capacity);
    found->last_file = last_file;
    for (int64_t t = found->target_capacity; t < capacity; ++t)
        per_target[t] = last_file[t] = 0;
    found->target_capacity = capacity;
}

/* A file counts once for a target, also with several stripes on it. */
static void count_targets(struct found *found, const struct und_file_layout *layout)
{
    if (layout->target_count < 0)
        ++found->unknown;
    for (int i = 0; i < layout->target_count; ++i) {
        const int64_t target = layout->targets[i];
        if (target < 0 || target >= MAX_TARGET) {
            ++found->unknown;
            return;
        }
        if (target >= found->target_capacity)
            grow_targets(found, target + 64);
        found->per_target[target] += found->last_file[target] != found->files;
        found->last_file[target] = found->files;
    }
}

static void narrow(int64_t range[2], int64_t value)
{
    range[0] = value < range[0] ? value : range[0];
    range[1] = value > range[1] ? value : range[1];
}

static void add_layout(struct found *found, const struct und_file_layout *layout)
{
    ++found->files;
    narrow(found->count, layout->stripe_count);
    narrow(found->bytes, layout->stripe_size_bytes);
    for (size_t i = 0; i < strlen(layout->pool) + 1; ++i) {
        const int byte = (unsigned char)layout->pool[i];
        found->pool[0][i] = byte < found->pool[0][i] ? byte : found->pool[0][i];
        found->pool[1][i] = byte > found->pool[1][i] ? byte : found->pool[1][i];
    }
    count_targets(found, layout);
}

void und_layout_log_note_layout(struct und_layout_log *layout_log, int stream, const char *path)
{
    if (!layout_log || !layout_log->backend->read)
        return;
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
    add_layout(&layout_log->found[stream], &layout_log->layout);
}

/* From here on what is found is that of all ranks, on rank 0. */
static void reduce(const struct und_run *run, struct found *found)
{
    static const char failed[] = "cannot bring the layouts together";
    int64_t sums[2] = {found->files, found->unknown}, capacity = found->target_capacity;
    int64_t least[2] = {found->count[0], found->bytes[0]}, most[2] = {found->count[1], found->bytes[1]};
    const bool root = run->rank == 0;
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, run->comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT64_T, MPI_MIN, run->comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT64_T, MPI_MAX, run->comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, found->pool[0], UND_POOL_BYTES, MPI_INT, MPI_MIN, run->comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, found->pool[1], UND_POOL_BYTES, MPI_INT, MPI_MAX, run->comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &capacity, 1, MPI_INT64_T, MPI_MAX, run->comm), failed);
    if (capacity > found->target_capacity)
        grow_targets(found, capacity);
    if (capacity > 0)
        UND_MPI(MPI_Reduce(root ? MPI_IN_PLACE : found->per_target, root ? found->per_target : NULL, (int)capacity,
                           MPI_INT64_T, MPI_SUM, 0, run->comm),
                failed);
    found->files = sums[0];
    found->unknown = sums[1];
    for (int i = 0; i < 2; ++i) {
        found->count[i] = i == 0 ? least[0] : most[0];
        found->bytes[i] = i == 0 ? least[1] : most[1];
    }
}

/* Those of the first rank that has any. */
static void share_hints(const struct und_run *run, struct found *found)
{
    static const char failed[] = "cannot bring the hints together";
    int first = found->hints ? run->rank : run->ranks, length = found->hints ? (int)strlen(found->hints) : 0;
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, run->comm), failed);
    if (first == 0 || first == run->ranks)
        return;
    if (run->rank == first) {
        UND_MPI(MPI_Send(&length, 1, MPI_INT, 0, 0, run->comm), failed);
        UND_MPI(MPI_Send(found->hints, length, MPI_CHAR, 0, 0, run->comm), failed);
    } else if (run->rank == 0) {
        UND_MPI(MPI_Recv(&length, 1, MPI_INT, first, 0, run->comm, MPI_STATUS_IGNORE), failed);
        found->hints = und_allocate(1, (size_t)length + 1, "the hints in force");
        UND_MPI(MPI_Recv(found->hints, length, MPI_CHAR, first, 0, run->comm, MPI_STATUS_IGNORE), failed);
    }
}

static void put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        UND_DIE("result: cannot state \"%s\": no memory, or not UTF-8", key);
}

static json_t *number_or_null(bool known, int64_t number)
{
    return known ? json_integer(number) : json_null();
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
static bool pool_of(const struct found *found, char pool[UND_POOL_BYTES + 1])
{
    memset(pool, 0, UND_POOL_BYTES + 1);
    for (int i = 0; i < UND_POOL_BYTES; ++i) {
        if (found->pool[0][i] != found->pool[1][i])
            return false;
        pool[i] = (char)found->pool[0][i];
        if (pool[i] == '\0')
            break;
    }
    return true;
}

static json_t *applied_of(const struct und_layout_log *layout_log, const struct found *found)
{
    if (found->files == 0 && !found->hints)
        return json_null();
    const bool any = found->files > 0, known = any && found->unknown == 0;
    char pool[UND_POOL_BYTES + 1];
    const bool one_pool = any && pool_of(found, pool);
    json_t *object = json_object(), *targets = known ? json_array() : json_null();
    json_t *files = known ? json_object() : json_null();
    json_t *hints = found->hints ? json_loads(found->hints, 0, NULL) : json_object();
    for (int64_t t = 0; known && t < found->target_capacity; ++t) {
        char key[32];
        if (found->per_target[t] == 0)
            continue;
        snprintf(key, sizeof key, "%" PRId64, t);
        json_array_append_new(targets, json_integer(t));
        put(files, key, json_integer(found->per_target[t]));
    }
    put(object, "backend", any ? json_string(layout_log->backend->name) : json_null());
    put(object, "stripe_count",
        number_or_null(any && found->count[0] == found->count[1] && found->count[0] != 0, found->count[0]));
    put(object, "stripe_size_bytes",
        number_or_null(any && found->bytes[0] == found->bytes[1] && found->bytes[0] > 0, found->bytes[0]));
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
        reduce(run, &layout_log->found[s]);
        share_hints(run, &layout_log->found[s]);
        if (run->rank != 0)
            continue;
        json_t *object = json_object();
        put(object, "stream", json_string(run->workload->streams[s].name));
        put(object, "asked", asked_of(layout_log, s));
        put(object, "applied", applied_of(layout_log, &layout_log->found[s]));
        json_array_append_new(array, object);
    }
    return array;
}
