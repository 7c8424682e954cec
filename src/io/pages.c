/* SPDX-License-Identifier: Apache-2.0 */
#include "io/pages.h"

#include <pthread.h>
#include <string.h>

#define WHERE "io/pages"

typedef struct Page {
    uint8_t *data;
    uint64_t number;
    uint64_t used; /* when, by the count of all uses; 0: it holds nothing */
} Page;

typedef struct Pages {
    PenSource base;
    PenSource *inner;
    pthread_mutex_t mutex; /* also held while a page is fetched: others most likely want the same */
    uint64_t uses;
    Page pages[PEN_PAGES];
} Pages;

/* The page with this number, or the one that was not used for the longest time. */
static Page *choose(Pages *p, uint64_t number)
{
    Page *oldest = &p->pages[0];
    for (int i = 0; i < PEN_PAGES; i++) {
        Page *page = &p->pages[i];
        if (page->used && page->number == number)
            return page;
        if (page->used < oldest->used)
            oldest = page;
    }
    return oldest;
}

static int get_page(Pages *p, uint64_t number, const uint8_t **ret, PenError *reterr)
{
    Page *page = choose(p, number);
    if (!page->used || page->number != number) {
        uint64_t at = number * PEN_PAGE_BYTES;
        size_t bytes = (size_t)PEN_MIN(p->base.bytes - at, (uint64_t)PEN_PAGE_BYTES);
        if (!page->data)
            page->data = pen__alloc(PEN_PAGE_BYTES);
        if (!page->data)
            return pen__fail_memory(reterr, WHERE, p->base.name);
        page->used = 0;
        int r = pen__source_read(p->inner, page->data, bytes, at, reterr);
        if (r < 0)
            return r;
        page->number = number;
    }
    page->used = ++p->uses;
    *ret = page->data;
    return PEN_OK;
}

static int pages_read(PenSource *source, void *buf, size_t bytes, uint64_t offset, int again,
                      PenError *reterr)
{
    Pages *p = (Pages *)source;
    uint8_t *to = buf;
    int r = PEN_OK;
    if (again)
        return pen__source_read_again(p->inner, buf, bytes, offset, reterr);
    if (bytes >= PEN_PAGE_BYTES)
        return pen__source_read(p->inner, buf, bytes, offset, reterr);
    pthread_mutex_lock(&p->mutex);
    while (bytes && r == PEN_OK) {
        const uint8_t *data = NULL;
        size_t at = (size_t)(offset % PEN_PAGE_BYTES);
        size_t part = PEN_MIN(bytes, (size_t)PEN_PAGE_BYTES - at);
        r = get_page(p, offset / PEN_PAGE_BYTES, &data, reterr);
        if (r == PEN_OK)
            memcpy(to, data + at, part);
        to += part;
        offset += part;
        bytes -= part;
    }
    pthread_mutex_unlock(&p->mutex);
    return r;
}

static void pages_close(PenSource *source)
{
    Pages *p = (Pages *)source;
    for (int i = 0; i < PEN_PAGES; i++)
        pen__free(p->pages[i].data);
    pthread_mutex_destroy(&p->mutex);
    pen__source_close(&p->inner);
    pen__free(p);
}

static const PenSourceClass pages_class = {.read = pages_read, .close = pages_close};

int pen__source_pages(PenSource **source, PenError *reterr)
{
    Pages *p = pen__zalloc(sizeof *p);
    if (!p) {
        pen__source_close(source);
        return pen__fail_memory(reterr, WHERE, "source");
    }
    p->inner = *source;
    p->base = (PenSource){
        .class_ = &pages_class, .name = p->inner->name, .bytes = p->inner->bytes, .is_remote = 1};
    pthread_mutex_init(&p->mutex, NULL);
    *source = &p->base;
    return PEN_OK;
}
