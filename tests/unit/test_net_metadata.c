/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of containers and instances. */
#include "cred_help.h"

/* ---- containers ---- */

TEST(container)
{
    Found f;
    NEED_SERVER();
    world_reset();
    set_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/x?id=1");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK(strncmp(f.secret, "canarySecret", 12) == 0);
    CHECK_STR(f.source, "container");
    CHECK(f.expires_s > f.date_s + 3500);
    CHECK_STR(requests(), "GET 169.254.170.2 /v2/credentials/x?id=1");
    static const char *const good[] = {
        "http://169.254.170.23/v1/credentials",
        "http://[fd00:ec2::23]/v1/credentials",
        "http://localhost:99/x",
        "http://127.0.0.1:80/x",
        "http://[::1]:80/x",
        "https://agent.example.com/x",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        world_reset();
        script("{\"auth\": \"canary Auth\"}");
        write_file("token", "canary Auth\n");
        set_env("AWS_CONTAINER_CREDENTIALS_FULL_URI", "%s", good[i]);
        CHECK_INT(FIND(NULL), PEN_E_ACCESS);
        CHECK(strstr(f.err.message, "container credentials: expected credentials, found status "
                                    "403"));
        set_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "%s/token", world.home);
        CHECK_INT(FIND(NULL), PEN_OK);
    }
    world_reset();
    script("{\"auth\": \"canary Auth\"}");
    set_env("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.1.2.3/");
    set_env("AWS_CONTAINER_AUTHORIZATION_TOKEN", "canary Auth");
    CHECK_INT(FIND(NULL), PEN_OK);
}

/* Nobody is sent a token, or asked for credentials in the clear, but those known. */
TEST(container_elsewhere)
{
    static const char *const bad[] = {
        "http://example.com/x",
        "http://169.254.170.24/",
        "http://169.254.170.2.x.com/",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://[fd00:ec2::24]/",
        "http://[::1]x/",
        "http://u@169.254.170.2/",
        "http://169.254.170.2\\@x/",
        "ftp://127.0.0.1/",
        "//127.0.0.1/",
        "http:/127.0.0.1/",
        "http://",
        "https://",
        "https:///x",
        "http://127.0.0.1/a b",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://127.1/",
        "http://[::ffff:1.2.3.4]/",
        "canary",
    };
    Found f;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        world_reset();
        set_env("AWS_CONTAINER_CREDENTIALS_FULL_URI", "%s", bad[i]);
        set_env("AWS_CONTAINER_AUTHORIZATION_TOKEN", "canary");
        int r = FIND(NULL);
        if ((r != PEN_E_ACCESS && r != PEN_E_INVALID) || (server.port && *requests()))
            test__fail(__FILE__, __LINE__, "%s: %d %s", bad[i], r, f.err.message);
    }
    world_reset();
    set_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@example.com/");
    CHECK_INT(FIND(NULL), PEN_E_INVALID);
}

TEST(container_that_fails)
{
    Found f;
    NEED_SERVER();
    world_reset();
    set_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c");
    script("{\"fail\": {\"/c\": [500, 429]}}");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK_INT(count(requests(), "GET"), 3);
    script("{\"fail\": {\"/c\": [500, 500, 500]}}");
    CHECK_INT(FIND(NULL), PEN_E_ACCESS);
    script("{\"fail\": {\"/c\": [0, 0, 0]}}");
    CHECK_INT(FIND(NULL), PEN_E_IO);
    requests();
    script("{\"fail\": {\"/c\": [404, 404]}}");
    CHECK_INT(FIND(NULL), PEN_E_ACCESS);
    CHECK_INT(count(requests(), "GET"), 1);
    static const char *const bad[] = {
        "",
        "canary",
        "[]",
        "{\\\"code\\\": \\\"canary1\\\", \\\"message\\\": \\\"canary\\\"}",
        "{\\\"AccessKeyId\\\": \\\"canary\\\", \\\"SecretAccessKey\\\": \\\"canary\\\"}",
        "{\\\"AccessKeyId\\\": 1, \\\"SecretAccessKey\\\": [], \\\"Token\\\": {}}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        script("{\"body\": {\"/c\": \"%s\"}, \"fail\": {}}", bad[i]);
        CHECK_INT(FIND(NULL), PEN_E_FORMAT);
    }
    set_env("AWS_CONTAINER_AUTHORIZATION_TOKEN", "canary\nX-Other: 1");
    CHECK_INT(FIND(NULL), PEN_E_INVALID);
    set_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/nonexistent/token");
    CHECK_INT(FIND(NULL), PEN_E_NOT_FOUND);
}

/* ---- instances ---- */

#define ROLES "/latest/meta-data/iam/security-credentials/"

TEST(instance)
{
    Found f;
    NEED_SERVER();
    world_reset();
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK(strncmp(f.key_id, "ASIACANARY", 10) == 0);
    CHECK_STR(f.source, "instance role train-role");
    CHECK(f.expires_s > f.date_s + 3500);
    CHECK_STR(requests(), "PUT 169.254.169.254 /latest/api/token\n"
                          "GET 169.254.169.254 " ROLES "\n"
                          "GET 169.254.169.254 " ROLES "train-role");
    set_env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK_INT(count(requests(), " [fd00:ec2::254] "), 3);
    set_env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://localhost:1/");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK_INT(count(requests(), " localhost:1 /latest/"), 3);
    world_reset();
    set_env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://metadata.example.com");
    CHECK_INT(FIND(NULL), PEN_E_ACCESS);
    set_env("AWS_EC2_METADATA_DISABLED", "true");
    CHECK_INT(FIND(NULL), PEN_E_ACCESS);
    CHECK_STR(requests(), "");
}

TEST(instance_without)
{
    Found f;
    NEED_SERVER();
    world_reset();
    script("{\"role\": \"\"}");
    CHECK_INT(FIND(NULL), PEN_E_ACCESS);
    CHECK(strstr(f.err.message, "no credentials: "));
    CHECK(strstr(f.err.message, "no instance role (status 404)"));
    requests();
    /* Version 1, without a token, is never tried. */
    script("{\"role\": \"r\", \"fail\": {\"/latest/api/token\": [403]}}");
    CHECK_INT(FIND(NULL), PEN_E_ACCESS);
    CHECK_STR(requests(), "PUT 169.254.169.254 /latest/api/token");
    script("{\"fail\": {\"/latest/api/token\": [500, 0, 500]}}");
    CHECK_INT(FIND(NULL), PEN_E_ACCESS);
    CHECK_INT(count(requests(), "PUT"), 3);
    script("{\"fail\": {\"/latest/api/token\": [500, 0], \"" ROLES "r\": [503, 503]}}");
    CHECK_INT(FIND(NULL), PEN_OK);
}

TEST(instance_that_lies)
{
    Found f;
    NEED_SERVER();
    static const char *const tokens[] = {"", "canary token", "canary\\r\\nX: 1", "canary\\u0000x"};
    static const char *const roles[] = {"a\\nb", "../../canary", "canary role", "", "canary?x"};
    static const char *const answers[] = {
        "", "{", "{\\\"Code\\\": \\\"Failed\\\"}", "[1]", "{\\\"AccessKeyId\\\": null}",
    };
    world_reset();
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        script("{\"body\": {\"/latest/api/token\": \"%s\"}}", tokens[i]);
        CHECK_INT(FIND(NULL), PEN_E_FORMAT);
    }
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        script("{\"body\": {\"" ROLES "\": \"%s\"}}", roles[i]);
        CHECK_INT(FIND(NULL), PEN_E_FORMAT);
    }
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        script("{\"body\": {\"" ROLES "train-role\": \"%s\"}}", answers[i]);
        CHECK_INT(FIND(NULL), PEN_E_FORMAT);
    }
    CHECK(strstr(f.err.message, "instance metadata: "));
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    world_begin();
    RUN(container);
    RUN(container_elsewhere);
    RUN(container_that_fails);
    RUN(instance);
    RUN(instance_without);
    RUN(instance_that_lies);
    world_end();
    return TEST_END();
}
