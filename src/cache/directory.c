/* SPDX-License-Identifier: Apache-2.0 */
/* Names in a cache. What has another name than those made here is never touched, nor what is not a
 * plain file, nor what lies behind a symbolic link. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "cache/cache_impl.h"

enum { FOLDERS = 256 };
static const char about_name[] = "about", about_head[] = "penstock cache 1\nopened ";
static const char *const suffixes[] = {".block", ".tail", ".piece"};

/* ---- paths ---------------------------------------------------------------------------------- */

bool pen__cache_dir_is_own(const char *path)
{
    PenFileStat st;
    return pen__sys->stat_at(PEN_AT_CWD, path, &st) == 0 && st.is_dir && st.uid == geteuid();
}

void pen__cache_dir_path(const PenCache *c, const char *id, const char *name,
                         char ret[PEN_CACHE_PATH])
{
    snprintf(ret, PEN_CACHE_PATH, "%s%s%s%s%s", c->dir, id ? "/" : "", id ? id : "",
             name ? "/" : "", name ? name : "");
}

int pen__cache_dir_make(const char *path)
{
    int r = pen__sys->mkdir_own(path);
    return r == -EEXIST ? (pen__cache_dir_is_own(path) ? 0 : -ENOTDIR) : r;
}

void pen__cache_dir_folder(const PenCache *c, PenCacheKey key, char ret[PEN_CACHE_PATH])
{
    char name[8];
    snprintf(name, sizeof name, "%02x", (unsigned)(key.number % FOLDERS));
    pen__cache_dir_path(c, c->id, name, ret);
}

void pen__cache_dir_entry(const PenCache *c, PenCacheKey key, char ret[PEN_CACHE_PATH])
{
    char name[48];
    snprintf(name, sizeof name, "%02x/%" PRIu64 "%s", (unsigned)(key.number % FOLDERS), key.number,
             suffixes[key.kind]);
    pen__cache_dir_path(c, c->id, name, ret);
}

int pen__cache_dir_temp(const PenCache *c, char ret[PEN_CACHE_PATH])
{
    uint64_t random;
    char name[32];
    int r = pen__sys->random(&random, sizeof random);
    if (r < 0)
        return r;
    snprintf(name, sizeof name, "new-%016" PRIx64, random);
    pen__cache_dir_path(c, c->id, name, ret);
    return 0;
}

/* ---- which names are ours ------------------------------------------------------------------- */

static bool all_hex(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!s[i] || !strchr("0123456789abcdef", s[i]))
            return false;
    return s[n] == 0;
}

static bool is_temp(const char *name)
{
    return strncmp(name, "new-", 4) == 0 && all_hex(name + 4, 16);
}

/* As it is written here: no sign, no zero in front, in its folder. */
static bool is_entry(const char *name, unsigned folder)
{
    char again[48];
    if (*name < '0' || *name > '9')
        return false;
    uint64_t number = strtoull(name, NULL, 10);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(again, sizeof again, "%" PRIu64 "%s", number, suffixes[i]);
        if (strcmp(name, again) == 0)
            return number % FOLDERS == folder;
    }
    return false;
}

/* ---- walking -------------------------------------------------------------------------------- */

typedef struct Walk {
    PenCache *cache;
    const char *id;
    unsigned folder;
    int (*each_pack)(void *ctx, const char *id);
    int (*each)(void *ctx, const char *path, uint64_t bytes);
    void *ctx;
} Walk;

static int see_pack(void *ctx, const char *name)
{
    Walk *w = ctx;
    char path[PEN_CACHE_PATH];
    if (!all_hex(name, 32))
        return 0;
    pen__cache_dir_path(w->cache, name, NULL, path);
    return pen__cache_dir_is_own(path) ? w->each_pack(w->ctx, name) : 0;
}

int pen__cache_dir_packs(PenCache *c, int (*each)(void *ctx, const char *id), void *ctx)
{
    Walk w = {.cache = c, .each_pack = each, .ctx = ctx};
    return pen__sys->list(c->dir, see_pack, &w);
}

static int see_entry(void *ctx, const char *name)
{
    Walk *w = ctx;
    char path[PEN_CACHE_PATH], in_pack[320];
    PenFileStat st;
    if (!is_entry(name, w->folder))
        return 0;
    snprintf(in_pack, sizeof in_pack, "%02x/%s", w->folder, name);
    pen__cache_dir_path(w->cache, w->id, in_pack, path);
    return pen__sys->stat_at(PEN_AT_CWD, path, &st) == 0 && st.is_file
               ? w->each(w->ctx, path, st.bytes)
               : 0;
}

int pen__cache_dir_entries(PenCache *c, const char *id,
                           int (*each)(void *ctx, const char *path, uint64_t bytes), void *ctx)
{
    Walk w = {.cache = c, .id = id, .each = each, .ctx = ctx};
    int r = 0;
    for (w.folder = 0; w.folder < FOLDERS && r == 0; w.folder++) {
        char path[PEN_CACHE_PATH], name[8];
        snprintf(name, sizeof name, "%02x", w.folder);
        pen__cache_dir_path(c, id, name, path);
        if (pen__cache_dir_is_own(path))
            r = pen__sys->list(path, see_entry, &w);
        if (r == -ENOENT) /* somebody removed it meanwhile */
            r = 0;
    }
    return r;
}

static int sweep_temp(void *ctx, const char *name)
{
    Walk *w = ctx;
    char path[PEN_CACHE_PATH];
    PenFileStat st;
    if (!is_temp(name))
        return 0;
    pen__cache_dir_path(w->cache, w->id, name, path);
    if (pen__sys->stat_at(PEN_AT_CWD, path, &st) == 0 && st.is_file)
        (void)pen__sys->unlink(PEN_AT_CWD, path);
    return 0;
}

void pen__cache_dir_sweep(PenCache *c, const char *id)
{
    Walk w = {.cache = c, .id = id};
    char path[PEN_CACHE_PATH];
    pen__cache_dir_path(c, id, NULL, path);
    (void)pen__sys->list(path, sweep_temp, &w);
}

void pen__cache_dir_remove(PenCache *c, const char *id)
{
    char path[PEN_CACHE_PATH], name[8];
    pen__cache_dir_sweep(c, id);
    for (unsigned i = 0; i < FOLDERS; i++) {
        snprintf(name, sizeof name, "%02x", i);
        pen__cache_dir_path(c, id, name, path);
        if (pen__cache_dir_is_own(path))
            (void)pen__sys->rmdir(PEN_AT_CWD, path);
    }
    PenFileStat st;
    pen__cache_dir_path(c, id, about_name, path);
    if (pen__sys->stat_at(PEN_AT_CWD, path, &st) == 0 && st.is_file)
        (void)pen__sys->unlink(PEN_AT_CWD, path);
    pen__cache_dir_path(c, id, NULL, path);
    (void)pen__sys->rmdir(PEN_AT_CWD, path);
}

/* ---- what is said of a pack ----------------------------------------------------------------- */

int pen__about_write(PenCache *c, const char *from)
{
    char temp[PEN_CACHE_PATH], path[PEN_CACHE_PATH], text[512];
    int n = snprintf(text, sizeof text, "%s%" PRIu64 "\nfrom %.300s\n", about_head,
                     pen__sys->unix_ns() / 1000000000u, from);
    int r = pen__cache_dir_temp(c, temp);
    int fd = r < 0 ? r : pen__sys->open(temp, PEN_OPEN_NEW);
    if (fd < 0)
        return fd;
    struct iovec iov = {text, (size_t)n};
    r = pen__sys->pwritev(fd, &iov, 1, 0) == n ? 0 : -EIO;
    int closed = pen__sys->close(fd);
    pen__cache_dir_path(c, c->id, about_name, path);
    if (r == 0)
        r = closed < 0 ? closed : pen__sys->rename(PEN_AT_CWD, temp, PEN_AT_CWD, path);
    if (r < 0)
        (void)pen__sys->unlink(PEN_AT_CWD, temp);
    return r;
}

/* Everything in it may be wrong: then nothing is known. */
void pen__about_read(PenCache *c, const char *id, uint64_t *ret_opened_s, char *ret_from,
                     size_t cap)
{
    char path[PEN_CACHE_PATH], text[512];
    *ret_opened_s = 0;
    ret_from[0] = 0;
    pen__cache_dir_path(c, id, about_name, path);
    int fd = pen__sys->open(path, PEN_OPEN_PLAIN);
    if (fd < 0)
        return;
    int64_t n = pen__sys->pread(fd, text, sizeof text - 1, 0);
    (void)pen__sys->close(fd);
    text[n > 0 ? n : 0] = 0;
    size_t head = strlen(about_head);
    if (strncmp(text, about_head, head) != 0)
        return;
    *ret_opened_s = strtoull(text + head, NULL, 10);
    const char *from = strstr(text + head, "\nfrom ");
    if (from)
        snprintf(ret_from, cap, "%.*s", (int)strcspn(from + 6, "\n"), from + 6);
    for (char *p = ret_from; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
}
