/* SPDX-License-Identifier: Apache-2.0 */
/* A video that is stored as its file, or a part of its file: ready for the block writer. */
#ifndef PEN_INGEST_PREPARE_PREPARED_VIDEO_H
#define PEN_INGEST_PREPARE_PREPARED_VIDEO_H

#include "ingest/video/packets.h"
#include "io/source.h"
#include "pack/format/stored.h"

/* The frames [first, end) of a video; end UINT32_MAX: to its end. All of them: the entire file. */
typedef struct PenVideoFrames {
    uint32_t first, end;
} PenVideoFrames;

/* Zero-initialised is empty. */
typedef struct PenPreparedVideo {
    PenStoredVideo video; /* what PenStoredValue.video may point to */
    PenBuf table, crcs;
    PenBuf data;       /* the payload of a small video */
    PenSource *source; /* the file of a large one, which is read again when it is written; it is
                        * open only while it is read */
} PenPreparedVideo;

/* Makes the table of the video at `path`, whose packets are in `list`, and reads its bytes once for
 * their checksums. A part has the packets that its frames need, from a key packet on; those before
 * its first frame are hidden. PEN_E_DECODE, PEN_E_LIMIT, PEN_E_NOT_FOUND (no such frames): the
 * input is bad. */
int pen__prepare_video(const PenVideoSettings *settings, const char *path, const PenVideoList *list,
                       PenVideoFrames frames, PenPreparedVideo *ret, PenError *reterr);
/* The same for a payload that stays in its file. `path` has to outlive the result. */
int pen__prepare_video_in_place(const PenVideoSettings *settings, const char *path,
                                const PenVideoList *list, PenVideoFrames frames,
                                PenPreparedVideo *ret, PenError *reterr);
void pen__prepared_video_free(PenPreparedVideo *p);

#endif
