/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The version of the library and of these headers. */
#ifndef PENSTOCK_VERSION_H
#define PENSTOCK_VERSION_H

#include <penstock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEN_VERSION "0.1.0" /**< version of these headers */

/** Returns the version of the library. Any thread may call it. */
PEN_API const char *pen_version(void);

/** Bytes for the text of a version in pen_library. */
#define PEN_LIBRARY_VERSION 32

/** Returns the name of the i-th library that penstock is linked with, and copies its version to
 * ret_version. Returns NULL after the last one. Libraries report their versions at run time, except
 * libjpeg-turbo: its version is that of the headers that penstock was compiled with. Any thread may
 * call it. */
PEN_API const char *pen_library(uint32_t i, char ret_version[PEN_LIBRARY_VERSION]);

#ifdef __cplusplus
}
#endif
#endif
