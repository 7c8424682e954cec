/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_help.h"

const uint8_t pack_a[16] = "pack a, of tests", pack_b[16] = "pack b, of tests";

const uint8_t pack_c[16] = "pack c, of tests";

PenSys sys;

PenCacheKey block(uint64_t n)
{
    return (PenCacheKey){PEN_CACHE_BLOCK, n};
}

PenCache *open_for(const char *name, const uint8_t *id, uint64_t bytes, PenError *err)
{
    PenCacheSettings s;
    PenCache *c = NULL;
    pen_cache_settings_init(&s);
    s.directory = name;
    s.bytes = bytes;
    s.wait_ms = 200;
    int r = pen__cache_open(&s, id, "s3://from/here", &c, err);
    if (r < 0 && !err)
        printf("cannot open %s: %d\n", name, r);
    return c;
}

int has(PenCache *c, uint64_t n, uint8_t fill, uint64_t bytes)
{
    static uint8_t data[1 << 16];
    PenCacheEntry e;
    if (!pen__cache_find(c, block(n), &e))
        return 0;
    if (e.bytes != bytes) {
        pen__cache_leave(&e);
        return -1;
    }
    if (!pen__cache_read(&e, data))
        return -2;
    for (uint64_t i = 0; i < bytes; i++)
        if (data[i] != fill)
            return -3;
    return 1;
}

int put(PenCache *c, uint64_t n, uint8_t fill, uint64_t bytes)
{
    static uint8_t data[1 << 16];
    memset(data, fill, bytes);
    return pen__cache_store(c, block(n), data, bytes);
}

PenAccounting books_of(PenCache *c)
{
    PenAccounting b = {0};
    int r = pen__accounting_begin(c, 1000000000, &b);
    if (r == 0)
        pen__accounting_end(c, NULL);
    else
        printf("accounting: %d\n", r);
    return b;
}

PenCacheStats stats_of(PenCache *c)
{
    PenCacheStats s;
    pen__cache_stats(c, &s);
    return s;
}

bool there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

unsigned names_in(const char *path, const char *with)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += strstr(e->d_name, with) != NULL && e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

char *folder_of(const char *dir, const uint8_t *id)
{
    static char path[4500];
    int n = snprintf(path, sizeof path, "%s/", at(dir));
    for (int i = 0; i < 16; i++)
        n += snprintf(path + n, sizeof path - (size_t)n, "%02x", id[i]);
    return path;
}

const char *entry_of(const char *dir, const uint8_t *id, uint64_t number)
{
    static char paths[4][4600];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%02x/%u.block", folder_of(dir, id), (unsigned)number % 256,
             (unsigned)number);
    return path;
}

uint64_t unix_s, cache_turned_ns;

uint64_t given_unix_ns(void)
{
    return unix_s * 1000000000u;
}

uint64_t turned_now_ns(void)
{
    return pen__sys_real.now_ns() + cache_turned_ns;
}
