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

/** Returns the version of the library as text. ret_api, which may be NULL, receives the
 * PEN_API_VERSION that the library was built with. Any thread may call it. */
PEN_API const char *pen_version(uint32_t *ret_api);

#ifdef __cplusplus
}
#endif
#endif
