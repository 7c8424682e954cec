/* SPDX-License-Identifier: Apache-2.0 */
/* Kept videos that are damaged after packing, and hostile tables of packets, in packs with
 * checksums that are right. Every sample gives pixels, or an error that names it, and the frame if
 * its packets could be read. Nothing crashes or hangs, and memory is bounded. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/process.h"
#include "base/rng.h"
#include "base/thread.h"
#include "fuzz/pack_parts.h"
#include "lib/load_pack.h"
#include "lib/sweep.h"
#include "lib/tree.h"
#include "pack/reader/reader.h"
#include "unit/test.h"

#ifdef VIDEO_PLUGIN

enum { MOST_VIDEOS = 24, MOST_PACKETS = 64, KINDS = 10, PAYLOAD_KINDS = 5 };

/* Of the process: 64 MiB for the loader, two decoders for frames of 64x64 pixels, and libraries. A
 * table can claim larger frames. The address sanitizer keeps memory that was freed. */
enum { MOST_MIB = 256, MOST_SANITIZED_MIB = 1024 };

typedef struct Coding {
    const char *name, *encoder, *more[4];
} Coding;

static const Coding codings[] = {
    {"h264.mp4", "libx264", {"-g", "10"}},
    {"h264.mkv", "libx264", {"-bf", "3", "-x264-params", "open-gop=1:keyint=8"}},
    {"h264.mov", "libx264", {"-bf", "0", "-g", "6"}},
    {"hevc.mp4", "libx265", {"-x265-params", "log-level=none:keyint=10"}},
    {"hevc.mkv", "libx265", {"-x265-params", "log-level=none:keyint=8:open-gop=1:bframes=3"}},
    {"vp9.webm", "libvpx-vp9", {"-g", "10", "-cpu-used", "8"}},
    {"vp9.mp4", "libvpx-vp9", {"-g", "10", "-cpu-used", "8"}},
    {"av1.mp4", "libsvtav1", {"-g", "10", "-preset", "12"}},
    {"av1.webm", "libsvtav1", {"-g", "10", "-preset", "12"}},
    {"vp8.webm", "libvpx", {"-g", "10", "-cpu-used", "8"}},
    {"vp8.mkv", "libvpx", {"-g", "10", "-cpu-used", "8"}},
    {"mpeg4.mp4", "mpeg4", {"-g", "10", "-bf", "2"}},
    {"mpeg4.mkv", "mpeg4", {"-g", "10"}},
    {"mpeg4.mov", "mpeg4", {"-g", "10", "-bf", "1"}},
    {"mjpeg.mov", "mjpeg", {"-q:v", "5"}},
    {"mjpeg.mkv", "mjpeg", {"-q:v", "5"}},
};

/* A sample of the pack: where its bytes are in the shard. */
typedef struct Video {
    size_t payload, table, extra, extra_bytes, groups, groups_bytes, coded, coded_bytes;
    PenVideoPacket packets[MOST_PACKETS];
    uint32_t n_packets;
} Video;

static Video videos[MOST_VIDEOS];
static uint32_t n_videos;
static PackParts whole; /* the undamaged pack */

/* ---- the pack -------------------------------------------------------------------------------- */

static bool run(const char *const *argv)
{
    PenProcessSettings s = {.argv = argv, .deadline_ns = pen__deadline_after(60000000000u)};
    PenProcessResult result;
    return pen__process_run(&s, &result, NULL) == PEN_OK && result.exit.code == 0;
}

static bool encode(const char *folder, const Coding *c)
{
    char path[800];
    const char *argv[24] = {"ffmpeg",    "-nostdin", "-loglevel", "error",
                            "-f",        "lavfi",    "-i",        "testsrc2=s=64x64:r=25",
                            "-frames:v", "30",       "-pix_fmt",  "yuv420p",
                            "-c:v",      c->encoder};
    size_t n = 14;
    for (size_t i = 0; i < PEN_LEN(c->more) && c->more[i]; i++)
        argv[n++] = c->more[i];
    snprintf(path, sizeof path, "%s/%s", folder, c->name);
    argv[n++] = path;
    argv[n] = NULL;
    bool ok = run(argv);
    if (!ok)
        unlink(path);
    return ok;
}

/* One sample per block, so that damage to the index of one leaves the others. */
static void pack_videos(const char *folder, const char *out)
{
    PenIngestSettings s;
    PenIngestResult result;
    PenError e = {0};
    pen_ingest_settings_init(&s);
    s.sources = &folder;
    s.n_sources = 1;
    s.out = out;
    s.kind = PEN_INPUT_VIDEOS;
    s.mode = PEN_MODE_KEEP;
    s.video = PEN_VIDEOS_KEEP;
    s.block_samples = 1;
    s.threads = 1;
    if (pen_ingest_run(&s, &result, &e) < 0)
        must_failed(__FILE__, __LINE__, e.message);
}

static Part part_of(const TreeItem *item)
{
    Part p = {malloc(item->bytes), item->bytes};
    MUST(p.data);
    memcpy(p.data, item->data, item->bytes);
    return p;
}

static void take_parts(const char *dir)
{
    Tree tree = {0};
    tree_load(dir, &tree);
    for (size_t i = 0; i < tree.n; i++) {
        if (!tree.items[i].data)
            continue;
        if (strcmp(tree.items[i].path, "manifest") == 0)
            whole.manifest = part_of(&tree.items[i]);
        else
            whole.shards[whole.n_shards++] = part_of(&tree.items[i]);
        MUST(whole.n_shards <= 1);
    }
    MUST(whole.manifest.data && whole.n_shards == 1);
    tree_free(&tree);
}

static void list_packets(const PenVideoTable *t, Video *v)
{
    PenVideoCursor cursor = pen__video_seek(t, 0);
    MUST(t->n_packets <= MOST_PACKETS);
    for (v->n_packets = 0; v->n_packets < t->n_packets; v->n_packets++)
        MUST(!pen__video_next(&cursor, &v->packets[v->n_packets]));
}

static void find_video(PenPack *pack, uint64_t sample, Video *v)
{
    PenVideoTable t;
    PenBlock *block = NULL;
    uint32_t at, field = 0;
    MUST(pen__pack_locate(pack, sample, &block, &at, NULL) == PEN_OK);
    while (block->view.schema->fields[field].type != PEN_TYPE_CLIP)
        field++;
    MUST(pen__block_video(&block->view, at, field, &t));
    PenClipEntry e = pen__block_clip(&block->view, at, field);
    v->payload = (size_t)(block->offset + e.offset);
    v->table = (size_t)(block->offset + e.table_offset);
    v->groups = v->table + PEN_VIDEO_HEADER_BYTES + 4 * (size_t)t.n_runs;
    v->groups_bytes = (size_t)PEN_VIDEO_GROUP_BYTES * t.n_groups;
    v->extra = v->groups + v->groups_bytes;
    v->extra_bytes = t.stream.extra_bytes;
    v->coded = v->extra + v->extra_bytes;
    v->coded_bytes = t.coded_bytes;
    list_packets(&t, v);
    pen__pack_block_put(pack, block);
}

static void make_pack(void)
{
    char *folder = strdup(scratch("videos")), *out = strdup(scratch("videos.pen"));
    char class_folder[700];
    PenPack *pack = NULL;
    snprintf(class_folder, sizeof class_folder, "%s/all", folder);
    MUST(mkdir(folder, 0777) == 0 && mkdir(class_folder, 0777) == 0);
    for (size_t i = 0; i < PEN_LEN(codings); i++)
        n_videos += encode(class_folder, &codings[i]);
    MUST(n_videos > 1); /* one of each turn is not damaged */
    pack_videos(folder, out);
    take_parts(out);
    pack = load_pack_open(out);
    MUST(pen_pack_info(pack)->n_samples == n_videos);
    for (uint32_t i = 0; i < n_videos; i++)
        find_video(pack, i, &videos[i]);
    pen_pack_close(&pack);
    free(folder);
    free(out);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void flip(PenRng *rng, uint8_t *at, size_t bytes, uint64_t most)
{
    for (uint64_t n = bytes ? 1 + pen__rng_below(rng, most) : 0; n; n--)
        at[pen__rng_below(rng, bytes)] ^= (uint8_t)(1u << pen__rng_below(rng, 8));
}

static void randomize(PenRng *rng, uint8_t *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)pen__rng_next(rng);
}

static void damage_payload(PenRng *rng, int kind, const Video *v, uint8_t *payload)
{
    const PenVideoPacket *p = &v->packets[pen__rng_below(rng, v->n_packets)];
    const PenVideoPacket *other = &v->packets[pen__rng_below(rng, v->n_packets)];
    size_t from = (size_t)pen__rng_below(rng, p->bytes), rest = p->bytes - from;
    switch (kind) {
    case 0:
        flip(rng, payload + p->offset, p->bytes, 12);
        break;
    case 1: /* where headers are */
        flip(rng, payload + p->offset, PEN_MIN(p->bytes, 32u), 8);
        break;
    case 2:
        memset(payload + p->offset + from, pen__rng_below(rng, 2) ? 0 : 0xFF, rest);
        break;
    case 3:
        memmove(payload + p->offset, payload + other->offset, PEN_MIN(p->bytes, other->bytes));
        break;
    default:
        randomize(rng, payload + p->offset + from, rest);
        break;
    }
}

static void damage_table(PenRng *rng, int kind, const Video *v, uint8_t *data)
{
    switch (kind) {
    case PAYLOAD_KINDS:
        flip(rng, data + v->extra, v->extra_bytes, 8);
        break;
    case PAYLOAD_KINDS + 1:
        flip(rng, data + v->coded, v->coded_bytes, 6);
        break;
    case PAYLOAD_KINDS + 2: /* codec, sizes, numbers of packets and groups, times */
        flip(rng, data + v->table, PEN_VIDEO_HEADER_BYTES, 2);
        break;
    case PAYLOAD_KINDS + 3:
        flip(rng, data + v->groups, v->groups_bytes, 3);
        break;
    default:
        randomize(rng, data + v->coded + pen__rng_below(rng, v->coded_bytes), 1);
        break;
    }
}

/* Several packets of the clip are hit, as any of them may not be needed. */
static void damage(PenRng *rng, int kind, const Video *v, uint8_t *data)
{
    bool both = kind == KINDS - 1;
    for (uint64_t n = 1 + pen__rng_below(rng, 4); n && (both || kind < PAYLOAD_KINDS); n--)
        damage_payload(rng, kind % PAYLOAD_KINDS, v, data + v->payload);
    if (kind >= PAYLOAD_KINDS)
        damage_table(rng, kind, v, data);
}

/* ---- loading --------------------------------------------------------------------------------- */

typedef struct Turn {
    PackParts parts;
    int kinds[MOST_VIDEOS]; /* -1: not damaged */
    bool seen[MOST_VIDEOS];
} Turn;

typedef struct Outcomes {
    uint64_t pixels, errors[20];
    double slowest; /* seconds of a sample */
} Outcomes;

static bool is_expected(int r)
{
    return r == PEN_E_DECODE || r == PEN_E_CORRUPT || r == PEN_E_UNSUPPORTED || r == PEN_E_LIMIT ||
           r == PEN_E_INVALID || r == PEN_E_FORMAT;
}

static void check_error(Sweep *sweep, Turn *t, int r, const PenError *e)
{
    if (e->sample < 0 || e->sample >= n_videos || !is_expected(r) || e->status != r) {
        sweep_bad(sweep, "status %d of sample %" PRId64 ": %s", r, e->sample, e->message);
        return;
    }
    int kind = t->kinds[e->sample];
    t->seen[e->sample] = true;
    if (kind < 0)
        sweep_bad(sweep, "sample %" PRId64 " is not damaged: %s", e->sample, e->message);
    else if (kind < PAYLOAD_KINDS && (r != PEN_E_DECODE || !strstr(e->message, "frame ")))
        sweep_bad(sweep, "damage of kind %d, status %d: %s", kind, r, e->message);
}

static void load(Sweep *sweep, Turn *t, PenPack *pack, uint64_t seed, Outcomes *out)
{
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenError e = {0};
    PenLoaderSettings s = load_settings(1);
    int r;
    s.pipeline = seed % 2 ? "decode | clip 6 2 | center_crop 32 | tensor u8 nthwc"
                          : "decode | clip 30 1 0 | resize 24 | center_crop 24 | tensor u8 nthwc";
    s.order = PEN_ORDER_SEQUENTIAL;
    s.seed = seed;
    if (pen_loader_open(pack, &s, &l, &e) < 0)
        must_failed(__FILE__, __LINE__, e.message);
    do {
        double began = load_seconds();
        r = pen_loader_next(l, -1, &b, &e);
        double took = load_seconds() - began;
        out->slowest = PEN_MAX(out->slowest, took);
        if (r == PEN_OK) {
            out->pixels++;
            t->seen[b->samples[0]] = true;
            pen_batch_unref(&b);
        } else if (r < 0) {
            out->errors[-r]++;
            check_error(sweep, t, r, &e);
        }
    } while (r != PEN_END && r != PEN_E_TIMEOUT);
    pen_loader_close(&l);
}

static Part copy_part(const Part *p)
{
    Part copy = {malloc(p->bytes), p->bytes};
    MUST(copy.data);
    memcpy(copy.data, p->data, p->bytes);
    return copy;
}

/* One sample of each turn is not damaged. */
static void play_turn(Sweep *sweep, uint64_t number, Outcomes *out)
{
    Turn t = {.parts = {.manifest = copy_part(&whole.manifest),
                        .shards = {copy_part(&whole.shards[0])},
                        .n_shards = 1}};
    PenPack *pack = NULL;
    PenError e = {0};
    for (uint32_t i = 0; i < n_videos; i++) {
        PenRng rng = pen__rng_init(number, i);
        t.kinds[i] = number % n_videos == i ? -1 : (int)((number + i) % KINDS);
        if (t.kinds[i] >= 0)
            damage(&rng, t.kinds[i], &videos[i], t.parts.shards[0].data);
        sweep->n += t.kinds[i] >= 0;
    }
    repair_parts(&t.parts, REPAIR_SUMS);
    if (pen__pack_open_with("damaged", parts_open, &t.parts, &pack, &e) < 0)
        must_failed(__FILE__, __LINE__, e.message);
    load(sweep, &t, pack, number, out);
    pen_pack_close(&pack);
    for (uint32_t i = 0; i < n_videos; i++)
        if (!t.seen[i])
            sweep_bad(sweep, "sample %u: neither pixels nor an error", i);
    parts_free(&t.parts);
}

static void play_turns(const char *name, const char *mode, uint64_t turns)
{
    Sweep sweep = sweep_begin(name);
    Outcomes out = {0};
    setenv("PENSTOCK_VIDEO", mode, 1);
    for (uint64_t turn = 0; turn < turns; turn++)
        play_turn(&sweep, turn, &out);
    uint64_t mib = load_held().peak_kib >> 10;
    uint64_t most = load_is_sanitized() ? MOST_SANITIZED_MIB : MOST_MIB;
    if (mib > most)
        sweep_bad(&sweep, "expected at most %" PRIu64 " MiB, found %" PRIu64, most, mib);
    if (!out.pixels || !out.errors[-PEN_E_DECODE] || !out.errors[-PEN_E_CORRUPT])
        sweep_bad(&sweep, "not all outcomes were met");
    sweep_end(&sweep,
              "%" PRIu64 " of %u files, %d kinds: %" PRIu64 " clips, %" PRIu64 " errors of the "
              "decoder, %" PRIu64 " of the table, %" PRIu64 " others; %" PRIu64 " MiB; the slowest "
              "took %.2f s",
              sweep.n, n_videos, KINDS, out.pixels, out.errors[-PEN_E_DECODE],
              out.errors[-PEN_E_CORRUPT],
              out.errors[-PEN_E_UNSUPPORTED] + out.errors[-PEN_E_LIMIT] +
                  out.errors[-PEN_E_INVALID] + out.errors[-PEN_E_FORMAT],
              mib, out.slowest);
    CHECK_INT(sweep.bad, 0);
}

TEST(damaged_videos)
{
    make_pack();
    MUST(setenv("PENSTOCK_VIDEO_LIBRARY", VIDEO_PLUGIN, 1) == 0);
    play_turns("damaged videos", "inline", scaled_to_few(2000, 200, 100) / (n_videos - 1) + 1);
}

/* A confined process cannot open a plug-in that has a sanitizer. */
TEST(damaged_videos_in_processes)
{
    if (load_is_sanitized())
        SKIP("built with a sanitizer");
    play_turns("damaged videos, in processes", "process", scaled(1000, 50) / (n_videos - 1) + 1);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    if (!pen_has_ffmpeg()) {
        printf("skipped: no ffmpeg here\n");
        return 77;
    }
    RUN(damaged_videos);
    RUN(damaged_videos_in_processes);
    return TEST_END();
}

#else

int main(void)
{
    printf("skipped: built without the video plug-in\n");
    return 77;
}

#endif
