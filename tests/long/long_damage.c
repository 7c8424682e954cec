/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged packs: every single bit flipped, every file cut at every length, and heaps of compound
 * damage. What is given out is right or refused, what is refused names its place, what is not hit
 * stays readable, and verify notices everything. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "lib/make_pack.h"
#include "lib/regions.h"
#include "lib/sweep.h"
#include "unit/test.h"

/* A pack that is known: its files and the right answers. */
typedef struct Known {
    Tree tree;
    uint8_t id[16];
    ProbeList probes;
    /* Of each file, what no sample of the pack needs: blocks left behind by appending. */
    struct Unused {
        uint64_t begin, end;
    } * unused;
} Known;

enum { MIXED, OTHER_PIXELS, OTHER_META, OLD, APPENDED, INDEXED, N_KNOWN };
static Known known[N_KNOWN];

static const MixSpec mixed_spec = {
    .n_samples = 10, .pixels = 1, .meta = 1, .block_samples = 2, .shard_bytes = 21000};

static void find_unused(Known *k, PenPack *pack)
{
    k->unused = calloc(k->tree.n, sizeof *k->unused);
    MUST(k->unused);
    for (size_t i = 0; i < k->tree.n; i++)
        k->unused[i].end = strcmp(k->tree.items[i].path, "manifest") ? k->tree.items[i].bytes : 0;
    for (uint64_t s = 0; s < pen_pack_info(pack)->n_shards; s++) {
        const PenShardEntry *e = &pen__pack_manifest(pack)->shards[s];
        char name[PEN_SHARD_NAME_BYTES];
        PenShardRef *ref = NULL;
        pen__shard_name(e->id, name);
        MUST(pen__pack_shard(pack, s, &ref, NULL) == PEN_OK);
        PenBlockEntry last = pen__shard_block(&ref->shard, e->blocks_used - 1);
        k->unused[tree_find(&k->tree, name) - k->tree.items] =
            (struct Unused){last.offset + last.bytes, ref->shard.keys_offset};
        pen__pack_shard_put(pack, ref);
    }
}

static void know(Known *k, const char *dir)
{
    PenPack *pack = NULL;
    tree_load(dir, &k->tree);
    MUST(tree_open_pack(&k->tree, &pack, NULL) == PEN_OK);
    memcpy(k->id, pen_pack_info(pack)->id, sizeof k->id);
    probes_make(pack, &k->probes);
    find_unused(k, pack);
    pen_pack_close(&pack);
}

static void know_mixed(Known *k, uint32_t pixels, uint32_t meta)
{
    MixSpec spec = mixed_spec;
    spec.pixels = pixels;
    spec.meta = meta;
    make_mixed(scratch("mixed-%u-%u.pen", pixels, meta), &spec);
    know(k, scratch("mixed-%u-%u.pen", pixels, meta));
}

/* Files as they are, with entry indexes. */
static void know_indexed(Known *k)
{
    static const MixSpec spec = {3, 3, 3, 2, 21000, 1};
    PenPackStats stats;
    make_mixed(scratch("indexed.pen"), &spec);
    know(k, scratch("indexed.pen"));
    PenPack *pack = NULL;
    MUST(tree_open_pack(&k->tree, &pack, NULL) == PEN_OK);
    stats = pen_pack_info(pack)->stats;
    pen_pack_close(&pack);
    MUST(stats.images[PEN_STORED_JPEG][PEN_HOW_INDEXED] == spec.n_samples);
}

static void know_all(void)
{
    const char *source = scratch("photos");
    char *out = strdup(scratch("photos.pen"));
    PenIngestResult result;
    know_mixed(&known[MIXED], 1, 1);
    know_mixed(&known[OTHER_PIXELS], 2, 1);
    know_mixed(&known[OTHER_META], 1, 2);
    know_indexed(&known[INDEXED]);
    PenIngestSettings s = small_settings(&source, out);
    make_folder(source, 0, 8);
    MUST(pen_ingest_run(&s, &result, NULL) == PEN_OK);
    know(&known[OLD], out);
    make_folder(source, 8, 6);
    s.append = 1;
    MUST(pen_ingest_run(&s, &result, NULL) == PEN_OK);
    know(&known[APPENDED], out);
    free(out);
}

static uint64_t total_bytes(const Tree *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->items[i].bytes;
    return n;
}

static int verify(PenPack *pack, PenError *e)
{
    PenVerifySettings s;
    PenVerifyResult result;
    pen_verify_settings_init(&s);
    s.threads = 1;
    int r = pen_pack_verify(pack, &s, &result, e);
    if ((r == PEN_OK) != (result.problems == 0))
        r = PEN_E_INVALID;
    return r;
}

static bool is_damage(int r)
{
    return r == PEN_E_CORRUPT || r == PEN_E_FORMAT;
}

/* ---- flips ----------------------------------------------------------------------------------- */

static void ask_flipped(Sweep *s, const RegionMap *map, const Region *region, PenPack *pack,
                        const ProbeList *list, Answer *buf)
{
    for (size_t i = 0; i < list->n; i++) {
        const Probe *p = &list->probes[i];
        PenError e = {0};
        bool right = false;
        int r = probe_check(pack, p, buf, &right, &e);
        Fate fate = region_fate(map, region, p);
        if (r == PEN_OK && !right)
            sweep_bad(s, "%s of sample %" PRIu64 ": wrong bytes", probe_name(p->kind), p->sample);
        else if (r == PEN_OK && fate == FATE_REFUSED)
            sweep_bad(s, "%s of sample %" PRIu64 ": damage not noticed", probe_name(p->kind),
                      p->sample);
        else if (r < 0 && fate == FATE_ANSWERED)
            sweep_bad(s, "%s of sample %" PRIu64 ": is not hit, yet: %s", probe_name(p->kind),
                      p->sample, e.message);
        else if (r < 0 && (!is_damage(r) || e.status != r || !region_named(map, region, &e)))
            sweep_bad(s, "%s of sample %" PRIu64 ": status %d, message %s", probe_name(p->kind),
                      p->sample, r, e.message);
        else if (r < 0 && p->kind != PROBE_FIND && e.sample != (int64_t)p->sample)
            sweep_bad(s, "%s of sample %" PRIu64 ": error is of sample %" PRId64,
                      probe_name(p->kind), p->sample, e.sample);
    }
}

static void try_flip(Sweep *s, const RegionMap *map, const Region *region, const Known *k,
                     Answer *buf)
{
    PenPack *pack = NULL;
    PenError e = {0};
    int r = tree_open_pack(&k->tree, &pack, &e);
    if (r < 0) {
        if (region->kind != REGION_MANIFEST || !is_damage(r) || !region_named(map, region, &e))
            sweep_bad(s, "open: %s", e.message);
        return;
    }
    if (region->kind == REGION_MANIFEST)
        sweep_bad(s, "a flip in the manifest is not noticed");
    ask_flipped(s, map, region, pack, &k->probes, buf);
    r = verify(pack, &e);
    if (r != PEN_E_CORRUPT || !region_named(map, region, &e))
        sweep_bad(s, "%s: verify returned %d, %s", region_name(region->kind), r, e.message);
    pen_pack_close(&pack);
}

/* Every flip in full; else one in `stride`, at a random place within it. */
static void sweep_flips(const char *name, Known *k, uint64_t stride)
{
    PenPack *whole = NULL;
    RegionMap map;
    Answer buf = {0};
    PenRng rng = pen__rng_init(1, 0);
    uint64_t bits = 0;
    uint64_t next = pen__rng_below(&rng, stride);
    Tree tree = k->tree;
    Sweep s = sweep_begin(name);
    MUST(tree_open_pack(&k->tree, &whole, NULL) == PEN_OK);
    regions_make(whole, &k->tree, &map);
    for (size_t i = 0; i < tree.n; i++) {
        TreeItem *item = &tree.items[i];
        for (uint64_t bit = 0; bit < item->bytes * 8; bit++, bits++) {
            if (bits != next)
                continue;
            next = (bits / stride + 1) * stride + pen__rng_below(&rng, stride);
            item->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            uint64_t bad = s.bad;
            try_flip(&s, &map, regions_at(&map, i, bit / 8), k, &buf);
            if (s.bad != bad && bad < 8)
                printf("  that was %s, bit %" PRIu64 " of byte %" PRIu64 "\n", item->path, bit % 8,
                       bit / 8);
            item->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            s.n++;
        }
    }
    sweep_end(&s,
              "%" PRIu64 " of the %" PRIu64 " bits of a pack of %" PRIu64
              " bytes, %zu questions and verify each",
              s.n, bits, bits / 8, k->probes.n);
    answer_free(&buf);
    regions_free(&map);
    pen_pack_close(&whole);
    CHECK_INT(s.bad, 0);
}

TEST(flips)
{
    sweep_flips("flips", &known[MIXED], scaled_to_few(1, 41, 163));
}

TEST(flips_of_indexed_files)
{
    sweep_flips("flips of indexed files", &known[INDEXED], scaled_to_few(1, 97, 193));
}

/* ---- files below an in-place pack ------------------------------------------------------------ */

/* A folder of small files, an in-place pack of it, and the right answers. */
typedef struct InPlace {
    char *pack;
    char *files[4];
    uint64_t samples[4]; /* of the files */
    TreeItem items[4];
    uint32_t field; /* of the images */
    ProbeList probes;
} InPlace;

static void find_file(InPlace *p, PenPack *pack, const Tree *tree, size_t i)
{
    const TreeItem *item = &tree->items[i];
    PenError e = {0};
    size_t n = 0;
    while (p->files[n])
        n++;
    MUST(n < PEN_LEN(p->files));
    MUST(pen_pack_find(pack, item->path, strlen(item->path), &p->samples[n], &e) == PEN_OK);
    p->files[n] = strdup(scratch("in-place/photos/%s", item->path));
    p->items[n] = *item;
}

static void make_in_place(InPlace *p, Tree *tree)
{
    PenIngestResult result;
    PenPack *pack = NULL;
    char *source = strdup(scratch("in-place/photos"));
    const char *const sources[] = {source};
    *p = (InPlace){.pack = strdup(scratch("in-place/p.pen"))};
    MUST(mkdir(scratch("in-place"), 0777) == 0 || errno == EEXIST);
    dir_remove(p->pack);
    make_folder(source, 0, PEN_LEN(p->files));
    PenIngestSettings s = small_settings(sources, p->pack);
    s.in_place = 1;
    s.mode = PEN_MODE_KEEP;
    MUST(pen_ingest_run(&s, &result, NULL) == PEN_OK);
    MUST(pen_pack_open(p->pack, NULL, &pack, NULL) == PEN_OK);
    MUST(pen_pack_info(pack)->stored_bytes < pen_pack_info(pack)->total_bytes);
    while (pen_pack_info(pack)->fields[p->field].type != PEN_TYPE_IMAGE)
        p->field++;
    probes_make(pack, &p->probes);
    tree_load(source, tree);
    for (size_t i = 0; i < tree->n; i++)
        if (tree->items[i].data)
            find_file(p, pack, tree, i);
    pen_pack_close(&pack);
    free(source);
}

static void free_in_place(InPlace *p, Tree *tree)
{
    for (size_t i = 0; i < PEN_LEN(p->files); i++)
        free(p->files[i]);
    free(p->pack);
    probes_free(&p->probes);
    tree_free(tree);
}

/* Does the question need all of the file of its sample? */
static bool needs_file(const InPlace *k, const Probe *p)
{
    return p->field == k->field && (p->kind == PROBE_VALUE || p->kind == PROBE_EXTRACT);
}

/* File `i` has changed. Whatever needs all of it is refused, and names it; what needs a part of it
 * is right or refused; all else is right. */
static void ask_changed(Sweep *s, const InPlace *k, size_t i, PenPack *pack, Answer *buf)
{
    const char *name = strrchr(k->files[i], '/');
    for (size_t n = 0; n < k->probes.n; n++) {
        const Probe *p = &k->probes.probes[n];
        PenError e = {0};
        bool right = false, hit = p->sample == k->samples[i];
        int r = probe_check(pack, p, buf, &right, &e);
        if (r == PEN_OK && !right)
            sweep_bad(s, "%s of sample %" PRIu64 ": wrong bytes", probe_name(p->kind), p->sample);
        else if (r == PEN_OK && hit && needs_file(k, p))
            sweep_bad(s, "%s of sample %" PRIu64 ": damage not noticed", probe_name(p->kind),
                      p->sample);
        else if (r < 0 && (!hit || r != PEN_E_CORRUPT || !strstr(e.message, name)))
            sweep_bad(s, "%s of sample %" PRIu64 ": %s", probe_name(p->kind), p->sample, e.message);
    }
    PenError e = {0};
    if (verify(pack, &e) != PEN_E_CORRUPT || !strstr(e.message, name))
        sweep_bad(s, "verify: %s", e.message);
}

/* With a pack that is opened now, and with one that had the file open before it changed. */
static void try_changed(Sweep *s, const InPlace *k, size_t i, PenPack *before, Answer *buf)
{
    PenPack *pack = NULL;
    MUST(pen_pack_open(k->pack, NULL, &pack, NULL) == PEN_OK);
    ask_changed(s, k, i, pack, buf);
    pen_pack_close(&pack);
    if (before)
        ask_changed(s, k, i, before, buf);
    s->n++;
}

static PenPack *open_used(const InPlace *k, Answer *buf)
{
    PenPack *pack = NULL;
    MUST(pen_pack_open(k->pack, NULL, &pack, NULL) == PEN_OK);
    for (size_t n = 0; n < k->probes.n; n++) {
        bool right = false;
        MUST(probe_check(pack, &k->probes.probes[n], buf, &right, NULL) == PEN_OK && right);
    }
    return pack;
}

TEST(flips_of_files_in_place)
{
    InPlace k;
    Tree tree = {0};
    Answer buf = {0};
    uint64_t stride = scaled(1, 997), bits = 0;
    make_in_place(&k, &tree);
    PenPack *before = open_used(&k, &buf);
    Sweep s = sweep_begin("flips of files in place");
    for (size_t i = 0; i < PEN_LEN(k.files); i++) {
        uint8_t *data = k.items[i].data;
        for (uint64_t bit = 0; bit < k.items[i].bytes * 8; bit++, bits++) {
            if (bits % stride)
                continue;
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            file_store(k.files[i], data, k.items[i].bytes);
            try_changed(&s, &k, i, before, &buf);
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        file_store(k.files[i], data, k.items[i].bytes);
    }
    sweep_end(
        &s, "%" PRIu64 " of the %" PRIu64 " bits of %zu files, %zu questions and verify twice each",
        s.n, bits, PEN_LEN(k.files), k.probes.n);
    pen_pack_close(&before);
    answer_free(&buf);
    free_in_place(&k, &tree);
    CHECK_INT(s.bad, 0);
}

/* Truncated to each length, appended to, replaced by another file of the same size, removed. */
TEST(files_in_place_that_change)
{
    InPlace k;
    Tree tree = {0};
    Answer buf = {0};
    uint64_t stride = scaled(1, 499);
    make_in_place(&k, &tree);
    Sweep s = sweep_begin("files in place that change");
    const size_t bytes = k.items[0].bytes;
    uint8_t *data = calloc(1, bytes + 1);
    MUST(data);
    memcpy(data, k.items[0].data, bytes);
    PenPack *before = open_used(&k, &buf);
    for (size_t n = 0; n < bytes; n += stride) {
        file_store(k.files[0], data, n);
        try_changed(&s, &k, 0, NULL, &buf);
    }
    file_store(k.files[0], data, bytes / 2); /* also where it is open, what is gone is noticed */
    ask_changed(&s, &k, 0, before, &buf);
    pen_pack_close(&before);
    file_store(k.files[0], data, bytes + 1);
    try_changed(&s, &k, 0, NULL, &buf);
    memset(data, 0, bytes);
    MUST(unlink(k.files[0]) == 0);
    try_changed(&s, &k, 0, NULL, &buf);
    file_store(k.files[0], data, bytes);
    try_changed(&s, &k, 0, NULL, &buf);
    sweep_end(&s, "%" PRIu64 " changes", s.n);
    free(data);
    answer_free(&buf);
    free_in_place(&k, &tree);
    CHECK_INT(s.bad, 0);
}

/* ---- any other damage ------------------------------------------------------------------------ */

static const Known *by_id(const uint8_t id[16])
{
    for (int i = 0; i < N_KNOWN; i++)
        if (memcmp(known[i].id, id, 16) == 0)
            return &known[i];
    return NULL;
}

/* Is all that the known pack needs there, and whole? */
static bool is_whole(const Known *k, const Tree *t)
{
    for (size_t i = 0; i < k->tree.n; i++) {
        const TreeItem *a = &k->tree.items[i];
        const TreeItem *b = tree_find(t, a->path);
        struct Unused u = k->unused[i];
        if (u.end - u.begin == a->bytes)
            continue;
        if (!b || b->bytes != a->bytes || memcmp(a->data, b->data, u.begin) != 0 ||
            memcmp(a->data + u.end, b->data + u.end, a->bytes - u.end) != 0)
            return false;
    }
    return true;
}

/* Some file of the pack is named, and nothing is said that damage cannot be. */
static bool is_fair(int r, const PenError *e)
{
    bool named = strstr(e->message, "manifest") || strstr(e->message, ".shard");
    return (is_damage(r) || r == PEN_E_NOT_FOUND) && e->status == r && named;
}

static void try_damaged(Sweep *s, const Tree *t, Answer *buf, uint64_t *refused)
{
    PenPack *pack = NULL;
    PenError e = {0};
    int r = tree_open_pack(t, &pack, &e);
    if (r < 0) {
        ++*refused;
        if (!is_fair(r, &e))
            sweep_bad(s, "open: status %d, %s", r, e.message);
        return;
    }
    const Known *k = by_id(pen_pack_info(pack)->id);
    if (!k)
        sweep_bad(s, "opened as a pack that was never made");
    for (size_t i = 0; k && i < k->probes.n; i++) {
        const Probe *p = &k->probes.probes[i];
        bool right = false;
        r = probe_check(pack, p, buf, &right, &e);
        if (r == PEN_OK ? !right : !is_fair(r, &e))
            sweep_bad(s, "%s of sample %" PRIu64 ": %s", probe_name(p->kind), p->sample,
                      r == PEN_OK ? "wrong bytes" : e.message);
        *refused += r < 0;
    }
    r = verify(pack, &e);
    if (k && is_whole(k, t) ? r != PEN_OK : r == PEN_OK)
        sweep_bad(s, "verify returned %d, %s", r, e.message);
    pen_pack_close(&pack);
}

TEST(truncations)
{
    uint64_t stride = scaled_to_few(1, 37, 109);
    uint64_t refused = 0;
    Answer buf = {0};
    Tree tree = {0};
    PenRng rng = pen__rng_init(2, 0);
    Sweep s = sweep_begin("truncations");
    tree_copy(&known[MIXED].tree, &tree);
    for (size_t i = 0; i < tree.n; i++) {
        TreeItem *item = &tree.items[i];
        size_t whole = item->bytes;
        /* A copy of just that size, so that a sanitizer sees a read behind its end. */
        uint8_t *data = item->data;
        for (uint64_t n = pen__rng_below(&rng, stride); n < whole; n += stride) {
            item->data = malloc(n ? n : 1);
            MUST(item->data);
            memcpy(item->data, data, n);
            item->bytes = n;
            try_damaged(&s, &tree, &buf, &refused);
            s.n++;
            free(item->data);
        }
        item->data = data;
        item->bytes = whole;
    }
    sweep_end(&s, "%" PRIu64 " of the %" PRIu64 " lengths, %" PRIu64 " refusals", s.n,
              total_bytes(&tree), refused);
    tree_free(&tree);
    answer_free(&buf);
    CHECK_INT(s.bad, 0);
    CHECK(refused >= s.n);
}

/* ---- compound damage ------------------------------------------------------------------------- */

typedef struct Bench { /* a copy that is damaged, and put right from the known pack */
    const Known *from;
    Tree tree;
    PenRng rng;
} Bench;

static uint64_t below(Bench *b, uint64_t n)
{
    return pen__rng_below(&b->rng, n);
}

static TreeItem *some_file(Bench *b)
{
    for (;;) {
        TreeItem *item = &b->tree.items[below(b, b->tree.n)];
        if (item->data && item->bytes)
            return item;
    }
}

/* A length as damage has it: a few bytes, a sector or two, a page. */
static uint64_t some_length(Bench *b, uint64_t most)
{
    static const uint64_t sizes[] = {1, 8, 64, 512, 1024, 4096};
    uint64_t n = sizes[below(b, PEN_LEN(sizes))];
    n = below(b, 3) ? n : 1 + below(b, n);
    return PEN_MIN(n, most);
}

static uint64_t some_offset(Bench *b, uint64_t bytes, uint64_t length)
{
    uint64_t at = below(b, bytes - length + 1);
    return below(b, 2) ? at : at / 512 * 512;
}

static void zero_range(Bench *b)
{
    TreeItem *item = some_file(b);
    uint64_t n = some_length(b, item->bytes);
    memset(item->data + some_offset(b, item->bytes, n), below(b, 4) ? 0 : 0xFF, n);
}

static void swap_ranges(Bench *b)
{
    TreeItem *x = some_file(b);
    TreeItem *y = some_file(b);
    uint64_t n = some_length(b, PEN_MIN(x->bytes, y->bytes));
    uint8_t *p = x->data + some_offset(b, x->bytes, n);
    uint8_t *q = y->data + some_offset(b, y->bytes, n);
    for (uint64_t i = 0; i < n; i++) {
        uint8_t t = p[i];
        p[i] = q[i];
        q[i] = t;
    }
}

static void double_range(Bench *b)
{
    TreeItem *x = some_file(b);
    TreeItem *y = some_file(b);
    uint64_t n = some_length(b, PEN_MIN(x->bytes, y->bytes));
    const uint8_t *from = x->data + some_offset(b, x->bytes, n);
    memmove(y->data + some_offset(b, y->bytes, n), from, n);
}

/* From another pack of the same settings: at the same place, as a stale sector would be, or not. */
static void take_range(Bench *b)
{
    const Tree *other = &known[below(b, N_KNOWN)].tree;
    TreeItem *item = some_file(b);
    const TreeItem *same = tree_find(other, item->path);
    const TreeItem *from = same && below(b, 4) ? same : &other->items[below(b, other->n)];
    if (!from->data || !from->bytes)
        return;
    uint64_t n = some_length(b, PEN_MIN(item->bytes, from->bytes));
    uint64_t at = some_offset(b, PEN_MIN(item->bytes, from->bytes), n);
    uint64_t to = from == same && below(b, 4) ? at : some_offset(b, item->bytes, n);
    memcpy(item->data + to, from->data + at, n);
}

static void replace(TreeItem *item, const uint8_t *data, uint64_t bytes)
{
    uint8_t *copy = malloc(bytes + 1);
    MUST(copy);
    memcpy(copy, data, bytes);
    free(item->data);
    item->data = copy;
    item->bytes = bytes;
}

/* A whole file of another pack, or of another name in this one. */
static void take_file(Bench *b)
{
    const Tree *other = below(b, 3) ? &known[below(b, N_KNOWN)].tree : &b->tree;
    TreeItem *item = some_file(b);
    const TreeItem *same = tree_find(other, item->path);
    const TreeItem *from = same && below(b, 2) ? same : &other->items[below(b, other->n)];
    if (from->data && from != item)
        replace(item, from->data, from->bytes);
}

static void take_manifest(Bench *b)
{
    const TreeItem *from = tree_find(&known[below(b, N_KNOWN)].tree, "manifest");
    TreeItem *to = (TreeItem *)tree_find(&b->tree, "manifest");
    if (to)
        replace(to, from->data, from->bytes);
}

/* Bytes lost or pushed in: all behind them moves. */
static void shift_rest(Bench *b)
{
    TreeItem *item = some_file(b);
    uint64_t n = some_length(b, item->bytes);
    uint64_t at = some_offset(b, item->bytes, n);
    uint8_t *grown = malloc(item->bytes + n + 1);
    MUST(grown);
    memcpy(grown, item->data, item->bytes);
    if (below(b, 2)) {
        memmove(grown + at, grown + at + n, item->bytes - at - n);
        replace(item, grown, item->bytes - n);
    } else {
        memmove(grown + at + n, grown + at, item->bytes - at);
        replace(item, grown, item->bytes + n);
    }
    free(grown);
}

static void scatter_bits(Bench *b)
{
    TreeItem *item = some_file(b);
    for (uint64_t n = 2 + below(b, 8); n; n--)
        item->data[below(b, item->bytes)] ^= (uint8_t)(1u << below(b, 8));
}

static void lose_file(Bench *b)
{
    TreeItem *item = some_file(b);
    item->path[0] = '~'; /* no file of a pack is called that */
    tree_sort(&b->tree);
}

static void bench_put_right(Bench *b, const Known *k)
{
    tree_free(&b->tree);
    tree_copy(&k->tree, &b->tree);
    b->from = k;
}

TEST(compound)
{
    static void (*const kinds[])(Bench *) = {zero_range,   swap_ranges, double_range, take_range,
                                             take_range,   take_range,  take_file,    shift_rest,
                                             scatter_bits, lose_file,   take_manifest};
    uint64_t wanted = scaled_to_few(100000, 4000, 1500);
    uint64_t refused = 0;
    uint64_t harmless = 0;
    Answer buf = {0};
    Bench b = {.rng = pen__rng_init(3, 0)};
    Sweep s = sweep_begin("compound damage");
    while (s.n < wanted) {
        static const int bases[] = {MIXED, MIXED, MIXED, OTHER_META, APPENDED};
        bench_put_right(&b, &known[bases[below(&b, PEN_LEN(bases))]]);
        for (uint64_t n = 1 + below(&b, 2) * below(&b, 3); n; n--)
            kinds[below(&b, PEN_LEN(kinds))](&b);
        if (is_whole(b.from, &b.tree)) {
            harmless++; /* zeros over zeros */
            continue;
        }
        try_damaged(&s, &b.tree, &buf, &refused);
        s.n++;
    }
    sweep_end(&s, "%" PRIu64 " cases (and %" PRIu64 " that changed nothing), %" PRIu64 " refusals",
              s.n, harmless, refused);
    tree_free(&b.tree);
    answer_free(&buf);
    CHECK_INT(s.bad, 0);
}

/* ---- damage stays local ---------------------------------------------------------------------- */

enum { MANY = 10000 };

static void make_many(Tree *ret)
{
    static const PenField field = {.name = "payload", .type = PEN_TYPE_BYTES};
    PenWriter *w = NULL;
    PenWriterSettings s;
    uint64_t n;
    const char *dir = scratch("many.pen");
    pen_writer_settings_init(&s);
    s.fields = &field;
    s.n_fields = 1;
    s.shard_bytes = 400000;
    MUST(pen_writer_open(dir, &s, &w, NULL) == PEN_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        char key[16], payload[96];
        snprintf(key, sizeof key, "%05u", i);
        size_t bytes = (size_t)snprintf(payload, sizeof payload, "payload of sample %u %*u", i,
                                        (int)(i % 60), i);
        PenValue v = {.data = payload, .bytes = bytes};
        MUST(pen_writer_add(w, key, 5, &v, 1, NULL) == PEN_OK);
    }
    MUST(pen_writer_finish(w, &n, NULL) == PEN_OK && n == MANY);
    pen_writer_close(&w);
    tree_load(dir, ret);
}

/* Which byte of which file holds the payload of this sample? */
static uint8_t *payload_of(Tree *t, PenPack *pack, uint64_t sample)
{
    PenBlock *b = NULL;
    uint32_t in_block;
    char name[PEN_SHARD_NAME_BYTES];
    MUST(pen__pack_locate(pack, sample, &b, &in_block, NULL) == PEN_OK);
    pen__shard_name(pen__pack_manifest(pack)->shards[b->shard->number].id, name);
    uint8_t *at =
        tree_find(t, name)->data + b->offset + pen__block_blob(&b->view, in_block, 0).offset;
    pen__pack_block_put(pack, b);
    return at;
}

static uint64_t count_readable(PenPack *pack, uint64_t damaged, bool *ret_right)
{
    uint64_t n = 0;
    *ret_right = true;
    for (uint64_t i = 0; i < MANY; i++) {
        char found[128], expected[96];
        size_t bytes = 0;
        PenError e = {0};
        int r = pen_pack_read(pack, i, 0, found, sizeof found, &bytes, &e);
        size_t n_expected = (size_t)snprintf(expected, sizeof expected, "payload of sample %u %*u",
                                             (unsigned)i, (int)(i % 60), (unsigned)i);
        n += r == PEN_OK;
        *ret_right &=
            r == PEN_OK ? i != damaged && bytes == n_expected && memcmp(found, expected, bytes) == 0
                        : i == damaged && e.sample == (int64_t)i;
    }
    return n;
}

TEST(one_of_many)
{
    Tree tree;
    PenPack *whole = NULL;
    PenRng rng = pen__rng_init(4, 0);
    Sweep s = sweep_begin("one payload of 10,000");
    make_many(&tree);
    MUST(tree_open_pack(&tree, &whole, NULL) == PEN_OK);
    for (uint64_t i = 0; i < scaled_to_few(400, 20, 8); i++) {
        uint64_t sample = i < 2 ? i * (MANY - 1) : pen__rng_below(&rng, MANY);
        uint8_t *at = payload_of(&tree, whole, sample);
        PenPack *pack = NULL;
        bool right;
        *at ^= 0x10;
        MUST(tree_open_pack(&tree, &pack, NULL) == PEN_OK);
        uint64_t n = count_readable(pack, sample, &right);
        if (n != MANY - 1 || !right)
            sweep_bad(&s, "sample %" PRIu64 " damaged: %" PRIu64 " readable", sample, n);
        pen_pack_close(&pack);
        *at ^= 0x10;
        s.n++;
    }
    sweep_end(&s, "%" PRIu64 " damages, 9,999 readable each", s.n);
    pen_pack_close(&whole);
    tree_free(&tree);
    CHECK_INT(s.bad, 0);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    know_all();
    RUN(flips);
    RUN(flips_of_indexed_files);
    RUN(flips_of_files_in_place);
    RUN(files_in_place_that_change);
    RUN(truncations);
    RUN(compound);
    RUN(one_of_many);
    for (int i = 0; i < N_KNOWN; i++) {
        tree_free(&known[i].tree);
        probes_free(&known[i].probes);
        free(known[i].unused);
    }
    return TEST_END();
}
