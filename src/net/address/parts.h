/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of addresses, looked at one by one. */
#ifndef PEN_NET_ADDRESS_PARTS_H
#define PEN_NET_ADDRESS_PARTS_H

#include <stddef.h>

#include "base/mem.h"

/* 1: UTF-8 without control characters (C0, DEL, C1). */
int pen__text_is_clean(const char *text, size_t bytes);
/* 1: a segment between slashes is "." or "..". */
int pen__text_has_dots(const char *text, size_t bytes);
/* 1: 3 to 63 letters, digits, '.', '-' and '_', as S3 has them or once had; no IPv4 address. */
int pen__text_is_bucket(const char *text, size_t bytes);
/* 1: labels of letters, digits, '-' and '_'; when the last is a number, an IPv4 address. */
int pen__text_is_host(const char *text, size_t bytes);
int pen__text_is_ipv4(const char *text, size_t bytes);

/* Adds the path of a URL with what may not stand in one encoded. PEN_E_INVALID for a '%' without
 * two hex digits, PEN_E_NO_MEMORY. */
int pen__path_clean(PenBuf *to, const char *path, size_t bytes);
/* Adds it decoded; the path has been cleaned. */
int pen__path_decode(PenBuf *to, const char *path, size_t bytes);

#endif
