/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a packing job, with two stores: that of the sources and that of the pack. */
#include "base/error.h"
#include "base/mem.h"
#include "sim/packing.h"

#define WHERE "sim/packing"

static void answer(void *ctx, const PenSimAsk *ask, PenSimAnswer *ret)
{
    PenSimPacking *p = ctx;
    bool of_sources = ask->client % PEN_SIM_CALLERS == PEN_SIM_OF_SOURCES;
    pen__sim_store_answer(of_sources ? &p->sources : &p->store, ask, ret);
}

int pen__sim_packing_open_net(PenSimPacking *p, double weight, PenError *reterr)
{
    PenSimServer server = {.answer = answer, .ctx = p};
    PenSimPack sources = {.n_shards = p->job.n_samples, .prefixes = p->s.source_prefixes};
    p->net = pen__sim_net_new(p->job.seed, &server);
    if (!p->net)
        return pen__fail_memory(reterr, WHERE, "network");
    pen__sim_store_init(&p->sources, &p->job, &sources, weight);
    pen__sim_store_init(&p->store, &p->job, &p->pack, weight);
    p->store.per_s = p->s.prefix_writes_per_s;
    p->sources.net = p->store.net = p->plan.net = p->net;
    uint64_t bytes_per_s = (uint64_t)((double)p->job.store_bytes_per_s / weight);
    return pen__sim_net_limit(p->net, bytes_per_s);
}

int pen__sim_packing_open_node(const PenSimPacking *p, PenSimNode *ret, PenError *reterr)
{
    const PenSimSettings *job = &p->job;
    ret->in = pen__sim_net_link(p->net, job->node_bytes_per_s, job->connection_bytes_per_s);
    ret->out = pen__sim_net_link(p->net, job->node_bytes_per_s, job->connection_bytes_per_s);
    return ret->in && ret->out ? PEN_OK : pen__fail_memory(reterr, WHERE, "node");
}

void pen__sim_packing_close_net(PenSimPacking *p)
{
    for (uint32_t i = 0; i < p->n_built; i++)
        pen__sim_task_fini(&p->tasks[i]);
    p->n_built = 0;
    pen__sim_net_free(&p->net);
    pen__free(p->nodes);
    pen__free(p->tasks);
    p->nodes = NULL;
    p->tasks = NULL;
}
