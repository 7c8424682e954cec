/* SPDX-License-Identifier: Apache-2.0 */
/* Packs at s3://, https:// and http:// addresses: where they are asked for, and with what. */
#ifndef PENSTOCK_REMOTE_H
#define PENSTOCK_REMOTE_H

#include <stddef.h>

#include <penstock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a callback for credentials fills in; texts are copied and wiped. */
typedef struct PenCredentials {
    const char *key_id, *secret, *token; /* token may be NULL */
    uint64_t expires_s;                  /* seconds since 1970; 0: never */
} PenCredentials;

/* All may be left as they are: then the environment, the profile and the instance say, as they do
 * for the AWS command line. Nothing here is kept in a pack, a state or a message. */
typedef struct PenRemoteSettings {
    uint32_t struct_size;
    const char
        *endpoint; /* "https://host[:port]"; NULL: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS */
    const char *region;
    const char *profile;
    const char *key_id, *secret, *token; /* given: nothing is looked for */
    /* Else asked for credentials, from a thread of the library's, again before they end. < 0: there
     * are none, and `reterr` says why. */
    int (*credentials)(void *ctx, PenCredentials *ret, PenError *reterr);
    /* Called when what `credentials` gave has been copied; may be NULL. */
    void (*credentials_taken)(void *ctx);
    /* Asked now and then (250 ms) by every thread that waits for a server, without locks. Not 0: it
     * waits no longer, and the call ends with PEN_E_CANCELLED. May be NULL. */
    int (*interrupted)(void *ctx);
    void *ctx;
    /* Threads may need `ctx` for longer than what was opened lives: `hold` is called when something
     * begins to use it, `release` when it ends to, from any thread. May be NULL. */
    void (*hold)(void *ctx);
    void (*release)(void *ctx);
    const char *ca_file; /* certificates to trust instead of the system's */
    const char *proxy;
    int8_t path_style; /* 1: bucket in the path, 0: in the host, -1: by the endpoint */
    uint8_t no_sign;   /* public buckets */
    uint8_t requester_pays;
    uint8_t allow_http;    /* secrets may go over http to hosts other than this one */
    uint32_t deadline_ms;  /* of one request; 0: 30,000 */
    uint32_t outage_ms;    /* how long a server may be away; 0: 300,000 */
    uint32_t in_flight;    /* maximum concurrent requests of this node; 0: 512, 64 per process */
    uint32_t upload_parts; /* parts of one object that are sent at once; 0: 4 */
    /* Processes on this node that share `in_flight`; each gets at least 4. 0: LOCAL_WORLD_SIZE, or
     * in a Slurm task SLURM_STEP_TASKS_PER_NODE or SLURM_NTASKS_PER_NODE; otherwise 1. */
    uint32_t node_ranks;
} PenRemoteSettings;

/* Of one open pack, since it was opened. */
typedef struct PenRemoteStats {
    uint32_t struct_size;
    uint32_t in_flight;  /* requests that are under way now */
    uint32_t limit;      /* as many may be */
    uint64_t requests;   /* all: first ones, and those that follow */
    uint64_t retries;    /* again after a failure */
    uint64_t hedges;     /* a second one for one that is slow */
    uint64_t hedges_won; /* of these, the ones that answered first */
    uint64_t throttles;  /* answers that said "slow down" */
    uint64_t failures;   /* what was given up */
    uint64_t bytes;      /* of bodies that were taken */
} PenRemoteStats;

PEN_API void pen_remote_settings_init(PenRemoteSettings *s);
/* 1: the text is such an address; 0: a path. */
PEN_API int pen_is_remote(const char *text);

#ifdef __cplusplus
}
#endif
#endif
