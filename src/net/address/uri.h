/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-encoding, in the one form that URL and signature share. */
#ifndef PEN_NET_ADDRESS_URI_H
#define PEN_NET_ADDRESS_URI_H

#include <stddef.h>

#include <penstock/error.h>

#include "base/mem.h"

/* Percent-encodes all but A-Z a-z 0-9 - . _ ~ (and / when keep_slash), as SigV4 wants it. No NUL
 * follows. */
int pen__uri_encode(PenBuf *to, const char *text, size_t bytes, int keep_slash);

/* Adds the path of a URL with what may not stand in one encoded. PEN_E_INVALID for a '%' without
 * two hex digits, PEN_E_NO_MEMORY. */
int pen__path_clean(PenBuf *to, const char *path, size_t bytes);
/* Adds it decoded; the path has been cleaned. */
int pen__path_decode(PenBuf *to, const char *path, size_t bytes);

#endif
