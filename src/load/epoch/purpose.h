/* SPDX-License-Identifier: Apache-2.0 */
/* What the loader draws random numbers for: the purpose in pen__permute_key. */
#ifndef PEN_LOAD_EPOCH_PURPOSE_H
#define PEN_LOAD_EPOCH_PURPOSE_H

/* These numbers are part of the order of samples. A number is never changed, and never used again
 * for something else: a seed would have another order, and a saved state would continue with other
 * samples. A new purpose gets the next number. */
enum PenPurpose {
    PEN_FOR_SAMPLES = 1,       /* the order of all samples, mixed at once */
    PEN_FOR_BLOCKS = 2,        /* the order of blocks, which are dealt to streams */
    PEN_FOR_IN_BLOCK = 3,      /* the order of samples within blocks */
    PEN_FOR_PAIR = 4,          /* the order of the blocks of a pair of streams, of sticky */
    PEN_FOR_WEIGHTS = 5,       /* where systematic sampling by weights starts in an epoch */
    PEN_FOR_GROUPS = 6,        /* the order of the groups of buckets */
    PEN_FOR_MIXTURE = 7,       /* the order of sources in a period of a mixture */
    PEN_FOR_SOURCE = 8,        /* the seed of a source of a mixture */
    PEN_FOR_LENGTHS = 9,       /* the order of sequence lengths in a round of steps */
    PEN_FOR_REPLACEMENT = 10,  /* the samples that are tried in place of a broken one */
    PEN_FOR_SOURCE_DRAWS = 11, /* the draws of operations on the samples of a source */
};

#endif
