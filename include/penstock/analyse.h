/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Measures the images of a pack: JPEG quality, sampling, sizes, and the statistics of the pixels.
 *
 * Several calls may run at the same time, on one pack or on several. */
#ifndef PENSTOCK_ANALYSE_H
#define PENSTOCK_ANALYSE_H

#include <penstock/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What was found in one image, or one frame of a clip. */
typedef struct PenImageAnalysis {
    uint32_t field, frame;
    uint32_t width, height; /**< as stored, before the orientation is applied */
    uint64_t sample;
    const void *key; /**< of the sample; valid until the callback returns */
    size_t key_bytes;
    uint64_t bytes;      /**< in the pack */
    int32_t codec;       /**< PEN_STORED_* */
    int32_t quality;     /**< of a JPEG: 1 to 100, from its quantization tables; 0 = unknown */
    int32_t progressive; /**< 1 = a progressive JPEG */
    uint32_t channels;   /**< of the pixels: 1, 3 or 4 */
    char sampling[8];    /**< of a JPEG: "gray", "4:2:0" or the like, or "other"; "" = no JPEG */
    /** Of the values 0 to 255 of each channel: mean and standard deviation. Alpha has none. */
    double mean[3], deviation[3];
} PenImageAnalysis;

typedef struct PenAnalyseSettings {
    int32_t threads; /**< 0 = the cores this process may use, the default */
    /** Called for every image in the order of the samples, from any thread but one call at a time.
     * A return value other than 0 stops the analysis with PEN_E_CANCELLED. */
    int (*image)(void *ctx, const PenImageAnalysis *image);
    void *ctx; /**< for the callbacks */
    /** Called in the same way for an image that is damaged; the analysis continues. May be NULL. */
    void (*problem)(void *ctx, const PenError *error);
    /** Called every now and then from the calling thread; a return value other than 0 stops the
     * analysis with PEN_E_CANCELLED. May be NULL. */
    int (*progress)(void *ctx, uint64_t done_samples, uint64_t total_samples);
} PenAnalyseSettings;

typedef struct PenAnalyseResult {
    uint64_t samples;  /**< that were read */
    uint64_t images;   /**< that were measured */
    uint64_t problems; /**< images that are damaged */
} PenAnalyseResult;

PEN_API void pen_analyse_settings_init(PenAnalyseSettings *settings);

/** Decodes every image of the pack, except masks. A damaged image is no failure: `problem` gets
 * it. */
PEN_NODISCARD PEN_API int pen_pack_analyse(PenPack *pack, const PenAnalyseSettings *settings,
                                           PenAnalyseResult *ret, PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
