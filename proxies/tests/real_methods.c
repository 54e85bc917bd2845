#include "methods.c"
