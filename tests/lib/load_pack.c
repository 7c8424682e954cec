/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/load_pack.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/sys.h"
#include "codec/codec.h"
#include "codec/jpeg/decoder/scan.h"
#include "lib/images.h"
#include "lib/sweep.h"
#include "lib/tiled_pack.h"
#include "lib/tree.h"
#include "load/epoch/split.h"
#include "load/epoch/state.h"
#include "pack/write/publish.h"
#include "pack/write/roll.h"

/* ---- packs ----------------------------------------------------------------------------------- */

static const PenField fields[] = {{.name = "image", .type = PEN_TYPE_IMAGE},
                                  {.name = "label", .type = PEN_TYPE_I64}};
enum { N_FIELDS = 2 };

static uint32_t make_key(char key[24], uint32_t i)
{
    return (uint32_t)snprintf(key, 24, "s-%06u", i);
}

static void write_checked(const char *dir, const LoadSpec *spec)
{
    PenError e = {0};
    PenWriter *w = NULL;
    PenWriterSettings s;
    LoadImage image = {.file = {0}};
    uint64_t total;
    pen_writer_settings_init(&s);
    s.fields = fields;
    s.n_fields = N_FIELDS;
    s.mode = spec->mode == LOAD_INDEXED ? PEN_MODE_KEEP : spec->mode;
    s.no_index = spec->mode == PEN_MODE_KEEP;
    s.raw_share = 0.25;
    s.block_samples = spec->block_samples;
    s.shard_bytes = spec->shard_bytes;
    int r = pen_writer_open(dir, &s, &w, &e);
    for (uint32_t i = 0; i < spec->n && r == PEN_OK; i++) {
        char key[24];
        int64_t label = i;
        image.file.bytes = 0;
        spec->image(spec->ctx, i, &image);
        PenValue values[N_FIELDS] = {{.data = image.file.data, .bytes = image.file.bytes},
                                     {.data = &label, .bytes = sizeof label}};
        r = pen_writer_add(w, key, make_key(key, i), values, N_FIELDS, &e);
    }
    if (r == PEN_OK)
        r = pen_writer_finish(w, &total, &e);
    pen_writer_close(&w);
    pen__buf_free(&image.file);
    if (r < 0)
        must_failed(dir, 0, e.message);
}

typedef struct AsIs { /* a sample on its way to a block */
    PenStoredSample sample;
    PenStoredValue values[N_FIELDS];
    PenStoredImage stored;
    int64_t label;
    char key[24];
    LoadImage image;
    PenBuf entries;
} AsIs;

static void release(void *ctx, const PenStoredSample *sample)
{
    AsIs *a = (AsIs *)(uintptr_t)sample;
    (void)ctx;
    pen__buf_free(&a->image.file);
    pen__buf_free(&a->entries);
    free(a);
}

/* An entry index that is right in itself, but not that of the file: one entry is a bit too far. */
static void forge_entries(AsIs *a)
{
    const PenBuf *file = &a->image.file;
    PenEntryScan *scan = NULL;
    PenJpegHeader header;
    PenJpegEntries found;
    const PenJpegInfo *info = &header.info;
    const char *why;
    MUST(pen__entry_scan_new(&scan, NULL) == PEN_OK);
    MUST(pen__jpeg_header(file->data, file->bytes, &pen__limits_default, &header, NULL) == PEN_OK);
    MUST(pen__entry_scan(scan, &header, file->data, file->bytes, pen__entry_unit(info), &found,
                         &why, NULL) == PEN_OK);
    ((PenEntry *)(uintptr_t)found.at)[1].bit++;
    MUST(pen__entries_write(&found, &a->entries, NULL) == PEN_OK);
    a->stored.how = PEN_HOW_INDEXED;
    a->stored.entries = (PenStoredEntries){.lead_bytes = (uint32_t)info->lead_bytes,
                                           .head_bytes = (uint32_t)info->head_bytes,
                                           .scan_bytes = (uint32_t)found.scan_bytes,
                                           .h_samp = info->h_samp[0],
                                           .v_samp = info->v_samp[0],
                                           .plan = found.plan,
                                           .coded = a->entries.data,
                                           .coded_bytes = a->entries.bytes};
    pen__entry_scan_free(&scan);
}

static const PenStoredSample *as_is(const LoadSpec *spec, uint32_t i)
{
    AsIs *a = calloc(1, sizeof *a);
    MUST(a);
    spec->image(spec->ctx, i, &a->image);
    a->label = i;
    a->stored = (PenStoredImage){.data = a->image.file.data,
                                 .bytes = a->image.file.bytes,
                                 .width = a->image.width,
                                 .height = a->image.height,
                                 .codec = a->image.codec,
                                 .channels = a->image.channels,
                                 .orientation = 1};
    if (spec->mode == LOAD_FORGED)
        forge_entries(a);
    a->values[0] = (PenStoredValue){.images = &a->stored, .n_images = 1};
    a->values[1] = (PenStoredValue){.data = &a->label, .bytes = sizeof a->label};
    a->sample = (PenStoredSample){.key = (const uint8_t *)a->key,
                                  .key_bytes = make_key(a->key, i),
                                  .position = i,
                                  .values = a->values};
    return &a->sample;
}

/* Below the writer, who would refuse much of it. */
static void write_as_is(const char *dir, const LoadSpec *spec)
{
    PenError e = {0};
    PenSchema schema = {0};
    PenRoll *roll = NULL;
    char part[600];
    snprintf(part, sizeof part, "%s/part", dir);
    PenStore *store = NULL;
    PenRollSettings s = {.part_path = part,
                         .schema = &schema,
                         .block_samples = spec->block_samples,
                         .shard_bytes = spec->shard_bytes,
                         .release = release};
    MUST(mkdir(dir, 0777) == 0);
    int r = pen__schema_init(&schema, fields, N_FIELDS, &e);
    if (r == PEN_OK)
        r = pen__store_open(dir, NULL, &store, &e);
    s.store = store;
    schema.class_field = -1;
    schema.has_entries = spec->mode == LOAD_FORGED;
    if (r == PEN_OK)
        r = pen__roll_open(&s, &roll, &e);
    for (uint32_t i = 0; i < spec->n && r == PEN_OK; i++)
        r = pen__roll_add(roll, as_is(spec, i), &e);
    if (r == PEN_OK)
        r = pen__roll_finish(roll, NULL, &e);
    if (r == PEN_OK) {
        PenManifest m = {.block_samples = spec->block_samples, .schema = schema};
        m.shards = (PenShardEntry *)(uintptr_t)pen__roll_shards(roll, &m.n_shards);
        m.stats = *pen__roll_stats(roll);
        r = pen__pack_publish(store, NULL, part, &m, 0, &e);
    }
    pen__roll_close(&roll);
    pen__store_close(&store);
    pen__schema_fini(&schema);
    if (r < 0)
        must_failed(dir, 0, e.message);
}

/* The library no longer writes tiles: they are made of kept files. */
static void write_tiles(const char *dir, const LoadSpec *spec)
{
    LoadSpec kept = *spec;
    char first[600];
    snprintf(first, sizeof first, "%s.kept", dir);
    kept.mode = PEN_MODE_KEEP;
    write_checked(first, &kept);
    tile_pack(first, dir, spec->shard_bytes);
    dir_remove(first);
}

void load_pack_write(const char *dir, const LoadSpec *spec)
{
    if (spec->mode == PEN_MODE_TILE)
        write_tiles(dir, spec);
    else if (spec->mode == LOAD_AS_IS || spec->mode == LOAD_FORGED)
        write_as_is(dir, spec);
    else
        write_checked(dir, spec);
}

PenPack *load_pack_open(const char *dir)
{
    PenPack *pack = NULL;
    PenError e = {0};
    if (pen_pack_open(dir, NULL, &pack, &e) < 0)
        must_failed(dir, 0, e.message);
    return pack;
}

void load_mixed_image(void *ctx, uint32_t i, LoadImage *image)
{
    ImageSpec s = {.width = 40 + i % 5 * 12,
                   .height = 36 + i % 7 * 9,
                   .channels = i % 11 == 5   ? 4
                               : i % 11 == 7 ? 1
                                             : 3,
                   .seed = i,
                   .meta = i % 4 == 1 ? i + 1 : 0,
                   .subsample = i % 2 == 0,
                   .progressive = i % 6 == 3};
    (void)ctx;
    if (i % 13 == 4)
        image_png(&s, &image->file);
    else
        image_jpeg(&s, &image->file);
}

void load_break_jpeg(PenBuf *file)
{
    size_t at = 0;
    while (at + 40 < file->bytes && !(file->data[at] == 0xFF && file->data[at + 1] == 0xDA))
        at++;
    MUST(at + 40 < file->bytes);
    at += 2u + file->data[at + 3];
    file->data[at] = 0xFF; /* a restart that nobody has asked for, before the first row */
    file->data[at + 1] = 0xD0;
}

void load_damage(const char *dir, PenPack *pack, uint64_t sample)
{
    PenBlock *b = NULL;
    uint32_t in_block;
    char name[PEN_SHARD_NAME_BYTES], path[700];
    uint8_t byte;
    MUST(pen__pack_locate(pack, sample, &b, &in_block, NULL) == PEN_OK);
    PenImageEntry e = pen__block_image(&b->view, in_block, 0, 0);
    /* The head: whatever is read of the image, that is. */
    off_t at = (off_t)(b->offset + e.offset + 2);
    pen__shard_name(b->shard->shard.entry.id, name);
    pen__pack_block_put(pack, b);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDWR);
    MUST(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 4;
    MUST(pwrite(fd, &byte, 1, at) == 1 && close(fd) == 0);
}

/* ---- passes ---------------------------------------------------------------------------------- */

PenLoaderSettings load_settings(uint32_t batch)
{
    PenLoaderSettings s;
    pen_loader_settings_init(&s);
    s.last_batch = PEN_LAST_DROP;
    s.batch_size = batch;
    s.pipeline = "decode | random_resized_crop 32 | hflip | tensor u8 nhwc";
    s.order = PEN_ORDER_RANDOM;
    s.threads = 2;
    s.io_threads = 1;
    s.memory_bytes = 64 << 20;
    s.stall_ms = 60000;
    return s;
}

/* The bytes of sample i in a field. */
static const uint8_t *value_of(const PenBatch *b, uint32_t field, uint32_t i, size_t *ret_bytes)
{
    const PenTensor *t = &b->fields[field];
    const PenList *list = b->lists && b->lists[field].kind ? &b->lists[field] : NULL;
    bool has_sizes = list && list->kind == PEN_LIST_IMAGES; /* in the next field */
    size_t element = pen_dtype_bytes(t->dtype), row = element;
    for (uint32_t d = 1; d < t->n_dims; d++)
        row *= t->shape[d] < 0 ? 1 : (size_t)t->shape[d];
    uint64_t first = list ? (uint64_t)list->offsets[i] : i;
    *ret_bytes = list ? ((uint64_t)list->offsets[i + 1] - first) * row : row;
    if (has_sizes) {
        const int64_t *size = (const int64_t *)b->fields[field + 1].data + 2 * i;
        *ret_bytes = (size_t)(size[0] * size[1]) * row;
    }
    return (const uint8_t *)t->data + first * (has_sizes ? element : row);
}

uint64_t load_batch_sum(const PenBatch *b, uint32_t i)
{
    PenSha256 sha;
    uint8_t hash[32];
    uint64_t first;
    pen__sha256_init(&sha);
    pen__sha256_update(&sha, &b->samples[i], sizeof b->samples[i]);
    for (uint32_t f = 0; f < b->n_fields; f++) {
        size_t bytes;
        const uint8_t *data = value_of(b, f, i, &bytes);
        if (b->lists && b->lists[f].kind) /* else the next value may take its place */
            pen__sha256_update(&sha, &bytes, sizeof bytes);
        pen__sha256_update(&sha, data, bytes);
    }
    pen__sha256_final(&sha, hash);
    memcpy(&first, hash, sizeof first);
    return first;
}

/* How the pass of a loader that began at `start` is split. The state has the order. */
static PenSplit split_of(const PenLoader *l, const PenLoaderSettings *s, uint64_t start, uint64_t n)
{
    char text[PEN_STATE_BYTES];
    PenState state;
    PenOrder order;
    MUST(pen_loader_save(l, text, NULL) == PEN_OK && pen__state_read(text, &state, NULL) == PEN_OK);
    MUST(pen__order_init(&order, &state.order, state.epoch, NULL) == PEN_OK);
    return (PenSplit){.n = n,
                      .start = start,
                      .batch = s->batch_size,
                      .rank = s->rank,
                      .world = s->world,
                      .deal = pen__deal_for(&order, s->world),
                      .streams = order.streams};
}

static void note_batch(const PenBatch *b, const PenSplit *split, uint64_t g, LoadPass *pass)
{
    PenPassStep step = pen__split_step(split, g);
    for (uint32_t i = 0; i < b->n_samples; i++) {
        bool valid;
        uint64_t p = pen__split_position(split, &step, i, &valid);
        if (!b->valid[i] != !valid)
            must_failed("valid", 0, "a position is wrong");
        if (valid && pass->sums)
            pass->sums[p] = load_batch_sum(b, i);
    }
    pass->batches++;
    pass->substituted += b->n_substituted;
}

int load_take(PenLoader *l, const PenLoaderSettings *s, uint64_t start, uint64_t limit, bool stop,
              LoadPass *pass)
{
    PenSplit split = split_of(l, s, start, pass->n);
    for (uint64_t i = 0; i < limit; i++) {
        PenBatch *b = NULL;
        PenError e = {0};
        int r = pen_loader_next(l, -1, &b, &e);
        if (r == PEN_END)
            return r;
        if (r < 0) {
            if (!pass->errors++) {
                pass->error = e;
                pass->first_error = i;
            }
            if (stop || r == PEN_E_TIMEOUT)
                return r;
            continue;
        }
        note_batch(b, &split, i, pass);
        pen_batch_unref(&b);
    }
    return PEN_OK;
}

int load_run(PenPack *pack, const PenLoaderSettings *s, const char *from, LoadPass *pass)
{
    PenLoader *l = NULL;
    uint64_t start = 0;
    int r = pen_loader_open(pack, s, &l, &pass->error);
    pass->first_error = UINT64_MAX;
    if (r == PEN_OK && from) {
        const char *place = strstr(from, "position=");
        MUST(place);
        start = strtoull(place + 9, NULL, 10);
        r = pen_loader_restore(l, from, 1, &pass->error);
    }
    if (r == PEN_OK)
        r = load_take(l, s, start, UINT64_MAX, false, pass);
    pen_loader_close(&l);
    return r;
}

/* ---- the process ----------------------------------------------------------------------------- */

static unsigned count_names(const char *dir)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    if (!d)
        return 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Mappings of files in memory. The names in /dev/shm are those of all processes. */
static unsigned count_shared(void)
{
    char line[512];
    unsigned n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    MUST(f);
    while (fgets(line, sizeof line, f))
        n += strstr(line, "/dev/shm") || strstr(line, "memfd:");
    fclose(f);
    return n;
}

/* "Name: number" */
static void read_number(const char *line, const char *name, uint64_t *ret)
{
    if (strncmp(line, name, strlen(name)) == 0)
        *ret = strtoull(line + strlen(name), NULL, 10);
}

LoadHeld load_held(void)
{
    char line[256];
    uint64_t threads = 0;
    LoadHeld h = {.files = count_names("/proc/self/fd"), .shared = count_shared()};
    FILE *f = fopen("/proc/self/status", "r");
    MUST(f);
    while (fgets(line, sizeof line, f)) {
        read_number(line, "VmRSS:", &h.rss_kib);
        read_number(line, "VmHWM:", &h.peak_kib);
        read_number(line, "Threads:", &threads);
    }
    fclose(f);
    h.threads = (unsigned)threads;
    return h;
}

#if defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1, HIDDEN_THREADS = 1 };
#elif defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1, HIDDEN_THREADS = 0 };
#elif defined(__has_feature)
enum { /* the thread sanitizer starts a thread of its own when it likes */
       HIDDEN_THREADS = __has_feature(thread_sanitizer),
       SANITIZED = HIDDEN_THREADS || __has_feature(address_sanitizer)
};
#else
enum { SANITIZED = 0, HIDDEN_THREADS = 0 };
#endif

bool load_is_sanitized(void)
{
    return SANITIZED;
}

bool load_threads_gone(unsigned threads, double seconds)
{
    double end = load_seconds() + seconds;
    threads += HIDDEN_THREADS;
    while (load_held().threads > threads && load_seconds() < end)
        usleep(2000);
    return load_held().threads <= threads;
}

static double clock_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double load_seconds(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

double load_cpu_seconds(void)
{
    return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

pid_t load_child_start(int (*run)(void *ctx), void *ctx, unsigned seconds)
{
    fflush(stdout);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        alarm(seconds);
        int r = run(ctx);
        fflush(stdout);
        _exit(r); /* what the parent has made stays */
    }
    return child;
}

int load_child_end(pid_t child)
{
    int status = 0;
    MUST(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}
