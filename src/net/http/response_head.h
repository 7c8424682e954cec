/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an answer, line by line. Knows nothing of who carries it; everything is hostile. */
#ifndef PEN_NET_HTTP_RESPONSE_HEAD_H
#define PEN_NET_HTTP_RESPONSE_HEAD_H

#include <stddef.h>

#include "net/http/message.h"

/* Zero-initialised is the beginning. Start again (with the reply) when a request is sent anew. */
typedef struct PenHead {
    size_t bytes, lines; /* of all heads and trailers together */
    uint8_t inside;      /* a status line came, its empty line did not */
    uint8_t complete;    /* the final head is there; what follows are trailers */
    uint8_t chunked;
    uint8_t encoded;   /* a content or transfer encoding nobody asked for */
    uint8_t has_range; /* Content-Range came */
    uint8_t bad_range;
    uint8_t bad_length; /* Content-Length that is no number, or two that differ */
    char retry_after[64];
} PenHead;

/* Everything of a reply that a head sets, as if none had come. */
void pen__head_clear(PenHead *head, PenHttpReply *reply);

/* Takes a line with its end. 0: go on; 1: this line completed the final head; -1: reply->failure
 * and detail say why the answer is refused. `unix_s`: our clock, for Retry-After as a date. */
int pen__head_line(PenHead *head, const char *line, size_t bytes, uint64_t unix_s,
                   PenHttpReply *reply);

#endif
