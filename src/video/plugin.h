/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder plug-in of this process, which is opened once and stays open, and whether it is used
 * here or in processes of their own. */
#ifndef PEN_VIDEO_PLUGIN_H
#define PEN_VIDEO_PLUGIN_H

#include <limits.h>
#include <stdbool.h>

#include <penstock/video.h>

/* Opens it if it is not open. PEN_E_UNSUPPORTED when that fails; the next call tries again. Any
 * thread may call it. */
int pen__video_plugin(const PenVideoPlugin **ret, PenError *reterr);

/* The path of its file, for which it is opened. */
int pen__video_library(char ret[PATH_MAX], PenError *reterr);

/* What the environment variable PENSTOCK_VIDEO says: "process", or "inline", the default. Other
 * values are PEN_E_INVALID. */
int pen__video_in_process(bool *ret, PenError *reterr);

#endif
