/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that contain the splits of a dataset instead of classes. */
#ifndef PEN_CLI_ARGUMENTS_SPLITS_H
#define PEN_CLI_ARGUMENTS_SPLITS_H

#include "arguments/args.h"

/* Warns if all subfolders of a folder to pack are named like splits (train, val, test): they
 * would become the classes. */
void cli_splits_warn(const CliArgs *args);

#endif
