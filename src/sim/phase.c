/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/phase.h"

#include <math.h>

#include "base/attr.h"
#include "sim/store.h"
#include "sim/task.h"

enum { MOST_SIMULATED = 20000 }; /* requests of one kind in a row */
enum { LIST_KEYS = 1000, LIST_ENTRY_BYTES = 250 };
enum { SMALL_BYTES = 512, RECORD_BYTES = 4096, PARTS_OF_A_SIZE = 1000 };
enum { AT_ONCE = 16 }; /* requests of finalise, see ingest/job/finalise.c and manage/gc.c */

/* ---- requests in a row ----------------------------------------------------------------------- */

typedef struct Row {
    PenSimPhase *phase;
    PenSimCaller *caller;
    PenSimRequest request;
    uint64_t left, ended, n;
} Row;

static void start_one(Row *row);

static void one_done(void *ctx)
{
    Row *row = ctx;
    row->ended++;
    start_one(row);
}

static void start_one(Row *row)
{
    if (!row->left)
        return;
    row->left--;
    pen__sim_call(row->caller, &row->request, one_done, row);
}

static void run(PenSimPhase *p, PenSimCaller *caller, PenSimRequest request, double n,
                uint32_t at_once)
{
    uint64_t simulated = (uint64_t)PEN_MIN(n, (double)MOST_SIMULATED);
    Row row = {.phase = p, .caller = caller, .request = request, .left = simulated, .n = simulated};
    uint64_t start = pen__sim_net_now(p->net);
    for (uint32_t i = 0; i < at_once; i++)
        start_one(&row);
    while (row.ended < row.n && p->fault.r == PEN_OK && pen__sim_net_step(p->net, UINT64_MAX / 2))
        ;
    p->requests[request.kind] += n;
    if (simulated)
        p->seconds += (double)(pen__sim_net_now(p->net) - start) / 1e9 * (n / (double)simulated);
}

static void ask(PenSimPhase *p, PenSimKind kind, double n, uint32_t at_once, uint64_t bytes)
{
    run(p, &p->process.callers[pen__sim_caller_of(kind)],
        (PenSimRequest){kind, PEN_SIM_MANIFEST, bytes}, n, at_once);
}

static void ask_one(PenSimPhase *p, PenSimKind kind, uint64_t bytes)
{
    ask(p, kind, 1, 1, bytes);
}

/* Parts grow by 8 MiB after each thousand. */
static double count_parts(double bytes)
{
    double n = 0;
    for (double size = PEN_SIM_PART_BYTES; bytes > 0; size += PEN_SIM_PART_BYTES) {
        double parts = PEN_MIN(ceil(bytes / size), (double)PARTS_OF_A_SIZE);
        n += parts;
        bytes -= parts * size;
    }
    return PEN_MAX(n, 1);
}

static void upload(PenSimPhase *p, double bytes)
{
    double n = count_parts(bytes);
    ask_one(p, PEN_SIM_POST, SMALL_BYTES);
    ask(p, PEN_SIM_PUT, n, PEN_SIM_PARTS_AT_ONCE, (uint64_t)(bytes / n));
    ask_one(p, PEN_SIM_POST, SMALL_BYTES);
    ask_one(p, PEN_SIM_HEAD, SMALL_BYTES);
}

static double pages(double keys)
{
    return PEN_MAX(ceil(keys / LIST_KEYS), 1);
}

static int result(const PenSimPhase *p, PenError *reterr)
{
    if (p->fault.r < 0 && reterr)
        *reterr = p->fault.err;
    return p->fault.r;
}

/* ---- plan ------------------------------------------------------------------------------------ */

/* Requests for the list of the sources, see net/remote/list_wide.c. */
enum { RANGES_WANTED = 8 * AT_ONCE, PAGES_OF_A_RANGE = 4, MOST_FOLDERS_OF_A_PAGE = 250 };

typedef struct Lists {
    double in_order, side_by_side;
    uint32_t at_once; /* of the latter */
} Lists;

/* All folders have the same number of objects. Each range but the last ends with a page that has
 * objects behind it. */
static Lists count_lists(double samples, uint32_t folders)
{
    double each = samples / folders, of_a_page = PEN_MIN(ceil(LIST_KEYS / each), folders);
    double bounds = folders - of_a_page; /* folders that the first page does not have */
    Lists in_order = {.in_order = pages(samples)};
    if (samples <= LIST_KEYS || folders == 1 || of_a_page > MOST_FOLDERS_OF_A_PAGE)
        return in_order;
    in_order.in_order++; /* the folders: they are at most 256 */
    if (bounds < 1)
        return in_order;
    double step =
        PEN_MAX(PEN_MIN(floor(bounds / RANGES_WANTED), PAGES_OF_A_RANGE * of_a_page), of_a_page);
    double ranges = floor(bounds / step) + 1, range = floor(step * each / LIST_KEYS) + 1;
    double first = (of_a_page + step - 1) * each - LIST_KEYS;
    double last = samples - LIST_KEYS - first - PEN_MAX(ranges - 2, 0) * step * each;
    if (ranges < 2)
        return in_order;
    return (Lists){.in_order = 2,
                   .side_by_side =
                       floor(first / LIST_KEYS) + 1 + (ranges - 2) * range + pages(last),
                   .at_once = (uint32_t)PEN_MIN(ranges, AT_ONCE)};
}

int pen__sim_phase_plan(PenSimPhase *p, const PenSimJobSize *size, PenError *reterr)
{
    uint64_t keys = (uint64_t)PEN_MIN(size->samples, (double)LIST_KEYS);
    PenSimRequest page = {PEN_SIM_LIST, 0, keys * (size->key_bytes + LIST_ENTRY_BYTES)};
    ask_one(p, PEN_SIM_HEAD, SMALL_BYTES);
    ask_one(p, PEN_SIM_POST, SMALL_BYTES); /* may it write here? */
    ask_one(p, PEN_SIM_DELETE, SMALL_BYTES);
    Lists lists = count_lists(size->samples, size->folders);
    run(p, &p->process.callers[PEN_SIM_OF_SOURCES], page, lists.in_order, 1);
    run(p, &p->process.callers[PEN_SIM_OF_SOURCES], page, lists.side_by_side, lists.at_once);
    ask_one(p, PEN_SIM_HEAD, SMALL_BYTES); /* the plan of an earlier attempt */
    upload(p, (double)size->plan_bytes);
    ask_one(p, PEN_SIM_PUT, SMALL_BYTES); /* its address */
    return result(p, reterr);
}

/* ---- finalise -------------------------------------------------------------------------------- */

static void read_rests(PenSimPhase *p, const PenSimJobSize *size)
{
    ask(p, PEN_SIM_GET, size->rests, AT_ONCE, PEN_SIM_END_BYTES);
    ask(p, PEN_SIM_GET, size->rests, AT_ONCE, PEN_SIM_END_BYTES);
    ask(p, PEN_SIM_GET, size->rests, AT_ONCE,
        size->rests > 0 ? (uint64_t)(size->rest_bytes / size->rests) : 0);
}

/* What the manifest does not name is removed: the plan, the records and the rests. */
static void clean_up(PenSimPhase *p, const PenSimJobSize *size)
{
    ask_one(p, PEN_SIM_HEAD, SMALL_BYTES);
    ask_one(p, PEN_SIM_GET, size->manifest_bytes);
    ask_one(p, PEN_SIM_DELETE, SMALL_BYTES);
    ask(p, PEN_SIM_LIST, pages(size->shards + size->rests + size->tasks), 1,
        (uint64_t)LIST_KEYS * LIST_ENTRY_BYTES);
    ask(p, PEN_SIM_DELETE, 1 + size->tasks + size->rests, AT_ONCE, SMALL_BYTES);
    ask(p, PEN_SIM_LIST, pages(size->lost), 1, SMALL_BYTES); /* uploads */
    ask(p, PEN_SIM_DELETE, size->lost, 1, SMALL_BYTES);
}

int pen__sim_phase_finalise(PenSimPhase *p, const PenSimJobSize *size, PenError *reterr)
{
    ask_one(p, PEN_SIM_HEAD, SMALL_BYTES);
    ask_one(p, PEN_SIM_GET, SMALL_BYTES); /* the plan of a writer */
    ask_one(p, PEN_SIM_GET, SMALL_BYTES); /* the address of the plan */
    ask_one(p, PEN_SIM_GET, PEN_SIM_END_BYTES);
    ask(p, PEN_SIM_LIST, pages(size->tasks), 1, (uint64_t)LIST_KEYS * LIST_ENTRY_BYTES);
    ask(p, PEN_SIM_GET, size->tasks, AT_ONCE, RECORD_BYTES);
    ask(p, PEN_SIM_GET, size->shards, AT_ONCE, PEN_SIM_END_BYTES);
    read_rests(p, size);
    if (size->rests > 0) {
        upload(p, size->rest_bytes);
        ask_one(p, PEN_SIM_GET, PEN_SIM_END_BYTES);
    }
    ask_one(p, PEN_SIM_PUT, size->manifest_bytes);
    clean_up(p, size);
    return result(p, reterr);
}
