/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_fs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/sys.h"
#include "help.h"

typedef struct Node {
    char *path; /* NULL once it has been removed */
    uint8_t *data;
    size_t bytes;
    bool is_dir;
    int opens;
} Node;

enum { MAX_NODES = 1024, MAX_OPEN = 256 };

static Node *nodes[MAX_NODES];
static Node *open_nodes[MAX_OPEN];
static size_t at_once;

/* "/a" and "a" are the same place. */
static const char *from_top(const char *path)
{
    return path[0] == '/' && path[1] ? path + 1 : path;
}

static Node *find(const char *path)
{
    const char *wanted = from_top(path);
    size_t n = strlen(wanted);
    while (n > 1 && wanted[n - 1] == '/')
        n--;
    for (size_t i = 0; i < MAX_NODES; i++) {
        const char *has = nodes[i] && nodes[i]->path ? from_top(nodes[i]->path) : NULL;
        if (has && strlen(has) == n && memcmp(has, wanted, n) == 0)
            return nodes[i];
    }
    return NULL;
}

static bool has_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return true;
    char *parent = strndup(path, (size_t)(slash - path));
    const Node *node = find(parent);
    free(parent);
    return node && node->is_dir;
}

static void drop(Node *node)
{
    free(node->path);
    node->path = NULL;
    if (node->opens)
        return;
    for (size_t i = 0; i < MAX_NODES; i++)
        if (nodes[i] == node)
            nodes[i] = NULL;
    free(node->data);
    free(node);
}

static Node *add(const char *path, bool is_dir)
{
    size_t i = 0;
    while (i < MAX_NODES && nodes[i])
        i++;
    REQUIRE(i < MAX_NODES);
    nodes[i] = calloc(1, sizeof *nodes[i]);
    nodes[i]->path = strdup(path);
    nodes[i]->is_dir = is_dir;
    return nodes[i];
}

/* ---- the system interface
 * -------------------------------------------------------------------------------- */

static int fs_open(const char *path, int how)
{
    Node *node = find(path);
    if (!node && (how != PEN_OPEN_CREATE || !has_parent(path)))
        return -ENOENT;
    if (node && how == PEN_OPEN_CREATE)
        return -EEXIST;
    if (!node)
        node = add(path, false);
    if ((how == PEN_OPEN_DIR || how == PEN_OPEN_INNER_DIR || how == PEN_OPEN_PATH_DIR) &&
        !node->is_dir)
        return -ENOTDIR;
    for (int fd = 0; fd < MAX_OPEN; fd++)
        if (!open_nodes[fd]) {
            open_nodes[fd] = node;
            node->opens++;
            return fd;
        }
    return -EMFILE;
}

static Node *of(int fd)
{
    REQUIRE(fd >= 0 && fd < MAX_OPEN && open_nodes[fd]);
    return open_nodes[fd];
}

/* The path of a name in an open directory: the same text always, until it is asked for twice. */
static const char *path_at(int dir, const char *name)
{
    static char paths[2][4096];
    static int turn;
    char *path = paths[turn ^= 1];
    const char *top = dir == PEN_AT_CWD ? "." : of(dir)->path;
    int n = strcmp(top, ".") == 0 ? snprintf(path, sizeof paths[0], "%s", name)
                                  : snprintf(path, sizeof paths[0], "%s/%s", top, name);
    REQUIRE(n >= 0 && (size_t)n < sizeof paths[0]);
    return path;
}

static int fs_open_at(int dir, const char *name, int how)
{
    return fs_open(path_at(dir, name), how);
}

static int fs_close(int fd)
{
    Node *node = of(fd);
    open_nodes[fd] = NULL;
    if (!--node->opens && !node->path)
        drop(node);
    return 0;
}

static int64_t fs_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    const Node *node = of(fd);
    REQUIRE(bytes);
    if (node->is_dir)
        return -EISDIR;
    size_t left = offset < node->bytes ? node->bytes - (size_t)offset : 0;
    size_t n = PEN_MIN(bytes, left);
    if (at_once)
        n = PEN_MIN(n, at_once);
    if (n)
        memcpy(buf, node->data + offset, n);
    return (int64_t)n;
}

static int64_t fs_preadv(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    int64_t all = 0;
    for (int i = 0; i < n; i++) {
        int64_t got = fs_pread(fd, iov[i].iov_base, iov[i].iov_len, offset + (uint64_t)all);
        if (got < 0)
            return got;
        all += got;
        if ((size_t)got < iov[i].iov_len)
            break;
    }
    return all;
}

static int64_t fs_pwritev(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    Node *node = of(fd);
    size_t done = 0;
    REQUIRE(offset == node->bytes); /* all writing is appending */
    for (int i = 0; i < n && (!at_once || done < at_once); i++) {
        size_t bytes = at_once ? PEN_MIN(iov[i].iov_len, at_once - done) : iov[i].iov_len;
        if (!bytes)
            continue;
        require_written(iov[i].iov_base, bytes);
        node->data = realloc(node->data, node->bytes + bytes);
        REQUIRE(node->data);
        memcpy(node->data + node->bytes, iov[i].iov_base, bytes);
        node->bytes += bytes;
        done += bytes;
    }
    return (int64_t)done;
}

static int fs_fsync(int fd)
{
    (void)of(fd);
    return 0;
}

static void stat_out(const Node *node, PenFileStat *ret)
{
    *ret = (PenFileStat){.bytes = node->bytes,
                         .disk_bytes = (node->bytes + 511) / 512 * 512,
                         .is_dir = node->is_dir,
                         .is_file = !node->is_dir,
                         .what = node->is_dir ? "a directory" : "a file"};
}

static int fs_stat_fd(int fd, PenFileStat *ret)
{
    stat_out(of(fd), ret);
    return 0;
}

static int fs_stat_path(const char *path, PenFileStat *ret)
{
    const Node *node = find(path);
    if (!node)
        return -ENOENT;
    stat_out(node, ret);
    return 0;
}

static int fs_stat_at(int dir, const char *name, PenFileStat *ret)
{
    return fs_stat_path(path_at(dir, name), ret);
}

/* Names lie in "/", whose other name is "."; there are no links. */
static int fs_real_path(const char *path, char *ret, size_t cap)
{
    if (!find(path))
        return -ENOENT;
    int n = snprintf(ret, cap, "%s%s", path[0] == '/' ? "" : "/", strcmp(path, ".") ? path : "");
    return (size_t)n < cap ? n : -ERANGE;
}

static int fs_rename(int from_dir, const char *from_name, int to_dir, const char *to_name)
{
    const char *from = path_at(from_dir, from_name), *to = path_at(to_dir, to_name);
    Node *node = find(from);
    Node *old = find(to);
    if (!node || !has_parent(to))
        return -ENOENT;
    if (old)
        drop(old);
    free(node->path);
    node->path = strdup(to);
    return 0;
}

static int fs_mkdir(int dir, const char *name)
{
    const char *path = path_at(dir, name);
    if (find(path))
        return -EEXIST;
    if (!has_parent(path))
        return -ENOENT;
    add(path, true);
    return 0;
}

static int fs_unlink(int dir, const char *name)
{
    const char *path = path_at(dir, name);
    Node *node = find(path);
    if (!node)
        return -ENOENT;
    if (node->is_dir)
        return -EISDIR;
    drop(node);
    return 0;
}

/* The name of a node that lies in the folder `path` itself. */
static const char *name_in(const Node *node, const char *path)
{
    const char *folder = from_top(path);
    size_t n = strlen(folder);
    const char *has = node && node->path ? from_top(node->path) : "";
    if (strncmp(has, folder, n) != 0 || has[n] != '/' || strchr(has + n + 1, '/'))
        return NULL;
    return has + n + 1;
}

static int fs_list(const char *path, int (*each)(void *ctx, const char *name), void *ctx)
{
    const Node *node = find(path);
    int r = 0;
    if (!node)
        return -ENOENT;
    if (!node->is_dir)
        return -ENOTDIR;
    for (size_t i = 0; i < MAX_NODES && !r; i++)
        if (name_in(nodes[i], path))
            r = each(ctx, name_in(nodes[i], path));
    return r;
}

static int fs_list_fd(int dir, int (*each)(void *ctx, const char *name), void *ctx)
{
    return fs_list(of(dir)->path, each, ctx);
}

static int fs_rmdir(int dir, const char *name)
{
    const char *path = path_at(dir, name);
    Node *node = find(path);
    if (!node)
        return -ENOENT;
    for (size_t i = 0; i < MAX_NODES; i++)
        if (name_in(nodes[i], path))
            return -ENOTEMPTY;
    drop(node);
    return 0;
}

static int fs_lock(int fd, int exclusive)
{
    (void)exclusive;
    return of(fd)->is_dir ? 0 : -EBADF;
}

/* ---- for the targets ------------------------------------------------------------------------- */

static const PenSys *before;

void fs_begin(size_t piece)
{
    static PenSys sys;
    before = pen__sys;
    sys = *before;
    sys.open = fs_open;
    sys.open_at = fs_open_at;
    sys.close = fs_close;
    sys.pread = fs_pread;
    sys.preadv = fs_preadv;
    sys.pwritev = fs_pwritev;
    sys.fsync = fs_fsync;
    sys.stat_fd = fs_stat_fd;
    sys.stat_path = fs_stat_path;
    sys.stat_at = fs_stat_at;
    sys.real_path = fs_real_path;
    sys.rename = fs_rename;
    sys.mkdir = fs_mkdir;
    sys.unlink = fs_unlink;
    sys.rmdir = fs_rmdir;
    sys.lock = fs_lock;
    sys.list = fs_list;
    sys.list_fd = fs_list_fd;
    pen__sys = &sys;
    at_once = piece;
    add("/", true);
    add(".", true);
}

void fs_end(void)
{
    for (int fd = 0; fd < MAX_OPEN; fd++)
        REQUIRE(!open_nodes[fd]);
    for (size_t i = 0; i < MAX_NODES; i++)
        if (nodes[i])
            drop(nodes[i]);
    pen__sys = before;
}

void fs_folder(const char *path)
{
    add(path, true);
}

void fs_file(const char *path, const void *data, size_t bytes)
{
    Node *node = add(path, false);
    node->data = copy_of(data, bytes);
    node->bytes = bytes;
}

size_t fs_count(void)
{
    size_t n = 0;
    for (size_t i = 0; i < MAX_NODES; i++)
        n += nodes[i] && !nodes[i]->is_dir;
    return n;
}
