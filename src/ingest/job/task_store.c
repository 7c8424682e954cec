/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/job/task_store.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/sha256.h"
#include "io/sink.h"
#include "io/source.h"
#include "manage/work.h"

#define WHERE "ingest/tasks"
#define PLAN "plan"

enum { CHUNK_BYTES = 8 << 20, PLAN_NAME_BYTES = sizeof "plan-" + 32 };
/* An address of a plan holds the sources of a command line. */
#define MAX_ADDRESS ((uint64_t)16 << 20)

int pen__tasks_open(const PenIngestSettings *settings, PenStore **ret, PenError *reterr)
{
    char *address = pen__work_path(settings->out, NULL);
    int r = address ? pen__store_open(address, settings->remote, ret, reterr)
                    : pen__fail_memory(reterr, WHERE, settings->out);
    pen__free(address);
    return r;
}

/* ---- reading and writing --------------------------------------------------------------------- */

/* An entire small object. */
static int load(PenStore *work, const char *name, uint64_t limit, PenBuf *ret, PenError *reterr)
{
    PenSource *source = NULL;
    int r = pen__store_source(work, name, &source, reterr);
    if (r < 0)
        return r;
    if (source->bytes > limit)
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                      "%s: expected a small object, found a large one", source->name);
    else if (pen__buf_reserve(ret, (size_t)source->bytes + 1) < 0)
        r = pen__fail_memory(reterr, WHERE, source->name);
    else
        r = pen__source_read(source, ret->data, (size_t)source->bytes, 0, reterr);
    if (r == PEN_OK)
        ret->bytes = (size_t)source->bytes;
    pen__source_close(&source);
    return r;
}

typedef struct Transfer {
    const PenIngestSettings *settings;
    const char *stage;
    uint64_t n_items; /* of the plan, for the progress */
    PenSource *from;
    PenSink *to; /* NULL: only the hash is wanted */
    uint8_t hash[32];
} Transfer;

static int report(const Transfer *t, uint64_t at, PenError *reterr)
{
    double share = (double)at / (double)t->from->bytes;
    return pen__settings_report(t->settings,
                                (PenIngestProgress){.stage = t->stage,
                                                    .done = (uint64_t)(share * (double)t->n_items),
                                                    .total = t->n_items},
                                reterr);
}

static int transfer(Transfer *t, PenError *reterr)
{
    PenSha256 sha;
    uint64_t bytes = t->from->bytes;
    uint8_t *chunk = pen__alloc((size_t)PEN_MIN(bytes, (uint64_t)CHUNK_BYTES) + 1);
    int r = chunk ? PEN_OK : pen__fail_memory(reterr, WHERE, t->from->name);
    pen__sha256_init(&sha);
    for (uint64_t at = 0; at < bytes && r == PEN_OK; at += CHUNK_BYTES) {
        size_t n = (size_t)PEN_MIN(bytes - at, (uint64_t)CHUNK_BYTES);
        r = report(t, at, reterr);
        if (r == PEN_OK)
            r = pen__source_read(t->from, chunk, n, at, reterr);
        if (r == PEN_OK)
            pen__sha256_update(&sha, chunk, n);
        if (r == PEN_OK && t->to)
            r = pen__sink_write(t->to, chunk, n, reterr);
    }
    pen__sha256_final(&sha, t->hash);
    pen__free(chunk);
    return r;
}

static int hash_file(const PenIngestSettings *settings, const char *path, uint64_t n_items,
                     uint8_t ret[32], PenError *reterr)
{
    Transfer t = {.settings = settings, .stage = "hash", .n_items = n_items};
    int r = pen__source_open_file(path, &t.from, reterr);
    if (r < 0)
        return r;
    r = transfer(&t, reterr);
    memcpy(ret, t.hash, sizeof t.hash);
    pen__source_close(&t.from);
    return r;
}

/* ---- the address of a plan ------------------------------------------------------------------- */

/* Layout: magic 8, what pen__plan_end_bytes of the plan is u64, SHA-256 of the plan 32, the hash of
 * its inputs 32, then the sources it was made from, last a crc u32 over all before it. */
enum { ADDRESS_HEAD = 80, CRC_BYTES = 4 };
static const uint8_t address_magic[9] = "PENPLAD2";

typedef struct Address {
    uint64_t end_bytes;
    uint8_t hash[32], inputs[32];
} Address;

static void plan_name(const Address *a, char ret[PLAN_NAME_BYTES])
{
    size_t at = (size_t)snprintf(ret, PLAN_NAME_BYTES, PLAN "-");
    for (int i = 0; i < 16; i++)
        at += (size_t)snprintf(ret + at, PLAN_NAME_BYTES - at, "%02x", a->hash[i]);
}

static int write_address(const Address *a, const PenBuf *sources, PenBuf *ret)
{
    uint8_t head[ADDRESS_HEAD], crc[CRC_BYTES];
    memcpy(head, address_magic, 8);
    pen__store64(head + 8, a->end_bytes);
    memcpy(head + 16, a->hash, sizeof a->hash);
    memcpy(head + 48, a->inputs, sizeof a->inputs);
    int r = pen__buf_add(ret, head, sizeof head);
    if (r == PEN_OK)
        r = pen__buf_add(ret, sources->data, sources->bytes);
    pen__store32(crc, pen__crc32c(0, ret->data, ret->bytes));
    return r < 0 ? r : pen__buf_add(ret, crc, sizeof crc);
}

static int load_address(PenStore *work, PenBuf *ret_text, Address *ret, PenError *reterr)
{
    int r = load(work, PLAN, MAX_ADDRESS, ret_text, reterr);
    if (r < 0)
        return r;
    const uint8_t *p = ret_text->data;
    size_t n = ret_text->bytes;
    if (n < ADDRESS_HEAD + CRC_BYTES || memcmp(p, address_magic, 8) != 0 ||
        pen__crc32c(0, p, n - CRC_BYTES) != pen__load32(p + n - CRC_BYTES))
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s/" PLAN ": expected a plan of this version, found something else; "
                         "discard it with 'penstock gc --abandon'",
                         pen__store_name(work));
    ret->end_bytes = pen__load64(p + 8);
    memcpy(ret->hash, p + 16, sizeof ret->hash);
    memcpy(ret->inputs, p + 48, sizeof ret->inputs);
    return PEN_OK;
}

/* ---- uploading ------------------------------------------------------------------------------- */

static int upload_plan(PenStore *work, const PenIngestSettings *settings, const char *path,
                       const char *name, uint64_t n_items, PenError *reterr)
{
    Transfer t = {.settings = settings, .stage = "upload", .n_items = n_items};
    int r = pen__store_has(work, name, reterr);
    if (r != PEN_OK)
        return r < 0 ? r : PEN_OK; /* of an earlier attempt: the name has the hash of its bytes */
    r = pen__source_open_file(path, &t.from, reterr);
    if (r == PEN_OK)
        r = pen__store_sink(work, "", name, &t.to, reterr);
    if (r == PEN_OK)
        r = transfer(&t, reterr);
    if (r == PEN_OK)
        r = pen__store_commit(work, &t.to, name, reterr);
    pen__sink_abort(&t.to);
    pen__source_close(&t.from);
    return r;
}

/* The plan that is there is fine when it is the same: two started at once, or the response to an
 * earlier attempt was lost. */
static int publish_address(PenStore *work, const char *out, const PenBuf *address, PenError *reterr)
{
    PenBuf found = {0};
    Address other;
    int r = pen__store_put(work, "", PLAN, address, PEN_IF_ABSENT, NULL, reterr);
    if (r != PEN_E_EXISTS && r != PEN_E_CHANGED)
        return r;
    r = load_address(work, &found, &other, reterr);
    if (r == PEN_OK &&
        (found.bytes != address->bytes || memcmp(found.data, address->data, found.bytes) != 0))
        r = pen__fail(reterr, PEN_E_EXISTS, WHERE,
                      "%.300s/" PLAN ": another plan, of other inputs, sources or settings, exists "
                      "here; finish it with 'penstock finalise', or discard it and what its tasks "
                      "have written with 'penstock gc --abandon %.300s'",
                      pen__store_name(work), out);
    pen__buf_free(&found);
    return r;
}

int pen__tasks_put_plan(PenStore *work, const PenIngestSettings *settings, const char *home,
                        const PenPlan *plan, PenError *reterr)
{
    Address a = {.end_bytes = pen__plan_end_bytes(plan)};
    uint64_t n_items = pen__plan_info(plan)->n_items;
    char name[PLAN_NAME_BYTES];
    PenBuf sources = {0}, address = {0};
    char *path = pen__work_path(home, "plan");
    char *sources_path = pen__work_path(home, "sources");
    memcpy(a.inputs, pen__plan_info(plan)->inputs, sizeof a.inputs);
    int r = path && sources_path ? hash_file(settings, path, n_items, a.hash, reterr)
                                 : pen__fail_memory(reterr, WHERE, home);
    if (r == PEN_OK)
        r = pen__file_load(sources_path, MAX_ADDRESS / 2, &sources, reterr);
    if (r == PEN_OK && write_address(&a, &sources, &address) < 0)
        r = pen__fail_memory(reterr, WHERE, home);
    if (r == PEN_OK) {
        plan_name(&a, name);
        r = upload_plan(work, settings, path, name, n_items, reterr);
    }
    if (r == PEN_OK)
        r = publish_address(work, settings->out, &address, reterr);
    pen__buf_free(&sources);
    pen__buf_free(&address);
    pen__free(sources_path);
    pen__free(path);
    return r;
}

/* ---- reading the plan ------------------------------------------------------------------------ */

/* The name of the object has the hash of all its bytes, which nobody reads here. What is read of it
 * has checksums of its own, and the hash of the inputs says that it is the plan of the address. */
static int open_plan(PenStore *work, const Address *a, PenPlan **ret, PenError *reterr)
{
    char name[PLAN_NAME_BYTES];
    PenPlan *plan = NULL;
    plan_name(a, name);
    int r = pen__plan_open_remote(pen__store_remote(work), name, a->end_bytes, &plan, reterr);
    if (r < 0)
        return r;
    if (memcmp(pen__plan_info(plan)->inputs, a->inputs, sizeof a->inputs) != 0) {
        pen__plan_close(&plan);
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s/%s: expected the plan that was uploaded, found another; discard it "
                         "with 'penstock gc --abandon'",
                         pen__store_name(work), name);
    }
    *ret = plan;
    return PEN_OK;
}

int pen__tasks_open_plan(PenStore *work, const char *out, PenBuf *ret_sources, PenPlan **ret,
                         PenError *reterr)
{
    Address a;
    PenBuf address = {0};
    int r = load_address(work, &address, &a, reterr);
    if (r == PEN_E_NOT_FOUND)
        pen__fail(reterr, r, WHERE, "%s: no plan found; run 'penstock plan' first", out);
    if (r == PEN_OK && pen__buf_add(ret_sources, address.data + ADDRESS_HEAD,
                                    address.bytes - ADDRESS_HEAD - CRC_BYTES) < 0)
        r = pen__fail_memory(reterr, WHERE, out);
    if (r == PEN_OK)
        r = open_plan(work, &a, ret, reterr);
    pen__buf_free(&address);
    return r;
}

/* ---- listing --------------------------------------------------------------------------------- */

static int add_name(void *ctx, const char *name, const PenObject *object)
{
    (void)object;
    return pen__names_add(ctx, name) < 0 ? PEN_E_NO_MEMORY : 0;
}

int pen__tasks_list(PenStore *work, const char *home, PenNames *ret, PenError *reterr)
{
    if (work) {
        int r = pen__remote_list(pen__store_remote(work), add_name, ret, reterr);
        return r == PEN_E_NO_MEMORY ? pen__fail_memory(reterr, WHERE, pen__store_name(work)) : r;
    }
    char *path = pen__work_path(home, NULL);
    int r = path ? pen__dir_list(path, ret, reterr) : pen__fail_memory(reterr, WHERE, home);
    pen__free(path);
    return r;
}
