/* SPDX-License-Identifier: Apache-2.0 */
/* The packets of files that have several parts, listed once for all of them. Shared by threads. */
#ifndef PEN_INGEST_VIDEO_LISTS_H
#define PEN_INGEST_VIDEO_LISTS_H

#include "ingest/video/packets.h"

typedef struct PenVideoLists PenVideoLists;

int pen__video_lists_new(PenVideoLists **ret, PenError *reterr);
void pen__video_lists_free(PenVideoLists **lists); /* accepts NULL */

/* As pen__video_list_again. If another
 * thread lists the same file, waits for it. The list is to be returned by pen__video_lists_put. */
int pen__video_lists_get(PenVideoLists *lists, const PenVideoSettings *settings, const char *path,
                         const PenVideoList **ret, PenError *reterr);
void pen__video_lists_put(PenVideoLists *lists, const PenVideoList *list);

#endif
