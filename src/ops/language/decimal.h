/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, the same in every locale. */
#ifndef PEN_OPS_LANGUAGE_DECIMAL_H
#define PEN_OPS_LANGUAGE_DECIMAL_H

#include <stddef.h>

/* 12, -1.5, .5, 2., 1e-3; no hexadecimal forms, inf or nan. 0, or -1 when it is none of these, and
 * when it is longer than 40 bytes or too large to be finite. */
int pen__decimal_parse(const char *text, size_t bytes, double *ret);

/* The shortest text that is read as the same number. */
enum { PEN_DECIMAL_TEXT = 32 };
void pen__decimal_write(double v, char buf[PEN_DECIMAL_TEXT]);

#endif
