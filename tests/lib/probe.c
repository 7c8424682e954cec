/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lib/sweep.h"

const char *probe_name(ProbeKind kind)
{
    static const char *const names[] = {"key",    "find", "value", "image",  "count",
                                        "frames", "meta", "slice", "extract"};
    return names[kind];
}

void answer_free(Answer *a)
{
    free(a->data);
    *a = (Answer){0};
}

/* Room for so many bytes, and none in it. */
static void fit(Answer *out, size_t bytes)
{
    out->bytes = 0;
    if (bytes + 1 > out->cap) {
        out->cap = bytes + 4096;
        out->data = realloc(out->data, out->cap);
        MUST(out->data);
    }
}

static int give(Answer *out, const void *data, size_t bytes)
{
    fit(out, bytes);
    memcpy(out->data, data, bytes);
    out->bytes = bytes;
    return PEN_OK;
}

static int ask_image(PenPack *pack, const Probe *p, Answer *out, PenError *reterr)
{
    PenImage i;
    int r = pen_pack_image(pack, p->sample, p->field, p->frame, &i, reterr);
    if (r < 0)
        return r;
    uint64_t all[] = {i.width, i.height,       i.codec,
                      i.how,   i.orientation,  i.channels,
                      i.bytes, i.source_bytes, (uint64_t)i.timestamp_ns};
    return give(out, all, sizeof all);
}

/* Runs of a JPEG with an entry index. */
static int read_runs(const PenSpot *at, const PenImageEntry *e, const Probe *p, PenBuf *data,
                     PenError *reterr)
{
    uint64_t scan = pen__block_entries(&at->block->view, e).stored.scan_bytes;
    uint64_t end = ((uint64_t)p->n + 1) * PEN_RUN_BYTES;
    PenScanPart part;
    return pen__pack_read_scan(at, (uint64_t)p->first * PEN_RUN_BYTES, PEN_MIN(end, scan), data,
                               &part, reterr);
}

static int ask_slice(PenPack *pack, const Probe *p, Answer *out, PenError *reterr)
{
    PenBlock *b = NULL;
    uint32_t sample;
    PenSlice slice = {0};
    int r = pen__pack_locate(pack, p->sample, &b, &sample, reterr);
    if (r < 0)
        return r;
    PenSpot at = {b, sample, p->field, p->frame, NULL};
    PenImageEntry e = pen__block_image(&b->view, sample, p->field, p->frame);
    r = pen__block_is_indexed(&b->view, &e)
            ? read_runs(&at, &e, p, &slice.data, reterr)
            : pen__pack_read_slice(&at, p->first, p->n, &slice, reterr);
    if (r == PEN_OK)
        r = give(out, slice.data.data, slice.data.bytes);
    pen__buf_free(&slice.data);
    pen__pack_block_put(pack, b);
    return r;
}

static int ask_extract(PenPack *pack, const Probe *p, Answer *out, PenError *reterr)
{
    void *data = NULL;
    size_t bytes = 0;
    const char *suffix = "";
    int r = pen_pack_extract(pack, p->sample, p->field, p->frame, &data, &bytes, &suffix, reterr);
    if (r == PEN_OK)
        r = give(out, data, bytes);
    pen_free(data);
    return r;
}

/* First without a buffer, to learn the size, then with one. */
static int ask_bytes(PenPack *pack, const Probe *p, void *buf, size_t cap, size_t *ret,
                     PenError *reterr)
{
    PenFrameRange range = {.first = p->first, .step = p->step, .n = p->n};
    switch (p->kind) {
    case PROBE_KEY:
        return pen_pack_key(pack, p->sample, buf, cap, ret, reterr);
    case PROBE_META:
        return pen_pack_metadata(pack, p->sample, p->field, p->frame, buf, cap, ret, reterr);
    case PROBE_FRAMES:
        return pen_pack_read_frames(pack, p->sample, p->field, &range, buf, cap, ret, reterr);
    default:
        return pen_pack_read(pack, p->sample, p->field, buf, cap, ret, reterr);
    }
}

int probe_ask(PenPack *pack, const Probe *p, Answer *out, PenError *reterr)
{
    uint64_t sample = 0;
    uint32_t n = 0;
    size_t bytes = 0;
    int r;
    fit(out, 0);
    if (p->kind == PROBE_IMAGE)
        return ask_image(pack, p, out, reterr);
    if (p->kind == PROBE_SLICE)
        return ask_slice(pack, p, out, reterr);
    if (p->kind == PROBE_EXTRACT)
        return ask_extract(pack, p, out, reterr);
    if (p->kind == PROBE_FIND) {
        r = pen_pack_find(pack, p->key->data, p->key->bytes, &sample, reterr);
        return r < 0 ? r : give(out, &sample, sizeof sample);
    }
    if (p->kind == PROBE_COUNT) {
        r = pen_pack_frame_count(pack, p->sample, p->field, &n, reterr);
        return r < 0 ? r : give(out, &n, sizeof n);
    }
    r = ask_bytes(pack, p, NULL, 0, &bytes, reterr);
    if (r < 0)
        return r;
    fit(out, bytes);
    return ask_bytes(pack, p, out->data, bytes, &out->bytes, reterr);
}

int probe_check(PenPack *pack, const Probe *p, Answer *buf, bool *ret_right, PenError *reterr)
{
    int r = probe_ask(pack, p, buf, reterr);
    if (r == PEN_OK)
        *ret_right = buf->bytes == p->bytes && memcmp(buf->data, p->data, p->bytes) == 0;
    return r;
}

/* ---- making the list ------------------------------------------------------------------------- */

static void add(ProbeList *list, PenPack *pack, Probe p)
{
    Answer out = {0};
    PenError e = {0};
    if (probe_ask(pack, &p, &out, &e) < 0)
        must_failed(probe_name(p.kind), (int)p.sample, e.message);
    p.data = malloc(out.bytes + 1);
    MUST(p.data);
    memcpy(p.data, out.data, out.bytes);
    p.bytes = out.bytes;
    answer_free(&out);
    MUST(list->n < list->cap);
    list->probes[list->n++] = p;
}

static void add_slices(ProbeList *list, PenPack *pack, Probe p)
{
    PenBlock *b = NULL;
    uint32_t sample;
    MUST(pen__pack_locate(pack, p.sample, &b, &sample, NULL) == PEN_OK);
    PenImageEntry e = pen__block_image(&b->view, sample, p.field, p.frame);
    uint32_t n = 0;
    if (pen__block_is_indexed(&b->view, &e))
        n = pen__block_entries(&b->view, &e).n_parts - PEN_FILE_RUNS - 1;
    else if (e.table_bytes)
        n = pen__block_segments(&b->view, &e).n_segments;
    pen__pack_block_put(pack, b);
    p.kind = PROBE_SLICE;
    for (uint32_t i = 0; i < n; i += n / 3 + 1) {
        p.first = i;
        p.n = i + 1 < n ? i + 1 : i;
        add(list, pack, p);
    }
}

static void add_images(ProbeList *list, PenPack *pack, uint64_t sample, uint32_t field)
{
    uint32_t n = 0;
    Probe p = {.sample = sample, .field = field, .step = 1};
    int clip = pen_pack_info(pack)->fields[field].type == PEN_TYPE_CLIP;
    MUST(pen_pack_frame_count(pack, sample, field, &n, NULL) == PEN_OK);
    p.kind = PROBE_COUNT;
    add(list, pack, p);
    for (p.frame = 0; p.frame < n; p.frame++) {
        PenImage image;
        p.kind = PROBE_IMAGE;
        add(list, pack, p);
        p.kind = PROBE_META;
        add(list, pack, p);
        add_slices(list, pack, p);
        MUST(pen_pack_image(pack, sample, field, p.frame, &image, NULL) == PEN_OK);
        p.kind = PROBE_EXTRACT;
        if (image.codec != PEN_STORED_RAW) /* a raw one would cost a PNG encoder each time */
            add(list, pack, p);
    }
    p.kind = PROBE_FRAMES;
    p.frame = 0;
    for (p.first = 0; clip && p.first < n; p.first++)
        for (p.step = 1; p.step < 3; p.step++) {
            p.n = (n - p.first - 1) / p.step + 1;
            add(list, pack, p);
        }
}

void probes_make(PenPack *pack, ProbeList *ret)
{
    const PenPackInfo *info = pen_pack_info(pack);
    *ret = (ProbeList){.cap = (size_t)info->n_samples * info->n_fields * 40 + 16};
    ret->probes = calloc(ret->cap, sizeof *ret->probes); /* never moves: finds point to keys */
    MUST(ret->probes);
    for (uint64_t s = 0; s < info->n_samples; s++) {
        Probe p = {.kind = PROBE_KEY, .sample = s};
        add(ret, pack, p);
        p.key = &ret->probes[ret->n - 1];
        p.kind = PROBE_FIND;
        add(ret, pack, p);
        p.kind = PROBE_VALUE;
        for (p.field = 0; p.field < info->n_fields; p.field++) {
            int type = info->fields[p.field].type;
            add(ret, pack, p);
            if (type == PEN_TYPE_IMAGE || type == PEN_TYPE_CLIP)
                add_images(ret, pack, s, p.field);
        }
    }
}

void probes_free(ProbeList *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->probes[i].data);
    free(list->probes);
    *list = (ProbeList){0};
}

/* ---- packs in memory ------------------------------------------------------------------------- */

static int open_item(void *ctx, const char *name, PenSource **ret, PenError *reterr)
{
    const TreeItem *item = tree_find(ctx, name);
    if (!item)
        return pen__fail(reterr, PEN_E_NOT_FOUND, "probe", "%s: no such file", name);
    return pen__source_open_memory(name, item->data, item->bytes, ret, reterr);
}

int tree_open_pack(const Tree *tree, PenPack **ret, PenError *reterr)
{
    return pen__pack_open_with("memory", open_item, (void *)tree, ret, reterr);
}
