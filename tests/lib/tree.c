/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tree.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/sweep.h"

enum { PATH_BYTES = 1024 };

void tree_add(Tree *t, const char *path, const void *data, size_t bytes)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 16;
        t->items = realloc(t->items, t->cap * sizeof *t->items);
        MUST(t->items);
    }
    TreeItem *item = &t->items[t->n++];
    *item = (TreeItem){.path = strdup(path), .bytes = data ? bytes : 0};
    MUST(item->path);
    if (data) {
        item->data = malloc(bytes ? bytes : 1);
        MUST(item->data);
        memcpy(item->data, data, bytes);
    }
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const TreeItem *)a)->path, ((const TreeItem *)b)->path);
}

void tree_sort(Tree *t)
{
    if (t->n)
        qsort(t->items, t->n, sizeof *t->items, by_path);
}

static void load_file(Tree *t, const char *full, const char *path, size_t bytes)
{
    uint8_t *data = malloc(bytes ? bytes : 1);
    FILE *f = fopen(full, "rb");
    MUST(data && f);
    MUST(fread(data, 1, bytes, f) == bytes);
    fclose(f);
    tree_add(t, path, data, bytes);
    free(data);
}

static void load_dir(Tree *t, const char *top, const char *path)
{
    char full[PATH_BYTES * 2];
    snprintf(full, sizeof full, "%s/%s", top, path);
    DIR *dir = opendir(full);
    MUST(dir);
    struct dirent *d;
    while ((d = readdir(dir))) {
        char inner[PATH_BYTES];
        struct stat st;
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "/" : "", d->d_name);
        snprintf(full, sizeof full, "%s/%s", top, inner);
        MUST(stat(full, &st) == 0);
        if (S_ISDIR(st.st_mode)) {
            tree_add(t, inner, NULL, 0);
            load_dir(t, top, inner);
        } else {
            load_file(t, full, inner, (size_t)st.st_size);
        }
    }
    closedir(dir);
}

void tree_load(const char *top, Tree *ret)
{
    *ret = (Tree){0};
    load_dir(ret, top, "");
    tree_sort(ret);
}

void file_store(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    MUST(f);
    MUST(fwrite(data, 1, bytes, f) == bytes);
    MUST(fclose(f) == 0);
}

void tree_store(const Tree *t, const char *top)
{
    MUST(mkdir(top, 0777) == 0 || errno == EEXIST);
    for (size_t i = 0; i < t->n; i++) {
        char full[PATH_BYTES * 2];
        snprintf(full, sizeof full, "%s/%s", top, t->items[i].path);
        if (t->items[i].data)
            file_store(full, t->items[i].data, t->items[i].bytes);
        else
            MUST(mkdir(full, 0777) == 0 || errno == EEXIST);
    }
}

void tree_copy(const Tree *t, Tree *ret)
{
    *ret = (Tree){0};
    for (size_t i = 0; i < t->n; i++)
        tree_add(ret, t->items[i].path, t->items[i].data, t->items[i].bytes);
}

void tree_free(Tree *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->items[i].path);
        free(t->items[i].data);
    }
    free(t->items);
    *t = (Tree){0};
}

const TreeItem *tree_find(const Tree *t, const char *path)
{
    TreeItem key = {.path = (char *)path};
    return t->n ? bsearch(&key, t->items, t->n, sizeof key, by_path) : NULL;
}

bool tree_same(const Tree *a, const Tree *b, char *ret_why, size_t cap)
{
    for (size_t i = 0; i < a->n || i < b->n; i++) {
        const TreeItem *x = i < a->n ? &a->items[i] : NULL;
        const TreeItem *y = i < b->n ? &b->items[i] : NULL;
        int order = !x ? 1 : !y ? -1 : strcmp(x->path, y->path);
        if (order != 0) {
            snprintf(ret_why, cap, "'%s' is only in the %s", order < 0 ? x->path : y->path,
                     order < 0 ? "first" : "second");
            return false;
        }
        if (!x->data != !y->data || x->bytes != y->bytes ||
            (x->bytes && memcmp(x->data, y->data, x->bytes) != 0)) {
            snprintf(ret_why, cap, "'%s' differs", x->path);
            return false;
        }
    }
    return true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

unsigned dir_entries(const char *path)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    MUST(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

void dir_remove(const char *top)
{
    if (nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0)
        MUST(errno == ENOENT);
}

static char scratch_path[64];

static void scratch_remove(void)
{
    dir_remove(scratch_path);
}

const char *scratch_dir(void)
{
    if (!scratch_path[0]) {
        snprintf(scratch_path, sizeof scratch_path, "%s/penstock-long-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        MUST(mkdtemp(scratch_path));
        atexit(scratch_remove);
    }
    return scratch_path;
}

const char *scratch(const char *fmt, ...)
{
    static char paths[16][PATH_BYTES];
    static unsigned next;
    char *path = paths[next++ % 16];
    int n = snprintf(path, PATH_BYTES, "%s/", scratch_dir());
    va_list args;
    va_start(args, fmt);
    vsnprintf(path + n, (size_t)(PATH_BYTES - n), fmt, args);
    va_end(args);
    return path;
}
