/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of a mapped shard by few requests: the same bytes as of the shard in one piece. */
#include <stdatomic.h>

#include "base/error.h"
#include "ingest_help.h"
#include "pack/mapped/gather.h"
#include "pack/mapped/mapped.h"

enum { NONE = 99, FILES = 3, FILE_BYTES = 1 << 20, SHARD_BYTES = 1 << 19 };

static const uint8_t id[PEN_ID_BYTES] = "0123456789abcdef";

/* A shard, the files that its payloads are in, and what it has itself. */
typedef struct Stage {
    uint8_t files[FILES][FILE_BYTES], shard[SHARD_BYTES];
    PenBuf stored;
    PenSource *file;
    PenMap map;
    uint32_t missing; /* the number of a file; NONE: there is no file */
    atomic_int requests;
} Stage;

static uint32_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static int read_file(void *ctx, uint32_t number, const struct iovec *v, int n, uint64_t offset,
                     const PenArrival *arrival, PenError *reterr)
{
    Stage *s = ctx;
    atomic_fetch_add(&s->requests, 1);
    if (atomic_load(arrival->stop) || arrival->is_again)
        return pen__fail(reterr, PEN_E_INVALID, "test", "a request after the end, or the second");
    if (number == s->missing || s->missing == NONE) {
        *reterr = (PenError){.status = PEN_E_CORRUPT, .message = "gone"};
        return PEN_E_CORRUPT;
    }
    for (int i = 0; i < n; i++) {
        if (offset + v[i].iov_len > FILE_BYTES)
            return pen__fail(reterr, PEN_E_INVALID, "test", "a request behind the end of a file");
        memcpy(v[i].iov_base, s->files[number] + offset, v[i].iov_len);
        offset += v[i].iov_len;
    }
    return PEN_OK;
}

/* Payloads from the files in turn, mostly neighbors, with stored bytes between some of them. */
static void make_stage(Stage *s)
{
    PenMapBuild b = {0};
    uint32_t numbers[FILES];
    uint64_t at[FILES] = {0}, offset = 64;
    for (uint32_t f = 0; f < FILES; f++) {
        char path[] = {(char)('a' + f)};
        PenMappedFile file = {.bytes = FILE_BYTES, .path = path, .path_bytes = 1};
        CHECK_INT(pen__map_add_file(&b, &file, &numbers[f], NULL), PEN_OK);
        for (size_t i = 0; i < FILE_BYTES; i++)
            s->files[f][i] = (uint8_t)(1 + draw(255));
    }
    for (size_t i = 0; i < SHARD_BYTES; i++)
        s->shard[i] = (uint8_t)(1 + draw(255));
    pen__buf_add(&s->stored, s->shard, 64);
    for (uint32_t f = 0; offset + 8192 < SHARD_BYTES; f = draw(8) ? f : draw(FILES)) {
        uint32_t bytes = 1 + draw(3000), own = draw(3) ? draw(200) : 0;
        at[f] += draw(4) ? draw(600) : draw(80000);
        if (at[f] + bytes > FILE_BYTES)
            at[f] = 0; /* back in the file */
        CHECK_INT(pen__map_add_extent(&b, numbers[f], at[f], offset, bytes), PEN_OK);
        memcpy(s->shard + offset, s->files[f] + at[f], bytes);
        at[f] += bytes;
        offset += bytes;
        pen__buf_add(&s->stored, s->shard + offset, own);
        offset += own;
    }
    pen__buf_add(&s->stored, s->shard + offset, SHARD_BYTES - offset);
    CHECK_INT(pen__map_write(&b, id, SHARD_BYTES, &s->stored), PEN_OK);
    pen__map_build_free(&b);
    CHECK_INT(pen__source_open_memory("shard", s->stored.data, s->stored.bytes, &s->file, NULL),
              PEN_OK);
    CHECK_INT(pen__map_read(s->file, id, &s->map, NULL), PEN_OK);
    s->missing = FILES;
}

static Stage *begin(void)
{
    Stage *s = pen__zalloc(sizeof *s);
    make_stage(s);
    return s;
}

static void end(Stage *s)
{
    pen__map_free(&s->map);
    pen__source_close(&s->file);
    pen__buf_free(&s->stored);
    pen__free(s);
}

static int gather(Stage *s, const struct iovec *v, int n, uint64_t offset, PenError *err)
{
    PenGatherFrom from = {
        .map = &s->map, .file = s->file, .read = read_file, .ctx = s, .name = "shard"};
    return pen__gather(&from, v, n, offset, err);
}

TEST(random_ranges)
{
    static uint8_t found[SHARD_BYTES];
    Stage *s = begin();
    for (int round = 0; round < 3000; round++) {
        uint32_t offset = draw(SHARD_BYTES), bytes = draw(round % 10 ? 5000 : SHARD_BYTES);
        bytes = PEN_MIN(bytes, SHARD_BYTES - offset);
        uint32_t first = bytes ? draw(bytes) : 0, second = bytes - first ? draw(bytes - first) : 0;
        struct iovec v[] = {{found, first},
                            {found + first, second},
                            {found + first + second, bytes - first - second}};
        memset(found, 0, bytes);
        CHECK_INT(gather(s, v, 3, offset, NULL), PEN_OK);
        CHECK(memcmp(found, s->shard + offset, bytes) == 0);
    }
    end(s);
}

TEST(neighbors_are_one_request)
{
    static uint8_t found[SHARD_BYTES];
    struct iovec all = {found, SHARD_BYTES};
    Stage *s = begin();
    CHECK_INT(gather(s, &all, 1, 0, NULL), PEN_OK);
    CHECK(memcmp(found, s->shard, SHARD_BYTES) == 0);
    CHECK(atomic_load(&s->requests) * 2 < (int)s->map.n_extents);
    end(s);
}

/* Does each byte of the missing file have a zero in its place, and no other one? */
static void check_zeros(const Stage *s, const uint8_t *found)
{
    static uint8_t expected[SHARD_BYTES];
    memcpy(expected, s->shard, SHARD_BYTES);
    for (uint64_t i = 0; i < s->map.n_extents; i++) {
        PenExtent e = pen__map_extent(&s->map, i);
        if (e.file == s->missing)
            memset(expected + e.offset, 0, e.bytes);
    }
    CHECK(memcmp(found, expected, SHARD_BYTES) == 0);
}

TEST(a_missing_file_takes_no_others_with_it)
{
    static uint8_t found[SHARD_BYTES];
    PenError err = {0};
    struct iovec all = {found, SHARD_BYTES};
    Stage *s = begin();
    s->missing = 1;
    CHECK_INT(gather(s, &all, 1, 0, &err), PEN_OK);
    check_zeros(s, found);
    for (uint64_t i = 0; i < s->map.n_extents; i++) { /* who reads one payload is told */
        PenExtent e = pen__map_extent(&s->map, i);
        struct iovec one = {found, e.bytes};
        CHECK_INT(gather(s, &one, 1, e.offset, &err), e.file == 1 ? PEN_E_CORRUPT : PEN_OK);
    }
    end(s);
}

TEST(if_all_files_are_missing_it_is_an_error)
{
    static uint8_t found[SHARD_BYTES];
    PenError err = {0};
    struct iovec all = {found, SHARD_BYTES};
    Stage *s = begin();
    s->missing = NONE;
    CHECK_INT(gather(s, &all, 1, 0, &err), PEN_E_CORRUPT);
    CHECK_STR(err.message, "gone");
    end(s);
}

/* ---- more of anything ------------------------------------------------------------------------ */

static int refuse_thread(pthread_t *ret, void *(*run)(void *), void *arg)
{
    (void)ret, (void)run, (void)arg;
    return -EAGAIN;
}

TEST(without_helpers_it_takes_longer)
{
    static uint8_t found[SHARD_BYTES];
    struct iovec all = {found, SHARD_BYTES};
    PenSys sys = pen__sys_real;
    PenOutside *outside = NULL;
    PenError err = {0};
    Stage *s = begin();
    help_begin();
    help_text("p.pen/manifest", "");
    CHECK_INT(pen__outside_new(at("p.pen"), NULL, &outside, &err), PEN_OK);
    PenGatherFrom from = {.map = &s->map,
                          .file = s->file,
                          .outside = outside,
                          .read = read_file,
                          .ctx = s,
                          .name = "shard"};
    sys.thread_start = refuse_thread;
    for (int i = 0; i < 16; i++) { /* helpers that were not returned would be waited for */
        pen__sys = i < 15 ? &sys : &pen__sys_real;
        memset(found, 0, sizeof found);
        int r = pen__gather(&from, &all, 1, 0, &err);
        pen__sys = &pen__sys_real;
        CHECK_INT(r, PEN_OK);
        CHECK_MEM(found, s->shard, SHARD_BYTES);
    }
    pen__outside_close(&outside);
    help_end();
    end(s);
}

/* A source that notes into how many places it was read at once. */
typedef struct Counted {
    PenSource base;
    const uint8_t *data;
    atomic_int most, reads;
} Counted;

static int counted_read_v(PenSource *source, const struct iovec *v, int n, uint64_t offset,
                          const PenArrival *arrival, PenError *reterr)
{
    Counted *c = (Counted *)source;
    (void)arrival, (void)reterr;
    atomic_fetch_add(&c->reads, 1);
    for (int most = atomic_load(&c->most);
         n > most && !atomic_compare_exchange_weak(&c->most, &most, n);)
        ;
    for (int i = 0; i < n; i++) {
        memcpy(v[i].iov_base, c->data + offset, v[i].iov_len);
        offset += v[i].iov_len;
    }
    return PEN_OK;
}

static const PenSourceClass counted_class = {.read_v = counted_read_v};

/* Payloads of one byte in a file, and a stored byte behind each. */
static void make_small_payloads(Stage *s, uint32_t n)
{
    PenMapBuild b = {0};
    uint32_t number = 0;
    PenMappedFile file = {.bytes = FILE_BYTES, .path = "a", .path_bytes = 1};
    CHECK_INT(pen__map_add_file(&b, &file, &number, NULL), PEN_OK);
    for (size_t i = 0; i < FILE_BYTES; i++)
        s->files[0][i] = (uint8_t)(1 + draw(255));
    for (size_t i = 0; i < SHARD_BYTES; i++)
        s->shard[i] = (uint8_t)(1 + draw(255));
    pen__buf_add(&s->stored, s->shard, 64);
    for (uint32_t i = 0; i < n; i++) {
        CHECK_INT(pen__map_add_extent(&b, number, i, 64 + 2 * i, 1), PEN_OK);
        s->shard[64 + 2 * i] = s->files[0][i];
        pen__buf_add(&s->stored, s->shard + 64 + 2 * i + 1, 1);
    }
    CHECK_INT(pen__map_write(&b, id, 64 + 2 * n, &s->stored), PEN_OK);
    pen__map_build_free(&b);
    CHECK_INT(pen__source_open_memory("shard", s->stored.data, s->stored.bytes, &s->file, NULL),
              PEN_OK);
    CHECK_INT(pen__map_read(s->file, id, &s->map, NULL), PEN_OK);
    s->missing = FILES;
}

TEST(stored_bytes_in_many_places_are_several_requests)
{
    enum { MANY = 6000 };
    static uint8_t found[64 + 2 * MANY];
    struct iovec all = {found + 7, sizeof found - 7};
    PenError err = {0};
    Stage *s = pen__zalloc(sizeof *s);
    make_small_payloads(s, MANY);
    CHECK_OK_SO_FAR();
    Counted counted = {
        .base = {.class_ = &counted_class, .name = "stored", .bytes = 64 + MANY, .is_remote = 1},
        .data = s->stored.data};
    PenGatherFrom from = {
        .map = &s->map, .file = &counted.base, .read = read_file, .ctx = s, .name = "shard"};
    CHECK_INT(pen__gather(&from, &all, 1, 7, &err), PEN_OK);
    CHECK_MEM(found + 7, s->shard + 7, sizeof found - 7);
    CHECK_INT(atomic_load(&counted.most), 2048);
    CHECK_INT(atomic_load(&counted.reads), 3);
    end(s);
}

/* Blocks of objects are read entirely. A map of some bytes must not take all of the memory. */
TEST(the_largest_block_of_objects)
{
    const uint64_t most = UINT64_C(1) << 30, index_bytes = 100;
    uint64_t blocks[] = {most, most + 1};
    for (size_t i = 0; i < 2 * PEN_LEN(blocks); i++) {
        PenMapBuild b = {0};
        PenBuf stored = {0};
        PenSource *source = NULL;
        PenError err = {0};
        uint8_t table[PEN_BLOCK_ENTRY_BYTES] = {0};
        uint32_t number = 0;
        uint64_t bytes = blocks[i % 2], payload = bytes - index_bytes;
        bool is_remote = i < 2;
        PenMappedFile file = {.bytes = payload, .path = "a", .path_bytes = 1};
        pen__buf_reserve(&stored, 64 + index_bytes);
        memset(stored.data, 0, 64 + index_bytes);
        stored.bytes = 64 + index_bytes;
        CHECK_INT(pen__map_add_file(&b, &file, &number, NULL), PEN_OK);
        CHECK_INT(pen__map_add_extent(&b, number, 0, 64 + index_bytes, payload), PEN_OK);
        CHECK_INT(pen__map_write(&b, id, 64 + bytes, &stored), PEN_OK);
        pen__map_build_free(&b);
        CHECK_INT(pen__source_open_memory("shard", stored.data, stored.bytes, &source, &err),
                  PEN_OK);
        source->is_remote = is_remote;
        CHECK_INT(pen__mapped_open(&source, id, NULL, 0, &err), PEN_OK);
        pen__store64(table, 64);
        pen__store64(table + 8, bytes);
        pen__store64(table + 16, index_bytes);
        int r = pen__mapped_check(source, table, 1, &err);
        CHECK_INT(r, is_remote && bytes > most ? PEN_E_LIMIT : PEN_OK);
        if (r < 0)
            CHECK(strstr(err.message, "1073741825 bytes") &&
                  strstr(err.message, "--block-samples"));
        pen__source_close(&source);
        pen__buf_free(&stored);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(random_ranges);
    RUN(neighbors_are_one_request);
    RUN(a_missing_file_takes_no_others_with_it);
    RUN(if_all_files_are_missing_it_is_an_error);
    RUN(without_helpers_it_takes_longer);
    RUN(stored_bytes_in_many_places_are_several_requests);
    RUN(the_largest_block_of_objects);
    return TEST_END();
}
