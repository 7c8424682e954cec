/* SPDX-License-Identifier: Apache-2.0 */
/* Videos in packs: written through the lowest interface, read by parts, checked, copied, appended
 * to and extracted. The payloads are no real videos: nothing here decodes them. */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/copy.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "load_help.h"
#include "pack/reader/arriving.h"
#include "pack/write/copy.h"
#include "pack/write/publish.h"
#include "pack/write/roll.h"
#include "video_table_help.h"

enum { SAMPLES = 5, FIELDS = 3, BYTES = 300000 };

typedef struct Made {
    HelpVideo v;
    PenBuf table, crcs;
    PenStoredVideo stored;
    PenStoredImage image;
    PenStoredValue values[FIELDS];
    PenStoredSample sample;
    int64_t label;
    char key[16];
} Made;

static Made made[SAMPLES];
static uint8_t payloads[SAMPLES][BYTES];
static PenBuf jpeg;

/* Sample 0: a file that is not in memory; 1: a clip of one image; 2: a part of a file; 3: no
 * frames; 4: another file. The payload of the last one has less than a run. */
static void make_sample(uint32_t i)
{
    Made *m = &made[i];
    PenError err = {0};
    uint64_t state = 100 + i;
    *m = (Made){.label = i};
    if (i != 1 && i != 3) {
        uint32_t n_frames = 0;
        do
            help_video(&state, &m->v);
        while (m->v.payload_bytes > BYTES || m->v.n < 100 || m->v.packets[0].is_hidden);
        m->v.payload_bytes = i == 4 ? m->v.payload_bytes : BYTES;
        m->v.stream.container = i == 2 ? PEN_CONTAINER_PART : PEN_CONTAINER_MATROSKA;
        CHECK_INT(pen__video_table_write(&m->v.stream, m->v.packets, m->v.n, m->v.payload_bytes,
                                         &m->table, &n_frames, &err),
                  PEN_OK);
        for (size_t k = 0; k < BYTES; k++)
            payloads[i][k] = (uint8_t)help_random(&state, 256);
        m->stored = (PenStoredVideo){.data = payloads[i],
                                     .bytes = m->v.payload_bytes,
                                     .table = m->table.data,
                                     .table_bytes = m->table.bytes,
                                     .n_frames = n_frames,
                                     .source_bytes = m->v.payload_bytes * (i == 2 ? 3 : 1)};
        m->values[0].video = &m->stored;
    }
    m->image = (PenStoredImage){.data = jpeg.data,
                                .bytes = jpeg.bytes,
                                .width = 248,
                                .height = 144,
                                .codec = PEN_STORED_JPEG,
                                .how = PEN_HOW_KEPT,
                                .orientation = 1,
                                .channels = 3,
                                .source_bytes = jpeg.bytes};
    if (i == 1) {
        m->values[0].images = &m->image;
        m->values[0].n_images = 1;
    }
    m->values[1] = (PenStoredValue){.data = &m->label, .bytes = sizeof m->label};
    m->values[2] = (PenStoredValue){.data = "text", .bytes = 4};
    snprintf(m->key, sizeof m->key, "video-%u", i);
    m->sample = (PenStoredSample){.key = (const uint8_t *)m->key,
                                  .key_bytes = (uint32_t)strlen(m->key),
                                  .position = i,
                                  .values = m->values};
}

static PenSource *source;

/* The payload of sample 0 is read from its file while it is written. */
static void use_file(void)
{
    PenError err = {0};
    FILE *f = fopen(at("payload.mkv"), "wb");
    CHECK(f);
    CHECK_INT(fwrite("before", 1, 6, f), 6);
    CHECK_INT(fwrite(payloads[0], 1, BYTES, f), BYTES);
    fclose(f);
    CHECK_INT(pen__source_open_file(at("payload.mkv"), &source, &err), PEN_OK);
    CHECK_INT(pen__video_run_crcs(payloads[0], BYTES, &made[0].crcs), PEN_OK);
    made[0].stored.data = NULL;
    made[0].stored.source = source;
    made[0].stored.source_offset = 6;
    made[0].stored.crcs = made[0].crcs.data;
}

static void release(void *ctx, const PenStoredSample *sample)
{
    (void)ctx;
    (void)sample;
}

static const PenField fields[FIELDS] = {{.name = "video", .type = PEN_TYPE_CLIP},
                                        {.name = "label", .type = PEN_TYPE_I64},
                                        {.name = "note", .type = PEN_TYPE_TEXT}};

/* Blocks of 2 samples, in one shard. */
static int write_pack(const char *name, int has_videos, PenError *err)
{
    PenSchema schema;
    PenStore *store = NULL;
    PenRoll *roll = NULL;
    char part[600], path[512];
    snprintf(path, sizeof path, "%s", at(name));
    snprintf(part, sizeof part, "%s/part", path);
    int r = pen__schema_init(&schema, fields, FIELDS, err);
    schema.has_videos = has_videos;
    mkdir(path, 0777);
    if (r == PEN_OK)
        r = pen__store_open(path, NULL, &store, err);
    PenRollSettings s = {.store = store,
                         .part_path = part,
                         .schema = &schema,
                         .block_samples = 2,
                         .shard_bytes = 1 << 30,
                         .has_columns = true,
                         .release = release};
    if (r == PEN_OK)
        r = pen__roll_open(&s, &roll, err);
    for (uint32_t i = 0; i < SAMPLES && r == PEN_OK; i++)
        r = pen__roll_add(roll, &made[i].sample, err);
    if (r == PEN_OK)
        r = pen__roll_finish(roll, NULL, err);
    if (r == PEN_OK) {
        PenManifest m = {.block_samples = 2, .schema = schema};
        m.shards = (PenShardEntry *)(uintptr_t)pen__roll_shards(roll, &m.n_shards);
        m.stats = *pen__roll_stats(roll);
        r = pen__pack_publish(store, NULL, part, &m, 0, err);
    }
    pen__roll_close(&roll);
    pen__store_close(&store);
    pen__schema_fini(&schema);
    return r;
}

static PenPack *open_pack(const char *name)
{
    PenError err = {0};
    PenPack *pack = NULL;
    if (pen_pack_open(at(name), NULL, &pack, &err) < 0)
        printf("%s\n", err.message);
    return pack;
}

/* ---- reading ---- */

static void check_payload(PenPack *pack, uint32_t i)
{
    PenError err = {0};
    PenBuf all = {0};
    size_t bytes = 0;
    const PenStoredVideo *stored = &made[i].stored;
    CHECK_INT(pen_pack_read(pack, i, 0, NULL, 0, &bytes, &err), PEN_OK);
    CHECK_INT(bytes, stored->bytes);
    help_read(pack, i, 0, &all);
    CHECK_OK_SO_FAR();
    CHECK_INT(all.bytes, stored->bytes);
    CHECK_MEM(all.data, payloads[i], all.bytes);
    pen__buf_free(&all);
}

TEST(videos_are_read_back)
{
    PenError err = {0};
    PenPack *pack = open_pack("videos.pen");
    CHECK(pack);
    const PenPackInfo *info = pen_pack_info(pack);
    CHECK_INT(pen__pack_manifest(pack)->must, PEN_MUST_VIDEOS);
    CHECK_INT(info->stats.videos, 3);
    CHECK_INT(info->stats.source_bytes, 2 * BYTES + made[4].stored.bytes + jpeg.bytes + 5 * 4);
    CHECK_INT(info->stats.video_frames,
              made[0].stored.n_frames + made[2].stored.n_frames + made[4].stored.n_frames);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t n = 0, size[2];
        PenClipVideo video = {0};
        int is_video = pen_pack_video(pack, i, 0, &video, &err);
        CHECK_INT(is_video, made[i].values[0].video != NULL);
        CHECK_INT(pen_pack_frame_count(pack, i, 0, &n, &err), PEN_OK);
        CHECK_INT(n, is_video ? made[i].stored.n_frames : i == 1);
        if (!is_video)
            continue;
        bool is_turned = made[i].v.stream.orientation >= 5;
        size[0] = is_turned ? made[i].v.stream.height : made[i].v.stream.width;
        CHECK_INT(video.width, size[0]);
        CHECK_INT(video.bytes, made[i].stored.bytes);
        CHECK_INT(video.source_bytes, made[i].stored.source_bytes);
        CHECK_INT(video.codec, made[i].v.stream.codec);
        check_payload(pack, i);
        CHECK_OK_SO_FAR();
    }
    pen_pack_close(&pack);
}

static uint64_t reads;

static int64_t counting_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    reads++;
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

TEST(packets_are_one_read_rounded_to_runs)
{
    static PenSys sys;
    PenError err = {0};
    PenBuf data = {0};
    PenBlock *b = NULL;
    PenVideoTable t;
    PenVideoNeeds needs = {0};
    PenPack *pack = open_pack("videos.pen");
    CHECK(pack);
    PenSpot spot = {.field = 0};
    CHECK_INT(pen__pack_locate(pack, 2, &b, &spot.sample, &err), PEN_OK);
    spot.block = b;
    CHECK(pen__block_video(&b->view, spot.sample, 0, &t));
    CHECK_INT(t.stream.container, PEN_CONTAINER_PART);
    uint32_t frames[] = {t.n_frames / 2, t.n_frames / 2 + 2};
    CHECK_INT(pen__video_need(&t, frames, 2, &needs, &err), PEN_OK);
    sys = pen__sys_real;
    sys.pread = counting_pread;
    pen__sys = &sys;
    reads = 0;
    uint64_t offset = 0, from = needs.needs[0].offset, end = from + needs.needs[0].bytes;
    CHECK_INT(pen__pack_read_video(&spot, from, end, &data, &offset, &err), PEN_OK);
    pen__sys = &pen__sys_real;
    CHECK_INT(reads, 1);
    CHECK_INT(offset, from / 65536 * 65536);
    CHECK_INT(data.bytes, PEN_MIN(pen__padded(end, 65536), (uint64_t)BYTES) - offset);
    CHECK_MEM(data.data, payloads[2] + offset, data.bytes);
    for (int i = 0; i < PEN_SLACK; i++)
        CHECK_INT(data.data[data.bytes + (size_t)i], 0);
    CHECK_INT(pen__pack_read_video(&spot, 5, 5, &data, &offset, &err), PEN_E_INVALID);
    CHECK_INT(pen__pack_read_video(&spot, 5, BYTES + 1, &data, &offset, &err), PEN_E_INVALID);
    spot.field = 1;
    CHECK_INT(pen__pack_read_video(&spot, 0, 1, &data, &offset, &err), PEN_E_INVALID);
    pen__pack_block_put(pack, b);
    pen__video_needs_free(&needs);
    pen__buf_free(&data);
    pen_pack_close(&pack);
}

TEST(bytes_of_a_video)
{
    PenError err = {0};
    uint8_t found[1000];
    PenPack *pack = open_pack("videos.pen");
    CHECK(pack);
    CHECK_INT(pen_pack_video_bytes(pack, 0, 0, 65000, found, 1000, &err), PEN_OK);
    CHECK_MEM(found, payloads[0] + 65000, 1000);
    CHECK_INT(pen_pack_video_bytes(pack, 0, 0, BYTES - 10, found, 10, &err), PEN_OK);
    CHECK_MEM(found, payloads[0] + BYTES - 10, 10);
    CHECK_INT(pen_pack_video_bytes(pack, 0, 0, BYTES, found, 0, &err), PEN_OK);
    CHECK_INT(pen_pack_video_bytes(pack, 0, 0, BYTES - 9, found, 10, &err), PEN_E_INVALID);
    CHECK_INT(pen_pack_video_bytes(pack, 0, 0, UINT64_MAX, found, 10, &err), PEN_E_INVALID);
    CHECK_INT(pen_pack_video_bytes(pack, 1, 0, 0, found, 10, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "expected a video"));
    CHECK_INT(pen_pack_video_bytes(pack, 0, 1, 0, found, 10, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "expected a clip"));
    CHECK_INT(pen_pack_video_bytes(pack, 9, 0, 0, found, 10, &err), PEN_E_NOT_FOUND);
    pen_pack_close(&pack);
}

TEST(frames_of_a_video_are_no_images)
{
    PenError err = {0};
    PenImage image;
    PenFrameRange range = {.step = 1, .n = 1};
    size_t bytes;
    PenPack *pack = open_pack("videos.pen");
    CHECK(pack);
    CHECK_INT(pen_pack_image(pack, 0, 0, 1, &image, &err), PEN_E_UNSUPPORTED);
    CHECK(strstr(err.message, "found a video"));
    CHECK_INT(pen_pack_read_frames(pack, 0, 0, &range, NULL, 0, &bytes, &err), PEN_E_UNSUPPORTED);
    CHECK_INT(pen_pack_image(pack, 0, 0, 100000, &image, &err), PEN_E_NOT_FOUND);
    CHECK_INT(pen_pack_image(pack, 1, 0, 0, &image, &err), PEN_OK);
    CHECK_INT(image.bytes, jpeg.bytes);
    pen_pack_close(&pack);
}

TEST(videos_are_extracted_as_files)
{
    PenError err = {0};
    void *data = NULL;
    size_t bytes = 0;
    const char *suffix = "";
    PenPack *pack = open_pack("videos.pen");
    CHECK(pack);
    CHECK_INT(pen_pack_extract(pack, 0, 0, 0, &data, &bytes, &suffix, &err), PEN_OK);
    CHECK_INT(bytes, BYTES);
    CHECK_MEM(data, payloads[0], BYTES);
    CHECK(strcmp(suffix, ".mkv") == 0);
    pen_free(data);
    CHECK_INT(pen_pack_extract(pack, 0, 0, 1, &data, &bytes, &suffix, &err), PEN_E_UNSUPPORTED);
    CHECK_INT(pen_pack_extract(pack, 2, 0, 0, &data, &bytes, &suffix, &err), PEN_E_UNSUPPORTED);
    CHECK(strstr(err.message, "part of a file"));
    CHECK(strcmp(pen_video_suffix(1), ".mp4") == 0 && strcmp(pen_video_suffix(0), "") == 0);
    CHECK(strcmp(pen_video_codec_name(2), "hevc") == 0 && *pen_video_codec_name(8) == '?');
    pen_pack_close(&pack);
}

TEST(columns_have_sizes_and_frames)
{
    PenError err = {0};
    int32_t sizes[SAMPLES][2], frames[SAMPLES];
    size_t bytes;
    PenPack *pack = open_pack("videos.pen");
    CHECK(pack);
    PenColumnRange range = {.field = 0, .what = PEN_COLUMN_SIZE, .n = SAMPLES};
    CHECK_INT(pen_pack_column(pack, &range, sizes, sizeof sizes, &bytes, &err), PEN_OK);
    range.what = PEN_COLUMN_FRAMES;
    CHECK_INT(pen_pack_column(pack, &range, frames, sizeof frames, &bytes, &err), PEN_OK);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        PenClipVideo video = {.width = i == 1 ? 248 : 0, .height = i == 1 ? 144 : 0};
        uint32_t n = 0;
        CHECK(pen_pack_video(pack, i, 0, &video, &err) >= 0);
        CHECK_INT(sizes[i][0], (int32_t)video.width);
        CHECK_INT(sizes[i][1], (int32_t)video.height);
        CHECK_INT(pen_pack_frame_count(pack, i, 0, &n, &err), PEN_OK);
        CHECK_INT(frames[i], (int32_t)n);
    }
    pen_pack_close(&pack);
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds from the first frame, in the order of frames. */
TEST(times_of_frames)
{
    PenError err = {0};
    PenPack *pack = open_pack("videos.pen");
    CHECK(pack);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        int64_t found[HELP_PACKETS], expected[HELP_PACKETS];
        const HelpVideo *v = &made[i].v;
        uint32_t n = 0, n_shown = 0;
        CHECK_INT(pen_pack_frame_times(pack, i, 0, NULL, 0, &n, &err), PEN_OK);
        CHECK_INT(n, i == 1 ? 1 : made[i].stored.n_frames);
        if (n > 1)
            CHECK_INT(pen_pack_frame_times(pack, i, 0, found, n - 1, &n, &err), PEN_E_LIMIT);
        CHECK_INT(pen_pack_frame_times(pack, i, 0, found, HELP_PACKETS, &n, &err), PEN_OK);
        for (uint32_t k = 0; k < v->n; k++)
            if (!v->packets[k].is_hidden && v->packets[k].time >= v->packets[0].time)
                expected[n_shown++] = v->packets[k].time;
        qsort(expected, n_shown, sizeof *expected, compare_times);
        CHECK_INT(n_shown, i == 1 ? 0 : n);
        for (uint32_t k = 0; k < n_shown; k++) {
            double ns =
                (double)(expected[k] - expected[0]) * v->stream.tick_num * 1e9 / v->stream.tick_den;
            CHECK(fabs((double)found[k] - ns) <= 1 + ns * 1e-12);
        }
    }
    uint32_t n = 0;
    CHECK_INT(pen_pack_frame_times(pack, 0, 1, NULL, 0, &n, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "field 'label': expected a clip, found i64"));
    CHECK_INT(pen_pack_frame_times(pack, SAMPLES, 0, NULL, 0, &n, &err), PEN_E_NOT_FOUND);
    pen_pack_close(&pack);
}

/* ---- checking ---- */

static int verify(const char *name, PenError *err)
{
    PenVerifySettings s;
    PenVerifyResult result;
    PenPack *pack = open_pack(name);
    pen_verify_settings_init(&s);
    int r = pack ? pen_pack_verify(pack, &s, &result, err) : PEN_E_IO;
    pen_pack_close(&pack);
    return r;
}

/* Changes a byte of the shard: of the payload of sample 0, `offset` bytes into it. */
static void damage(const char *name, uint64_t offset)
{
    PenError err = {0};
    PenBlock *b = NULL;
    char shard[PEN_SHARD_NAME_BYTES], path[600];
    uint32_t sample;
    PenPack *pack = open_pack(name);
    CHECK(pack);
    CHECK_INT(pen__pack_locate(pack, 0, &b, &sample, &err), PEN_OK);
    uint64_t at_byte = b->offset + pen__block_clip(&b->view, 0, 0).offset + offset;
    pen__shard_name(pen__pack_manifest(pack)->shards[0].id, shard);
    snprintf(path, sizeof path, "%s/%s", at(name), shard);
    FILE *f = fopen(path, "r+b");
    CHECK(f);
    fseek(f, (long)at_byte, SEEK_SET);
    int byte = fgetc(f);
    fseek(f, (long)at_byte, SEEK_SET);
    fputc(byte ^ 4, f);
    fclose(f);
    pen__pack_block_put(pack, b);
    pen_pack_close(&pack);
}

TEST(damage_is_found_and_named)
{
    PenError err = {0};
    static uint8_t found[BYTES];
    size_t bytes;
    CHECK_INT(write_pack("damaged.pen", 1, &err), PEN_OK);
    CHECK_INT(verify("damaged.pen", &err), PEN_OK);
    damage("damaged.pen", 70000);
    CHECK_OK_SO_FAR();
    CHECK_INT(verify("damaged.pen", &err), PEN_E_CORRUPT);
    PenPack *pack = open_pack("damaged.pen");
    CHECK(pack);
    CHECK_INT(pen_pack_read(pack, 0, 0, found, BYTES, &bytes, &err), PEN_E_CORRUPT);
    CHECK(strstr(err.message, "block 0, sample 0"));
    CHECK_INT(pen_pack_video_bytes(pack, 0, 0, 65536, found, 1, &err), PEN_E_CORRUPT);
    CHECK_INT(err.sample, 0);
    CHECK_INT(pen_pack_video_bytes(pack, 0, 0, 0, found, 65536, &err), PEN_OK);
    CHECK_INT(pen_pack_video_bytes(pack, 0, 0, 131072, found, 65536, &err), PEN_OK);
    pen_pack_close(&pack);
}

/* As from a server: in parts of any size. */
static int arrive(PenPack *pack, PenShardRef *ref, uint8_t *data, uint64_t step)
{
    PenArriving a;
    pen__arriving_begin(&a, pack, 0, ref, data);
    for (uint64_t bytes = step; bytes < a.entry.bytes; bytes += step)
        pen__arriving_more(&a, bytes);
    return pen__arriving_end(&a);
}

TEST(blocks_are_checked_while_they_arrive)
{
    PenError err = {0};
    PenShardRef *ref = NULL;
    PenBlock *b = NULL;
    PenBuf data = {0};
    PenPack *pack = open_pack("videos.pen");
    CHECK(pack);
    CHECK_INT(pen__pack_shard(pack, 0, &ref, &err), PEN_OK);
    CHECK_INT(pen__pack_block(pack, 0, &b, &err), PEN_OK);
    CHECK_INT(pen__buf_reserve(&data, b->view.bytes + PEN_SLACK), PEN_OK);
    CHECK_INT(pen__block_fetch(pack, 0, ref, data.data, &err), PEN_OK);
    uint64_t video = pen__block_clip(&b->view, 0, 0).offset;
    for (uint64_t step = 1000; step < 400000; step *= 5) {
        CHECK_INT(arrive(pack, ref, data.data, step), PEN_OK);
        for (uint64_t at_byte = 0; at_byte < BYTES; at_byte += 99999) {
            data.data[video + at_byte] ^= 1;
            CHECK_INT(arrive(pack, ref, data.data, step), PEN_E_CORRUPT);
            data.data[video + at_byte] ^= 1;
        }
    }
    pen__buf_free(&data);
    pen__pack_block_put(pack, b);
    pen__pack_shard_put(pack, ref);
    pen_pack_close(&pack);
}

/* ---- writing ---- */

TEST(a_table_of_another_video_is_refused)
{
    PenError err = {0};
    CHECK_INT(write_pack("without.pen", 0, &err), PEN_E_INVALID);
    made[4].stored.bytes += 65536;
    CHECK_INT(write_pack("other.pen", 1, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "table that is not its own"));
    made[4].stored.bytes -= 65536;
    const uint8_t *data = made[4].stored.data;
    made[4].stored.data = NULL;
    CHECK_INT(write_pack("none.pen", 1, &err), PEN_E_INVALID);
    made[4].stored.data = data;
}

TEST(a_file_that_changes_is_an_error)
{
    PenError err = {0};
    FILE *f = fopen(at("payload.mkv"), "r+b");
    CHECK(f);
    fseek(f, 6 + 200000, SEEK_SET);
    fputc(payloads[0][200000] ^ 1, f);
    fclose(f);
    CHECK_INT(write_pack("changed.pen", 1, &err), PEN_E_CHANGED);
    CHECK(strstr(err.message, "has changed while it was packed"));
    made[0].stored.source_offset = 7;
    CHECK_INT(write_pack("short.pen", 1, &err), PEN_E_CHANGED);
    made[0].stored.source_offset = 6;
    CHECK_INT(truncate(at("payload.mkv"), 100), 0);
    CHECK_INT(write_pack("cut.pen", 1, &err), PEN_E_CHANGED);
}

TEST(blocks_are_copied_sample_by_sample)
{
    PenError err = {0};
    PenCopied copied = {0};
    PenPack *pack = open_pack("videos.pen");
    CHECK(pack);
    CHECK_INT(pen__copy_block(pack, 1, &copied, &err), PEN_OK);
    CHECK_INT(copied.n, 2);
    const PenStoredVideo *video = copied.samples[0].values[0].video;
    CHECK(video && !copied.samples[1].values[0].video);
    CHECK_INT(video->bytes, BYTES);
    CHECK_MEM(video->data, payloads[2], BYTES);
    CHECK_INT(video->n_frames, made[2].stored.n_frames);
    CHECK_INT(video->table_bytes, made[2].table.bytes);
    pen__copied_free(&copied);
    pen_pack_close(&pack);
}

TEST(packs_are_copied)
{
    PenError err = {0};
    PenCopySettings s;
    PenCopyResult result;
    char from[512];
    snprintf(from, sizeof from, "%s", at("videos.pen"));
    pen_copy_settings_init(&s);
    s.from = from;
    s.to = at("copied.pen");
    CHECK_INT(pen_copy(&s, &result, &err), PEN_OK);
    CHECK_INT(verify("copied.pen", &err), PEN_OK);
    PenPack *pack = open_pack("copied.pen");
    CHECK(pack);
    check_payload(pack, 4);
    pen_pack_close(&pack);
}

/* Of the shard alone: both packs have the same one. */
static void read_shard(const char *name, PenBuf *ret)
{
    char shard[PEN_SHARD_NAME_BYTES], path[600];
    PenPack *pack = open_pack(name);
    CHECK(pack);
    pen__shard_name(pen__pack_manifest(pack)->shards[0].id, shard);
    uint64_t bytes = pen__pack_manifest(pack)->shards[0].file_bytes;
    pen_pack_close(&pack);
    snprintf(path, sizeof path, "%s/%s", at(name), shard);
    FILE *f = fopen(path, "rb");
    CHECK(f);
    CHECK_INT(pen__buf_reserve(ret, bytes), PEN_OK);
    ret->bytes = fread(ret->data, 1, bytes, f);
    fclose(f);
    CHECK_INT(ret->bytes, bytes);
}

/* Its blocks are larger than what is copied at once. */
TEST(large_blocks_are_copied_by_payloads)
{
    PenError err = {0};
    PenCopySettings s;
    PenCopyResult result;
    PenBuf large = {0}, table = {0}, a = {0}, b = {0};
    uint32_t n_frames = 0;
    const Made kept = made[4];
    const size_t bytes = 65 << 20;
    char from[512];
    CHECK_INT(pen__buf_reserve(&large, bytes), PEN_OK);
    memset(large.data, 7, bytes);
    CHECK_INT(pen__video_table_write(&kept.v.stream, kept.v.packets, kept.v.n, bytes, &table,
                                     &n_frames, &err),
              PEN_OK);
    made[4].stored.data = large.data;
    made[4].stored.bytes = made[4].stored.source_bytes = bytes;
    made[4].stored.table = table.data;
    made[4].stored.table_bytes = table.bytes;
    CHECK_INT(write_pack("large.pen", 1, &err), PEN_OK);
    made[4].stored = kept.stored;
    snprintf(from, sizeof from, "%s", at("large.pen"));
    pen_copy_settings_init(&s);
    s.from = from;
    s.to = at("large-copy.pen");
    CHECK_INT(pen_copy(&s, &result, &err), PEN_OK);
    read_shard("large.pen", &a);
    CHECK_OK_SO_FAR();
    read_shard("large-copy.pen", &b);
    CHECK_OK_SO_FAR();
    CHECK_INT(a.bytes, b.bytes);
    CHECK_MEM(a.data, b.data, a.bytes);
    damage("large.pen", 70000);
    CHECK_OK_SO_FAR();
    s.to = at("large-damaged.pen");
    CHECK_INT(pen_copy(&s, &result, &err), PEN_E_CORRUPT);
    pen__buf_free(&large);
    pen__buf_free(&table);
    pen__buf_free(&a);
    pen__buf_free(&b);
}

int main(int argc, char **argv)
{
    PenError err = {0};
    TEST_START(argc, argv);
    help_begin();
    help_jpeg(3, &jpeg);
    for (uint32_t i = 0; i < SAMPLES; i++)
        make_sample(i);
    use_file();
    if (write_pack("videos.pen", 1, &err) < 0)
        printf("%s\n", err.message);
    RUN(videos_are_read_back);
    RUN(packets_are_one_read_rounded_to_runs);
    RUN(bytes_of_a_video);
    RUN(frames_of_a_video_are_no_images);
    RUN(videos_are_extracted_as_files);
    RUN(columns_have_sizes_and_frames);
    RUN(times_of_frames);
    RUN(damage_is_found_and_named);
    RUN(blocks_are_checked_while_they_arrive);
    RUN(a_table_of_another_video_is_refused);
    RUN(blocks_are_copied_sample_by_sample);
    RUN(packs_are_copied);
    RUN(large_blocks_are_copied_by_payloads);
    RUN(a_file_that_changes_is_an_error);
    pen__source_close(&source);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        pen__buf_free(&made[i].table);
        pen__buf_free(&made[i].crcs);
    }
    pen__buf_free(&jpeg);
    help_end();
    return TEST_END();
}
