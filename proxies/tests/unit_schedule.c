/* The order of events, and the waiting for them. */
#include "job/timing.h"
#include "plan/schedule.h"
#include "unit_test.h"

static struct und_dump first[] = {{.time_s = 1.0, .duration_s = 0.25, .count = 1, .variable_count = 1},
                                  {.time_s = 2.0, .count = 1, .variable_count = 1},
                                  {.time_s = 2.0, .count = 1, .variable_count = 1},
                                  {.time_s = 5.0, .count = 1, .variable_count = 1}};
static struct und_dump second[] = {{.time_s = 0.5, .duration_s = 2.0, .count = 1, .variable_count = 1},
                                   {.time_s = 2.0, .count = 1, .variable_count = 1}};
static struct und_dump third[] = {{.time_s = 2.0, .count = 1, .variable_count = 1}};

#define STEP(entries, i)                                                          \
    {                                                                             \
        .dump = &entries[i], .first = i, .count = 1, .begins = true, .content = i \
    }
static struct und_step of_first[] = {STEP(first, 0), STEP(first, 1), STEP(first, 2), STEP(first, 3)};
static struct und_step of_second[] = {STEP(second, 0), STEP(second, 1)};
static struct und_step of_third[] = {STEP(third, 0)};
#define DUMPS(number, all, of_all) \
    .dump_count = number, .entry_count = number, .step_count = number, .entries = all, .steps = of_all

static char names[][8] = {"one", "two", "three"};
static struct und_stream streams[] = {
    {.name = names[0], .role = UND_CHECKPOINT, .operation = UND_WRITES, DUMPS(4, first, of_first)},
    {.name = names[1], .role = UND_VISUALIZATION, .operation = UND_WRITES, DUMPS(2, second, of_second)},
    {.name = names[2], .role = UND_CHECKPOINT, .operation = UND_READS, DUMPS(1, third, of_third)},
};
static const struct und_workload workload = {.stream_count = 3, .streams = streams};

/* A schedule looks into its plan as long as it lasts. */
struct planned {
    struct und_stream_plan of_streams[3];
    struct und_plan plan;
};

static bool make(const struct und_options *options, struct planned *planned, struct und_schedule *schedule)
{
    planned->plan = (struct und_plan){.streams = planned->of_streams};
    und_plan_events(&workload, options, &planned->plan);
    return und_schedule_make(&workload, &planned->plan, schedule);
}

TEST(test_order)
{
    static const struct und_event expected[] = {
        {1.0, 0, 1, 0, false}, {2.0, 0, 0, 0, false}, {4.0, 0, 0, 1, false},  {4.0, 0, 0, 2, false},
        {4.0, 0, 1, 1, false}, {4.0, 0, 2, 0, false}, {10.0, 0, 0, 3, false}, {10.0, 0, 0, 3, true},
    };
    /* The dump of 2 s lasts until others begin, and counts for none. */
    static const double pauses[] = {1.0, 1.0, 1.5, 0, 0, 0, 6.0, 0};
    struct und_schedule schedule;
    struct planned planned;
    struct und_options options = {.time_scale = 2.0, .restart_dump = -1};
    for (int restart = 0; restart < 2; ++restart) {
        options.restart = restart == 1;
        assert_true(make(&options, &planned, &schedule));
        assert_int_equal(schedule.count, 7 + restart);
        for (int again = 0; again < 2; ++again, und_schedule_rewind(&schedule)) {
            struct und_event event;
            for (int e = 0; e < schedule.count; ++e) {
                assert_true(und_schedule_next(&schedule, &event));
                assert_true(event.time_s == expected[e].time_s);
                assert_true(event.pause_s == pauses[e]);
                assert_int_equal(event.stream, expected[e].stream);
                assert_int_equal(event.dump, expected[e].dump);
                assert_int_equal(event.restart, expected[e].restart);
            }
            assert_false(und_schedule_next(&schedule, &event));
        }
        und_schedule_free(&schedule);
    }
}

/* Any written stream can be named, any dump of it; from other files nothing else happens. */
TEST(test_restarts)
{
    static const struct {
        const char *stream;
        int64_t dump;
        const char *from;
        int events, of, reads;
    } cases[] = {
        {NULL, -1, NULL, 8, 0, 3}, {NULL, 1, NULL, 8, 0, 1},     {"two", -1, NULL, 8, 1, 1},
        {"two", 0, NULL, 8, 1, 0}, {"three", -1, NULL, 7, 0, 3}, {NULL, -1, "d", 1, 0, 3},
    };
    for (size_t i = 0; i < COUNT(cases); ++i) {
        const struct und_options options = {.time_scale = 1.0,
                                            .restart = true,
                                            .restart_stream = cases[i].stream,
                                            .restart_dump = cases[i].dump,
                                            .restart_from = cases[i].from};
        struct und_schedule schedule;
        struct planned planned;
        assert_true(make(&options, &planned, &schedule));
        assert_int_equal(schedule.count, cases[i].events);
        struct und_event last = {.stream = -1}, event;
        while (und_schedule_next(&schedule, &event))
            last = event;
        assert_int_equal(last.restart, cases[i].events != 7);
        assert_int_equal(last.stream, cases[i].of);
        assert_int_equal(last.dump, cases[i].reads);
        assert_true(last.time_s == (cases[i].from ? 0.0 : 5.0));
        und_schedule_free(&schedule);
    }
}

/* Results list the events stream by stream, the restarts last. */
TEST(test_positions)
{
    const struct und_options options = {.time_scale = 2.0, .restart = true, .restart_dump = -1};
    struct und_schedule schedule;
    struct planned planned;
    struct und_event event, before = {.stream = -1};
    bool seen[8] = {false};
    assert_true(make(&options, &planned, &schedule));
    while (und_schedule_next(&schedule, &event)) {
        const int64_t position = und_schedule_position(&schedule, &event);
        const struct und_event there = und_schedule_at(&schedule, position);
        assert_in_range(position, 0, 7);
        assert_false(seen[position]);
        seen[position] = true;
        assert_true(there.time_s == event.time_s);
        assert_int_equal(there.stream, event.stream);
        assert_int_equal(there.dump, event.dump);
        assert_int_equal(there.restart, event.restart);
    }
    for (int64_t position = 0; position < schedule.count; ++position, before = event) {
        event = und_schedule_at(&schedule, position);
        assert_true(event.restart == (position == 7));
        assert_true(event.restart || event.stream > before.stream ||
                    (event.stream == before.stream && event.dump == before.dump + 1));
    }
    und_schedule_free(&schedule);
}

/* Without pauses the order is the same. */
TEST(test_no_pauses)
{
    static const struct und_options paused = {.time_scale = 1.0}, hurried = {.time_scale = 0.0};
    struct und_schedule with, without;
    struct planned planned[2];
    assert_true(make(&paused, &planned[0], &with));
    assert_true(make(&hurried, &planned[1], &without));
    struct und_event paused_event, hurried_event;
    while (und_schedule_next(&with, &paused_event)) {
        assert_true(und_schedule_next(&without, &hurried_event));
        assert_true(hurried_event.time_s == 0.0);
        assert_int_equal(hurried_event.stream, paused_event.stream);
        assert_int_equal(hurried_event.dump, paused_event.dump);
    }
    assert_false(und_schedule_next(&without, &hurried_event));
    und_schedule_free(&with);
    und_schedule_free(&without);
}

TEST(test_waiting)
{
    for (int compute = UND_SLEEP; compute <= UND_BUSY; ++compute) {
        double before = und_clock();
        und_wait(before + 0.05, (enum und_compute)compute);
        assert_true(und_clock() - before >= 0.05);
        before = und_clock();
        und_wait(before - 1.0, (enum und_compute)compute);
        assert_true(und_clock() - before < 0.05);
    }
}

RUN(T(test_order), T(test_restarts), T(test_positions), T(test_no_pauses), T(test_waiting))
