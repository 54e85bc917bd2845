/* The slowest host of several, which one machine cannot have. */
#include "job/stragglers.h"
#include "unit_test.h"

static void names_slowest_host(void **state)
{
    struct und_host_time hosts[] = {{"node1", 2}, {"node3", 4.8}, {"node2", 1.9}, {"node4", 2.1}};
    struct und_stragglers stragglers = {.ranks = 8, .rank = 5, .rank_host = "node3", .rank_s = 5, .median_rank_s = 2};
    char text[512];
    (void)state;
    und_stragglers_find_host(hosts, 4, &stragglers);
    assert_string_equal(stragglers.host, "node3");
    assert_true(stragglers.host_s == 4.8 && stragglers.median_host_s == 2);
    und_stragglers_text(&stragglers, text, sizeof text);
    assert_string_equal(
        text, "slowest by I/O time: node3, 2.4 x the median of 4 hosts; rank 5 on node3, 2.5 x the median of 8 "
              "ranks");
}

static void says_nothing_of_one_host(void **state)
{
    struct und_host_time host = {"node1", 2};
    struct und_stragglers stragglers = {.ranks = 2, .rank_s = 5, .median_rank_s = 2};
    char text[512] = "?";
    (void)state;
    und_stragglers_find_host(&host, 1, &stragglers);
    assert_string_equal(stragglers.host, "node1");
    und_stragglers_text(&stragglers, text, sizeof text);
    assert_string_equal(text, "");
}

/* As where nothing is moved. */
static void divides_by_no_time(void **state)
{
    struct und_host_time hosts[] = {{"node1", 0}, {"node2", 0}};
    struct und_stragglers stragglers = {.ranks = 2};
    char text[512] = "?";
    (void)state;
    und_stragglers_find_host(hosts, 2, &stragglers);
    und_stragglers_text(&stragglers, text, sizeof text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_slowest_host),
        cmocka_unit_test(says_nothing_of_one_host),
        cmocka_unit_test(divides_by_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
