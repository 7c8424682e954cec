/* SPDX-License-Identifier: Apache-2.0 */
/* What scanning the sources finds, before it is known what becomes of it: one input for each
 * sample, in source order, with its parts under columns whose types may still depend on inputs to
 * come. */
#ifndef PEN_INGEST_SOURCE_INPUT_H
#define PEN_INGEST_SOURCE_INPUT_H

#include <penstock/ingest.h>

#include "ingest/source/csv.h"
#include "ingest/source/part.h"
#include "ingest/source/stamp.h"
#include "ingest/source/text.h"
#include "ingest/spill/sorter.h"
#include "io/places.h"

#define PEN_KEY_LIMIT 4096
#define PEN_FIELD_LIMIT 256
#define PEN_NO_LABEL UINT32_MAX
#define PEN_TARS_NOTED 65536

/* What the parts lie in. Numbers of the plan file. */
enum {
    PEN_ROOT_FOLDER = 1,
    PEN_ROOT_LIST = 2, /* what a list names lies below it */
    PEN_ROOT_TAR = 3,
    PEN_ROOT_GULP = 4,
    PEN_ROOT_ANYWHERE = 5 /* of a list that may name any path */
};

typedef struct PenRoot {
    uint8_t kind;
    const char *path; /* the folder, the folder of the list ("" for none), the tar, the .gulp; a
                       * folder may be a prefix: pen_is_remote */
    uint64_t bytes;   /* of a tar or a .gulp */
    PenStamp stamp;   /* likewise */
} PenRoot;

/* A file that says what the inputs are: a list, a .gmeta. */
typedef struct PenListed {
    const char *path;
    uint64_t bytes;
    PenStamp stamp;
} PenListed;

/* How the path of a part is written down. Numbers of the plan file. */
enum {
    PEN_PATH_NONE = 0,
    PEN_PATH_KEY = 1,    /* it is the key */
    PEN_PATH_SUFFIX = 2, /* the key, a dot and the text */
    PEN_PATH_TEXT = 3    /* it is the text */
};

typedef struct PenCell {
    uint8_t kind; /* PEN_PART_* */
    uint8_t path; /* PEN_PATH_* */
    uint16_t column;
    uint32_t source;
    uint64_t offset, bytes;
    uint64_t end;     /* of a VIDEO alone */
    PenStamp stamp;   /* of what has a file or folder of its own: pen__kind_has_stamp */
    const char *text; /* of the path, an INLINE value as it was written, a table of frames */
    uint32_t text_bytes;
} PenCell;

typedef struct PenColumn {
    char *name;
    int32_t type; /* a PenType; 0 = what the values of a list fit in */
    uint32_t flags;
    bool all_i64, all_f64; /* of type 0: what fits all values so far */
} PenColumn;

/* Names for numbers, by number. */
typedef struct PenClassNames {
    char **names;
    uint32_t n, cap;
    char *from; /* the file they are from; NULL = there is none */
} PenClassNames;

/* A label that is an integer, and the line of the list it is in. */
typedef struct PenLabelAt {
    int64_t value;
    char at[300]; /* "" = there is none */
} PenLabelAt;

typedef struct PenInputs {
    const PenIngestSettings *settings;
    PenPlaces *places;                    /* of remote sources; NULL where there are none */
    const struct PenSummaries *summaries; /* of remote tars; NULL: they are streamed */
    uint8_t kind;                         /* PEN_ROOT_* of all roots */
    uint8_t what; /* a PenInputKind: the settings', or what the first input is */

    PenRoot *roots;
    uint32_t n_roots, cap_roots;
    PenListed *lists;
    uint32_t n_lists, cap_lists;
    PenColumn columns[PEN_FIELD_LIMIT];
    uint32_t n_columns;

    /* Labels are kept apart from the other columns, each name once. */
    bool has_label;
    PenNameSet labels;
    PenClassNames classes; /* of lists whose labels are numbers */
    char label_at[300];    /* of lists: where the first label of another kind (a name after numbers,
                              a number after names) is, "" = nowhere */

    PenLabelAt lowest, highest; /* of lists */

    uint64_t n;              /* of all inputs */
    uint64_t n_unlabelled;   /* of those, without a label */
    uint64_t n_ignored;      /* files of folders that are no inputs */
    char first_ignored[256]; /* the least name of them, "" = there is none */
    PenNames tars;           /* of those, at most PEN_TARS_NOTED */
    struct PenInputAt {
        uint64_t at; /* in the arena */
        uint32_t label;
    } * items;
    uint64_t n_items, cap; /* of those in memory */
    PenBuf arena;

    /* What did not fit in memory, see inputs_spill.c. */
    PenSpace space;     /* without a path all inputs stay in memory */
    PenSorter *spilled; /* has all inputs but the items; NULL: none */
    bool is_quiet;      /* other threads add inputs: adding does not call progress */
    struct PenInputRange {
        uint32_t number;  /* how many ranges came before it */
        bool is_open;     /* inputs that are being added belong to it */
        uint64_t first;   /* the first item that belongs to it */
        bool is_spilled;  /* some of them have been spilled */
    } range;              /* inputs that are ordered by key */
    bool has_unmeasured;  /* of a list that is being read, whose inputs are remote, */
    uint64_t unmeasured;  /* and the first item of it */
    char first_name[256]; /* of the first input of all, once it is spilled */
    bool first_is_labelled;
} PenInputs;

typedef struct PenInput {
    uint64_t number; /* in source order */
    const uint8_t *key;
    uint32_t key_bytes;
    uint32_t label; /* number in labels, PEN_NO_LABEL when it has none */
    uint32_t n_cells;
    const uint8_t *cells; /* for pen__cell_next */
} PenInput;

void pen__inputs_free(PenInputs *inputs);
/* Releases the memory for inputs that did not come. */
void pen__inputs_trim(PenInputs *inputs);

/* `path` is copied. */
int pen__inputs_add_root(PenInputs *inputs, uint8_t kind, const char *path, size_t path_bytes,
                         uint64_t bytes, uint32_t *ret, PenError *reterr);
/* Notes the stamp of the file that the inputs of the last root come from. */
int pen__inputs_add_list(PenInputs *inputs, const char *path, PenError *reterr);
/* The column of this name; a new one when there is none. PEN_E_INVALID when it has another type. */
int pen__inputs_add_column(PenInputs *inputs, const char *name, int32_t type, uint32_t flags,
                           uint16_t *ret, PenError *reterr);
/* Adds a sample; everything is copied. `label` NULL = none. Calls progress now and then. */
int pen__inputs_add(PenInputs *inputs, const char *key, size_t key_bytes, const char *label,
                    const PenCell *cells, uint32_t n_cells, PenError *reterr);

/* Is the file `name` of the folder `root` an input, by its name? 1 yes; 0 no, and it is counted.
 * PEN_E_INVALID where it cannot be told: images and videos side by side. */
int pen__inputs_takes(PenInputs *inputs, const char *root, const char *name, PenError *reterr);
/* Counts it as ignored. */
int pen__inputs_ignore(PenInputs *inputs, const char *name, PenError *reterr);
/* Only where no input is spilled. */
void pen__inputs_get(const PenInputs *inputs, uint64_t i, PenInput *ret);
/* In the arena: key_bytes u32, n_cells u32, the key, then for each cell a head and its text. */
#define PEN_INPUT_HEAD 8
void pen__cell_next(const uint8_t **at, PenCell *ret);
uint64_t pen__cell_bytes(const PenCell *c);
uint8_t *pen__cell_store(uint8_t *p, const PenCell *c); /* returns its end */
/* Where the sample comes from, for people: "photos/a/1.jpg", "x-000.tar: 0017". */
void pen__input_name(const PenInputs *inputs, const PenInput *input, char *buf, size_t cap);
/* The number, the label, the key and the cells of an input as bytes, and back. */
size_t pen__input_bytes(const PenInput *input);
void pen__input_store(uint8_t *to, const PenInput *input);
void pen__input_load(const uint8_t *from, PenInput *ret);

/* Walks through all inputs, once they are all there, in source order: 0, or PEN_END behind the last
 * one. One walk at a time. An input lives until the next call. Reports progress as `stage`. */
typedef struct PenInputWalk {
    const PenInputs *inputs;
    const char *stage;
    uint64_t next;
} PenInputWalk;
int pen__inputs_start(const PenInputs *inputs, const char *stage, PenInputWalk *ret,
                      PenError *reterr);
int pen__inputs_next(PenInputWalk *walk, PenInput *ret, PenError *reterr);
/* Moves the inputs in memory to the temporary file, when they are more than the space allows or
 * `all` is set. */
int pen__inputs_spill(PenInputs *inputs, bool all, PenError *reterr);
/* After the last input. */
int pen__inputs_finish(PenInputs *inputs, PenError *reterr);
/* Calls progress; PEN_E_CANCELLED when it wants an end. `total` 0: it is not known. */
int pen__inputs_report(const PenInputs *inputs, const char *stage, uint64_t done, uint64_t total,
                       PenError *reterr);
/* Samples with a class and samples without: a mistake that is better found now. `first_flat` and
 * `first_deep` are names of a sample without and with a class, of those added from `first` on; "" =
 * there is none. */
int pen__inputs_check_depths(const PenInputs *inputs, uint64_t first, const char *first_flat,
                             const char *first_deep, PenError *reterr);
/* Size and stamp of the objects that lists name, of the items from `first` on: by many requests at
 * once. Reports progress. What does not exist is an error, or with skip_bad left as it is. */
int pen__inputs_measure(PenInputs *inputs, uint64_t first, PenError *reterr);
/* Sets them in the cell at `cell`, where pen__cell_next has found it. */
void pen__cell_measured(uint8_t *cell, uint64_t bytes, const PenStamp *stamp);
/* What is added between the two calls is ordered by key. */
void pen__inputs_sort_begin(PenInputs *inputs);
int pen__inputs_sort_end(PenInputs *inputs, PenError *reterr);

/* The scans: each adds the samples of one source. */
int pen__scan_folder(PenInputs *inputs, const char *path, PenError *reterr);
int pen__scan_prefix(PenInputs *inputs, const char *address, PenError *reterr);
int pen__scan_list(PenInputs *inputs, const char *path, PenError *reterr);
int pen__scan_tar(PenInputs *inputs, const char *path, PenError *reterr);
int pen__scan_gulp(PenInputs *inputs, const char *path, PenError *reterr);
/* The same for what is not a file, so that tests can make it up. Separator 0: the first of comma,
 * semicolon and tab in the first line. */
int pen__scan_list_from(PenInputs *inputs, PenSource *source, char separator, PenError *reterr);
int pen__scan_tar_from(PenInputs *inputs, PenSource *source, PenError *reterr);

void pen__class_names_free(PenClassNames *names);

/* All sources of the settings, one after another. */
int pen__scan_sources(PenInputs *inputs, PenError *reterr);

/* The bytes of a member's name before the first dot of its last part: the key of its sample. */
size_t pen__member_stem(const char *name);
/* Left behind by some system; no part of any sample. */
bool pen__member_hidden(const char *name);
/* Does the name end as those of images do? *ret_mask: it is a mask. */
bool pen__member_is_image(const char *name, bool *ret_mask);

/* The name of the clips' or images' field. */
const char *pen__what_field(uint8_t what);
int32_t pen__what_type(uint8_t what);
/* Is there a folder of gulp files here? 1 yes, 0 no. */
int pen__folder_is_gulp(const char *path, PenError *reterr);

/* "root/path", or the path alone when it is absolute, a URL or the root is empty; cut to the size
 * of `buf`. Returns the length it has uncut. */
size_t pen__root_path(const char *root, const char *path, size_t path_bytes, char *buf, size_t cap);

#endif
