/* The digests of FIPS 180-4's examples, and lengths around the block boundaries. */
#include "text/sha256.h"
#include "unit_test.h"

TEST(test_known_digests)
{
    static const struct {
        char byte;
        size_t count;
        const char *digest;
    } runs[] = {
        {'a', 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {'a', 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {'a', 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {'a', 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    char digits[65];
    und_sha256("", 0, digits);
    assert_string_equal(digits, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    und_sha256("abc", 3, digits);
    assert_string_equal(digits, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (size_t i = 0; i < COUNT(runs); ++i) {
        char *text = malloc(runs[i].count);
        assert_non_null(text);
        memset(text, runs[i].byte, runs[i].count);
        und_sha256(text, runs[i].count, digits);
        free(text);
        assert_string_equal(digits, runs[i].digest);
    }
}

RUN(T(test_known_digests))
