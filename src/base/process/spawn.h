/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a program: the real form of PenSys.spawn. */
#ifndef PEN_BASE_PROCESS_SPAWN_H
#define PEN_BASE_PROCESS_SPAWN_H

#include "base/sys.h"

int pen__spawn(const PenSpawn *what, PenSpawned *ret);

#endif
