/* SPDX-License-Identifier: Apache-2.0 */
/* A config file, a zero byte, a credentials file; or, when the first byte is odd, credentials as a
 * metadata service gives them. No program is run and nobody is asked: those ends are closed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "help.h"
#include "memory_fs.h"
#include "net/aws/config.h"
#include "net/aws/ini.h"
#include "net/credentials/sources.h"

static const char *environment(const char *name)
{
    return strcmp(name, "HOME") == 0 ? "/h" : NULL;
}

static int no_spawn(const PenSpawn *what, PenSpawned *ret)
{
    (void)ret;
    REQUIRE(what->argv[0] && strlen(what->argv[0]) <= PEN_INI_BYTES);
    for (int i = 0; what->argv[i]; i++)
        REQUIRE(strlen(what->argv[i]) <= PEN_INI_BYTES);
    return -ENOENT;
}

static void require_one_line(const PenError *err)
{
    for (const char *c = err->message; *c; c++)
        REQUIRE((unsigned char)*c >= ' ' && *c != 127);
}

static void use_secret(PenAwsCredentials **s)
{
    REQUIRE(strlen(pen__credentials_key_id(*s)) > 0 && strlen(pen__credentials_secret(*s)) > 0);
    REQUIRE(!pen__credentials_token(*s) || *pen__credentials_token(*s));
    pen__credentials_put(s);
}

static void find(const PenAwsEnv *env, const char *profile)
{
    PenError err;
    PenAsk ask;
    PenAwsCredentials *s = NULL;
    pen__ask_init(&ask, NULL);
    PenCred c = {.env = env, .ask = &ask, .profile = profile, .process_ms = 1};
    c.deadline_ns = UINT64_MAX;
    int r = CALL(pen__cred_find(&c, &s, &err));
    REQUIRE((r == PEN_OK) == (s != NULL));
    if (s)
        use_secret(&s);
    else
        require_one_line(&err);
    pen__cred_end(&c);
    pen__ask_free(&ask);
}

static void read_files(const uint8_t *data, size_t bytes)
{
    static const char *const profiles[] = {NULL, "p", "a b"};
    PenError err;
    PenAwsEnv env = {.text = {0}};
    const uint8_t *zero = bytes ? memchr(data, 0, bytes) : NULL;
    size_t first = zero ? (size_t)(zero - data) : bytes;
    fs_folder("/h");
    fs_folder("/h/.aws");
    fs_file("/h/.aws/config", data, first);
    if (zero)
        fs_file("/h/.aws/credentials", zero + 1, bytes - first - 1);
    MUST(pen__aws_env_read(&env, &err));
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++) {
        PenAwsConfig config;
        if (CALL(pen__aws_config(profiles[i], &config, &err)) < 0)
            require_one_line(&err);
        else
            REQUIRE(strlen(config.region) < sizeof config.region &&
                    strlen(config.endpoint) < sizeof config.endpoint);
        find(&env, profiles[i]);
    }
    pen__aws_env_free(&env);
}

static void read_json(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenSecretMemory body = {0};
    PenAwsCredentials *s = NULL;
    MUST(pen__secret_memory_new(bytes, &body, &err));
    REQUIRE(!bytes || pen__secret_memory_add(&body, data, bytes) == 0);
    int r = CALL(pen__cred_json("answer", &body, "Token", bytes & 1, &s, &err));
    REQUIRE((r == PEN_OK) == (s != NULL));
    if (s)
        use_secret(&s);
    else
        require_one_line(&err);
    pen__secret_memory_free(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!bytes)
        return 0;
    fs_begin(0);
    PenSys sys = *pen__sys;
    sys.environment = environment;
    sys.spawn = no_spawn;
    const PenSys *was = pen__sys;
    pen__sys = &sys;
    if (data[0] & 1)
        read_json(data + 1, bytes - 1);
    else
        read_files(data + 1, bytes - 1);
    pen__sys = was;
    fs_end();
    return 0;
}
