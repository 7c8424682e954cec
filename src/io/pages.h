/* SPDX-License-Identifier: Apache-2.0 */
/* A remote object of which small ranges are read, most of them close to each other: each request
 * fetches an entire page, and the pages that were used last are kept. */
#ifndef PEN_IO_PAGES_H
#define PEN_IO_PAGES_H

#include "io/source.h"

/* Takes over `*source` and puts a source in its place that has the same bytes; on failure both are
 * closed. A range of a page or more is read by itself. Takes up to PEN_PAGES pages of memory. */
enum { PEN_PAGE_BYTES = 512 << 10, PEN_PAGES = 16 };
int pen__source_pages(PenSource **source, PenError *reterr);

#endif
