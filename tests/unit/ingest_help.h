/* SPDX-License-Identifier: Apache-2.0 */
/* What the ingest tests share: folders and tars made for the test. */
#ifndef PEN_TESTS_UNIT_INGEST_HELP_H
#define PEN_TESTS_UNIT_INGEST_HELP_H

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "ingest/source/input.h"
#include "test.h"

/* ---- files ----------------------------------------------------------------------------------- */

extern char help_root[256];

void help_begin(void);
int help_remove(const char *path, const struct stat *st, int type, struct FTW *ftw);
void help_end(void);

/* The path of `name` in the test's folder; the last 8 are kept. */
const char *at(const char *name);

/* Writes a file and the folders it lies in. */
void help_file(const char *name, const void *data, size_t bytes);
void help_text(const char *name, const char *text);

/* ---- tars ------------------------------------------------------------------------------------ */

typedef struct HelpTar {
    struct archive *archive;
    uint8_t *data;
    size_t bytes, cap;
} HelpTar;

void help_tar_begin(HelpTar *t, int (*format)(struct archive *), int (*filter)(struct archive *));
void help_tar_member(HelpTar *t, const char *name, unsigned type, const char *link,
                     const void *data, size_t bytes);
void help_tar_text(HelpTar *t, const char *name, const char *text);

/* Ends the tar; with a name it is written there and freed. */
void help_tar_end(HelpTar *t, const char *name);

/* ---- settings -------------------------------------------------------------------------------- */

PenIngestSettings help_settings(const char *const *sources, uint32_t n);

/* Adds to a text that has room for `cap` bytes. */
__attribute__((format(printf, 3, 4))) void help_add(char *text, size_t cap, const char *fmt, ...);

/* For checks of an input's texts, which have no NUL. */
bool help_is(const void *found, size_t bytes, const char *expected);

#define CHECK_FAILS(call, expected, text)                                                          \
    do {                                                                                           \
        PenError err = {0};                                                                        \
        int test__r = (call);                                                                      \
        if (test__r != (expected) || err.status != (expected) || !strstr(err.message, text)) {     \
            test__fail(__FILE__, __LINE__, "%s: found %d \"%s\", expected %d \"%s\"", #call,       \
                       test__r, err.message, (int)(expected), text);                               \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define CHECK_GOES(call)                                                                           \
    do {                                                                                           \
        PenError err = {0};                                                                        \
        int test__r = (call);                                                                      \
        if (test__r != 0) {                                                                        \
            test__fail(__FILE__, __LINE__, "%s: found %d \"%s\"", #call, test__r, err.message);    \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#endif
