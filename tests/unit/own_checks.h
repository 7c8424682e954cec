/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes by the own decoder, tier by tier: files of every sampling, size, shape and quality. */
#ifndef PEN_TESTS_OWN_CHECKS_H
#define PEN_TESTS_OWN_CHECKS_H

#include "base/machine/cpu.h"
#include "codec/jpeg/decoder/decoder_impl.h"
#include "codec/region/region_impl.h"
#include "region_checks.h"

/* The samplings that it takes. */
static const JpegSpec kinds[] = {
    {SAMPLING(1, 1, 1, 1)}, {SAMPLING(2, 1, 1, 1)}, {SAMPLING(1, 2, 1, 1)},
    {SAMPLING(2, 2, 1, 1)}, {.channels = 1},
};

/* A decoder for each tier that this machine has; `decoder` is one of them. */
static PenDecoder *tiers[PEN_CPU_TIERS];
static uint32_t n_tiers;

#define EACH_TIER(i) for (uint32_t i = 0; i < n_tiers && (decoder = tiers[i]); i++)

static void make_tiers(void)
{
    for (int i = 0; i < PEN_CPU_TIERS; i++) {
        PenDecoder *d = NULL;
        if (pen__decoder_new(&d, NULL) != PEN_OK)
            abort();
        if (pen__decoder_use(d, pen__cpu_name(i), NULL) == PEN_OK)
            tiers[n_tiers++] = d;
        else
            pen__decoder_free(&d);
    }
}

static void check_own_box(const PenEncoded *e, const PenPixels *whole, PenBox box, int32_t colour)
{
    EACH_TIER(i)
    {
        check_box(e, whole, box, colour);
        CHECK_INT(decoder->own->given, box.h); /* libjpeg had nothing to do */
        if (test__now.state == TEST_FAILED)
            printf("tier %s\n", decoder->own->pixels->tier);
        CHECK_OK_SO_FAR();
    }
}

typedef void CheckSpec(const JpegSpec *spec, uint32_t n_boxes);

static void check_kinds(CheckSpec *check, JpegSpec like, uint32_t n_boxes)
{
    for (size_t k = 0; k < PEN_LEN(kinds); k++) {
        JpegSpec spec = kinds[k];
        spec.width = like.width;
        spec.height = like.height;
        spec.quality = like.quality;
        check(&spec, n_boxes);
        CHECK_OK_SO_FAR();
    }
}

static void check_sizes(CheckSpec *check)
{
    static const uint32_t widths[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 63, 64, 65, 129, 250};
    static const uint32_t heights[] = {1, 2, 3, 8, 9, 16, 17, 40, 100};
    for (uint32_t i = 0; i < PEN_LEN(widths) * PEN_LEN(heights); i++) {
        JpegSpec spec = {.width = widths[i % PEN_LEN(widths)],
                         .height = heights[i / PEN_LEN(widths)]};
        check_kinds(check, spec, i % 5 ? 3 : 14);
        CHECK_OK_SO_FAR();
    }
}

/* More rows of MCUs than the ring holds; segments of many rows, and rows of many segments. */
static void check_shapes(CheckSpec *check)
{
    static const uint32_t shape[][2] = {{5, 4000}, {9, 2500}, {700, 500}, {3000, 60}, {40, 1500}};
    for (size_t i = 0; i < PEN_LEN(shape); i++) {
        check_kinds(check, (JpegSpec){.width = shape[i][0], .height = shape[i][1]}, 8);
        CHECK_OK_SO_FAR();
    }
}

/* Long codes and large values, or next to nothing but DC. */
static void check_qualities(CheckSpec *check)
{
    static const int quality[] = {100, 97, 60, 20, 5, 1};
    for (size_t i = 0; i < PEN_LEN(quality); i++) {
        check_kinds(check, (JpegSpec){.width = 203, .height = 97, .quality = quality[i]}, 8);
        CHECK_OK_SO_FAR();
    }
}

#endif
