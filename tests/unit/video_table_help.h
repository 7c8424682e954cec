/* SPDX-License-Identifier: Apache-2.0 */
/* Random videos: packets as a demuxer lists them. */
#ifndef PEN_TESTS_UNIT_VIDEO_TABLE_HELP_H
#define PEN_TESTS_UNIT_VIDEO_TABLE_HELP_H

#include "pack/format/video_table.h"

enum { HELP_PACKETS = 300 };

typedef struct HelpVideo {
    PenVideoStream stream;
    PenVideoPacket packets[HELP_PACKETS];
    uint32_t n;
    uint64_t payload_bytes;
} HelpVideo;

/* A number below n; any number if n is 0. */
uint64_t help_random(uint64_t *state, uint64_t n);
/* B-frames, open GOPs, hidden packets, gaps between packets, times at varying distances. One in
 * four has no order that an encoder would choose. */
void help_video(uint64_t *state, HelpVideo *ret);

#endif
