/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The version of the library and of these headers. */
#ifndef PENSTOCK_VERSION_H
#define PENSTOCK_VERSION_H

#include <penstock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEN_VERSION "0.1.0"
#define PEN_API_VERSION 0x00000100u /**< version of these headers: 0x00MMmmpp for MM.mm.pp */
#define PEN_ABI_VERSION 1           /**< the number in libpenstock.so.1 */

/** Returns the version of the library as text. ret_api, which may be NULL, receives the
 * PEN_API_VERSION that the library was built with. Any thread may call it. */
PEN_API const char *pen_version(uint32_t *ret_api);

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
