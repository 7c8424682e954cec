/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Loads batches from several packs at once: a mixture, in which each source has a weight.
 *
 * Among the first p samples of a mixture, source i has p times its weight, divided by the sum of
 * all weights, rounded down or up. Weights are rounded to multiples of 1/65,536 of their sum,
 * unless their ratios are exact with a smaller denominator. Each source has its own order and its
 * own epochs: when all of its samples were delivered, its next epoch begins.
 *
 * All functions of loader.h accept the loader of a mixture. One loader has one set of threads and
 * one memory limit, whatever the number of sources. */
#ifndef PENSTOCK_MIX_H
#define PENSTOCK_MIX_H

#include <penstock/loader.h>

#ifdef __cplusplus
extern "C" {
#endif

/** When an epoch of the mixture ends: before the first source begins its second epoch; when all
 * sources were delivered once; or after a number of steps. */
enum { PEN_MIX_STOP_FIRST = 0, PEN_MIX_STOP_ALL = 1, PEN_MIX_STOP_STEPS = 2 };
/** What the starts of stages count, from the beginning of epoch 0: samples over all ranks; steps,
 * of batch_size samples for each rank; or epochs of the mixture. */
enum { PEN_MIX_IN_SAMPLES = 0, PEN_MIX_IN_STEPS = 1, PEN_MIX_IN_EPOCHS = 2 };

typedef struct PenMixSettings {
    uint32_t n_sources;    /**< 1 to 1,024 */
    PenPack *const *packs; /**< of the sources; a pack may occur several times */
    /** One number of 0 or more for each source; if there are several stages, for each source of the
     * first stage, then of the second one, and so on. */
    const double *weights;
    uint32_t n_stages; /**< 1, the default, to 64 */
    int32_t stop;      /**< PEN_MIX_STOP_*; default PEN_MIX_STOP_FIRST */
    /** The beginning of each stage: the first is 0, and they rise. NULL if there is one stage. The
     * length of an epoch is that of epoch 0, in all epochs. */
    const uint64_t *starts;
    int32_t unit;   /**< of the starts: PEN_MIX_IN_*; default PEN_MIX_IN_SAMPLES */
    uint64_t steps; /**< for PEN_MIX_STOP_STEPS */
    /** Name of the field with the number of each sample's source: i64, the last field of a batch;
     * default "source". */
    const char *field;
} PenMixSettings;

PEN_API void pen_mix_settings_init(PenMixSettings *settings);

/** Like pen_loader_open, for several packs. The pipeline applies to the samples of all sources:
 * the fields that it uses must have the same types in all packs. The settings have no subset and no
 * weights of samples. */
PEN_NODISCARD PEN_API int pen_loader_open_mix(const PenMixSettings *mix,
                                              const PenLoaderSettings *settings,
                                              PenLoader **ret_loader, PenError *reterr);
/** Returns the number of sources; 0 if the loader was opened with pen_loader_open. */
PEN_API uint32_t pen_loader_sources(const PenLoader *loader);
/** Returns how many samples of each source were delivered, over all ranks and since the beginning
 * of epoch 0. `ret` has one number for each source. */
PEN_API void pen_loader_source_counts(const PenLoader *loader, uint64_t *ret);

#ifdef __cplusplus
}
#endif
#endif
