/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/make_pack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/attr.h"
#include "base/sys.h"
#include "lib/images.h"
#include "lib/sweep.h"
#include "lib/tiled_pack.h"
#include "lib/tree.h"

/* ---- through the writer ---------------------------------------------------------------------- */

static const PenField fields[] = {
    {.name = "photo", .type = PEN_TYPE_IMAGE},
    {.name = "mask", .type = PEN_TYPE_IMAGE, .flags = PEN_FIELD_MASK},
    {.name = "clip", .type = PEN_TYPE_CLIP},
    {.name = "blob", .type = PEN_TYPE_BYTES},
    {.name = "doc", .type = PEN_TYPE_JSON},
    {.name = "note", .type = PEN_TYPE_TEXT},
    {.name = "label", .type = PEN_TYPE_I64},
    {.name = "box", .type = PEN_TYPE_F32, .n_dims = 2, .dims = {2, 2}},
    {.name = "score", .type = PEN_TYPE_F64},
};
static const char *const classes[] = {"cat", "dog", "heron"};
enum { N_FIELDS = 9, MAX_FRAMES = 4 };

typedef struct Mixed { /* one sample */
    PenBuf photo, mask, frames[MAX_FRAMES];
    char blob[300], doc[64], note[80], key[32];
    int64_t label, times[MAX_FRAMES];
    float box[4];
    double score;
    PenValue frame_values[MAX_FRAMES], values[N_FIELDS];
} Mixed;

static void fill_images(Mixed *m, const MixSpec *spec, uint32_t i)
{
    uint32_t seed = spec->pixels * 1000 + i;
    uint32_t meta = i % 3 == 1 ? 0 : spec->meta * 1000 + i + 1;
    ImageSpec photo = {64 + 16 * (i % 3), 48, 3, seed, meta, i % 2 == 0, i % 5 == 3};
    if (i % 7 == 5)
        photo.channels = 4; /* CMYK has no index */
    if (i % 7 == 6)
        photo.channels = 1;
    image_jpeg(&photo, &m->photo);
    if (i % 7 == 4)
        image_png(&(ImageSpec){16, 12, 3, seed, 0, 0, 0}, &m->photo);
    m->mask.bytes = 0;
    if (i % 4 != 2) /* else it has none */
        image_png(&(ImageSpec){12, 9, 1, seed, 0, 0, 0}, &m->mask);
    for (uint32_t k = 0; k < i % MAX_FRAMES; k++) {
        image_jpeg(&(ImageSpec){32, 16, 3, seed + k, k == 1 ? meta : 0, 1, 0}, &m->frames[k]);
        m->frame_values[k] = (PenValue){.data = m->frames[k].data, .bytes = m->frames[k].bytes};
        m->times[k] = (int64_t)k * 40000000;
    }
}

static void fill_rest(Mixed *m, const MixSpec *spec, uint32_t i)
{
    uint32_t seed = spec->pixels * 1000 + i;
    for (size_t k = 0; k < sizeof m->blob; k++)
        m->blob[k] = (char)(seed * 31 + k * 7);
    snprintf(m->doc, sizeof m->doc, "{\"seed\": %08u}", seed);
    snprintf(m->note, sizeof m->note, "sample %u, seed %08u", i, seed);
    snprintf(m->key, sizeof m->key, "mixed/%04u", i);
    m->label = i % 3;
    m->score = 1.0 / (seed + 1);
    for (uint32_t k = 0; k < 4; k++)
        m->box[k] = (float)(seed + k);
    m->values[0] = (PenValue){.data = m->photo.data, .bytes = m->photo.bytes};
    m->values[1] = (PenValue){.data = m->mask.data, .bytes = m->mask.bytes};
    m->values[2] = (PenValue){
        .frames = m->frame_values, .n_frames = i % MAX_FRAMES, .timestamps_ns = m->times};
    m->values[3] = (PenValue){.data = m->blob, .bytes = i % 6 == 5 ? 0 : 20 + i * 37 % 280};
    m->values[4] = (PenValue){.data = m->doc, .bytes = strlen(m->doc)};
    m->values[5] = (PenValue){.data = m->note, .bytes = strlen(m->note)};
    m->values[6] = (PenValue){.data = &m->label, .bytes = sizeof m->label};
    m->values[7] = (PenValue){.data = m->box, .bytes = sizeof m->box};
    m->values[8] = (PenValue){.data = &m->score, .bytes = sizeof m->score};
}

static void free_mixed(Mixed *m, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        pen__buf_free(&m[i].photo);
        pen__buf_free(&m[i].mask);
        for (uint32_t k = 0; k < MAX_FRAMES; k++)
            pen__buf_free(&m[i].frames[k]);
    }
    free(m);
}

/* The samples are made before the writer is opened: what fails is then the library alone. */
static Mixed *all_mixed(const MixSpec *spec)
{
    Mixed *m = calloc(spec->n_samples, sizeof *m);
    MUST(m);
    for (uint32_t i = 0; i < spec->n_samples; i++) {
        fill_images(&m[i], spec, i);
        fill_rest(&m[i], spec, i);
    }
    return m;
}

static int write_mixed(const char *dir, const MixSpec *spec, const Mixed *m, PenError *reterr)
{
    PenWriter *w = NULL;
    PenWriterSettings s;
    uint64_t n = 0;
    pen_writer_settings_init(&s);
    s.fields = fields;
    s.n_fields = N_FIELDS;
    s.class_field = "label";
    s.classes = classes;
    s.n_classes = PEN_LEN(classes);
    s.mode = spec->keep ? PEN_MODE_KEEP : PEN_MODE_MIX;
    s.raw_share = 0.3;
    s.max_side = 0;
    s.block_samples = spec->block_samples;
    s.shard_bytes = spec->shard_bytes;
    int r = pen_writer_open(dir, &s, &w, reterr);
    for (uint32_t i = 0; i < spec->n_samples && r == PEN_OK; i++)
        r = pen_writer_add(w, m[i].key, strlen(m[i].key), m[i].values, N_FIELDS, reterr);
    if (r == PEN_OK)
        r = pen_writer_finish(w, &n, reterr);
    pen_writer_close(&w);
    if (r == PEN_OK)
        MUST(n == spec->n_samples);
    return r;
}

int try_mixed(const char *dir, const MixSpec *spec, PenError *reterr)
{
    /* Kept between calls, so that the calls of the library are the same each time. */
    static MixSpec kept_spec;
    static Mixed *kept;
    if (!kept || memcmp(&kept_spec, spec, sizeof *spec) != 0) {
        const PenSys *sys = pen__sys;
        pen__sys = &pen__sys_real;
        if (kept)
            free_mixed(kept, kept_spec.n_samples);
        kept = all_mixed(spec);
        kept_spec = *spec;
        pen__sys = sys;
    }
    return write_mixed(dir, spec, kept, reterr);
}

void make_mixed(const char *dir, const MixSpec *spec)
{
    PenError e = {0};
    char first[600];
    snprintf(first, sizeof first, "%s%s", dir, spec->keep ? "" : ".first");
    if (try_mixed(first, spec, &e) < 0)
        must_failed(dir, 0, e.message);
    if (spec->keep)
        return;
    tile_pack(first, dir, spec->shard_bytes);
    dir_remove(first);
}

/* ---- sources for ingest ---------------------------------------------------------------------- */

static void make_dir(const char *path)
{
    MUST(mkdir(path, 0777) == 0 || errno == EEXIST);
}

static void put_jpeg(const char *path, uint32_t i)
{
    PenBuf b = {0};
    uint32_t meta = i % 2 ? 0 : i + 1;
    image_jpeg(&(ImageSpec){48 + 8 * (i % 4), 40, 3, i, meta, i % 2 == 0, i % 5 == 4}, &b);
    file_store(path, b.data, b.bytes);
    pen__buf_free(&b);
}

void make_folder(const char *dir, uint32_t first, uint32_t n)
{
    static const char *const names[] = {"ash", "birch"};
    char path[600];
    make_dir(dir);
    for (uint32_t i = first; i < first + n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i % 2]);
        make_dir(path);
        snprintf(path, sizeof path, "%s/%s/%03u.jpg", dir, names[i % 2], i);
        put_jpeg(path, i);
    }
}

void make_list(const char *dir, uint32_t n)
{
    char path[600];
    PenBuf b = {0};
    make_dir(dir);
    snprintf(path, sizeof path, "%s/list.csv", dir);
    FILE *f = fopen(path, "w");
    MUST(f);
    fprintf(f, "path,label,mask,caption,weight\n");
    for (uint32_t i = 0; i < n; i++) {
        fprintf(f, "p%02u.jpg,%s,m%02u.png,\"picture, %u\",%u.5\n", i, i % 2 ? "b" : "a", i, i, i);
        snprintf(path, sizeof path, "%s/p%02u.jpg", dir, i);
        put_jpeg(path, i);
        snprintf(path, sizeof path, "%s/m%02u.png", dir, i);
        image_png(&(ImageSpec){24, 20, 1, i, 0, 0, 0}, &b);
        file_store(path, b.data, b.bytes);
    }
    MUST(fclose(f) == 0);
    pen__buf_free(&b);
}

static void put_member(struct archive *a, const char *name, const void *data, size_t bytes)
{
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, name);
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_size(e, (la_int64_t)bytes);
    MUST(archive_write_header(a, e) == ARCHIVE_OK);
    MUST(archive_write_data(a, data, bytes) == (la_ssize_t)bytes);
    archive_entry_free(e);
}

void make_tar(const char *path, uint32_t n)
{
    struct archive *a = archive_write_new();
    PenBuf b = {0};
    archive_write_set_format_ustar(a);
    if (strstr(path, ".gz"))
        archive_write_add_filter_gzip(a);
    MUST(archive_write_open_filename(a, path) == ARCHIVE_OK);
    for (uint32_t i = 0; i < n; i++) {
        char name[32], text[32];
        image_jpeg(&(ImageSpec){48, 40, 3, i, i % 2, 1, 0}, &b);
        snprintf(name, sizeof name, "%04u.jpg", i);
        put_member(a, name, b.data, b.bytes);
        snprintf(name, sizeof name, "%04u.cls", i);
        snprintf(text, sizeof text, "%u", i % 3);
        put_member(a, name, text, strlen(text));
        snprintf(name, sizeof name, "%04u.json", i);
        snprintf(text, sizeof text, "{\"n\": %u}", i);
        put_member(a, name, text, strlen(text));
    }
    MUST(archive_write_close(a) == ARCHIVE_OK);
    archive_write_free(a);
    pen__buf_free(&b);
}

PenIngestSettings small_settings(const char *const *source, const char *out)
{
    PenIngestSettings s;
    pen_ingest_settings_init(&s);
    s.sources = source;
    s.n_sources = 1;
    s.out = out;
    s.block_samples = 3;
    s.shard_bytes = 12000;
    s.threads = 1;
    return s;
}
