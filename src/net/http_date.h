/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEN_NET_HTTP_DATE_H
#define PEN_NET_HTTP_DATE_H

#include <stdint.h>

/* "Sun, 06 Nov 1994 08:49:37 GMT", or one of the two older forms that RFC 9110 (5.6.7) has; seconds
 * since 1970. 1: it is such a date. */
int pen__http_date(const char *text, uint64_t *ret_unix_s);

#endif
