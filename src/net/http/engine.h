/* SPDX-License-Identifier: Apache-2.0 */
/* The transport over libcurl: its multi interface in one thread, HTTP/1.1, connections used again.
 */
#ifndef PEN_NET_HTTP_ENGINE_H
#define PEN_NET_HTTP_ENGINE_H

#include "net/http/transport.h"

typedef struct PenEngineSettings {
    const char *ca_file;  /* NULL: where the system keeps it (net/http/certificates.c) */
    const char *proxy;    /* NULL: as https_proxy, http_proxy, all_proxy and no_proxy say */
    unsigned connections; /* kept open at most; 0: 512 */
} PenEngineSettings;

typedef struct PenEngine PenEngine;

int pen__engine_new(const PenEngineSettings *settings, PenEngine **ret, PenError *reterr);
/* Ends the thread: what was posted is still called, transfers under way are cut without a call.
 * At most a second, unless a call blocks the loop: transfers' memory is in use until it returns (30
 * seconds are waited). Not from the loop; accepts NULL. In a forked child it only lets go of the
 * memory: thread and sockets are the parent's. */
void pen__engine_free(PenEngine **engine);
PenTransport *pen__engine_transport(PenEngine *engine);

#endif
