/* SPDX-License-Identifier: Apache-2.0 */
/* A whole sample ready to be stored, and everything it points to. */
#ifndef PEN_INGEST_PREPARE_PREPARED_H
#define PEN_INGEST_PREPARE_PREPARED_H

#include "ingest/plan/plan.h"
#include "ingest/prepare/prepare.h"
#include "ingest/prepare/prepared_video.h"
#include "pack/format/schema.h"

typedef struct PenPrepared {
    PenStoredSample sample; /* first: a PenStoredSample of ours is a PenPrepared */
    PenStoredValue *values;
    uint32_t n_values, n_images, cap_images;
    PenPreparedImage *images;
    PenStoredImage *stored;   /* of the images, side by side */
    uint32_t *first;          /* of each field: its image, or a clip's first frame */
    PenBuf *blobs;            /* one for each field; of a video its path */
    PenPreparedVideo *videos; /* one for each field; NULL: there are none */
    PenBuf scratch;           /* the key, and numbers */
    uint64_t source_bytes, disk_bytes;
} PenPrepared;

/* Empty, with room for n_images images in all. An item of a plan takes one for each field, image or
 * not; frames of clips come behind those. */
PenPrepared *pen__prepared_new(uint32_t n_fields, uint32_t n_images);
void pen__prepared_free(PenPrepared *p); /* accepts NULL */

/* Reads the item's parts. For messages `name` gets where the last part looked at comes from. */
enum { PEN_INPUT_NAME_BYTES = 256 };
int pen__prepared_read(PenPrepared *p, const PenSchema *schema, const PenPlan *plan,
                       uint64_t position, PenPartReader *reader, char *name, PenError *reterr);
/* Does to them what the prepare says; needs no reader, and so no lock. */
int pen__prepared_make(PenPrepared *p, const PenSchema *schema, const PenPrepareSettings *prepare,
                       const PenPlan *plan, char *name, PenError *reterr);

/* A further frame of the clip in `field`, whose frames come one after another. The pointer is valid
 * until the next call. */
int pen__prepared_frame(PenPrepared *p, uint32_t field, PenPreparedImage **ret, PenError *reterr);
/* Reading and making a clip: ingest/prepare/prepared_clip.c. */
int pen__prepared_read_clip(PenPrepared *p, uint32_t field, const PenPart *part,
                            PenPartReader *reader, PenError *reterr);
int pen__prepared_make_clip(PenPrepared *p, uint32_t field, const PenPrepareSettings *prepare,
                            const PenPlan *plan, PenError *reterr);
/* Consecutive frames of a video. */
typedef struct PenVideoTimes {
    const char *path;        /* or the address of an object */
    const int64_t *times_ns; /* of the frames, from the start of the file */
    uint32_t n;              /* at least 1 */
} PenVideoTimes;

/* Makes the clip in `field` of these frames, which stay in their file or object. `prepare`
 * has lists of packets, and copies. PEN_E_NOT_FOUND: the video has no such frames. */
int pen__prepared_place_video(PenPrepared *p, uint32_t field, const PenPrepareSettings *prepare,
                              const PenVideoTimes *wanted, PenError *reterr);
/* What is held in memory for it, about. */
uint64_t pen__prepared_memory(const PenPrepared *p);

#endif
