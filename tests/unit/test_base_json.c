/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "test.h"

static int parse(const char *text, PenJson **ret, PenError *err)
{
    return pen__json_parse("answer", text, strlen(text), ret, err);
}

TEST(values)
{
    PenJson *json = NULL;
    PenError err;
    int64_t n = 0;
    CHECK_INT(parse("{\"a\": \"x\\u00e9\\n\", \"b\": {\"c\": {\"d\": \"deep\"}}, \"n\": -12, "
                    "\"f\": 1.5, \"null\": null, \"list\": [\"l\"]}",
                    &json, &err),
              PEN_OK);
    CHECK_STR(pen__json_string(json, "a"), "x\xc3\xa9\n");
    CHECK_STR(pen__json_string(json, "b.c.d"), "deep");
    CHECK(!pen__json_string(json, "b.c"));
    CHECK(!pen__json_string(json, "b.c.d.e"));
    CHECK(!pen__json_string(json, "b.x.d"));
    CHECK(!pen__json_string(json, "n"));
    CHECK(!pen__json_string(json, "null"));
    CHECK(!pen__json_string(json, "list"));
    CHECK(!pen__json_string(json, ""));
    CHECK(!pen__json_string(json, "none"));
    CHECK_INT(pen__json_integer(json, "n", &n), 1);
    CHECK_INT(n, -12);
    CHECK_INT(pen__json_integer(json, "f", &n), 0);
    CHECK_INT(pen__json_integer(json, "a", &n), 0);
    CHECK_INT(pen__json_integer(json, "x", &n), 0);
    pen__json_free(&json);
    pen__json_free(&json);
}

/* And no message shows what was there. */
TEST(hostile)
{
    static const char *const bad[] = {
        "",
        " ",
        "canary",
        "\"canary\"",
        "[\"canary\"]",
        "1",
        "null",
        "{",
        "{\"canary\"",
        "{\"canary\":}",
        "{\"canary\":1,}",
        "{\"canary\":\"a}",
        "{\"a\":canary}",
        "{\"a\":1} canary",
        "{\"a\":1}{\"canary\":2}",
        "{\"canary\":1,\"canary\":2}",
        "{canary:1}",
        "{'canary':1}",
        "{\"a\":\"canary\xff\"}",
        "{\"a\":\"canary\\u0000\"}",
        "{\"canary\\u0000\":1}",
        "{\"a\":\"canary\\ud800\"}",
        "{\"a\":\"canary\n\"}",
        "{\"a\":01}",
        "{\"a\":1e999}",
        "{\"a\":99999999999999999999999}",
        "{\"a\":NaN}",
        "\xef\xbb\xbf{\"canary\":1}",
        "// canary\n{}",
        "{\"a\":\"\\canary\"}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        PenJson *json = NULL;
        PenError err = {0};
        int r = parse(bad[i], &json, &err);
        if (r != PEN_E_FORMAT || json || strstr(err.message, "canary") ||
            !strstr(err.message, "answer"))
            test__fail(__FILE__, __LINE__, "case %zu: %d %s", i, r, err.message);
    }
}

TEST(depth)
{
    char text[512];
    for (int depth = 1; depth <= 100; depth++) {
        PenJson *json = NULL;
        PenError err;
        size_t n = 0;
        n += (size_t)snprintf(text + n, sizeof text - n, "{\"[[{{\\\"{[\":");
        for (int i = 1; i < depth; i++)
            text[n++] = '[';
        text[n++] = '1';
        for (int i = 1; i < depth; i++)
            text[n++] = ']';
        text[n++] = '}';
        CHECK_INT(pen__json_parse("answer", text, n, &json, &err),
                  depth <= PEN_JSON_DEPTH ? PEN_OK : PEN_E_LIMIT);
        pen__json_free(&json);
    }
}

TEST(size)
{
    PenJson *json = NULL;
    PenError err;
    char *text = malloc(PEN_JSON_BYTES + 1);
    memset(text, ' ', PEN_JSON_BYTES + 1);
    memcpy(text, "{}", 2);
    CHECK_INT(pen__json_parse("answer", text, PEN_JSON_BYTES, &json, &err), PEN_OK);
    pen__json_free(&json);
    CHECK_INT(pen__json_parse("answer", text, PEN_JSON_BYTES + 1, &json, &err), PEN_E_LIMIT);
    memset(text, '[', PEN_JSON_BYTES);
    CHECK_INT(pen__json_parse("answer", text, PEN_JSON_BYTES, &json, &err), PEN_E_LIMIT);
    memset(text, '"', PEN_JSON_BYTES);
    CHECK_INT(pen__json_parse("answer", text, PEN_JSON_BYTES, &json, &err), PEN_E_FORMAT);
    memset(text, '\\', PEN_JSON_BYTES);
    text[0] = '"';
    CHECK_INT(pen__json_parse("answer", text, PEN_JSON_BYTES, &json, &err), PEN_E_FORMAT);
    free(text);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(values);
    RUN(hostile);
    RUN(depth);
    RUN(size);
    return TEST_END();
}
