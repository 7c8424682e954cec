/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spawn/confine.h"

/* What a child needs between vfork and exec. */
typedef struct Birth {
    const PenSpawn *what;
    int in, out, err, side, report; /* all of them above 3 and closed by exec */
    PenExecPath path;               /* when it is confined */
} Birth;

/* Files of the program around us, which may not be marked as closed by exec. */
static void leave_files_behind(void)
{
    enum { CLOEXEC_FLAG = 1 << 2 }; /* CLOSE_RANGE_CLOEXEC, of Linux 5.11 */
    struct rlimit files;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, CLOEXEC_FLAG) == 0)
        return;
#endif
    int n = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 65536 ? (int)files.rlim_cur
                                                                            : 65536;
    for (int fd = 3; fd < n; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static int limit_cpu(const PenSpawn *what)
{
    struct rlimit cpu = {what->cpu_seconds, what->cpu_seconds + 2};
    return what->cpu_seconds ? setrlimit(RLIMIT_CPU, &cpu) : 0;
}

/* What is confined has no terminal. */
static int leave_group(const PenSpawn *what)
{
    return what->confine ? (setsid() < 0 ? -1 : 0) : setpgid(0, 0);
}

static void execute_confined(const Birth *b)
{
    int r = pen__confine(b->what->confine, &b->path, b->what->memory_bytes);
    if (r < 0)
        errno = -r;
    else
        execve(b->path.at, (char *const *)b->what->argv, (char *const *)b->what->env);
}

static void execute(const PenSpawn *what)
{
    struct rlimit memory = {what->memory_bytes, what->memory_bytes};
    if (what->memory_bytes && setrlimit(RLIMIT_AS, &memory) < 0)
        return;
    execvpe(what->argv[0], (char *const *)what->argv,
            what->env ? (char *const *)what->env : environ);
}

/* Runs on the parent's memory while that stands still: system calls alone. */
static void be_born(const Birth *b)
{
    struct sigaction as_new = {.sa_handler = SIG_DFL};
    for (int i = 1; i < NSIG; i++)
        (void)sigaction(i, &as_new, NULL);
    sigset_t none;
    sigemptyset(&none);
    if (leave_group(b->what) < 0 || dup2(b->in, 0) < 0 || dup2(b->out, 1) < 0 ||
        dup2(b->err, 2) < 0)
        return;
    leave_files_behind();
    if (b->side >= 0 && dup2(b->side, 3) < 0)
        return;
    if (limit_cpu(b->what) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        return;
    if (b->what->confine)
        execute_confined(b);
    else
        execute(b->what);
}

/* vfork: a process of 100 GB is not copied, and nobody's handlers of fork run. No signal may come
 * in between, as its handler would run in the child on our memory. */
static int give_birth(const Birth *b)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-*): posix_spawn cannot limit memory */
    if (pid == 0) {
        be_born(b); /* NOLINT(clang-analyzer-*): system calls alone, as it says */
        int e = errno;
        (void)!write(b->report, &e, sizeof e);
        _exit(127);
    }
    int e = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return pid < 0 ? -e : (int)pid;
}

/* Ends that are not 0, 1 or 2, which a program may have closed, nor 3. */
static int lift(const int low[2], int ends[2])
{
    for (int i = 0; i < 2; i++)
        ends[i] = low[i] > 3 ? low[i] : fcntl(low[i], F_DUPFD_CLOEXEC, 4);
    int e = errno;
    for (int i = 0; i < 2; i++)
        if (low[i] <= 3)
            close(low[i]);
    return ends[0] < 0 || ends[1] < 0 ? -e : 0;
}

static int open_pipe(int ends[2])
{
    int low[2];
    return pipe2(low, O_CLOEXEC) < 0 ? -errno : lift(low, ends);
}

static int open_socket(int ends[2])
{
    int low[2];
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, low) < 0 ? -errno : lift(low, ends);
}

static void close_all(int *fds, int n)
{
    for (int i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

enum { OUT = 0, ERR = 2, REPORT = 4, SIDE = 6, NOTHING = 8, N_FDS = 9 }; /* pipes: first reading */

static int open_ends(const PenSpawn *what, int fds[N_FDS])
{
    int r = what->has_socket ? open_socket(&fds[OUT]) : open_pipe(&fds[OUT]);
    for (int i = ERR; !r && i < (what->has_side ? NOTHING : SIDE); i += 2)
        r = open_pipe(&fds[i]);
    if (r == 0 && what->has_shared) {
        fds[SIDE + 1] = fcntl(what->shared_fd, F_DUPFD_CLOEXEC, 4);
        r = fds[SIDE + 1] < 0 ? -errno : 0;
    }
    return r;
}

static int open_fds(const PenSpawn *what, int fds[N_FDS])
{
    int r = open_ends(what, fds);
    if (r < 0)
        return r;
    int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
    fds[NOTHING] = low < 0 || low > 3 ? low : fcntl(low, F_DUPFD_CLOEXEC, 4);
    int e = errno;
    if (low >= 0 && low <= 3)
        close(low);
    if (fds[NOTHING] < 0)
        return -e;
    if (fcntl(fds[OUT], F_SETFL, O_NONBLOCK) < 0 || fcntl(fds[ERR], F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    if (what->has_side && fcntl(fds[SIDE], F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

static int spawn_with(const PenSpawn *what, int fds[N_FDS])
{
    PenExecPath path = {NULL};
    int error = 0, r = open_fds(what, fds);
    if (r == 0 && what->confine)
        r = what->memory_bytes && what->memory_bytes <= PEN_CONFINE_MEMORY && what->env
                ? pen__exec_path_map(what->confine->program, &path)
                : -EINVAL;
    if (r < 0)
        return r;
    Birth birth = {.what = what,
                   .in = what->has_socket ? fds[OUT + 1] : fds[NOTHING],
                   .out = fds[OUT + 1],
                   .err = fds[ERR + 1],
                   .side = fds[SIDE + 1],
                   .report = fds[REPORT + 1],
                   .path = path};
    int pid = give_birth(&birth);
    pen__exec_path_unmap(&path);
    if (pid < 0)
        return pid;
    /* Closed by the exec: then there is nothing to read, and no error. */
    close(fds[REPORT + 1]);
    fds[REPORT + 1] = -1;
    ssize_t n;
    do
        n = read(fds[REPORT], &error, sizeof error);
    while (n < 0 && errno == EINTR);
    if (n != sizeof error)
        return pid;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return error > 0 ? -error : -EIO;
}

int pen__spawn(const PenSpawn *what, PenSpawned *ret)
{
    int fds[N_FDS] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
    int pid = spawn_with(what, fds);
    if (pid >= 0) {
        *ret =
            (PenSpawned){.pid = pid, .out_fd = fds[OUT], .err_fd = fds[ERR], .side_fd = fds[SIDE]};
        fds[OUT] = fds[ERR] = fds[SIDE] = -1;
    }
    close_all(fds, N_FDS);
    return pid < 0 ? pid : 0;
}
