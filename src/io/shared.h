/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the processes of one user on one machine share: found by what it holds, gone with the
 * last of them, whatever way they end. It is read and written like a file and never mapped: what is
 * read is a copy, which nobody can change after it was checked, and nothing that others do to it
 * can end this process. */
#ifndef PEN_IO_SHARED_H
#define PEN_IO_SHARED_H

#include "io/source.h"

typedef struct PenShared PenShared;

enum { PEN_SHARED_ID_BYTES = 16, PEN_SHARED_HEAD_BYTES = 64 };

typedef struct PenSharedKey {
    const uint8_t *id;   /* PEN_SHARED_ID_BYTES: what it holds */
    const uint8_t *head; /* PEN_SHARED_HEAD_BYTES that it begins with, equal for all who share it */
    uint64_t bytes;      /* of all, with the head */
    const char *name;    /* for messages */
} PenSharedKey;

/* 1: another process (or this one) has it; 0: it was made, and is 0 behind its head. */
int pen__shared_open(const PenSharedKey *key, PenShared **ret, PenError *reterr);
PenShared *pen__shared_ref(PenShared *s);
void pen__shared_close(PenShared **s); /* the last one; accepts NULL */

int pen__shared_read(PenShared *s, void *buf, size_t bytes, uint64_t offset, PenError *reterr);
/* Of memory that is sealed: does nothing, as what is written is there. */
int pen__shared_write(PenShared *s, const void *data, size_t bytes, uint64_t offset,
                      PenError *reterr);

/* A right that one of those who share it has at most, until it gives it back or ends: 1 have it, 0
 * another has. */
int pen__shared_claim(PenShared *s, uint64_t number, PenError *reterr);
void pen__shared_unclaim(PenShared *s, uint64_t number);

/* All is there: nobody can change it any more. */
int pen__shared_seal(PenShared *s, PenError *reterr);
int pen__shared_is_sealed(const PenShared *s); /* 1, 0 */

/* A part of it as a source, which keeps it. `name` is copied. */
int pen__source_open_shared(PenShared *s, const char *name, uint64_t offset, uint64_t bytes,
                            PenSource **ret, PenError *reterr);

#endif
