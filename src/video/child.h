/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding in a confined process (docs/explanation/adr/0025-video-decoder-plug-in.md), behind the
 * functions of a plug-in. Whatever the process does is an error of the video that it decodes.
 *
 * A process dies with the thread that started it, so it is used by this thread only. */
#ifndef PEN_VIDEO_CHILD_H
#define PEN_VIDEO_CHILD_H

#include <stdbool.h>

#include <penstock/video.h>

typedef struct PenChildSettings {
    const char *program; /* penstock-video-decoder */
    const char *library; /* the plug-in, its argument; its folder can be read */
    uint64_t reply_ns;   /* that the process may take for one packet */
} PenChildSettings;

/* Starts a process, and opens a decoder in it. */
int pen__child_open(const PenChildSettings *settings, const PenVideoDecoderConfig *config,
                    PenVideoDecoder **ret, PenError *reterr);

/* Is its process there, and was it started by this thread? */
bool pen__child_is_alive(const PenVideoDecoder *decoder);
/* Does it have the memory for videos of this configuration? */
bool pen__child_has_room(const PenVideoDecoder *decoder, const PenVideoDecoderConfig *config);
/* Opens a decoder for another video in its process. After a failure it is closed. */
int pen__child_open_again(PenVideoDecoder *decoder, const PenVideoDecoderConfig *config,
                          PenError *reterr);

/* Its `open` starts the program that is installed beside the plug-in. */
extern const PenVideoPlugin pen__child_plugin;

#endif
