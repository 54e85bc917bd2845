/* The start of a program with MPI. */
#ifndef UND_INIT_H
#define UND_INIT_H

/*
 * MPI_Init, and errors are returned; a write behind the limit of a file's size is one, too (EFBIG), and no signal.
 * Nothing here uses shared file pointers, but Open MPI prepares one in
 * every MPI_File_open: the component `sm` by a semaphore in /dev/shm that is named after the file alone, so
 * that jobs of a node share it and a killed one leaves it locked; `lockedfile` by a lock file, and
 * `individual` by two files of every rank, in the run directory. Open MPI does without where the only
 * component declines, and that is what is chosen here unless the user has chosen (OMPI_MCA_sharedfp).
 */
void und_init(int *argc, char ***argv);

#endif
