/* SPDX-License-Identifier: Apache-2.0 */
/* Small directories held in memory: to keep one, to put it back, to compare two. */
#ifndef PEN_TESTS_LIB_TREE_H
#define PEN_TESTS_LIB_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TreeItem {
    char *path;    /* from the top, "a/b" */
    uint8_t *data; /* NULL: a directory */
    size_t bytes;
} TreeItem;

typedef struct Tree { /* sorted by path; without the top itself */
    TreeItem *items;
    size_t n, cap;
} Tree;

/* All abort when something fails. */
void tree_add(Tree *t, const char *path, const void *data, size_t bytes); /* data NULL: directory */
void tree_sort(Tree *t);
void tree_load(const char *top, Tree *ret);
void tree_store(const Tree *t, const char *top); /* top may exist; what is in it stays */
void tree_copy(const Tree *t, Tree *ret);
void tree_free(Tree *t);
const TreeItem *tree_find(const Tree *t, const char *path); /* NULL: not there */
bool tree_same(const Tree *a, const Tree *b, char *ret_why, size_t cap);

unsigned dir_entries(const char *path); /* with . and .. */
void dir_remove(const char *top);       /* all of it; it may not exist */
void file_store(const char *path, const void *data, size_t bytes);

/* A directory of its own for the test, in memory when there is such a file system; removed at exit.
 */
const char *scratch_dir(void);
/* A path in it; the last 16 are kept. */
__attribute__((format(printf, 1, 2))) const char *scratch(const char *fmt, ...);

#endif
