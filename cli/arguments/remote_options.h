/* SPDX-License-Identifier: Apache-2.0 */
/* The options of remote packs, as settings of the library. */
#ifndef PEN_CLI_ARGUMENTS_REMOTE_OPTIONS_H
#define PEN_CLI_ARGUMENTS_REMOTE_OPTIONS_H

#include <penstock/pack.h>

#include "arguments/args.h"

/* The texts belong to the arguments. */
void cli_remote_settings(const CliArgs *args, PenRemoteSettings *ret);
/* The same for the source of a copy. */
void cli_remote_settings_from(const CliArgs *args, PenRemoteSettings *ret);
/* --root and --relocate, which say where the files of an in-place pack are. */
typedef struct CliFiles {
    PenFileSettings settings;
    PenRemoteSettings remote; /* of URLs among them */
    const char *root, *from, *to;
    char text[8192]; /* of --relocate */
} CliFiles;

/* 1: the pack, the first operand, is read from a server, or files that it refers to are. */
int cli_reads_objects(const CliArgs *args);
int cli_files_settings(const CliArgs *args, CliFiles *ret, PenError *reterr);
/* Opens the pack at `where`, a path or a URL, with the cache of --cache. */
int cli_remote_open(const CliArgs *args, const char *where, PenPack **ret, PenError *reterr);

#endif
