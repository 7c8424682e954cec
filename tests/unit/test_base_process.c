/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "base/error.h"
#include "base/thread.h"

#define SECOND UINT64_C(1000000000)

typedef struct Ran {
    int r;
    PenError err;
    PenProcessResult result;
    PenBuf out; /* ends in NUL */
} Ran;

static void run_with(Ran *ran, PenProcessSettings *s)
{
    *ran = (Ran){.r = 0};
    if (!s->take) {
        s->take = pen__process_take_buf;
        s->take_ctx = &ran->out;
    }
    if (!s->deadline_ns)
        s->deadline_ns = pen__deadline_after(20 * SECOND);
    ran->r = pen__process_run(s, &ran->result, &ran->err);
    (void)pen__buf_add(&ran->out, "", 1);
}

static void run_shell(Ran *ran, const char *script, PenProcessSettings *s)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    PenProcessSettings usual = {.argv = argv};
    if (!s)
        s = &usual;
    s->argv = argv;
    run_with(ran, s);
}

#define OUT(ran) ((const char *)(ran).out.data)

static int count_fds(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

TEST(output_and_exit_code)
{
    Ran ran;
    run_shell(&ran, "echo out; echo err >&2; exit 3", NULL);
    CHECK_INT(ran.r, PEN_OK);
    CHECK_STR(OUT(ran), "out\n");
    CHECK_STR(ran.result.tail, "err\n");
    CHECK_INT(ran.result.exit.code, 3);
    CHECK_INT(ran.result.exit.signal, 0);
    CHECK_INT(ran.result.out_bytes, 4);
    pen__buf_free(&ran.out);
    run_shell(&ran, "kill -9 $$", NULL);
    CHECK_INT(ran.r, PEN_OK);
    CHECK_INT(ran.result.exit.code, -1);
    CHECK_INT(ran.result.exit.signal, SIGKILL);
    pen__buf_free(&ran.out);
}

/* Without a slash PATH is searched; no shell looks at the arguments. */
TEST(arguments_as_they_are)
{
    Ran ran;
    const char *argv[] = {"printf", "%s|", "$HOME", "a b", "*", "", "'", NULL};
    PenProcessSettings s = {.argv = argv};
    run_with(&ran, &s);
    CHECK_INT(ran.r, PEN_OK);
    CHECK_STR(OUT(ran), "$HOME|a b|*||'|");
    pen__buf_free(&ran.out);
}

TEST(environment)
{
    Ran ran;
    setenv("PEN_TEST_SEEN", "yes", 1);
    run_shell(&ran, "echo $PEN_TEST_SEEN", NULL);
    CHECK_STR(OUT(ran), "yes\n");
    pen__buf_free(&ran.out);
    const char *env[] = {"PEN_TEST_SEEN=other", NULL};
    PenProcessSettings s = {.env = env};
    run_shell(&ran, "echo $PEN_TEST_SEEN; echo ${HOME-none}", &s);
    CHECK_STR(OUT(ran), "other\nnone\n");
    pen__buf_free(&ran.out);
    unsetenv("PEN_TEST_SEEN");
}

TEST(not_there)
{
    Ran ran;
    const char *argv[] = {"/nonexistent/program", "secret-argument", NULL};
    PenProcessSettings s = {.argv = argv};
    int before = count_fds();
    run_with(&ran, &s);
    CHECK_INT(ran.r, PEN_E_NOT_FOUND);
    CHECK_INT(ran.err.os_errno, ENOENT);
    CHECK(strstr(ran.err.message, "/nonexistent/program"));
    CHECK(!strstr(ran.err.message, "secret-argument"));
    pen__buf_free(&ran.out);
    argv[0] = "/etc/passwd";
    run_with(&ran, &s);
    CHECK_INT(ran.r, PEN_E_ACCESS);
    pen__buf_free(&ran.out);
    CHECK_INT(count_fds(), before);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

/* Files of the program around us do not go along, though they be not marked. */
TEST(no_files_go_along)
{
    Ran ran;
    int fd = open("/dev/null", O_RDONLY), high = dup2(fd, 200);
    int before = count_fds();
    run_shell(&ran,
              "for f in /proc/self/fd/*; do echo ${f##*/}; done | sort -n | tr '\\n' ' '; "
              "[ -e /proc/self/fd/200 ] && echo leaked; :",
              NULL);
    CHECK_INT(ran.r, PEN_OK);
    CHECK(!strstr(OUT(ran), "leaked"));
    CHECK(!strstr(OUT(ran), "200"));
    CHECK(strstr(OUT(ran), "0 1 2"));
    CHECK_INT(count_fds(), before);
    pen__buf_free(&ran.out);
    close(fd);
    close(high);
}

/* Not by way of a shell, which clears the mask itself. */
TEST(no_input_and_plain_signals)
{
    Ran ran;
    const char *argv[] = {"grep", "-h", "^Sig[BI]", "-", "/proc/self/status", NULL};
    PenProcessSettings s = {.argv = argv};
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    struct sigaction ignore = {.sa_handler = SIG_IGN}, was;
    sigaction(SIGPIPE, &ignore, &was);
    run_with(&ran, &s);
    sigaction(SIGPIPE, &was, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    CHECK_INT(ran.r, PEN_OK);
    CHECK_STR(OUT(ran), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    pen__buf_free(&ran.out);
}

TEST(end_of_error_output_is_kept)
{
    Ran ran;
    run_shell(&ran, "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done >&2", NULL);
    CHECK_INT(ran.r, PEN_OK);
    CHECK_INT(ran.result.tail_bytes, PEN_PROCESS_TAIL);
    CHECK_INT(strlen(ran.result.tail), PEN_PROCESS_TAIL);
    CHECK_STR(ran.result.tail + PEN_PROCESS_TAIL - 10, "line 2999\n");
    CHECK(!strstr(ran.result.tail, "line 10\n"));
    pen__buf_free(&ran.out);
}

TEST(large_output_is_whole)
{
    Ran ran;
    run_shell(&ran, "head -c 3000000 /dev/zero", NULL);
    CHECK_INT(ran.r, PEN_OK);
    CHECK_INT(ran.out.bytes, 3000001);
    CHECK_INT(ran.result.out_bytes, 3000000);
    pen__buf_free(&ran.out);
}

TEST(too_much_output)
{
    Ran ran;
    PenProcessSettings s = {.out_bytes = 1000};
    uint64_t start = pen__sys->now_ns();
    run_shell(&ran, "cat /dev/zero", &s);
    CHECK_INT(ran.r, PEN_E_LIMIT);
    CHECK(pen__sys->now_ns() - start < 30 * SECOND);
    CHECK(ran.out.bytes <= 1001);
    pen__buf_free(&ran.out);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}

static int take_nothing(void *ctx, const void *data, size_t bytes, PenError *reterr)
{
    (void)ctx, (void)data, (void)bytes;
    return pen__fail(reterr, PEN_E_DECODE, "test", "not wanted");
}

TEST(taker_ends_it)
{
    Ran ran;
    PenProcessSettings s = {.take = take_nothing};
    run_shell(&ran, "echo x; sleep 60", &s);
    CHECK_INT(ran.r, PEN_E_DECODE);
    CHECK_STR(ran.err.message, "not wanted");
    pen__buf_free(&ran.out);
}

/* Also when it is dead and waits for whoever takes orphans here. */
static bool is_dead(long pid)
{
    char path[64], line[256] = "", state = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return true;
    if (fgets(line, sizeof line, f) && strrchr(line, ')'))
        state = strrchr(line, ')')[2];
    fclose(f);
    return state == 'Z' || state == 'X' || !state;
}

static bool is_gone(const char *pid_text)
{
    long pid = strtol(pid_text, NULL, 10);
    for (int i = 0; i < 4000 && !is_dead(pid); i++)
        poll(NULL, 0, 5);
    return pid > 1 && is_dead(pid);
}

/* It and what it has started. */
TEST(deadline_kills_the_group)
{
    Ran ran;
    PenProcessSettings s = {.deadline_ns = pen__deadline_after(SECOND / 5)};
    uint64_t start = pen__sys->now_ns();
    run_shell(&ran, "trap '' TERM INT; sleep 60 & echo $!; sleep 60", &s);
    uint64_t spent = pen__sys->now_ns() - start;
    CHECK_INT(ran.r, PEN_E_TIMEOUT);
    CHECK(spent >= SECOND / 5 && spent < 30 * SECOND);
    CHECK(is_gone(OUT(ran)));
    pen__buf_free(&ran.out);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}

/* A daemon that holds the pipes open does not keep us, and does not stay. */
TEST(what_stays_behind_is_killed)
{
    Ran ran;
    uint64_t start = pen__sys->now_ns();
    run_shell(&ran, "sleep 60 & echo $!", NULL);
    CHECK_INT(ran.r, PEN_OK);
    CHECK(pen__sys->now_ns() - start < 30 * SECOND);
    CHECK(is_gone(OUT(ran)));
    pen__buf_free(&ran.out);
}

static void *cancel_soon(void *arg)
{
    poll(NULL, 0, 50);
    atomic_store((atomic_bool *)arg, true);
    return NULL;
}

TEST(cancel)
{
    Ran ran;
    atomic_bool cancel = false;
    PenProcessSettings s = {.cancel = &cancel};
    pthread_t t;
    uint64_t start = pen__sys->now_ns();
    CHECK_INT(pen__thread_start(&t, cancel_soon, &cancel, NULL), PEN_OK);
    run_shell(&ran, "sleep 60", &s);
    pen__thread_join(t);
    CHECK_INT(ran.r, PEN_E_CANCELLED);
    CHECK(pen__sys->now_ns() - start < 30 * SECOND);
    pen__buf_free(&ran.out);
}

TEST(memory_limit)
{
    Ran ran;
    PenProcessSettings s = {.memory_bytes = 64u << 20};
    run_shell(&ran, "ulimit -v; dd if=/dev/zero of=/dev/null bs=256M count=1", &s);
    CHECK_INT(ran.r, PEN_OK);
    CHECK(strncmp(OUT(ran), "65536\n", 6) == 0);
    CHECK(ran.result.exit.code != 0);
    pen__buf_free(&ran.out);
}

/* A program that ignores SIGCHLD takes the exit code away from us; the output is there. */
TEST(exit_taken_by_others)
{
    Ran ran;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, was;
    sigaction(SIGCHLD, &ignore, &was);
    run_shell(&ran, "echo here; exit 5", NULL);
    sigaction(SIGCHLD, &was, NULL);
    CHECK_INT(ran.r, PEN_OK);
    CHECK_STR(OUT(ran), "here\n");
    CHECK(ran.result.exit.lost || ran.result.exit.code == 5);
    pen__buf_free(&ran.out);
}

enum { N_THREADS = 4, N_RUNS = 5 };

static void *run_some(void *arg)
{
    int *bad = arg;
    for (int i = 0; i < N_RUNS; i++) {
        Ran ran;
        run_shell(&ran, "echo $$; exit 7", NULL);
        *bad += ran.r != PEN_OK || ran.result.exit.code != 7 || ran.out.bytes < 3;
        pen__buf_free(&ran.out);
    }
    return NULL;
}

TEST(many_at_once)
{
    pthread_t t[N_THREADS];
    int bad[N_THREADS] = {0}, before = count_fds();
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pen__thread_start(&t[i], run_some, &bad[i], NULL), PEN_OK);
    for (int i = 0; i < N_THREADS; i++)
        pen__thread_join(t[i]);
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(bad[i], 0);
    CHECK_INT(count_fds(), before);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}

/* A program may have closed its own 0, 1 and 2: then pipes get those numbers. */
TEST(without_standard_files)
{
    Ran ran;
    fflush(stdout);
    int keep[3];
    for (int i = 0; i < 3; i++) {
        keep[i] = fcntl(i, F_DUPFD_CLOEXEC, 100);
        close(i);
    }
    run_shell(&ran, "echo out; echo err >&2", NULL);
    for (int i = 0; i < 3; i++) {
        dup2(keep[i], i);
        close(keep[i]);
    }
    CHECK_INT(ran.r, PEN_OK);
    CHECK_STR(OUT(ran), "out\n");
    CHECK_STR(ran.result.tail, "err\n");
    pen__buf_free(&ran.out);
}

static PenBuf side;

static int take_out(void *ctx, const void *data, size_t bytes, PenError *reterr)
{
    (void)ctx;
    (void)data;
    (void)bytes;
    (void)reterr;
    return PEN_OK;
}

static int take_side(void *ctx, const void *data, size_t bytes, PenError *reterr)
{
    (void)ctx;
    return pen__process_take_buf(&side, data, bytes, reterr);
}

TEST(third_output)
{
    Ran ran;
    PenProcessSettings s = {.take_side = take_side};
    int before = count_fds();
    run_shell(&ran, "echo out; echo side >&3; echo err >&2; echo more >&3; exec 3>&-; echo end",
              &s);
    CHECK_INT(ran.r, PEN_OK);
    CHECK_STR(OUT(ran), "out\nend\n");
    CHECK_STR(ran.result.tail, "err\n");
    CHECK_INT(side.bytes, 10);
    CHECK_MEM(side.data, "side\nmore\n", 10);
    CHECK_INT(ran.result.side_bytes, 10);
    CHECK_INT(count_fds(), before);
    pen__buf_free(&ran.out);
    /* Much of both at once: neither waits for the other. */
    side.bytes = 0;
    s = (PenProcessSettings){.take = take_out, .take_side = take_side};
    run_shell(&ran,
              "dd if=/dev/zero bs=1M count=3 >&3 2>/dev/null & dd if=/dev/zero bs=1M count=5 "
              "2>/dev/null; wait",
              &s);
    CHECK_INT(ran.r, PEN_OK);
    CHECK_INT(side.bytes, 3 << 20);
    CHECK_INT(ran.result.out_bytes, 5 << 20);
    pen__buf_free(&ran.out);
    s = (PenProcessSettings){.take_side = take_side, .side_bytes = 1000};
    run_shell(&ran, "yes >&3", &s);
    CHECK_INT(ran.r, PEN_E_LIMIT);
    CHECK(strstr(ran.err.message, "to stderr"));
    pen__buf_free(&ran.out);
    pen__buf_free(&side);
    run_shell(&ran, "echo no >&3", NULL); /* without a taker there is no such descriptor */
    CHECK(ran.result.exit.code != 0);
    pen__buf_free(&ran.out);
}

TEST(processor_limit)
{
    Ran ran;
    PenProcessSettings s = {.cpu_seconds = 1};
    run_shell(&ran, "while :; do :; done", &s);
    CHECK_INT(ran.r, PEN_OK);
    CHECK_INT(ran.result.exit.signal, SIGXCPU);
    pen__buf_free(&ran.out);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(output_and_exit_code);
    RUN(arguments_as_they_are);
    RUN(environment);
    RUN(not_there);
    RUN(no_files_go_along);
    RUN(no_input_and_plain_signals);
    RUN(end_of_error_output_is_kept);
    RUN(large_output_is_whole);
    RUN(too_much_output);
    RUN(taker_ends_it);
    RUN(deadline_kills_the_group);
    RUN(what_stays_behind_is_killed);
    RUN(cancel);
    RUN(memory_limit);
    RUN(exit_taken_by_others);
    RUN(many_at_once);
    RUN(without_standard_files);
    RUN(third_output);
    RUN(processor_limit);
    return TEST_END();
}
