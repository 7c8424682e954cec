/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"

void *pen__alloc(size_t bytes)
{
    return pen__sys->alloc(bytes ? bytes : 1);
}

void *pen__zalloc(size_t bytes)
{
    void *p = pen__alloc(bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

void *pen__alloc_array(uint64_t n, size_t each)
{
    uint64_t bytes;
    if (pen__mul_over(n, each, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    return pen__alloc((size_t)bytes);
}

void *pen__resize(void *p, size_t bytes)
{
    return pen__sys->resize(p, bytes ? bytes : 1);
}

void pen__free(void *p)
{
    if (p)
        pen__sys->release(p);
}

/* Advice for the whole pages inside; only ever a matter of cost. */
static void advise(void *p, size_t bytes, size_t page, int advice)
{
    uintptr_t first = ((uintptr_t)p + page - 1) & ~(uintptr_t)(page - 1);
    uintptr_t end = ((uintptr_t)p + bytes) & ~(uintptr_t)(page - 1);
    if (first < end)
        (void)madvise((void *)first, end - first, advice);
}

void pen__free_large(void *p, size_t bytes)
{
    enum { PAGE = 4096, LARGE = 1 << 20 };
    if (p && bytes >= LARGE)
        advise(p, bytes, PAGE, MADV_DONTNEED);
    pen__free(p);
}

void pen__ask_huge(void *p, size_t bytes)
{
    enum { PAGE = 2 << 20 };
    if (p)
        advise(p, bytes, PAGE, MADV_HUGEPAGE);
}

char *pen__strdup(const char *s)
{
    return pen__strndup(s, strlen(s));
}

char *pen__strndup(const char *s, size_t n)
{
    char *p = pen__alloc(n + 1);
    if (p) {
        memcpy(p, s, n);
        p[n] = 0;
    }
    return p;
}

int pen__buf_reserve(PenBuf *b, size_t more)
{
    uint64_t need;
    if (pen__add_over(b->bytes, more, &need) || need > SIZE_MAX / 4)
        return PEN_E_NO_MEMORY;
    if (need <= b->cap)
        return PEN_OK;
    size_t cap = b->cap ? b->cap * 2 : 256;
    if (cap < need)
        cap = (size_t)need;
    uint8_t *p = pen__resize(b->data, cap);
    if (!p)
        return PEN_E_NO_MEMORY;
    b->data = p;
    b->cap = cap;
    return PEN_OK;
}

int pen__buf_add(PenBuf *b, const void *data, size_t bytes)
{
    int r = pen__buf_reserve(b, bytes);
    if (r < 0)
        return r;
    if (bytes)
        memcpy(b->data + b->bytes, data, bytes);
    b->bytes += bytes;
    return PEN_OK;
}

void pen__buf_free(PenBuf *b)
{
    pen__free(b->data);
    *b = (PenBuf){0};
}

void pen__buf_trim(PenBuf *b, size_t bytes)
{
    if (b->cap <= bytes)
        return;
    pen__free_large(b->data, b->cap);
    *b = (PenBuf){0};
}
