/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be done to one image, with nothing left to chance. */
#ifndef PEN_OPS_SAMPLE_SAMPLE_PLAN_H
#define PEN_OPS_SAMPLE_SAMPLE_PLAN_H

#include <penstock/decode.h>

#include "dsp/stream.h"
#include "dsp/warp.h"

/* An image as the index describes it. */
typedef struct PenImageShape {
    uint32_t width, height; /* as stored */
    uint8_t orientation;    /* 1-8, applied before all operations */
    uint8_t shrinks;        /* it can be decoded at 1/2, 1/4 and 1/8 of its size: a JPEG */
} PenImageShape;

enum { PEN_MAX_STEPS = 32, PEN_MAX_ERASE = 4 };

typedef struct PenPatches { /* what an image is divided into */
    uint32_t side;          /* of each, in pixels */
    uint32_t length;        /* most patches of an image */
} PenPatches;

typedef struct PenPass {    /* one resampling, with what can be done on its way */
    PenBox crop;            /* of what comes in (oriented) */
    uint32_t width, height; /* the crop is resized to this */
    int64_t x, y;           /* of the window in that; outside of it is `fill` */
    uint32_t w, h;          /* of the window: the size that comes out */
    int32_t filter;
    uint8_t flip_x, flip_y, fill;
    PenBox part; /* of the crop, in eighths of a pixel: what is resized; a width of 0: all of it */
} PenPass;

enum {
    PEN_STEP_PASS = 1, /* the first step always is one */
    PEN_STEP_BRIGHTNESS,
    PEN_STEP_CONTRAST,
    PEN_STEP_SATURATION,
    PEN_STEP_HUE,
    PEN_STEP_GREY,
    PEN_STEP_ERASE,
    PEN_STEP_WARP,
    PEN_STEP_INVERT,
    PEN_STEP_POSTERIZE, /* u.value: bits that are kept, 0-8 */
    PEN_STEP_SOLARIZE,  /* u.value: values from this one on are inverted, 0-256 */
    PEN_STEP_EQUALIZE,
    PEN_STEP_AUTOCONTRAST,
    PEN_STEP_GAMMA,
    PEN_STEP_SHARPNESS, /* u.factor */
    PEN_STEP_BLUR,
    PEN_STEP_CHANNELS,
    PEN_STEP_JPEG, /* u.value: quality, 1-100 */
    PEN_STEP_PAD,
    PEN_STEP_BLEND_BEGIN, /* u.weight of the image; chains of steps follow */
    PEN_STEP_BLEND_WARP,  /* in a chain: boxes do not follow it */
    PEN_STEP_BLEND_ADD,   /* u.weight of a chain, at its end; the next one begins as it did */
    PEN_STEP_BLEND_END    /* the blend */
};

enum { PEN_PAD_CONSTANT, PEN_PAD_EDGE, PEN_PAD_REFLECT, PEN_PAD_SYMMETRIC };

typedef struct PenPad { /* what a pass cannot add on its way */
    PenBox image;       /* the place of what comes in */
    uint32_t w, h;      /* of what comes out */
    int32_t mode;
    uint8_t fill[4]; /* for each channel */
} PenPad;

typedef struct PenStep {
    int32_t kind; /* PEN_STEP_* */
    union {
        PenPass pass;
        int32_t factor; /* 16.16; of hue 0-255 */
        int32_t value;
        struct {
            double gamma, gain;
        } gamma;
        struct {
            uint32_t width, height; /* of the kernel, both odd */
            double sigma;
        } blur;
        float weight;
        uint8_t channels[4]; /* each one of the result is this one of the image */
        struct {
            PenBox box;
            uint8_t value[4];
        } erase;
        PenWarp warp;
        PenPad pad;
    } u;
} PenStep;

/* Small and flat: it is kept with the sample's task. */
typedef struct PenSamplePlan {
    PenImageShape shape;
    uint32_t width, height; /* of the result */
    PenBox region;          /* stored pixels that have to be decoded */
    uint32_t shrink; /* the image is decoded at 1 / 2^shrink of its size, and the region and all
                      * steps are of that */
    uint32_t n_steps;
    PenStep steps[PEN_MAX_STEPS];
    PenBox erase[PEN_MAX_ERASE]; /* on the result; w = 0: none */
    uint32_t n_erase;
} PenSamplePlan;

/* The resampling behind a pass, and where its rows lie in what comes out. 0 when nothing of the
 * image is to be seen: all of it is `fill`. */
int pen__pass_view(const PenPass *pass, uint32_t channels, PenResize *ret, PenBox *ret_place);

/* The pixels of what comes in that a pass needs. Where nothing is to be seen it is one pixel: a
 * broken file stays an error. */
PenBox pen__pass_needs(const PenPass *pass, uint32_t channels);

#endif
