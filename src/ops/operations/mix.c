/* SPDX-License-Identifier: Apache-2.0 */
/* They add no step: the loader mixes the samples of a batch that is complete. */
#include "ops/operations/mix.h"

#include "ops/operations/op.h"

#define ALPHA_HELP "of the beta distribution that the share of the sample itself is drawn from"
#define PER_HELP                                                                                   \
    "batch: one choice, one share and one box for all samples of a batch; sample: for each sample"

const PenParam pen__params_mixup[3] = {
    {"alpha", PEN_PARAM_FLOAT, 0.001, 1000, "1", NULL, ALPHA_HELP},
    {"p", PEN_PARAM_FLOAT, 0, 1, "1", NULL,
     "probability; with cutmix at most one of both is drawn, each with its probability"},
    {"per", PEN_PARAM_WORD, 0, 0, "batch", "batch sample", PER_HELP},
};

const PenParam pen__params_cutmix[3] = {
    {"alpha", PEN_PARAM_FLOAT, 0.001, 1000, "1", NULL, ALPHA_HELP},
    {"p", PEN_PARAM_FLOAT, 0, 1, "1", NULL,
     "probability; with mixup at most one of both is drawn, each with its probability"},
    {"per", PEN_PARAM_WORD, 0, 0, "batch", "batch sample", PER_HELP},
};

const PenParam pen__params_one_hot[3] = {
    {"classes", PEN_PARAM_INT, 1, 1 << 20, NULL, NULL, "number of classes"},
    {"label_smoothing", PEN_PARAM_FLOAT, 0, 1, "0", NULL,
     "share of the target that is spread over all classes, as in cross_entropy of PyTorch"},
    {"of", PEN_PARAM_NAME, 0, 0, "auto", "auto",
     "image of the pipeline whose mixup or cutmix the labels follow; auto: the only one"},
};
