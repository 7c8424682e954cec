/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a small XML document (on expat) and hands over the text of its elements, each by its path.
 * What a server has no reason to send is refused: over 1 MiB, over 32 elements deep, a document
 * type (and with it entities of its own), anything but UTF-8. */
#ifndef PEN_NET_S3_XML_H
#define PEN_NET_S3_XML_H

#include <stddef.h>

#include <penstock/error.h>

#define PEN_XML_BYTES (1u << 20)
#define PEN_XML_DEPTH 32
#define PEN_XML_PATH_BYTES 512 /* of all open elements' names together */

/* A path is "ListPartsResult/Part/ETag", without prefixes of namespaces. A failure ends the reading
 * and is what pen__xml_read returns. */
typedef struct PenXmlCalls {
    int (*begin)(void *ctx, const char *path, PenError *reterr); /* may be NULL */
    /* At the end of an element without others in it. Ends in NUL, wiped after the call. */
    int (*text)(void *ctx, const char *path, const char *text, size_t bytes, PenError *reterr);
} PenXmlCalls;

/* What was read before a failure has been handed over. All memory it used is wiped: an answer may
 * hold keys. PEN_E_CORRUPT, PEN_E_LIMIT, PEN_E_NO_MEMORY. */
int pen__xml_read(const void *data, size_t bytes, const PenXmlCalls *calls, void *ctx,
                  PenError *reterr);

#endif
