/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that are checked while they arrive: in any steps, from the beginning again, and wrong. */
#include "pack/reader/arriving.h"

#include "load_help.h"

#include "base/rng.h"

enum { N = 23, MOST = 1 << 16 };

static PenRng rng;

/* A block on its way: `right` is what a server has, `data` where it goes. */
typedef struct Way {
    PenPack *pack;
    PenShardRef *shard;
    uint64_t number, bytes, at;
    uint8_t right[MOST], data[MOST + PEN_SLACK];
    PenArriving a;
} Way;

static void begin(Way *w)
{
    for (uint64_t i = 0; i < w->bytes; i++)
        w->data[i] = (uint8_t)pen__rng_next(&rng);
    w->at = 0;
    pen__arriving_begin(&w->a, w->pack, w->number, w->shard, w->data);
}

static void arrive(Way *w, const uint8_t *from, uint64_t bytes, bool tell)
{
    memcpy(w->data + w->at, from + w->at, (size_t)bytes);
    w->at += bytes;
    if (tell)
        pen__arriving_more(&w->a, w->at);
}

/* All of it in random steps, of which every other one may go unreported. */
static void arrive_all(Way *w, const uint8_t *from, bool tell_all)
{
    while (w->at < w->bytes) {
        uint64_t most = PEN_MIN(w->bytes - w->at, 1 + pen__rng_below(&rng, 3000));
        arrive(w, from, 1 + pen__rng_below(&rng, most), tell_all || pen__rng_below(&rng, 2));
    }
}

static void each_block(int mode, void (*test)(Way *w))
{
    static Way w;
    static unsigned n_packs;
    char name[32];
    snprintf(name, sizeof name, "%u.pen", n_packs++);
    PenPack *p = help_load_pack(name, N, -1, mode);
    CHECK(p);
    w.pack = p;
    for (w.number = 0; w.number < pen_pack_info(p)->n_blocks; w.number++) {
        uint64_t shard = pen__pack_shard_of(p, w.number);
        CHECK_INT(pen__pack_shard(p, shard, &w.shard, NULL), PEN_OK);
        w.bytes = pen__shard_block(&w.shard->shard, w.number - p->first_blocks[shard]).bytes;
        CHECK(w.bytes <= MOST);
        CHECK_INT(pen__block_fetch(p, w.number, w.shard, w.right, NULL), PEN_OK);
        test(&w);
        pen__pack_shard_put(p, w.shard);
    }
    pen_pack_close(&p);
}

static void steps(Way *w)
{
    for (int i = 0; i < 20; i++) {
        begin(w);
        arrive_all(w, w->right, i % 2);
        uint32_t before = w->a.n_checked;
        CHECK(i % 2 == 0 || before == w->a.block.view.n_samples);
        CHECK_INT(pen__arriving_end(&w->a), PEN_OK);
        CHECK(w->a.is_checked && w->a.block.data == w->data);
        CHECK_INT(w->a.n_checked, w->a.block.view.n_samples);
    }
}

/* What is wrong is found wherever it is, and whether or not its arrival was reported. */
static void wrong_bytes(Way *w)
{
    static uint8_t wrong[MOST];
    for (int i = 0; i < 60; i++) {
        uint64_t at = i ? pen__rng_below(&rng, w->bytes) : w->bytes - 1;
        memcpy(wrong, w->right, (size_t)w->bytes);
        wrong[at] ^= (uint8_t)(1u << pen__rng_below(&rng, 8));
        begin(w);
        arrive_all(w, wrong, i % 2);
        CHECK_INT(pen__arriving_end(&w->a), PEN_E_CORRUPT);
        CHECK(!w->a.is_checked);
        pen__arriving_more(&w->a, 0); /* another attempt, with the right bytes */
        w->at = 0;
        arrive_all(w, w->right, i % 2);
        CHECK_INT(pen__arriving_end(&w->a), PEN_OK);
    }
}

/* The bytes of the attempt that lost were right and checked. Those that replace them are not, and
 * nothing of the first check counts for them. */
static void another_attempt(Way *w)
{
    for (int i = 0; i < 30; i++) {
        uint64_t at = pen__rng_below(&rng, w->bytes), upto = 1 + pen__rng_below(&rng, w->bytes);
        begin(w);
        arrive(w, w->right, i % 2 ? w->bytes : upto, true);
        pen__arriving_more(&w->a, 0);
        memcpy(w->data, w->right, (size_t)w->bytes);
        w->data[at] ^= 0x20;
        CHECK_INT(pen__arriving_end(&w->a), PEN_E_CORRUPT);
    }
}

/* Where the tables of every indexed image end, in the block. */
static uint32_t list_tables(const PenBlockView *v, uint64_t *ret_ends, uint32_t *ret_samples)
{
    uint32_t n = 0, field = 0;
    while (field < v->schema->n_fields && v->schema->fields[field].type != PEN_TYPE_IMAGE)
        field++;
    for (uint32_t i = 0; i < v->n_samples && field < v->schema->n_fields; i++) {
        PenImageEntry e = pen__block_image(v, i, field, 0);
        if (!e.table_bytes || !pen__block_is_indexed(v, &e))
            continue;
        PenEntryTable t = pen__block_entries(v, &e);
        PenFilePart tables = pen__entry_table_part(&t, PEN_FILE_TABLES);
        ret_samples[n] = i;
        ret_ends[n++] = e.offset + tables.offset + tables.bytes;
    }
    return n;
}

static uint32_t n_images;

/* The parts of an image are checked when they arrive, before the rest of it. */
static void parts(Way *w)
{
    static uint8_t wrong[MOST];
    uint64_t ends[N];
    uint32_t samples[N];
    begin(w);
    arrive(w, w->right, w->bytes, true);
    CHECK(w->a.block.view.n_samples <= N);
    uint32_t n = list_tables(&w->a.block.view, ends, samples);
    n_images += n;
    for (uint32_t i = 0; i < n; i++) {
        begin(w);
        arrive(w, w->right, ends[i], true);
        CHECK_INT(w->a.status, PEN_OK);
        CHECK_INT(w->a.n_checked, samples[i]);
        CHECK_INT(w->a.part, PEN_FILE_RUNS);
        memcpy(wrong, w->right, (size_t)w->bytes);
        wrong[ends[i] - 1] ^= 1;
        begin(w);
        arrive(w, wrong, ends[i], true);
        CHECK_INT(w->a.status, PEN_E_CORRUPT);
    }
}

TEST(in_any_steps)
{
    each_block(PEN_MODE_TILE, steps);
    each_block(PEN_MODE_KEEP, steps);
}

TEST(wrong_bytes_are_found)
{
    each_block(PEN_MODE_TILE, wrong_bytes);
    each_block(PEN_MODE_KEEP, wrong_bytes);
}

TEST(an_attempt_that_lost_does_not_count)
{
    each_block(PEN_MODE_KEEP, another_attempt);
}

TEST(parts_of_images)
{
    each_block(PEN_MODE_KEEP, parts);
    CHECK(n_images > 0);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    rng = pen__rng_init(11, 0);
    RUN(in_any_steps);
    RUN(wrong_bytes_are_found);
    RUN(an_attempt_that_lost_does_not_count);
    RUN(parts_of_images);
    help_end();
    return TEST_END();
}
