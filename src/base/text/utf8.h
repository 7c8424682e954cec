/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEN_BASE_TEXT_UTF8_H
#define PEN_BASE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Is it valid UTF-8? Overlong forms, surrogates and what is beyond U+10FFFF are not. */
bool pen__text_is_utf8(const void *text, size_t bytes);

#endif
