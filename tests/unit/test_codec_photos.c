/* SPDX-License-Identifier: Apache-2.0 */
/* Real photographs: PENSTOCK_PHOTOS names a directory of directories of JPEG files, or
 * ../shared/data/photos beside the source is used. 50 of them; all with PENSTOCK_FULL=1. */
#include <glob.h>
#include <stdlib.h>

#include "codec/jpeg/decoder/scan.h"
#include "codec_images.h"
#include "region_checks.h"

static bool find_photos(glob_t *ret)
{
    char pattern[4096];
    const char *dir = getenv("PENSTOCK_PHOTOS"), *end = strstr(__FILE__, "tests/unit/");
    if (dir)
        snprintf(pattern, sizeof pattern, "%s/*/*.[Jj][Pp]*[Gg]", dir);
    else
        snprintf(pattern, sizeof pattern, "%.*s../shared/data/photos/*/*.[Jj][Pp]*[Gg]",
                 (int)(end ? end - __FILE__ : 0), __FILE__);
    return glob(pattern, 0, NULL, ret) == 0;
}

typedef struct IndexAccount {
    size_t files, without, boxes, source_bytes, index_bytes;
} IndexAccount;

/* Boxes of a photograph as it is, by the index that is made of it. */
static void check_indexed(const char *path, PenBuf *file, PenEntryScan *scan, PenDecoder *d,
                          IndexAccount *account)
{
    PenJpegHeader header;
    PenJpegEntries index;
    PenPixels whole;
    PenBuf coded = {0};
    const char *why = "";
    CHECK(read_whole_file(path, file));
    CHECK_INT(pen__jpeg_header(file->data, file->bytes, limits, &header, NULL), PEN_OK);
    account->source_bytes += file->bytes;
    if (pen__entry_scan(scan, &header, file->data, file->bytes, pen__entry_unit(&header.info),
                        &index, &why, NULL) != PEN_OK) {
        printf("%s: no index: %s\n", path, why);
        account->without++;
        return;
    }
    account->files++;
    CHECK_INT(pen__entries_write(&index, &coded, NULL), PEN_OK);
    account->index_bytes += coded.bytes;
    CHECK_INT(pen__image_decode(file->data, file->bytes, limits, &whole, NULL), PEN_OK);
    PenEncoded e = {.data = file->data,
                    .bytes = file->bytes,
                    .width = whole.width,
                    .height = whole.height,
                    .codec = PEN_STORED_JPEG,
                    .channels = (uint8_t)whole.channels,
                    .head_bytes = (uint32_t)header.info.head_bytes,
                    .entries = &index};
    for (uint32_t i = 0; i < 6; i++) {
        PenBox box = nth_box(i ? 10 : 0, e.width, e.height);
        CHECK_INT(find_region(d, &e, box, PEN_COLOUR_RGB, &found, NULL), PEN_OK);
        CHECK_INT(count_different(&whole, box, PEN_COLOUR_RGB, &found), 0);
        account->boxes++;
    }
    pen__buf_free(&coded);
    pen__pixels_free(&whole);
}

TEST(photos_with_an_index_give_the_same_pixels)
{
    glob_t photos;
    if (!find_photos(&photos))
        SKIP("no photographs; set PENSTOCK_PHOTOS to a directory of class directories");
    const char *full = getenv("PENSTOCK_FULL");
    size_t step = full && *full == '1' ? 1 : photos.gl_pathc / 50 + 1;
    PenBuf file = {0};
    PenEntryScan *scan = NULL;
    PenDecoder *d = NULL;
    IndexAccount a = {0};
    CHECK_INT(pen__entry_scan_new(&scan, NULL), PEN_OK);
    CHECK_INT(pen__decoder_new(&d, NULL), PEN_OK);
    for (size_t i = 0; i < photos.gl_pathc; i += step) {
        check_indexed(photos.gl_pathv[i], &file, scan, d, &a);
        CHECK_OK_SO_FAR();
    }
    printf("photos: %zu with an index of %.4f of the source, %zu without; %zu boxes\n", a.files,
           (double)a.index_bytes / (double)a.source_bytes, a.without, a.boxes);
    CHECK(a.files > a.without && a.index_bytes > 0 && a.index_bytes < a.source_bytes / 40);
    pen__entry_scan_free(&scan);
    pen__decoder_free(&d);
    end_regions();
    pen__buf_free(&file);
    globfree(&photos);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(photos_with_an_index_give_the_same_pixels);
    return TEST_END();
}
