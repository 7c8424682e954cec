/* SPDX-License-Identifier: Apache-2.0 */
/* What 'penstock index' needs of a remote tar, in a file of .work: each member by name and place,
 * with the bytes of small members, and of images only what the pack keeps of them. It is made while
 * the tar is read, once. Planning and writing then need only this file. See
 * docs/explanation/adr/0007-inputs-and-resumed-runs.md.
 *
 * Layout:
 *   +0     head      256: magic 8, settings 32, tar's bytes u64, etag 132, zeros, crc u32
 *   +256   records   bytes u32 and crc u32 of what follows: offset u64, bytes u64, kind u32,
 *                    name_bytes u32, name, NUL, data
 *          table     16 for each record: offset in the tar u64, place of the record u64
 *          foot      16: records u64, magic 8 */
#ifndef PEN_INGEST_TAR_SUMMARY_H
#define PEN_INGEST_TAR_SUMMARY_H

#include "ingest/tar/tar.h"
#include "io/dir.h"
#include "net/remote/remote.h"

/* Where the summaries of a run are, and how they are made. */
typedef struct PenSummaries {
    const char *folder;   /* in .work */
    uint8_t settings[32]; /* a hash of all settings that they depend on */
    /* Makes those of these addresses that are missing or out of date. */
    int (*make)(void *ctx, const PenNames *tars, PenError *reterr);
    void *ctx;
} PenSummaries;

enum {
    PEN_MEMBER_DATA = 1,  /* the data are the member's bytes */
    PEN_MEMBER_IMAGE = 2, /* what is known of an image: ingest/prepare/summarize.h */
    PEN_MEMBER_BAD = 3    /* an image that cannot be stored: status i32, where, NUL, message, NUL */
};

typedef struct PenMemberRecord {
    PenMember member;
    uint32_t kind;
    const uint8_t *data;
    size_t data_bytes;
} PenMemberRecord;

/* The path of the summary of the tar at the address, or of what it is written to first. */
char *pen__summary_path(const PenSummaries *all, const char *address, const char *suffix);

typedef struct PenSummaryWriter PenSummaryWriter;

int pen__summary_create(const PenSummaries *all, const char *address, const PenObject *object,
                        PenSummaryWriter **ret, PenError *reterr);
/* In the order of the tar. */
int pen__summary_add(PenSummaryWriter *w, const PenMemberRecord *m, PenError *reterr);
int pen__summary_commit(PenSummaryWriter **w, PenError *reterr);
void pen__summary_abort(PenSummaryWriter **w); /* accepts NULL */

typedef struct PenSummary PenSummary;

/* PEN_E_NOT_FOUND: there is none; PEN_E_CORRUPT: it is damaged, or was made with other settings. */
int pen__summary_open(const PenSummaries *all, const char *address, PenSummary **ret,
                      PenError *reterr);
void pen__summary_close(PenSummary **s); /* accepts NULL */
const PenObject *pen__summary_object(const PenSummary *s);
/* The record at *place, which is moved on and is 0 before the first. PEN_END behind the last. The
 * record lies in `scratch`. */
int pen__summary_next(PenSummary *s, uint64_t *place, PenBuf *scratch, PenMemberRecord *ret,
                      PenError *reterr);
/* The record of the member whose data begin there. */
int pen__summary_find(PenSummary *s, uint64_t offset, PenBuf *scratch, PenMemberRecord *ret,
                      PenError *reterr);
/* Reads all of it. */
int pen__summary_check(PenSummary *s, PenError *reterr);

#endif
