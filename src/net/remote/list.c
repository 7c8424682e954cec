/* SPDX-License-Identifier: Apache-2.0 */
/* What lies below an address, page by page: for packing it, and for removing what is left over.
 * Readers of packs never list. */
#include <string.h>

#include "net/remote/remote_impl.h"
#include "net/s3/response.h"

#define WHERE "net/remote"

/* A page has up to 1,000 keys of up to 1,024 bytes, of which each may be written as three. */
enum { PAGE_BYTES = 4 << 20, MOST_PAGES = 1000000 };

typedef struct Pages {
    PenRemote *r;
    PenBuf prefix; /* of the keys */
    char *page;
} Pages;

static int open_pages(Pages *p, PenRemote *r, PenError *reterr)
{
    *p = (Pages){.r = r};
    const char *path = r->address.path;
    size_t n = strlen(path);
    p->page = pen__alloc(PAGE_BYTES);
    int e = p->page ? pen__buf_add(&p->prefix, path, n) : PEN_E_NO_MEMORY;
    if (e == PEN_OK && n && path[n - 1] != '/')
        e = pen__buf_add(&p->prefix, "/", 1);
    if (e == PEN_OK)
        e = pen__buf_add(&p->prefix, "", 1);
    return e < 0 ? pen__fail_memory(reterr, WHERE, "list") : PEN_OK;
}

static void close_pages(Pages *p)
{
    pen__buf_free(&p->prefix);
    pen__free(p->page);
}

static int ask_page(Pages *p, const PenHttpHeader *query, size_t n, size_t *ret_bytes,
                    PenError *reterr)
{
    PenRemoteOp op = {.r = p->r,
                      .method = "GET",
                      .name = "",
                      .at_bucket = 1,
                      .query = query,
                      .n_query = n,
                      .into = p->page,
                      .into_bytes = PAGE_BYTES};
    int e = pen__remote_run(&op, reterr);
    *ret_bytes = (size_t)op.bytes;
    return e;
}

static int refused(const Pages *p, int e, const PenS3Error *why, PenError *reterr)
{
    if (e <= 0)
        return e;
    e = pen__fail(reterr, PEN_E_IO, WHERE, "%s: cannot list it: the server returned %s",
                  pen__remote_text(p->r), why->code);
    pen__remote_hide(p->r, reterr);
    return e;
}

/* The name below the address, or NULL for what is not. */
static const char *below(const Pages *p, const char *key)
{
    size_t n = p->prefix.bytes - 1;
    return strncmp(key, (const char *)p->prefix.data, n) == 0 && key[n] ? key + n : NULL;
}

static int each_object(const Pages *p, const PenS3Objects *list, PenObjectFn each, void *ctx)
{
    int e = 0;
    for (size_t i = 0; i < list->n && !e; i++) {
        const char *name = below(p, list->items[i].key);
        PenObject object = {.bytes = list->items[i].bytes};
        memcpy(object.etag, list->items[i].etag, sizeof object.etag);
        e = name ? each(ctx, name, &object) : 0;
    }
    return e;
}

int pen__remote_list(PenRemote *r, PenObjectFn each, void *ctx, PenError *reterr)
{
    Pages p;
    PenS3Objects list = {0};
    size_t bytes = 0;
    int e = open_pages(&p, r, reterr);
    for (int page = 0; e == PEN_OK && page < MOST_PAGES; page++) {
        PenHttpHeader query[] = {{"list-type", "2"},
                                 {"prefix", (const char *)p.prefix.data},
                                 {"encoding-type", "url"},
                                 {"continuation-token", list.next_token}};
        PenS3Error why = {0};
        e = ask_page(&p, query, list.next_token ? 4 : 3, &bytes, reterr);
        pen__s3_objects_free(&list);
        if (e == PEN_OK)
            e = refused(&p, pen__s3_read_objects(p.page, bytes, &list, &why, reterr), &why, reterr);
        if (e == PEN_OK)
            e = each_object(&p, &list, each, ctx);
        if (e || !list.more)
            break;
        if (page == MOST_PAGES - 1)
            e = pen__fail(reterr, PEN_E_LIMIT, WHERE,
                          "%s: expected at most %d pages of a listing, found more",
                          pen__remote_text(r), MOST_PAGES);
    }
    pen__s3_objects_free(&list);
    close_pages(&p);
    return e;
}

/* ---- uploads that were left ------------------------------------------------------------------ */

static int abort_one(PenRemote *r, const char *name, const char *id, PenError *reterr)
{
    PenHttpHeader query[] = {{"uploadId", id}};
    PenRemoteOp op = {.r = r, .method = "DELETE", .name = name, .query = query, .n_query = 1};
    int e = pen__remote_run(&op, reterr);
    return e == PEN_E_NOT_FOUND ? PEN_OK : e;
}

static int abort_all(const Pages *p, const PenS3Uploads *list, uint64_t before_s, uint64_t *n,
                     PenError *reterr)
{
    int e = PEN_OK;
    for (size_t i = 0; i < list->n && e == PEN_OK; i++) {
        const PenS3Upload *u = &list->items[i];
        const char *name = below(p, u->key);
        if (!name || (before_s && u->started_s >= before_s))
            continue;
        e = abort_one(p->r, name, u->id, reterr);
        *n += e == PEN_OK;
    }
    return e;
}

int pen__remote_abort_uploads(PenRemote *r, uint64_t before_s, uint64_t *ret_n, PenError *reterr)
{
    Pages p;
    PenS3Uploads list = {0};
    size_t bytes = 0;
    uint64_t n = 0;
    int e = open_pages(&p, r, reterr);
    for (int page = 0; e == PEN_OK && page < MOST_PAGES; page++) {
        PenHttpHeader query[] = {{"uploads", NULL},
                                 {"prefix", (const char *)p.prefix.data},
                                 {"encoding-type", "url"},
                                 {"key-marker", list.next_key},
                                 {"upload-id-marker", list.next_id}};
        PenS3Error why = {0};
        size_t n_query = list.next_key ? (list.next_id ? 5u : 4u) : 3u;
        e = ask_page(&p, query, n_query, &bytes, reterr);
        pen__s3_uploads_free(&list);
        if (e == PEN_OK)
            e = refused(&p, pen__s3_read_uploads(p.page, bytes, &list, &why, reterr), &why, reterr);
        if (e == PEN_OK)
            e = abort_all(&p, &list, before_s, &n, reterr);
        if (e || !list.more)
            break;
    }
    pen__s3_uploads_free(&list);
    close_pages(&p);
    if (e == PEN_OK)
        *ret_n = n;
    return e;
}
