/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of several users. Each has a cache of its own below one directory, which nobody else can
 * write to and the group can read:
 *
 *     DIR                 mode 3770: members of the group add to it, and remove only what is theirs
 *     DIR/user-<uid>      mode 2750: a cache as in cache.h, with entries of mode 0640
 *     DIR/user-<uid>/claims    locks of entries as in range.c, for others to see
 *
 * An entry is used if it and all directories on the way to it belong to us or to a user that we
 * trust, and nobody else can write to them. See docs/explanation/adr/0043. */
#ifndef PEN_CACHE_SHARE_H
#define PEN_CACHE_SHARE_H

#include <penstock/cache.h>

#include "base/error.h"
#include "base/sys.h"

typedef struct PenCacheShare PenCacheShare;

enum { PEN_SHARE_FILE = 0640, PEN_SHARE_DIR = 02750 };

/* Checks DIR, and makes our directory in it, whose path has to be freed. */
int pen__share_open(const PenCacheSettings *settings, PenCacheShare **ret, char **ret_own,
                    PenError *reterr);
void pen__share_close(PenCacheShare **share); /* accepts NULL */
/* When there is a cache in our directory: opens the file of claims. Without it others do not wait
 * for us. */
void pen__share_begin(PenCacheShare *s, const char *own);
/* Gives a directory of ours its permissions. 0, or -errno: -ENOTDIR when it is not ours. */
int pen__share_open_to_group(const char *path);

/* Opens an entry of a user: 0 is us, the others follow. An fd, or -errno: -EPERM when it is there
 * and must not be used; -ERANGE when there are not so many users. */
int pen__share_find(const PenCacheShare *s, uint32_t user, const char *const names[3],
                    PenFileStat *ret);

/* With our own claim. 1: others see it from now on. 0: a user that we trust has it. */
int pen__share_claim(PenCacheShare *s, uint64_t range);
void pen__share_release(PenCacheShare *s, uint64_t range);

#endif
