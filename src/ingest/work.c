/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/work.h"

#include <string.h>

#include "base/attr.h"
#include "base/mem.h"
#include "base/sys.h"
#include "io/dir.h"
#include "pack/format.h"

#define WHERE "ingest/work"

char *pen__work_path(const char *out, const char *name)
{
    char *work = pen__path_join(out, PEN_WORK_NAME);
    if (!work || !name)
        return work;
    char *path = pen__path_join(work, name);
    pen__free(work);
    return path;
}

int pen__work_make(const char *out, PenError *reterr)
{
    int r = pen__dir_make(out, reterr);
    if (r < 0)
        return r;
    char *work = pen__work_path(out, NULL);
    if (!work)
        return pen__fail_memory(reterr, WHERE, out);
    r = pen__dir_make(work, reterr);
    pen__free(work);
    return r;
}

int pen__file_remove_counted(const char *path, uint64_t *files, uint64_t *bytes, PenError *reterr)
{
    PenFileStat st = {0};
    int known = pen__sys->stat_path(path, &st);
    int r = pen__file_remove(path, reterr);
    if (r < 0)
        return r;
    if (files)
        ++*files;
    if (bytes && known == 0)
        *bytes += st.bytes;
    return PEN_OK;
}

int pen__tree_remove(const char *path, int depth, uint64_t *files, uint64_t *bytes,
                     PenError *reterr)
{
    PenNames names = {0};
    int r = pen__dir_list(path, &names, reterr);
    for (uint64_t i = 0; i < names.n && r == PEN_OK; i++) {
        PenFileStat st = {0};
        char *inner = pen__path_join(path, names.names[i]);
        if (!inner)
            r = pen__fail_memory(reterr, WHERE, path);
        else if (depth > 0 && pen__sys->stat_path(inner, &st) == 0 && st.is_dir)
            r = pen__tree_remove(inner, depth - 1, files, bytes, reterr);
        else
            r = pen__file_remove_counted(inner, files, bytes, reterr);
        pen__free(inner);
    }
    pen__names_free(&names);
    return r < 0 ? r : pen__dir_remove(path, reterr);
}

/* Is all in .work of the names we give? Whoever has a folder of that name keeps it. */
static int check_ours(const char *work, PenError *reterr)
{
    static const char *const ours[] = {"plan",      "plan.part",     "sources",     "sources.part",
                                       "rest.part", "manifest.part", "writer.part", "run"};
    PenNames names = {0};
    int r = pen__dir_list(work, &names, reterr);
    for (uint64_t i = 0; i < names.n && r == PEN_OK; i++) {
        int known =
            strncmp(names.names[i], "task-", 5) == 0 || strncmp(names.names[i], "copy-", 5) == 0;
        for (size_t k = 0; k < PEN_LEN(ours); k++)
            known |= strcmp(names.names[i], ours[k]) == 0;
        if (!known)
            r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                          "%s/%s: expected only what penstock puts there; nothing is removed: move "
                          "it away",
                          work, names.names[i]);
    }
    pen__names_free(&names);
    return r;
}

int pen__work_remove(const char *out, uint64_t *files, uint64_t *bytes, PenError *reterr)
{
    char *work = pen__work_path(out, NULL);
    if (!work)
        return pen__fail_memory(reterr, WHERE, out);
    int r = pen__file_exists(work, reterr);
    if (r == 1) {
        r = check_ours(work, reterr);
        if (r == PEN_OK)
            r = pen__tree_remove(work, 2, files, bytes, reterr);
    }
    pen__free(work);
    return r;
}
