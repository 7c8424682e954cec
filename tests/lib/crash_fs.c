/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/crash_fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "lib/sweep.h"

enum { SECTOR = 512, MAX_NODES = 512, MAX_CHANGES = 2048, PATH_BYTES = 512 };

typedef struct Node {
    bool is_dir;
    uint8_t *sure; /* of a file: its bytes at the last sync */
    size_t sure_bytes;
    size_t first_pending; /* writes of the log from here on are not sure */
    bool cut;             /* made anew over an existing file: the cut itself is not sure */
} Node;

/* One name in one directory: to `node`, or gone when that is -1. */
typedef struct Change {
    int dir, node;
    char name[64];
    bool sure;
    bool chosen;
    int needs; /* another change that has to be there for this one; -1 none */
} Change;

typedef struct Disk {
    const Log *log;
    const char *top;
    PenRng *rng;
    Node nodes[MAX_NODES];
    int n_nodes;
    Change changes[MAX_CHANGES];
    int n_changes;
    int of_file[MAX_NODES]; /* node of a file number of the log */
} Disk;

static int new_node(Disk *d, bool is_dir)
{
    MUST(d->n_nodes < MAX_NODES);
    d->nodes[d->n_nodes] = (Node){.is_dir = is_dir};
    return d->n_nodes++;
}

/* What a name means to the programs that run: the last change counts. */
static int look_up(const Disk *d, int dir, const char *name)
{
    for (int i = d->n_changes - 1; i >= 0; i--)
        if (d->changes[i].dir == dir && strcmp(d->changes[i].name, name) == 0)
            return d->changes[i].node;
    return -1;
}

static int change(Disk *d, int dir, const char *name, int node, bool sure)
{
    MUST(d->n_changes < MAX_CHANGES && strlen(name) < sizeof d->changes[0].name);
    Change *c = &d->changes[d->n_changes];
    *c = (Change){.dir = dir, .node = node, .sure = sure, .needs = -1};
    memcpy(c->name, name, strlen(name));
    return d->n_changes++;
}

/* The directory that holds `path` (from the top), and the last part of it. */
static int walk(const Disk *d, const char *path, const char **ret_name)
{
    int dir = 0;
    const char *slash;
    while ((slash = strchr(path, '/'))) {
        char part[PATH_BYTES];
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        dir = look_up(d, dir, part);
        MUST(dir >= 0 && d->nodes[dir].is_dir);
        path = slash + 1;
    }
    *ret_name = path;
    return dir;
}

static const char *below_top(const Disk *d, const char *path)
{
    size_t n = strlen(d->top);
    MUST(strncmp(path, d->top, n) == 0 && (path[n] == '/' || !path[n]));
    return path[n] ? path + n + 1 : "";
}

static void put_tree(Disk *d, const Tree *t)
{
    new_node(d, true);
    for (size_t i = 0; i < t->n; i++) {
        const char *name;
        const TreeItem *item = &t->items[i];
        int dir = walk(d, item->path, &name);
        int node = new_node(d, !item->data);
        change(d, dir, name, node, true);
        if (item->data) {
            d->nodes[node].sure = malloc(item->bytes + 1);
            MUST(d->nodes[node].sure);
            memcpy(d->nodes[node].sure, item->data, item->bytes);
            d->nodes[node].sure_bytes = item->bytes;
        }
    }
}

/* ---- running the log ------------------------------------------------------------------------- */

/* The bytes of a file with the given pending writes applied by `keep`. */
static void apply_write(const LogOp *op, uint8_t **data, size_t *bytes, PenRng *rng)
{
    size_t end = (size_t)op->offset + op->bytes;
    size_t at = (size_t)op->offset;
    while (at < end) {
        size_t next = PEN_MIN((at / SECTOR + 1) * SECTOR, end);
        if (!rng || pen__rng_below(rng, 2)) {
            if (next > *bytes) {
                *data = realloc(*data, next);
                MUST(*data);
                memset(*data + *bytes, 0, next - *bytes);
                *bytes = next;
            }
            memcpy(*data + at, op->data + (at - op->offset), next - at);
        }
        at = next;
    }
}

static void sync_file(Disk *d, int node, size_t now)
{
    Node *f = &d->nodes[node];
    if (f->cut)
        f->sure_bytes = 0;
    f->cut = false;
    for (size_t i = f->first_pending; i < now; i++)
        if (d->log->ops[i].kind == LOG_WRITE && d->of_file[d->log->ops[i].file] == node)
            apply_write(&d->log->ops[i], &f->sure, &f->sure_bytes, NULL);
    f->first_pending = now;
}

static void sync_dir(Disk *d, int dir)
{
    for (int i = 0; i < d->n_changes; i++) {
        Change *c = &d->changes[i];
        if (c->dir == dir)
            c->sure = true;
    }
}

static void create(Disk *d, const LogOp *op, size_t now)
{
    const char *name;
    int dir = walk(d, below_top(d, op->path), &name);
    int node = look_up(d, dir, name);
    if (node < 0) {
        node = new_node(d, false);
        change(d, dir, name, node, false);
    } else {
        d->nodes[node].cut = true;
    }
    d->nodes[node].first_pending = now;
    MUST(op->file < MAX_NODES);
    d->of_file[op->file] = node;
}

static void rename_node(Disk *d, const LogOp *op)
{
    const char *from, *to;
    int from_dir = walk(d, below_top(d, op->path), &from);
    int to_dir = walk(d, below_top(d, op->to), &to);
    int node = look_up(d, from_dir, from);
    MUST(node >= 0);
    int added = change(d, to_dir, to, node, false);
    int gone = change(d, from_dir, from, -1, false);
    d->changes[gone].needs = added;
}

static void run_op(Disk *d, size_t i)
{
    const LogOp *op = &d->log->ops[i];
    const char *name;
    const char *path = below_top(d, op->path);
    int dir;
    switch (op->kind) {
    case LOG_CREATE:
        create(d, op, i);
        break;
    case LOG_WRITE:
        break; /* looked up when it counts */
    case LOG_SYNC:
        sync_file(d, d->of_file[op->file], i);
        break;
    case LOG_SYNC_DIR:
        dir = walk(d, path, &name);
        sync_dir(d, *path ? look_up(d, dir, name) : 0);
        break;
    case LOG_RENAME:
        rename_node(d, op);
        break;
    case LOG_MKDIR:
        dir = walk(d, path, &name);
        change(d, dir, name, new_node(d, true), false);
        break;
    default:
        dir = walk(d, path, &name);
        change(d, dir, name, -1, false);
    }
}

/* ---- choosing -------------------------------------------------------------------------------- */

enum { KEEP_NONE, KEEP_ALL, KEEP_SOME };

static int some_way(PenRng *rng)
{
    static const int ways[] = {KEEP_NONE, KEEP_ALL, KEEP_SOME, KEEP_SOME};
    return rng ? ways[pen__rng_below(rng, PEN_LEN(ways))] : KEEP_ALL;
}

static void choose_changes(Disk *d)
{
    int way = some_way(d->rng);
    for (int i = 0; i < d->n_changes; i++) {
        Change *c = &d->changes[i];
        c->chosen = c->sure || way == KEEP_ALL || (way == KEEP_SOME && pen__rng_below(d->rng, 2));
    }
    for (int i = 0; i < d->n_changes; i++) {
        Change *c = &d->changes[i];
        if (c->chosen && c->needs >= 0 && c->sure)
            d->changes[c->needs].chosen = true;
        else if (c->chosen && c->needs >= 0 && !d->changes[c->needs].chosen)
            c->chosen = false;
    }
}

static int chosen_node(const Disk *d, int dir, const char *name)
{
    for (int i = d->n_changes - 1; i >= 0; i--) {
        const Change *c = &d->changes[i];
        if (c->chosen && c->dir == dir && strcmp(c->name, name) == 0)
            return c->node;
    }
    return -1;
}

static void put_file(Disk *d, int node, size_t n, const char *path, Tree *ret)
{
    Node *f = &d->nodes[node];
    int way = some_way(d->rng);
    bool cut = f->cut && (way == KEEP_ALL || (way == KEEP_SOME && pen__rng_below(d->rng, 2)));
    size_t bytes = cut ? 0 : f->sure_bytes;
    uint8_t *data = malloc(f->sure_bytes + 1);
    MUST(data);
    if (bytes)
        memcpy(data, f->sure, bytes);
    size_t full = bytes;
    for (size_t i = f->first_pending; i < n; i++) {
        const LogOp *op = &d->log->ops[i];
        if (op->kind != LOG_WRITE || d->of_file[op->file] != node)
            continue;
        full = PEN_MAX(full, (size_t)op->offset + op->bytes);
        if (way != KEEP_NONE)
            apply_write(op, &data, &bytes, way == KEEP_ALL ? NULL : d->rng);
    }
    if (d->rng && bytes < full &&
        pen__rng_below(d->rng, 2)) { /* the size came, the bytes did not */
        data = realloc(data, full);
        MUST(data);
        memset(data + bytes, 0, full - bytes);
        bytes = full;
    }
    tree_add(ret, path, data, bytes);
    free(data);
}

static void put_dir(Disk *d, int dir, size_t n, const char *path, Tree *ret)
{
    for (int i = 0; i < d->n_changes; i++) {
        const Change *c = &d->changes[i];
        char inner[PATH_BYTES];
        bool first = true; /* each name once */
        for (int k = 0; k < i && first; k++)
            first = d->changes[k].dir != dir || strcmp(d->changes[k].name, c->name) != 0;
        if (c->dir != dir || !first)
            continue;
        int node = chosen_node(d, dir, c->name);
        if (node < 0)
            continue;
        snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "/" : "", c->name);
        if (d->nodes[node].is_dir) {
            tree_add(ret, inner, NULL, 0);
            put_dir(d, node, n, inner, ret);
        } else {
            put_file(d, node, n, inner, ret);
        }
    }
}

void crash_state(const Tree *before, const Log *log, size_t n, const char *top, PenRng *rng,
                 Tree *ret)
{
    static Disk disk; /* large */
    Disk *d = &disk;
    memset(d, 0, sizeof *d);
    d->log = log;
    d->top = top;
    d->rng = rng;
    *ret = (Tree){0};
    put_tree(d, before);
    for (size_t i = 0; i < n; i++)
        run_op(d, i);
    choose_changes(d);
    put_dir(d, 0, n, "", ret);
    tree_sort(ret);
    for (int i = 0; i < d->n_nodes; i++)
        free(d->nodes[i].sure);
}
