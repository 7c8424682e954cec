/* SPDX-License-Identifier: Apache-2.0 */
/* Memory through the system interface. */
#ifndef PEN_BASE_MEM_H
#define PEN_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Readable bytes that follow every buffer the library reads into, so that decoders may look ahead.
 */
#define PEN_SLACK 64

void *pen__alloc(size_t bytes);                  /* NULL when there is none */
void *pen__zalloc(size_t bytes);                 /* cleared */
void *pen__alloc_array(uint64_t n, size_t each); /* checked; NULL on overflow too */
void *pen__resize(void *p, size_t bytes);
void pen__free(void *p); /* accepts NULL */
/* For what may be large, `bytes` of it or a little more: gives its pages back to the system. What
 * free alone is given stays with malloc, as much as was ever in use at once, for each thread. */
void pen__free_large(void *p, size_t bytes);
/* Asks for huge pages under what lies there, where the system gives them on request. */
void pen__ask_huge(void *p, size_t bytes);
char *pen__strdup(const char *s);
char *pen__strndup(const char *s, size_t n);

/* A byte buffer that grows. Zero-initialised is empty; free with pen__buf_free. */
typedef struct PenBuf {
    uint8_t *data;
    size_t bytes;
    size_t cap;
} PenBuf;

/* Both return 0, or PEN_E_NO_MEMORY with the buffer as it was. */
int pen__buf_reserve(PenBuf *b, size_t more);
int pen__buf_add(PenBuf *b, const void *data, size_t bytes);
void pen__buf_free(PenBuf *b);
void pen__buf_trim(PenBuf *b, size_t bytes); /* frees it when it has room for more than that */

#endif
