/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest_help.h"

/* ---- files ----------------------------------------------------------------------------------- */

char help_root[256];

void help_begin(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(help_root, sizeof help_root, "%s/penstock-test-XXXXXX", tmp ? tmp : "/tmp");
    CHECK(mkdtemp(help_root));
}

int help_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void help_end(void)
{
    nftw(help_root, help_remove, 16, FTW_DEPTH | FTW_PHYS);
}

const char *at(const char *name)
{
    static char paths[8][4400];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", help_root, name);
    return path;
}

void help_file(const char *name, const void *data, size_t bytes)
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

void help_text(const char *name, const char *text)
{
    help_file(name, text, strlen(text));
}

/* ---- tars ------------------------------------------------------------------------------------ */

void help_tar_begin(HelpTar *t, int (*format)(struct archive *), int (*filter)(struct archive *))
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

void help_tar_member(HelpTar *t, const char *name, unsigned type, const char *link,
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

void help_tar_text(HelpTar *t, const char *name, const char *text)
{
    help_tar_member(t, name, AE_IFREG, NULL, text, strlen(text));
}

void help_tar_end(HelpTar *t, const char *name)
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

/* ---- settings -------------------------------------------------------------------------------- */

PenIngestSettings help_settings(const char *const *sources, uint32_t n)
{
    return (PenIngestSettings){.n_sources = n, .sources = sources, .fraction = 1};
}

void help_add(char *text, size_t cap, const char *fmt, ...)
{
    size_t used = strlen(text);
    __builtin_va_list args;
    __builtin_va_start(args, fmt);
    vsnprintf(text + used, cap - used, fmt, args);
    __builtin_va_end(args);
}

bool help_is(const void *found, size_t bytes, const char *expected)
{
    return bytes == strlen(expected) && memcmp(found, expected, bytes) == 0;
}
