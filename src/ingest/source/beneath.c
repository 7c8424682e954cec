/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/source/beneath.h"

#include <errno.h>
#include <string.h>

#include "base/sys.h"

#define WHERE "ingest/list"

bool pen__leads_nowhere(int r)
{
    return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

static int resolve(const char *path, char ret[PEN_REAL_PATH_BYTES], PenError *reterr)
{
    int n = pen__sys->real_path(path, ret, PEN_REAL_PATH_BYTES);
    if (n >= 0)
        return PEN_OK;
    if (n == -ENAMETOOLONG || n == -ERANGE)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%.300s: expected a path of at most %d bytes, with names of at most 255, "
                         "after resolving symbolic links; found a longer one",
                         path, PEN_REAL_PATH_BYTES - 1);
    return pen__fail_os(reterr, -n, WHERE, "%.300s: cannot open", path);
}

/* A root that is gone is no bad input but the end: nothing could be compared with it. */
static int resolve_root(const char *root, char ret[PEN_REAL_PATH_BYTES], PenError *reterr)
{
    int r = resolve(root, ret, reterr);
    if (r == PEN_E_NOT_FOUND)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%.300s: no such folder; the paths of the list are relative to it", root);
    if (r == PEN_E_UNSUPPORTED && reterr)
        reterr->status = PEN_E_INVALID;
    return r == PEN_E_UNSUPPORTED ? PEN_E_INVALID : r;
}

int pen__beneath(const char *root, const char *path, char ret[PEN_REAL_PATH_BYTES],
                 PenError *reterr)
{
    char real_root[PEN_REAL_PATH_BYTES];
    int r = resolve_root(*root ? root : ".", real_root, reterr);
    if (r == PEN_OK)
        r = resolve(path, ret, reterr);
    if (r < 0)
        return r;
    size_t n = strlen(real_root);
    if (n == 1 || (strncmp(ret, real_root, n) == 0 && (ret[n] == '/' || !ret[n])))
        return PEN_OK;
    return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                     "%.200s: expected a path below %.200s, found one that leads to %.200s; write "
                     "paths relative to the folder of --root, or pass --allow-outside",
                     path, real_root, ret);
}
