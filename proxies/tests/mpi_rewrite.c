/*
 * Overwrites the files of the first dump of a workload, which the player never does, so that a
 * benchmark can tell what the player costs from what new storage costs. Takes the player's options
 * and does -i passes over the open files: the first is fresh. Prints a line per pass: seconds from
 * the first start to the last end on any rank, and operations of all ranks.
 */
#include "job/die.h"
#include "job/init.h"
#include "job/stop.h"
#include "plan/run.h"
#include "playing/stream_player.h"
#include "playing/totals.h"
#include "storage/run_directory.h"
#include "storage/watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *load(const char *path)
{
    FILE *file = fopen(path, "r");
    UND_CHECK(file, "cannot open %s", path);
    const size_t most = 1 << 16;
    char *text = calloc(1, most);
    UND_CHECK(text, "no memory for %s", path);
    if (fread(text, 1, most - 1, file) == most - 1)
        UND_DIE("%s is too long for this program", path);
    fclose(file);
    return text;
}

/* Returns the operations of all ranks, on rank 0. */
static int64_t do_pass(const struct und_run *run, struct und_stream_player *player, int64_t pass)
{
    double span[2], most[2];
    int64_t bytes, operations, sum = 0;
    double waited_s;
    /* Counts from the start of the dump again, over the same files. */
    und_stream_player_prepare(player, 0);
    if (pass == 0)
        und_stream_player_open(player);
    und_stream_player_count(player, &bytes, &operations, &waited_s);
    MPI_Barrier(run->comm);
    span[0] = -MPI_Wtime();
    for (int v = 0; v < und_dump_of(&run->workload->streams[0], 0)->variable_count; ++v)
        und_stream_player_move(player, v, UND_WRITE, NULL);
    span[1] = MPI_Wtime();
    und_stream_player_count(player, &bytes, &operations, &waited_s);
    MPI_Reduce(span, most, 2, MPI_DOUBLE, MPI_MAX, 0, run->comm);
    MPI_Reduce(&operations, &sum, 1, MPI_INT64_T, MPI_SUM, 0, run->comm);
    if (run->rank == 0)
        printf("{\"pass\": %lld, \"write_s\": %.9f, \"operations\": %lld}\n", (long long)pass, most[0] + most[1],
               (long long)sum);
    return sum;
}

int main(int argc, char **argv)
{
    struct und_options options;
    struct und_error error;
    struct und_run run = {.comm = MPI_COMM_WORLD};
    und_init(&argc, &argv);
    MPI_Comm_rank(run.comm, &run.rank);
    MPI_Comm_size(run.comm, &run.ranks);
    run.watch = und_watch_new(run.rank);
    run.directory = und_directory_new(run.watch);
    und_die_clean_by(und_directory_cleanup(run.directory));
    und_stop_watch(run.rank == 0);
    if (!und_options_read(&options, argc, argv, &error))
        UND_DIE("%s", error.text);
    if (!und_directory_open(run.directory, options.directory, false, &error))
        UND_DIE("%s", error.text);
    char *text = load(options.workload);
    if (!und_directory_work_inside(run.directory, &error))
        UND_DIE("%s", error.text);
    struct und_workload *workload = und_workload_read(text, strlen(text), options.workload, &error);
    if (!workload || workload->ranks != run.ranks)
        UND_DIE("%s", workload ? "the workload is for another number of ranks" : error.text);
    struct und_plan *plan = und_plan_new(workload, &options, options.workload, &error);
    if (!plan)
        UND_DIE("%s", error.text);
    run.workload = workload;
    run.plan = plan;
    run.pattern = und_pattern_new(1, und_totals(workload, plan).largest_transfer);
    UND_CHECK(run.pattern, "no memory for a transfer");

    struct und_stream_player *player = und_stream_player_new(&run, 0, run.rank, UND_CREATE);
    const int64_t operations = do_pass(&run, player, 0);
    for (int64_t pass = 1; pass < options.repetitions; ++pass)
        if (do_pass(&run, player, pass) != operations)
            UND_DIE("pass %lld has another number of operations than the first", (long long)pass);
    und_stream_player_close(player);
    MPI_Barrier(run.comm);
    und_stream_player_free(player);
    if (!options.keep)
        und_directory_remove(run.directory);

    und_pattern_free(run.pattern);
    und_plan_free(plan);
    und_workload_free(workload);
    free(text);
    MPI_Finalize();
    return 0;
}
