/* SPDX-License-Identifier: Apache-2.0 */
/* The rule: the order of an epoch is a function of the pack, the order, the shuffle buffer, the
 * seed, the epoch and the choice of samples; with buckets and token budgets also of the global
 * batch. Plans are built as a loader builds them, with any threads, batch, ranks, memory and place
 * of the pack, and all samples of all ranks are compared. Nothing is read. */
#include "io/dir.h"
#include "io/source.h"
#include "load/epoch/pass.h"
#include "load/plan/buckets.h"
#include "load/plan/builder.h"
#include "load_help.h"

enum { N = 2000, BLOCK = 4, BUFFER = 48, EPOCH = 3, SOURCES = 2 };

/* Two sides of images, so that there are two buckets. */
static const char *const packs[SOURCES] = {"a.pen", "b.pen"};

static int write_pack(const char *name, uint32_t n, PenError *err)
{
    static const PenField fields[] = {{.name = "image", .type = PEN_TYPE_IMAGE},
                                      {.name = "label", .type = PEN_TYPE_I64}};
    PenWriterSettings s;
    PenWriter *w = NULL;
    PenBuf jpegs[2] = {0};
    pen_writer_settings_init(&s);
    s.fields = fields;
    s.n_fields = 2;
    s.block_samples = BLOCK;
    s.shard_bytes = 200000;
    make_jpeg(&(JpegSpec){.width = 16, .height = 8, .h = 1, .v = 1}, &jpegs[0]);
    make_jpeg(&(JpegSpec){.width = 8, .height = 16, .h = 1, .v = 1}, &jpegs[1]);
    int r = pen_writer_open(at(name), &s, &w, err);
    for (uint32_t i = 0; i < n && r == PEN_OK; i++) {
        const PenBuf *image = &jpegs[i % 7 < 3];
        int64_t label = i;
        PenValue values[] = {{.data = image->data, .bytes = image->bytes},
                             {.data = &label, .bytes = sizeof label}};
        char key[16];
        r = pen_writer_add(w, key, (size_t)snprintf(key, sizeof key, "%u", i), values, 2, err);
    }
    uint64_t total;
    if (r == PEN_OK)
        r = pen_writer_finish(w, &total, err);
    pen_writer_close(&w);
    pen__buf_free(&jpegs[0]);
    pen__buf_free(&jpegs[1]);
    return r;
}

/* ---- where the packs are ---- */

typedef enum Place { DISK, STORE, CACHE, PLACES } Place;

typedef struct Far {
    PenSource base;
    PenSource *near;
} Far;

static int far_read(PenSource *s, void *buf, size_t bytes, uint64_t offset, int again,
                    PenError *reterr)
{
    (void)again;
    return pen__source_read(((Far *)s)->near, buf, bytes, offset, reterr);
}

static void far_close(PenSource *s)
{
    pen__source_close(&((Far *)s)->near);
    pen__free(s);
}

static int far_open(void *ctx, const char *name, PenSource **ret, PenError *reterr)
{
    static const PenSourceClass far_class = {.read = far_read, .close = far_close};
    char *path = pen__path_join(ctx, name);
    Far *f = pen__zalloc(sizeof *f);
    int r = path && f ? pen__source_open_file(path, &f->near, reterr) : PEN_E_NO_MEMORY;
    pen__free(path);
    if (r < 0) {
        pen__free(f);
        return r;
    }
    f->base = (PenSource){
        .class_ = &far_class, .name = f->near->name, .bytes = f->near->bytes, .is_remote = 1};
    *ret = &f->base;
    return PEN_OK;
}

static PenPack *open_pack(Place place, int number)
{
    static char where[SOURCES][512];
    PenPack *p = NULL;
    PenError err = {0};
    snprintf(where[number], sizeof where[number], "%s", at(packs[number]));
    int r = place == STORE ? pen__pack_open_with(packs[number], far_open, where[number], &p, &err)
                           : pen_pack_open(where[number], NULL, &p, &err);
    PenCacheSettings cache;
    pen_cache_settings_init(&cache);
    cache.directory = at("cache");
    cache.bytes = 1 << 20;
    if (r == PEN_OK && place == CACHE)
        r = pen_pack_cache(p, &cache, &err);
    if (r < 0)
        printf("%s\n", err.message);
    return p;
}

/* ---- what is loaded ---- */

typedef struct Kind {
    const char *name;
    int order;
    bool buckets, tokens, mixture, frames, views, weights, indices;
} Kind;

static const Kind kinds[] = {
    {"sequential", PEN_ORDER_SEQUENTIAL, 0, 0, 0, 0, 0, 0, 0},
    {"random", PEN_ORDER_RANDOM, 0, 0, 0, 0, 0, 0, 0},
    {"shuffle", PEN_ORDER_SHUFFLE, 0, 0, 0, 0, 0, 0, 0},
    {"sticky", PEN_ORDER_STICKY, 0, 0, 0, 0, 0, 0, 0},
    {"buckets", PEN_ORDER_SHUFFLE, 1, 0, 0, 0, 0, 0, 0},
    {"tokens", PEN_ORDER_SHUFFLE, 0, 1, 0, 0, 0, 0, 0},
    {"mixture", PEN_ORDER_SHUFFLE, 0, 0, 1, 0, 0, 0, 0},
    {"frames", PEN_ORDER_SHUFFLE, 0, 0, 0, 1, 0, 0, 0},
    {"views", PEN_ORDER_STICKY, 0, 0, 0, 0, 1, 0, 0},
    {"weights", PEN_ORDER_SHUFFLE, 0, 0, 0, 0, 0, 1, 0},
    {"indices", PEN_ORDER_STICKY, 0, 0, 0, 0, 0, 0, 1},
};

/* What must not matter. */
typedef struct Run {
    int threads, io_threads;
    uint32_t batch, world;
    uint64_t memory; /* 0: the least that is enough */
    Place place;
} Run;

static uint64_t indices[N], frames[N];
static double weights[N];
static const uint32_t lengths[] = {4, 8};
static const PenBucketSize buckets[] = {{8, 16}, {16, 8}};

static PenLoaderSettings settings_of(const Kind *k, const Run *run)
{
    PenLoaderSettings s;
    pen_loader_settings_init(&s);
    s.order = k->order;
    s.shuffle_buffer = BUFFER;
    s.seed = 11;
    s.pipeline = k->buckets  ? "image: decode | cover bucket | tensor u8; label: tensor"
                 : k->tokens ? "image: decode | patches 4 | tensor u8; label: tensor"
                 : k->views  ? "a = image: decode | random_resized_crop 8 | tensor u8; b = image: "
                               "decode | resize 4,4 | tensor u8; label: tensor"
                             : "label: tensor";
    s.threads = run->threads;
    s.io_threads = run->io_threads;
    s.batch_size = run->batch;
    s.world = run->world;
    s.node_ranks = 1;
    /* Places of buckets are counted with what pads them. */
    s.last_batch = k->buckets || run->world % 2 == 0 ? PEN_LAST_PAD : PEN_LAST_SHORT;
    s.memory_bytes = run->memory;
    if (k->buckets) {
        s.buckets = buckets;
        s.n_buckets = PEN_LEN(buckets);
    }
    if (k->tokens) {
        s.tokens = 8 * run->batch;
        s.lengths = lengths;
        s.n_lengths = PEN_LEN(lengths);
    }
    if (k->frames) {
        s.frames = frames;
        s.n_frames = N;
    }
    if (k->weights) {
        s.weights = weights;
        s.n_weights = N;
    }
    if (k->indices) {
        s.subset = indices;
        s.n_subset = N;
    }
    return s;
}

static PenPack *opened[PLACES][SOURCES];

static int build(const Kind *k, const Run *run, uint32_t rank, PenLoadPlan *ret, PenError *err)
{
    PenLoaderSettings s = settings_of(k, run);
    PenPack *const *from = opened[run->place];
    s.rank = rank;
    if (!k->mixture)
        return pen__load_plan_build(ret, from[0], &s, err);
    PenMixSettings mix;
    pen_mix_settings_init(&mix);
    mix.n_sources = SOURCES;
    mix.packs = from;
    mix.weights = (const double[]){3, 1};
    return pen__load_plan_build_mix(ret, &mix, &s, err);
}

/* The least memory with which there is a plan. */
static int build_least(const Kind *k, const Run *run, PenLoadPlan *ret, PenError *err)
{
    Run with = *run;
    int r = PEN_E_LIMIT;
    for (with.memory = 1 << 18; r == PEN_E_LIMIT; with.memory += with.memory / 4)
        r = build(k, &with, 0, ret, err);
    return r;
}

/* ---- who gets what ---- */

/* A sample with what tells its occurrences in an epoch apart, at each position; of buckets, the
 * samples of each group are sorted, since which rank has them does not matter. */
typedef struct Delivered {
    uint64_t n, steps, wrong;
    uint64_t *at;
} Delivered;

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void take_rank(const PenLoadPlan *p, PenEpochPass pass, Delivered *d)
{
    pen__epoch_pass_init(&pass);
    d->steps = pass.steps;
    for (; pass.next_batch < pass.steps; pen__epoch_pass_advance(&pass)) {
        if (pen__epoch_pass_is_empty(&pass))
            continue;
        PenPassSample s = pen__epoch_pass_peek(&pass);
        PenChosen c = pen__load_plan_choose(p, pass.order.epoch, s.chosen);
        uint64_t word = pen__permute_key(c.sample, c.source, c.ordinal, c.epoch);
        if (pass.order.table)
            word ^= (uint64_t)!s.valid << 63;
        else if (!s.valid)
            continue;
        d->wrong += s.position >= d->n || d->at[s.position] != 0;
        if (s.position < d->n)
            d->at[s.position] = word | 1;
    }
}

static void deliver(PenLoadPlan *p, uint64_t start, uint64_t step, Delivered *ret)
{
    PenEpochPass pass = {.split = pen__load_plan_split(p, EPOCH, start, step)};
    PenOrderPlan order = pen__load_plan_order(p);
    PenBucketTable *table = NULL;
    *ret = (Delivered){.n = pass.split.n};
    CHECK_INT(pen__order_init(&pass.order, &order, EPOCH, NULL), PEN_OK);
    if (p->buckets)
        CHECK_INT(pen__plan_buckets_order(p, &pass.order, &table, NULL), PEN_OK);
    pass.order.table = table;
    ret->at = pen__alloc_array(ret->n, sizeof *ret->at);
    memset(ret->at, 0, ret->n * sizeof *ret->at);
    for (pass.split.rank = 0; pass.split.rank < pass.split.world; pass.split.rank++)
        take_rank(p, pass, ret);
    for (uint64_t g = start; p->buckets && g < ret->n; g += p->state.global_batch)
        qsort(ret->at + g, p->state.global_batch, sizeof *ret->at, compare);
    for (uint64_t i = start; i < ret->n; i++)
        ret->wrong += !ret->at[i];
    pen__bucket_table_free(&table);
}

static uint64_t hash_of(const uint64_t *at, uint64_t n)
{
    PenSha256 hash;
    uint64_t sum[4];
    pen__sha256_init(&hash);
    pen__sha256_update(&hash, at, n * sizeof *at);
    pen__sha256_final(&hash, (uint8_t *)sum);
    return sum[0];
}

/* ---- the rule ---- */

typedef struct Want {
    Delivered all;
    uint64_t hash, order;
    char state[PEN_STATE_BYTES]; /* in the middle */
    uint64_t start, step;        /* of that */
} Want;

/* A state after some steps of the first run. */
static void save_middle(PenLoadPlan *p, Want *w)
{
    PenSplit split = pen__load_plan_split(p, EPOCH, 0, 0);
    PenState s = p->state;
    uint64_t steps = pen__split_steps(&split) / 2;
    w->start = pen__split_places(&split, steps) * split.world;
    w->step = steps;
    s.epoch = EPOCH;
    s.position = PEN_MIN(w->start, s.order.n - 1);
    s.place = w->start;
    s.step = steps;
    CHECK_INT(pen__state_write(&s, w->state, NULL), PEN_OK);
}

static void check_resumed(PenLoadPlan *p, const Want *w)
{
    PenState s;
    Delivered rest;
    CHECK_INT(pen__state_read(w->state, &s, NULL), PEN_OK);
    CHECK_INT(pen__state_match(&p->state, &s, NULL), PEN_OK);
    deliver(p, w->start, w->step, &rest);
    CHECK_OK_SO_FAR();
    CHECK_INT(rest.wrong, 0);
    CHECK_INT(rest.n, w->all.n);
    CHECK(memcmp(rest.at + w->start, w->all.at + w->start,
                 (w->all.n - w->start) * sizeof *w->all.at) == 0);
    pen__free(rest.at);
}

static void check_plan(const Kind *k, PenLoadPlan *p, Want *w)
{
    Delivered d;
    deliver(p, 0, 0, &d);
    CHECK_OK_SO_FAR();
    CHECK_INT(d.wrong, 0);
    uint64_t hash = hash_of(d.at, d.n);
    if (w->all.at) {
        CHECK_INT(d.n, w->all.n);
        CHECK(hash == w->hash);
        CHECK(pen__state_hash(&p->state) == w->order);
        pen__free(d.at);
        check_resumed(p, w);
        return;
    }
    w->all = d;
    w->hash = hash;
    w->order = pen__state_hash(&p->state);
    if (!k->buckets && !k->mixture)
        CHECK(p->state.order.n >= 20 * (uint64_t)BUFFER);
    save_middle(p, w);
}

static const int threads[] = {1, 3, 16, 64, 256}, io_threads[] = {0, 1, 16};
static const uint64_t memory[] = {0, 64 << 20, 256 << 20, 8ull << 30};

static unsigned n_runs;

static void check_run(const Kind *k, const Run *run, Want *w)
{
    PenLoadPlan p;
    PenError err = {0};
    int r = run->memory ? build(k, run, 0, &p, &err) : build_least(k, run, &p, &err);
    if (r == PEN_E_LIMIT) /* many threads and little memory */
        return;
    if (r < 0)
        printf("%s: %s\n", k->name, err.message);
    CHECK_INT(r, PEN_OK);
    n_runs++;
    check_plan(k, &p, w);
    if (test__now.state == TEST_FAILED)
        printf("%s: threads %d, io_threads %d, batch %u, world %u, memory %llu, place %d\n",
               k->name, run->threads, run->io_threads, run->batch, run->world,
               (unsigned long long)run->memory, run->place);
    pen__load_plan_fini(&p);
}

static void check_worlds(const Kind *k, const uint32_t *worlds, size_t n_worlds, uint32_t global)
{
    Want w = {.hash = 0};
    unsigned turn = 0;
    for (size_t i = 0; i < n_worlds; i++)
        for (int place = 0; place < PLACES; place++)
            for (size_t m = 0; m < 2 * PEN_LEN(memory); m++, turn++) {
                const uint32_t batches[] = {1, 3, 7, 32};
                Run run = {.threads = threads[turn % PEN_LEN(threads)],
                           .io_threads = io_threads[turn % PEN_LEN(io_threads)],
                           .batch = global ? global / worlds[i] : batches[turn / 3 % 4],
                           .world = worlds[i],
                           .memory = memory[m % PEN_LEN(memory)],
                           .place = (Place)place};
                check_run(k, &run, &w);
                CHECK_OK_SO_FAR();
            }
    pen__free(w.all.at);
}

TEST(one_order)
{
    static const uint32_t worlds[] = {1, 2, 3, 5, 7, 8, 64, 1000};
    for (size_t i = 0; i < PEN_LEN(kinds); i++) {
        const Kind *k = &kinds[i];
        if (!k->buckets && !k->tokens)
            check_worlds(k, worlds, PEN_LEN(worlds), 0);
        CHECK_OK_SO_FAR();
    }
}

TEST(one_order_of_global_batches)
{
    static const uint32_t of_240[] = {1, 2, 3, 5, 8}, of_896[] = {1, 2, 7, 8, 64};
    for (size_t i = 0; i < PEN_LEN(kinds); i++) {
        const Kind *k = &kinds[i];
        if (!k->buckets && !k->tokens)
            continue;
        check_worlds(k, of_240, PEN_LEN(of_240), 240);
        CHECK_OK_SO_FAR();
        check_worlds(k, of_896, PEN_LEN(of_896), 896);
        CHECK_OK_SO_FAR();
    }
}

TEST(another_global_batch_is_refused)
{
    for (size_t i = 0; i < PEN_LEN(kinds); i++) {
        const Kind *k = &kinds[i];
        PenLoadPlan a, b;
        PenError err = {0};
        if (!k->buckets && !k->tokens)
            continue;
        Run run = {.threads = 1, .batch = 24, .world = 2, .memory = 64 << 20};
        CHECK_INT(build(k, &run, 0, &a, &err), PEN_OK);
        run.batch = 36;
        CHECK_INT(build(k, &run, 0, &b, &err), PEN_OK);
        CHECK_INT(pen__state_match(&b.state, &a.state, &err), PEN_E_INVALID);
        CHECK(strstr(err.message, "global_batch") != NULL);
        pen__load_plan_fini(&a);
        pen__load_plan_fini(&b);
    }
}

/* All ranks have the same plan but for their number. */
TEST(ranks_agree)
{
    for (size_t i = 0; i < PEN_LEN(kinds); i++)
        for (uint32_t rank = 0, world = 6; rank < world; rank++) {
            Run run = {.threads = 1, .batch = 4, .world = world, .memory = 64 << 20};
            PenLoadPlan a, b;
            CHECK_INT(build(&kinds[i], &run, 0, &a, NULL), PEN_OK);
            CHECK_INT(build(&kinds[i], &run, rank, &b, NULL), PEN_OK);
            CHECK(pen__state_hash(&a.state) == pen__state_hash(&b.state));
            pen__load_plan_fini(&a);
            pen__load_plan_fini(&b);
        }
}

/* What defines the order changes its hash. */
TEST(another_order_has_another_hash)
{
    const Kind *k = &kinds[2];
    Run run = {.threads = 1, .batch = 4, .world = 1, .memory = 64 << 20};
    uint64_t seen[16], n = 0;
    for (int change = 0; change < 7; change++) {
        PenLoaderSettings s = settings_of(change == 6 ? &kinds[10] : k, &run);
        PenLoadPlan p;
        s.order = change == 1 ? PEN_ORDER_STICKY : change == 2 ? PEN_ORDER_RANDOM : s.order;
        s.seed += change == 3;
        s.shuffle_buffer += change == 4 ? BUFFER : 0;
        s.count = change == 5 ? N / 2 : 0;
        CHECK_INT(pen__load_plan_build(&p, opened[DISK][0], &s, NULL), PEN_OK);
        seen[n++] = pen__state_hash(&p.state);
        pen__load_plan_fini(&p);
    }
    qsort(seen, n, sizeof *seen, compare);
    for (uint64_t i = 1; i < n; i++)
        CHECK(seen[i] != seen[i - 1]);
}

int main(int argc, char **argv)
{
    PenError err = {0};
    TEST_START(argc, argv);
    help_begin();
    for (uint32_t i = 0; i < N; i++) {
        indices[i] = i * 7 % N / 2; /* each twice */
        frames[i] = i % 4;
        weights[i] = 1 + i % 5;
    }
    if (write_pack(packs[0], N, &err) < 0 || write_pack(packs[1], N / 3, &err) < 0) {
        printf("%s\n", err.message);
        return 1;
    }
    for (int i = 0; i < PLACES; i++)
        for (int k = 0; k < SOURCES; k++)
            if (!(opened[i][k] = open_pack((Place)i, k)))
                return 1;
    RUN(one_order);
    RUN(one_order_of_global_batches);
    RUN(another_global_batch_is_refused);
    RUN(ranks_agree);
    RUN(another_order_has_another_hash);
    printf("%u plans compared\n", n_runs);
    if (!test__now.filter && n_runs < 1000)
        return 1;
    for (int i = 0; i < PLACES; i++)
        for (int k = 0; k < SOURCES; k++)
            pen_pack_close(&opened[i][k]);
    return TEST_END();
}
