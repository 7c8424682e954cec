/* SPDX-License-Identifier: Apache-2.0 */
/* Every stage alone: reading as a loader does it, the others on samples that are in memory. */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/machine/cores.h"
#include "base/machine/cpu.h"
#include "base/sys.h"
#include "base/team.h"
#include "load/decode/video.h"
#include "load/decode/views.h"
#include "load/measure/reading.h"
#include "load/plan/builder.h"
#include "load/read/sample.h"
#include "load/task.h"
#include "tools.h"

#define WHERE "load/measure"

enum { MAX_SAMPLES = 1000 };
/* Of all threads together, more than caches hold; of one copy. */
enum { COPY_BYTES = 128 << 20, COPY_STEP = 64 << 10 };
/* The part of the loader's memory that copies may take. */
enum { COPY_PART = 8 };
enum { COPYING = PEN_STAGE_COUNT }; /* a stage without samples */
/* The fastest of them counts, as another program may slow down the others. */
enum { ROUNDS = 4 };

const char *pen_cpu_tier(void)
{
    return pen__cpu_name(pen__cpu());
}

unsigned pen_cpu_cores(void)
{
    return pen__thread_cores();
}

typedef struct Bench {
    PenLoadPlan plan;
    PenTask **tasks; /* each with its bytes in memory */
    PenLocation *places;
    uint32_t n;
    uint8_t *sink; /* of one sample's results: what threads store there is of no interest */
    uint64_t sink_bytes;
    int stage;
    uint64_t for_ns;
} Bench;

typedef struct Runner { /* one thread */
    Bench *bench;
    uint32_t first;
    uint64_t done, ns;
    int status;
    PenError error;
    PenDecodeContext *context;
    PenDecoder *decoder;
    PenFrameDecoder video;
    PenBuf copy, pixels;
    PenTaskImage frame; /* of a clip */
    uint8_t *out;
} Runner;

/* ---- one sample of a stage ---- */

/* Decoding may change the bytes, so it gets a copy. */
static int copy_encoded(Runner *r, const PenTaskImage *im, PenEncoded *ret)
{
    *ret = im->encoded;
    if (im->encoded.picture)
        return PEN_OK;
    r->copy.bytes = 0;
    if (pen__buf_reserve(&r->copy, im->encoded.bytes + PEN_SLACK) < 0)
        return pen__fail_memory(&r->error, WHERE, "bytes");
    memcpy(r->copy.data, im->encoded.data, im->encoded.bytes + PEN_SLACK);
    ret->data = r->copy.data;
    return PEN_OK;
}

static int no_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    (void)ctx, (void)rows, (void)stride, (void)n, (void)reterr;
    return PEN_OK;
}

static int decode_image(Runner *r, const PenOutField *f, const PenTaskImage *im)
{
    PenEncoded image;
    PenRegion region = {.box = im->sample_plan.region,
                        .colour = pen__program_colour(f->program),
                        .shrink = im->sample_plan.shrink,
                        .limits = &pen__limits_default,
                        .rows = no_rows};
    int status = copy_encoded(r, im, &image);
    return status < 0 ? status : pen__region_decode(r->decoder, &image, &region, &r->error);
}

/* The same sample_plan on raw pixels of the size that is decoded, all of one value: only its rows
 * are there. */
static int run_pixels(Runner *r, const PenOutField *f, const PenTaskImage *im)
{
    PenSamplePlan plan = im->sample_plan, *sample_plan = &plan;
    plan.shape.width = pen__shrunk_side(plan.shape.width, plan.shrink);
    plan.shape.height = pen__shrunk_side(plan.shape.height, plan.shrink);
    plan.shrink = 0;
    uint8_t channels = pen__program_colour(f->program) == PEN_COLOUR_RGB ? 3 : 1;
    size_t stride = (size_t)sample_plan->shape.width * channels;
    size_t bytes = stride * sample_plan->region.h;
    r->pixels.bytes = 0;
    if (pen__buf_reserve(&r->pixels, bytes + PEN_SLACK) < 0)
        return pen__fail_memory(&r->error, WHERE, "pixels");
    PenEncoded image = {.data = r->pixels.data,
                        .bytes = bytes,
                        .width = sample_plan->shape.width,
                        .height = sample_plan->shape.height,
                        .codec = PEN_STORED_RAW,
                        .channels = channels,
                        .partial = sample_plan->region.h < sample_plan->shape.height,
                        .first_segment = sample_plan->region.y,
                        .end_segment = sample_plan->region.y + sample_plan->region.h};
    return pen__sample_run(r->context, f->program, sample_plan, &image, &pen__limits_default,
                           r->out, &r->error);
}

static int run_all(Runner *r, const PenOutField *f, const PenTaskImage *im)
{
    PenEncoded image;
    int status = copy_encoded(r, im, &image);
    return status < 0 ? status
                      : pen__sample_run(r->context, f->program, &im->sample_plan, &image,
                                        &pen__limits_default, r->out, &r->error);
}

/* A stage that is about pixels. */
static int run_one(Runner *r, const PenOutField *f, const PenTaskImage *im)
{
    int (*run)(Runner *, const PenOutField *, const PenTaskImage *) = run_all;
    if (r->bench->stage == PEN_STAGE_DECODE)
        run = decode_image;
    else if (r->bench->stage == PEN_STAGE_PIXELS)
        run = run_pixels;
    int status = run(r, f, im);
    return status == PEN_END ? PEN_OK : status; /* a loader would read more: this is rare */
}

static void verify(const uint8_t *data, size_t bytes)
{
    static _Thread_local uint32_t sum; /* so that the checksum is not left out */
    sum ^= pen__crc32c(sum, data, bytes);
}

/* All views of an image, which may share a decode. */
static int run_views(Runner *r, const PenOutField *f, const PenTask *t)
{
    const PenLoadPlan *plan = &r->bench->plan;
    PenBudget none = {0}; /* it is not asked */
    PenImageDecoder decoder = {.context = r->context, .own_bytes = UINT64_MAX / 2, .shared = &none};
    int status = f->n_views ? pen__views_decode(plan, &decoder, f, t, r->out, &r->error) : PEN_OK;
    return status == PEN_IMAGE_INCOMPLETE ? PEN_OK : status;
}

static int run_image(Runner *r, const PenOutField *f, const PenTask *t)
{
    const PenTaskImage *im = &t->images[f->image];
    int status = PEN_OK;
    if (r->bench->stage == PEN_STAGE_ALL && f->n_views != 1)
        return run_views(r, f, t);
    if (r->bench->stage == PEN_STAGE_VERIFY && f->n_views)
        verify(im->encoded.data, im->encoded.bytes);
    for (uint32_t i = 0; r->bench->stage > PEN_STAGE_VERIFY && i < f->repeats; i++)
        if (status == PEN_OK)
            status = run_one(r, f, &im[i]);
    return status;
}

typedef struct Showing {
    Runner *runner;
    const PenOutField *field;
} Showing;

static int show_frame(void *ctx, const PenShownFrame *shown, PenError *reterr)
{
    const Showing *s = ctx;
    Runner *r = s->runner;
    (void)reterr; /* it is the runner's */
    r->frame.encoded = *shown->image;
    r->frame.sample_plan = *shown->sample_plan;
    return run_one(r, s->field, &r->frame);
}

static int run_video(Runner *r, const PenOutField *f, const PenTask *t)
{
    Showing s = {r, f};
    return pen__clip_play(&r->video, f, t, show_frame, &s, &r->error);
}

/* The frames of one view, each of them once. */
static int run_view(Runner *r, const PenOutField *f, PenTask *t, uint32_t view)
{
    const PenTaskClip *clip = &t->clips[f->image];
    const PenClipFrame *frames = (const PenClipFrame *)(const void *)clip->frames.data;
    PenClipShape shape;
    pen__program_clip(f->program, &shape);
    const uint32_t *chosen = (const uint32_t *)(const void *)clip->chosen.data +
                             (size_t)(view / shape.crops) * shape.frames;
    PenDrawKey key = pen__task_key(&r->bench->plan, t, f);
    int status = PEN_OK;
    for (uint32_t i = 0; i < shape.frames && status == PEN_OK; i++) {
        if (i && chosen[i] == chosen[i - 1])
            continue;
        r->frame.encoded = pen__task_frame(clip, chosen[i]);
        PenImageShape size = {r->frame.encoded.width, r->frame.encoded.height,
                              frames[chosen[i]].orientation,
                              r->frame.encoded.codec == PEN_STORED_JPEG};
        status = pen__sample_plan_make_view(f->program, &size, key, t->to.sample, view,
                                            &r->frame.sample_plan, &r->error);
        if (status == PEN_OK)
            status = run_one(r, f, &r->frame);
    }
    return status;
}

/* The same of a video, without decoding it. */
static int run_video_pixels(Runner *r, const PenOutField *f, const PenTask *t)
{
    const PenTaskClip *clip = &t->clips[f->image];
    const PenSamplePlan *plans = (const PenSamplePlan *)(const void *)clip->plans.data;
    const uint32_t *chosen = (const uint32_t *)(const void *)clip->chosen.data;
    PenClipShape shape;
    int status = PEN_OK;
    pen__program_clip(f->program, &shape);
    for (uint32_t i = 0; i < shape.views * shape.frames && status == PEN_OK; i++) {
        uint32_t view = i / shape.frames, k = i % shape.frames;
        const uint32_t *of_view = chosen + (size_t)(view / shape.crops) * shape.frames;
        if (k && of_view[k] == of_view[k - 1])
            continue;
        r->frame.sample_plan = plans[view];
        status = run_pixels(r, f, &r->frame);
    }
    return status;
}

static int run_clip(Runner *r, const PenOutField *f, PenTask *t)
{
    const PenTaskClip *clip = &t->clips[f->image];
    const PenBuf *data = clip->is_video ? &clip->video.data : &clip->data;
    PenClipShape shape;
    int status = PEN_OK;
    pen__program_clip(f->program, &shape);
    if (r->bench->stage == PEN_STAGE_VERIFY)
        verify(data->data, (size_t)clip->bytes);
    else if (clip->is_video)
        return r->bench->stage == PEN_STAGE_PIXELS ? run_video_pixels(r, f, t) : run_video(r, f, t);
    for (uint32_t v = 0; r->bench->stage > PEN_STAGE_VERIFY && v < shape.views; v++)
        if (status == PEN_OK)
            status = run_view(r, f, t, v);
    return status;
}

static int run_sample(Runner *r, uint32_t i)
{
    const Bench *b = r->bench;
    int status = PEN_OK;
    for (uint32_t k = 0; k < b->plan.n_fields && status == PEN_OK; k++) {
        const PenOutField *f = &b->plan.fields[k];
        if (f->kind == PEN_KIND_CLIP)
            status = run_clip(r, f, b->tasks[i]);
        else if (pen__field_is_image(f))
            status = run_image(r, f, b->tasks[i]);
    }
    return status;
}

/* In each of the two halves of a thread's buffer. */
static size_t copy_steps(const Bench *b)
{
    uint64_t all = PEN_MIN((uint64_t)COPY_BYTES, b->plan.shares.total / COPY_PART);
    return (size_t)PEN_MAX(all / 2 / b->plan.threads / COPY_STEP, (uint64_t)1);
}

/* By the thread itself, so that the pages are in the memory that is near to it. Pages that nobody
 * has written are all the same one. */
static int prepare_copies(Runner *r)
{
    size_t bytes = 2 * copy_steps(r->bench) * COPY_STEP;
    r->pixels.bytes = 0;
    if (pen__buf_reserve(&r->pixels, bytes) < 0)
        return pen__fail_memory(&r->error, WHERE, "copies");
    memset(r->pixels.data, 1, bytes);
    return PEN_OK;
}

/* From one half of the buffer to the other, step by step. */
static int copy_step(Runner *r)
{
    size_t steps = copy_steps(r->bench), at = (size_t)(r->done % steps) * COPY_STEP;
    memcpy(r->pixels.data + steps * COPY_STEP + at, r->pixels.data + at, COPY_STEP);
    return PEN_OK;
}

static void run(void *runners, unsigned number)
{
    Runner *r = (Runner *)runners + number;
    const Bench *b = r->bench;
    uint32_t i = r->first;
    if (b->stage == COPYING && (r->status = prepare_copies(r)) < 0)
        return;
    uint64_t start = pen__sys->now_ns();
    do {
        r->status = b->stage == COPYING ? copy_step(r) : run_sample(r, i);
        i = (i + b->plan.threads) % b->n;
        r->done++;
        r->ns = pen__sys->now_ns() - start;
    } while (r->status == PEN_OK && r->ns < b->for_ns);
}

/* ---- all of it ---- */

/* From far away, each sample can take a second: no more of them than `seconds` allow. */
static int load_samples(Bench *b, double seconds, PenError *reterr)
{
    PenOrder order;
    uint64_t total = 0, end = pen__sys->now_ns() + (uint64_t)(seconds * 1e9);
    int r = pen__order_init(&order, &b->plan.state.order, 0, reterr);
    uint32_t want = (uint32_t)PEN_MIN(b->plan.state.order.n, (uint64_t)MAX_SAMPLES);
    b->tasks = pen__zalloc(want * sizeof *b->tasks);
    b->places = pen__zalloc(want * sizeof *b->places);
    b->sink = pen__zalloc((size_t)b->plan.slot_bytes);
    if (!b->tasks || !b->places || !b->sink)
        return pen__fail_memory(reterr, WHERE, "samples");
    while (r == PEN_OK && b->n < want &&
           (!b->n || (total < b->plan.shares.read && pen__sys->now_ns() < end))) {
        PenTask **t = &b->tasks[b->n];
        r = pen__task_new(&b->plan, t, reterr);
        if (r < 0)
            break;
        PenChosen chosen = pen__load_plan_choose(&b->plan, 0, pen__order_at(&order, b->n));
        (*t)->to.sample = chosen.sample;
        (*t)->to.ordinal = chosen.ordinal;
        b->n++;
        (*t)->to.memory = b->sink;
        (*t)->to.pack = b->plan.pack;
        (*t)->to.fields = b->plan.fields;
        r = pen__sample_locate(&b->plan, *t, &b->places[b->n - 1], reterr);
        if (r == PEN_OK)
            r = pen__sample_read(&b->plan, *t, &b->places[b->n - 1], reterr);
        total += (*t)->bytes_read;
    }
    return r;
}

static int open_runner(Runner *r, Bench *b, uint32_t number)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < b->plan.n_fields; i++)
        most = PEN_MAX(most, b->plan.fields[i].bytes);
    *r = (Runner){.bench = b, .first = number % b->n, .out = pen__alloc((size_t)most + PEN_SLACK)};
    int status = pen__decode_context_new(&r->context, &r->error);
    if (status == PEN_OK)
        status = pen__decoder_new(&r->decoder, &r->error);
    if (status == PEN_OK && !r->out)
        status = pen__fail_memory(&r->error, WHERE, "result");
    return status;
}

static void close_runner(Runner *r)
{
    pen__decode_context_free(&r->context);
    pen__decoder_free(&r->decoder);
    pen__video_decoder_free(&r->video);
    pen__buf_free(&r->copy);
    pen__buf_free(&r->pixels);
    pen__free(r->out);
}

/* Samples per second of all threads together. */
static int time_stage(Bench *b, Runner *runners, double seconds, double *ret, PenError *reterr)
{
    uint32_t n = b->plan.threads;
    PenTeamWork work = {.name = "pen-stage", .run = run, .ctx = runners};
    for (uint32_t i = 0; i < n; i++)
        runners[i].done = 0;
    b->for_ns = (uint64_t)(seconds * 1e9);
    int status = pen__team_run(&work, n, reterr);
    double rate = 0;
    for (uint32_t i = 0; i < n && status == PEN_OK; i++) {
        rate += (double)runners[i].done * 1e9 / (double)PEN_MAX(runners[i].ns, (uint64_t)1);
        status = runners[i].status;
        if (status < 0 && reterr)
            *reterr = runners[i].error;
    }
    *ret = rate;
    return status;
}

/* Every stage once. */
static int time_round(Bench *b, Runner *runners, double seconds, PenStages *ret, PenError *reterr)
{
    int status = PEN_OK;
    double rate = 0;
    for (b->stage = PEN_STAGE_VERIFY; status == PEN_OK && b->stage <= PEN_STAGE_ALL; b->stage++) {
        status = time_stage(b, runners, seconds, &rate, reterr);
        ret->per_second[b->stage] = PEN_MAX(ret->per_second[b->stage], rate);
    }
    if (status < 0)
        return status;
    b->stage = COPYING;
    status = time_stage(b, runners, seconds, &rate, reterr);
    ret->copy_bytes = PEN_MAX(ret->copy_bytes, rate * COPY_STEP);
    return status;
}

/* Of views that share a decode, it takes what their pixels leave of the time of both. */
static void correct_decode(const PenLoadPlan *plan, PenStages *s)
{
    double *rate = s->per_second, pixels = rate[PEN_STAGE_PIXELS], all = rate[PEN_STAGE_ALL];
    if (plan->n_views > plan->n_stored && all > 0 && pixels > all)
        rate[PEN_STAGE_DECODE] = PEN_MAX(rate[PEN_STAGE_DECODE], all * pixels / (pixels - all));
}

static int time_all(Bench *b, double seconds, PenStages *ret, PenError *reterr)
{
    uint32_t n = b->plan.threads, open = 0;
    Runner *runners = pen__alloc_array(n, sizeof *runners);
    int status = PEN_OK;
    if (!runners)
        return pen__fail_memory(reterr, WHERE, "threads");
    while (status == PEN_OK && open < n) {
        status = open_runner(&runners[open], b, open);
        if (status < 0 && reterr)
            *reterr = runners[open].error;
        open++;
    }
    for (int i = 0; status == PEN_OK && i < ROUNDS; i++)
        status = time_round(b, runners, seconds / ROUNDS, ret, reterr);
    correct_decode(&b->plan, ret);
    for (uint32_t i = 0; i < open; i++)
        close_runner(&runners[i]);
    pen__free(runners);
    return status;
}

static int time_reading(const Bench *b, double seconds, PenStages *ret, PenError *reterr)
{
    PenReadingRates rates;
    int r = pen__reading_measure(&b->plan, seconds, &rates, reterr);
    ret->per_second[PEN_STAGE_READ] = rates.warm;
    ret->per_second[PEN_STAGE_READ_COLD] = rates.cold;
    ret->per_second[PEN_STAGE_READ_HALF] = rates.half;
    return r;
}

/* ---- what other packs of the same images would need ---- */

/* A little more than the result, as 256 for 224: crops still vary. */
static uint32_t short_side(const PenOutField *f)
{
    const int64_t *size = f->tensor.shape + (f->tensor.channels_last ? 1 : 2);
    int64_t side = PEN_MIN(size[0], size[1]);
    return f->kind == PEN_KIND_IMAGE && f->tensor.n_dims == 4 && side > 0 && side < 10000
               ? (uint32_t)(side * 8 / 7)
               : 0;
}

/* Of the first image field. */
static void compare_packs(const Bench *b, PenStages *ret)
{
    const PenOutField *f = b->plan.first_image < 0 ? NULL : &b->plan.fields[b->plan.first_image];
    double stored = 0, raw = 0, area = 0;
    ret->short_side = f ? short_side(f) : 0;
    for (uint32_t i = 0; f && i < b->n; i++) {
        const PenTaskImage *im = &b->tasks[i]->images[f->image];
        const PenEncoded *e = &im->encoded;
        double side = PEN_MAX(PEN_MIN(e->width, e->height), 1u);
        double shrunk = PEN_MIN((double)ret->short_side / side, 1.0);
        stored += (double)e->bytes;
        raw +=
            (double)e->width * (im->sample_plan.region.h << im->sample_plan.shrink) * e->channels;
        area += shrunk * shrunk;
    }
    ret->raw_ratio = stored > 0 ? raw / stored : 0;
    ret->area_ratio = b->n ? area / b->n : 0;
}

int pen_bench_stages(PenPack *pack, const PenLoaderSettings *settings, double seconds,
                     PenStages *ret, PenError *reterr)
{
    Bench b = {0};
    PenStages stages = {0};
    int r = pen__load_plan_build(&b.plan, pack, settings, reterr);
    if (r < 0)
        return r;
    if (b.plan.n_views + b.plan.n_clips)
        r = load_samples(&b, seconds, reterr);
    if (r == PEN_OK && b.n)
        r = time_all(&b, seconds, &stages, reterr);
    compare_packs(&b, &stages);
    for (uint32_t i = 0; i < b.n; i++) {
        pen__location_release(b.plan.pack, &b.places[i]);
        pen__task_free(&b.plan, &b.tasks[i]);
    }
    stages.threads = b.plan.threads;
    stages.samples = b.n;
    pen__free(b.tasks);
    pen__free(b.places);
    pen__free(b.sink);
    if (r == PEN_OK && b.n)
        r = time_reading(&b, seconds, &stages, reterr);
    pen__load_plan_fini(&b.plan);
    if (r == PEN_OK && ret)
        *ret = stages;
    return r;
}
