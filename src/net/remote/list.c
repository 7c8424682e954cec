/* SPDX-License-Identifier: Apache-2.0 */
/* What lies below an address, page by page: for packing it, and for removing what is left over.
 * Readers of packs never list. */
#include <stdbool.h>
#include <string.h>

#include "net/remote/list.h"
#include "net/remote/remote_impl.h"
#include "net/s3/response.h"

#define WHERE "net/remote"

/* A page has up to 1,000 keys of up to 1,024 bytes, of which each may be written as three. */
enum { PAGE_BYTES = 4 << 20, MOST_PAGES = 1000000 };
enum { MOST_EMPTY_PAGES = 1000 }; /* one after another; stores return some after deletions */
enum { FOLDER_PAGES = 1000 };     /* behind them, a list goes on page after page */

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

static int fail_endless(const Pages *p, const char *what, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                     "%s: expected a list of at most %s, found more; the server may list without "
                     "end. Use a prefix with fewer objects",
                     pen__remote_text(p->r), what);
}

/* The name below the address, or NULL for what is not. */
static const char *below(const Pages *p, const char *key)
{
    size_t n = p->prefix.bytes - 1;
    return strncmp(key, (const char *)p->prefix.data, n) == 0 && key[n] ? key + n : NULL;
}

/* ---- objects --------------------------------------------------------------------------------- */

struct PenListing {
    Pages pages;
    PenBuf after; /* the key that is sent as start-after; empty: none */
    PenBuf last;  /* key of the last object so far */
    PenS3Objects list;
    int n_pages, n_empty;
    bool is_ended, is_unsorted;
};

static int set_key(PenBuf *key, const void *text, size_t bytes)
{
    key->bytes = 0;
    int e = pen__buf_add(key, text, bytes);
    return e < 0 ? e : pen__buf_add(key, "", 1);
}

static int set_after(PenListing *l, const char *after)
{
    size_t prefix = l->pages.prefix.bytes - 1;
    int e = pen__buf_add(&l->after, l->pages.prefix.data, prefix);
    if (e == PEN_OK)
        e = pen__buf_add(&l->after, after, strlen(after) + 1);
    return e < 0 ? e : set_key(&l->last, l->after.data, l->after.bytes - 1);
}

int pen__listing_open(PenRemote *r, const char *after, PenListing **ret, PenError *reterr)
{
    PenListing *l = pen__zalloc(sizeof *l);
    if (!l)
        return pen__fail_memory(reterr, WHERE, "list");
    int e = open_pages(&l->pages, r, reterr);
    if (e == PEN_OK && after && set_after(l, after) < 0)
        e = pen__fail_memory(reterr, WHERE, "list");
    if (e < 0)
        pen__listing_close(&l);
    else
        *ret = l;
    return e;
}

void pen__listing_close(PenListing **listing)
{
    PenListing *l = *listing;
    *listing = NULL;
    if (!l)
        return;
    pen__s3_objects_free(&l->list);
    pen__buf_free(&l->after);
    pen__buf_free(&l->last);
    close_pages(&l->pages);
    pen__free(l);
}

int pen__listing_count(PenListing *l, uint64_t pages, PenError *reterr)
{
    return pages > MOST_PAGES ? fail_endless(&l->pages, "1,000,000 pages", reterr) : PEN_OK;
}

/* Will the list end, as far as this page says? */
static int check_end(PenListing *l, const PenS3Objects *before, PenError *reterr)
{
    const char *token = l->list.next_token;
    if (l->list.more && token && before->next_token && strcmp(token, before->next_token) == 0)
        return fail_endless(&l->pages, "one page for each continuation token", reterr);
    l->n_empty = l->list.n ? 0 : l->n_empty + 1;
    if (l->n_empty > MOST_EMPTY_PAGES)
        return fail_endless(&l->pages, "1,000 pages without objects", reterr);
    return pen__listing_count(l, (uint64_t)l->n_pages, reterr);
}

int pen__listing_next(PenListing *l, PenError *reterr)
{
    Pages *p = &l->pages;
    PenS3Error why = {0};
    size_t bytes = 0;
    PenHttpHeader query[] = {{"list-type", "2"},
                             {"prefix", (const char *)p->prefix.data},
                             {"encoding-type", "url"},
                             {"start-after", (const char *)l->after.data}};
    size_t n = l->after.bytes ? 4 : 3;
    if (l->is_ended || (l->n_pages && !l->list.more))
        return 0;
    l->n_pages++;
    if (l->list.next_token) {
        query[3] = (PenHttpHeader){"continuation-token", l->list.next_token};
        n = 4;
    }
    int e = ask_page(p, query, n, &bytes, reterr);
    PenS3Objects before = l->list;
    l->list = (PenS3Objects){0};
    if (e == PEN_OK)
        e = refused(p, pen__s3_read_objects(p->page, bytes, &l->list, &why, reterr), &why, reterr);
    if (e == PEN_OK)
        e = check_end(l, &before, reterr);
    pen__s3_objects_free(&before);
    return e < 0 ? e : 1;
}

/* Notes the key; is it after the one before it? */
static int take_key(PenListing *l, const char *key, bool has_order, PenError *reterr)
{
    const char *last = (const char *)l->last.data;
    bool sorted = !l->last.bytes || strcmp(last, key) < 0;
    l->is_unsorted |= !sorted;
    if (!sorted && has_order)
        return pen__fail(reterr, PEN_E_IO, WHERE,
                         "%s: expected a list in the order of keys, found %.200s after %.200s",
                         pen__remote_text(l->pages.r), key, last);
    return set_key(&l->last, key, strlen(key)) < 0 ? pen__fail_memory(reterr, WHERE, "list")
                                                   : PEN_OK;
}

int pen__listing_each(PenListing *l, const char *until, PenListedFn each, void *ctx,
                      PenError *reterr)
{
    for (size_t i = 0; i < l->list.n; i++) {
        const PenS3Object *item = &l->list.items[i];
        const char *name = below(&l->pages, item->key);
        PenObject object = {.bytes = item->bytes};
        int e = take_key(l, item->key, until || l->after.bytes, reterr);
        if (e == PEN_OK && name && until && strcmp(name, until) > 0) {
            l->is_ended = true;
            return PEN_OK;
        }
        memcpy(object.etag, item->etag, sizeof object.etag);
        if (e == PEN_OK && name)
            e = each(ctx, name, &object, reterr);
        if (e)
            return e;
    }
    return PEN_OK;
}

int pen__listing_more(const PenListing *l)
{
    return !l->is_ended && l->list.more;
}

const char *pen__listing_last(const PenListing *l)
{
    return l->is_unsorted || !l->last.bytes ? NULL : below(&l->pages, (const char *)l->last.data);
}

typedef struct Call {
    PenObjectFn each;
    void *ctx;
    PenListing *listing;
    uint64_t bytes;
} Call;

static int call(void *ctx, const char *name, const PenObject *object, PenError *reterr)
{
    Call *c = ctx;
    c->bytes += strlen(name) + PEN_LISTED_BYTES;
    if (c->bytes > (uint64_t)PEN_LIST_MIB << 20)
        return fail_endless(&c->listing->pages, "256 MiB of names", reterr);
    return c->each(c->ctx, name, object);
}

int pen__remote_list(PenRemote *r, PenObjectFn each, void *ctx, PenError *reterr)
{
    PenListing *l = NULL;
    int found = 1, e = pen__listing_open(r, NULL, &l, reterr);
    Call c = {.each = each, .ctx = ctx, .listing = l};
    while (!e && found == 1) {
        found = pen__listing_next(l, reterr);
        if (found)
            e = found < 0 ? found : pen__listing_each(l, NULL, call, &c, reterr);
    }
    pen__listing_close(&l);
    return e;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* 0: the server has not passed over what is before `after`. */
static int each_folder(const Pages *p, const PenS3Prefixes *list, const char *after,
                       PenFolderFn each, void *ctx)
{
    int e = 1;
    for (size_t i = 0; i < list->n && e == 1; i++) {
        const char *name = below(p, list->items[i].prefix);
        if (name && strcmp(name, after) <= 0)
            return 0;
        e = name ? each(ctx, name) : PEN_OK;
        e = e ? e : 1;
    }
    return e;
}

int pen__remote_list_folders(PenRemote *r, const char *after, PenFolderFn each, void *ctx,
                             PenError *reterr)
{
    Pages p;
    PenBuf start = {0};
    PenS3Prefixes list = {0};
    size_t bytes = 0;
    int e = open_pages(&p, r, reterr);
    if (e == PEN_OK && (pen__buf_add(&start, p.prefix.data, p.prefix.bytes - 1) < 0 ||
                        pen__buf_add(&start, after, strlen(after) + 1) < 0))
        e = pen__fail_memory(reterr, WHERE, "list");
    for (int page = 0; e >= 0 && page < FOLDER_PAGES; page++) {
        PenHttpHeader query[] = {{"list-type", "2"},
                                 {"prefix", (const char *)p.prefix.data},
                                 {"encoding-type", "url"},
                                 {"delimiter", "/"},
                                 {"start-after", (const char *)start.data},
                                 {"continuation-token", list.next_token}};
        PenS3Error why = {0};
        e = ask_page(&p, query, list.next_token ? 6 : 5, &bytes, reterr);
        pen__s3_prefixes_free(&list);
        if (e == PEN_OK)
            e = refused(&p, pen__s3_read_prefixes(p.page, bytes, &list, &why, reterr), &why,
                        reterr);
        if (e == PEN_OK)
            e = each_folder(&p, &list, after, each, ctx);
        if (e != 1 || !list.more || !list.n)
            break;
    }
    pen__s3_prefixes_free(&list);
    pen__buf_free(&start);
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
