/* SPDX-License-Identifier: Apache-2.0 */
/* What environment and profiles say besides credentials. */
#include "net/aws/config.h"
#include "net/aws/profile_files.h"

#include "secret_help.h"

static PenAwsConfig config;
static PenError err;

static int read_config(const char *profile)
{
    config = (PenAwsConfig){.region = "?"};
    err = (PenError){.status = 0};
    return pen__aws_config(profile, &config, &err);
}

static void reset(void)
{
    world_reset();
    world.n = 1; /* HOME alone */
}

TEST(nothing)
{
    reset();
    CHECK_INT(read_config(NULL), PEN_OK);
    CHECK_STR(config.region, "");
    CHECK_STR(config.endpoint, "");
    CHECK_STR(config.ca_file, "");
    CHECK_STR(config.profile, "default");
    CHECK_INT(config.path_style, 0);
    CHECK_INT(config.unsigned_, 0);
    world.n = 0; /* not even a home */
    CHECK_INT(read_config(NULL), PEN_OK);
    CHECK_INT(read_config("p"), PEN_E_NOT_FOUND);
    CHECK_STR(config.region, "?");
}

TEST(profile)
{
    reset();
    write_file(".aws/config", "[default]\nregion = r0\n"
                              "[profile p]\nregion = r1\nendpoint_url = https://e1\n"
                              "ca_bundle = /ca.pem\ns3 =\n  addressing_style = path\n"
                              "[profile default]\nca_bundle = /other.pem\n");
    CHECK_INT(read_config("p"), PEN_OK);
    CHECK_STR(config.region, "r1");
    CHECK_STR(config.endpoint, "https://e1");
    CHECK_STR(config.ca_file, "/ca.pem");
    CHECK_STR(config.profile, "p");
    CHECK_INT(config.path_style, 1);
    CHECK_INT(read_config(NULL), PEN_OK);
    CHECK_STR(config.region, ""); /* [profile default] stands for [default] */
    CHECK_STR(config.ca_file, "/other.pem");
    CHECK_INT(read_config("q"), PEN_E_NOT_FOUND);
    set_env("AWS_DEFAULT_PROFILE", "p");
    CHECK_INT(read_config(NULL), PEN_OK);
    CHECK_STR(config.profile, "p");
    set_env("AWS_PROFILE", "q");
    CHECK_INT(read_config(NULL), PEN_E_NOT_FOUND);
    CHECK(strstr(err.message, "profile q"));
}

TEST(environment_first)
{
    reset();
    write_file(".aws/config",
               "[default]\nregion = r0\nendpoint_url = https://e0\nca_bundle = /0\n");
    set_env("AWS_DEFAULT_REGION", "r1");
    set_env("AWS_ENDPOINT_URL", "https://e1");
    set_env("AWS_CA_BUNDLE", "/1");
    CHECK_INT(read_config(NULL), PEN_OK);
    CHECK_STR(config.region, "r1");
    CHECK_STR(config.endpoint, "https://e1");
    CHECK_STR(config.ca_file, "/1");
    set_env("AWS_REGION", "r2");
    set_env("AWS_ENDPOINT_URL_S3", "https://e2");
    CHECK_INT(read_config(NULL), PEN_OK);
    CHECK_STR(config.region, "r2");
    CHECK_STR(config.endpoint, "https://e2");
    static const char *const names[] = {"AWS_S3_NO_SIGN_REQUEST", "AWS_NO_SIGN_REQUEST",
                                        "AWS_SKIP_SIGNATURE"};
    static const char *const values[] = {"YES", "1", "true", "no", "0", ""};
    for (size_t i = 0; i < 18; i++) {
        reset();
        set_env(names[i % 3], "%s", values[i / 3]);
        CHECK_INT(read_config(NULL), PEN_OK);
        CHECK_INT(config.unsigned_, i / 3 < 3);
    }
}

TEST(services)
{
    const char *text = "[default]\nservices = local\nendpoint_url = https://all\n"
                       "[services local]\ns3 =\n  endpoint_url = https://s3\n"
                       "sts =\n  endpoint_url = https://sts\n";
    PenAwsEnv env = {.text = {0}};
    PenAwsFiles files = {0};
    reset();
    write_file(".aws/config", "%s", text);
    CHECK_INT(read_config(NULL), PEN_OK);
    CHECK_STR(config.endpoint, "https://s3");
    CHECK_INT(pen__aws_env_read(&env, &err), PEN_OK);
    CHECK_INT(pen__aws_files_open(&env, NULL, &files, &err), PEN_OK);
    CHECK_STR(pen__aws_endpoint(&files, "default", "sts"), "https://sts");
    CHECK(pen__aws_endpoint(&files, "other", "sts") == NULL);
    pen__aws_files_close(&files);
    pen__aws_env_free(&env);
    write_file(".aws/config", "%s[default]\nignore_configured_endpoint_urls = true\n", text);
    CHECK_INT(read_config(NULL), PEN_OK);
    CHECK_STR(config.endpoint, "");
    write_file(".aws/config", "%s", text);
    set_env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
    CHECK_INT(read_config(NULL), PEN_OK);
    CHECK_STR(config.endpoint, "");
    set_env("AWS_ENDPOINT_URL", "https://env");
    CHECK_INT(read_config(NULL), PEN_OK);
    CHECK_STR(config.endpoint, "https://env");
}

TEST(limits)
{
    char long_text[1024];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    reset();
    write_file(".aws/config",
               "[profile r]\nregion = %s\n[profile e]\nendpoint_url = %s\n"
               "[profile c]\nregion = a\n  b\n",
               long_text, long_text);
    CHECK_INT(read_config("r"), PEN_E_LIMIT);
    CHECK_INT(read_config("e"), PEN_E_LIMIT);
    CHECK_INT(read_config("c"), PEN_E_INVALID);
    CHECK_INT(read_config(long_text), PEN_E_LIMIT);
    CHECK_STR(config.region, "?");
}

static int refuse(const char *path, PenFileStat *ret)
{
    (void)path, (void)ret;
    return -EACCES;
}

/* Another user's home is as good as none, until the user says that it matters. */
TEST(unreadable)
{
    reset();
    world_sys.stat_path = refuse;
    int without = read_config(NULL), with = read_config("p");
    set_env("AWS_CONFIG_FILE", "/x/config");
    int named = read_config(NULL);
    world_sys.stat_path = pen__sys_real.stat_path;
    CHECK_INT(without, PEN_OK);
    CHECK_INT(with, PEN_E_ACCESS);
    CHECK_INT(named, PEN_E_ACCESS);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    world_begin();
    RUN(nothing);
    RUN(profile);
    RUN(environment_first);
    RUN(services);
    RUN(limits);
    RUN(unreadable);
    world_end();
    return TEST_END();
}
