/* What every unit_<x>.c includes: cmocka with its headers, tables of cases, and the program. */
#ifndef UND_TESTS_UNIT_TEST_H
#define UND_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* How many entries a table has. */
#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* A test without state. */
#define TEST(name) static void name(void **const state __attribute__((unused)))

/* The program of the tests that are named in an array `tests`. */
#define RUN(...)                                          \
    int main(void)                                        \
    {                                                     \
        const struct CMUnitTest tests[] = {__VA_ARGS__};  \
        return cmocka_run_group_tests(tests, NULL, NULL); \
    }
#define T(name) cmocka_unit_test(name)

#endif
