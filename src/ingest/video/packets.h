/* SPDX-License-Identifier: Apache-2.0 */
/* The packets of a video file, for videos that are stored as they are. ffprobe lists them in its
 * sandbox; every packet listed is then found in the file itself, and the header of its picture is
 * parsed: a decoder has to return one frame for each packet that is shown, and to be able to start
 * at each key packet. Videos for which this does not hold are refused. */
#ifndef PEN_INGEST_VIDEO_PACKETS_H
#define PEN_INGEST_VIDEO_PACKETS_H

#include "ingest/video/video.h"
#include "pack/format/video_table.h"

/* Zero-initialised is empty. */
typedef struct PenVideoList {
    PenVideoStream stream;   /* `extra` points into the buffer below */
    PenVideoPacket *packets; /* in decode order, from the first key packet on */
    uint32_t n;
    uint32_t n_shown; /* frames of the video */
    uint64_t file_bytes;
    int64_t mtime_ns;     /* of the file, from before it was read */
    int64_t start_ns;     /* time of the file that counts as its start, as ffmpeg has it */
    PenBuf extra, memory; /* what the pointers above point to */
} PenVideoList;

/* The packets of the first video stream of an MP4, MOV, Matroska or WebM file. Frames are the
 * packets that are not hidden; their times are those that ffmpeg reports. PEN_E_UNSUPPORTED: this
 * video cannot be stored as it is; the message says why, and what to do. Other errors are those of
 * pen__video_read. The list is empty then. */
int pen__video_list(const PenVideoSettings *settings, const char *path, PenVideoList *ret,
                    PenError *reterr);
/* The same; it is tried again if something from outside has ended it. */
int pen__video_list_again(const PenVideoSettings *settings, const char *path, PenVideoList *ret,
                          PenError *reterr);
void pen__video_list_free(PenVideoList *list);

#endif
