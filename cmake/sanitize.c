/*
 * What the address sanitizer does by default: Open MPI leaks at each start and unloads what leaked, so that a
 * search for leaks finds only its own, or crashes. The unit tests start no MPI: ASAN_OPTIONS=detect_leaks=1 has
 * the last word and serves them.
 */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
