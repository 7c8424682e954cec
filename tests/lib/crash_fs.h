/* SPDX-License-Identifier: Apache-2.0 */
/* What a disk may hold after the power went out in the middle of a log of writes.
 *
 * The model is strict: the bytes of a file are sure only after a sync of the file, a name (made,
 * renamed, removed) only after a sync of its directory. Of all else any part may be there: names in
 * any combination, bytes by sectors of 512, a file of the right size with zeros in it. A rename
 * never loses a file: the old name goes only when the new one is there. */
#ifndef PEN_TESTS_LIB_CRASH_FS_H
#define PEN_TESTS_LIB_CRASH_FS_H

#include "base/rng.h"
#include "lib/log_sys.h"
#include "lib/tree.h"

/* `before` is what was there, all of it sure; the first n operations of the log were begun. All
 * paths of the log are below `top`. Without `rng` nothing is lost. */
void crash_state(const Tree *before, const Log *log, size_t n, const char *top, PenRng *rng,
                 Tree *ret);

#endif
