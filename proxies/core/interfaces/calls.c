#include "interfaces/calls.h"

#include <stddef.h>

_Thread_local struct und_in_hand und_in_hand;
_Atomic(struct und_in_hand *) und_in_hand_of_library;

void und_calls_watch(const struct und_method *method, const struct und_directory *directory, const char *path)
{
    und_in_hand.method = method->hides_calls ? method : NULL;
    und_in_hand.directory = directory;
    und_in_hand.path = path;
    und_in_hand_of_library = method->waits ? &und_in_hand : NULL;
}

void und_calls_leave(void)
{
    und_in_hand_of_library = NULL;
    und_in_hand.method = NULL;
}
