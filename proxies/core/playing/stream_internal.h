/*
 * The parts of a stream player: its files, and the pieces of the prepared dump. Shared by stream_player.c,
 * which prepares a dump, stream_names.c, which names files, stream_files.c, which opens, checks and
 * closes them, and transfers.c, which moves and compares bytes; nobody else's.
 */
#ifndef UND_STREAM_INTERNAL_H
#define UND_STREAM_INTERNAL_H

#include "interfaces/calls.h"
#include "job/latency.h"
#include "playing/pace.h"
#include "playing/stonewall.h"
#include "playing/stream_player.h"
#include "storage/files.h"
#include "storage/watchdog.h"
#include "workload/decomposition.h"

enum { UND_NAME_BYTES = 160, UND_PATH_CAPACITY = 256 };

/* A file of the dump, if this rank has bytes in it. */
struct und_slot {
    MPI_Comm comm;           /* the ranks with bytes in the file; MPI_COMM_NULL: not this one */
    bool splits;             /* comm was made for this file alone */
    bool stands_for_it;      /* rank 0 of comm */
    struct und_files *files; /* those of all dumps, or rows */
    int64_t k;               /* which of them it is */
    char *room;              /* for its path; NULL: a small file, which its set names */
    const char *path;
    struct und_files *folder, *subfile; /* of the dump, with this rank's bytes; NULL: none */
    int64_t part_number;
    const char *part;       /* the path of the part; NULL: the method has none */
    bool in_parts;          /* the file has subfiles */
    bool makes;             /* this rank makes `part` */
    bool borrowed;          /* `file` is open for the stream that writes it */
    struct und_shared mark; /* of the file, once it is there */
    uint64_t contents;      /* what the file contains */
    struct und_file *file;
    int64_t payload; /* bytes of all ranks up to the prepared dump */
    int64_t before;  /* bytes in it of the streams that this one extends */
    bool exists;     /* these make the file */
    bool is_created; /* before it is opened, with the descriptor `created` or -1 */
    int created;
    bool opened;           /* since its content began */
    int64_t unsynced;      /* bytes of this rank since it was flushed last */
    int64_t unread;        /* and since it was read between writes, */
    int64_t lookups;       /* so many times */
    uint64_t waited;       /* when its transfers had ended, in ticks */
    const void *comms_for; /* of the first slot of a set: variables that the communicators fit */
    int64_t begin;         /* in turns: byte where this rank's next dataset begins */
    int64_t stored;        /* size on storage, of the file and the part that this rank makes, when last looked at */
};

/* A variable of the dump in its file. */
struct und_piece {
    struct und_dataset dataset;
    struct und_box block;
    struct und_cut cut;
    uint64_t order;         /* key of its order, by `rule` */
    int64_t calls_of_flush; /* transfers between flushes, where flushes are collective; 0: they are not */
    const struct und_order *rule;
    int64_t begin; /* place of its first byte in the contents of the file */
    struct und_base *base;
    int64_t calls;    /* that this rank makes */
    int64_t depth;    /* in flight at a time; 0: each ends before the next begins */
    bool together;    /* as many as all ranks of the file */
    int64_t from, to; /* transfers of the move in hand, by their positions */
    bool stopped;     /* it ended early */
    int slot;
    const unsigned char *held; /* what the calls write one behind the other, where it has to stay; else NULL */
    char name[UND_NAME_BYTES];
};

/* Where the files of the prepared dump have a variable. */
struct und_place {
    const char *name;
    int64_t offset; /* of the first of equals */
};

/* A dataset of an appended file: what further time steps can join. */
struct und_lineage {
    struct und_dataset dataset; /* of the last time step */
    int slot;
    int64_t rows, steps;              /* of all time steps, and how many these are */
    char name[UND_NAME_BYTES];        /* of the variable */
    char stored_name[UND_NAME_BYTES]; /* of the dataset */
};

/* A transfer that was begun. */
struct und_flight {
    int piece;
    struct und_box box; /* of it */
    bool reads;
    bool is_busy;    /* in a queue */
    int64_t element; /* where it begins, of its variable */
    unsigned char *data;
    int64_t bytes;
    uint64_t begin; /* in ticks */
};

/* Transfers in flight, where the method queues them: each has a place in memory. There are more places than transfers,
 * as many as a period of the contents has, so that one with the right bytes is nearly always free. */
struct und_queue {
    int64_t depth;  /* the maximum of transfers in flight; 0: each ends before the next begins */
    int64_t stride; /* bytes of a place */
    int64_t places, in_flight;
    unsigned char *memory;
    struct und_flight *flights;          /* of each place */
    struct und_filling *fillings;        /* of the memory of each place */
    int64_t free[UND_PHASES_OF_FILLING]; /* the first place of each phase without a transfer; -1: none */
    int64_t *next;                       /* of each place, the next of its phase */
};

/* Reads between the writes of a dump, each of a transfer that the rank has written before. */
struct und_mixture {
    double share;                /* for each write; 0: none in the dump in hand */
    int64_t writes, reads;       /* so far */
    unsigned char *buffer;       /* of a transfer; NULL: never */
    struct und_reads_between in; /* those that were not taken yet */
};

struct und_stream_player {
    const struct und_run *run;
    const struct und_stream *stream;
    const struct und_stream_plan *plan;
    int index;
    int64_t as;
    enum und_mode mode;
    struct und_group group;
    MPI_Comm group_comm;
    struct und_files *directories;          /* the one that this rank's files lie in; NULL: the run directory */
    struct und_metadata *metadata;          /* NULL: no operations without bytes */
    struct und_small_file_set *small_files; /* names its files, one slot for one after the other; NULL: they are few */
    struct und_caller *caller;              /* makes calls of the system on files of its own; NULL: there are none */
    int dump;                               /* prepared */
    bool makes_files;                       /* the prepared dump, rather than go on with those of one before it */
    bool *opened_sets;   /* which sets that several dumps use have been opened; NULL: there are none */
    bool *is_open;       /* of each set of slots: are its files open, where ranks have such? */
    unsigned char *held; /* the bytes of the prepared dump, where they have to stay; NULL: nowhere */
    int64_t held_capacity;
    unsigned char *looked_up;           /* the bytes that a lookup read; NULL: there are none */
    int files;                          /* slots of a set of files */
    int sets;                           /* of slots: more than one where several sets of files are open at a time */
    struct und_slot *all_slots, *slots; /* of all sets, and of the one of the prepared dump */
    struct und_stream_player *base;     /* that writes the files which this one reads; NULL: it reads its own */
    bool lends;                         /* its files stay open behind its last dump, for those that read them */
    struct und_stream_player *lender;   /* whose files are closed when the last dump is, of which this one is the last
                                           reader; NULL: of none */
    struct und_place *places;           /* of the content of the prepared dump; none if no variable asks for one */
    int place_count, place_capacity;
    struct und_piece *pieces;
    int piece_count;
    int *first_pieces;          /* of each variable of the prepared dump, and the end of all */
    struct und_flight *flights; /* of the prepared dump */
    int64_t flight_count, flight_capacity;
    struct und_queue queue;
    int row_variable; /* with small files: whose row the file in hand is */
    struct und_lineage *lineages;
    int lineage_count, lineage_capacity;
    int64_t *calls;           /* room for one number per piece */
    struct und_shared *marks; /* one per file, to tell other ranks */
    int64_t bytes, operations;
    struct und_latency *latencies[UND_LATENCIES]; /* NULL: not noted */
    uint64_t row_begin;                           /* with small files: when the file in hand was begun, in ticks */
    struct und_pace pace;
    struct und_stonewall wall;
    struct und_mixture mix;
    const int64_t *written;                /* transfers of each dump that are there to be read; NULL: all */
    int64_t rows;                          /* with small files: those of the prepared dump that it came to */
    struct und_verification *verification; /* of what is read while time is taken; NULL: that is not compared */
};

/* Characters of a path in the run directory, at most. */
int64_t und_stream_player_path_capacity(const struct und_stream_player *player);

/* The path of a file of the dump, valid up to the next call; names the slot's subfile, if the method has them. */
const char *und_stream_player_path(const struct und_stream_player *player, int dump, int file);
void und_stream_player_name_part(const struct und_stream_player *player, struct und_slot *slot);

/* The directory of this rank's files, if they have one; the files that a slot has one after the other. */
struct und_files *und_stream_player_new_directories(const struct und_stream_player *player);
struct und_files *und_stream_player_new_files(const struct und_stream_player *player, int file);

/* A library that replaces the files which it is given has those of a slot from their open until it has written them:
 * und_files_lend or und_files_take_back. */
void und_stream_player_hand(const struct und_stream_player *player, const struct und_slot *slot,
                            void (*hand)(struct und_files *files, int64_t k));

/* Which of these the dump has. */
int64_t und_stream_player_number(const struct und_stream_player *player, int dump);

/* The slot of one of und_stream_player_rows. */
struct und_slot *und_stream_player_slot(struct und_stream_player *player, int64_t index);

/* The files of the prepared dump are open: later dumps with this set find them. */
void und_stream_player_note_opening(struct und_stream_player *player);

/* Fills the memory that the prepared dump is written from, in the order of its calls. */
void und_stream_player_hold(struct und_stream_player *player);

/* Has the memory of transfers in flight, where the method queues them. */
void und_stream_player_make_queue(struct und_stream_player *player);

/* Creates the directory of this rank's files once, where the stream has such. Collective over the group. */
void und_stream_player_make_directory(struct und_stream_player *player);

/* Which of the sets of slots the prepared dump uses. */
static inline int und_stream_player_set(const struct und_stream_player *player)
{
    return player->sets > 1 ? und_stream_set(player->stream, player->dump) : 0;
}

/* A method begins an operation on a file, `shared` where it may wait for other ranks; all that it began have ended. */
static inline void und_stream_player_enter(const struct und_stream_player *player, const char *operation,
                                           const char *path, bool shared)
{
    und_watch_enter(player->run->watch, operation, path, shared);
    und_calls_watch(player->plan->method, player->run->directory, path);
}

static inline void und_stream_player_leave(const struct und_stream_player *player)
{
    und_watch_leave(player->run->watch);
    und_calls_leave();
}

/* Files that several dumps write or read: their ranks are those with bytes in any dump. */
static inline bool und_stream_player_shares_files(const struct und_stream *stream)
{
    return und_stream_grows(stream) || und_stream_rewrites(stream) || und_stream_updates(stream);
}

/* Does the prepared dump go on with files that an earlier one has made, keeping what they hold? */
static inline bool und_stream_player_continues(const struct und_stream_player *player)
{
    return !player->makes_files && !und_stream_rewrites(player->stream);
}

#endif
