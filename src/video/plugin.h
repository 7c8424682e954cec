/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder plug-in of this process, which is opened once and stays open. */
#ifndef PEN_VIDEO_PLUGIN_H
#define PEN_VIDEO_PLUGIN_H

#include <penstock/video.h>

/* Opens it if it is not open. PEN_E_UNSUPPORTED when that fails; the next call tries again. Any
 * thread may call it. */
int pen__video_plugin(const PenVideoPlugin **ret, PenError *reterr);

#endif
