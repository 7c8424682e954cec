/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a file are listed once for all of its parts. Videos are made by ffmpeg. */
#include <pthread.h>

#include "ingest/video/lists.h"
#include "video_help.h"

static const PenVideoSettings settings = {.seconds = 20};
static PenVideoLists *lists;
static bool has_ffmpeg;
static char shared[512]; /* path of the file that all threads list */

static const PenVideoList *get(const char *name)
{
    PenError err = {0};
    const PenVideoList *list = NULL;
    if (pen__video_lists_get(lists, &settings, at(name), &list, &err) < 0)
        printf("%s\n", err.message);
    return list;
}

/* The file is gone after the first time: it is not listed again. */
TEST(a_file_is_listed_once)
{
    if (!has_ffmpeg)
        SKIP("no ffmpeg here");
    const PenVideoList *first = get("a.mp4");
    CHECK(first);
    CHECK_INT(first->n, 10);
    pen__video_lists_put(lists, first);
    shell("mv '%s' '%s'", at("a.mp4"), at("b.mp4"));
    CHECK(get("a.mp4") == first && get("a.mp4") == first);
    const PenVideoList *other = get("b.mp4");
    CHECK(other && other != first && other->n == 10);
    pen__video_lists_put(lists, other);
    pen__video_lists_put(lists, first);
    pen__video_lists_put(lists, first);
    shell("mv '%s' '%s'", at("b.mp4"), at("a.mp4"));
}

TEST(a_failure_is_not_kept)
{
    if (!has_ffmpeg)
        SKIP("no ffmpeg here");
    PenError err = {0};
    const PenVideoList *list = NULL;
    shell("echo no video > '%s'", at("c.mp4"));
    CHECK_INT(pen__video_lists_get(lists, &settings, at("c.mp4"), &list, &err), PEN_E_DECODE);
    CHECK(!list && strstr(err.message, "c.mp4"));
    shell("cp '%s' '%s'", at("a.mp4"), at("c.mp4"));
    list = get("c.mp4");
    CHECK(list);
    pen__video_lists_put(lists, list);
}

static void *get_in_thread(void *arg)
{
    const PenVideoList **ret = arg;
    PenError err = {0};
    pen__video_lists_get(lists, &settings, shared, ret, &err);
    return NULL;
}

TEST(threads_wait_for_each_other)
{
    if (!has_ffmpeg)
        SKIP("no ffmpeg here");
    pthread_t threads[3];
    const PenVideoList *found[3] = {NULL};
    shell("cp '%s' '%s'", at("a.mp4"), at("d.mp4"));
    for (int i = 0; i < 3; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, get_in_thread, &found[i]), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK(found[0] && found[0] == found[1] && found[0] == found[2]);
    for (int i = 0; i < 3; i++)
        pen__video_lists_put(lists, found[i]);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    has_ffmpeg = run_shell("ffmpeg -version") == 0;
    if (has_ffmpeg)
        shell("ffmpeg -y -loglevel error -f lavfi -i testsrc=size=64x48:rate=10:duration=1 "
              "-pix_fmt yuv420p -c:v mpeg4 '%s'",
              at("a.mp4"));
    snprintf(shared, sizeof shared, "%s", at("d.mp4"));
    if (pen__video_lists_new(&lists, NULL) < 0)
        return 1;
    RUN(a_file_is_listed_once);
    RUN(a_failure_is_not_kept);
    RUN(threads_wait_for_each_other);
    pen__video_lists_free(&lists);
    help_end();
    return TEST_END();
}
