/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest_plan_help.h"

PenIngestSettings settings;

PenPlanRequest request;

void ask(const char *source)
{
    static char path[512];
    static const char *list = path;
    snprintf(path, sizeof path, "%s", at(source));
    settings = help_settings(&list, 1);
    request = (PenPlanRequest){.settings = &settings, .settings_text = "{\"mode\":\"tile\"}"};
}

int make(PenError *err)
{
    return pen__plan_make(&request, at("plan"), err);
}

int make_open(PenPlan **ret, PenError *err)
{
    int r = make(err);
    return r < 0 ? r : pen__plan_open(at("plan"), ret, err);
}

void keys(const PenPlan *plan, char *out, size_t cap)
{
    PenBuf scratch = {0};
    size_t used = 0;
    out[0] = 0;
    for (uint64_t i = 0; i < pen__plan_info(plan)->n_items && used < cap; i++) {
        PenItem item;
        PenError err = {0};
        if (pen__plan_item(plan, i, &item, &scratch, &err) < 0) {
            test__fail(__FILE__, __LINE__, "item %d: %s", (int)i, err.message);
            break;
        }
        used += (size_t)snprintf(out + used, cap - used, "%s%.*s", i ? " " : "",
                                 (int)item.key_bytes, (const char *)item.key);
    }
    pen__buf_free(&scratch);
}

void plan_keys(char *out, size_t cap)
{
    PenPlan *plan = NULL;
    CHECK_GOES(make_open(&plan, &err));
    keys(plan, out, cap);
    pen__plan_close(&plan);
}

int64_t number(const PenPart *part)
{
    int64_t v = -99;
    if (part->kind == PEN_PART_INLINE && part->bytes == 8)
        memcpy(&v, part->data, 8);
    return v;
}

void make_folder(const char *root)
{
    static const char *const files[] = {"cat/1.jpg", "cat/2.jpg", "cat/3.jpg",
                                        "dog/1.jpg", "dog/2.jpg", "eel/9.png"};
    for (size_t i = 0; i < PEN_LEN(files); i++) {
        char name[128];
        snprintf(name, sizeof name, "%s/%s", root, files[i]);
        help_text(name, files[i]);
        CHECK_OK_SO_FAR();
    }
}

size_t member_text(int i, const char *suffix, char text[4000])
{
    size_t n = (size_t)(i * 37 % 3000 + 10);
    memset(text, 'a' + (i + suffix[0]) % 26, n);
    snprintf(text, n, "%s%d", suffix, i);
    return n;
}

void make_tar(const char *name, int first, int n, int (*filter)(struct archive *))
{
    static const char *const suffixes[] = {"txt", "jpg", "cls", "bin"};
    HelpTar t;
    help_tar_begin(&t, archive_write_set_format_pax, filter);
    for (int i = first; i < first + n; i++) {
        for (size_t k = 0; k < PEN_LEN(suffixes); k++) {
            char path[64], text[4000];
            snprintf(path, sizeof path, "d/%04d.%s", i, suffixes[k]);
            size_t bytes = member_text(i, suffixes[k], text);
            if (k == 2)
                bytes = (size_t)snprintf(text, sizeof text, "%d", i % 3);
            help_tar_member(&t, path, AE_IFREG, NULL, text, bytes);
            CHECK_OK_SO_FAR();
        }
    }
    help_tar_end(&t, name);
}

PenPackInfo with_classes(const char *const *classes, uint32_t n)
{
    static const PenField fields[] = {{.name = "image", .type = PEN_TYPE_IMAGE},
                                      {.name = "label", .type = PEN_TYPE_I64}};
    return (PenPackInfo){.n_fields = 2,
                         .fields = fields,
                         .class_field = 1,
                         .n_classes = n,
                         .classes = classes,
                         .block_samples = 8};
}

void make_png(const char *name, uint32_t width, uint32_t height)
{
    PenPixels pixels = {calloc(1, (size_t)width * height * 3 + PEN_SLACK), width, height, 3};
    PenBuf out = {0};
    CHECK_GOES(pen__png_encode(&pixels, &out, &err));
    help_file(name, out.data, out.bytes);
    pen__buf_free(&out);
    free(pixels.data);
}

int read_all(PenError *err)
{
    PenPlan *plan = NULL;
    PenPartReader *reader = NULL;
    PenBuf scratch = {0}, data = {0};
    int r = pen__plan_open(at("plan"), &plan, err);
    if (r == 0)
        r = pen__part_reader_open(plan, &reader, err);
    for (uint64_t i = 0; r == 0 && i < pen__plan_info(plan)->n_items; i++) {
        PenItem item;
        r = pen__plan_item(plan, i, &item, &scratch, err);
        for (uint32_t k = 0; r == 0 && k < item.n_parts; k++)
            r = pen__part_read(reader, &item.parts[k], &data, NULL, err);
    }
    pen__buf_free(&scratch);
    pen__buf_free(&data);
    pen__part_reader_close(&reader);
    pen__plan_close(&plan);
    return r;
}

int make_and_read(PenError *err)
{
    int r = make(err);
    return r < 0 ? r : read_all(err);
}
