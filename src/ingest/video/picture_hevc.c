/* SPDX-License-Identifier: Apache-2.0 */
/* HEVC (ITU-T Rec. H.265, 7.3): random access pictures, and the leading pictures that a decoder
 * leaves out. */
#include "ingest/video/bits.h"
#include "ingest/video/nal.h"
#include "ingest/video/picture.h"

enum {
    RASL_N = 8,
    RASL_R = 9,
    BLA_FIRST = 16,
    BLA_LAST = 18,
    CRA = 21,
    LAST_PICTURE = 31,
    SEQUENCE_SET = 33,
    PICTURE_SET = 34,
    END_OF_SEQUENCE = 36,
    END_OF_STREAM = 37
};

static const char hidden_pictures[] = "HEVC with pictures that are not shown";

static unsigned type_of(PenNal nal)
{
    return nal.data[0] >> 1 & 63u;
}

/* Only of the base layer, and with a byte after the header. */
static bool is_used(PenNal nal)
{
    return nal.bytes > 2 && !(nal.data[0] & 1) && !(nal.data[1] >> 3);
}

/* profile_tier_level() */
static void skip_profile(PenBits *b, unsigned layers)
{
    enum { PROFILE = 88, LEVEL = 8 };
    uint32_t has = 0; /* a profile and a level for each layer: two bits */
    pen__bits_skip(b, PROFILE + LEVEL);
    if (layers)
        has = pen__bits_take(b, 16);
    for (unsigned i = 0; i < layers; i++, has <<= 2)
        pen__bits_skip(b, (has >> 15 & 1) * PROFILE + (has >> 14 & 1) * LEVEL);
}

static void take_size(PenNal nal, PenPicture *ret)
{
    PenBits b = pen__bits(nal.data, nal.bytes, true);
    pen__bits_skip(&b, 16 + 4);
    unsigned layers = pen__bits_take(&b, 3);
    pen__bits_skip(&b, 1);
    skip_profile(&b, layers);
    (void)pen__bits_golomb(&b);
    if (pen__bits_golomb(&b) == 3)
        pen__bits_skip(&b, 1);
    uint32_t width = pen__bits_golomb(&b), height = pen__bits_golomb(&b);
    if (b.is_over)
        return;
    ret->width = width;
    ret->height = height;
}

static const char *take_set(PenNal nal, PenPicture *ret)
{
    PenBits b = pen__bits(nal.data, nal.bytes, true);
    if (is_used(nal) && type_of(nal) == SEQUENCE_SET)
        take_size(nal, ret);
    if (!is_used(nal) || type_of(nal) != PICTURE_SET)
        return NULL;
    pen__bits_skip(&b, 16);
    (void)pen__bits_golomb(&b);
    (void)pen__bits_golomb(&b);
    pen__bits_skip(&b, 1);
    return pen__bit(&b) ? hidden_pictures : NULL;
}

/* hvcC (ISO/IEC 14496-15, 8.3.3): arrays of parameter sets, each after its length in two bytes. */
static const char *take_configuration(PenPictureParser *p, const uint8_t *extra, size_t bytes,
                                      PenPicture *ret)
{
    static const char cut_off[] = "an HEVC configuration that is cut off";
    size_t at = 23;
    if (bytes < at)
        return cut_off;
    p->length_bytes = (extra[21] & 3) + 1;
    for (unsigned arrays = extra[22]; arrays; arrays--) {
        if (bytes - at < 3)
            return cut_off;
        unsigned n = (unsigned)extra[at + 1] << 8 | extra[at + 2];
        for (at += 3; n; n--) {
            PenNal nal = pen__nal_next(extra, bytes, &at, 2);
            const char *wrong = nal.data ? take_set(nal, ret) : cut_off;
            if (wrong)
                return wrong;
        }
    }
    return NULL;
}

const char *pen__hevc_start(PenPictureParser *p, const uint8_t *extra, size_t bytes,
                            PenPicture *ret)
{
    size_t at = 0;
    const char *wrong = NULL;
    if (bytes > 2 && (extra[0] || extra[1] || extra[2] > 1))
        return take_configuration(p, extra, bytes, ret);
    for (PenNal nal; !wrong && (nal = pen__nal_next(extra, bytes, &at, 0)).data;)
        wrong = take_set(nal, ret);
    return wrong;
}

/* The first slice of a picture. */
static const char *take_picture(PenPictureParser *p, PenNal nal, PenPicture *ret)
{
    unsigned type = type_of(nal);
    bool is_bla = type >= BLA_FIRST && type <= BLA_LAST;
    ret->shown = 1;
    if (type >= BLA_FIRST && type <= CRA) {
        bool drops = nal.data[2] >> 6 & 1; /* no_output_of_prior_pics_flag */
        if (drops && p->is_started)
            return hidden_pictures;
        ret->is_key = true;
        ret->may_have_leading = is_bla || type == CRA;
        p->is_skipping = p->is_broken || is_bla;
        p->is_broken = false;
        p->is_started = true;
    } else if ((type == RASL_N || type == RASL_R) && p->is_skipping) {
        ret->shown = 0;
    }
    return NULL;
}

const char *pen__hevc_parse(PenPictureParser *p, const uint8_t *data, size_t bytes, PenPicture *ret)
{
    size_t at = 0;
    unsigned pictures = 0;
    for (PenNal nal; (nal = pen__nal_next(data, bytes, &at, p->length_bytes)).data;) {
        const char *wrong = take_set(nal, ret);
        if (wrong)
            return wrong;
        if (nal.bytes >= 2 && (type_of(nal) == END_OF_SEQUENCE || type_of(nal) == END_OF_STREAM))
            p->is_broken = true;
        if (!is_used(nal) || type_of(nal) > LAST_PICTURE || !(nal.data[2] >> 7))
            continue;
        if (pictures++)
            return "HEVC with several pictures in a packet";
        wrong = take_picture(p, nal, ret);
        if (wrong)
            return wrong;
    }
    return NULL;
}
