/* SPDX-License-Identifier: Apache-2.0 */
/* --cache and the options that belong to it. */
#ifndef CLI_ARGUMENTS_CACHE_OPTIONS_H
#define CLI_ARGUMENTS_CACHE_OPTIONS_H

#include <penstock/pack.h>

#include "arguments/tables.h"

/* Refuses options that need another one. */
int cli_cache_check(const CliArgs *args, PenError *reterr);
/* Adds the cache of --cache to a pack. */
int cli_cache_add(const CliArgs *args, PenPack *pack, PenError *reterr);

#endif
