/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/state.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "pack/format/format.h"

enum { VERSION = 1, SHOWN = 40, PACK_DIGITS = 32, HASH_DIGITS = 16 };

enum {
    KEY_VERSION,
    KEY_EPOCH,
    KEY_POSITION,
    KEY_SAMPLES,
    KEY_SEED,
    KEY_ORDER,
    KEY_LANES,
    KEY_WINDOW,
    KEY_BLOCK,
    KEY_PACK,
    KEY_PIPELINE,
    KEY_SUBSET,
    N_NEEDED,
    KEY_RANKS = N_NEEDED, /* these three with buckets alone */
    KEY_BATCH,
    KEY_PLACE,
    N_WITH_BUCKETS,
    KEY_STEP = N_WITH_BUCKETS, /* with a token budget alone */
    N_KEYS
};

static const char *const key_names[N_KEYS] = {
    "version", "epoch", "position", "samples", "seed",  "order", "lanes", "window",
    "block",   "pack",  "pipeline", "subset",  "ranks", "batch", "place", "step"};

/* A piece of the text; n is 0 where there is none. */
typedef struct Word {
    const char *at;
    size_t n;
} Word;

typedef struct Words {
    Word values[N_KEYS];
} Words;

static void hex_write(const uint8_t id[16], char ret[PACK_DIGITS + 1])
{
    for (size_t i = 0; i < 16; i++)
        snprintf(ret + 2 * i, 3, "%02x", id[i]);
}

int pen__state_write(const PenState *s, char *buf, PenError *reterr)
{
    const PenOrderPlan *o = &s->order;
    bool by_block = pen__order_by_block(o->kind);
    char pack[PACK_DIGITS + 1];
    int r = pen__order_check(o, reterr);
    if (r < 0)
        return r;
    if (s->position > o->n)
        return pen__fail(reterr, PEN_E_INVALID, "load/state",
                         "state: position is %" PRIu64 ", expected at most %" PRIu64, s->position,
                         o->n);
    hex_write(s->pack_id, pack);
    snprintf(buf, PEN_STATE_BYTES,
             "version=%d epoch=%" PRIu64 " position=%" PRIu64 " samples=%" PRIu64 " seed=%" PRIu64
             " order=%s lanes=%" PRIu32 " window=%" PRIu32 " block=%" PRIu64
             " pack=%s pipeline=%016" PRIx64 " subset=%016" PRIx64,
             VERSION, s->epoch, s->position, o->n, o->seed, pen__order_name(o->kind),
             by_block ? o->lanes : 0, by_block ? o->window : 0, by_block ? o->block_samples : 0,
             pack, s->pipeline, s->subset);
    if (s->group.ranks) {
        size_t n = strlen(buf);
        snprintf(buf + n, PEN_STATE_BYTES - n,
                 " ranks=%" PRIu32 " batch=%" PRIu32 " place=%" PRIu64, s->group.ranks,
                 s->group.batch, s->place);
    }
    if (s->by_step) {
        size_t n = strlen(buf);
        snprintf(buf + n, PEN_STATE_BYTES - n, " step=%" PRIu64, s->step);
    }
    return PEN_OK;
}

/* ---- taking the text apart ------------------------------------------------------------------- */

/* The beginning of a word, fit to be shown. */
static const char *show(Word w, char buf[SHOWN + 4])
{
    size_t n = PEN_MIN(w.n, SHOWN);
    for (size_t i = 0; i < n; i++)
        buf[i] = w.at[i] > ' ' && w.at[i] < 0x7f ? w.at[i] : '?';
    snprintf(buf + n, 4, "%s", w.n > n ? "..." : "");
    return buf;
}

static bool word_is(Word w, const char *text)
{
    return strlen(text) == w.n && memcmp(w.at, text, w.n) == 0;
}

static int fail_value(PenError *reterr, int key, Word w, const char *expected)
{
    char found[SHOWN + 4];
    return pen__fail(reterr, PEN_E_INVALID, "load/state", "state: %s is \"%s\", expected %s",
                     key_names[key], show(w, found), expected);
}

/* Decimal digits only. */
static bool word_number(Word w, uint64_t *ret)
{
    uint64_t v = 0;
    for (size_t i = 0; i < w.n; i++) {
        uint64_t digit = (uint64_t)(uint8_t)w.at[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *ret = v;
    return w.n > 0;
}

/* At most 16 lower-case digits. */
static bool word_hex(Word w, uint64_t *ret)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t v = 0;
    for (size_t i = 0; i < w.n; i++) {
        const char *digit = memchr(digits, w.at[i], 16);
        if (!digit)
            return false;
        v = v << 4 | (uint64_t)(digit - digits);
    }
    *ret = v;
    return true;
}

/* Words are apart by spaces; each is key=value. */
static bool next_word(const char **text, Word *ret)
{
    const char *at = *text + strspn(*text, " ");
    *ret = (Word){at, strcspn(at, " ")};
    *text = at + ret->n;
    return ret->n > 0;
}

/* Of a word whose key is not known, the first one is remembered: when the version is another, that
 * is the better thing to say. */
static int read_word(Words *words, Word w, Word *unknown, PenError *reterr)
{
    char shown[SHOWN + 4];
    const char *equals = memchr(w.at, '=', w.n);
    if (!equals || equals == w.at || equals == w.at + w.n - 1)
        return pen__fail(reterr, PEN_E_INVALID, "load/state",
                         "state: expected key=value, found \"%s\"", show(w, shown));
    Word key = {w.at, (size_t)(equals - w.at)};
    for (int i = 0; i < N_KEYS; i++) {
        if (!word_is(key, key_names[i]))
            continue;
        if (words->values[i].n)
            return pen__fail(reterr, PEN_E_INVALID, "load/state",
                             "state: %s occurs twice, expected once", key_names[i]);
        words->values[i] = (Word){equals + 1, w.n - key.n - 1};
        return PEN_OK;
    }
    if (!unknown->n)
        *unknown = key;
    return PEN_OK;
}

static bool has_group(const Words *words)
{
    return words->values[KEY_RANKS].n || words->values[KEY_BATCH].n || words->values[KEY_PLACE].n;
}

static int check_words(const Words *words, Word unknown, PenError *reterr)
{
    char shown[SHOWN + 4];
    Word version = words->values[KEY_VERSION];
    if (version.n && !word_is(version, "1"))
        return fail_value(reterr, KEY_VERSION, version,
                          "1; load it with the release of penstock that wrote it");
    int n = has_group(words) ? N_WITH_BUCKETS : N_NEEDED;
    for (int i = 0; i < n; i++)
        if (!words->values[i].n)
            return pen__fail(reterr, PEN_E_INVALID, "load/state",
                             "state: %s is missing, expected version=1 epoch=... as saved",
                             key_names[i]);
    if (unknown.n)
        return pen__fail(reterr, PEN_E_INVALID, "load/state",
                         "state: \"%s\" is not a key of version 1, expected only epoch, position, "
                         "samples, seed, order, lanes, window, block, pack, pipeline, subset, "
                         "ranks, batch, place, step",
                         show(unknown, shown));
    return PEN_OK;
}

static int split_words(const char *text, Words *ret, PenError *reterr)
{
    Word unknown = {0};
    Word w;
    if (!text || !*text)
        return pen__fail(reterr, PEN_E_INVALID, "load/state",
                         "state: empty, expected version=1 epoch=... as saved");
    if (strnlen(text, PEN_STATE_BYTES) >= PEN_STATE_BYTES)
        return pen__fail(reterr, PEN_E_INVALID, "load/state",
                         "state: too long, expected fewer than %d bytes", PEN_STATE_BYTES);
    while (next_word(&text, &w)) {
        int r = read_word(ret, w, &unknown, reterr);
        if (r < 0)
            return r;
    }
    return check_words(ret, unknown, reterr);
}

/* ---- values ---------------------------------------------------------------------------------- */

static int read_number(const Words *words, int key, uint64_t least, uint64_t most, uint64_t *ret,
                       PenError *reterr)
{
    char expected[64];
    uint64_t v;
    if (word_number(words->values[key], &v) && v >= least && v <= most) {
        *ret = v;
        return PEN_OK;
    }
    snprintf(expected, sizeof expected, "a number from %" PRIu64 " to %" PRIu64, least, most);
    return fail_value(reterr, key, words->values[key], expected);
}

static int read_hash(const Words *words, int key, uint64_t *ret, PenError *reterr)
{
    Word w = words->values[key];
    if (w.n != HASH_DIGITS || !word_hex(w, ret))
        return fail_value(reterr, key, w, "16 hexadecimal digits");
    return PEN_OK;
}

static int read_pack(const Words *words, uint8_t ret[16], PenError *reterr)
{
    Word w = words->values[KEY_PACK];
    uint64_t v = 0;
    bool ok = w.n == PACK_DIGITS;
    for (size_t i = 0; ok && i < 16; i++) {
        ok = word_hex((Word){w.at + 2 * i, 2}, &v);
        ret[i] = (uint8_t)v;
    }
    return ok ? PEN_OK : fail_value(reterr, KEY_PACK, w, "32 hexadecimal digits");
}

/* Lanes, window and block: at least 1 each by blocks, 0 otherwise. */
static int read_lanes(const Words *words, PenOrderPlan *o, PenError *reterr)
{
    bool by_block = pen__order_by_block(o->kind);
    uint64_t least = by_block ? 1 : 0;
    uint64_t lanes = 0;
    uint64_t window = 0;
    int r = read_number(words, KEY_LANES, least, by_block ? PEN_LANES_MOST : 0, &lanes, reterr);
    if (r == PEN_OK)
        r = read_number(words, KEY_WINDOW, least, by_block ? PEN_LANES_MOST : 0, &window, reterr);
    if (r == PEN_OK)
        r = read_number(words, KEY_BLOCK, least, by_block ? PEN_MAX_BLOCK_SAMPLES : 0,
                        &o->block_samples, reterr);
    o->lanes = (uint32_t)lanes;
    o->window = (uint32_t)window;
    return r;
}

static int read_order(const Words *words, PenOrderPlan *o, PenError *reterr)
{
    int r = read_number(words, KEY_SAMPLES, 1, PEN_PERMUTE_MOST, &o->n, reterr);
    if (r == PEN_OK)
        r = read_number(words, KEY_SEED, 0, UINT64_MAX, &o->seed, reterr);
    if (r < 0)
        return r;
    while (pen__order_name(o->kind) && !word_is(words->values[KEY_ORDER], pen__order_name(o->kind)))
        o->kind++;
    if (!pen__order_name(o->kind))
        return fail_value(reterr, KEY_ORDER, words->values[KEY_ORDER],
                          "sequential, random, block or sticky");
    return read_lanes(words, o, reterr);
}

/* The table may have more places than the epoch has samples. */
static int read_group(const Words *words, PenState *s, PenError *reterr)
{
    uint64_t ranks = 0, batch = 0;
    if (!has_group(words))
        return PEN_OK;
    int r = read_number(words, KEY_RANKS, 1, UINT32_MAX, &ranks, reterr);
    if (r == PEN_OK)
        r = read_number(words, KEY_BATCH, 1, UINT32_MAX, &batch, reterr);
    if (r == PEN_OK)
        r = read_number(words, KEY_PLACE, 0, PEN_PERMUTE_MOST, &s->place, reterr);
    s->group = (PenGrouping){.batch = (uint32_t)batch, .ranks = (uint32_t)ranks};
    return r;
}

/* A step has at least one sample. */
static int read_step(const Words *words, PenState *s, PenError *reterr)
{
    s->by_step = words->values[KEY_STEP].n > 0;
    return s->by_step ? read_number(words, KEY_STEP, 0, s->position, &s->step, reterr) : PEN_OK;
}

int pen__state_read(const char *text, PenState *ret, PenError *reterr)
{
    Words words = {0};
    PenState s = {0};
    int r = split_words(text, &words, reterr);
    if (r == PEN_OK)
        r = read_order(&words, &s.order, reterr);
    if (r == PEN_OK)
        r = read_number(&words, KEY_EPOCH, 0, PEN_EPOCH_MOST, &s.epoch, reterr);
    if (r == PEN_OK)
        r = read_number(&words, KEY_POSITION, 0, s.order.n, &s.position, reterr);
    if (r == PEN_OK)
        r = read_pack(&words, s.pack_id, reterr);
    if (r == PEN_OK)
        r = read_hash(&words, KEY_PIPELINE, &s.pipeline, reterr);
    if (r == PEN_OK)
        r = read_hash(&words, KEY_SUBSET, &s.subset, reterr);
    if (r == PEN_OK)
        r = read_group(&words, &s, reterr);
    if (r == PEN_OK)
        r = read_step(&words, &s, reterr);
    if (r == PEN_OK)
        *ret = s;
    return r;
}

/* ---- comparing ------------------------------------------------------------------------------- */

#define GO_ON "pass strict=False to continue anyway"

static int fail_other(PenError *reterr, const char *what, const char *theirs, const char *mine)
{
    return pen__fail(reterr, PEN_E_INVALID, "load/state",
                     "state: saved with another %s (%s, expected %s); " GO_ON, what, theirs, mine);
}

static int match_hash(const char *what, uint64_t mine, uint64_t theirs, PenError *reterr)
{
    char a[HASH_DIGITS + 1], b[HASH_DIGITS + 1];
    if (mine == theirs)
        return PEN_OK;
    snprintf(a, sizeof a, "%016" PRIx64, theirs);
    snprintf(b, sizeof b, "%016" PRIx64, mine);
    return fail_other(reterr, what, a, b);
}

static int match_number(int key, uint64_t mine, uint64_t theirs, PenError *reterr)
{
    if (mine == theirs)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, "load/state",
                     "state: saved with %s=%" PRIu64 ", expected %" PRIu64 "; " GO_ON,
                     key_names[key], theirs, mine);
}

static int match_order(const PenOrderPlan *mine, const PenOrderPlan *theirs, PenError *reterr)
{
    int r = match_number(KEY_SEED, mine->seed, theirs->seed, reterr);
    if (r == PEN_OK)
        r = match_number(KEY_SAMPLES, mine->n, theirs->n, reterr);
    if (r < 0)
        return r;
    if (mine->kind != theirs->kind)
        return pen__fail(reterr, PEN_E_INVALID, "load/state",
                         "state: saved with order=%s, expected %s; " GO_ON,
                         pen__order_name(theirs->kind), pen__order_name(mine->kind));
    if (!pen__order_by_block(mine->kind))
        return PEN_OK;
    r = match_number(KEY_LANES, mine->lanes, theirs->lanes, reterr);
    if (r == PEN_OK)
        r = match_number(KEY_WINDOW, mine->window, theirs->window, reterr);
    if (r == PEN_OK)
        r = match_number(KEY_BLOCK, mine->block_samples, theirs->block_samples, reterr);
    return r;
}

int pen__state_match(const PenState *mine, const PenState *theirs, PenError *reterr)
{
    char a[PACK_DIGITS + 1], b[PACK_DIGITS + 1];
    if (memcmp(mine->pack_id, theirs->pack_id, sizeof mine->pack_id) != 0) {
        hex_write(theirs->pack_id, a);
        hex_write(mine->pack_id, b);
        return fail_other(reterr, "pack", a, b);
    }
    if (mine->by_step != theirs->by_step)
        return pen__fail(reterr, PEN_E_INVALID, "load/state",
                         "state: saved with%s a token budget (tokens, lengths), expected one "
                         "with%s; " GO_ON,
                         theirs->by_step ? "" : "out", mine->by_step ? "" : "out");
    int r = match_hash("pipeline", mine->pipeline, theirs->pipeline, reterr);
    if (r == PEN_OK)
        r = match_hash("subset, weights, buckets or lengths", mine->subset, theirs->subset, reterr);
    return r == PEN_OK ? match_order(&mine->order, &theirs->order, reterr) : r;
}
