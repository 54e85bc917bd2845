/* What started the processes of a run, by what it tells each of them in the environment. */
#ifndef UND_LAUNCHER_H
#define UND_LAUNCHER_H

#include <stdbool.h>

struct und_launcher {
    const char *name; /* NULL: none is known */
    int processes;    /* 0: it does not say */
    bool first;       /* this process is its first, or the only one */
};

struct und_launcher und_launcher_read(void);

#endif
