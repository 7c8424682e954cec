/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Access to packs at s3://, https:// and http:// URLs: endpoint, credentials, limits. */
#ifndef PENSTOCK_REMOTE_H
#define PENSTOCK_REMOTE_H

#include <stddef.h>

#include <penstock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Filled in by a credentials callback. The library copies the strings, and clears its copies when
 * it no longer needs them. */
typedef struct PenCredentials {
    const char *key_id, *secret, *token; /**< token may be NULL */
    uint64_t expires_s;                  /**< seconds since 1970; 0 = never */
} PenCredentials;

/** With the defaults, the environment, the profile and the instance metadata supply the values, as
 * for the AWS command line. Nothing of this is stored in a pack, a loader state or a message. */
typedef struct PenRemoteSettings {
    /** "https://host[:port]"; NULL = AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or AWS itself */
    const char *endpoint;
    const char *region;
    const char *profile;
    const char *key_id, *secret, *token; /**< if set, no other source of credentials is used */
    /** Called for credentials if key_id is NULL, from a thread of the library, and again before
     * they expire. Returns a PenStatus; on failure it fills `reterr`. May be NULL. */
    int (*credentials)(void *ctx, PenCredentials *ret, PenError *reterr);
    /** Called after the library has copied what `credentials` returned. May be NULL. */
    void (*credentials_taken)(void *ctx);
    /** Called about every 250 ms by each thread that waits for a server; the thread holds no lock.
     * A return value other than 0 ends the wait with PEN_E_CANCELLED. May be NULL. */
    int (*interrupted)(void *ctx);
    void *ctx;
    /** Threads of the library may need `ctx` after the pack is closed. `hold` is called when
     * something starts to use ctx, `release` when it stops, from any thread. Each may be NULL. */
    void (*hold)(void *ctx);
    void (*release)(void *ctx);
    const char *ca_file; /**< CA certificates to use instead of the system's */
    const char *proxy;
    int8_t path_style; /**< 1 = bucket in the path, 0 = in the host name, -1 = by the endpoint */
    uint8_t no_sign;   /**< 1 = send unsigned requests, for public buckets */
    uint8_t requester_pays;
    uint8_t allow_http;    /**< 1 = sign requests over http to other hosts than localhost too */
    uint32_t deadline_ms;  /**< of one request; 0 = 30,000 */
    uint32_t outage_ms;    /**< how long failed requests are retried; 0 = 300,000 */
    uint32_t in_flight;    /**< concurrent requests of this node; 0 = 512, 64 per process */
    uint32_t upload_parts; /**< parts of one object that are uploaded in parallel; 0 = 4 */
    /** Processes on this node that share `in_flight`; each gets at least 4. 0 = LOCAL_WORLD_SIZE,
     * or in a Slurm task SLURM_STEP_TASKS_PER_NODE or SLURM_NTASKS_PER_NODE; otherwise 1. */
    uint32_t node_ranks;
} PenRemoteSettings;

/** Counters of one open pack, since it was opened. */
typedef struct PenRemoteStats {
    uint32_t in_flight;  /**< requests running now */
    uint32_t limit;      /**< requests that may run at once */
    uint64_t requests;   /**< all requests, with retries and hedged ones */
    uint64_t retries;    /**< repeated after a failure */
    uint64_t hedges;     /**< hedged requests: second ones sent because the first was slow */
    uint64_t hedges_won; /**< hedged requests that answered first */
    uint64_t throttles;  /**< responses that asked to slow down */
    uint64_t failures;   /**< operations that failed after all retries */
    uint64_t bytes;      /**< received in response bodies */
} PenRemoteStats;

PEN_API void pen_remote_settings_init(PenRemoteSettings *settings);

/** Returns 1 if the text is an s3://, https:// or http:// URL, and 0 if it is a path. */
PEN_API int pen_is_remote(const char *text);

/** Gets an object of a list: its name, relative to the prefix, and its size. A return value other
 * than 0 ends the list. */
typedef int (*PenRemoteListFn)(void *ctx, const char *name, uint64_t bytes);
/** Lists the objects below an s3:// URL, in the order that the store returns. `settings` may be
 * NULL. Fails with PEN_E_CANCELLED if `each` ended the list, and with PEN_E_LIMIT if the list is
 * too long. */
PEN_NODISCARD PEN_API int pen_remote_list(const char *prefix, const PenRemoteSettings *settings,
                                          PenRemoteListFn each, void *ctx, PenError *reterr);

/** Returns memory for the bytes of an object; NULL ends the call with PEN_E_NO_MEMORY. */
typedef void *(*PenRemoteMemoryFn)(void *ctx, uint64_t bytes);
/** Reads the entire object `name` below a URL. `memory` is called once, by the calling thread.
 * Fails with PEN_E_LIMIT if the object has more than `most_bytes` bytes, and with PEN_E_CHANGED if
 * it was replaced in the meantime. */
PEN_NODISCARD PEN_API int pen_remote_read(const char *prefix, const char *name,
                                          const PenRemoteSettings *settings, uint64_t most_bytes,
                                          PenRemoteMemoryFn memory, void *ctx, PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
