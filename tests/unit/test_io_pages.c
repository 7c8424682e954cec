/* SPDX-License-Identifier: Apache-2.0 */
#include "io/pages.h"

#include <stdlib.h>

#include "test.h"

#include "base/mem.h"

/* An object of 40 pages and a few bytes more; a byte follows from its offset. */
enum { BYTES = 40 * PEN_PAGE_BYTES + 77 };

typedef struct Object {
    PenSource base;
    uint64_t n_reads, n_bytes;
    int fails; /* so many reads from now on */
    int *closed;
} Object;

static uint8_t byte_at(uint64_t offset)
{
    return (uint8_t)(offset * 2654435761u >> 11);
}

static int object_read(PenSource *source, void *buf, size_t bytes, uint64_t offset, int again,
                       PenError *reterr)
{
    Object *o = (Object *)source;
    uint8_t *to = buf;
    (void)again;
    o->n_reads++;
    o->n_bytes += bytes;
    if (o->fails && o->fails--)
        return pen__fail(reterr, PEN_E_IO, "test", "not now");
    for (size_t i = 0; i < bytes; i++)
        to[i] = byte_at(offset + i);
    return PEN_OK;
}

static void object_close(PenSource *source)
{
    Object *o = (Object *)source;
    *o->closed += 1;
    pen__free(o);
}

static const PenSourceClass object_class = {.read = object_read, .close = object_close};

static Object *open_pages(PenSource **ret, int *closed)
{
    Object *o = pen__zalloc(sizeof *o);
    *o = (Object){.base = {&object_class, "object", BYTES, 1}, .closed = closed};
    *ret = &o->base;
    if (pen__source_pages(ret, NULL) < 0)
        abort();
    return o;
}

static void check_read(PenSource *s, uint64_t offset, size_t bytes)
{
    PenError err = {0};
    uint8_t *buf = pen__alloc(bytes + 1);
    size_t wrong = 0;
    CHECK_INT(pen__source_read(s, buf, bytes, offset, &err), PEN_OK);
    for (size_t i = 0; i < bytes; i++)
        wrong += buf[i] != byte_at(offset + i);
    CHECK_INT(wrong, 0);
    pen__free(buf);
}

TEST(close_ranges_take_one_request)
{
    PenSource *s = NULL;
    int closed = 0;
    Object *o = open_pages(&s, &closed);
    CHECK_INT(s->bytes, BYTES);
    for (uint64_t at = 0; at < 2 * PEN_PAGE_BYTES; at += 4000)
        check_read(s, at, 100);
    CHECK_INT(o->n_reads, 2);
    check_read(s, PEN_PAGE_BYTES - 50, 100); /* of two pages */
    CHECK_INT(o->n_reads, 2);
    check_read(s, BYTES - 10, 10); /* the last page is short */
    CHECK_INT(o->n_bytes, 2 * PEN_PAGE_BYTES + 77);
    check_read(s, 5, 3 * PEN_PAGE_BYTES); /* by itself */
    CHECK_INT(o->n_reads, 4);
    pen__source_close(&s);
    CHECK_INT(closed, 1);
}

TEST(pages_that_were_used_last_are_kept)
{
    PenSource *s = NULL;
    int closed = 0;
    Object *o = open_pages(&s, &closed);
    for (uint64_t i = 0; i < 40; i++) {
        check_read(s, i * PEN_PAGE_BYTES, 10);
        check_read(s, 20, 10); /* as a table beside the records */
    }
    CHECK_INT(o->n_reads, 40);
    check_read(s, 39 * (uint64_t)PEN_PAGE_BYTES, 10);
    CHECK_INT(o->n_reads, 40);
    check_read(s, 1 * PEN_PAGE_BYTES, 10);
    CHECK_INT(o->n_reads, 41);
    pen__source_close(&s);
}

TEST(a_page_that_could_not_be_read_is_read_again)
{
    PenSource *s = NULL;
    PenError err = {0};
    uint8_t buf[20];
    int closed = 0;
    Object *o = open_pages(&s, &closed);
    for (uint64_t i = 0; i < PEN_PAGES; i++)
        check_read(s, i * PEN_PAGE_BYTES, 10);
    o->fails = 2;
    CHECK_INT(pen__source_read(s, buf, 20, 20 * (uint64_t)PEN_PAGE_BYTES - 10, &err), PEN_E_IO);
    CHECK_INT(pen__source_read(s, buf, 20, 20 * (uint64_t)PEN_PAGE_BYTES - 10, &err), PEN_E_IO);
    check_read(s, 20 * (uint64_t)PEN_PAGE_BYTES - 10, 20);
    CHECK_INT(pen__source_read(s, buf, 20, BYTES - 10, &err), PEN_E_CORRUPT);
    uint64_t before = o->n_reads;
    CHECK_INT(pen__source_read_again(s, buf, 20, 0, &err), PEN_OK);
    CHECK_INT(o->n_reads, before + 1);
    pen__source_close(&s);
    CHECK_INT(closed, 1);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(close_ranges_take_one_request);
    RUN(pages_that_were_used_last_are_kept);
    RUN(a_page_that_could_not_be_read_is_read_again);
    return TEST_END();
}
