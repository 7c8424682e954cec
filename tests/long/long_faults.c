/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation and every call of the operating system made to fail, one after another: once,
 * and from there on. Each time there is a typed error or the right result, nothing is leaked,
 * nothing hangs, and the same command run again gives what an undisturbed run gives. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sys.h"
#include "lib/fault_sys.h"
#include "lib/images.h"
#include "lib/load_pack.h"
#include "lib/make_pack.h"
#include "lib/probe.h"
#include "lib/resumed.h"
#include "lib/rows_pack.h"
#include "lib/sweep.h"
#include "tools.h"
#include "unit/test.h"

enum { WATCHDOG_SECONDS = 10 };

static char top[256];
static char out[300];      /* the pack that is written */
static char mixed[300];    /* the pack that is read */
static char replaced[300]; /* one with samples that cannot be decoded */
static char indexed[300];  /* one of files with entry indexes */
static char in_place[300]; /* one over the files of `folder` */
static char forged[300];   /* one with indexes that are not those of the files */
static char rows[300];     /* one with texts, boxes and other rows */
static char folder[256], some[256], progressive[256], broken[256], list[256], tar[256], gz[256];
static ProbeList probes; /* of `mixed` */
static int wrong;        /* answers that a run got and should not have */

typedef enum Effect {
    READS,
    PUBLISHES, /* a pack, in `top` */
    PREPARES   /* one: a plan, or the part of a task, in `top` */
} Effect;

typedef struct Scenario {
    const char *name;
    void (*prepare)(void); /* makes what is there before */
    int (*run)(PenError *reterr);
    Effect effect;
    /* Makes what is there before a run that gives the same bytes without having been interrupted;
     * NULL: there is none to compare with. */
    void (*fresh)(void);
} Scenario;

/* ---- reading --------------------------------------------------------------------------------- */

static void nothing(void)
{
}

/* What failed is asked once more: a fault must not leave the pack unusable. */
static int read_all(PenError *reterr)
{
    PenPack *pack = NULL;
    Answer a = {0};
    int first = pen_pack_open(mixed, NULL, &pack, reterr);
    for (size_t i = 0; i < probes.n && pack; i++) {
        PenError e = {0};
        for (int k = 0; k < 2; k++) {
            bool right = false;
            int r = probe_check(pack, &probes.probes[i], &a, &right, &e);
            wrong += r == PEN_OK ? !right : e.status != r || !e.message[0];
            if (r < 0 && first == PEN_OK) {
                first = r;
                *reterr = e;
            }
            if (r == PEN_OK)
                break;
        }
    }
    pen_pack_close(&pack);
    answer_free(&a);
    return first;
}

static int extract_all(PenError *reterr)
{
    PenPack *pack = NULL;
    int r = pen_pack_open(mixed, NULL, &pack, reterr);
    for (uint64_t s = 0; pack && r == PEN_OK && s < pen_pack_info(pack)->n_samples; s++) {
        void *data = NULL;
        size_t bytes = 0;
        const char *suffix = "";
        r = pen_pack_extract(pack, s, 0, 0, &data, &bytes, &suffix, reterr);
        wrong += r == PEN_OK && (!data || bytes < 8 || !suffix[0]);
        pen_free(data);
    }
    pen_pack_close(&pack);
    return r;
}

/* In-place packs in `top` name files that lie outside of it. */
static int allow_files(PenPack *pack, PenError *reterr)
{
    const char *root = "/";
    PenFileSettings s;
    pen_file_settings_init(&s);
    s.roots = &root;
    s.n_roots = 1;
    return pen_pack_files(pack, &s, reterr);
}

static int verify_pack(const char *dir, int decode, PenError *reterr)
{
    bool is_mixed = dir != in_place;
    PenPack *pack = NULL;
    PenVerifySettings s;
    PenVerifyResult result = {0};
    int r = pen_pack_open(dir, NULL, &pack, reterr);
    if (r < 0)
        return r;
    pen_verify_settings_init(&s);
    s.threads = 1;
    s.decode = decode;
    r = pen_pack_verify(pack, &s, &result, reterr);
    wrong += r == PEN_OK && (result.problems || result.samples != (is_mixed ? 10 : 8) ||
                             result.images < (is_mixed ? 20 : 8));
    pen_pack_close(&pack);
    return r;
}

static int verify_plain(PenError *reterr)
{
    return verify_pack(mixed, 0, reterr);
}

static int verify_decode(PenError *reterr)
{
    return verify_pack(mixed, 1, reterr);
}

static int count_image(void *ctx, const PenImageAnalysis *image)
{
    (void)image;
    ++*(int *)ctx;
    return 0;
}

static int analyse(PenError *reterr)
{
    PenPack *pack = NULL;
    PenAnalyseSettings settings = {0};
    PenAnalyseResult result;
    int images = 0;
    int r = pen_pack_open(mixed, NULL, &pack, reterr);
    if (r < 0)
        return r;
    settings.threads = 1;
    settings.image = count_image;
    settings.ctx = &images;
    r = pen_pack_analyse(pack, &settings, &result, reterr);
    pen_pack_close(&pack);
    wrong += r == PEN_OK && (result.problems || images < 20);
    return r;
}

static int verify_in_place(PenError *reterr)
{
    return verify_pack(in_place, 1, reterr);
}

static int verify_indexed(PenError *reterr)
{
    return verify_pack(indexed, 1, reterr);
}

/* ---- loading --------------------------------------------------------------------------------- */

static uint64_t load_sums[6][12]; /* of the positions that are loaded */

/* Three batches, compared with those of an undisturbed run; a batch that fails is passed over. The
 * first error: `first`, or that of a batch. */
static int take_three(PenLoader *l, uint64_t *sums, int first, PenError *reterr)
{
    for (uint32_t g = 0; l && g < 3; g++) {
        PenBatch *b = NULL;
        PenError e = {0};
        int r = pen_loader_next(l, -1, &b, &e);
        for (uint32_t i = 0; r == PEN_OK && i < b->n_samples; i++) {
            uint64_t sum = load_batch_sum(b, i), *known = &sums[b->position + i];
            wrong += *known && sum != *known;
            *known = sum;
        }
        wrong += r < 0 ? e.status != r || !e.message[0] || r == PEN_E_TIMEOUT : r != PEN_OK;
        if (r < 0 && first == PEN_OK) {
            first = r;
            *reterr = e;
        }
        pen_batch_unref(&b);
    }
    return first;
}

static int load_three(const char *dir, PenLoaderSettings *s, uint64_t *sums, PenError *reterr)
{
    PenPack *pack = NULL;
    PenLoader *l = NULL;
    unsigned threads = load_held().threads;
    int first = pen_pack_open(dir, NULL, &pack, reterr);
    if (first == PEN_OK)
        first = pen_loader_open(pack, s, &l, reterr);
    pen_pack_close(&pack);
    first = take_three(l, sums, first, reterr);
    pen_loader_close(&l);
    load_threads_gone(threads, WATCHDOG_SECONDS); /* close does not wait long on a busy machine */
    return first;
}

static int load_photos(const char *dir, uint64_t *sums, PenError *reterr)
{
    PenLoaderSettings s = load_settings(3);
    s.pipeline = "photo: decode | random_resized_crop 24 | color_jitter 0.2 0.2 0.2 0.1 | "
                 "tensor f32; label: tensor; box: tensor";
    s.stall_ms = WATCHDOG_SECONDS * 500;
    return load_three(dir, &s, sums, reterr);
}

static int load_mixed(PenError *reterr)
{
    return load_photos(mixed, load_sums[0], reterr);
}

static int load_indexed(PenError *reterr)
{
    return load_photos(indexed, load_sums[3], reterr);
}

/* Workers read the complete files. */
static int load_forged(PenError *reterr)
{
    PenLoaderSettings s = load_settings(4);
    s.pipeline = "image: decode | center_crop 60 | tensor u8; label: tensor";
    s.stall_ms = WATCHDOG_SECONDS * 500;
    return load_three(forged, &s, load_sums[4], reterr);
}

static int load_replaced(PenError *reterr)
{
    PenLoaderSettings s = load_settings(4);
    s.on_bad = PEN_BAD_SUBSTITUTE;
    s.stall_ms = WATCHDOG_SECONDS * 500;
    return load_three(replaced, &s, load_sums[1], reterr);
}

/* Samples that have frames. */
static const uint64_t with_frames[] = {1, 2, 3, 5, 6, 7, 9, 3, 2};

static int load_clips(PenError *reterr)
{
    PenLoaderSettings s = load_settings(3);
    s.pipeline = "clip: decode | clip 3 1 n=2 times=yes | random_resized_crop 12 | hflip | "
                 "color_jitter 0.2 | tensor f32 ncthw; label: tensor";
    s.subset = with_frames;
    s.n_subset = PEN_LEN(with_frames);
    s.stall_ms = WATCHDOG_SECONDS * 500;
    return load_three(mixed, &s, load_sums[2], reterr);
}

static int load_rows(PenError *reterr)
{
    static const double weights[ROWS_SAMPLES] = {1, 2, 0, 1, 0.5, 3, 1, 1, 1, 0.1, 1, 1};
    PenLoaderSettings s = load_settings(3);
    s.pipeline = ROWS_PIPELINE;
    s.weights = weights;
    s.n_weights = PEN_LEN(weights);
    s.stall_ms = WATCHDOG_SECONDS * 500;
    return load_three(rows, &s, load_sums[5], reterr);
}

static int load_buckets(PenError *reterr)
{
    static const PenBucketSize sizes[] = {{16, 16}, {12, 20}};
    static const uint8_t bucket_of[ROWS_SAMPLES] = {0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 0, 1};
    static uint64_t sums[2 * ROWS_SAMPLES];
    PenLoaderSettings s = load_settings(3);
    s.pipeline = "image: decode | cover bucket position=random | hflip; caption: text 64";
    s.buckets = sizes;
    s.n_buckets = PEN_LEN(sizes);
    s.bucket_of = bucket_of;
    s.n_bucket_of = PEN_LEN(bucket_of);
    s.stall_ms = WATCHDOG_SECONDS * 500;
    return load_three(rows, &s, sums, reterr);
}

/* Of the pack with rows. */
static int load_augmented(const char *pipeline, uint32_t batch, uint64_t *sums, PenError *reterr)
{
    PenLoaderSettings s = load_settings(batch);
    s.pipeline = pipeline;
    s.stall_ms = WATCHDOG_SECONDS * 500;
    return load_three(rows, &s, sums, reterr);
}

static int load_tokens(PenError *reterr)
{
    static const uint32_t lengths[] = {6, 12, 8};
    static uint64_t sums[2 * ROWS_SAMPLES];
    PenLoaderSettings s = load_settings(1);
    s.pipeline = "image: decode | random_resized_crop 48,40 | patches 8 | hflip | normalize | "
                 "tensor bf16; label: tensor; caption: text 64";
    s.tokens = 24;
    s.lengths = lengths;
    s.n_lengths = PEN_LEN(lengths);
    s.stall_ms = WATCHDOG_SECONDS * 500;
    return load_three(rows, &s, sums, reterr);
}

static int load_mixed_samples(PenError *reterr)
{
    static uint64_t sums[ROWS_SAMPLES];
    return load_augmented("image: decode | random_resized_crop 16 | hflip | normalize | tensor f16 "
                          "nchw | mixup 0.8 p=0.5 per=sample | cutmix p=0.5 per=sample; label: "
                          "one_hot 12 label_smoothing=0.1 | tensor f32; classes: ragged 5 pad=-1",
                          4, sums, reterr);
}

static int load_policies(PenError *reterr)
{
    static uint64_t sums[ROWS_SAMPLES];
    return load_augmented(
        "image: decode | random_resized_crop 32 | rand_augment 2 bilinear | hflip | "
        "trivial_augment | tensor u8; mixed = image: decode | center_crop 24 | aug_mix | "
        "three_augment | tensor f32; any = image: decode | center_crop 24 | random_choice "
        "[auto_augment] [random_order [rand_augment | vflip]]; boxes: boxes of=image; classes: "
        "keep boxes; spots: points of=image drop=no",
        3, sums, reterr);
}

static int load_maps(PenError *reterr)
{
    static uint64_t sums[ROWS_SAMPLES];
    return load_augmented(
        "image: decode | random_rotation 30 bilinear | resize 40 | random_affine 15 shear=10 "
        "scale=0.5,2 | random_perspective 0.5 p=1 bicubic | pad 3 reflect | hflip | "
        "random_rotation 90,90 | center_crop 36; boxes: boxes kept=yes; classes: keep boxes; "
        "spots: points drop=no",
        3, sums, reterr);
}

static int load_tones(PenError *reterr)
{
    static uint64_t sums[ROWS_SAMPLES];
    return load_augmented(
        "image: decode | resize 32 | gaussian_blur 9 | jpeg 10,90 | center_crop 30 "
        "| jpeg 50 | random_equalize p=1 | random_adjust_sharpness 2 p=1 | tensor "
        "f32; gray = image: decode gray | center_crop 20 | jpeg 5,95",
        3, sums, reterr);
}

/* Of two packs, one of them twice; the weights change. */
static int load_mix(PenError *reterr)
{
    static const double weights[] = {2, 1, 1, 0, 1, 3};
    static const uint64_t starts[] = {0, 4};
    static uint64_t sums[12];
    PenPack *a = NULL, *b = NULL;
    PenLoader *l = NULL;
    PenMixSettings mix;
    PenLoaderSettings s = load_settings(3);
    unsigned threads = load_held().threads;
    s.pipeline = ROWS_PIPELINE;
    s.stall_ms = WATCHDOG_SECONDS * 500;
    int r = pen_pack_open(rows, NULL, &a, reterr);
    if (r == PEN_OK)
        r = pen_pack_open(rows, NULL, &b, reterr);
    PenPack *const packs[] = {a, b, a};
    pen_mix_settings_init(&mix);
    mix.packs = packs;
    mix.n_sources = PEN_LEN(packs);
    mix.weights = weights;
    mix.n_stages = PEN_LEN(starts);
    mix.starts = starts;
    if (r == PEN_OK)
        r = pen_loader_open_mix(&mix, &s, &l, reterr);
    pen_pack_close(&a);
    pen_pack_close(&b);
    r = take_three(l, sums, r, reterr);
    pen_loader_close(&l);
    load_threads_gone(threads, WATCHDOG_SECONDS);
    return r;
}

/* What failed is asked once more: a fault must not leave the loader unusable. */
static int get_rows(PenError *reterr)
{
    static uint64_t sums[ROWS_SAMPLES];
    PenPack *pack = NULL;
    PenLoader *l = NULL;
    PenLoaderSettings s = load_settings(1);
    s.pipeline = ROWS_PIPELINE;
    int first = pen_pack_open(rows, NULL, &pack, reterr);
    if (first == PEN_OK)
        first = pen_loader_open(pack, &s, &l, reterr);
    for (uint64_t i = 0; l && i < 2 * ROWS_SAMPLES; i++) {
        PenBatch *b = NULL;
        PenError e = {0};
        int r = pen_loader_get(l, 1, i / 2, &b, &e);
        uint64_t sum = b ? load_batch_sum(b, 0) : 0, *known = &sums[i / 2];
        wrong += r == PEN_OK ? *known && sum != *known : b || e.status != r || !e.message[0];
        if (r == PEN_OK)
            *known = sum;
        else if (first == PEN_OK) {
            first = r;
            *reterr = e;
        }
        pen_batch_unref(&b);
    }
    pen_loader_close(&l);
    pen_pack_close(&pack);
    return first;
}

/* Labels, and the sizes of the images. */
static int read_columns(PenError *reterr)
{
    PenPack *pack = NULL;
    int64_t labels[ROWS_SAMPLES];
    uint32_t sizes[ROWS_SAMPLES][2];
    size_t bytes;
    PenColumnRange label = {.field = 1, .n = ROWS_SAMPLES};
    PenColumnRange size = {.field = 0, .what = PEN_COLUMN_SIZE, .n = ROWS_SAMPLES};
    int r = pen_pack_open(rows, NULL, &pack, reterr);
    if (r == PEN_OK)
        r = pen_pack_column(pack, &label, labels, sizeof labels, &bytes, reterr);
    for (int64_t i = 0; i < ROWS_SAMPLES && r == PEN_OK; i++)
        wrong += labels[i] != i;
    if (r == PEN_OK)
        r = pen_pack_column(pack, &size, sizes, sizeof sizes, &bytes, reterr);
    for (int64_t i = 0; i < ROWS_SAMPLES && r == PEN_OK; i++)
        wrong += sizes[i][0] != 64 || sizes[i][1] != 64;
    pen_pack_close(&pack);
    return r;
}

static int read_pixels(PenError *reterr)
{
    static uint8_t pixels[16 * 32 * 3];
    PenPack *pack = NULL;
    int r = pen_pack_open(mixed, NULL, &pack, reterr);
    for (size_t i = 0; i < PEN_LEN(with_frames) && r == PEN_OK; i++) {
        uint32_t size[2] = {0, 0};
        PenPixelRange what = {with_frames[i], 2, 0, 1, 1, 3};
        r = pen_pack_pixels(pack, &what, pixels, sizeof pixels, size, reterr);
        wrong += r == PEN_OK && (size[0] != 16 || size[1] != 32);
    }
    pen_pack_close(&pack);
    return r;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int ingest(const char *source, int mode, int append, uint32_t task, uint32_t n_tasks,
                  PenError *reterr)
{
    PenIngestResult result;
    PenIngestSettings s = small_settings(&source, out);
    s.mode = mode;
    s.append = append;
    s.task = task;
    s.n_tasks = n_tasks;
    s.max_side = mode == PEN_MODE_ENCODE || mode == PEN_MODE_SMART ? 32 : 0;
    s.codec = mode == PEN_MODE_SMART ? PEN_ENCODING_WEBP : PEN_ENCODING_JPEG;
    s.smart_threshold = 32 * 20 * 3;
    s.skip_bad = source == broken;
    s.progressive = source == progressive ? PEN_PROGRESSIVE_CONVERT : PEN_PROGRESSIVE_KEEP;
    s.order = source == gz ? PEN_PACK_SOURCE : PEN_PACK_SHUFFLED;
    return pen_ingest_run(&s, &result, reterr);
}

static int pack_folder(PenError *reterr)
{
    return ingest(folder, PEN_MODE_KEEP, 0, 0, 0, reterr);
}

static int index_at(const char *source, const char *pack, PenError *reterr)
{
    PenIngestResult result;
    PenIngestSettings s = small_settings(&source, pack);
    s.mode = PEN_MODE_KEEP;
    s.in_place = 1;
    return pen_ingest_run(&s, &result, reterr);
}

static int index_folder(PenError *reterr)
{
    return index_at(folder, out, reterr);
}

static int index_tar(PenError *reterr)
{
    return index_at(tar, out, reterr);
}

static int pack_broken(PenError *reterr)
{
    return ingest(broken, PEN_MODE_KEEP, 0, 0, 0, reterr);
}

static int pack_list(PenError *reterr)
{
    return ingest(list, PEN_MODE_ENCODE, 0, 0, 0, reterr);
}

static int pack_smart(PenError *reterr)
{
    return ingest(list, PEN_MODE_SMART, 0, 0, 0, reterr);
}

static int pack_tar(PenError *reterr)
{
    return ingest(tar, PEN_MODE_RAW, 0, 0, 0, reterr);
}

static int pack_gz(PenError *reterr)
{
    return ingest(gz, PEN_MODE_KEEP, 0, 0, 0, reterr);
}

static int pack_converted(PenError *reterr)
{
    return ingest(progressive, PEN_MODE_KEEP, 0, 0, 0, reterr);
}

static void before_append(void)
{
    MUST(ingest(some, PEN_MODE_KEEP, 0, 0, 0, NULL) == PEN_OK);
}

static int append(PenError *reterr)
{
    return ingest(folder, PEN_MODE_KEEP, 1, 0, 0, reterr);
}

static int pack_task(PenError *reterr)
{
    return ingest(folder, PEN_MODE_KEEP, 0, 1, 3, reterr);
}

static void before_finalise(void)
{
    for (uint32_t i = 0; i < 3; i++)
        MUST(ingest(folder, PEN_MODE_KEEP, 0, i, 3, NULL) == PEN_OK);
}

static int finalise(PenError *reterr)
{
    PenIngestResult result;
    PenIngestSettings settings;
    pen_ingest_settings_init(&settings);
    settings.out = out;
    return pen_ingest_finalise(&settings, &result, reterr);
}

static int write_mixed(PenError *reterr)
{
    static const MixSpec spec = {6, 5, 5, 2, 20000, 0};
    return try_mixed(out, &spec, reterr);
}

static int write_rows(PenError *reterr)
{
    return rows_pack_write(out, reterr);
}

static void before_gc(void)
{
    before_finalise();
    MUST(finalise(NULL) == PEN_OK);
    Tree t = {0};
    tree_add(&t, ".work", NULL, 0);
    tree_add(&t, ".work/run", NULL, 0);
    tree_add(&t, ".work/run/shard.part", "half", 4);
    tree_store(&t, out);
    tree_free(&t);
}

static int gc(PenError *reterr)
{
    PenGcResult result;
    return pen_ingest_gc(out, NULL, NULL, 0, &result, reterr);
}

static int copy(PenError *reterr)
{
    PenCopySettings s;
    PenCopyResult result;
    pen_copy_settings_init(&s);
    s.from = mixed;
    s.to = out;
    s.threads = 2;
    return pen_copy(&s, &result, reterr);
}

static const Scenario scenarios[] = {
    {"open and read all", nothing, read_all, READS, NULL},
    {"extract", nothing, extract_all, READS, NULL},
    {"verify", nothing, verify_plain, READS, NULL},
    {"verify --decode", nothing, verify_decode, READS, NULL},
    {"verify --decode, entry indexes", nothing, verify_indexed, READS, NULL},
    {"verify --decode, in place", nothing, verify_in_place, READS, NULL},
    {"analyse", nothing, analyse, READS, NULL},
    {"load three batches", nothing, load_mixed, READS, NULL},
    {"load entry indexes", nothing, load_indexed, READS, NULL},
    {"load with wrong entry indexes", nothing, load_forged, READS, NULL},
    {"load with broken samples replaced", nothing, load_replaced, READS, NULL},
    {"load clips", nothing, load_clips, READS, NULL},
    {"load texts, boxes and views with weights", nothing, load_rows, READS, NULL},
    {"load buckets", nothing, load_buckets, READS, NULL},
    {"load a token budget", nothing, load_tokens, READS, NULL},
    {"load mixup, cutmix and soft labels", nothing, load_mixed_samples, READS, NULL},
    {"load policies, boxes and points following", nothing, load_policies, READS, NULL},
    {"load maps, boxes and points following", nothing, load_maps, READS, NULL},
    {"load blur and JPEG noise", nothing, load_tones, READS, NULL},
    {"load a mixture", nothing, load_mix, READS, NULL},
    {"samples by number", nothing, get_rows, READS, NULL},
    {"columns", nothing, read_columns, READS, NULL},
    {"pixels of clips", nothing, read_pixels, READS, NULL},
    {"pack of a folder, keep", nothing, pack_folder, PUBLISHES, NULL},
    {"index of a folder", nothing, index_folder, PUBLISHES, NULL},
    {"index of a tar", nothing, index_tar, PUBLISHES, NULL},
    {"pack with broken inputs left out", nothing, pack_broken, PUBLISHES, NULL},
    {"pack of a list with masks, encode", nothing, pack_list, PUBLISHES, NULL},
    {"pack of a list with masks, smart, WebP", nothing, pack_smart, PUBLISHES, NULL},
    {"pack of a tar, raw", nothing, pack_tar, PUBLISHES, NULL},
    {"pack of a compressed tar, keep", nothing, pack_gz, PUBLISHES, NULL},
    {"pack of progressive files, converted", nothing, pack_converted, PUBLISHES, NULL},
    {"append", before_append, append, PUBLISHES, NULL},
    {"task 1 of 3", nothing, pack_task, PREPARES, NULL},
    {"finalise of 3 tasks", before_finalise, finalise, PUBLISHES, NULL},
    {"writer with clips", nothing, write_mixed, PUBLISHES, NULL},
    {"writer with texts and rows", nothing, write_rows, PUBLISHES, NULL},
    {"gc", before_gc, gc, PUBLISHES, NULL},
    {"copy", nothing, copy, PUBLISHES, NULL},
    {"resumed pack", interrupt_pack, resume_pack, PUBLISHES, nothing},
    {"resumed pack, shards copied", interrupt_pack_and_mend, resume_pack, PUBLISHES, nothing},
    {"resumed pack, shards discarded", interrupt_pack_and_change, resume_pack, PUBLISHES, nothing},
    {"resumed append", interrupt_append, resume_append, PUBLISHES, pack_first},
    {"resumed task", interrupt_task, resume_task, PREPARES, nothing},
    {"plan in place of another that tasks have used", run_tasks_and_change, plan_again, PREPARES,
     NULL},
    {"finalise of a list, all inputs checked", run_list_tasks, finalise, PUBLISHES, NULL},
    {"finalise of a tar, all inputs checked", run_tar_tasks, finalise, PUBLISHES, NULL},
    {"finalise of frames, all inputs checked", run_frames_tasks, finalise, PUBLISHES, NULL},
    {"writer in place of an unfinished pack", interrupt_pack_for_writer, write_mixed, PUBLISHES,
     nothing},
};

/* ---- one point ------------------------------------------------------------------------------- */

typedef struct Frame { /* what stays the same for all points of a scenario */
    const Scenario *s;
    Tree before, after;
    uint8_t old_id[16], new_id[16];
} Frame;

static struct {
    const char *name;
    FaultPlan plan;
} current;
static uint64_t met[FAULT_KINDS]; /* points by the call that failed first */

static void hung(int signal)
{
    (void)signal;
    printf("%s, fault at %" PRIu64 "%s: hangs\n", current.name, current.plan.at,
           current.plan.for_ever ? " and after" : "");
    fflush(stdout);
    _exit(1);
}

static void reset(const Frame *f)
{
    if (f->s->effect == READS)
        return;
    dir_remove(top);
    tree_store(&f->before, top);
}

/* Is the status one that such a fault may cause? */
static bool is_typed(int r, const FaultSeen *seen, const FaultPlan *plan)
{
    if (plan->for_ever)
        return true;
    if (seen->first == FAULT_ALLOC)
        return r == PEN_E_NO_MEMORY;
    if (seen->first == FAULT_THREAD)
        return r == PEN_E_LIMIT || r == PEN_E_NO_MEMORY;
    if (seen->first == FAULT_LOCK)
        return r == PEN_E_BUSY || r == PEN_E_IO;
    return r == PEN_E_IO || r == PEN_E_ACCESS ||
           (seen->first == FAULT_STAT && r == PEN_E_NO_MEMORY);
}

static bool load_id(uint8_t id[16], PenError *e)
{
    PenPack *pack = NULL;
    PenVerifySettings s;
    PenVerifyResult result;
    memset(id, 0, 16);
    int r = pen_pack_open(out, NULL, &pack, e);
    if (r == PEN_E_NOT_FOUND)
        return true;
    if (r < 0)
        return false;
    memcpy(id, pen_pack_info(pack)->id, 16);
    pen_verify_settings_init(&s);
    s.threads = 1;
    r = allow_files(pack, e);
    if (r == PEN_OK)
        r = pen_pack_verify(pack, &s, &result, e);
    pen_pack_close(&pack);
    return r == PEN_OK;
}

static void check_tree(Sweep *s, const Frame *f, const char *what)
{
    Tree found;
    char why[300];
    tree_load(top, &found);
    if (!tree_same(&f->after, &found, why, sizeof why))
        sweep_bad(s, "fault at %" PRIu64 "%s: %s: %s", current.plan.at,
                  current.plan.for_ever ? " and after" : "", what, why);
    tree_free(&found);
}

/* After a failure: the old pack or the new one, and the same command ends as if nothing had been.
 */
static void check_again(Sweep *s, const Frame *f)
{
    PenError e = {0};
    PenGcResult result;
    uint8_t id[16];
    bool whole = load_id(id, &e);
    if (!whole || (memcmp(id, f->old_id, 16) != 0 && memcmp(id, f->new_id, 16) != 0)) {
        sweep_bad(s, "fault at %" PRIu64 ": neither the old pack nor the new: %s", current.plan.at,
                  e.message);
        return;
    }
    int r = f->s->run(&e);
    if (r == PEN_E_EXISTS && memcmp(id, f->new_id, 16) == 0)
        r = pen_ingest_gc(out, NULL, NULL, 0, &result, &e);
    if (r < 0)
        sweep_bad(s, "fault at %" PRIu64 "%s: run again: %s", current.plan.at,
                  current.plan.for_ever ? " and after" : "", e.message);
    else
        check_tree(s, f, "run again");
}

static void check_error(Sweep *s, const FaultSeen *seen, int r, const PenError *e)
{
    const char *after = current.plan.for_ever ? " and after" : "";
    /* verify says what is wrong with the pack, and the first problem says why. */
    bool told = e->status == r || (r == PEN_E_CORRUPT && strncmp(current.name, "verify", 6) == 0);
    if (!seen->failed)
        sweep_bad(s, "fails without a fault: %s", e->message);
    else if (!told || !e->message[0] || !e->where[0])
        sweep_bad(s, "fault at %" PRIu64 "%s (%s): returned %d, error %d '%s'", current.plan.at,
                  after, fault_name(seen->first), r, e->status, e->message);
    else if (!is_typed(e->status, seen, &current.plan))
        sweep_bad(s, "fault at %" PRIu64 "%s (%s): status %d '%s'", current.plan.at, after,
                  fault_name(seen->first), r, e->message);
}

/* What was lost here nobody would notice before the next crash. */
static bool must_be_told(FaultKind kind)
{
    return kind == FAULT_FSYNC || kind == FAULT_PWRITEV || kind == FAULT_RENAME;
}

static void check_result(Sweep *s, const Frame *f, const FaultSeen *seen, int r)
{
    PenError e = {0};
    PenGcResult result;
    if (seen->failed && must_be_told(seen->first))
        sweep_bad(s, "fault at %" PRIu64 ": a failed %s is passed over", current.plan.at,
                  fault_name(seen->first));
    if (r > 0)
        sweep_bad(s, "fault at %" PRIu64 ": returned %d", current.plan.at, r);
    /* A pack that is there is a success even when its work folder would not go away: gc takes that.
     */
    if (f->s->effect == PUBLISHES && pen_ingest_gc(out, NULL, NULL, 0, &result, &e) < 0)
        sweep_bad(s, "fault at %" PRIu64 ": gc: %s", current.plan.at, e.message);
    if (f->s->effect != READS)
        check_tree(s, f, "says all is well");
}

/* True when the fault was met. */
static bool try_point(Sweep *s, const Frame *f, FaultPlan plan)
{
    PenError e = {0};
    reset(f);
    unsigned before = dir_entries("/proc/self/fd");
    current.name = f->s->name;
    current.plan = plan;
    wrong = 0;
    alarm(WATCHDOG_SECONDS);
    fault_begin(&plan);
    int r = f->s->run(&e);
    FaultSeen seen = fault_end();
    alarm(0);
    s->n += seen.failed != 0;
    met[seen.first] += seen.failed != 0;
    if (seen.memory || seen.files || dir_entries("/proc/self/fd") != before)
        sweep_bad(
            s, "fault at %" PRIu64 "%s (%s): leaks %" PRId64 " pieces of memory, %" PRId64 " files",
            plan.at, plan.for_ever ? " and after" : "", fault_name(seen.first), seen.memory,
            seen.files);
    if (wrong)
        sweep_bad(s, "fault at %" PRIu64 " (%s): %d wrong answers", plan.at, fault_name(seen.first),
                  wrong);
    if (r >= 0 && e.status)
        sweep_bad(s, "fault at %" PRIu64 " (%s): succeeds, and leaves an error: %s", plan.at,
                  fault_name(seen.first), e.message);
    if (r < 0)
        check_error(s, &seen, r, &e);
    else
        check_result(s, f, &seen, r);
    if (r < 0 && f->s->effect != READS)
        check_again(s, f);
    return seen.failed != 0;
}

/* ---- all points ------------------------------------------------------------------------------ */

/* What was there before makes no difference to what is there after. */
static void check_fresh(const Frame *f)
{
    PenError e = {0};
    Tree found;
    char why[300];
    dir_remove(top);
    tree_store(&(Tree){0}, top);
    f->s->fresh();
    if (f->s->run(&e) < 0)
        must_failed(f->s->name, 0, e.message);
    tree_load(top, &found);
    if (!tree_same(&f->after, &found, why, sizeof why))
        must_failed(f->s->name, 0, why);
    tree_free(&found);
}

static FaultSeen frame_begin(const Scenario *s, Frame *f)
{
    static const FaultPlan none = {0};
    PenError e = {0};
    *f = (Frame){.s = s};
    if (s->effect != READS) {
        dir_remove(top);
        tree_store(&(Tree){0}, top);
        s->prepare();
        MUST(load_id(f->old_id, &e));
        tree_load(top, &f->before);
    }
    if (s->run(&e) <
        0) /* once without the system interface: what is made once and kept is made now */
        must_failed(s->name, 0, e.message);
    if (s->effect != READS) {
        tree_load(top, &f->after);
        MUST(load_id(f->new_id, &e));
    }
    if (s->fresh)
        check_fresh(f);
    reset(f);
    fault_begin(&none);
    int r = s->run(&e);
    FaultSeen seen = fault_end();
    MUST(r == PEN_OK && !wrong && seen.memory == 0 && seen.files == 0);
    return seen;
}

static void sweep_scenario(const Scenario *scenario, uint64_t sample)
{
    Frame f;
    FaultSeen seen = frame_begin(scenario, &f);
    Sweep s = sweep_begin(scenario->name);
    uint64_t stride = scale_is_full() || seen.calls < sample ? 1 : seen.calls / sample;
    /* The order of calls of two threads may differ from run to run, and with it their number. */
    for (int way = 0; way < 3; way++) {
        uint64_t missed = 0;
        for (uint64_t at = 1 + (uint64_t)way % stride; missed < 3; at += stride) {
            FaultPlan plan = {.at = at, .for_ever = way == 1, .other = way == 2};
            missed = try_point(&s, &f, plan) ? 0 : missed + 1;
        }
    }
    try_point(&s, &f, (FaultPlan){.trickle = true});
    sweep_end(&s, "%" PRIu64 " calls (%" PRIu64 " allocations), %" PRIu64 " points", seen.calls,
              seen.by_kind[FAULT_ALLOC], s.n);
    tree_free(&f.before);
    tree_free(&f.after);
    CHECK_INT(s.bad, 0);
}

static void some_broken(void *ctx, uint32_t i, LoadImage *image)
{
    load_mixed_image(ctx, i % 2 ? 0 : i, image);
    if (i % 4 == 3)
        load_break_jpeg(&image->file);
}

static void plain_image(void *ctx, uint32_t i, LoadImage *image)
{
    ImageSpec s = {.width = 80, .height = 70, .channels = 3, .seed = i, .subsample = 1};
    (void)ctx;
    image_jpeg(&s, &image->file);
    image->width = s.width;
    image->height = s.height;
    image->codec = PEN_STORED_JPEG;
    image->channels = 3;
}

/* Large enough for an entry index, with metadata that is stored apart. */
static void make_progressive(void)
{
    PenBuf b = {0};
    Tree t = {0};
    for (uint32_t i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u.jpg", i);
        image_jpeg(&(ImageSpec){80, 70, i == 3 ? 1 : 3, i, i % 2, 1, 1}, &b);
        tree_add(&t, name, b.data, b.bytes);
    }
    snprintf(progressive, sizeof progressive, "%s", scratch("progressive"));
    tree_store(&t, progressive);
    tree_free(&t);
    pen__buf_free(&b);
}

static void make_inputs(void)
{
    static const LoadSpec load = {12, PEN_MODE_KEEP, 4, 30000, some_broken, NULL};
    static const LoadSpec wrong_entries = {12, LOAD_FORGED, 4, 30000, plain_image, NULL};
    static const MixSpec spec = {10, 1, 1, 2, 21000, 0}, kept = {10, 1, 1, 2, 21000, 1};
    PenPack *pack = NULL;
    snprintf(top, sizeof top, "%s", scratch("top"));
    snprintf(out, sizeof out, "%s/p.pen", top);
    snprintf(mixed, sizeof mixed, "%s", scratch("mixed.pen"));
    snprintf(folder, sizeof folder, "%s", scratch("folder"));
    snprintf(some, sizeof some, "%s", scratch("some"));
    snprintf(broken, sizeof broken, "%s", scratch("broken"));
    snprintf(list, sizeof list, "%s", scratch("list/list.csv"));
    snprintf(tar, sizeof tar, "%s", scratch("a.tar"));
    snprintf(gz, sizeof gz, "%s", scratch("b.tar.gz"));
    make_folder(folder, 0, 8);
    make_progressive();
    make_folder(some, 0, 4);
    make_folder(broken, 0, 6);
    file_store(scratch("broken/ash/004.jpg"), "not a picture", 13);
    make_list(scratch("list"), 5);
    make_tar(tar, 5);
    make_tar(gz, 5);
    make_mixed(mixed, &spec);
    snprintf(replaced, sizeof replaced, "%s", scratch("replaced.pen"));
    load_pack_write(replaced, &load);
    snprintf(indexed, sizeof indexed, "%s", scratch("indexed.pen"));
    make_mixed(indexed, &kept);
    snprintf(in_place, sizeof in_place, "%s", scratch("in-place.pen"));
    MUST(index_at(folder, in_place, NULL) == PEN_OK);
    snprintf(forged, sizeof forged, "%s", scratch("forged.pen"));
    load_pack_write(forged, &wrong_entries);
    snprintf(rows, sizeof rows, "%s", scratch("rows.pen"));
    MUST(rows_pack_write(rows, NULL) == PEN_OK);
    MUST(pen_pack_open(mixed, NULL, &pack, NULL) == PEN_OK);
    probes_make(pack, &probes);
    pen_pack_close(&pack);
    resumed_begin(out);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = hung};
    struct rlimit no_core = {0, 0};
    sigaction(SIGALRM, &action, NULL);
    setrlimit(RLIMIT_CORE, &no_core);
    setenv("PENSTOCK_TOP", "0", 1); /* may fail in silence: see tests/unit/test_load_status.c */
    make_inputs();
    TEST_START(argc, argv);
    for (size_t i = 0; i < PEN_LEN(scenarios); i++) {
        if (argc > 1 && !strstr(scenarios[i].name, argv[1]))
            continue;
        test__now.name = scenarios[i].name;
        test__now.state = TEST_PASSED;
        sweep_scenario(&scenarios[i], scaled_to_few(60, 60, 30));
        test__now.n[test__now.state]++;
    }
    printf("points by call:");
    for (int i = 0; i < FAULT_KINDS; i++)
        printf(" %s %" PRIu64 "%s", fault_name((FaultKind)i), met[i],
               i + 1 < FAULT_KINDS ? "," : "\n");
    probes_free(&probes);
    return TEST_END();
}
