/* SPDX-License-Identifier: Apache-2.0 */
#include "output/samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "output/messages.h"
#include "output/report.h"
#include "output/sample_values.h"

typedef struct Lister {
    PenPack *pack;
    const PenPackInfo *info;
    uint64_t sample;
    CliReport report;
    CliBuffer value;
    int has_names; /* the first line is printed */
} Lister;

enum { TEXT_SHOWN = 65536 }; /* longer ones are not printed in a list */

static void add_image(CliReport *report, const PenImage *image)
{
    cli_report_number(report, "width", image->width);
    cli_report_number(report, "height", image->height);
    cli_report_text(report, "codec", pen_stored_name(image->codec));
    cli_report_text(report, "how", pen_how_name(image->how));
}

static int list_image(Lister *l, uint32_t field, PenError *reterr)
{
    PenImage image;
    int r = pen_pack_image(l->pack, l->sample, field, 0, &image, reterr);
    if (r < 0)
        return r;
    add_image(&l->report, &image);
    cli_report_number(&l->report, "bytes", image.bytes);
    return PEN_OK;
}

static void add_video(CliReport *report, const PenClipVideo *video)
{
    cli_report_number(report, "frames", video->n_frames);
    cli_report_number(report, "width", video->width);
    cli_report_number(report, "height", video->height);
    cli_report_text(report, "codec", pen_video_codec_name(video->codec));
    cli_report_text(report, "how", "kept");
    cli_report_number(report, "bytes", video->bytes);
}

static int list_clip(Lister *l, uint32_t field, PenError *reterr)
{
    PenImage image = {0};
    uint32_t frames;
    size_t bytes;
    PenClipVideo video;
    int r = pen_pack_video(l->pack, l->sample, field, &video, reterr);
    if (r == 1) {
        add_video(&l->report, &video);
        return PEN_OK;
    }
    if (r == PEN_OK)
        r = pen_pack_frame_count(l->pack, l->sample, field, &frames, reterr);
    if (r == PEN_OK && frames > 0)
        r = pen_pack_image(l->pack, l->sample, field, 0, &image, reterr);
    if (r == PEN_OK)
        r = pen_pack_read(l->pack, l->sample, field, NULL, 0, &bytes, reterr);
    if (r < 0)
        return r;
    cli_report_number(&l->report, "frames", frames);
    add_image(&l->report, &image);
    cli_report_number(&l->report, "bytes", bytes);
    return PEN_OK;
}

static int list_missing(Lister *l, uint32_t field, PenError *reterr)
{
    int32_t missing = 0;
    int r = pen_pack_missing(l->pack, l->sample, field, &missing, reterr);
    if (r == PEN_OK)
        cli_report_bool(&l->report, "missing", missing);
    return r;
}

static int list_text(Lister *l, uint32_t field, PenError *reterr)
{
    size_t bytes;
    int r = pen_pack_read(l->pack, l->sample, field, NULL, 0, &bytes, reterr);
    if (r < 0)
        return r;
    cli_report_number(&l->report, "bytes", bytes);
    if (l->info->fields[field].flags & PEN_FIELD_OPTIONAL)
        r = list_missing(l, field, reterr);
    if (r < 0)
        return r;
    if (l->info->fields[field].type != PEN_TYPE_TEXT)
        return PEN_OK;
    l->value.bytes = 0;
    if (bytes > 0 && bytes <= TEXT_SHOWN)
        r = cli_value_read(l->pack, l->sample, field, &l->value, reterr);
    if (r == PEN_OK)
        cli_report_bytes(&l->report, "text", l->value.data, l->value.bytes);
    return r;
}

static void add_number(CliReport *report, const char *name, const PenField *field,
                       const CliBuffer *value, uint64_t i)
{
    char buf[32];
    const char *text = cli_number_text(field, value, i, buf);
    if (field->type == PEN_TYPE_I64)
        cli_report_integer(report, name, strtoll(text, NULL, 10));
    else
        cli_report_real(report, name, strtod(text, NULL), NULL);
}

static int list_numbers(Lister *l, uint32_t field, PenError *reterr)
{
    const PenField *f = &l->info->fields[field];
    int r = cli_value_read(l->pack, l->sample, field, &l->value, reterr);
    if (r == PEN_OK && cli_field_is_ragged(f))
        cli_report_number(&l->report, "rows", cli_value_rows(f, &l->value));
    if (r == PEN_OK && f->flags & PEN_FIELD_OPTIONAL)
        r = list_missing(l, field, reterr);
    if (r < 0)
        return r;
    uint64_t n = cli_value_numbers(f, &l->value);
    if (f->n_dims == 0) {
        add_number(&l->report, "value", f, &l->value, 0);
    } else {
        cli_report_list(&l->report, "values");
        for (uint64_t i = 0; i < n; i++)
            add_number(&l->report, NULL, f, &l->value, i);
        cli_report_close(&l->report);
    }
    if (l->info->class_field == (int32_t)field) {
        const char *name = cli_class_name(l->info, &l->value);
        cli_report_text(&l->report, "class", name ? name : "");
    }
    return PEN_OK;
}

static int list_field(Lister *l, uint32_t field, PenError *reterr)
{
    const PenField *f = &l->info->fields[field];
    int r;
    cli_report_object(&l->report, f->name);
    if (f->type == PEN_TYPE_IMAGE)
        r = list_image(l, field, reterr);
    else if (f->type == PEN_TYPE_CLIP)
        r = list_clip(l, field, reterr);
    else if (cli_field_is_numeric(f))
        r = list_numbers(l, field, reterr);
    else
        r = list_text(l, field, reterr);
    cli_report_close(&l->report);
    return r;
}

static int list_sample(Lister *l, PenError *reterr)
{
    cli_report_reset(&l->report);
    cli_report_number(&l->report, "index", l->sample);
    int r = cli_value_key(l->pack, l->sample, &l->value, reterr);
    if (r < 0)
        return r;
    cli_report_bytes(&l->report, "key", l->value.data, l->value.bytes);
    cli_report_group(&l->report, "fields");
    for (uint32_t i = 0; r == PEN_OK && i < l->info->n_fields; i++)
        r = list_field(l, i, reterr);
    cli_report_close(&l->report);
    return r;
}

static int print_sample(Lister *l, int json, PenError *reterr)
{
    if (json)
        return cli_report_print_json(&l->report, 0, stdout, reterr);
    if (!l->has_names) {
        int r = cli_report_print_tsv(&l->report, 1, stdout, reterr);
        if (r < 0)
            return r;
        l->has_names = 1;
    }
    return cli_report_print_tsv(&l->report, 0, stdout, reterr);
}

int cli_samples_print(PenPack *pack, int json, PenError *reterr)
{
    Lister l = {.pack = pack, .info = pen_pack_info(pack)};
    uint64_t n_bad = 0;
    int r = PEN_OK;
    for (; r == PEN_OK && l.sample < l.info->n_samples; l.sample++) {
        r = list_sample(&l, reterr);
        if (r == PEN_OK) {
            r = print_sample(&l, json, reterr);
        } else if (r == PEN_E_CORRUPT) { /* the others can still be listed */
            cli_print_error(reterr);
            n_bad++;
            r = PEN_OK;
        }
    }
    if (r == PEN_OK && n_bad > 0)
        r = cli_fail(reterr, PEN_E_CORRUPT,
                     "%" PRIu64 " samples could not be listed; run 'penstock verify'", n_bad);
    cli_report_fini(&l.report);
    cli_buffer_fini(&l.value);
    return r;
}
