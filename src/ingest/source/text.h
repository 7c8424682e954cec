/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that come from outside: numbers, patterns of names, sets of names. */
#ifndef PEN_INGEST_SOURCE_TEXT_H
#define PEN_INGEST_SOURCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <penstock/ingest.h>

#include "base/error.h"
#include "io/dir.h"

bool pen__text_ends(const char *text, const char *end); /* case of ASCII letters aside */

/* The whole text as a decimal number, whatever the locale. False when it is none or does not fit.
 */
bool pen__text_i64(const char *text, int64_t *ret);
bool pen__text_f64(const char *text, double *ret);

/* Adds the names that a pattern stands for: {000..017} counts up or down, padded with zeros when a
 * bound is written so; {a,b} is each of them; with several groups the last one changes first. A
 * text without { is itself. PEN_E_LIMIT over PEN_PATTERN_NAMES names in `names`. */
#define PEN_PATTERN_NAMES 1000000
int pen__pattern_expand(const char *pattern, PenNames *names, PenError *reterr);

/* The sources as a shell takes them: numbered names that follow each other as one pattern, in
 * quotes, each below `root`. Sorts the names. What does not fit into the text is left out, and
 * "..." says so. */
void pen__names_as_words(const char *root, PenNames *names, char *ret, size_t cap);

/* Names with numbers in the order of their first appearance. Zero-initialised is empty. */
typedef struct PenNameSet {
    char **names;
    uint32_t n, cap;
    uint32_t *slots; /* number + 1 of a name; 0 = free */
    uint32_t n_slots;
    uint32_t last; /* found last: lists and folders repeat themselves */
} PenNameSet;

/* The number of a name; *ret_new (may be NULL): it was not there before. */
int pen__name_set_add(PenNameSet *set, const char *name, size_t bytes, uint32_t *ret, bool *ret_new,
                      PenError *reterr);
void pen__name_set_free(PenNameSet *set);
/* Seconds as a decimal number, as nanoseconds. False when it is none, negative or above 2^33. */
bool pen__text_seconds(const char *text, uint64_t *ret_ns);

/* Does the name end as those of images do? Formats that cannot be read count too: such a file is a
 * broken input, so that nobody loses images without a message. */
bool pen__name_is_image(const char *name);
bool pen__name_is_video(const char *name);
bool pen__name_is_tar(const char *name);

/* Does a pattern of the settings match this path below the source? The folders it lies in are not
 * compared. */
bool pen__name_is_excluded(const PenIngestSettings *settings, const char *path);
/* PEN_E_INVALID for a pattern that can match no path below a source. */
int pen__exclude_check(const PenIngestSettings *settings, PenError *reterr);

#endif
