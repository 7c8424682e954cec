/* SPDX-License-Identifier: Apache-2.0 */
/* Reading small JSON answers: strict (RFC 8259, UTF-8, no name twice), on jansson. */
#ifndef PEN_BASE_JSON_H
#define PEN_BASE_JSON_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>

#define PEN_JSON_BYTES (1u << 20)
#define PEN_JSON_DEPTH 32

typedef struct PenJson PenJson;

/* 1: more levels than that. jansson goes 2,048 deep, which takes a good deal of stack. */
int pen__json_is_deep(const char *text, size_t bytes, unsigned levels);

/* An object. `name` is for messages, which hold nothing of the text: it may be secret. */
int pen__json_parse(const char *name, const void *text, size_t bytes, PenJson **ret,
                    PenError *reterr);
void pen__json_free(PenJson **json); /* wipes all strings; accepts NULL */

/* `path` is "name" or "name.name"; names with dots cannot be reached. A string is NULL when it is
 * not there or something else; it is valid until the object is freed. */
const char *pen__json_string(const PenJson *json, const char *path);
int pen__json_integer(const PenJson *json, const char *path, int64_t *ret); /* 1 when there */

#endif
