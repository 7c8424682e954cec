/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of 'penstock index' that do not come to their end: killed, or without the summaries of
 * remote tars. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "object_server.h"
#include "pack_help.h"

enum { SAMPLES = 18, MEMBERS = 6 };

static atomic_int calls_left; /* until something happens */

static int run(PenIngestSettings *s, PenIngestResult *result, PenError *err)
{
    s->in_place = 1;
    s->mode = PEN_MODE_KEEP;
    return pen_ingest_run(s, result, err);
}

/* ---- killed ---------------------------------------------------------------------------------- */

static int killing_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    if (atomic_fetch_sub(&calls_left, 1) == 0)
        kill(getpid(), SIGKILL);
    return pen__sys_real.rename(from_dir, from, to_dir, to);
}

/* In a process of its own. True: it was killed. */
static bool run_and_kill(PenIngestSettings *s, int at_rename)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        PenSys sys = pen__sys_real;
        PenIngestResult result;
        sys.rename = killing_rename;
        atomic_store(&calls_left, at_rename);
        pen__sys = &sys;
        _exit(run(s, &result, NULL) == PEN_OK ? 0 : 1);
    }
    if (waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status) != 0))
        test__fail(__FILE__, __LINE__, "rename %d: status %d", at_rename, status);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void check_samples(const char *path)
{
    PenPack *pack = NULL;
    PenError err = {0};
    PenBuf found = {0}, expected = {0};
    CHECK_INT(pen_pack_open(path, NULL, &pack, &err), PEN_OK);
    for (uint64_t i = 0; i < SAMPLES; i++)
        help_check_image(pack, i, &found, &expected);
    pen__buf_free(&found);
    pen__buf_free(&expected);
    pen_pack_close(&pack);
}

/* Whatever a killed run has left, the same command makes the pack of it. */
TEST(killed_before_a_rename)
{
    uint64_t resumed = 0;
    int n = 0;
    help_begin();
    help_folder("files", 0, SAMPLES);
    for (;; n += 2) { /* every second one: there are 13 */
        char out[32];
        PenIngestResult result;
        snprintf(out, sizeof out, "p-%d.pen", n);
        PenIngestSettings s = help_ingest("files", out);
        bool was_killed = run_and_kill(&s, n);
        CHECK_OK_SO_FAR();
        if (!was_killed)
            break;
        CHECK_GOES(run(&s, &result, &err));
        CHECK_INT(result.n_samples, SAMPLES);
        resumed = PEN_MAX(resumed, result.n_resumed);
        check_samples(at(out));
        CHECK_OK_SO_FAR();
    }
    CHECK(n >= 3);
    CHECK(resumed > 0);
    help_end();
}

/* ---- summaries that vanish ------------------------------------------------------------------- */

static bool find_tar(void *ctx, const char *path, ServedObject *ret)
{
    const HelpTar *t = ctx;
    ret->data = t->data;
    ret->bytes = t->bytes;
    return strcmp(path, "/web.tar") == 0;
}

static int vanishing_open(const char *path, int how)
{
    if (how == PEN_OPEN_READ && strstr(path, "/tars/") && atomic_fetch_sub(&calls_left, 1) <= 0)
        return -ENOENT;
    return pen__sys_real.open(path, how);
}

static void make_tar(HelpTar *t)
{
    PenBuf jpeg = {0};
    help_tar_begin(t, archive_write_set_format_pax, archive_write_add_filter_none);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        char name[32];
        help_jpeg(i, &jpeg);
        snprintf(name, sizeof name, "%03u.jpg", i);
        help_tar_member(t, name, AE_IFREG, NULL, jpeg.data, jpeg.bytes);
    }
    help_tar_end(t, NULL);
    pen__buf_free(&jpeg);
}

/* Another program may remove them while shards are written. That is no bad input: with --skip-bad
 * all images of the tar would be left out. */
TEST(a_summary_vanishes)
{
    HelpTar tar;
    char address[64];
    const char *source = address;
    int failures = 0;
    PenSys sys = pen__sys_real;
    help_begin();
    make_tar(&tar);
    snprintf(address, sizeof address, "http://127.0.0.1:%d/web.tar",
             object_server_start(find_tar, &tar));
    sys.open = vanishing_open;
    for (int n = 0;; n++) {
        char out[32];
        PenIngestResult result = {0};
        PenError err = {0};
        snprintf(out, sizeof out, "p-%d.pen", n);
        PenIngestSettings s = help_ingest("none", out);
        s.sources = &source;
        s.skip_bad = 1;
        atomic_store(&calls_left, n);
        pen__sys = &sys;
        int r = run(&s, &result, &err);
        pen__sys = &pen__sys_real;
        if (r == PEN_OK) {
            CHECK_INT(result.n_bad, 0);
            CHECK_INT(result.n_samples, MEMBERS);
            break;
        }
        CHECK(n < 20);
        failures += r == PEN_E_CORRUPT && strstr(err.message, "is no longer there");
    }
    CHECK(failures > 0);
    object_server_stop();
    free(tar.data);
    help_end();
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(killed_before_a_rename);
    RUN(a_summary_vanishes);
    return TEST_END();
}
