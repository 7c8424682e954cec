/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of plans share: a request, and ways to look at the plan made from it. */
#ifndef PEN_TESTS_UNIT_INGEST_PLAN_HELP_H
#define PEN_TESTS_UNIT_INGEST_PLAN_HELP_H

#include "codec/codec.h"
#include "ingest/plan/plan_impl.h"
#include "ingest_help.h"

extern PenIngestSettings settings;
extern PenPlanRequest request;

/* Settings and request for one source; tests change what they are about. */
void ask(const char *source);
int make(PenError *err);
int make_open(PenPlan **ret, PenError *err);

/* All keys in order, joined by spaces. */
void keys(const PenPlan *plan, char *out, size_t cap);
void plan_keys(char *out, size_t cap);

#define CHECK_PLAN_FAILS(status, message) CHECK_FAILS(make(&err), status, message)

int64_t number(const PenPart *part);
void make_folder(const char *root);

#define ALL_KEYS "cat/1.jpg cat/2.jpg cat/3.jpg dog/1.jpg dog/2.jpg eel/9.png"

/* Member of sample i with that suffix: some bytes that tell which it is. */
size_t member_text(int i, const char *suffix, char text[4000]);

/* Samples whose parts lie in an order other than that of the fields. */
void make_tar(const char *name, int first, int n, int (*filter)(struct archive *));
PenPackInfo with_classes(const char *const *classes, uint32_t n);
void make_png(const char *name, uint32_t width, uint32_t height);

/* Opens the plan and reads all parts of all items. */
int read_all(PenError *err);
int make_and_read(PenError *err);

#endif
