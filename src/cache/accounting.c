/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes the cache holds. What is to be written is added first and under the lock, so that
 * all processes together stay below the limit; one that is killed in between leaves too much in the
 * accounting, and a count of what it had begun by which that is noticed. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "cache/cache_impl.h"

enum { ACCOUNTING_BYTES = 64, VERSION = 1 };
#define DAY_S (24 * 3600u)

static const char magic[8] = "PENCACHE";

static int read_accounting(PenCache *c, PenAccounting *ret)
{
    uint8_t data[ACCOUNTING_BYTES];
    size_t got = 0;
    *ret = (PenAccounting){0};
    while (got < sizeof data) {
        int64_t n = pen__sys->pread(c->fd, data + got, sizeof data - got, got);
        if (n < 0)
            return (int)n;
        if (n == 0)
            return got ? -EPROTO : -ENODATA;
        got += (size_t)n;
    }
    if (memcmp(data, magic, sizeof magic) != 0 || pen__load32(data + 8) != VERSION)
        return -EPROTO;
    if (pen__crc32c(0, data + 16, sizeof data - 16) != pen__load32(data + 12))
        return -EBADMSG;
    *ret = (PenAccounting){pen__load64(data + 16), pen__load64(data + 24), pen__load64(data + 32)};
    return 0;
}

static int write_accounting(PenCache *c, const PenAccounting *b)
{
    uint8_t data[ACCOUNTING_BYTES] = {0};
    memcpy(data, magic, sizeof magic);
    pen__store32(data + 8, VERSION);
    pen__store64(data + 16, b->used);
    pen__store64(data + 24, b->pending);
    pen__store64(data + 32, b->counted_s);
    pen__store32(data + 12, pen__crc32c(0, data + 16, sizeof data - 16));
    for (size_t done = 0; done < sizeof data;) {
        struct iovec iov = {data + done, sizeof data - done};
        int64_t n = pen__sys->pwritev(c->fd, &iov, 1, done);
        if (n <= 0)
            return n < 0 ? (int)n : -ENOSPC;
        done += (size_t)n;
    }
    return 0;
}

int pen__accounting_begin(PenCache *c, uint64_t wait_ns, PenAccounting *ret)
{
    pthread_mutex_lock(&c->accounting);
    int r = pen__range_lock(c, PEN_RANGE_ALONE, PEN_RANGE_ACCOUNTING, wait_ns);
    if (r == 0) {
        r = read_accounting(c, ret);
        if (r == 0 || r == -ENODATA || r == -EBADMSG)
            return r;
        pen__range_free(c, PEN_RANGE_ACCOUNTING);
    }
    pthread_mutex_unlock(&c->accounting);
    return r;
}

int pen__accounting_end(PenCache *c, const PenAccounting *accounting)
{
    int r = accounting ? write_accounting(c, accounting) : 0;
    pen__range_free(c, PEN_RANGE_ACCOUNTING);
    pthread_mutex_unlock(&c->accounting);
    return r;
}

static uint64_t add(uint64_t a, int64_t b)
{
    uint64_t less = b < 0 ? (uint64_t)-b : 0;
    return b < 0 ? (a > less ? a - less : 0) : a + (uint64_t)b;
}

int pen__accounting_change(PenCache *c, int64_t used, int64_t pending)
{
    PenAccounting b;
    int r = pen__accounting_begin(c, PEN_SHORT_NS(c), &b);
    if (r == -ENODATA || r == -EBADMSG)
        return pen__accounting_end(c, NULL); /* for a recount to put right */
    if (r < 0)
        return r;
    b.used = add(b.used, used);
    b.pending = add(b.pending, pending);
    return pen__accounting_end(c, &b);
}

/* ---- counting ------------------------------------------------------------------------------- */

typedef struct Count {
    PenCache *cache;
    uint64_t bytes;
    bool sweep; /* remove what nobody finished */
} Count;

static int count_entry(void *ctx, const char *path, uint64_t bytes)
{
    (void)path;
    ((Count *)ctx)->bytes += bytes;
    return 0;
}

static int count_pack(void *ctx, const char *id)
{
    Count *count = ctx;
    if (count->sweep)
        pen__cache_dir_sweep(count->cache, id);
    return pen__cache_dir_entries(count->cache, id, count_entry, count);
}

/* With the accounting. What others are writing is not among the entries yet, so it is counted once
 * more by the next who is alone. */
static int recount(PenCache *c, bool alone, PenAccounting *b)
{
    Count count = {.cache = c, .sweep = alone};
    int r = pen__cache_dir_packs(c, count_pack, &count);
    if (r == 0)
        *b = (PenAccounting){.used = count.bytes,
                             .pending = alone ? 0 : b->pending,
                             .counted_s = alone ? pen__sys->unix_ns() / 1000000000u : 0};
    return r;
}

/* Nobody else has the cache open, and nobody can come in. */
static bool is_alone(PenCache *c)
{
    return pen__range_lock(c, PEN_RANGE_ALONE, PEN_RANGE_PRESENT, 0) == 0;
}

void pen__accounting_recount(PenCache *c, bool force)
{
    PenAccounting b;
    int r = pen__accounting_begin(c, PEN_SHORT_NS(c), &b);
    if (r < 0 && r != -EBADMSG && r != -ENODATA)
        return;
    bool bad = r<0, old = pen__sys->unix_ns() / 1000000000u - b.counted_s> DAY_S;
    bool alone = (bad || b.pending || old || force) && is_alone(c);
    bool done = (alone || bad) && recount(c, alone, &b) == 0;
    (void)pen__accounting_end(c, done ? &b : NULL);
    if (alone)
        pen__accounting_present(c);
}

/* Who counts holds the accounting as well, so not being marked as present does no harm but to the
 * count.
 */
void pen__accounting_present(PenCache *c)
{
    (void)pen__range_lock(c, PEN_RANGE_SHARED, PEN_RANGE_PRESENT, PEN_SHORT_NS(c));
}
