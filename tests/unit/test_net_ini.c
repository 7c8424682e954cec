/* SPDX-License-Identifier: Apache-2.0 */
#include "net/aws/ini.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

#define NONE "(none)"

/* The setting of [section], or of its block; "(none)" when it is not there, "(failed)". */
static const char *get_block(const char *text, const char *section, const char *block,
                             const char *key)
{
    static char ret[256];
    PenIni *ini = NULL;
    if (pen__ini_parse("file", text, strlen(text), &ini, NULL) < 0)
        return "(failed)";
    const char *value = pen__ini_get(ini, section, block, key);
    snprintf(ret, sizeof ret, "%s", value ? value : NONE);
    pen__ini_free(&ini);
    return ret;
}

static const char *get(const char *text, const char *section, const char *key)
{
    return get_block(text, section, NULL, key);
}

TEST(settings)
{
    CHECK_STR(get("[a]\nx = 1\ny=2\n", "a", "x"), "1");
    CHECK_STR(get("[a]\nx = 1\ny=2", "a", "y"), "2");
    CHECK_STR(get("[a]\nx = 1\n", "a", "z"), NONE);
    CHECK_STR(get("[a]\nx = 1\n[b]\n", "b", "x"), NONE);
    CHECK_STR(get("[a]\nx \t=  \tv w \t\n", "a", "x"), "v w");
    CHECK_STR(get("[a]\nx = v=w=\n", "a", "x"), "v=w=");
    CHECK_STR(get("[a]\nx =\ny = 1\n", "a", "x"), "");
    CHECK_STR(get("[a]\r\nx = 1\r\ny = 2\r\n", "a", "x"), "1");
    CHECK_STR(get("\xef\xbb\xbf[a]\nx = 1\n", "a", "x"), "1");
    CHECK_STR(get("[a]\nX_Y = 1\n", "a", "x_y"), "1");
    CHECK_STR(get("[a]\nx: 1\n", "a", "x"), "1");
    CHECK_STR(get("[a]\nx = a:b\n", "a", "x"), "a:b");
    CHECK_STR(get("[a]\nx: a=b\n", "a", "x"), "a=b");
    CHECK_STR(get("[a]\nx = \xc3\xa9\n", "a", "x"), "\xc3\xa9");
    CHECK_STR(get("", "a", "x"), NONE);
    CHECK_STR(get("\n \t \n\n", "a", "x"), NONE);
}

TEST(last_one_counts)
{
    CHECK_STR(get("[a]\nx = 1\nx = 2\n", "a", "x"), "2");
    CHECK_STR(get("[a]\nx = 1\n[b]\nx = 3\n[a]\nX = 2\n", "a", "x"), "2");
    CHECK_STR(get("[a]\nx = 1\n[a]\ny = 2\n", "a", "x"), "1");
}

TEST(comments)
{
    CHECK_STR(get("# c\n; c\n[a] # c\nx = 1 # c # d\n", "a", "x"), "1");
    CHECK_STR(get("[a]; c\nx = 1 ; c\n", "a", "x"), "1");
    CHECK_STR(get("[a]#c\nx = 1\t#c\n", "a", "x"), "1");
    CHECK_STR(get("[a]\nx = 1#c;d\n", "a", "x"), "1#c;d");
    CHECK_STR(get("[a]\nx = #c\n", "a", "x"), "");
    CHECK_STR(get("[a]\n  # x = 1\n", "a", "x"), NONE);
}

TEST(section_names)
{
    CHECK_STR(get("[ a ]\nx = 1\n", "a", "x"), "1");
    CHECK_STR(get("[profile \t a\t]\nx = 1\n", "profile a", "x"), "1");
    CHECK_STR(get("[profile\ta]\nx = 1\n", "profile a", "x"), "1");
    CHECK_STR(get("[profile \"a b\"]\nx = 1\n", "profile a b", "x"), "1");
    CHECK_STR(get("[profile 'a']\nx = 1\n", "profile a", "x"), "1");
    CHECK_STR(get("[sso-session   s]\nx = 1\n", "sso-session s", "x"), "1");
    CHECK_STR(get("[services s]\nx = 1\n", "services s", "x"), "1");
    CHECK_STR(get("[other  s]\nx = 1\n", "other  s", "x"), "1");
    CHECK_STR(get("[profilea]\nx = 1\n", "profilea", "x"), "1");
    CHECK_STR(get("[profile \"\"]\nx = 1\n", "profile ", "x"), "1");
    CHECK_STR(get("[some-thing:long/the_one%only.foo@bar+]\nx = 1\n",
                  "some-thing:long/the_one%only.foo@bar+", "x"),
              "1");
    PenIni *ini = NULL;
    CHECK_INT(pen__ini_parse("file", "[a]\n[b]\nx=1", 11, &ini, NULL), PEN_OK);
    CHECK_INT(pen__ini_has(ini, "a"), 1);
    CHECK_INT(pen__ini_has(ini, "b"), 1);
    CHECK_INT(pen__ini_has(ini, "c"), 0);
    CHECK_INT(pen__ini_has(NULL, "c"), 0);
    CHECK(pen__ini_get(NULL, "a", NULL, "x") == NULL);
    pen__ini_free(&ini);
    pen__ini_free(&ini);
}

TEST(values_go_on)
{
    CHECK_STR(get("[a]\nx = 1\n 2\n", "a", "x"), "1\n2");
    CHECK_STR(get("[a]\nx = 1 \n \t 2 \t\n  3 # c\n\n\t4\ny = 5\n", "a", "x"), "1\n2\n3 # c\n4");
    CHECK_STR(get("[a]\nx = 1\n 2\ny = 5\n", "a", "y"), "5");
    CHECK_STR(get("[a]\nx = 1\n [b]\n", "a", "x"), "1\n[b]");
    /* A file that is indented throughout. */
    CHECK_STR(get("[a]\n  x = 1\n  y = 2\n", "a", "x"), "1");
    CHECK_STR(get("[a]\n  x = 1\n  y = 2\n", "a", "y"), "2");
    CHECK_STR(get("  [a]\n  x = 1\n", "a", "x"), "1");
}

TEST(blocks)
{
    const char *text = "[default]\ns3 =\n  addressing_style = path # c\n\n  # c\n"
                       "\tMax_Queue = 3\nregion = r\nsts =\n  endpoint_url = u\n";
    CHECK_STR(get_block(text, "default", "s3", "addressing_style"), "path");
    CHECK_STR(get_block(text, "default", "s3", "max_queue"), "3");
    CHECK_STR(get_block(text, "default", "s3", "region"), NONE);
    CHECK_STR(get_block(text, "default", NULL, "region"), "r");
    CHECK_STR(get_block(text, "default", NULL, "addressing_style"), NONE);
    CHECK_STR(get_block(text, "default", "sts", "endpoint_url"), "u");
    CHECK_STR(get_block(text, "default", NULL, "s3"), "");
}

TEST(malformed)
{
    static const struct {
        const char *text;
        int line;
    } bad[] = {
        {"x = canary\n", 1},
        {"[a]\ncanary\n", 2},
        {"[a]\n= canary\n", 2},
        {"[a\nx = canary\n", 1},
        {"[]\n", 1},
        {"[ ]\n", 1},
        {"[a] canary\n", 1},
        {"[a]\n -canary\n", 2},
        {"\n\n[a]\nx=1\n\ncanary", 6},
        {"[a]\ns3 =\n  canary\n", 3},
        {"[a]\ns3 =\n  = canary", 3},
        {"[a]\nx=1\n[b]\n canary", 4},
        {" canary\n", 1},
        {"[a]\n : canary\n", 2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        PenIni *ini = NULL;
        PenError err = {0};
        char line[16];
        snprintf(line, sizeof line, "line %d:", bad[i].line);
        int r = pen__ini_parse("file", bad[i].text, strlen(bad[i].text), &ini, &err);
        if (r != PEN_E_FORMAT || ini || !strstr(err.message, line) || strstr(err.message, "canary"))
            test__fail(__FILE__, __LINE__, "case %zu: %d %s", i, r, err.message);
    }
}

TEST(limits)
{
    PenIni *ini = NULL;
    PenError err;
    size_t bytes = PEN_INI_BYTES + 1;
    char *text = malloc(bytes);
    memset(text, '\n', bytes);
    CHECK_INT(pen__ini_parse("file", text, bytes, &ini, &err), PEN_E_LIMIT);
    CHECK_INT(pen__ini_parse("file", text, bytes - 1, &ini, &err), PEN_OK);
    pen__ini_free(&ini);

    memset(text, 'x', PEN_INI_LINE_BYTES + 8);
    memcpy(text, "[a]\nx=", 6);
    text[4 + PEN_INI_LINE_BYTES] = '\n';
    CHECK_INT(pen__ini_parse("file", text, 4 + PEN_INI_LINE_BYTES, &ini, &err), PEN_OK);
    CHECK_INT(strlen(pen__ini_get(ini, "a", NULL, "x")), PEN_INI_LINE_BYTES - 2);
    pen__ini_free(&ini);
    text[4 + PEN_INI_LINE_BYTES] = 'x';
    CHECK_INT(pen__ini_parse("file", text, 5 + PEN_INI_LINE_BYTES, &ini, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "line 2"));

    memcpy(text, "[a]\n", 4);
    for (size_t i = 0; i < PEN_INI_SETTINGS; i++)
        memcpy(text + 4 + i * 4, "a=b\n", 4);
    CHECK_INT(pen__ini_parse("file", text, PEN_INI_SETTINGS * 4, &ini, &err), PEN_OK);
    pen__ini_free(&ini);
    CHECK_INT(pen__ini_parse("file", text, 4 + PEN_INI_SETTINGS * 4, &ini, &err), PEN_E_LIMIT);
    CHECK(ini == NULL);
    free(text);

    CHECK_INT(pen__ini_parse("file", "[a]\nx=\0\n", 8, &ini, &err), PEN_E_FORMAT);
    CHECK_INT(pen__ini_parse("file", "\0", 1, &ini, &err), PEN_E_FORMAT);
}

TEST(files)
{
    char path[] = "/tmp/pen-ini-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK(write(fd, "[a]\nx = 1", 9) == 9);
    close(fd);
    PenIni *ini = NULL;
    PenError err;
    int r = pen__ini_read(path, &ini, &err);
    CHECK_INT(truncate(path, PEN_INI_BYTES + 1), 0);
    PenIni *long_one = NULL;
    int r_long = pen__ini_read(path, &long_one, &err);
    unlink(path);
    CHECK_INT(r, PEN_OK);
    CHECK_INT(r_long, PEN_E_LIMIT);
    CHECK_STR(pen__ini_get(ini, "a", NULL, "x"), "1");
    pen__ini_free(&ini);
    CHECK_INT(pen__ini_read(path, &ini, &err), PEN_E_NOT_FOUND);
    CHECK_INT(pen__ini_read("/tmp", &ini, &err), PEN_E_NOT_FOUND);
    CHECK_INT(pen__ini_read("/dev/zero", &ini, &err), PEN_E_NOT_FOUND);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(settings);
    RUN(last_one_counts);
    RUN(comments);
    RUN(section_names);
    RUN(values_go_on);
    RUN(blocks);
    RUN(malformed);
    RUN(limits);
    RUN(files);
    return TEST_END();
}
