/* SPDX-License-Identifier: Apache-2.0 */
/* Listing what lies below an address: a page at a time, or the folders of it. Names are below the
 * address. */
#ifndef PEN_NET_REMOTE_LIST_H
#define PEN_NET_REMOTE_LIST_H

#include "net/remote/remote.h"

typedef struct PenListing PenListing;

/* Objects whose names are greater than `after`; NULL: all. */
int pen__listing_open(PenRemote *r, const char *after, PenListing **ret, PenError *reterr);
/* Fetches the next page: 1, or 0 behind the last. */
int pen__listing_next(PenListing *l, PenError *reterr);
/* The objects of that page. One whose name is greater than `until` ends the listing; NULL: none
 * does. A listing after or until a name has to be in order: if not, PEN_E_IO. */
int pen__listing_each(PenListing *l, const char *until, PenListedFn each, void *ctx,
                      PenError *reterr);
/* PEN_E_LIMIT if all parts of a list have had too many pages. */
int pen__listing_count(PenListing *l, uint64_t pages, PenError *reterr);
int pen__listing_more(const PenListing *l); /* 1: there are more pages */
/* The last name so far; NULL: there is none, or they were not in order. Lives until the next call
 * of pen__listing_each. */
const char *pen__listing_last(const PenListing *l);
void pen__listing_close(PenListing **l); /* accepts NULL */

/* Names such as "a/" of which objects begin, as many of those greater than `after` as a thousand
 * pages have. 0: this server does not begin after a name; 1: it does; or what `each` returns. */
typedef int (*PenFolderFn)(void *ctx, const char *name);
int pen__remote_list_folders(PenRemote *r, const char *after, PenFolderFn each, void *ctx,
                             PenError *reterr);

#endif
