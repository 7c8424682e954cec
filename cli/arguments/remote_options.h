/* SPDX-License-Identifier: Apache-2.0 */
/* The options for packs at an address, as the library takes them. */
#ifndef PEN_CLI_ARGUMENTS_REMOTE_OPTIONS_H
#define PEN_CLI_ARGUMENTS_REMOTE_OPTIONS_H

#include <penstock/pack.h>

#include "arguments/args.h"

/* The texts stay those of the arguments. */
void cli_remote_settings(const CliArgs *args, PenRemoteSettings *ret);
/* The same of the place that is copied from. */
void cli_remote_settings_from(const CliArgs *args, PenRemoteSettings *ret);
/* Opens the pack at `where`, a path or an address, with the cache that --cache names. */
int cli_remote_open(const CliArgs *args, const char *where, PenPack **ret, PenError *reterr);

#endif
