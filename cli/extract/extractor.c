/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/extractor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "output/messages.h"
#include "output/text.h"

#define LIST_NAME "samples.csv"
#define CLASSES_NAME "samples.classes.csv" /* 'penstock pack samples.csv' reads it */

enum {
    LIST_TEXT = 60000,   /* longer texts get a file, because other programs read the list */
    VIDEO_PART = 4 << 20 /* bytes that are read at once */
};

/* ---- names --------------------------------------------------------------------------------------
 */

static int ends_in(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcasecmp(name + n - m, suffix) == 0;
}

static int suffix_fits(const char *name, const char *suffix)
{
    if (suffix[0] == '\0' || ends_in(name, suffix))
        return 1;
    return strcmp(suffix, ".jpg") == 0 &&
           (ends_in(name, ".jpeg") || ends_in(name, ".jpe") || ends_in(name, ".jfif"));
}

/* Closes an open_memstream. Not 0: out of memory. If glibc's fclose fails to trim the text, it
 * reports no error but leaves no text. */
static int close_text(FILE *to, char *const *text)
{
    int failed = ferror(to);
    return fclose(to) != 0 || failed || !*text;
}

static int fail_name(const CliExtractor *x, PenError *reterr)
{
    PenError why = *reterr;
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        return cli_fail_memory(reterr);
    cli_text_print(to, x->key.data, x->key.bytes);
    if (close_text(to, &text)) {
        free(text);
        return cli_fail_memory(reterr);
    }
    int r = cli_fail(reterr, PEN_E_INVALID,
                     "sample %" PRIu64 ": its key is not a safe file name: %.200s; key: %.200s%s",
                     x->sample, why.message, text, bytes > 200 ? "..." : "");
    reterr->sample = (int64_t)x->sample;
    free(text);
    return r;
}

/* KEY + middle + suffix. The complete name is checked, because a valid key may get too long. */
static int make_name(const CliExtractor *x, const char *middle, const char *suffix,
                     char name[CLI_NAME_CAP], PenError *reterr)
{
    PenError why;
    size_t n = x->key.bytes, used = strlen(middle), more = strlen(suffix);
    if (n + used + more >= CLI_NAME_CAP) {
        cli_fail(&why, PEN_E_INVALID, "it has %zu bytes, at most %d are allowed", n + used + more,
                 CLI_NAME_CAP - 1);
    } else {
        memcpy(name, x->key.data, n);
        memcpy(name + n, middle, used);
        memcpy(name + n + used, suffix, more);
        name[n + used + more] = '\0';
        if (cli_directory_check(name, n + used + more, &why) == PEN_OK)
            return PEN_OK;
    }
    if (reterr)
        *reterr = why;
    return reterr ? fail_name(x, reterr) : PEN_E_INVALID;
}

static int put_file(CliExtractor *x, const char *name, const void *data, size_t bytes,
                    PenError *reterr)
{
    PenError why = {0};
    int r = cli_directory_write(&x->directory, name, data, bytes, &why);
    if (r < 0) {
        cli_fail(reterr, r, "sample %" PRIu64 ": %s", x->sample, why.message);
        return r;
    }
    x->files++;
    x->bytes += bytes;
    return PEN_OK;
}

/* ---- fields -------------------------------------------------------------------------------------
 */

/* Image or frame `frame`; `middle` is between the key and the suffix. Returns the name, "" if there
 * is no image. */
static int extract_image(CliExtractor *x, uint32_t field, uint32_t frame, const char *middle,
                         char name[CLI_NAME_CAP], PenError *reterr)
{
    void *data = NULL;
    size_t bytes;
    const char *suffix;
    PenImage image;
    int r = pen_pack_image(x->pack, x->sample, field, frame, &image, reterr);
    name[0] = '\0';
    if (r < 0 || image.codec == PEN_STORED_NONE)
        return r;
    r = pen_pack_extract(x->pack, x->sample, field, frame, &data, &bytes, &suffix, reterr);
    if (r < 0)
        return r;
    r = make_name(x, middle, "", name, reterr);
    if (r == PEN_OK && !suffix_fits(name, suffix))
        r = make_name(x, middle, suffix, name, reterr);
    if (r == PEN_OK)
        r = put_file(x, name, data, bytes, reterr);
    pen_free(data);
    return r;
}

static int extract_picture(CliExtractor *x, uint32_t field, PenError *reterr)
{
    char name[CLI_NAME_CAP], middle[300] = "";
    if (field != x->main_field)
        snprintf(middle, sizeof middle, ".%s", x->info->fields[field].name);
    int r = extract_image(x, field, 0, middle, name, reterr);
    if (r == PEN_OK)
        cli_csv_text(&x->row, name);
    return r;
}

/* A video may be larger than the memory. */
typedef struct VideoParts {
    const CliExtractor *x;
    uint32_t field;
    uint64_t at, bytes; /* bytes written, and all */
    void *part;
} VideoParts;

static int take_part(void *ctx, const void **ret_data, size_t *ret_bytes, PenError *reterr)
{
    VideoParts *v = ctx;
    uint64_t left = v->bytes - v->at;
    size_t bytes = left < VIDEO_PART ? (size_t)left : VIDEO_PART;
    int r = pen_pack_video_bytes(v->x->pack, v->x->sample, v->field, v->at, v->part, bytes, reterr);
    *ret_data = v->part;
    *ret_bytes = bytes;
    v->at += bytes;
    return r < 0 ? r : bytes != 0;
}

static int write_video(CliExtractor *x, uint32_t field, const PenClipVideo *video, const char *name,
                       PenError *reterr)
{
    VideoParts parts = {x, field, 0, video->bytes, malloc(VIDEO_PART)};
    PenError why = {0};
    if (!parts.part)
        return cli_fail_memory(reterr);
    int r = cli_directory_write_parts(&x->directory, name, take_part, &parts, &why);
    free(parts.part);
    if (r < 0)
        return cli_fail(reterr, r, "sample %" PRIu64 ": %s", x->sample, why.message);
    x->files++;
    x->bytes += video->bytes;
    return PEN_OK;
}

static int extract_video(CliExtractor *x, uint32_t field, const PenClipVideo *video,
                         const char *middle, PenError *reterr)
{
    char name[CLI_NAME_CAP];
    const char *suffix = pen_video_suffix(video->container);
    if (!video->container)
        return cli_fail(reterr, PEN_E_UNSUPPORTED,
                        "sample %" PRIu64 ", field '%s': expected a complete video, found a part "
                        "of a file; extract it from that file with ffmpeg",
                        x->sample, x->info->fields[field].name);
    int r = make_name(x, middle, "", name, reterr);
    if (r == PEN_OK && !suffix_fits(name, suffix))
        r = make_name(x, middle, suffix, name, reterr);
    if (r == PEN_OK)
        r = write_video(x, field, video, name, reterr);
    if (r == PEN_OK)
        cli_csv_text(&x->row, name);
    return r;
}

static int extract_clip(CliExtractor *x, uint32_t field, PenError *reterr)
{
    PenClipVideo video;
    char name[CLI_NAME_CAP], folder[300] = "", middle[340];
    uint32_t n;
    int r = pen_pack_frame_count(x->pack, x->sample, field, &n, reterr);
    if (field != x->main_field)
        snprintf(folder, sizeof folder, ".%s", x->info->fields[field].name);
    if (r == PEN_OK)
        r = pen_pack_video(x->pack, x->sample, field, &video, reterr);
    if (r == 1)
        return extract_video(x, field, &video, folder, reterr);
    for (uint32_t i = 0; r == PEN_OK && i < n; i++) {
        snprintf(middle, sizeof middle, "%s/%05" PRIu32, folder, i + 1);
        r = extract_image(x, field, i, middle, name, reterr);
    }
    if (r == PEN_OK)
        r = make_name(x, folder, "", name, reterr);
    if (r == PEN_OK)
        cli_csv_text(&x->row, name);
    return r;
}

static int extract_numbers(CliExtractor *x, uint32_t field, PenError *reterr)
{
    const PenField *f = &x->info->fields[field];
    char buf[32], *cell = NULL;
    size_t bytes = 0;
    int r = cli_value_read(x->pack, x->sample, field, &x->value, reterr);
    if (r < 0)
        return r;
    FILE *to = open_memstream(&cell, &bytes);
    if (!to)
        return cli_fail_memory(reterr);
    for (uint64_t i = 0; i < cli_value_numbers(f, &x->value); i++)
        fprintf(to, "%s%s", i > 0 ? " " : "", cli_number_text(f, &x->value, i, buf));
    int failed = close_text(to, &cell);
    if (!failed && x->info->class_field == (int32_t)field) {
        long long label = strtoll(cell, NULL, 10);
        x->unnamed = x->unnamed || label < 0 || label >= x->info->n_classes;
    }
    if (!failed)
        cli_csv_cell(&x->row, cell, bytes);
    free(cell);
    return failed ? cli_fail_memory(reterr) : PEN_OK;
}

static int extract_bytes(CliExtractor *x, uint32_t field, PenError *reterr)
{
    const PenField *f = &x->info->fields[field];
    char name[CLI_NAME_CAP], middle[300];
    const char *suffix = f->type == PEN_TYPE_JSON   ? ".json"
                         : f->type == PEN_TYPE_TEXT ? ".txt"
                                                    : ".bin";
    int r = cli_value_read(x->pack, x->sample, field, &x->value, reterr);
    if (r < 0)
        return r;
    const CliBuffer *v = &x->value;
    int32_t missing = 0;
    r = pen_pack_missing(x->pack, x->sample, field, &missing, reterr);
    if (r < 0)
        return r;
    int in_list = f->type == PEN_TYPE_TEXT && v->bytes <= LIST_TEXT &&
                  cli_utf8_valid(v->data, v->bytes) && !memchr(v->data, 0, v->bytes);
    if (f->type == PEN_TYPE_TEXT)
        cli_csv_cell(&x->row, v->data, in_list ? v->bytes : 0);
    if (in_list || missing) /* a list cannot mark missing values: the cell is empty */
        return PEN_OK;
    snprintf(middle, sizeof middle, ".%s", f->name);
    r = make_name(x, middle, ends_in(middle, suffix) ? "" : suffix, name, reterr);
    return r < 0 ? r : put_file(x, name, v->data, v->bytes, reterr);
}

static int extract_field(CliExtractor *x, uint32_t field, PenError *reterr)
{
    const PenField *f = &x->info->fields[field];
    if (f->type == PEN_TYPE_IMAGE)
        return extract_picture(x, field, reterr);
    if (f->type == PEN_TYPE_CLIP)
        return extract_clip(x, field, reterr);
    return cli_field_is_numeric(f) ? extract_numbers(x, field, reterr)
                                   : extract_bytes(x, field, reterr);
}

/* ---- samples ------------------------------------------------------------------------------------
 */

/* Whether it has a column in the list. The main field is the first column, "path". */
static int is_listed(const CliExtractor *x, uint32_t field)
{
    int32_t type = x->info->fields[field].type;
    return field != x->main_field && type != PEN_TYPE_BYTES && type != PEN_TYPE_JSON;
}

static int end_row(CliExtractor *x, PenError *reterr)
{
    cli_csv_row(&x->row);
    fflush(x->row.to);
    if (ferror(x->row.to))
        return cli_fail_memory(reterr);
    fwrite(x->row_text, 1, x->row_bytes, x->list);
    return ferror(x->list)
               ? cli_fail_os(reterr, errno, "%s/" LIST_NAME ": cannot write", x->directory.path)
               : PEN_OK;
}

static int put_names(CliExtractor *x, PenError *reterr)
{
    cli_csv_text(&x->row, x->main_field < x->info->n_fields ? "path" : "key");
    for (uint32_t i = 0; i < x->info->n_fields; i++) {
        if (!is_listed(x, i))
            continue;
        /* The name of the class column in a list. */
        cli_csv_text(&x->row,
                     x->info->class_field == (int32_t)i ? "label" : x->info->fields[i].name);
    }
    return end_row(x, reterr);
}

int cli_extractor_sample(CliExtractor *extractor, uint64_t sample, PenError *reterr)
{
    CliExtractor *x = extractor;
    char name[CLI_NAME_CAP];
    x->sample = sample;
    rewind(x->row.to);
    x->row.column = 0;
    int r = cli_value_key(x->pack, sample, &x->key, reterr);
    if (r == PEN_OK)
        r = make_name(x, "", "", name, reterr);
    if (r == PEN_OK && x->main_field < x->info->n_fields)
        r = extract_field(x, x->main_field, reterr);
    else if (r == PEN_OK)
        cli_csv_cell(&x->row, x->key.data, x->key.bytes);
    for (uint32_t i = 0; r == PEN_OK && i < x->info->n_fields; i++)
        if (i != x->main_field)
            r = extract_field(x, i, reterr);
    return r == PEN_OK ? end_row(x, reterr) : r;
}

static uint32_t find_main_field(const PenPackInfo *info)
{
    for (uint32_t i = 0; i < info->n_fields; i++)
        if (info->fields[i].type == PEN_TYPE_IMAGE || info->fields[i].type == PEN_TYPE_CLIP)
            return i;
    return info->n_fields;
}

/* The list contains only the numbers of the classes. This file contains the names of all classes,
 * so that packing the list restores them. It is not written if a label has no name, because 'pack'
 * refuses labels that the file does not name. */
static int write_classes(CliExtractor *x, PenError *reterr)
{
    char *text = NULL, number[16];
    size_t bytes = 0;
    if (x->info->class_field < 0 || x->unnamed)
        return PEN_OK;
    CliCsv csv = {.to = open_memstream(&text, &bytes)};
    if (!csv.to)
        return cli_fail_memory(reterr);
    cli_csv_text(&csv, "label");
    cli_csv_text(&csv, "class");
    cli_csv_row(&csv);
    for (uint32_t i = 0; i < x->info->n_classes; i++) {
        snprintf(number, sizeof number, "%" PRIu32, i);
        cli_csv_text(&csv, number);
        cli_csv_text(&csv, x->info->classes[i]);
        cli_csv_row(&csv);
    }
    int failed = close_text(csv.to, &text);
    int r = failed ? cli_fail_memory(reterr)
                   : cli_directory_write(&x->directory, CLASSES_NAME, text, bytes, reterr);
    free(text);
    return r;
}

int cli_extractor_open(PenPack *pack, const char *dir, CliExtractor *ret, PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(pack);
    int fd;
    *ret = (CliExtractor){
        .pack = pack, .info = info, .directory = {.fd = -1}, .main_field = find_main_field(info)};
    int r = cli_directory_open(dir, &ret->directory, reterr);
    if (r == PEN_OK)
        r = cli_directory_create(&ret->directory, LIST_NAME, &fd, reterr);
    if (r < 0)
        return r;
    ret->list = fdopen(fd, "w");
    if (!ret->list)
        close(fd);
    ret->row.to = open_memstream(&ret->row_text, &ret->row_bytes);
    if (!ret->list || !ret->row.to)
        return cli_fail_memory(reterr);
    return put_names(ret, reterr);
}

int cli_extractor_close(CliExtractor *extractor, PenError *reterr)
{
    int r = PEN_OK;
    if (extractor->row.to)
        fclose(extractor->row.to);
    if (extractor->list && fclose(extractor->list) != 0)
        r = cli_fail_os(reterr, errno, "%s/" LIST_NAME ": cannot write", extractor->directory.path);
    if (extractor->list && r == PEN_OK)
        r = write_classes(extractor, reterr);
    free(extractor->row_text);
    cli_directory_close(&extractor->directory);
    cli_buffer_fini(&extractor->key);
    cli_buffer_fini(&extractor->value);
    return r;
}
