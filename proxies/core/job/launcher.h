/* What started the processes of a run, by what it tells each of them in the environment. */
#ifndef UND_LAUNCHER_H
#define UND_LAUNCHER_H

struct und_launcher {
    const char *name; /* NULL: none is known */
    int processes;    /* 0: it does not say */
    int rank;         /* of this process; 0 of the only one */
};

struct und_launcher und_launcher_read(void);

#endif
