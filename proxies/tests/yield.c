/*
 * To be preloaded: ranks of MPICH that wait for a message give their core to another process. MPICH on UCX polls
 * without a pause; more ranks than cores then take a time slice of the system for each message.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*call)(void *);
    if (!call)
        *(void **)&call = dlsym(RTLD_NEXT, "ucp_worker_progress");
    const unsigned progress = call(worker);
    if (progress == 0)
        sched_yield();
    return progress;
}
