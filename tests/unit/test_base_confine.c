/* SPDX-License-Identifier: Apache-2.0 */
/* A program in ffmpeg's place that tries each escape (tests/confine): as root and as a user, with
 * Landlock and as on a kernel without it. Each escape is tried unconfined as well, so that none is
 * refused for another reason. What remains open without Landlock is checked too: SECURITY.md says
 * it. */
#include "base/spawn/confine.h"

#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec_images.h"
#include "ingest_help.h"

#include "base/process.h"
#include "base/thread.h"

#define SECOND UINT64_C(1000000000)
#define NOBODY 65534

static const char *const libraries[] = {"/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache", NULL};
static const char *const environment[] = {"LC_ALL=C", NULL};
static char program[4400], memory[8] = "as it is";

enum { FREE, LANDLOCK, NO_LANDLOCK };

/* ---- running one ----------------------------------------------------------------------------- */

static void make_files(void)
{
    nftw(at("files"), help_remove, 16, FTW_DEPTH | FTW_PHYS);
    help_text("files/victim", "all of these bytes are to stay as they are");
    help_text("files/input", "input");
    help_text("files/.aws/credentials", "aws_secret_access_key = x");
    CHECK_INT(mkdir(at("files/empty"), 0777), 0);
    memcpy(memory, "as it is", 8);
}

/* 0: it went through; 1: refused; 1000 + signal; -1: not run. */
static int run_escape(const char *name, int mode, PenBuf *out)
{
    char parent[32], address[32], input[4400];
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    snprintf(address, sizeof address, "%p", (void *)memory);
    snprintf(input, sizeof input, "%s", at("files/input"));
    const char *argv[] = {"escape", name, at("files"), parent, address, NULL};
    const char *inputs[] = {input, NULL};
    PenConfine confine = {.program = program,
                          .libraries = libraries,
                          .inputs = inputs,
                          .no_landlock = mode == NO_LANDLOCK};
    PenProcessSettings s = {.argv = argv,
                            .env = mode == FREE ? NULL : environment,
                            .take = pen__process_take_buf,
                            .take_ctx = out,
                            .confine = mode == FREE ? NULL : &confine,
                            .memory_bytes = mode == FREE ? 0 : PEN_CONFINE_MEMORY,
                            .cpu_seconds = 1,
                            .deadline_ns = pen__deadline_after(30 * SECOND)};
    if (mode == FREE)
        argv[0] = program;
    PenProcessResult result;
    PenError err = {0};
    if (pen__process_run(&s, &result, &err) < 0) {
        printf("%s: %s\n", name, err.message);
        return -1;
    }
    return result.exit.signal ? 1000 + result.exit.signal : result.exit.code;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static char names[128][40];
static int n_names;

static void list_names(void)
{
    PenBuf out = {0};
    const char *argv[] = {program, "list", NULL};
    PenProcessSettings s = {.argv = argv,
                            .take = pen__process_take_buf,
                            .take_ctx = &out,
                            .deadline_ns = pen__deadline_after(30 * SECOND)};
    PenProcessResult result;
    CHECK_INT(pen__process_run(&s, &result, NULL), PEN_OK);
    CHECK_INT(pen__buf_add(&out, "", 1), 0);
    for (const char *p = (const char *)out.data; *p; p += strcspn(p, "\n") + 1)
        snprintf(names[n_names++], sizeof names[0], "%.*s", (int)strcspn(p, "\n"), p);
    pen__buf_free(&out);
    CHECK(n_names > 100);
}

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return true;
    return false;
}

static bool is_root(void)
{
    return geteuid() == 0;
}

/* seccomp does not see paths: without Landlock all is read that the user can read. Root's process
 * has capabilities that the confined one has not, and is closed to it. */
static bool stays_open(const char *name, int mode)
{
    static const char *const reads[] = {"read_passwd", "read_credentials", "read_victim",
                                        "read_proc",   "read_program",     NULL};
    static const char *const parents[] = {"parent_environment", "parent_memory_read", NULL};
    return mode == NO_LANDLOCK &&
           (is_one_of(name, reads) || (!is_root() && is_one_of(name, parents)));
}

static int expected_of(const char *name, int mode)
{
    if (strcmp(name, "can_abort") == 0)
        return 1000 + SIGABRT;
    if (strncmp(name, "can_", 4) == 0)
        return 0;
    if (strcmp(name, "use_cpu") == 0)
        return 1000 + SIGXCPU;
    return stays_open(name, mode) ? 0 : 1;
}

static bool is_untouched(void)
{
    PenBuf data = {0};
    struct stat st;
    bool same = read_whole_file(at("files/victim"), &data) && data.bytes == 42 &&
                stat(at("files/empty"), &st) == 0 && access(at("files/new"), F_OK) < 0 &&
                stat(at("files/victim"), &st) == 0 && (st.st_mode & 0777) == 0644 &&
                memcmp(memory, "as it is", 8) == 0;
    pen__buf_free(&data);
    return same;
}

static int count_wrong(int mode)
{
    int wrong = 0;
    for (int i = 0; i < n_names; i++) {
        PenBuf out = {0};
        int r = run_escape(names[i], mode, &out), expected = expected_of(names[i], mode);
        if (r != expected || !is_untouched()) {
            printf("%s: %s as %s: expected %d, found %d\n", names[i],
                   mode == LANDLOCK ? "with Landlock" : "without", is_root() ? "root" : "a user",
                   expected, r);
            wrong++;
            make_files();
        }
        pen__buf_free(&out);
    }
    return wrong;
}

static void become_nobody(void)
{
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0)
        _exit(99);
    /* As a process of the user's that was not root before. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    help_begin();
    make_files();
}

static void run_as_nobody(int mode)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        become_nobody();
        int wrong = count_wrong(mode);
        help_end();
        fflush(stdout);
        _exit(wrong > 90 ? 90 : wrong);
    }
    int status = 0;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
}

static bool has_landlock(void)
{
    return syscall(444, NULL, 0, 1) > 0;
}

TEST(with_landlock)
{
    if (!has_landlock()) {
        SKIP("no Landlock here");
        return;
    }
    make_files();
    CHECK_INT(count_wrong(LANDLOCK), 0);
}

TEST(without_landlock)
{
    make_files();
    CHECK_INT(count_wrong(NO_LANDLOCK), 0);
}

TEST(with_landlock_as_a_user)
{
    if (!has_landlock() || !is_root()) {
        SKIP("needs root, and Landlock");
        return;
    }
    run_as_nobody(LANDLOCK);
}

TEST(without_landlock_as_a_user)
{
    if (!is_root()) {
        SKIP("needs root");
        return;
    }
    run_as_nobody(NO_LANDLOCK);
}

/* Otherwise the tests above would show little. What the machine itself forbids is printed. */
TEST(unconfined)
{
    int open = 0, n = 0;
    printf("unconfined, yet refused:");
    for (int i = 0; i < n_names; i++) {
        PenBuf out = {0};
        if (strncmp(names[i], "can_", 4) == 0 || strcmp(names[i], "use_cpu") == 0)
            continue;
        make_files();
        int r = run_escape(names[i], FREE, &out);
        n++;
        open += r == 0;
        if (r != 0)
            printf(" %s", names[i]);
        pen__buf_free(&out);
    }
    printf("\nunconfined: %d of %d escapes go through\n", open, n);
    CHECK(open > n * 3 / 4);
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* Nothing of ours changes by it: no capability, limit, filter, mapping or dumpable flag. */
TEST(the_parent_stays_as_it_is)
{
    PenBuf before = {0}, after = {0}, out = {0};
    struct rlimit files[2];
    make_files();
    CHECK_INT(run_escape("can_read_input", LANDLOCK, &out), 0);
    int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &files[0]), 0);
    CHECK(read_whole_file("/proc/self/maps", &before));
    CHECK_INT(run_escape("can_read_input", LANDLOCK, &out), 0);
    CHECK(read_whole_file("/proc/self/maps", &after));
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &files[1]), 0);
    CHECK_INT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), dumpable);
    CHECK_INT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
    CHECK_INT(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
    CHECK_MEM(&files[0], &files[1], sizeof files[0]);
    CHECK(!memmem(after.data, after.bytes, "\n1000000000-", 12)); /* the page of the path */
    CHECK(!memmem(after.data, after.bytes, "\n300000000000-", 14));
    pen__buf_free(&before);
    pen__buf_free(&after);
    pen__buf_free(&out);
}

/* What it relies on is checked before anything runs. */
TEST(settings_that_would_leave_it_open)
{
    PenError err = {0};
    PenProcessResult result;
    const char *argv[] = {"escape", "list", NULL};
    PenConfine confine = {.program = program, .libraries = libraries, .inputs = libraries};
    PenProcessSettings s = {.argv = argv,
                            .env = environment,
                            .confine = &confine,
                            .deadline_ns = pen__deadline_after(30 * SECOND)};
    CHECK_INT(pen__process_run(&s, &result, &err), PEN_E_INVALID); /* no limit of memory */
    s.memory_bytes = PEN_CONFINE_MEMORY + 1;
    CHECK_INT(pen__process_run(&s, &result, &err), PEN_E_INVALID);
    s.memory_bytes = PEN_CONFINE_MEMORY;
    CHECK_INT(pen__process_run(&s, &result, &err), PEN_OK);
    s.env = NULL; /* our own */
    CHECK_INT(pen__process_run(&s, &result, &err), PEN_E_INVALID);
    s.env = environment;
    char *path = malloc(5000);
    memset(path, 'a', 4999);
    path[4999] = 0;
    confine.program = path;
    CHECK(pen__process_run(&s, &result, &err) < 0);
    free(path);
    confine.program = "/nonexistent/ffmpeg";
    CHECK_INT(pen__process_run(&s, &result, &err), PEN_E_NOT_FOUND);
    help_text("script", "#!/bin/sh\nexit 0\n");
    CHECK_INT(chmod(at("script"), 0755), 0);
    confine.program = at("script");
    if (has_landlock())
        CHECK_INT(pen__process_run(&s, &result, &err), PEN_E_ACCESS);
}

enum { N_THREADS = 4, N_RUNS = 8 };

static void *run_some(void *arg)
{
    int *bad = arg;
    for (int i = 0; i < N_RUNS; i++) {
        PenBuf out = {0};
        *bad += run_escape("can_read_input", LANDLOCK, &out) != 0;
        *bad += run_escape("start_forged", NO_LANDLOCK, &out) != 1;
        pen__buf_free(&out);
    }
    return NULL;
}

/* Each has an address of its own for its path. */
TEST(many_at_once)
{
    pthread_t t[N_THREADS];
    int bad[N_THREADS] = {0};
    make_files();
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pen__thread_start(&t[i], run_some, &bad[i], NULL), PEN_OK);
    for (int i = 0; i < N_THREADS; i++)
        pen__thread_join(t[i]);
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(bad[i], 0);
}

/* A place where nobody finds it too. */
static void copy_program(void)
{
    PenBuf data = {0};
    CHECK_INT(chmod(help_root, 0755), 0);
    CHECK(read_whole_file(ESCAPE, &data));
    help_file("escape", data.data, data.bytes);
    snprintf(program, sizeof program, "%s", at("escape"));
    CHECK_INT(chmod(program, 0755), 0);
    pen__buf_free(&data);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    umask(022);
    setenv("AWS_SECRET_ACCESS_KEY", "not for ffmpeg", 1);
    help_begin();
    copy_program();
    list_names();
    printf("%d escapes and controls\n", n_names);
    RUN(unconfined);
    RUN(with_landlock);
    RUN(without_landlock);
    RUN(with_landlock_as_a_user);
    RUN(without_landlock_as_a_user);
    RUN(the_parent_stays_as_it_is);
    RUN(settings_that_would_leave_it_open);
    RUN(many_at_once);
    help_end();
    return TEST_END();
}
