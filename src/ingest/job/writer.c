/* SPDX-License-Identifier: Apache-2.0 */
/* The public writer: samples given one by one. */
#include <penstock/writer.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "ingest/job/job.h"
#include "ingest/job/join.h"
#include "ingest/job/settings.h"
#include "ingest/job/writer_task.h"
#include "ingest/prepare/prepared.h"
#include "ingest/prepare/video_copies.h"
#include "ingest/video/lists.h"
#include "io/dir.h"
#include "manage/work.h"
#include "manage/work_home.h"
#include "pack/write/roll.h"

#define WHERE "ingest/writer"

struct PenWriter {
    char *path;
    PenStore *store;
    char *home; /* where .work is */
    PenLock lock;
    PenSchema schema;
    PenPrepareSettings prepare;
    PenEntryScan *scan;
    uint64_t block_samples;
    char text[PEN_SETTINGS_TEXT_BYTES];
    PenRoll *roll;
    PenWriterTask task; /* n_tasks 0: the writer writes an entire pack */
    uint64_t n_samples;
    int made_work, failed, finished;
    bool makes_entries; /* images may have entry tables */
};

/* ---- opening --------------------------------------------------------------------------------- */

static void copy_settings(PenWriter *w, const PenWriterSettings *s, PenIngestSettings *ret)
{
    pen_ingest_settings_init(ret);
    ret->mode = s->mode;
    ret->quality = s->quality;
    ret->max_side = s->max_side;
    ret->short_side = s->short_side;
    ret->raw_share = s->raw_share;
    ret->codec = s->codec;
    ret->smart_threshold = s->smart_threshold;
    ret->check_decode = s->check_decode;
    ret->sixteen_bit = s->sixteen_bit;
    ret->no_index = s->no_index;
    ret->progressive = s->progressive;
    ret->order = PEN_PACK_SOURCE;
    ret->shard_bytes = s->shard_bytes;
    ret->block_samples = s->block_samples;
    ret->in_place = s->in_place;
    ret->video = s->in_place ? PEN_VIDEOS_KEEP : PEN_VIDEOS_FRAMES;
    ret->video_seconds = s->video_seconds;
    w->prepare = pen__settings_prepare(ret);
    w->prepare.scan = &w->scan;
    w->makes_entries = pen__settings_entries(ret);
    w->block_samples = s->block_samples;
}

static int open_schema(PenWriter *w, const PenWriterSettings *s, PenError *reterr)
{
    int r = pen__schema_init(&w->schema, s->fields, s->n_fields, reterr);
    if (r < 0)
        return r;
    w->schema.has_videos = w->prepare.in_place;
    w->schema.has_entries = w->makes_entries && pen__fields_have_images(s->fields, s->n_fields);
    if (!s->class_field)
        return PEN_OK;
    for (uint32_t f = 0; f < s->n_fields; f++)
        if (strcmp(s->fields[f].name, s->class_field) == 0)
            return pen__schema_set_classes(&w->schema, (int32_t)f, s->classes, s->n_classes,
                                           reterr);
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%s: expected the field '%s' of the classes in the schema, found none",
                     w->path, s->class_field);
}

/* A run of 'penstock pack' that has not come to its end: this pack takes its place. What it was
 * made from is still there. */
static int replace_run(const PenWriter *w, const char *plan, PenError *reterr)
{
    int r = pen__work_has_tasks(w->home, reterr); /* others may run on other machines */
    if (r == 1)
        return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                         "%s: tasks have been run here; 'penstock finalise %s' makes a pack of "
                         "them, 'penstock gc --abandon %s' discards them",
                         w->path, w->path, w->path);
    PenJob job = {.store = w->store, .home = w->home};
    if (r == PEN_OK)
        r = pen__plan_open(plan, &job.plan, reterr);
    /* A damaged one, or one of another version, is of no use to anybody. */
    r = pen__error_accept(r, PEN_E_CORRUPT, reterr);
    r = pen__error_accept(r, PEN_E_FORMAT, reterr);
    if (r == PEN_OK)
        r = pen__job_give_up(&job, reterr);
    pen__plan_close(&job.plan);
    return r;
}

/* Nothing of another pack may be touched. */
static int check_free(const PenWriter *w, PenError *reterr)
{
    const char *path = w->path;
    char *plan = pen__work_path(w->home, "plan");
    int r = plan ? pen__store_has(w->store, PEN_MANIFEST_NAME, reterr)
                 : pen__fail_memory(reterr, WHERE, path);
    if (r == 1)
        r = pen__fail(reterr, PEN_E_EXISTS, WHERE,
                      "%s: the pack already exists; choose another name", path);
    if (r == PEN_OK)
        r = pen__file_exists(plan, reterr);
    if (r == 1)
        r = replace_run(w, plan, reterr);
    pen__free(plan);
    return r;
}

static int plan_id(const PenWriter *w, const char *name, uint8_t ret[32])
{
    PenSha256 sha;
    PenBuf schema = {0};
    int r = pen__schema_write(&w->schema, &schema);
    if (r == PEN_OK && w->schema.class_field >= 0)
        r = pen__classes_write(&w->schema, &schema);
    pen__sha256_init(&sha);
    pen__sha256_update(&sha, "penstock writer", 15);
    pen__sha256_update(&sha, w->text, strlen(w->text));
    pen__sha256_update(&sha, schema.data, schema.bytes);
    pen__sha256_update(&sha, name, strlen(name));
    pen__sha256_final(&sha, ret);
    pen__buf_free(&schema);
    return r;
}

static void release(void *ctx, const PenStoredSample *sample)
{
    (void)ctx;
    pen__prepared_free((PenPrepared *)sample);
}

static PenRollSettings roll_settings(const PenWriter *w, const PenWriterSettings *s,
                                     const char *part)
{
    return (PenRollSettings){.store = w->store,
                             .part_path = part,
                             .schema = &w->schema,
                             .block_samples = w->block_samples,
                             .shard_bytes = s->shard_bytes,
                             .has_columns = pen__settings_have_columns(w->text),
                             .release = release};
}

static int open_roll(PenWriter *w, const PenWriterSettings *s, PenError *reterr)
{
    char *part = pen__work_path(w->home, "writer.part");
    PenRollSettings roll = roll_settings(w, s, part);
    int r = part && plan_id(w, s->name ? s->name : "", roll.plan_id) == PEN_OK
                ? pen__roll_open(&roll, &w->roll, reterr)
                : pen__fail_memory(reterr, WHERE, w->path);
    pen__free(part);
    return r;
}

static int open_task(PenWriter *w, const PenWriterSettings *s, PenError *reterr)
{
    PenWriterTask *t = &w->task;
    PenWriterPlan plan = {
        .block_samples = s->block_samples, .shard_bytes = s->shard_bytes, .schema = w->schema};
    t->store = w->store;
    t->path = w->path;
    memcpy(plan.settings, w->text, sizeof plan.settings);
    int r = pen__writer_task_open(t, &plan, s->name ? s->name : "", reterr);
    if (r < 0)
        return r;
    char *part = pen__writer_task_part(t);
    PenRollSettings roll = roll_settings(w, s, part);
    roll.task = t->task;
    roll.n_tasks = t->n_tasks;
    roll.keep_rest = true;
    roll.before_commit = pen__writer_task_check;
    roll.ctx = t;
    memcpy(roll.plan_id, t->plan_id, sizeof roll.plan_id);
    r = part ? pen__roll_open(&roll, &w->roll, reterr) : pen__fail_memory(reterr, WHERE, w->path);
    pen__free(part);
    return r;
}

/* A writer of an entire pack. */
static int open_pack(PenWriter *w, const PenWriterSettings *s, PenError *reterr)
{
    int r = pen__home_find(w->path, s->work, &w->home, reterr);
    if (r == PEN_OK)
        r = pen__home_make(w->path, w->home, reterr);
    if (r == PEN_OK)
        r = pen__dir_lock(w->home, 1, &w->lock, reterr);
    if (r == PEN_OK)
        r = check_free(w, reterr);
    if (r == PEN_OK)
        r = pen__store_check_writable(w->store, PEN_MANIFEST_NAME, reterr);
    if (r == PEN_OK) {
        w->made_work = 1;
        r = open_roll(w, s, reterr);
    }
    if (r == PEN_OK && w->prepare.in_place)
        r = pen__video_copies_new(s->remote, w->home, w->schema.n_fields, &w->prepare.copies,
                                  reterr);
    return r;
}

/* The clips of the pack are parts of files that stay where they are. */
static int open_in_place(PenWriter *w, const PenWriterSettings *s, PenError *reterr)
{
    if (s->mode != PEN_MODE_KEEP || s->progressive != PEN_PROGRESSIVE_KEEP)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: an in-place pack keeps files as they are: expected the mode keep",
                         w->path);
    if (w->task.n_tasks)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: an in-place pack is written by one writer, without tasks", w->path);
    if (!s->video_seconds)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: time limit for a video: expected at least 1 second, found 0",
                         w->path);
    return pen__video_lists_new(&w->prepare.lists, reterr);
}

static int open_writer(PenWriter *w, const PenWriterSettings *s, PenError *reterr)
{
    PenIngestSettings settings;
    if (s->block_samples < 1 || s->block_samples > PEN_MAX_BLOCK_SAMPLES)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: block_samples: expected 1 to 2^31, found %" PRIu64, w->path,
                         s->block_samples);
    copy_settings(w, s, &settings);
    int r = pen__settings_check_images(&settings, reterr);
    if (r == PEN_OK)
        r = open_schema(w, s, reterr);
    if (r < 0)
        return r;
    pen__settings_text(&settings, w->text);
    if (s->in_place)
        r = open_in_place(w, s, reterr);
    if (r < 0)
        return r;
    r = pen__store_open(w->path, s->remote, &w->store, reterr);
    if (r == PEN_OK)
        r = pen__store_check_kind(w->store, reterr);
    if (r < 0)
        return r;
    return w->task.n_tasks ? open_task(w, s, reterr) : open_pack(w, s, reterr);
}

int pen_writer_open(const char *path, const PenWriterSettings *settings, PenWriter **ret_writer,
                    PenError *reterr)
{
    PenWriterSettings own = pen__writer_settings(settings);
    PenWriter *w = pen__zalloc(sizeof *w);
    if (!w)
        return pen__fail_memory(reterr, WHERE, path);
    w->lock = w->task.lock = w->task.task_lock = PEN_LOCK_NONE;
    w->task.task = own.task;
    w->task.n_tasks = own.n_tasks;
    w->schema.class_field = -1;
    w->path = pen__strdup(path);
    int r = w->path ? open_writer(w, &own, reterr) : pen__fail_memory(reterr, WHERE, path);
    if (r < 0)
        pen_writer_close(&w);
    else
        *ret_writer = w;
    return r;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static int check_size(const PenWriter *w, uint32_t field, size_t bytes, PenError *reterr)
{
    const PenField *f = &w->schema.fields[field];
    uint32_t row = pen__field_row_bytes(f);
    if (pen__field_is_number(f) ? bytes == row : bytes % row == 0)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: field '%s': expected %s%u bytes, found %zu",
                     w->path, f->name, pen__field_is_number(f) ? "" : "a multiple of ", row, bytes);
}

static int check_clip(const PenWriter *w, uint32_t field, const PenValue *value, PenError *reterr)
{
    bool is_video = value->data && !value->frames && value->n_frames && value->timestamps_ns;
    if (w->prepare.in_place ? is_video : value->frames || !value->n_frames)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: field '%s': expected %s", w->path,
                     w->schema.fields[field].name,
                     w->prepare.in_place
                         ? "the path of a video and the times of at least one frame (in_place)"
                         : "frames, found none; a video that stays in its file needs in_place");
}

static int count_images(const PenWriter *w, const PenValue *values, uint32_t *ret, PenError *reterr)
{
    uint64_t n = 0;
    for (uint32_t f = 0; f < w->schema.n_fields; f++) {
        int type = w->schema.fields[f].type;
        bool is_path = type == PEN_TYPE_CLIP && w->prepare.in_place;
        n += type == PEN_TYPE_CLIP ? (is_path ? 0 : values[f].n_frames) : type == PEN_TYPE_IMAGE;
        int r = type == PEN_TYPE_CLIP ? check_clip(w, f, &values[f], reterr)
                                      : check_size(w, f, values[f].bytes, reterr);
        if (r < 0)
            return r;
    }
    if (n > UINT32_MAX)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: expected fewer than 2^32 frames in a sample", w->path);
    *ret = (uint32_t)n;
    return PEN_OK;
}

static int add_image(const PenWriter *w, PenPrepared *p, uint32_t at, const PenValue *value,
                     int mask, int64_t timestamp, PenError *reterr)
{
    static const uint8_t slack[PEN_SLACK];
    PenPreparedImage *image = &p->images[at];
    if (pen__buf_add(&image->source, value->data, value->bytes) < 0 ||
        pen__buf_add(&image->source, slack, sizeof slack) < 0)
        return pen__fail_memory(reterr, WHERE, "an image");
    image->source.bytes -= sizeof slack;
    p->source_bytes += value->bytes;
    int r =
        pen__prepare_image(&w->prepare, p->sample.key, p->sample.key_bytes, mask, image, reterr);
    p->stored[at] = image->image;
    p->stored[at].timestamp_ns = timestamp;
    return r;
}

/* The path need not end with 0. */
static int add_video(const PenWriter *w, PenPrepared *p, uint32_t field, const PenValue *value,
                     PenError *reterr)
{
    PenVideoTimes wanted = {.times_ns = value->timestamps_ns, .n = value->n_frames};
    if (!value->bytes || memchr(value->data, 0, value->bytes))
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "expected the path of a video");
    char *path = pen__alloc(value->bytes + 1);
    if (!path)
        return pen__fail_memory(reterr, WHERE, "path of a video");
    memcpy(path, value->data, value->bytes);
    path[value->bytes] = 0;
    wanted.path = path;
    int r = pen__prepared_place_video(p, field, &w->prepare, &wanted, reterr);
    pen__free(path);
    return r;
}

static int add_value(const PenWriter *w, PenPrepared *p, uint32_t field, const PenValue *value,
                     uint32_t *next_image, PenError *reterr)
{
    const PenField *f = &w->schema.fields[field];
    PenStoredValue *to = &p->values[field];
    int r = PEN_OK;
    if (f->type == PEN_TYPE_CLIP && w->prepare.in_place) {
        r = add_video(w, p, field, value, reterr);
    } else if (f->type == PEN_TYPE_CLIP) {
        to->images = &p->stored[*next_image];
        to->n_images = value->n_frames;
        for (uint32_t i = 0; i < value->n_frames && r == PEN_OK; i++) {
            r = add_image(w, p, (*next_image)++, &value->frames[i], 0,
                          value->timestamps_ns ? value->timestamps_ns[i] : 0, reterr);
            if (r < 0)
                pen__error_prefix(reterr, "frame %u", i);
        }
    } else if (f->type == PEN_TYPE_IMAGE && value->bytes) {
        to->images = &p->stored[*next_image];
        to->n_images = 1;
        r = add_image(w, p, (*next_image)++, value, (f->flags & PEN_FIELD_MASK) != 0, 0, reterr);
    } else if (f->type != PEN_TYPE_IMAGE) {
        if (pen__buf_add(&p->blobs[field], value->data, value->bytes) < 0)
            return pen__fail_memory(reterr, WHERE, f->name);
        to->data = p->blobs[field].data;
        to->bytes = value->bytes;
        to->missing = value->data == NULL;
    }
    if (r < 0)
        pen__error_prefix(reterr, "key '%.*s', field '%s'", (int)PEN_MIN(p->sample.key_bytes, 200u),
                          (const char *)p->sample.key, f->name);
    return r;
}

int pen_writer_add(PenWriter *w, const void *key, size_t key_bytes, const PenValue *values,
                   uint32_t n_values, PenError *reterr)
{
    uint32_t n_images = 0;
    uint32_t next = 0;
    if (n_values != w->schema.n_fields)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected %u values, found %u", w->path,
                         w->schema.n_fields, n_values);
    if (key_bytes < 1 || key_bytes > PEN_MAX_KEY_BYTES)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: expected a key of 1 to %u bytes, found %zu", w->path,
                         PEN_MAX_KEY_BYTES, key_bytes);
    int r = count_images(w, values, &n_images, reterr);
    if (r < 0)
        return r;
    PenPrepared *p = pen__prepared_new(n_values, n_images);
    if (!p || pen__buf_add(&p->scratch, key, key_bytes) < 0) {
        pen__prepared_free(p);
        return pen__fail_memory(reterr, WHERE, "a sample");
    }
    p->sample.key = p->scratch.data;
    p->sample.key_bytes = (uint32_t)key_bytes;
    p->sample.position = w->n_samples;
    for (uint32_t f = 0; f < n_values && r == PEN_OK; f++)
        r = add_value(w, p, f, &values[f], &next, reterr);
    if (r < 0) {
        pen__prepared_free(p);
        return r;
    }
    w->n_samples++;
    r = pen__roll_add(w->roll, &p->sample, reterr);
    w->failed |= r < 0; /* a block is lost: what is left must not become a pack */
    return r;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static int publish(PenWriter *w, uint64_t *ret_n_samples, PenError *reterr)
{
    PenIngestResult result = {0};
    PenJoin join = {.store = w->store,
                    .home = w->home,
                    .schema = &w->schema,
                    .settings = w->text,
                    .block_samples = w->block_samples};
    uint64_t n;
    if (!w->n_samples)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: no sample was added", w->path);
    int r = pen__roll_finish(w->roll, NULL, reterr);
    if (r == PEN_OK) {
        const PenShardEntry *shards = pen__roll_shards(w->roll, &n);
        r = pen__join_add(&join, shards, n, pen__roll_stats(w->roll), reterr);
    }
    if (r == PEN_OK)
        r = pen__join_publish(&join, &result, reterr);
    pen__join_fini(&join);
    *ret_n_samples = result.n_samples;
    return r;
}

int pen_writer_finish(PenWriter *w, uint64_t *ret_n_samples, PenError *reterr)
{
    uint64_t n = 0;
    if (w->failed || w->finished)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         w->failed ? "%s: an earlier call has failed; close the writer and start "
                                     "again"
                                   : "%s: the writer is already finished",
                         w->path);
    int r = w->task.n_tasks ? pen__writer_task_finish(&w->task, w->roll, &n, reterr)
                            : publish(w, &n, reterr);
    if (r < 0) {
        w->failed |= w->n_samples != 0; /* some of them may have been written */
        return r;
    }
    w->finished = 1;
    if (ret_n_samples)
        *ret_n_samples = n;
    return PEN_OK;
}

/* A failure may come after the manifest got its name: then the shards are the pack's. Not knowing
 * counts as yes. */
static int may_be_published(const PenWriter *w)
{
    return pen__store_has(w->store, PEN_MANIFEST_NAME, NULL) != 0;
}

/* A writer that could not be opened takes back the folders it has made: those that are empty. */
static void leave_nothing(const char *path)
{
    char *work = pen__work_path(path, NULL);
    if (work && pen__dir_remove(work, NULL) == PEN_OK)
        pen__dir_remove(path, NULL);
    pen__free(work);
}

void pen_writer_close(PenWriter **writer)
{
    if (!writer || !*writer)
        return;
    PenWriter *w = *writer;
    pen__video_copies_free(&w->prepare.copies); /* before their directory is removed */
    if (w->roll && !w->finished && !w->task.n_tasks && !may_be_published(w))
        pen__roll_remove(w->roll);
    pen__roll_close(&w->roll);
    if (w->made_work && pen__store_remote(w->store))
        pen__home_leave(w->home);
    else if (w->made_work)
        pen__work_remove(w->home, NULL, NULL, NULL);
    else if (w->lock.fd >= 0)
        leave_nothing(w->home);
    pen__writer_task_close(&w->task);
    pen__dir_unlock(&w->lock);
    pen__entry_scan_free(&w->scan);
    pen__video_lists_free(&w->prepare.lists);
    pen__schema_fini(&w->schema);
    pen__store_close(&w->store);
    pen__free(w->home);
    pen__free(w->path);
    pen__free(w);
    *writer = NULL;
}
