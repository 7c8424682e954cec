/* SPDX-License-Identifier: Apache-2.0 */
/* What the library and the process of a decoder (video/process) send to each other. Both are of one
 * release and on one machine. Descriptors 0 and 1 of the process are its end of the socket, and
 * descriptor 3 is the memory where it puts pictures. It begins with a reply. */
#ifndef PEN_VIDEO_MESSAGES_H
#define PEN_VIDEO_MESSAGES_H

#include <stdint.h>

#include <penstock/video.h>

enum { PEN_CHILD_VERSION = 1, PEN_CHILD_TEXT = 256 };

/* What is to be done; the first two are followed by bytes. The functions of PenVideoPlugin. */
typedef enum PenChildCall {
    PEN_CHILD_OPEN = 1, /* closes the decoder that is open */
    PEN_CHILD_SEND = 2,
    PEN_CHILD_DRAIN = 3,
    PEN_CHILD_RECEIVE = 4
} PenChildCall;

typedef struct PenChildRequest {
    uint32_t call;     /* PenChildCall */
    uint32_t flushes;  /* not 0: the decoder is flushed before */
    uint32_t codec;    /* to OPEN */
    uint32_t width;    /* the same */
    uint32_t height;   /* the same */
    uint32_t flags;    /* of the packet */
    uint64_t max_size; /* in pixels, to OPEN */
    int64_t time;      /* of the packet */
    uint64_t bytes;    /* of configuration or packet, which follow */
} PenChildRequest;

/* To OPEN, and when the process starts: PEN_OK. To the others: PEN_OK with the next picture, or
 * PEN_END if there is none now. */
typedef struct PenChildReply {
    uint32_t version; /* PEN_CHILD_VERSION */
    int32_t status;
    uint32_t has_more;      /* not 0: RECEIVE is not going to be PEN_END */
    uint32_t width, height; /* of the picture, and so on: see PenVideoPicture */
    uint32_t n_planes, depth, shift_x, shift_y, range, matrix;
    uint32_t reserved;
    int64_t time;
    char text[PEN_CHILD_TEXT]; /* what failed; ends in NUL */
} PenChildReply;

/* Where the planes of a picture are in the memory. */
typedef struct PenChildPlanes {
    uint64_t at[3];
    uint64_t row_bytes[3]; /* without what follows up to the next row */
    uint64_t stride[3];
    uint64_t rows[3];
    uint64_t bytes; /* of all */
} PenChildPlanes;

/* False if the picture is none that a plug-in may return. Sides are small, so nothing overflows. */
static inline int pen__child_planes(const PenChildReply *p, PenChildPlanes *ret)
{
    const uint64_t align = 64;
    if (p->width < 1 || p->width > PEN_VIDEO_SIDE || p->height < 1 || p->height > PEN_VIDEO_SIDE ||
        (p->n_planes != 1 && p->n_planes != 3) || p->depth < 8 || p->depth > 16 || p->shift_x > 2 ||
        p->shift_y > 2)
        return 0;
    ret->bytes = 0;
    for (uint32_t i = 0; i < p->n_planes; i++) {
        uint32_t x = i ? p->shift_x : 0, y = i ? p->shift_y : 0;
        uint64_t columns = ((uint64_t)p->width + (1u << x) - 1) >> x;
        ret->rows[i] = ((uint64_t)p->height + (1u << y) - 1) >> y;
        ret->row_bytes[i] = columns * (p->depth > 8 ? 2 : 1);
        ret->stride[i] = (ret->row_bytes[i] + align - 1) / align * align;
        ret->at[i] = ret->bytes;
        ret->bytes += ret->stride[i] * ret->rows[i];
    }
    return 1;
}

#endif
