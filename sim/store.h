/* SPDX-License-Identifier: Apache-2.0 */
/* A model of an object store: how long answers take, how many requests a prefix takes in a second,
 * how often something goes wrong. */
#ifndef PEN_SIM_STORE_H
#define PEN_SIM_STORE_H

#include "sim/net.h"
#include "sim/pack.h"

enum { PEN_SIM_MANIFEST = PEN_SIM_PREFIXES }; /* behind the prefixes of shards: its own */

typedef struct PenSimStore {
    PenSimNet *net; /* set when there is one */
    double latency_ns, sigma;
    uint64_t connect_ns;
    uint32_t per_s;                 /* of a prefix */
    double failures;                /* share of requests */
    double weight;                  /* of a request: it stands for as many */
    double share[PEN_SIM_PREFIXES]; /* of the shards, by prefix */
    uint64_t second;
    uint32_t in_second[PEN_SIM_PREFIXES + 1], all_in_second; /* without the manifest's */
    /* Counted. */
    double most_in_a_s, most_of_manifest; /* of a prefix of shards; of the manifest's */
    uint64_t requests, refused, failed;
} PenSimStore;

void pen__sim_store_init(PenSimStore *s, const PenSimSettings *settings, const PenSimPack *pack,
                         double weight);
/* The server of a network; ctx is the store. A request's URL is the number of its prefix as two
 * hexadecimal digits; "g0" is the manifest's. */
void pen__sim_store_answer(void *ctx, const PenSimAsk *ask, PenSimAnswer *ret);
const char *pen__sim_store_url(unsigned prefix);

#endif
