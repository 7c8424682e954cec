/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PENSTOCK_VERSION_H
#define PENSTOCK_VERSION_H

#include <penstock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEN_VERSION "0.1.0"
#define PEN_API_VERSION 0x00000100u /* 0x00MMmmpp: the API this header describes */

/* The library's version as text; ret_api (may be NULL) gets the API version it was built with. */
PEN_API const char *pen_version(uint32_t *ret_api);

#ifdef __cplusplus
}
#endif
#endif
