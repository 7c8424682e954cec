/* SPDX-License-Identifier: Apache-2.0 */
/* All that can be asked of a pack, with the right answers: the list is made from a pack that is
 * whole, and put to one that may be damaged. */
#ifndef PEN_TESTS_LIB_PROBE_H
#define PEN_TESTS_LIB_PROBE_H

#include "lib/tree.h"
#include "pack/reader/reader.h"

typedef enum ProbeKind {
    PROBE_KEY,
    PROBE_FIND,
    PROBE_VALUE,
    PROBE_IMAGE,  /* what is stored, without pixels */
    PROBE_COUNT,  /* of frames */
    PROBE_FRAMES, /* first, step, n */
    PROBE_META,
    PROBE_SLICE, /* segments first to n; of an indexed JPEG, runs of its scan */
    PROBE_EXTRACT
} ProbeKind;

typedef struct Probe {
    ProbeKind kind;
    uint64_t sample;
    uint32_t field, frame;
    uint32_t first, step, n;
    const struct Probe *key; /* of PROBE_FIND */
    uint8_t *data;           /* the answer */
    size_t bytes;
} Probe;

typedef struct Answer { /* memory of its own: not the system interface's, so it never fails */
    uint8_t *data;
    size_t bytes, cap;
} Answer;

void answer_free(Answer *a);

typedef struct ProbeList {
    Probe *probes;
    size_t n, cap;
} ProbeList;

/* Aborts when the pack does not answer all. */
void probes_make(PenPack *pack, ProbeList *ret);
void probes_free(ProbeList *list);
const char *probe_name(ProbeKind kind);

/* Puts the question; *out is the answer when it returns PEN_OK. */
int probe_ask(PenPack *pack, const Probe *p, Answer *out, PenError *reterr);
/* Puts it and compares: PEN_OK and *ret_right, or the error. */
int probe_check(PenPack *pack, const Probe *p, Answer *scratch, bool *ret_right, PenError *reterr);

/* A pack whose files are a tree in memory. */
int tree_open_pack(const Tree *tree, PenPack **ret, PenError *reterr);

#endif
