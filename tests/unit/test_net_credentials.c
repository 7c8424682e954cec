/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets, and those that come from the environment, from files, programs and STS. */
#include "cred_help.h"

#include "base/secret_memory.h"

/* ---- secrets ---- */

TEST(secret)
{
    PenAwsCredentials *s = NULL, *other;
    PenError err;
    CHECK_INT(pen__credentials_new("AKIACANARY", "canary/secret+", "canary=token", 7, &s, &err),
              PEN_OK);
    other = pen__credentials_get(s);
    pen__credentials_put(&s);
    CHECK(s == NULL);
    CHECK_STR(pen__credentials_key_id(other), "AKIACANARY");
    CHECK_STR(pen__credentials_secret(other), "canary/secret+");
    CHECK_STR(pen__credentials_token(other), "canary=token");
    CHECK_INT(pen__credentials_expires(other), 7);
    pen__credentials_put(&other);
    pen__credentials_put(&other);
    CHECK_INT(pen__credentials_new("a", "b", "", 0, &s, &err), PEN_OK);
    CHECK(pen__credentials_token(s) == NULL);
    pen__credentials_put(&s);
    CHECK_INT(world.pages, 0);
    CHECK_INT(world.dirty, 0);
}

TEST(secret_that_is_none)
{
    static const char *const bad[][3] = {
        {NULL, "canary", NULL},      {"canary", NULL, NULL},        {"", "canary", NULL},
        {"canary", "", NULL},        {"canary x", "canary", NULL},  {"canary", "canary\n", NULL},
        {"canary", "canary", "t\r"}, {"canary", "canary\x7f", "t"}, {"canary\xc3\xa9", "c", NULL},
    };
    char *text = malloc(20000);
    memset(text, 'c', 19999);
    text[19999] = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        PenAwsCredentials *s = NULL;
        PenError err = {0};
        CHECK_INT(pen__credentials_new(bad[i][0], bad[i][1], bad[i][2], 0, &s, &err),
                  PEN_E_INVALID);
        CHECK(s == NULL);
        check_clean(&err, __LINE__);
    }
    PenAwsCredentials *s = NULL;
    PenError err = {0};
    CHECK_INT(pen__credentials_new(text, "canary", NULL, 0, &s, &err), PEN_E_LIMIT);
    CHECK_INT(pen__credentials_new("canary", text, NULL, 0, &s, &err), PEN_E_LIMIT);
    CHECK_INT(pen__credentials_new("canary", "canary", text, 0, &s, &err), PEN_E_LIMIT);
    free(text);
}

/* The kernel's flag "dd" of the pages it lies on. */
TEST(secret_is_in_no_core_dump)
{
    PenAwsCredentials *s = NULL;
    CHECK_INT(pen__credentials_new("AKIACANARY", "canary", NULL, 0, &s, NULL), PEN_OK);
    uintptr_t at = (uintptr_t)pen__credentials_secret(s);
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, kept_out = false, seen = false;
    while (f && fgets(line, sizeof line, f)) {
        char *end, *end2;
        uintptr_t from = strtoul(line, &end, 16);
        uintptr_t to = *end == '-' ? strtoul(end + 1, &end2, 16) : 0;
        if (to && *end2 == ' ')
            inside = at >= from && at < to;
        if (inside && strncmp(line, "VmFlags:", 8) == 0) {
            seen = true;
            kept_out = strstr(line, " dd") != NULL;
        }
    }
    if (f)
        fclose(f);
    pen__credentials_put(&s);
    if (!seen)
        SKIP("/proc/self/smaps does not say");
    CHECK(kept_out);
}

TEST(rooms)
{
    PenSecretMemory room = {0};
    PenError err;
    CHECK_INT(pen__secret_memory_new(4096, &room, &err), PEN_OK);
    CHECK(room.cap > 4096);
    CHECK_INT(pen__secret_memory_add(&room, "abc", 3), 0);
    CHECK_STR(room.data, "abc");
    CHECK_INT(pen__secret_memory_add(&room, room.data, room.cap - 3),
              -1); /* no place for the NUL */
    CHECK_INT(room.bytes, 3);
    pen__secret_memory_free(&room);
    pen__secret_memory_free(&room);
    /* A file that says it were empty. */
    CHECK_INT(pen__secret_memory_read("/proc/self/status", 65536, &room, &err), PEN_OK);
    CHECK(strncmp(room.data, "Name:", 5) == 0);
    CHECK_INT(strlen(room.data), room.bytes);
    size_t bytes = room.bytes;
    pen__secret_memory_free(&room);
    CHECK_INT(pen__secret_memory_read("/proc/self/status", bytes / 2, &room, &err), PEN_E_LIMIT);
    write_file("exact", "%s", "12345");
    char path[128];
    snprintf(path, sizeof path, "%s/exact", world.home);
    CHECK_INT(pen__secret_memory_read(path, 5, &room, &err), PEN_OK);
    CHECK_STR(room.data, "12345");
    pen__secret_memory_free(&room);
    CHECK_INT(pen__secret_memory_read(path, 4, &room, &err), PEN_E_LIMIT);
    CHECK_INT(world.pages, 0);
    CHECK_INT(world.dirty, 0);
}

/* ---- environment ---- */

TEST(environment)
{
    Found f;
    world_reset();
    set_env("AWS_ACCESS_KEY_ID", "AKIACANARY1");
    CHECK_INT(FIND(NULL), PEN_E_INVALID);
    CHECK(strstr(f.err.message, "AWS_SECRET_ACCESS_KEY"));
    set_env("AWS_SECRET_ACCESS_KEY", "canary1");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK_STR(f.key_id, "AKIACANARY1");
    CHECK_STR(f.secret, "canary1");
    CHECK_STR(f.token, "");
    CHECK_STR(f.source, "environment");
    set_env("AWS_SESSION_TOKEN", "canaryToken1");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK_STR(f.token, "canaryToken1");
    world_reset();
    set_env("AWS_ACCESS_KEY_ID", "AKIACANARY1");
    set_env("AWS_SECRET_ACCESS_KEY", "canary 1");
    CHECK_INT(FIND(NULL), PEN_E_INVALID);
}

/* botocore: AWS_PROFILE stands behind the keys of the environment, a profile in the code before. */
TEST(environment_or_profile)
{
    Found f;
    world_reset();
    set_env("AWS_ACCESS_KEY_ID", "AKIACANARY1");
    set_env("AWS_SECRET_ACCESS_KEY", "canary1");
    set_env("AWS_PROFILE", "p");
    write_file(".aws/credentials",
               "[p]\naws_access_key_id = AKIACANARY2\naws_secret_access_key = canary2\n");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK_STR(f.key_id, "AKIACANARY1");
    CHECK_INT(FIND("p"), PEN_OK);
    CHECK_STR(f.key_id, "AKIACANARY2");
    CHECK_INT(FIND("q"), PEN_E_NOT_FOUND);
    CHECK(strstr(f.err.message, "profile q"));
}

/* ---- web identity ---- */

TEST(web_identity)
{
    Found f;
    NEED_SERVER();
    world_reset();
    script("{\"web_token\": \"canary.web&token=\"}");
    write_file("token", "canary.web&token=\n");
    set_env("AWS_WEB_IDENTITY_TOKEN_FILE", "%s/token", world.home);
    CHECK_INT(FIND(NULL), PEN_E_INVALID);
    CHECK(strstr(f.err.message, "AWS_ROLE_ARN"));
    set_env("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK(strncmp(f.key_id, "ASIACANARY", 10) == 0);
    CHECK(strncmp(f.token, "canaryToken", 11) == 0);
    CHECK(f.expires_s > f.date_s + 3500 && f.expires_s < f.date_s + 3700);
    CHECK_STR(f.source, "web identity for arn:aws:iam::123456789012:role/pod");
    const char *log = requests();
    CHECK_INT(count(log, "\n"), 0);
    CHECK(strstr(log, "POST sts.eu-west-1.amazonaws.com / Action=AssumeRoleWithWebIdentity "
                      "RoleArn=arn:aws:iam::123456789012:role/pod RoleSessionName=penstock-"));
    set_env("AWS_ROLE_SESSION_NAME", "my session");
    set_env("AWS_ENDPOINT_URL_STS", "http://localhost:%d/base", server.port);
    CHECK_INT(FIND(NULL), PEN_OK);
    log = requests();
    CHECK(strstr(log, "/base/ Action"));
    CHECK(strstr(log, "RoleSessionName=my session"));
}

TEST(web_identity_that_fails)
{
    Found f;
    NEED_SERVER();
    world_reset();
    set_env("AWS_WEB_IDENTITY_TOKEN_FILE", "%s/none", world.home);
    set_env("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod");
    CHECK_INT(FIND(NULL), PEN_E_NOT_FOUND);
    CHECK(strstr(f.err.message, "/none"));
    world_reset();
    set_env("AWS_WEB_IDENTITY_TOKEN_FILE", "%s/token", world.home);
    set_env("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod");
    write_file("token", "\n");
    CHECK_INT(FIND(NULL), PEN_E_FORMAT);
    write_file("token", "canary-of-somebody-else");
    CHECK_INT(FIND(NULL), PEN_E_ACCESS);
    CHECK(strstr(f.err.message, "web identity: sts.eu-west-1.amazonaws.com"));
    CHECK(strstr(f.err.message, "status 400 (InvalidIdentityToken)"));
    CHECK_INT(count(requests(), "POST"), 1);
    /* Failures that may pass are tried three times. */
    script("{\"web_token\": \"canary-of-somebody-else\", \"fail\": {\"/\": [503, 0]}}");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK_INT(count(requests(), "POST"), 3);
    script("{\"fail\": {\"/\": [503, 0, 500]}}");
    CHECK_INT(FIND(NULL), PEN_E_IO);
    CHECK(strstr(f.err.message, "status 500"));
    static const char *const bad[] = {"", "canary", "<a/>", "<AssumeRoleResponse/>"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        script("{\"body\": {\"/\": \"%s\"}}", bad[i]);
        CHECK_INT(FIND(NULL), PEN_E_CORRUPT);
    }
    /* Not in the clear. */
    set_env("AWS_ENDPOINT_URL_STS", "http://sts.example.com");
    requests();
    CHECK_INT(FIND(NULL), PEN_E_ACCESS);
    CHECK(strstr(f.err.message, "https"));
    CHECK_STR(requests(), "");
}

/* ---- profiles ---- */

TEST(profile_with_keys)
{
    Found f;
    world_reset();
    write_file(".aws/credentials", "[default]\naws_access_key_id = AKIACANARY1\n"
                                   "aws_secret_access_key = canary1 # old\n"
                                   "[p]\naws_access_key_id=AKIACANARY2\n"
                                   "aws_secret_access_key=canary2=/+\naws_session_token=canary3\n"
                                   "[half]\naws_access_key_id=AKIACANARY2\n");
    write_file(".aws/config", "[profile p]\naws_access_key_id=AKIACANARY9\nregion = x\n"
                              "[profile c]\naws_access_key_id=AKIACANARY4\n"
                              "aws_secret_access_key=canary4\n");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK_STR(f.key_id, "AKIACANARY1");
    CHECK_STR(f.secret, "canary1");
    CHECK(strstr(f.source, "profile default in /tmp/"));
    CHECK(strstr(f.source, "/.aws/credentials"));
    CHECK_INT(FIND("c"), PEN_OK);
    CHECK_STR(f.key_id, "AKIACANARY4");
    CHECK(strstr(f.source, "/.aws/config"));
    CHECK_INT(FIND("half"), PEN_E_INVALID);
    set_env("AWS_PROFILE", "p");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK_STR(f.key_id, "AKIACANARY2");
    CHECK_STR(f.secret, "canary2=/+");
    CHECK_STR(f.token, "canary3");
    world_reset();
    write_file("elsewhere", "[default]\naws_access_key_id=AKIACANARY5\n"
                            "aws_secret_access_key=canary5\n");
    set_env("AWS_SHARED_CREDENTIALS_FILE", "~/elsewhere");
    CHECK_INT(FIND(NULL), PEN_OK);
    CHECK_STR(f.key_id, "AKIACANARY5");
}

TEST(profile_that_cannot_be_read)
{
    Found f;
    world_reset();
    set_env("AWS_EC2_METADATA_DISABLED", "TRUE");
    write_file(".aws/credentials", "[default]\naws_access_key_id = AKIACANARY\ncanary\n");
    CHECK_INT(FIND(NULL), PEN_E_FORMAT);
    CHECK(strstr(f.err.message, "/.aws/credentials line 3"));
    write_file(".aws/credentials", "[default]\naws_secret_access_key = %040000d\n", 7);
    CHECK_INT(FIND(NULL), PEN_E_LIMIT);
    write_file(".aws/credentials", "%s", "");
    CHECK_INT(FIND(NULL), PEN_E_ACCESS);
    CHECK(strstr(f.err.message, "no credentials: "));
    CHECK(strstr(f.err.message, "AWS_EC2_METADATA_DISABLED"));
    set_env("AWS_PROFILE", "%0200d", 1);
    CHECK_INT(FIND(NULL), PEN_E_LIMIT);
}

TEST(profile_that_signs_in)
{
    Found f;
    world_reset();
    write_file(".aws/config", "[profile s]\nsso_session = x\nsso_account_id = 1\n"
                              "[sso-session x]\nsso_start_url = u\n"
                              "[profile m]\nrole_arn = r\nsource_profile = s\nmfa_serial = 1\n");
    CHECK_INT(FIND("s"), PEN_E_UNSUPPORTED);
    CHECK(strstr(f.err.message, "credential_process = aws configure export-credentials --profile "
                                "s"));
    CHECK_INT(FIND("m"), PEN_E_UNSUPPORTED);
    CHECK(strstr(f.err.message, "mfa_serial"));
}

static void write_roles(void)
{
    write_file(".aws/config",
               "[profile a]\nrole_arn = arn:a\nsource_profile = b\nexternal_id = ex/1\n"
               "duration_seconds = 900\nrole_session_name = sess\nregion = us-west-2\n"
               "[profile b]\nrole_arn = arn:b\nsource_profile = c\n"
               "[profile c]\naws_access_key_id = AKIACANARY\naws_secret_access_key = canaryC\n"
               "[profile self]\nrole_arn = arn:s\nsource_profile = self\n"
               "aws_access_key_id = AKIACANARY\naws_secret_access_key = canaryC\n"
               "[profile env]\nrole_arn = arn:e\ncredential_source = Environment\n"
               "[profile ecs]\nrole_arn = arn:e\ncredential_source = EcsContainer\n"
               "[profile ec2]\nrole_arn = arn:e\ncredential_source = Ec2InstanceMetadata\n"
               "[profile web]\nrole_arn = arn:w\nweb_identity_token_file = %s/token\n",
               world.home);
    script("{\"keys\": {\"AKIACANARY\": \"canaryC\"}, \"web_token\": \"canaryW\"}");
    write_file("token", "canaryW");
}

/* The server checks the signatures. */
TEST(roles)
{
    Found f;
    NEED_SERVER();
    world_reset();
    write_roles();
    world.n = 1; /* without AWS_REGION: as the profiles say */
    CHECK_INT(FIND("a"), PEN_OK);
    CHECK(strncmp(f.key_id, "ASIACANARY", 10) == 0);
    CHECK_STR(f.source, "role of profile a");
    const char *log = requests();
    CHECK_INT(count(log, "POST"), 2);
    CHECK(strstr(log, "POST sts.amazonaws.com / Action=AssumeRole RoleArn=arn:b"));
    CHECK(strstr(log, "POST sts.us-west-2.amazonaws.com / Action=AssumeRole RoleArn=arn:a "
                      "RoleSessionName=sess ExternalId=ex/1 DurationSeconds=900"));
    CHECK_INT(FIND("self"), PEN_OK);
    CHECK_INT(FIND("web"), PEN_OK);
    CHECK(strstr(requests(), "WithWebIdentity RoleArn=arn:w"));
    CHECK_INT(FIND("env"), PEN_E_ACCESS);
    set_env("AWS_ACCESS_KEY_ID", "AKIACANARY");
    set_env("AWS_SECRET_ACCESS_KEY", "canaryC");
    set_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/creds");
    CHECK_INT(FIND("env"), PEN_OK);
    /* Those that containers and instances give are not known to this STS. */
    CHECK_INT(FIND("ecs"), PEN_E_ACCESS);
    CHECK(strstr(f.err.message, "status 403 (InvalidClientTokenId)"));
    CHECK(strstr(requests(), "GET 169.254.170.2 /creds"));
    CHECK_INT(FIND("ec2"), PEN_E_ACCESS);
    CHECK(strstr(requests(), "GET 169.254.169.254 /latest/meta-data/iam/security-credentials/"
                             "train-role"));
    script("{\"keys\": {\"AKIACANARY\": \"canaryOther\"}}");
    CHECK_INT(FIND("b"), PEN_E_ACCESS);
    CHECK(strstr(f.err.message, "profile b: "));
    CHECK(strstr(f.err.message, "(SignatureDoesNotMatch)"));
}

/* A clock that is an hour off is put right once; what is left of them is counted on the server's.
 */
TEST(role_with_a_wrong_clock)
{
    Found f;
    NEED_SERVER();
    for (int ahead = -7200; ahead <= 7200; ahead += 14400) {
        world_reset();
        write_roles();
        script("{\"clock\": %d}", ahead);
        CHECK_INT(FIND("b"), PEN_OK);
        CHECK_INT(count(requests(), "POST"), 2);
        CHECK(f.expires_s > f.date_s + 3500 && f.expires_s < f.date_s + 3700);
    }
}

TEST(roles_in_circles)
{
    Found f;
    world_reset();
    write_file(".aws/config",
               "[profile a]\nrole_arn = r\nsource_profile = b\n"
               "[profile b]\nrole_arn = r\nsource_profile = c\n"
               "[profile c]\nrole_arn = r\nsource_profile = a\n"
               "[profile self]\nrole_arn = r\nsource_profile = self\n"
               "[profile none]\nrole_arn = r\nsource_profile = nobody\n"
               "[profile empty]\nregion = r\n"
               "[profile of-empty]\nrole_arn = r\nsource_profile = empty\n"
               "[profile bare]\nrole_arn = r\n"
               "[profile both]\nrole_arn = r\nsource_profile = a\ncredential_source = Environment\n"
               "[profile odd]\nrole_arn = r\ncredential_source = Canary\n");
    CHECK_INT(FIND("a"), PEN_E_INVALID);
    CHECK(strstr(f.err.message, "the chain of profiles is circular"));
    CHECK_INT(FIND("self"), PEN_E_INVALID);
    CHECK_INT(FIND("none"), PEN_E_NOT_FOUND);
    CHECK_INT(FIND("of-empty"), PEN_E_ACCESS);
    CHECK_INT(FIND("bare"), PEN_E_INVALID);
    CHECK_INT(FIND("both"), PEN_E_INVALID);
    CHECK_INT(FIND("odd"), PEN_E_INVALID);
    char text[2048];
    size_t n = 0;
    for (int i = 0; i < 20; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "[profile p%d]\nrole_arn = r\nsource_profile = p%d\n", i, i + 1);
    write_file(".aws/config", "%s", text);
    CHECK_INT(FIND("p0"), PEN_E_LIMIT);
}

/* ---- credential_process ---- */

static int find_process(Found *f, const char *command, uint32_t ms, int line)
{
    world_reset();
    write_file(".aws/config", "[default]\ncredential_process = %s\n", command);
    find_at(f, NULL, ms, line);
    return f->r;
}

#define PROCESS(command) find_process(&f, command, 10000, __LINE__)
#define KEYS "\"AccessKeyId\": \"AKIACANARY\", \"SecretAccessKey\": \"canary\""

TEST(process)
{
    Found f;
    CHECK_INT(PROCESS("echo '{\"Version\": 1, " KEYS "}'"), PEN_OK);
    CHECK_STR(f.key_id, "AKIACANARY");
    CHECK_STR(f.token, "");
    CHECK_INT(f.expires_s, 0);
    CHECK_STR(f.source, "credential_process of profile default");
    CHECK_INT(PROCESS("printf '%s' '{\"Version\": 1, " KEYS ", \"SessionToken\": \"canaryT\", "
                      "\"Expiration\": \"2031-01-01T00:00:00+00:00\"}'"),
              PEN_OK);
    CHECK_STR(f.token, "canaryT");
    CHECK_INT(f.expires_s, 1924992000);
    /* Words as a shell cuts them; nothing else of a shell. */
    CHECK_INT(PROCESS("printf \"%s%s\" \"{\\\"Version\\\": 1, \" "
                      "'\"AccessKeyId\": \"AKIA$HOME\", \"SecretAccessKey\": \"canary\"}'"),
              PEN_OK);
    CHECK_STR(f.key_id, "AKIA$HOME");
}

TEST(process_that_fails)
{
    Found f;
    CHECK_INT(PROCESS("/nonexistent/helper --key canary"), PEN_E_NOT_FOUND);
    CHECK(strstr(f.err.message, "profile default: credential_process: /nonexistent/helper"));
    CHECK_INT(PROCESS("sh -c 'echo canary; echo canary >&2; exit 1'"), PEN_E_ACCESS);
    CHECK(strstr(f.err.message, "exit code 1"));
    CHECK_INT(PROCESS("sh -c 'kill -SEGV $$'"), PEN_E_ACCESS);
    CHECK_INT(PROCESS("echo canary"), PEN_E_FORMAT);
    CHECK_INT(PROCESS("true"), PEN_E_FORMAT);
    CHECK_INT(PROCESS("echo '{" KEYS "}'"), PEN_E_UNSUPPORTED);
    CHECK_INT(PROCESS("echo '{\"Version\": 2, " KEYS "}'"), PEN_E_UNSUPPORTED);
    CHECK_INT(PROCESS("echo '{\"Version\": 1, \"AccessKeyId\": \"AKIACANARY\"}'"), PEN_E_FORMAT);
    CHECK_INT(PROCESS("echo '{\"Version\": 1, " KEYS ", \"Expiration\": \"canary\"}'"),
              PEN_E_FORMAT);
    CHECK_INT(PROCESS("echo '{\"Version\": 1, " KEYS "} canary'"), PEN_E_FORMAT);
    CHECK_INT(PROCESS("head -c 10000000 /dev/zero"), PEN_E_LIMIT);
    CHECK_INT(PROCESS("echo 'canary"), PEN_E_FORMAT);
    CHECK_INT(
        PROCESS("echo a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a "
                "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a"),
        PEN_E_LIMIT);
    uint64_t start = pen__sys_real.now_ns();
    CHECK_INT(find_process(&f, "sleep 60", 100, __LINE__), PEN_E_TIMEOUT);
    CHECK(pen__sys_real.now_ns() - start < 30 * SECOND);
}

/* ---- no memory ---- */

TEST(every_allocation_fails_once)
{
    Found f;
    NEED_SERVER();
    world_reset();
    write_roles();
    int n = 1;
    for (;; n++) {
        atomic_store(&world.alloc_fails_at, n);
        (void)FIND("b");
        bool reached = atomic_load(&world.alloc_fails_at) <= 0;
        atomic_store(&world.alloc_fails_at, 0);
        if (!reached)
            break;
        CHECK_INT(f.r, PEN_E_NO_MEMORY);
    }
    CHECK_INT(f.r, PEN_OK);
    CHECK(n > 20);
}

static void hide(const char *text, const char *expected)
{
    char message[472];
    PenAwsCredentials *s = NULL;
    CHECK_INT(pen__credentials_new("KEYABCDEFGHIJ", "secret/abcdefghijklmnop", "tok", 0, &s, NULL),
              PEN_OK);
    snprintf(message, sizeof message, "%s", text);
    pen__credentials_hide(s, message);
    CHECK_STR(message, expected);
    pen__credentials_put(&s);
}

TEST(message_that_repeats_a_secret)
{
    hide("", "");
    hide("403 AccessDenied", "403 AccessDenied");
    hide("403 secret/abcdefghijklmnop!", "403 ***********************!");
    hide("of 10: abcdefghij.", "of 10: **********.");
    hide("of 9: abcdefghi.", "of 9: abcdefghi.");
    hide("abcdefghijsecret/abcdefgh", "*************************");
    hide("KEYABCDEFGHIJ/20260101 cdefghijklm", "*************/20260101 ***********");
    hide("too short to be told from words: tok", "too short to be told from words: tok");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    world_begin();
    RUN(secret);
    RUN(secret_that_is_none);
    RUN(secret_is_in_no_core_dump);
    RUN(message_that_repeats_a_secret);
    RUN(rooms);
    RUN(environment);
    RUN(environment_or_profile);
    RUN(web_identity);
    RUN(web_identity_that_fails);
    RUN(profile_with_keys);
    RUN(profile_that_cannot_be_read);
    RUN(profile_that_signs_in);
    RUN(roles);
    RUN(role_with_a_wrong_clock);
    RUN(roles_in_circles);
    RUN(process);
    RUN(process_that_fails);
    RUN(every_allocation_fails_once);
    world_end();
    return TEST_END();
}
