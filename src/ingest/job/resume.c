/* SPDX-License-Identifier: Apache-2.0 */
/* What an interrupted run has finished: taken over as it is, or, when the plan has become another
 * but the inputs of a shard are unchanged, copied to the name that the shard has now. */
#include "ingest/job/resume.h"
#include "ingest/job/settings.h"

#include <string.h>

#include "base/crc32c.h"
#include "pack/reader/shard_check.h"
#include "pack/write/publish.h"

/* Positions count what is carried over from the pack that is appended to; items do not. */
static int hash_positions(const PenResume *re, uint64_t from, uint64_t end, uint8_t ret[32],
                          PenError *reterr)
{
    const PenJob *job = re->job;
    uint64_t carry = job->carry.n;
    return pen__plan_hash(job->plan, job->first + (from > carry ? from - carry : 0),
                          job->first + (end > carry ? end - carry : 0), ret, reterr);
}

/* Are the inputs of shard number i what they were? 1 yes, 0 no. */
static int same_inputs(const PenResume *re, uint64_t i, PenError *reterr)
{
    const PenFinished *s = &re->list.shards[i];
    uint64_t from = i ? s[-1].end : 0;
    uint64_t items = re->job->end - re->job->first + re->job->carry.n;
    uint8_t hash[32];
    if (s->end <= from || s->end > items)
        return 0;
    int r = hash_positions(re, from, s->end, hash, reterr);
    return r < 0 ? r : memcmp(hash, s->inputs, sizeof hash) == 0;
}

static void own_id(const PenResume *re, uint64_t ordinal, uint8_t ret[PEN_ID_BYTES])
{
    const PenIngestSettings *s = re->job->settings;
    pen__shard_id(pen__plan_info(re->job->plan)->id, s->task, s->n_tasks, ordinal, ret);
}

int pen__resume_may(const PenResume *re, uint64_t ordinal, const PenShardEntry *entry, uint64_t end)
{
    uint8_t id[PEN_ID_BYTES];
    if (ordinal >= re->n_same)
        return 0;
    const PenFinished *s = &re->list.shards[ordinal];
    own_id(re, ordinal, id);
    if (memcmp(s->id, id, sizeof id) != 0)
        return 0;
    return !entry || (end == s->end && entry->file_bytes == s->file_bytes &&
                      memcmp(entry->digest, s->digest, sizeof s->digest) == 0);
}

/* ---- shards of in-place packs ---------------------------------------------------------------- */

enum { PART_BYTES = 8 << 20 };

/* The checksum of the shard's file: all that it has of its samples. Their images are elsewhere, and
 * reading them would take as long as indexing them again. */
static int sum_file(const PenResume *re, const uint8_t *id, uint64_t *ret_bytes, uint32_t *ret_crc,
                    PenError *reterr)
{
    char name[PEN_SHARD_NAME_BYTES];
    PenSource *source = NULL;
    PenBuf buf = {0};
    uint32_t crc = 0;
    pen__shard_name(id, name);
    int r = pen__store_source(re->job->store, name, &source, reterr);
    if (r < 0)
        return r;
    if (pen__buf_reserve(&buf, PART_BYTES) < 0)
        r = pen__fail_memory(reterr, "ingest/resume", name);
    for (uint64_t at = 0; r == PEN_OK && at < source->bytes; at += PART_BYTES) {
        size_t bytes = (size_t)PEN_MIN(source->bytes - at, (uint64_t)PART_BYTES);
        r = pen__source_read(source, buf.data, bytes, at, reterr);
        if (r == PEN_OK)
            crc = pen__crc32c(crc, buf.data, bytes);
    }
    *ret_bytes = source->bytes;
    *ret_crc = crc;
    pen__buf_free(&buf);
    pen__source_close(&source);
    return r;
}

/* Is its file the one that was written? 1 yes, 0 no. */
static int is_stored(const PenResume *re, const PenFinished *s, PenError *reterr)
{
    uint64_t bytes;
    uint32_t crc;
    int r = sum_file(re, s->id, &bytes, &crc, reterr);
    if (r < 0)
        return pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
    return bytes == s->stored_bytes && crc == s->stored_crc;
}

/* ---- noting ---------------------------------------------------------------------------------- */

/* The shard that is moved stays in the list under its old name, behind all others, until the next
 * is moved: should the run end before the old file is removed, the next run removes it. An end of 0
 * keeps it from being taken over. */
static int keep_name(PenResume *re, uint64_t ordinal, PenError *reterr)
{
    PenFinished old = {.end = 0};
    memcpy(old.id, re->list.shards[ordinal].id, sizeof old.id);
    return pen__finished_set(&re->list, re->moving, &old, reterr);
}

int pen__resume_note(PenResume *re, uint64_t ordinal, const PenShardEntry *entry, uint64_t end,
                     PenError *reterr)
{
    PenFinished s = {.end = end, .file_bytes = entry->file_bytes};
    memcpy(s.id, entry->id, sizeof s.id);
    memcpy(s.digest, entry->digest, sizeof s.digest);
    int r =
        hash_positions(re, ordinal ? re->list.shards[ordinal - 1].end : 0, end, s.inputs, reterr);
    if (r == PEN_OK && entry->stored_bytes && !pen__store_remote(re->job->store))
        r = sum_file(re, s.id, &s.stored_bytes, &s.stored_crc, reterr);
    if (ordinal >= re->moving)
        re->list.n = PEN_MIN(re->list.n, ordinal); /* none of those behind it holds any more */
    else if (r == PEN_OK)
        r = keep_name(re, ordinal, reterr);
    if (r == PEN_OK)
        r = pen__finished_set(&re->list, ordinal, &s, reterr);
    return r < 0 ? r : pen__finished_store(re->job->folder, &re->list, reterr);
}

/* ---- copying --------------------------------------------------------------------------------- */

/* The first and the last sample have the positions of the shard's ends; nobody asks for those
 * between them. */
static void place(PenCopied *c, uint64_t block, const PenShard *shard)
{
    uint64_t at = shard->plan_first + block * shard->block_samples;
    for (uint32_t i = 0; i < c->n; i++)
        c->samples[i].position = at + i;
    if (block + 1 == shard->entry.n_blocks)
        c->samples[c->n - 1].position = shard->plan_end - 1;
}

static int copy_blocks(PenResume *re, PenRoll *roll, const PenShard *shard, PenPack *pack,
                       PenError *reterr)
{
    int r = PEN_OK;
    for (uint64_t i = 0; i < shard->n_bad; i++)
        pen__roll_skip(roll);
    for (uint64_t b = 0; r == PEN_OK && b < shard->entry.n_blocks; b++) {
        r = pen__copy_block(pack, b, &re->copied, reterr);
        if (r == PEN_OK)
            place(&re->copied, b, shard);
        for (uint32_t i = 0; r == PEN_OK && i < re->copied.n; i++)
            r = pen__roll_add(roll, &re->copied.samples[i], reterr);
        if (r < 0)
            break;
        pen__copied_free(&re->last); /* written: the roll keeps one full block at most */
        re->last = re->copied;
        re->copied = (PenCopied){0};
    }
    return r;
}

/* Opens the shard as it was listed: 1, or 0 when it is not there, another one, or unreadable. */
static int open_listed(const PenResume *re, const PenFinished *s, PenShard *ret, PenError *reterr)
{
    char name[PEN_SHARD_NAME_BYTES];
    PenSource *source = NULL;
    pen__shard_name(s->id, name);
    int r = pen__store_source(re->job->store, name, &source, reterr);
    if (r < 0)
        return pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
    r = pen__shard_open(ret, source, s->id, NULL, reterr);
    if (r < 0) {
        pen__source_close(&source);
        r = pen__error_accept(r, PEN_E_CORRUPT, reterr);
        return pen__error_accept(r, PEN_E_FORMAT, reterr);
    }
    int same = ret->plan_end == s->end && ret->entry.file_bytes == s->file_bytes &&
               memcmp(ret->entry.digest, s->digest, sizeof s->digest) == 0;
    if (!same)
        pen__shard_close(ret);
    return same;
}

static int copy_shard(PenResume *re, PenRoll *roll, const PenFinished *s, PenError *reterr)
{
    PenShard shard;
    PenPackDraft draft = {0};
    int r = open_listed(re, s, &shard, reterr);
    if (r > 0 && (shard.n_samples % shard.block_samples != 0 ||
                  shard.keys_offset - pen__shard_stat(&shard, PEN_STAT_COLUMNS) <
                      re->job->settings->shard_bytes)) { /* the last one */
        pen__shard_close(&shard);
        r = 0;
    }
    if (r <= 0)
        return r;
    PenManifest m = {.block_samples = shard.block_samples,
                     .n_shards = 1,
                     .schema = re->job->schema,
                     .shards = &shard.entry};
    r = pen__draft_open(&draft, re->job->store, &m, reterr);
    if (r == PEN_OK)
        r = copy_blocks(re, roll, &shard, draft.pack, reterr);
    pen__draft_close(&draft);
    pen__shard_close(&shard);
    return r < 0 ? r : 1;
}

int pen__resume_copy(PenResume *re, PenRoll *roll, uint64_t *position, PenError *reterr)
{
    uint64_t n;
    /* From an object store they would have to be fetched: packing again may well be faster. So
     * would the images of an in-place pack. */
    int r = pen__store_remote(re->job->store) == NULL && !re->job->settings->in_place;
    pen__roll_shards(roll, &n);
    re->moving = re->n_same;
    for (; r > 0 && n < re->n_same; pen__roll_shards(roll, &n)) {
        PenFinished s = re->list.shards[n];
        uint8_t id[PEN_ID_BYTES];
        own_id(re, n, id);
        if (memcmp(s.id, id, sizeof id) == 0)
            break; /* ours, and not to be taken over: it is gone, or another one */
        r = copy_shard(re, roll, &s, reterr);
        if (r <= 0)
            break;
        *position = s.end;
        int removed =
            pen__finished_discard(&(PenFinishedList){&s, 1, 1}, 0, re->job->store, reterr);
        r = removed < 0 ? removed : 1;
    }
    re->moving = 0;
    re->n_same = n;
    if (r >= 0)
        r = pen__finished_discard(&re->list, n, re->job->store, reterr);
    return r;
}

/* ---- checking -------------------------------------------------------------------------------- */

static int check_parts(const PenResume *re, const PenShardRef *ref, PenError *reterr)
{
    const PenJob *job = re->job;
    uint64_t n = pen__shard_pieces(&ref->shard);
    PenBuf buf = {0};
    PenShardPart part = {.end = 0};
    int r = PEN_OK;
    while (r == PEN_OK && part.end < n) {
        part = pen__shard_part(&ref->shard, part.end, PART_BYTES);
        r = pen__shard_part_read(ref, &job->schema, &part, &buf, reterr);
        if (r == PEN_OK)
            r = pen__settings_report(job->settings,
                                     (PenIngestProgress){.stage = "check",
                                                         .done = ref->shard.plan_first,
                                                         .total = job->end - job->first,
                                                         .bad = job->bad.n},
                                     reterr);
    }
    pen__buf_free(&buf);
    return r;
}

/* Is every byte of shard number i the one that was written? 1 yes, 0 no. A machine that went down
 * may have left others. Objects appear whole in a store, which checks them: the roll looks at their
 * ends. */
static int is_whole(const PenResume *re, uint64_t i, PenError *reterr)
{
    PenShardRef ref = {.number = 0};
    PenError damage = {0};
    if (pen__store_remote(re->job->store))
        return 1;
    if (re->list.shards[i].stored_bytes)
        return is_stored(re, &re->list.shards[i], reterr);
    int r = open_listed(re, &re->list.shards[i], &ref.shard, reterr);
    if (r <= 0)
        return r;
    r = check_parts(re, &ref, &damage);
    pen__shard_close(&ref.shard);
    if (r < 0 && r != PEN_E_CORRUPT && reterr)
        *reterr = damage;
    return r == PEN_OK ? 1 : r == PEN_E_CORRUPT ? 0 : r;
}

int pen__resume_open(PenResume *re, PenJob *job, PenError *reterr)
{
    *re = (PenResume){.job = job};
    int r = pen__finished_load(job->folder, &re->list, reterr);
    for (; r >= 0 && re->n_same < re->list.n; re->n_same++) {
        r = same_inputs(re, re->n_same, reterr);
        if (r > 0)
            r = is_whole(re, re->n_same, reterr);
        if (r <= 0)
            break;
    }
    /* What comes behind the first difference is of no use: where a shard begins depends on all
     * before it. */
    if (r >= 0)
        r = pen__finished_discard(&re->list, re->n_same, job->store, reterr);
    if (r >= 0)
        re->list.n = re->n_same;
    return r < 0 ? r : PEN_OK;
}

void pen__resume_close(PenResume *re)
{
    pen__finished_free(&re->list);
    pen__copied_free(&re->copied);
    pen__copied_free(&re->last);
}
