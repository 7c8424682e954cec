/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a program when something is missing: an error, and no descriptor is left open. What the
 * program may do is tested in test_base_confine.c. */
#include "base/spawn/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "base/sys.h"

enum { MOST = 64 }; /* descriptors that are looked at */

static const char *const nothing[] = {"true", NULL};

static uint64_t open_files(void)
{
    uint64_t set = 0;
    for (int fd = 0; fd < MOST; fd++)
        set |= (uint64_t)(fcntl(fd, F_GETFD) >= 0) << fd;
    return set;
}

static void end(const PenSpawned *s)
{
    close(s->out_fd);
    close(s->err_fd);
    if (s->side_fd >= 0)
        close(s->side_fd);
    waitpid(s->pid, NULL, 0);
}

/* Descriptors become available one by one, until the program starts: 0 when it went well. */
static int with_few_files(int from, PenSpawn what)
{
    PenSpawned spawned;
    uint64_t before = open_files();
    int refused = 0;
    for (rlim_t n = (rlim_t)from; n < MOST; n++) {
        struct rlimit limit = {n, MOST};
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            return 2;
        int r = pen__spawn(&what, &spawned);
        if (r == 0) {
            end(&spawned);
            return open_files() == before && refused >= 7 ? 0 : 3;
        }
        if (r != -EMFILE || open_files() != before)
            return 4;
        refused++;
    }
    return 5;
}

static int in_child(int closed, PenSpawn what)
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        for (int fd = closed ? 0 : 3; fd < MOST; fd++)
            close(fd);
        _exit(with_few_files(closed ? 5 : 3, what)); /* 4 is the lowest that it uses */
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

TEST(too_few_descriptors_are_an_error)
{
    CHECK_INT(in_child(0, (PenSpawn){.argv = nothing, .has_side = 1}), 0);
    PenSpawn shared = {.argv = nothing, .has_socket = 1, .has_shared = 1, .shared_fd = 1};
    CHECK_INT(in_child(0, shared), 0);
}

/* Then the pipes have the numbers that the program's own outputs are to have. */
TEST(the_same_without_standard_files)
{
    CHECK_INT(in_child(1, (PenSpawn){.argv = nothing, .has_side = 1}), 0);
}

static int64_t read_some(int fd, char *ret, size_t cap)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 60000) == 1 ? read(fd, ret, cap) : -1;
}

/* Its input and output are a socket, and it reads what is in our memory. */
TEST(a_socket_and_shared_memory)
{
    static const char *const both[] = {"sh", "-c", "read line; echo got $line; cat <&3", NULL};
    PenSpawned spawned;
    char text[32] = "";
    uint64_t before = open_files();
    int memory = pen__sys_real.memory_make("test", 4);
    CHECK(memory >= 0);
    CHECK_INT(pwrite(memory, "four", 4, 0), 4);
    PenSpawn what = {.argv = both, .has_socket = 1, .has_shared = 1, .shared_fd = memory};
    CHECK_INT(pen__spawn(&what, &spawned), 0);
    CHECK_INT(spawned.side_fd, -1);
    CHECK_INT(pen__sys_real.send(spawned.out_fd, "this\n", 5), 5);
    for (size_t n = 0; n < 13;) {
        int64_t got = read_some(spawned.out_fd, text + n, sizeof text - 1 - n);
        CHECK(got > 0);
        n += (size_t)got;
    }
    CHECK_STR(text, "got this\nfour");
    CHECK_INT(read_some(spawned.out_fd, text, sizeof text), 0);
    CHECK_INT(pen__sys_real.send(spawned.out_fd, "more", 4), -EPIPE); /* and no signal */
    end(&spawned);
    close(memory);
    CHECK(open_files() == before);
}

TEST(what_cannot_be_executed_says_why)
{
    static const char *const missing[] = {"/nowhere/at/all", NULL};
    static const char *const folder[] = {"/", NULL};
    PenSpawned spawned;
    uint64_t before = open_files();
    CHECK_INT(pen__spawn(&(PenSpawn){.argv = missing}, &spawned), -ENOENT);
    CHECK_INT(pen__spawn(&(PenSpawn){.argv = folder}, &spawned), -EACCES);
    CHECK(open_files() == before);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(too_few_descriptors_are_an_error);
    RUN(the_same_without_standard_files);
    RUN(a_socket_and_shared_memory);
    RUN(what_cannot_be_executed_says_why);
    return TEST_END();
}
