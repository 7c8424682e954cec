/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: which inputs become which samples, in which order. Made once by scanning the sources,
 * kept in a file that all tasks share and that an interrupted run goes on from, then read by
 * position. Its id is SHA-256 over the settings text, the schema, the classes, K, the pack that is
 * appended to and every record, but not over the folders the inputs lie in: the same data elsewhere
 * gives the same pack. */
#ifndef PEN_INGEST_PLAN_PLAN_H
#define PEN_INGEST_PLAN_PLAN_H

#include <stdbool.h>

#include <penstock/ingest.h>

#include "base/mem.h"
#include "ingest/source/part.h"
#include "ingest/tar/summary.h"
#include "net/remote/remote.h"

typedef struct PenPlan PenPlan;

typedef struct PenItem { /* pointers live in the scratch buffer it was read into */
    const uint8_t *key;
    uint32_t key_bytes;
    uint32_t n_parts;
    const PenPart *parts; /* one for each field */
} PenItem;

typedef struct PenPlanInfo {
    uint8_t id[32];
    uint64_t n_items;
    uint64_t n_known;       /* left out because the pack appended to has them */
    uint64_t block_samples; /* K */
    uint64_t source_bytes;  /* of all inputs, as seen when planning */
    uint32_t n_fields;
    const PenField *fields;
    int32_t class_field; /* -1 = none */
    uint32_t n_classes;
    const char *const *classes;
    const char *settings; /* the canonical settings text (JSON), the same for every task of a run */
    uint8_t base[16];     /* id of the pack that is appended to; zeros = none */
    uint8_t inputs[32];   /* over the id and the stamps of all inputs */
    int32_t in_order;     /* has STREAM parts: only to be read from the first item to the last */
    int32_t has_entries;  /* images of the pack may have entry tables */
    int32_t has_videos;   /* clips of the pack may be videos that are stored as they are */
} PenPlanInfo;

/* Is this key in the pack that is appended to? 1 yes, 0 no, < 0 failure. */
typedef int (*PenKnownFn)(void *ctx, const void *key, size_t key_bytes, PenError *reterr);

typedef struct PenPlanRequest {
    const PenIngestSettings *settings;
    const char *settings_text; /* canonical; goes into the plan as it is */
    const PenPackInfo *base;   /* append: fields, classes, K come from here and must fit; or NULL */
    int32_t has_entries;       /* images of the base may have entry tables, */
    int32_t makes_entries;     /* or those that are added */
    int32_t has_videos;        /* clips of the base may be videos */
    const PenPackInfo *classes_from; /* class numbers come from here; unknown ones are errors */
    PenKnownFn known;                /* append; NULL = nothing is known */
    void *known_ctx;
    struct PenPlaces *places;      /* of remote sources */
    const PenSummaries *summaries; /* of remote tars; NULL: there are none */
    uint64_t *ret_ignored;         /* files of folders that are no inputs; NULL: not asked for */
    size_t memory; /* bytes for inputs, and as many for sorting them; 0 = PEN_PLAN_MEMORY. What does
                    * not fit goes to temporary files next to the plan. */
} PenPlanRequest;

#define PEN_PLAN_MEMORY ((size_t)64 << 20)

/* Scans the sources and writes the plan to the file `path` (through `path`.part, synced, renamed).
 * Duplicate keys are PEN_E_EXISTS naming both inputs. No input at all is PEN_E_NOT_FOUND; inputs
 * that are all known give a plan without items. */
int pen__plan_make(const PenPlanRequest *request, const char *path, PenError *reterr);

int pen__plan_open(const char *path, PenPlan **ret_plan, PenError *reterr);
/* The object `name` of `remote`, of which only what is used is fetched: its last `end_bytes` (see
 * pen__plan_end_bytes; 0 is right, too), then the items in pages. */
int pen__plan_open_remote(PenRemote *remote, const char *name, uint64_t end_bytes,
                          PenPlan **ret_plan, PenError *reterr);
/* 1: threads that wait for bytes of the plan give up, until it is 0 again. */
void pen__plan_stop(const PenPlan *plan, int stop);
/* What follows the items: all that every task needs. */
uint64_t pen__plan_end_bytes(const PenPlan *plan);
void pen__plan_close(PenPlan **plan); /* accepts NULL */
const PenPlanInfo *pen__plan_info(const PenPlan *plan);

/* What to do when an input has changed; "run the same command again" unless something else is set.
 * The text has to outlive the plan. */
void pen__plan_advise(PenPlan *plan, const char *advice);

/* Where its remote inputs are read from; they have to outlive the plan. `summaries` may be NULL. */
void pen__plan_connect(PenPlan *plan, struct PenPlaces *places, const PenSummaries *summaries);
/* 1: some of its inputs are remote. */
int pen__plan_is_remote(const PenPlan *plan);
/* The bytes of the parts of an item, as the plan has them; what they take when they are read. */
uint64_t pen__item_bytes(const PenItem *item);

/* A hash of all that the stored samples of the items [first, end) follow from: settings, fields, K,
 * the pack appended to, their records, and the stamps of their inputs. The plan's id, which also
 * depends on all other items, is not in it. */
int pen__plan_hash(const PenPlan *plan, uint64_t first, uint64_t end, uint8_t ret[32],
                   PenError *reterr);

/* Are these still the files that the plan was made from? PEN_E_INVALID when not. */
int pen__plan_check_lists(const PenPlan *plan, PenError *reterr);  /* lists and .gmeta */
int pen__plan_check_shared(const PenPlan *plan, PenError *reterr); /* tars and .gulp */
/* All of them, and every file; nothing where a source is not there at all: on another machine. */
int pen__plan_check_all(const PenPlan *plan, PenError *reterr);

/* Item at `position`; thread-safe. `scratch` is reused between calls. */
int pen__plan_item(const PenPlan *plan, uint64_t position, PenItem *ret, PenBuf *scratch,
                   PenError *reterr);

/* Where task number `task` of `n_tasks` begins; task n_tasks begins at the end of the plan. Tasks
 * have about the same number of bytes to read. A plan of an earlier version has tasks of the same
 * number of items. */
int pen__plan_split(const PenPlan *plan, uint32_t task, uint32_t n_tasks, uint64_t *ret,
                    PenError *reterr);

/* Reading parts. A reader is one thread's own; the plan must outlive it. STREAM parts are to be
 * read in plan order by one reader alone: any other order is right too, but unpacks the tar again
 * and again. */
typedef struct PenPartReader PenPartReader;

int pen__part_reader_open(const PenPlan *plan, PenPartReader **ret, PenError *reterr);
void pen__part_reader_close(PenPartReader **reader); /* accepts NULL */
/* Replaces the content of `out` by the part's bytes, with PEN_SLACK readable bytes behind them. A
 * file of another size or stamp than the plan's is PEN_E_INVALID ("changed since the plan was
 * made"). ret_disk_bytes
 * (may be NULL): what it takes on disk; of a compressed tar what was read of it to get there. */
int pen__part_read(PenPartReader *reader, const PenPart *part, PenBuf *out,
                   uint64_t *ret_disk_bytes, PenError *reterr);
/* Before the parts of an item are read: those that lie side by side in a remote tar are fetched by
 * one request. Does nothing for others. */
int pen__part_gather(PenPartReader *reader, const PenItem *item, PenError *reterr);
/* The frames of such a part, in order: `frame` gets the bytes of each as pen__part_read gives them,
 * and may keep the buffer by emptying `data`; what it returns but 0 ends the reading. What has
 * other frames than the plan saw is PEN_E_INVALID. */
typedef int (*PenFrameFn)(void *ctx, PenBuf *data, PenError *reterr);
int pen__part_frames(PenPartReader *reader, const PenPart *part, PenFrameFn frame, void *ctx,
                     uint64_t *ret_disk_bytes, PenError *reterr);
/* "dir/clip/00003.jpg", "data_0.gulp: 17: frame 3": as pen__part_name. Frames count from 0 here. */
void pen__part_frame_name(const PenPlan *plan, const PenPart *part, const char *key,
                          uint64_t number, char *buf, size_t cap);
/* What the summary of a remote tar has of a part. PEN_END: there is no summary. It lies in
 * `scratch`. */
int pen__part_record(PenPartReader *reader, const PenPart *part, PenBuf *scratch,
                     PenMemberRecord *ret, PenError *reterr);
bool pen__part_is_remote(const PenPartReader *reader, const PenPart *part);
/* The object that a remote FILE or RANGE lies in, right after it was read. */
int pen__part_object(PenPartReader *reader, const PenPart *part, PenObject *ret, PenError *reterr);
/* The path of the file that a FILE or RANGE lies in, or the address of the object. */
int pen__part_file(const PenPlan *plan, const PenPart *part, PenBuf *ret, PenError *reterr);
/* Its size and its time of last change as the plan has them: one with others is not read. */
void pen__part_times(const PenPlan *plan, const PenPart *part, uint64_t *ret_bytes,
                     int64_t *ret_mtime_ns);
/* Where a part comes from, for people, cut to the size of `buf`: "dir/a.jpg", "x-000.tar:
 * 0017.jpg". */
void pen__part_name(const PenPlan *plan, const PenPart *part, char *buf, size_t cap);

#endif
