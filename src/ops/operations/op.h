/* SPDX-License-Identifier: Apache-2.0 */
/* All operations in one list. Each has its parameters and what it drafts in the file of its family;
 * text form, help, checks and runs follow from here. A new operation is a line here and its
 * functions. */
#ifndef PEN_OPS_OPERATIONS_OP_H
#define PEN_OPS_OPERATIONS_OP_H

#include <stdbool.h>

#include <penstock/ops.h>

#include "ops/language/value.h"
#include "ops/operations/draw.h"
#include "ops/sample/draft.h"

/* What an operation does, for the rules of order. */
enum {
    PEN_DOES_DECODE = 1,    /* comes first */
    PEN_DOES_GEOMETRY = 2,  /* moves pixels */
    PEN_DOES_COLOUR = 3,    /* changes colours: RGB images only */
    PEN_DOES_ERASE = 4,     /* of pixels, or of the result behind normalize */
    PEN_DOES_NORMALIZE = 5, /* on the store */
    PEN_DOES_STORE = 6,     /* comes last */
    PEN_DOES_SELECT = 7,    /* chooses frames: of clips alone, behind decode */
    PEN_DOES_LIST = 8,      /* values of any length: the only operation of its field */
    PEN_DOES_REPEAT = 9,    /* several results of one image: behind all others */
    PEN_DOES_FOLLOW = 10,   /* moves or chooses rows: of ragged fields, before their list */
    PEN_DOES_PAD = 11,      /* results of different sizes: behind all others */
    PEN_DOES_TONE = 12,     /* changes values, of RGB and grey images */
    PEN_DOES_MIX = 14,      /* samples of a batch: behind all others */
    PEN_DOES_CLASSES = 15,  /* targets of class numbers: before tensor */
    PEN_DOES_COMPOSE = 20,  /* draws which of the operations in its brackets run */
    PEN_DOES_POLICY = 21    /* draws steps that change colours or move pixels, and keep the size */
};

/* name, draw_id, number of parameters, what it does, most steps of a sample_plan, size behind it,
 * draft, help.
 *
 * draw_id addresses the draws of the operation, so every random pixel depends on it. It never
 * changes, not even when the operation is renamed or moved to another line, and no other operation
 * ever gets it. A new operation has the number after the largest one here and in PEN_MOVES_MAP. */
#define PEN_OP_MAP(XX)                                                                             \
    XX(decode, 1, 2, DECODE, 0, NULL, NULL, "Decode the image. Must be the first operation.")      \
    XX(resize, 2, 6, GEOMETRY, 1, pen__size_resize, pen__draft_resize,                             \
       "Resize with antialiasing.")                                                                \
    XX(center_crop, 3, 1, GEOMETRY, 1, pen__size_crop, pen__draft_center_crop,                     \
       "Crop the center. A smaller image is padded with black.")                                   \
    XX(random_crop, 4, 3, GEOMETRY, 1, pen__size_crop, pen__draft_random_crop,                     \
       "Crop a random region of a fixed size.")                                                    \
    XX(three_crop, 5, 1, GEOMETRY, 1, pen__size_crop, pen__draft_three_crop,                       \
       "Make three clips of one: crops at both ends and the center of its longer side.")           \
    XX(random_resized_crop, 6, 4, GEOMETRY, 2, pen__size_crop, pen__draft_random_resized_crop,     \
       "Crop a random region and resize it.")                                                      \
    XX(cover, 7, 3, GEOMETRY, 2, pen__size_crop, pen__draft_cover,                                 \
       "Resize to cover the size, keeping the aspect ratio, and crop the rest.")                   \
    XX(patches, 8, 3, GEOMETRY, 1, pen__size_patches, pen__draft_patches,                          \
       "Resize to at most length patches, keeping the aspect ratio, and return the sequence.")     \
    XX(hflip, 9, 1, GEOMETRY, 1, NULL, pen__draft_hflip, "Flip left and right.")                   \
    XX(vflip, 10, 1, GEOMETRY, 1, NULL, pen__draft_vflip, "Flip top and bottom.")                  \
    XX(random_rotation, 11, 4, GEOMETRY, 1, NULL, pen__draft_random_rotation,                      \
       "Rotate by a random angle, counterclockwise.")                                              \
    XX(random_affine, 12, 7, GEOMETRY, 1, NULL, pen__draft_random_affine,                          \
       "Rotate clockwise, move, scale and shear, each by a random amount.")                        \
    XX(random_perspective, 13, 4, GEOMETRY, 1, NULL, pen__draft_random_perspective,                \
       "Move the four corners randomly, as if seen from another place.")                           \
    XX(pad, 14, 3, GEOMETRY, 1, pen__size_pad, pen__draft_pad, "Add pixels on each side.")         \
    XX(five_crop, 15, 1, GEOMETRY, 1, pen__size_crop, pen__draft_five_crop,                        \
       "Return five results per image: crops of the four corners and the center.")                 \
    XX(ten_crop, 16, 2, GEOMETRY, 2, pen__size_crop, pen__draft_five_crop,                         \
       "Return ten results per image: those of five_crop, and of the flipped image.")              \
    XX(color_jitter, 17, 4, COLOUR, 4, NULL, pen__draft_color_jitter,                              \
       "Change the colors randomly. The changes run in random order.")                             \
    XX(grayscale, 18, 1, COLOUR, 1, NULL, pen__draft_grayscale,                                    \
       "Remove the colors. The result keeps three equal channels.")                                \
    XX(random_invert, 19, 1, TONE, 1, NULL, pen__draft_random_invert,                              \
       "Invert all values: x becomes 255 - x.")                                                    \
    XX(random_posterize, 20, 2, TONE, 1, NULL, pen__draft_random_posterize,                        \
       "Keep the highest bits of each value.")                                                     \
    XX(random_solarize, 21, 2, TONE, 1, NULL, pen__draft_random_solarize,                          \
       "Invert the values from a threshold on.")                                                   \
    XX(random_equalize, 22, 1, TONE, 1, NULL, pen__draft_random_equalize,                          \
       "Equalize the histogram of each channel.")                                                  \
    XX(random_autocontrast, 23, 1, TONE, 1, NULL, pen__draft_random_autocontrast,                  \
       "Stretch the values of each channel to 0-255.")                                             \
    XX(random_adjust_sharpness, 24, 2, TONE, 1, NULL, pen__draft_random_adjust_sharpness,          \
       "Make the image sharper or smoother.")                                                      \
    XX(adjust_gamma, 25, 2, TONE, 1, NULL, pen__draft_adjust_gamma,                                \
       "Compute 255 * gain * (x / 255) ^ gamma.")                                                  \
    XX(gaussian_blur, 26, 2, TONE, 1, NULL, pen__draft_gaussian_blur,                              \
       "Blur with a Gaussian kernel.")                                                             \
    XX(random_channel_permutation, 27, 1, COLOUR, 1, NULL, pen__draft_random_channel_permutation,  \
       "Put the three channels in a random order.")                                                \
    XX(jpeg, 28, 1, TONE, 1, NULL, pen__draft_jpeg,                                                \
       "Compress the image as JPEG (4:2:0) and decode it again.")                                  \
    XX(random_apply, 29, 2, COMPOSE, 0, NULL, NULL,                                                \
       "Apply the operations in brackets with a probability.")                                     \
    XX(random_choice, 30, 2, COMPOSE, 0, NULL, NULL,                                               \
       "Apply the operations of one of several brackets.")                                         \
    XX(random_order, 31, 1, COMPOSE, 0, NULL, NULL,                                                \
       "Apply the operations in brackets in random order.")                                        \
    XX(rand_augment, 32, 5, POLICY, 0, NULL, pen__draft_rand_augment,                              \
       "Apply some random operations of RandAugment, all of one magnitude.")                       \
    XX(trivial_augment, 33, 3, POLICY, 1, NULL, pen__draft_trivial_augment,                        \
       "Apply one random operation of a random magnitude (TrivialAugment Wide).")                  \
    XX(auto_augment, 34, 3, POLICY, 2, NULL, pen__draft_auto_augment,                              \
       "Apply one of the 25 pairs of operations of a policy of AutoAugment.")                      \
    XX(aug_mix, 35, 7, COLOUR, 0, NULL, pen__draft_aug_mix,                                        \
       "Blend the image with chains of random operations on it (AugMix).")                         \
    XX(three_augment, 36, 1, COLOUR, 4, NULL, pen__draft_three_augment,                            \
       "Apply grayscale, solarize or a blur, then color jitter (3-Augment of DeiT III).")          \
    XX(clip, 37, 10, SELECT, 0, NULL, NULL,                                                        \
       "Select frames of a clip. Must directly follow decode.")                                    \
    XX(normalize, 38, 2, NORMALIZE, 0, NULL, pen__draft_normalize,                                 \
       "Compute (x / 255 - mean) / std. Needs dtype f32, f16 or bf16.")                            \
    XX(random_erasing, 39, 4, ERASE, 1, NULL, pen__draft_random_erasing,                           \
       "Overwrite a random rectangle.")                                                            \
    XX(tensor, 40, 2, STORE, 0, NULL, NULL,                                                        \
       "Store the result in the batch. Only repeat, pad_batch, mixup and cutmix can follow.")      \
    XX(repeat, 41, 1, REPEAT, 0, NULL, NULL,                                                       \
       "Return several results per image, each with its own random draws. No operation can "       \
       "follow.")                                                                                  \
    XX(pad_batch, 42, 2, PAD, 0, NULL, NULL,                                                       \
       "Pad images of different sizes to the largest of the batch. No operation can follow.")      \
    XX(mixup, 43, 3, MIX, 0, NULL, NULL,                                                           \
       "Mix each sample of a batch with another one. Must follow all others but cutmix.")          \
    XX(cutmix, 44, 3, MIX, 0, NULL, NULL,                                                          \
       "Replace a box of each sample by that of another one. Must follow all others but mixup.")   \
    XX(one_hot, 45, 3, CLASSES, 0, NULL, NULL,                                                     \
       "Return class numbers as targets, one number per class, which follow mixup and cutmix.")    \
    XX(text, 46, 1, LIST, 0, NULL, NULL,                                                           \
       "Return a text, json or bytes field as a list of str. Must be the only operation.")         \
    XX(json, 47, 1, LIST, 0, NULL, NULL,                                                           \
       "Return a text, json or bytes field as a list of JSON values. Must be the only operation.") \
    XX(bytes, 48, 1, LIST, 0, NULL, NULL,                                                          \
       "Return a text, json or bytes field as a list of bytes. Must be the only operation.")       \
    XX(key, 49, 1, LIST, 0, NULL, NULL,                                                            \
       "Return the key of each sample, as a field of any name that the pack does not have.")       \
    XX(ragged, 50, 4, LIST, 0, NULL, NULL,                                                         \
       "Return a field whose number of rows differs between samples, such as f32[*,4].")           \
    XX(boxes, 51, 9, FOLLOW, 0, NULL, NULL,                                                        \
       "Move boxes to where the crops, resizes and flips of an image move its pixels.")            \
    XX(points, 52, 5, FOLLOW, 0, NULL, NULL,                                                       \
       "Move points to where the crops, resizes and flips of an image move its pixels.")           \
    XX(keep, 53, 1, FOLLOW, 0, NULL, NULL,                                                         \
       "Keep the rows that boxes or points kept in another field: labels follow their boxes.")

/* name, draw_id of compositions that move pixels. A mask has them too, with the draws of its image,
 * but it lacks those that change colours alone. */
#define PEN_MOVES_MAP(XX)                                                                          \
    XX(random_apply, 54)                                                                           \
    XX(random_choice, 55)                                                                          \
    XX(random_order, 56)

enum {
#define XX(name, draw_id, n, does, steps, size, draft, help) PEN_DRAW_ID_##name = draw_id,
    PEN_OP_MAP(XX)
#undef XX
#define XX(name, draw_id) PEN_DRAW_ID_##name##_moves = draw_id,
        PEN_MOVES_MAP(XX)
#undef XX
};

/* Where the ops of programs are told apart by their number. */
enum {
#define XX(name, draw_id, n, does, steps, size, draft, help) PEN_OP_##name,
    PEN_OP_MAP(XX)
#undef XX
        PEN_N_OPS
};

enum { PEN_MAX_REPEATS = 64 };

#define PEN_BUCKET_WORD "bucket" /* in the place of a size: that of the batch's bucket */
#define PEN_TOKENS_WORD "tokens" /* in the place of a length: that of the step */
enum { PEN_PATCH_SIDE = 1024, PEN_PATCHES_MOST = 65536 };

typedef struct PenSize { /* 0 x 0: differs from image to image */
    uint32_t width, height;
    uint32_t most_short, most_long; /* then: bounds of the shorter and the longer side; 0: none */
} PenSize;

typedef struct PenOpWork {
    uint32_t draw_id;
    int32_t does;
    uint32_t steps;
    /* The size behind it, from the one before it; NULL: it stays. */
    void (*size)(const PenParamValue *values, PenSize *size);
    /* Adds to the sample_plan of one sample; NULL: nothing. */
    int (*draft)(PenSampleDraft *draft, const PenParamValue *values, PenDraw *draw,
                 PenError *reterr);
} PenOpWork;

#define XX(name, draw_id, n, does, steps, size, draft, help)                                       \
    extern const PenParam pen__params_##name[n];
PEN_OP_MAP(XX)
#undef XX

/* What the values of an operation say together. Fails with the column of its name in the text. */
int pen__check_resize(const PenParamValue *values, uint32_t column, PenError *reterr);
int pen__check_gaussian_blur(const PenParamValue *values, uint32_t column, PenError *reterr);
int pen__check_jpeg(const PenParamValue *values, uint32_t column, PenError *reterr);
int pen__check_rotation(const PenParamValue *values, uint32_t column, PenError *reterr);
int pen__check_affine(const PenParamValue *values, uint32_t column, PenError *reterr);
int pen__check_pad(const PenParamValue *values, uint32_t column, PenError *reterr);
int pen__check_rand_augment(const PenParamValue *values, uint32_t column, PenError *reterr);

/* The most steps, where that depends on the values. */
uint32_t pen__steps_aug_mix(const PenParamValue *values);

/* Which of `n` alternatives, by their weights. */
uint32_t pen__draw_choice(PenDraw *draw, const PenParamValue *weights, uint32_t n);

void pen__size_patches(const PenParamValue *values, PenSize *size);
void pen__size_resize(const PenParamValue *values, PenSize *size);
void pen__size_crop(const PenParamValue *values, PenSize *size);
void pen__size_pad(const PenParamValue *values, PenSize *size);

int pen__draft_resize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                      PenError *reterr);
int pen__draft_center_crop(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                           PenError *reterr);
int pen__draft_three_crop(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                          PenError *reterr);
int pen__draft_random_crop(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                           PenError *reterr);
int pen__draft_random_resized_crop(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                                   PenError *reterr);
int pen__draft_cover(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                     PenError *reterr);
int pen__draft_patches(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                       PenError *reterr);
int pen__draft_hflip(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                     PenError *reterr);
int pen__draft_vflip(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                     PenError *reterr);
int pen__draft_random_rotation(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                               PenError *reterr);
int pen__draft_random_affine(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                             PenError *reterr);
int pen__draft_random_perspective(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                                  PenError *reterr);
int pen__draft_pad(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw, PenError *reterr);
int pen__draft_five_crop(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                         PenError *reterr);
int pen__draft_color_jitter(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                            PenError *reterr);
int pen__draft_grayscale(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                         PenError *reterr);
int pen__draft_random_invert(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                             PenError *reterr);
int pen__draft_random_posterize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                                PenError *reterr);
int pen__draft_random_solarize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                               PenError *reterr);
int pen__draft_random_equalize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                               PenError *reterr);
int pen__draft_random_autocontrast(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                                   PenError *reterr);
int pen__draft_random_adjust_sharpness(PenSampleDraft *d, const PenParamValue *values,
                                       PenDraw *draw, PenError *reterr);
int pen__draft_adjust_gamma(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                            PenError *reterr);
int pen__draft_gaussian_blur(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                             PenError *reterr);
int pen__draft_random_channel_permutation(PenSampleDraft *d, const PenParamValue *values,
                                          PenDraw *draw, PenError *reterr);
int pen__draft_jpeg(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                    PenError *reterr);
int pen__draft_rand_augment(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                            PenError *reterr);
int pen__draft_trivial_augment(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                               PenError *reterr);
int pen__draft_auto_augment(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                            PenError *reterr);
int pen__draft_aug_mix(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                       PenError *reterr);
int pen__draft_three_augment(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                             PenError *reterr);
int pen__draft_normalize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                         PenError *reterr);
int pen__draft_random_erasing(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                              PenError *reterr);

/* Of the operation patches, whose length may be that of the step until it is set. */
bool pen__patches_by_step(const PenOp *op, const PenParamValue *values);
void pen__patches_set_length(PenParamValue *values, uint32_t length);
PenPatches pen__patches_of(const PenParamValue *values);

const PenOp *pen__op_find(const char *name, size_t bytes); /* NULL: there is none */
uint32_t pen__op_number(const PenOp *op);                  /* PEN_OP_* */
const PenOpWork *pen__op_work(const PenOp *op);
/* The most steps of a sample_plan that it adds. */
uint32_t pen__op_steps(const PenOp *op, const PenParamValue *values);

/* Words of filters, in the order of PEN_FILTER_*. */
#define PEN_FILTER_WORDS "bilinear nearest bicubic lanczos box"
/* Those of warps, in the same order. */
#define PEN_WARP_WORDS "bilinear nearest bicubic"
#define PEN_SIZE_LIMIT PEN_DECODE_SIDE /* pixels of a side that can be asked for */

#endif
