/* SPDX-License-Identifier: Apache-2.0 */
/* A web server in a thread of the test: ranges of objects that are in memory. */
#ifndef PEN_TESTS_UNIT_OBJECT_SERVER_H
#define PEN_TESTS_UNIT_OBJECT_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ServedObject {
    const void *data; /* has to stay until the server stops */
    size_t bytes;
    const char *etag; /* with its quotes */
    int status;       /* 0: the object, or a range of it; else this, and the data is the body */
} ServedObject;

/* Called by the server's thread; false: 404. */
typedef bool (*ServeFn)(void *ctx, const char *path, ServedObject *ret);

/* The port at 127.0.0.1. One server at a time. */
int object_server_start(ServeFn find, void *ctx);
void object_server_stop(void);
/* Since it was started. */
int object_server_requests(void);

#endif
