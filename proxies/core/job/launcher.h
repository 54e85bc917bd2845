/* The launcher of the processes of a run, as each of them finds it in its environment. */
#ifndef UND_LAUNCHER_H
#define UND_LAUNCHER_H

struct und_launcher {
    const char *name; /* NULL: none is known */
    int processes;    /* 0: it does not say */
    int rank;         /* of this process; 0 of the only one */
};

struct und_launcher und_launcher_read(void);

#endif
