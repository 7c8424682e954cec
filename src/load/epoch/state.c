/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/state.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sha256.h"
#include "pack/format/format.h"

enum { VERSION = 2, SHOWN = 40, PACK_DIGITS = 32, HASH_DIGITS = 16 };

enum {
    KEY_VERSION,
    KEY_EPOCH,
    KEY_POSITION,
    KEY_SAMPLES,
    KEY_SEED,
    KEY_ORDER,
    KEY_BUFFER,
    KEY_BLOCK,
    KEY_PACK,
    KEY_PIPELINE,
    KEY_SUBSET,
    KEY_HASH,
    N_NEEDED,
    KEY_BATCH = N_NEEDED, /* with one of the two after it */
    KEY_PLACE,            /* with buckets alone */
    KEY_STEP,             /* with a token budget alone */
    N_KEYS
};

static const char *const key_names[N_KEYS] = {
    "version", "epoch",          "position",     "samples", "seed",
    "order",   "shuffle_buffer", "block",        "pack",    "pipeline",
    "subset",  "hash",           "global_batch", "place",   "step"};

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

static uint64_t buffer_of(const PenOrderPlan *o)
{
    return pen__order_has_streams(o->kind) ? o->streams * o->block_samples : 0;
}

uint64_t pen__state_hash(const PenState *s)
{
    const PenOrderPlan *o = &s->order;
    uint64_t has_streams = pen__order_has_streams(o->kind);
    uint64_t words[] = {
        (uint64_t)o->kind, o->n,       o->seed,         has_streams * o->streams,
        s->subset,         s->by_step, s->global_batch, has_streams * o->block_samples};
    PenSha256 hash;
    uint8_t bytes[8], sum[32];
    pen__sha256_init(&hash);
    pen__sha256_update(&hash, s->pack_id, sizeof s->pack_id);
    for (size_t i = 0; i < PEN_LEN(words); i++) {
        pen__store64(bytes, words[i]);
        pen__sha256_update(&hash, bytes, sizeof bytes);
    }
    pen__sha256_final(&hash, sum);
    return pen__load64(sum);
}

int pen__state_write(const PenState *s, char *buf, PenError *reterr)
{
    const PenOrderPlan *o = &s->order;
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
             " order=%s shuffle_buffer=%" PRIu64 " block=%" PRIu64 " pack=%s pipeline=%016" PRIx64
             " subset=%016" PRIx64 " hash=%016" PRIx64,
             VERSION, s->epoch, s->position, o->n, o->seed, pen__order_name(o->kind), buffer_of(o),
             buffer_of(o) ? o->block_samples : 0, pack, s->pipeline, s->subset, pen__state_hash(s));
    if (s->global_batch) {
        size_t n = strlen(buf);
        snprintf(buf + n, PEN_STATE_BYTES - n, " global_batch=%" PRIu64 " %s=%" PRIu64,
                 s->global_batch, s->by_step ? "step" : "place", s->by_step ? s->step : s->place);
    }
    return PEN_OK;
}

/* ---- parsing the text ------------------------------------------------------------------- */

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

static bool has(const Words *words, int key)
{
    return words->values[key].n > 0;
}

static int check_words(const Words *words, Word unknown, PenError *reterr)
{
    char shown[SHOWN + 4];
    Word version = words->values[KEY_VERSION];
    if (version.n && !word_is(version, "2"))
        return fail_value(reterr, KEY_VERSION, version,
                          "2; load it with the version of penstock that wrote it");
    for (int i = 0; i < N_NEEDED; i++)
        if (!has(words, i))
            return pen__fail(reterr, PEN_E_INVALID, "load/state",
                             "state: %s is missing, expected version=2 epoch=... as saved",
                             key_names[i]);
    if (unknown.n)
        return pen__fail(reterr, PEN_E_INVALID, "load/state",
                         "state: \"%s\" is not a key of version 2, expected only epoch, position, "
                         "samples, seed, order, shuffle_buffer, block, pack, pipeline, subset, "
                         "hash, global_batch, place, step",
                         show(unknown, shown));
    if (has(words, KEY_BATCH) != (has(words, KEY_PLACE) || has(words, KEY_STEP)) ||
        (has(words, KEY_PLACE) && has(words, KEY_STEP)))
        return pen__fail(reterr, PEN_E_INVALID, "load/state",
                         "state: expected global_batch with place (of buckets) or with step (of a "
                         "token budget), or none of them");
    return PEN_OK;
}

static int split_words(const char *text, Words *ret, PenError *reterr)
{
    Word unknown = {0};
    Word w;
    if (!text || !*text)
        return pen__fail(reterr, PEN_E_INVALID, "load/state",
                         "state: empty, expected version=2 epoch=... as saved");
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

/* The buffer is a valid number of streams, each of one block. */
static int read_streams(const Words *words, PenOrderPlan *o, PenError *reterr)
{
    bool has_streams = pen__order_has_streams(o->kind);
    uint64_t buffer, most = has_streams ? PEN_PERMUTE_MOST : 0;
    int r = read_number(words, KEY_BLOCK, has_streams, has_streams ? PEN_MAX_BLOCK_SAMPLES : 0,
                        &o->block_samples, reterr);
    if (r == PEN_OK)
        r = read_number(words, KEY_BUFFER, has_streams, most, &buffer, reterr);
    if (r < 0 || !has_streams)
        return r;
    o->streams = pen__streams_for(buffer, o->block_samples);
    if (buffer_of(o) != buffer)
        return fail_value(reterr, KEY_BUFFER, words->values[KEY_BUFFER],
                          "3 * 2^k blocks of samples, 6 or more");
    return PEN_OK;
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
                          "sequential, random, shuffle or sticky");
    return read_streams(words, o, reterr);
}

/* The table may have more places than the epoch has samples; a step has at least one sample. */
static int read_steps(const Words *words, PenState *s, PenError *reterr)
{
    s->by_step = has(words, KEY_STEP);
    if (!has(words, KEY_BATCH))
        return PEN_OK;
    int r = read_number(words, KEY_BATCH, 1, UINT64_C(1) << 47, &s->global_batch, reterr);
    if (r < 0)
        return r;
    return s->by_step ? read_number(words, KEY_STEP, 0, s->position, &s->step, reterr)
                      : read_number(words, KEY_PLACE, 0, PEN_PERMUTE_MOST, &s->place, reterr);
}

/* It follows from the other values: another one means that the text was damaged. */
static int check_hash(const Words *words, const PenState *s, PenError *reterr)
{
    uint64_t hash;
    int r = read_hash(words, KEY_HASH, &hash, reterr);
    if (r == PEN_OK && hash != pen__state_hash(s))
        r = fail_value(reterr, KEY_HASH, words->values[KEY_HASH],
                       "the hash of the other values, as saved");
    return r;
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
        r = read_steps(&words, &s, reterr);
    if (r == PEN_OK)
        r = check_hash(&words, &s, reterr);
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
    if (!pen__order_has_streams(mine->kind))
        return PEN_OK;
    r = match_number(KEY_BUFFER, buffer_of(mine), buffer_of(theirs), reterr);
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
    int r = match_number(KEY_BATCH, mine->global_batch, theirs->global_batch, reterr);
    if (r == PEN_OK)
        r = match_hash("pipeline", mine->pipeline, theirs->pipeline, reterr);
    if (r == PEN_OK)
        r = match_hash("subset, weights, buckets or lengths", mine->subset, theirs->subset, reterr);
    return r == PEN_OK ? match_order(&mine->order, &theirs->order, reterr) : r;
}
