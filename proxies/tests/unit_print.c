/* What a terminal acts on or does not show is printed as an escape. */
#include "text/print.h"
#include "unit_test.h"

static const struct {
    const char *text, *escaped;
} cases[] = {
    {"", ""},
    {"plain ~ text", "plain ~ text"},
    {"\\x1b stays", "\\x1b stays"},
    {"Gr\xc3\xb6\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x98\x80",
     "Gr\xc3\xb6\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"},
    {"\x01\x02\x08\x0b\x1f\x7f", "\\x01\\x02\\x08\\x0b\\x1f\\x7f"},
    {"a\nb\rc\td", "a\\nb\\rc\\td"},
    {"\xc2\x80\xc2\x9b"
     "31m\xc2\x9f\xc2\xa0\xc2\xad",
     "\\x80\\x9b31m\\x9f\\xa0\\xad"}, /* C1, no-break space, soft hyphen */
    {"\xd8\x9c", "\\u061c"},
    {"\xe2\x80\x8b\xe2\x80\x8e\xe2\x80\x8f", "\\u200b\\u200e\\u200f"},
    {"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029"},
    {"\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae", "\\u202a\\u202b\\u202c\\u202d\\u202e"},
    {"\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "\\u2066\\u2067\\u2068\\u2069"},
    {"\xef\xbb\xbf\xee\x80\x80", "\\ufeff\\ue000"},
    {"\xf3\xa0\x80\x81\xf4\x8f\xbf\xbf", "\\U000e0001\\U0010ffff"},
    {"\x80\xbf\xfe\xff", "\\x80\\xbf\\xfe\\xff"}, /* no UTF-8 */
    {"\xc0\xaf\xc1\x81", "\\xc0\\xaf\\xc1\\x81"}, /* longer than needed */
    {"\xe0\x80\x9b\xf0\x80\x80\x9b", "\\xe0\\x80\\x9b\\xf0\\x80\\x80\\x9b"},
    {"\xed\xa0\x80", "\\xed\\xa0\\x80"},                   /* half of a pair */
    {"\xf4\x90\x80\x80\xf5", "\\xf4\\x90\\x80\\x80\\xf5"}, /* behind the last */
    {"cut \xe2\x80", "cut \\xe2\\x80"},
    {"\xe2"
     "x",
     "\\xe2x"},
};

TEST(escapes)
{
    for (size_t i = 0; i < COUNT(cases); ++i) {
        char once[256], twice[256];
        const size_t length = und_escape(once, sizeof once, cases[i].text);
        assert_string_equal(once, cases[i].escaped);
        assert_int_equal(length, strlen(cases[i].escaped));
        assert_true(length <= UND_ESCAPED * strlen(cases[i].text));
        und_escape(twice, sizeof twice, once);
        assert_string_equal(twice, once);
    }
}

/* An escape or a character is there as a whole or not at all. */
TEST(fits)
{
    static const char text[] = "a\x1b\xe2\x82\xac"
                               "b";
    static const struct {
        size_t size;
        const char *escaped;
    } sizes[] = {{1, ""}, {2, "a"}, {5, "a"}, {6, "a\\x1b"}, {8, "a\\x1b"}, {9, "a\\x1b\xe2\x82\xac"}};
    for (size_t i = 0; i < COUNT(sizes); ++i) {
        char to[16];
        memset(to, 'x', sizeof to);
        assert_int_equal(und_escape(to, sizes[i].size, text), strlen(sizes[i].escaped));
        assert_string_equal(to, sizes[i].escaped);
        assert_int_equal(to[sizes[i].size], 'x');
    }
    assert_int_equal(und_escape(NULL, 0, text), 0);
}

TEST(prints)
{
    char *output = NULL;
    size_t bytes = 0;
    char *long_text = calloc(1, 2 * UND_PRINT_BYTES);
    assert_non_null(long_text);
    memset(long_text, 0x1b, 2 * UND_PRINT_BYTES - 1);
    FILE *stream = open_memstream(&output, &bytes);
    assert_non_null(stream);
    und_print(stream, "%d of %s\n", 3, "\x1b[m");
    fflush(stream);
    assert_string_equal(output, "3 of \\x1b[m\\n\n");
    und_print(stream, "%s", long_text);
    fclose(stream);
    assert_int_equal(bytes, strlen("3 of \\x1b[m\\n\n") + UND_ESCAPED * (UND_PRINT_BYTES - 1) + 1);
    assert_int_equal(output[bytes - 1], '\n');
    free(output);
    free(long_text);
}

RUN(T(escapes), T(fits), T(prints))
