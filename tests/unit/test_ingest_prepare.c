/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "codec_images.h"
#include "ingest/prepare/prepare.h"
#include "test.h"

static PenPrepareSettings settings;
static PenError err;

static void ask(int mode)
{
    settings = (PenPrepareSettings){
        .mode = mode, .quality = 90, .index = 1, .limits = pen__limits_default};
}

static void make_file(const JpegSpec *spec, PenBuf *file)
{
    make_jpeg(spec, file);
    CHECK_INT(pen__buf_reserve(file, PEN_SLACK), PEN_OK);
}

/* Prepares a file whose memory stays the caller's. */
static int prepare(const PenBuf *file, size_t bytes, PenPreparedImage *p)
{
    *p = (PenPreparedImage){.source = {.data = file->data, .bytes = bytes, .cap = file->cap}};
    return pen__prepare_image(&settings, (const uint8_t *)"key", 3, 0, p, &err);
}

static void drop(PenPreparedImage *p)
{
    p->source = (PenBuf){0};
    pen__prepared_image_free(p);
}

/* The parts of a file follow each other, up to what is behind its end. */
static void check_parts(const PenPreparedImage *p, size_t tail_bytes)
{
    const PenStoredEntries *e = &p->image.entries;
    CHECK(e->plan.n_entries > 1 && e->coded_bytes >= 2 * (e->plan.n_entries - 1));
    CHECK(e->lead_bytes >= 2 && e->head_bytes > e->lead_bytes);
    CHECK_INT(e->head_bytes + e->scan_bytes + tail_bytes, p->image.bytes);
    CHECK_INT(p->image.data[e->lead_bytes], 0xFF);
    CHECK_INT(p->image.data[e->head_bytes + e->scan_bytes], 0xFF);
    CHECK_INT(p->image.data[e->head_bytes + e->scan_bytes + 1], 0xD9);
}

TEST(kept_files_are_described)
{
    PenBuf file = {0};
    PenPreparedImage p;
    ask(PEN_MODE_KEEP);
    make_file(&(JpegSpec){.width = 97, .height = 61, .h = 2, .v = 1}, &file);
    CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
    CHECK_INT(p.image.how, PEN_HOW_INDEXED);
    CHECK(p.image.data == file.data && !p.no_index);
    CHECK_INT(p.image.entries.h_samp, 2);
    CHECK_INT(p.image.entries.v_samp, 1);
    CHECK_INT(p.image.entries.plan.unit, 12);
    check_parts(&p, 2);
    drop(&p);
    make_file(&(JpegSpec){.width = 97, .height = 61, .channels = 1}, &file);
    CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
    CHECK_INT(p.image.entries.h_samp, 1);
    CHECK_INT(p.image.entries.plan.unit, 48);
    check_parts(&p, 2);
    drop(&p);
    pen__buf_free(&file);
}

/* The numbers of a table have 32 bits. What follows the image is not read. */
TEST(files_of_4_gib_have_no_index)
{
    const size_t bytes = ((size_t)4 << 30) + PEN_SLACK;
    PenBuf file = {0};
    PenPreparedImage p;
    uint8_t *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        SKIP("4 GiB of addresses are not to be had");
    ask(PEN_MODE_KEEP);
    make_file(&(JpegSpec){.width = 97, .height = 61}, &file);
    memcpy(data, file.data, file.bytes);
    PenBuf large = {.data = data, .bytes = bytes, .cap = bytes};
    CHECK_INT(prepare(&large, (size_t)4 << 30, &p), PEN_OK);
    CHECK_INT(p.image.how, PEN_HOW_KEPT);
    CHECK_STR(p.no_index, "over 4 GiB");
    CHECK_INT(p.image.entries.plan.n_entries, 0);
    drop(&p);
    CHECK_INT(prepare(&large, file.bytes + 5, &p), PEN_OK);
    CHECK_INT(p.image.how, PEN_HOW_INDEXED);
    check_parts(&p, 2 + 5);
    drop(&p);
    munmap(data, bytes);
    pen__buf_free(&file);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(kept_files_are_described);
    RUN(files_of_4_gib_have_no_index);
    return TEST_END();
}
