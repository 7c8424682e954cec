/* SPDX-License-Identifier: Apache-2.0 */
/* Small packs for the tests that read them. */
#ifndef PEN_TESTS_UNIT_PACK_HELP_H
#define PEN_TESTS_UNIT_PACK_HELP_H

#include <penstock/penstock.h>

#include "codec_images.h"
#include "ingest_help.h"
#include "pack/reader/reader.h"

/* A JPEG of its own for every number. */
void help_jpeg(uint32_t number, PenBuf *out);

/* Writes folder/<class>/<number>.jpg for n numbers. */
void help_folder(const char *folder, uint32_t first, uint32_t n);

/* Settings for packing at(folder) into at(out), with blocks and shards so small that there are
 * several. */
PenIngestSettings help_ingest(const char *folder, const char *out);

/* Is it the image of help_folder that its key says? The buffers are the caller's to free. */
void help_check_image(PenPack *pack, uint64_t sample, PenBuf *found, PenBuf *expected);

/* All of a field; the caller's to free. */
void help_read(PenPack *pack, uint64_t sample, uint32_t field, PenBuf *out);

#endif
