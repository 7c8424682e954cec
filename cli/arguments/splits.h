/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that hold splits of a data set where classes were expected. */
#ifndef PEN_CLI_ARGUMENTS_SPLITS_H
#define PEN_CLI_ARGUMENTS_SPLITS_H

#include "arguments/args.h"

/* Warns when all subfolders of a folder to be packed are named like splits (train, val, test): they
 * would become the classes. */
void cli_splits_warn(const CliArgs *args);

#endif
