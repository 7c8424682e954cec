/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the process of a decoder. It may be hostile: every wait has a deadline, and what it
 * says is checked by the caller. All failures are PEN_E_DECODE, the error of one sample, but those
 * of the system, and PEN_E_DECODE_TIMEOUT at the deadline. */
#ifndef PEN_VIDEO_TALK_H
#define PEN_VIDEO_TALK_H

#include "base/error.h"
#include "base/sys.h"
#include "video/messages.h"

typedef struct PenTalk {
    PenSpawned process;
    uint64_t reply_ns; /* that a reply may take */
} PenTalk;

/* The request, with the bytes that follow it, and the reply. */
int pen__talk_ask(const PenTalk *t, const PenChildRequest *request, const void *data,
                  PenChildReply *ret, PenError *reterr);
/* The reply that is sent without a request. */
int pen__talk_hear(const PenTalk *t, PenChildReply *ret, PenError *reterr);

#endif
