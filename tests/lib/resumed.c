/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/resumed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "lib/images.h"
#include "lib/make_pack.h"
#include "lib/sweep.h"
#include "lib/tree.h"

enum { N_INPUTS = 14, N_FIRST = 4 };

static const char *out;
static char folder[256], first[256], list[256], tar[256], frames[256];

/* ---- inputs ---------------------------------------------------------------------------------- */

static void put_picture(const char *path, uint32_t seed)
{
    PenBuf b = {0};
    image_jpeg(&(ImageSpec){40, 32, 3, seed, 0, 1, 0}, &b);
    file_store(path, b.data, b.bytes);
    pen__buf_free(&b);
}

/* One of the first three inputs is broken, and left out. */
static void fill_folder(void)
{
    dir_remove(folder);
    make_folder(folder, 0, N_INPUTS);
    file_store(scratch("resumed/ash/002.jpg"), "not a picture", 13);
}

/* The list of broken inputs lies beside the pack, and stays there. */
static void forget_report(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s-bad.jsonl", out);
    MUST(unlink(path) == 0);
}

static void make_frames(void)
{
    Tree t = {0};
    PenBuf b = {0};
    for (uint32_t clip = 0; clip < 4; clip++) {
        char path[64];
        snprintf(path, sizeof path, "clip-%u", clip);
        tree_add(&t, path, NULL, 0);
        for (uint32_t i = 0; i < 2; i++) {
            image_jpeg(&(ImageSpec){32, 16, 3, clip * 2 + i, 0, 1, 0}, &b);
            snprintf(path, sizeof path, "clip-%u/%u.jpg", clip, i);
            tree_add(&t, path, b.data, b.bytes);
        }
    }
    tree_store(&t, frames);
    tree_free(&t);
    pen__buf_free(&b);
}

void resumed_begin(const char *pack)
{
    out = pack;
    snprintf(folder, sizeof folder, "%s", scratch("resumed"));
    snprintf(first, sizeof first, "%s", scratch("first"));
    snprintf(list, sizeof list, "%s", scratch("task-list/list.csv"));
    snprintf(tar, sizeof tar, "%s", scratch("tasks.tar"));
    snprintf(frames, sizeof frames, "%s", scratch("frames"));
    make_folder(first, 0, N_FIRST);
    make_list(scratch("task-list"), 4);
    make_tar(tar, 4);
    make_frames();
}

/* ---- runs ------------------------------------------------------------------------------------ */

static PenIngestSettings settings(const char *const *source)
{
    PenIngestSettings s = small_settings(source, out);
    s.order = PEN_PACK_SOURCE;
    s.shard_bytes = 1; /* a shard for each block */
    s.skip_bad = 1;
    return s;
}

static int run(const char *source, uint32_t task, uint32_t n_tasks, PenError *reterr)
{
    PenIngestResult result;
    PenIngestSettings s = settings(&source);
    s.kind = source == frames ? PEN_INPUT_FRAMES : PEN_INPUT_AUTO;
    s.task = task;
    s.n_tasks = n_tasks;
    return pen_ingest_run(&s, &result, reterr);
}

/* The first run after an interruption finds so many samples finished; -1: this is not the first. */
static int kept = -1;

int resume_pack(PenError *reterr)
{
    const char *source = folder;
    PenIngestResult result;
    PenIngestSettings s = settings(&source);
    int r = pen_ingest_run(&s, &result, reterr);
    if (r == PEN_OK && kept >= 0)
        MUST(result.n_resumed == (uint64_t)kept);
    kept = -1;
    return r;
}

int resume_append(PenError *reterr)
{
    const char *source = folder;
    PenIngestResult result;
    PenIngestSettings s = settings(&source);
    s.append = 1;
    return pen_ingest_run(&s, &result, reterr);
}

int resume_task(PenError *reterr)
{
    return run(folder, 0, 2, reterr);
}

int plan_again(PenError *reterr)
{
    const char *source = folder;
    PenIngestResult result;
    PenIngestSettings s = settings(&source);
    return pen_ingest_plan(&s, &result, reterr);
}

/* ---- interruptions --------------------------------------------------------------------------- */

static unsigned listed; /* shards that are still listed before the run ends */

/* The shard is in its place when the list that names it fails to be. */
static int rename_some(int from_dir, const char *from, int to_dir, const char *to)
{
    if (strcmp(to, "shards") == 0 && listed-- == 0)
        return -EIO;
    return pen__sys_real.rename(from_dir, from, to_dir, to);
}

static void interrupt(int (*command)(PenError *reterr), unsigned n_listed)
{
    static PenSys sys;
    PenError e = {0};
    sys = pen__sys_real;
    sys.rename = rename_some;
    listed = n_listed;
    fill_folder();
    pen__sys = &sys;
    int r = command(&e);
    pen__sys = &pen__sys_real;
    if (r != PEN_E_IO)
        must_failed("a run that is interrupted", 0, e.message);
}

void interrupt_pack(void)
{
    interrupt(resume_pack, 3);
    kept = 9;
}

void interrupt_pack_for_writer(void)
{
    interrupt_pack();
    forget_report();
    kept = -1;
}

void interrupt_pack_and_mend(void)
{
    interrupt_pack();
    put_picture(scratch("resumed/birch/013.jpg"), 99);
}

void interrupt_pack_and_change(void)
{
    interrupt_pack();
    put_picture(scratch("resumed/ash/000.jpg"), 98);
    kept = 0;
}

void pack_first(void)
{
    const char *source = first;
    PenIngestResult result;
    PenIngestSettings s = small_settings(&source, out); /* all in one shard, which stays */
    MUST(pen_ingest_run(&s, &result, NULL) == PEN_OK);
}

void interrupt_append(void)
{
    pack_first();
    interrupt(resume_append, 1);
}

void interrupt_task(void)
{
    interrupt(resume_task, 1);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void run_tasks(const char *source)
{
    PenError e = {0};
    for (uint32_t i = 0; i < 2; i++)
        if (run(source, i, 2, &e) < 0)
            must_failed(source, 0, e.message);
}

void run_tasks_and_change(void)
{
    fill_folder();
    run_tasks(folder);
    put_picture(scratch("resumed/ash/000.jpg"), 97);
}

void run_list_tasks(void)
{
    run_tasks(list);
}

void run_tar_tasks(void)
{
    run_tasks(tar);
}

void run_frames_tasks(void)
{
    run_tasks(frames);
}
