/* Options of methods: what is taken, what is refused, and with which words. */
#include "options/setting.h"
#include "unit_test.h"

TEST(test_values)
{
    static const char *const texts[] = {"posix.direct=yes", "posix.direct=read"};
    const struct und_method *posix = und_method_find("posix");
    int64_t values[UND_MAX_SETTINGS];
    und_settings_read(posix, texts, 0, values);
    assert_int_equal(values[0], 0);
    und_settings_read(posix, texts, 1, values);
    assert_int_equal(values[0], 2);
    und_settings_read(posix, texts, 2, values);
    assert_int_equal(values[0], 1); /* the last one counts */
    und_settings_read(und_method_find("null"), texts, 2, values);
    assert_int_equal(values[0], 0);
    assert_false(und_settings_prefer(posix, "direct", "yes", texts, 2, values)); /* nor more than a key */
    assert_false(und_settings_prefer(und_method_find("null"), "direct", "yes", texts, 0, values));
    assert_true(und_settings_prefer(posix, "direct", "yes", texts, 0, values) && values[0] == 2);
    assert_true(und_setting_is_of(texts[0], posix));
    assert_false(und_setting_is_of(texts[0], und_method_find("null")));
    assert_false(und_setting_is_of("posixes.direct=yes", posix));
}

/* Every row of every method takes its default, and stands in the list. */
TEST(test_rows)
{
    int rows = 0;
    for (const struct und_method *const *at = und_methods; *at; ++at) {
        int here = 0;
        for (const struct und_setting *row = (*at)->settings; row && row->name; ++row, ++here) {
            char text[256];
            const char *texts[] = {text};
            struct und_error error;
            snprintf(text, sizeof text, "%s.%s=%s", (*at)->name, row->name, row->default_value);
            if (!und_settings_check(texts, 1, &error))
                fail_msg("%s", error.text);
            assert_true(row->help[0] != 0);
        }
        assert_true(here < UND_MAX_SETTINGS);
        rows += here;
    }
    assert_true(rows >= 1);
}

TEST(test_invalid_input)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "--method-option : expected METHOD.OPTION=VALUE, see --list -v"},
        {"posix", "--method-option posix: expected METHOD.OPTION=VALUE, see --list -v"},
        {"tape.speed=1", "--method-option tape.speed=1: expected METHOD.OPTION=VALUE, see --list -v"},
        {"posix.", "--method-option posix.: expected posix.OPTION=VALUE with one of the options direct"},
        {"posix.direct", "--method-option posix.direct: expected posix.OPTION=VALUE with one of the options direct"},
        {"posix.direct=", "--method-option posix.direct=: expected no, read or yes"},
        {"posix.direct=YES", "--method-option posix.direct=YES: expected no, read or yes"},
        {"null.a=b", "--method-option null.a=b: expected null.OPTION=VALUE with one of the options none"},
    };
    for (size_t i = 0; i < COUNT(cases); ++i) {
        const char *texts[] = {"posix.direct=no", cases[i].text};
        struct und_error error;
        assert_false(und_settings_check(texts, 2, &error));
        assert_string_equal(error.text, cases[i].message);
    }
}

RUN(T(test_values), T(test_rows), T(test_invalid_input))
