/* SPDX-License-Identifier: Apache-2.0 */
/* What the ingest tests share: folders and tars made for the test, and a system interface that
 * fails on demand.
 */
#ifndef PEN_TESTS_UNIT_INGEST_HELP_H
#define PEN_TESTS_UNIT_INGEST_HELP_H

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "ingest/source/input.h"
#include "test.h"

#define HELP __attribute__((unused)) static

/* ---- files ----------------------------------------------------------------------------------- */

static char help_root[256];

HELP void help_begin(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(help_root, sizeof help_root, "%s/penstock-test-XXXXXX", tmp ? tmp : "/tmp");
    CHECK(mkdtemp(help_root));
}

static int help_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

HELP void help_end(void)
{
    nftw(help_root, help_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of `name` in the test's folder; the last 8 are kept. */
HELP const char *at(const char *name)
{
    static char paths[8][4400];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", help_root, name);
    return path;
}

/* Writes a file and the folders it lies in. */
HELP void help_file(const char *name, const void *data, size_t bytes)
{
    char path[4400];
    snprintf(path, sizeof path, "%s", at(name));
    for (char *p = path + strlen(help_root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(path, 0777);
    }
    FILE *f = fopen(path, "wb");
    CHECK(f);
    CHECK_INT(fwrite(data, 1, bytes, f), bytes);
    CHECK_INT(fclose(f), 0);
}

HELP void help_text(const char *name, const char *text)
{
    help_file(name, text, strlen(text));
}

/* ---- tars ------------------------------------------------------------------------------------ */

typedef struct HelpTar {
    struct archive *archive;
    uint8_t *data;
    size_t bytes, cap;
} HelpTar;

HELP void help_tar_begin(HelpTar *t, int (*format)(struct archive *),
                         int (*filter)(struct archive *))
{
    t->cap = 8 << 20;
    t->data = malloc(t->cap);
    t->bytes = 0;
    t->archive = archive_write_new();
    format(t->archive);
    if (filter)
        filter(t->archive);
    archive_write_set_bytes_in_last_block(t->archive, 1);
    CHECK_INT(archive_write_open_memory(t->archive, t->data, t->cap, &t->bytes), ARCHIVE_OK);
}

HELP void help_tar_member(HelpTar *t, const char *name, unsigned type, const char *link,
                          const void *data, size_t bytes)
{
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, name);
    archive_entry_set_filetype(e, type);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_size(e, (la_int64_t)bytes);
    if (link && type == AE_IFLNK)
        archive_entry_set_symlink(e, link);
    else if (link)
        archive_entry_set_hardlink(e, link);
    int r = archive_write_header(t->archive, e);
    la_ssize_t n = bytes ? archive_write_data(t->archive, data, bytes) : 0;
    archive_entry_free(e);
    CHECK(r >= ARCHIVE_WARN);
    CHECK_INT(n, bytes);
}

HELP void help_tar_text(HelpTar *t, const char *name, const char *text)
{
    help_tar_member(t, name, AE_IFREG, NULL, text, strlen(text));
}

/* Ends the tar; with a name it is written there and freed. */
HELP void help_tar_end(HelpTar *t, const char *name)
{
    CHECK_INT(archive_write_close(t->archive), ARCHIVE_OK);
    archive_write_free(t->archive);
    t->archive = NULL;
    if (name) {
        help_file(name, t->data, t->bytes);
        free(t->data);
        t->data = NULL;
    }
}

/* ---- the system interface
 * -------------------------------------------------------------------------------- */

/* The n-th call that can fail does, once or from then on. Memory and files are counted. */
static struct {
    uint64_t calls, fail_at;
    bool for_ever;
    bool failed;
    int64_t memory, files;
} help_fault;

static bool fault(void)
{
    uint64_t n = ++help_fault.calls;
    bool hit = n == help_fault.fail_at || (help_fault.for_ever && n > help_fault.fail_at);
    help_fault.failed = help_fault.failed || hit;
    return hit;
}

static void *fault_alloc(size_t bytes)
{
    void *p = fault() ? NULL : malloc(bytes);
    help_fault.memory += p != NULL;
    return p;
}

static void *fault_resize(void *old, size_t bytes)
{
    void *p = fault() ? NULL : realloc(old, bytes);
    help_fault.memory += p && !old;
    return p;
}

static void fault_release(void *p)
{
    help_fault.memory--;
    free(p);
}

static int fault_open(const char *path, int how)
{
    int fd = fault() ? -EIO : pen__sys_real.open(path, how);
    help_fault.files += fd >= 0;
    return fd;
}

static int fault_open_at(int dir, const char *name, int how)
{
    int fd = fault() ? -EIO : pen__sys_real.open_at(dir, name, how);
    help_fault.files += fd >= 0;
    return fd;
}

static int fault_close(int fd)
{
    help_fault.files--;
    int r = pen__sys_real.close(fd);
    return fault() ? -EIO : r;
}

static int64_t fault_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    return fault() ? -EIO : pen__sys_real.pread(fd, buf, bytes, offset);
}

static int64_t fault_pwritev(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    return fault() ? -ENOSPC : pen__sys_real.pwritev(fd, iov, n, offset);
}

static int fault_fsync(int fd)
{
    return fault() ? -EIO : pen__sys_real.fsync(fd);
}

static int fault_stat_fd(int fd, PenFileStat *ret)
{
    return fault() ? -EIO : pen__sys_real.stat_fd(fd, ret);
}

static int fault_stat_path(const char *path, PenFileStat *ret)
{
    return fault() ? -EIO : pen__sys_real.stat_path(path, ret);
}

static int fault_stat_at(int dir, const char *name, PenFileStat *ret)
{
    return fault() ? -EIO : pen__sys_real.stat_at(dir, name, ret);
}

static int fault_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    return fault() ? -EIO : pen__sys_real.rename(from_dir, from, to_dir, to);
}

static int fault_list(const char *path, int (*each)(void *ctx, const char *name), void *ctx)
{
    return fault() ? -EIO : pen__sys_real.list(path, each, ctx);
}

static int fault_list_fd(int dir, int (*each)(void *ctx, const char *name), void *ctx)
{
    return fault() ? -EIO : pen__sys_real.list_fd(dir, each, ctx);
}

/* Runs `body` again and again, with the first call failing, then the second, until none is left,
 * and all of it twice: the call fails once; it and all after it fail. `body` returns what the call
 * under test did. *ret_points: at how many calls it failed. */
HELP void help_sweep(int (*body)(PenError *), int *ret_points)
{
    static PenSys sys;
    sys = pen__sys_real;
    sys.alloc = fault_alloc;
    sys.resize = fault_resize;
    sys.release = fault_release;
    sys.open = fault_open;
    sys.open_at = fault_open_at;
    sys.close = fault_close;
    sys.pread = fault_pread;
    sys.pwritev = fault_pwritev;
    sys.fsync = fault_fsync;
    sys.stat_fd = fault_stat_fd;
    sys.stat_path = fault_stat_path;
    sys.stat_at = fault_stat_at;
    sys.rename = fault_rename;
    sys.list = fault_list;
    sys.list_fd = fault_list_fd;
    *ret_points = 0;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            memset(&help_fault, 0, sizeof help_fault);
            help_fault.fail_at = n;
            help_fault.for_ever = for_ever;
            PenError err = {0};
            pen__sys = &sys;
            int r = body(&err);
            pen__sys = &pen__sys_real;
            failed = help_fault.failed;
            CHECK_INT(help_fault.memory, 0);
            CHECK_INT(help_fault.files, 0);
            if (r < 0) {
                CHECK_INT(err.status, r);
                CHECK(err.message[0] && err.where[0]);
                CHECK(failed);
            }
            *ret_points += failed;
        }
    }
}

/* ---- settings -------------------------------------------------------------------------------- */

HELP PenIngestSettings help_settings(const char *const *sources, uint32_t n)
{
    return (PenIngestSettings){.struct_size = sizeof(PenIngestSettings),
                               .n_sources = n,
                               .sources = sources,
                               .fraction = 1};
}

/* Adds to a text that has room for `cap` bytes. */
__attribute__((unused, format(printf, 3, 4))) static void help_add(char *text, size_t cap,
                                                                   const char *fmt, ...)
{
    size_t used = strlen(text);
    __builtin_va_list args;
    __builtin_va_start(args, fmt);
    vsnprintf(text + used, cap - used, fmt, args);
    __builtin_va_end(args);
}

/* For checks of an input's texts, which have no NUL. */
HELP bool help_is(const void *found, size_t bytes, const char *expected)
{
    return bytes == strlen(expected) && memcmp(found, expected, bytes) == 0;
}

#define CHECK_FAILS(call, expected, text)                                                          \
    do {                                                                                           \
        PenError err = {0};                                                                        \
        int test__r = (call);                                                                      \
        if (test__r != (expected) || err.status != (expected) || !strstr(err.message, text)) {     \
            test__fail(__FILE__, __LINE__, "%s: found %d \"%s\", expected %d \"%s\"", #call,       \
                       test__r, err.message, (int)(expected), text);                               \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define CHECK_GOES(call)                                                                           \
    do {                                                                                           \
        PenError err = {0};                                                                        \
        int test__r = (call);                                                                      \
        if (test__r != 0) {                                                                        \
            test__fail(__FILE__, __LINE__, "%s: found %d \"%s\"", #call, test__r, err.message);    \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#endif
