# fileno_unlocked is not in POSIX.
set(UND_METHOD_DEFINITIONS _DEFAULT_SOURCE)
