/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/spill/sorter.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/mem.h"

#define WHERE "ingest/sort"

/* An item: key_bytes u32, data_bytes u32, the key, the data. */
enum { ITEM_HEAD = 8, WRITE_BYTES = 1 << 20, LEAST_READ = 16 << 10, MOST_READ = 1 << 20 };

typedef struct Entry {
    uint64_t prefix; /* the first bytes of the key, as a number: decides most comparisons */
    size_t at;
} Entry;

/* A run in the file, and how far it is read. */
typedef struct Run {
    uint64_t begin, end; /* in the file */
    uint64_t next;       /* what is not in `buf` yet begins here */
    PenBuf buf;
    size_t at;
    PenSorted item;
    uint64_t prefix;
} Run;

struct PenSorter {
    PenSpace space;
    PenSpill file;
    PenBuf items; /* not in the file */
    PenBuf index; /* an Entry for each of them */
    Run *runs;
    uint32_t n_runs, cap_runs;
    uint32_t *heap; /* numbers of runs that are not at their end, the lowest item first */
    uint32_t n_heap;
    size_t next; /* of the index, when nothing is in the file */
    bool is_first;
};

static uint64_t prefix_of(const uint8_t *key, uint32_t bytes)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < 8; i++)
        v = v << 8 | (i < bytes ? key[i] : 0);
    return v;
}

static PenSorted item_at(const uint8_t *p)
{
    uint32_t key_bytes = pen__load32(p);
    return (PenSorted){p + ITEM_HEAD, p + ITEM_HEAD + key_bytes, key_bytes, pen__load32(p + 4)};
}

static int compare_keys(const PenSorted *a, const PenSorted *b)
{
    int order = memcmp(a->key, b->key, PEN_MIN(a->key_bytes, b->key_bytes));
    return order ? order : (a->key_bytes > b->key_bytes) - (a->key_bytes < b->key_bytes);
}

/* ---- adding ---------------------------------------------------------------------------------- */

int pen__sorter_open(const PenSpace *space, PenSorter **ret, PenError *reterr)
{
    PenSorter *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, WHERE, "temporary file");
    s->space = *space;
    s->file.path = space->path;
    *ret = s;
    return PEN_OK;
}

static int by_key(const void *a, const void *b, void *ctx)
{
    const Entry *p = a, *q = b;
    const uint8_t *items = ctx;
    if (p->prefix != q->prefix)
        return p->prefix < q->prefix ? -1 : 1;
    PenSorted x = item_at(items + p->at), y = item_at(items + q->at);
    int order = compare_keys(&x, &y);
    return order ? order : (p->at > q->at) - (p->at < q->at);
}

static void sort_items(PenSorter *s)
{
    Entry *e = (Entry *)(void *)s->index.data;
    size_t n = s->index.bytes / sizeof *e, i = 1;
    for (size_t k = 0; k < n; k++) { /* keys are written after they are added */
        PenSorted item = item_at(s->items.data + e[k].at);
        e[k].prefix = prefix_of(item.key, item.key_bytes);
    }
    while (i < n && by_key(&e[i - 1], &e[i], s->items.data) < 0)
        i++;
    if (i < n) /* listings mostly are in order */
        qsort_r(e, n, sizeof *e, by_key, s->items.data);
}

static int add_run(PenSorter *s)
{
    if (s->n_runs == s->cap_runs) {
        uint32_t cap = s->cap_runs ? s->cap_runs * 2 : 16;
        Run *grown = pen__resize(s->runs, cap * sizeof *grown);
        if (!grown)
            return PEN_E_NO_MEMORY;
        s->runs = grown;
        s->cap_runs = cap;
    }
    s->runs[s->n_runs++] = (Run){.begin = s->file.bytes, .end = s->file.bytes};
    return PEN_OK;
}

/* Writes what is in memory to the file, as one run. */
static int spill(PenSorter *s, PenError *reterr)
{
    PenBuf out = {0};
    const Entry *e = (const Entry *)(const void *)s->index.data;
    size_t n = s->index.bytes / sizeof *e;
    sort_items(s);
    int r = add_run(s) < 0 ? pen__fail_memory(reterr, WHERE, s->space.path) : PEN_OK;
    for (size_t i = 0; r == PEN_OK && i < n; i++) {
        const uint8_t *p = s->items.data + e[i].at;
        size_t bytes = ITEM_HEAD + (size_t)pen__load32(p) + pen__load32(p + 4);
        if (pen__buf_add(&out, p, bytes) < 0)
            r = pen__fail_memory(reterr, WHERE, s->space.path);
        if (r == PEN_OK && (out.bytes >= WRITE_BYTES || i + 1 == n)) {
            r = pen__spill_write(&s->file, out.data, out.bytes, reterr);
            out.bytes = 0;
        }
    }
    pen__buf_free(&out);
    if (r == PEN_OK) {
        s->runs[s->n_runs - 1].end = s->file.bytes;
        s->items.bytes = s->index.bytes = 0;
    }
    return r;
}

int pen__sorter_add(PenSorter *s, uint32_t key_bytes, uint32_t data_bytes, uint8_t **ret,
                    PenError *reterr)
{
    size_t bytes = ITEM_HEAD + (size_t)key_bytes + data_bytes;
    Entry entry = {0};
    bool is_full =
        s->index.bytes && s->items.bytes + s->index.bytes + bytes + sizeof entry > s->space.memory;
    if (s->space.path && is_full) {
        int r = spill(s, reterr);
        if (r < 0)
            return r;
    }
    entry.at = s->items.bytes;
    if (pen__buf_reserve(&s->items, bytes) < 0 || pen__buf_add(&s->index, &entry, sizeof entry) < 0)
        return pen__fail_memory(reterr, WHERE, "items to be sorted");
    uint8_t *p = s->items.data + s->items.bytes;
    pen__store32(p, key_bytes);
    pen__store32(p + 4, data_bytes);
    s->items.bytes += bytes;
    *ret = p + ITEM_HEAD;
    return PEN_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Moves what is left to the front and reads on. */
static int refill(const PenSorter *s, Run *run, size_t want, PenError *reterr)
{
    size_t each =
        PEN_MAX(PEN_MIN(s->space.memory / s->n_runs, (size_t)MOST_READ), (size_t)LEAST_READ);
    size_t left = run->buf.bytes - run->at;
    size_t more = (size_t)PEN_MIN(run->end - run->next, (uint64_t)PEN_MAX(want - left, each));
    if (left && run->at)
        memmove(run->buf.data, run->buf.data + run->at, left);
    run->buf.bytes = left;
    run->at = 0;
    if (left + more < want)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: expected an item in a temporary file, found its end", s->space.path);
    if (pen__buf_reserve(&run->buf, more) < 0)
        return pen__fail_memory(reterr, WHERE, s->space.path);
    int r = pen__spill_read(&s->file, run->buf.data + left, more, run->next, reterr);
    run->next += more;
    run->buf.bytes += more;
    return r;
}

static int ensure(const PenSorter *s, Run *run, size_t bytes, PenError *reterr)
{
    return run->buf.bytes - run->at >= bytes ? PEN_OK : refill(s, run, bytes, reterr);
}

/* Takes the next item of a run; PEN_END when there is none. */
static int advance(const PenSorter *s, Run *run, PenError *reterr)
{
    if (run->next == run->end && run->at == run->buf.bytes)
        return PEN_END;
    int r = ensure(s, run, ITEM_HEAD, reterr);
    if (r < 0)
        return r;
    const uint8_t *p = run->buf.data + run->at;
    size_t bytes = ITEM_HEAD + (size_t)pen__load32(p) + pen__load32(p + 4);
    r = ensure(s, run, bytes, reterr);
    if (r < 0)
        return r;
    run->item = item_at(run->buf.data + run->at);
    run->prefix = prefix_of(run->item.key, run->item.key_bytes);
    run->at += bytes;
    return PEN_OK;
}

static bool is_before(const PenSorter *s, uint32_t a, uint32_t b)
{
    const Run *p = &s->runs[a], *q = &s->runs[b];
    if (p->prefix != q->prefix)
        return p->prefix < q->prefix;
    int order = compare_keys(&p->item, &q->item);
    return order ? order < 0 : a < b;
}

static void sift_down(PenSorter *s, uint32_t at)
{
    uint32_t *h = s->heap;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= s->n_heap)
            return;
        child += child + 1 < s->n_heap && is_before(s, h[child + 1], h[child]);
        if (is_before(s, h[at], h[child]))
            return;
        uint32_t swap = h[at];
        h[at] = h[child];
        h[child] = swap;
        at = child;
    }
}

static int start_runs(PenSorter *s, PenError *reterr)
{
    s->n_heap = 0;
    for (uint32_t i = 0; i < s->n_runs; i++) {
        Run *run = &s->runs[i];
        run->next = run->begin;
        run->at = run->buf.bytes = 0;
        int r = advance(s, run, reterr);
        if (r < 0)
            return r;
        s->heap[s->n_heap++] = i;
    }
    for (uint32_t i = s->n_heap; i-- > 0;)
        sift_down(s, i);
    return PEN_OK;
}

int pen__sorter_start(PenSorter *s, PenError *reterr)
{
    s->is_first = true;
    s->next = 0;
    if (!s->n_runs) {
        sort_items(s);
        return PEN_OK;
    }
    if (s->index.bytes) {
        int r = spill(s, reterr);
        if (r < 0)
            return r;
        pen__buf_free(&s->items);
        pen__buf_free(&s->index);
    }
    if (!s->heap)
        s->heap = pen__alloc_array(s->n_runs, sizeof *s->heap);
    return s->heap ? start_runs(s, reterr) : pen__fail_memory(reterr, WHERE, s->space.path);
}

/* The item that was returned last is passed over only now: it lies in the buffer of its run. */
static int next_of_runs(PenSorter *s, PenSorted *ret, PenError *reterr)
{
    if (!s->is_first && s->n_heap) {
        int r = advance(s, &s->runs[s->heap[0]], reterr);
        if (r < 0)
            return r;
        if (r == PEN_END)
            s->heap[0] = s->heap[--s->n_heap];
        sift_down(s, 0);
    }
    s->is_first = false;
    if (!s->n_heap)
        return PEN_END;
    *ret = s->runs[s->heap[0]].item;
    return PEN_OK;
}

int pen__sorter_next(PenSorter *s, PenSorted *ret, PenError *reterr)
{
    if (s->n_runs)
        return next_of_runs(s, ret, reterr);
    const Entry *e = (const Entry *)(const void *)s->index.data;
    if (s->next == s->index.bytes / sizeof *e)
        return PEN_END;
    *ret = item_at(s->items.data + e[s->next++].at);
    return PEN_OK;
}

void pen__sorter_close(PenSorter **sorter)
{
    PenSorter *s = *sorter;
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n_runs; i++)
        pen__buf_free(&s->runs[i].buf);
    pen__free(s->runs);
    pen__free(s->heap);
    pen__buf_free(&s->items);
    pen__buf_free(&s->index);
    pen__spill_close(&s->file);
    pen__free(s);
    *sorter = NULL;
}
