/* SPDX-License-Identifier: Apache-2.0 */
/* Measures all images of a pack: threads take block after block, and report them in order. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/machine/cores.h"
#include "base/team.h"
#include "base/thread.h"
#include "codec/jpeg/markers.h"
#include "codec/jpeg/quality.h"
#include "pack/reader/reader.h"
#include "tools.h"

#define WHERE "manage/analyse"

enum { MOST_THREADS = 64 };

typedef struct Analyse {
    PenPack *pack;
    const PenAnalyseSettings *settings;
    atomic_uint_fast64_t next, samples; /* block to take; samples that are done */
    atomic_bool stop;
    pthread_mutex_t mutex; /* of all below, and of the callbacks */
    pthread_cond_t turned;
    uint64_t turn; /* the block whose images are reported next */
    bool cancelled;
    PenAnalyseResult result;
    PenError failure; /* status 0 when there is none */
} Analyse;

/* What a thread works with, and what it has found in its block. */
typedef struct Found {
    PenBuf payload;
    PenBuf images;   /* PenImageAnalysis each */
    PenBuf problems; /* PenError each */
} Found;

/* ---- one image ------------------------------------------------------------------------------ */

static const char *sampling_name(const PenJpegInfo *info)
{
    static const struct {
        uint8_t h, v;
        const char *name;
    } names[] = {{1, 1, "4:4:4"}, {2, 1, "4:2:2"}, {2, 2, "4:2:0"},
                 {1, 2, "4:4:0"}, {4, 1, "4:1:1"}, {4, 2, "4:1:0"}};
    const uint8_t *h = info->h_samp, *v = info->v_samp;
    if (info->components == 1)
        return "gray";
    if (info->components != 3 || h[1] != h[2] || v[1] != v[2] || h[0] % h[1] || v[0] % v[1])
        return "other";
    for (size_t i = 0; i < PEN_LEN(names); i++)
        if (h[0] == names[i].h * h[1] && v[0] == names[i].v * v[1])
            return names[i].name;
    return "other";
}

static int measure_file(const uint8_t *data, size_t bytes, PenImageAnalysis *ret, PenError *reterr)
{
    PenJpegHeader header;
    int r = pen__jpeg_header(data, bytes, &pen__limits_default, &header, reterr);
    if (r < 0)
        return r;
    ret->quality = pen__jpeg_quality_factor(&header);
    ret->progressive = header.info.sof == PEN_MARKER_SOF2 || header.info.sof == PEN_MARKER_SOF10;
    snprintf(ret->sampling, sizeof ret->sampling, "%s", sampling_name(&header.info));
    return PEN_OK;
}

/* Sums of 2^26 pixels are below 2^53, so that the results are those of exact sums. */
static void measure_pixels(const PenPixels *p, PenImageAnalysis *ret)
{
    size_t n = (size_t)p->width * p->height;
    for (uint32_t c = 0; c < PEN_MIN(p->channels, 3u); c++) {
        uint64_t sum = 0, squares = 0;
        for (size_t i = 0; i < n; i++) {
            uint32_t value = p->data[i * p->channels + c];
            sum += value;
            squares += value * value;
        }
        double mean = (double)sum / (double)n;
        double variance = (double)squares / (double)n - mean * mean;
        ret->mean[c] = mean;
        ret->deviation[c] = variance > 0 ? sqrt(variance) : 0;
    }
    ret->channels = p->channels;
}

static int measure_image(const PenImageEntry *e, const PenBuf *payload, PenImageAnalysis *ret,
                         PenError *reterr)
{
    PenPixels pixels = {payload->data, e->width, e->height, e->channels};
    if (e->codec == PEN_STORED_RAW) {
        measure_pixels(&pixels, ret);
        return PEN_OK;
    }
    int r = e->codec == PEN_STORED_JPEG ? measure_file(payload->data, (size_t)e->bytes, ret, reterr)
                                        : PEN_OK;
    if (r == PEN_OK)
        r = pen__image_decode(payload->data, (size_t)e->bytes, &pen__limits_default, &pixels,
                              reterr);
    if (r < 0)
        return r;
    if (pixels.width != e->width || pixels.height != e->height)
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%ux%u pixels, expected %ux%u", pixels.width,
                      pixels.height, e->width, e->height);
    else
        measure_pixels(&pixels, ret);
    pen__pixels_free(&pixels);
    return r;
}

/* ---- one block ------------------------------------------------------------------------------ */

/* A damaged image is a problem of its own; what is wrong here and now ends the analysis. */
static bool is_problem(int r)
{
    return r == PEN_E_DECODE || r == PEN_E_LIMIT || r == PEN_E_UNSUPPORTED || r == PEN_E_CORRUPT;
}

static int add_problem(const Analyse *a, const PenSpot *at, PenError *e, Found *found,
                       PenError *reterr)
{
    const PenBlock *b = at->block;
    pen__error_prefix(e, "%s: sample %" PRIu64 ", field '%s', frame %u", pen__pack_path(a->pack),
                      b->first_sample + at->sample, b->view.schema->fields[at->field].name,
                      at->frame);
    e->sample = (int64_t)(b->first_sample + at->sample);
    if (pen__buf_add(&found->problems, e, sizeof *e) < 0)
        return pen__fail_memory(reterr, WHERE, "damaged images");
    return PEN_OK;
}

static int take_image(const Analyse *a, const PenSpot *at, Found *found, PenError *reterr)
{
    const PenBlock *b = at->block;
    PenError e = {0};
    PenImageEntry image = pen__block_image(&b->view, at->sample, at->field, at->frame);
    if (image.codec == PEN_STORED_NONE)
        return PEN_OK;
    PenImageAnalysis made = {.field = at->field,
                             .frame = at->frame,
                             .width = image.width,
                             .height = image.height,
                             .sample = b->first_sample + at->sample,
                             .bytes = image.bytes,
                             .codec = image.codec};
    const uint8_t *key;
    uint32_t key_bytes;
    pen__block_key(&b->view, at->sample, &key, &key_bytes);
    made.key = key;
    made.key_bytes = key_bytes;
    found->payload.bytes = 0;
    int r = pen__pack_read_payload(at, &found->payload, &e);
    if (r == PEN_OK)
        r = measure_image(&image, &found->payload, &made, &e);
    if (is_problem(r))
        return add_problem(a, at, &e, found, reterr);
    if (r < 0) {
        if (reterr)
            *reterr = e;
        return r;
    }
    return pen__buf_add(&found->images, &made, sizeof made) < 0
               ? pen__fail_memory(reterr, WHERE, "images")
               : PEN_OK;
}

static int take_sample(const Analyse *a, const PenBlock *b, uint32_t sample, Found *found,
                       PenError *reterr)
{
    const PenSchema *schema = b->view.schema;
    PenSpot at = {.block = b, .sample = sample};
    int r = PEN_OK;
    for (at.field = 0; r == PEN_OK && at.field < schema->n_fields; at.field++) {
        const PenField *field = &schema->fields[at.field];
        uint32_t n = 0;
        if (field->type == PEN_TYPE_CLIP)
            n = pen__block_images(&b->view, sample, at.field);
        else if (field->type == PEN_TYPE_IMAGE && !(field->flags & PEN_FIELD_MASK))
            n = 1;
        for (at.frame = 0; r == PEN_OK && at.frame < n; at.frame++)
            r = take_image(a, &at, found, reterr);
    }
    return r;
}

/* Reports what was found, after that of all blocks before this one. */
static void report(Analyse *a, uint64_t block, const Found *found)
{
    const PenAnalyseSettings *s = a->settings;
    const PenImageAnalysis *images = (const void *)found->images.data;
    const PenError *problems = (const void *)found->problems.data;
    size_t n_images = found->images.bytes / sizeof *images;
    size_t n_problems = found->problems.bytes / sizeof *problems;
    pthread_mutex_lock(&a->mutex);
    while (a->turn != block && !atomic_load(&a->stop))
        pen__cond_wait(&a->turned, &a->mutex, pen__deadline_after(100000000));
    for (size_t i = 0; i < n_images && !atomic_load(&a->stop); i++) {
        a->cancelled = s->image(s->ctx, &images[i]) != 0;
        atomic_store(&a->stop, a->cancelled);
        a->result.images++;
    }
    for (size_t i = 0; i < n_problems && !atomic_load(&a->stop); i++) {
        if (s->problem)
            s->problem(s->ctx, &problems[i]);
        a->result.problems++;
    }
    a->turn = block + 1;
    pthread_cond_broadcast(&a->turned);
    pthread_mutex_unlock(&a->mutex);
}

static void fail(Analyse *a, const PenError *e)
{
    pthread_mutex_lock(&a->mutex);
    if (a->failure.status == PEN_OK)
        a->failure = *e;
    atomic_store(&a->stop, true);
    pthread_mutex_unlock(&a->mutex);
}

static void take_block(Analyse *a, uint64_t block, Found *found)
{
    PenError e = {0};
    PenBlock *b = NULL;
    found->images.bytes = found->problems.bytes = 0;
    int r = pen__pack_block_take(a->pack, block, &b, &e);
    for (uint32_t s = 0; r == PEN_OK && s < b->view.n_samples && !atomic_load(&a->stop); s++) {
        r = take_sample(a, b, s, found, &e);
        atomic_fetch_add(&a->samples, 1);
    }
    if (r < 0)
        fail(a, &e);
    else
        report(a, block, found);
    if (b)
        pen__pack_block_put(a->pack, b);
}

static void take_blocks(void *ctx, unsigned number)
{
    Analyse *a = ctx;
    Found found = {0};
    uint64_t block;
    (void)number;
    while (!atomic_load(&a->stop) &&
           (block = atomic_fetch_add(&a->next, 1)) < pen__pack_manifest(a->pack)->n_blocks)
        take_block(a, block, &found);
    pen__buf_free(&found.payload);
    pen__buf_free(&found.images);
    pen__buf_free(&found.problems);
}

/* ---- all ------------------------------------------------------------------------------------ */

static void show_progress(void *ctx)
{
    Analyse *a = ctx;
    const PenAnalyseSettings *s = a->settings;
    if (!s->progress || atomic_load(&a->stop) ||
        !s->progress(s->ctx, atomic_load(&a->samples), pen_pack_info(a->pack)->n_samples))
        return;
    pthread_mutex_lock(&a->mutex);
    a->cancelled = true;
    atomic_store(&a->stop, true);
    pthread_mutex_unlock(&a->mutex);
}

static int run_all(Analyse *a, PenError *reterr)
{
    PenTeamWork work = {"pen-analyse", take_blocks, show_progress, a};
    unsigned n = a->settings->threads > 0 ? (unsigned)a->settings->threads : pen__thread_cores();
    int r = pen__team_run(&work, PEN_MIN(n, (unsigned)MOST_THREADS), reterr);
    if (r < 0)
        return r;
    a->result.samples = atomic_load(&a->samples);
    if (a->failure.status) {
        if (reterr)
            *reterr = a->failure;
        return a->failure.status;
    }
    return a->cancelled ? pen__fail(reterr, PEN_E_CANCELLED, WHERE, "%s: the analysis was stopped",
                                    pen__pack_path(a->pack))
                        : PEN_OK;
}

static int check_settings(const PenAnalyseSettings *s, PenError *reterr)
{
    if (s->threads < 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "threads: expected a number, 0 or more, found %d", (int)s->threads);
    if (!s->image)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "image: expected a function, found NULL");
    return PEN_OK;
}

int pen_pack_analyse(PenPack *pack, const PenAnalyseSettings *settings, PenAnalyseResult *ret,
                     PenError *reterr)
{
    Analyse a = {.pack = pack, .settings = settings, .mutex = PTHREAD_MUTEX_INITIALIZER};
    int r = check_settings(settings, reterr);
    if (r < 0)
        return r;
    r = pen__cond_init(&a.turned);
    if (r < 0)
        return pen__fail_memory(reterr, WHERE, "a condition variable");
    r = run_all(&a, reterr);
    if (ret)
        *ret = a.result;
    pthread_cond_destroy(&a.turned);
    pthread_mutex_destroy(&a.mutex);
    return r;
}
