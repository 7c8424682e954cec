/* SPDX-License-Identifier: Apache-2.0 */
/* Dates as servers write them, in seconds since 1970. */
#ifndef PEN_NET_HTTP_DATE_H
#define PEN_NET_HTTP_DATE_H

#include <stdint.h>

/* "Sun, 06 Nov 1994 08:49:37 GMT", or one of the two older forms of RFC 9110 (5.6.7). Returns 1
 * when the text is such a date. */
int pen__http_date(const char *text, uint64_t *ret_unix_s);

/* "2026-10-03T21:40:59Z", with a fraction, an offset ("+02:00"), or neither: how S3, STS and
 * metadata services write times. Returns 1 when the text is such a time. */
int pen__iso_date(const char *text, uint64_t *ret_unix_s);

#endif
