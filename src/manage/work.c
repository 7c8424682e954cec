/* SPDX-License-Identifier: Apache-2.0 */
#include "manage/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/writer.h>

#include "base/attr.h"
#include "base/mem.h"
#include "base/sys.h"
#include "io/dir.h"
#include "io/inner.h"
#include "pack/format/format.h"

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
    r = pen__inner_make(work, pen__inner_root(work), reterr);
    pen__free(work);
    return r;
}

int pen__entry_remove(int dir, const char *name, const char *path, uint64_t *files, uint64_t *bytes,
                      PenError *reterr)
{
    PenFileStat st = {0};
    int known = pen__sys->stat_at(dir, name, &st);
    int r = pen__sys->unlink(dir, name);
    if (r < 0 && r != -ENOENT)
        return pen__fail_os(reterr, -r, WHERE, "%s/%s: cannot remove", path, name);
    if (files)
        ++*files;
    if (bytes && known == 0)
        *bytes += st.bytes;
    return PEN_OK;
}

/* What is being removed, and how much of it there was. */
typedef struct Removal {
    uint64_t *files, *bytes;
} Removal;

static int remove_all_in(const Removal *removal, int dir, const char *path, int depth,
                         PenError *reterr);

/* Folder `name` of `dir`, which lies at `path`. */
static int remove_folder(const Removal *removal, int dir, const char *path, const char *name,
                         int depth, PenError *reterr)
{
    char *inner = pen__path_join(path, name);
    if (!inner)
        return pen__fail_memory(reterr, WHERE, path);
    int r = pen__sys->open_at(dir, name, PEN_OPEN_INNER_DIR);
    if (r < 0) {
        r = pen__fail_os(reterr, -r, WHERE, "%s: cannot open directory", inner);
    } else {
        int fd = r;
        r = remove_all_in(removal, fd, inner, depth, reterr);
        pen__sys->close(fd);
    }
    int gone = r == PEN_OK ? pen__sys->rmdir(dir, name) : 0;
    if (gone < 0 && gone != -ENOENT)
        r = pen__fail_os(reterr, -gone, WHERE, "%s: cannot remove directory", inner);
    pen__free(inner);
    return r;
}

/* Links are removed, not followed. At most `depth` levels below. */
static int remove_all_in(const Removal *removal, int dir, const char *path, int depth,
                         PenError *reterr)
{
    PenNames names = {0};
    int r = pen__dir_list_fd(dir, path, &names, reterr);
    for (uint64_t i = 0; i < names.n && r == PEN_OK; i++) {
        PenFileStat st = {0};
        if (depth > 0 && pen__sys->stat_at(dir, names.names[i], &st) == 0 && st.is_dir)
            r = remove_folder(removal, dir, path, names.names[i], depth - 1, reterr);
        else
            r = pen__entry_remove(dir, names.names[i], path, removal->files, removal->bytes,
                                  reterr);
    }
    pen__names_free(&names);
    return r;
}

static int is_ours(const char *name)
{
    static const char *const ours[] = {
        "plan",         "plan.part",  "plan.new",       "plan.new.part", "sources",
        "sources.part", "rest.part",  "manifest.part",  "writer.part",   "run",
        "tars",         "plan.spill", "plan.new.spill", PEN_WORK_TASKS};
    int known = strncmp(name, "task-", 5) == 0 || strncmp(name, "copy-", 5) == 0 ||
                strncmp(name, "video-", 6) == 0;
    for (size_t k = 0; k < PEN_LEN(ours); k++)
        known |= strcmp(name, ours[k]) == 0;
    return known;
}

/* Is all in .work of the names we give? Whoever has a folder of that name keeps it. */
static int check_ours(int dir, const char *work, PenError *reterr)
{
    PenNames names = {0};
    int r = pen__dir_list_fd(dir, work, &names, reterr);
    for (uint64_t i = 0; i < names.n && r == PEN_OK; i++)
        if (!is_ours(names.names[i]))
            r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                          "%s/%s: expected only files of penstock in this directory; nothing was "
                          "removed: move it away",
                          work, names.names[i]);
    pen__names_free(&names);
    return r;
}

void pen__work_task_name(uint32_t task, uint32_t n_tasks, char ret[PEN_TASK_NAME_BYTES])
{
    int n = snprintf(ret, PEN_TASK_NAME_BYTES, "task-%" PRIu32, task);
    if (n_tasks != PEN_TASKS_OPEN)
        snprintf(ret + n, PEN_TASK_NAME_BYTES - (size_t)n, "-of-%" PRIu32, n_tasks);
}

int pen__work_task(const char *name, uint32_t *ret_task, uint32_t *ret_n_tasks)
{
    char again[PEN_TASK_NAME_BYTES];
    const char *of = strstr(name, "-of-");
    if (strncmp(name, "task-", 5) != 0)
        return 0;
    *ret_task = (uint32_t)strtoul(name + 5, NULL, 10);
    *ret_n_tasks = of ? (uint32_t)strtoul(of + 4, NULL, 10) : PEN_TASKS_OPEN;
    pen__work_task_name(*ret_task, *ret_n_tasks, again);
    return strcmp(again, name) == 0 && *ret_task < *ret_n_tasks;
}

int pen__work_is_shared(const char *name)
{
    static const char folder[] = PEN_WORK_NAME "/", plan[] = "plan";
    uint32_t task, n_tasks;
    if (strncmp(name, folder, sizeof folder - 1) != 0)
        return 0;
    name += sizeof folder - 1;
    if (strncmp(name, plan, sizeof plan - 1) != 0)
        return pen__work_task(name, &task, &n_tasks);
    name += sizeof plan - 1;
    return !*name ||
           (*name == '-' && strlen(name) == 33 && strspn(name + 1, "0123456789abcdef") == 32);
}

/* What there is in .work that says whether tasks have to do with it. */
typedef struct Found {
    bool plan, tasks, run, task;
} Found;

static int find(const char *out, Found *ret, PenError *reterr)
{
    PenNames names = {0};
    char *work = pen__work_path(out, NULL);
    int r = work ? pen__dir_list(work, &names, reterr) : pen__fail_memory(reterr, WHERE, out);
    for (uint64_t i = 0; i < names.n; i++) {
        const char *name = names.names[i];
        ret->plan |= strcmp(name, "plan") == 0;
        ret->tasks |= strcmp(name, PEN_WORK_TASKS) == 0;
        ret->run |= strcmp(name, "run") == 0;
        ret->task |= strncmp(name, "task-", 5) == 0;
    }
    pen__names_free(&names);
    pen__free(work);
    return pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
}

int pen__work_has_tasks(const char *out, PenError *reterr)
{
    Found found = {0};
    int r = find(out, &found, reterr);
    return r < 0 ? r : found.task;
}

int pen__work_is_planned(const char *out, PenError *reterr)
{
    Found found = {0};
    int r = find(out, &found, reterr);
    return r < 0 ? r : found.plan && (found.task || (found.tasks && !found.run));
}

int pen__work_check(const char *out, PenError *reterr)
{
    int fd = -1;
    char *work = pen__work_path(out, NULL);
    if (!work)
        return pen__fail_memory(reterr, WHERE, out);
    int r = pen__inner_open_dir(work, pen__inner_root(work), &fd, reterr);
    if (r == PEN_OK) {
        r = check_ours(fd, work, reterr);
        pen__sys->close(fd);
    }
    pen__free(work);
    return pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
}

int pen__work_remove(const char *out, uint64_t *files, uint64_t *bytes, PenError *reterr)
{
    int fd = -1;
    Removal removal = {files, bytes};
    char *work = pen__work_path(out, NULL);
    if (!work)
        return pen__fail_memory(reterr, WHERE, out);
    size_t root = pen__inner_root(work);
    int r = pen__inner_open_dir(work, root, &fd, reterr);
    if (r == PEN_OK) {
        r = check_ours(fd, work, reterr);
        if (r == PEN_OK)
            r = remove_all_in(&removal, fd, work, 2, reterr);
        pen__sys->close(fd);
        if (r == PEN_OK)
            r = pen__inner_remove_dir(work, root, reterr);
    }
    pen__free(work);
    return pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
}
