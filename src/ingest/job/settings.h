/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a run: defaults, checks, and the text that names all that changes what is
 * written. */
#ifndef PEN_INGEST_JOB_SETTINGS_H
#define PEN_INGEST_JOB_SETTINGS_H

#include <stdbool.h>

#include <penstock/writer.h>

#include "ingest/prepare/prepare.h"

enum { PEN_SETTINGS_TEXT_BYTES = 512 };

/* The program's settings; the defaults for NULL. */
PenIngestSettings pen__ingest_settings(const PenIngestSettings *given);
PenWriterSettings pen__writer_settings(const PenWriterSettings *given);
int pen__settings_check(const PenIngestSettings *s, PenError *reterr);
/* Only what concerns images; the public writer has no other settings of a run. */
int pen__settings_check_images(const PenIngestSettings *s, PenError *reterr);
PenPrepareSettings pen__settings_prepare(const PenIngestSettings *s);
/* Do JPEGs get an entry index? */
bool pen__settings_index(const PenIngestSettings *s);
/* Does the pack need a reader that knows entry tables? It does also for encoded JPEGs without any
 * table. */
bool pen__settings_entries(const PenIngestSettings *s);
/* JSON, the same for the same settings: it goes into the pack, and an interrupted run must be
 * continued with it. */
void pen__settings_text(const PenIngestSettings *s, char ret[PEN_SETTINGS_TEXT_BYTES]);
/* Does this text say that shards have columns? That of an earlier build does not. */
bool pen__settings_have_columns(const char *text);

/* Calls the progress callback; PEN_E_CANCELLED when it says so. */
int pen__settings_cancelled(const PenIngestSettings *s, PenError *reterr); /* PEN_E_CANCELLED */
int pen__settings_report(const PenIngestSettings *s, PenIngestProgress progress, PenError *reterr);

#endif
