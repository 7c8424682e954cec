/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a sample by its key, prints its fields, and writes its image to a file.
 *
 *     cc -O2 read_sample.c -o read_sample $(pkg-config --cflags --libs penstock)
 *     ./read_sample photos.pen cat/1.jpg sample */
#include <stdio.h>
#include <string.h>

#include <penstock/penstock.h>

static int fail(const PenError *error)
{
    fprintf(stderr, "read_sample: %s\n", error->message);
    return 1;
}

static int write_image(PenPack *pack, uint64_t sample, uint32_t field, const char *out,
                       PenError *error)
{
    void *data = NULL;
    size_t bytes = 0;
    const char *suffix = "";
    char path[512];
    int r = pen_pack_extract(pack, sample, field, 0, &data, &bytes, &suffix, error);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "%s%s", out, suffix);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
        perror(path);
    else
        printf("wrote %s, %zu bytes\n", path, bytes);
    pen_free(data);
    return PEN_OK;
}

static int print_value(PenPack *pack, uint64_t sample, uint32_t field, PenError *error)
{
    const PenField *f = &pen_pack_info(pack)->fields[field];
    unsigned char value[4096];
    size_t bytes = 0;
    int64_t number;
    int r = pen_pack_read(pack, sample, field, value, sizeof value, &bytes, error);
    if (r < 0)
        return r;
    if (f->type == PEN_TYPE_I64 && bytes == sizeof number) {
        memcpy(&number, value, sizeof number);
        printf("%s: %lld\n", f->name, (long long)number);
    } else if (f->type == PEN_TYPE_TEXT) {
        printf("%s: %.*s\n", f->name, (int)bytes, (const char *)value);
    } else {
        printf("%s: %zu bytes of %s\n", f->name, bytes, pen_type_name(f->type));
    }
    return PEN_OK;
}

int main(int argc, char **argv)
{
    PenError error;
    PenPack *pack = NULL;
    uint64_t sample = 0;
    if (argc != 4) {
        fprintf(stderr, "usage: read_sample PACK KEY OUT\n");
        return 2;
    }
    int r = pen_pack_open(argv[1], NULL, &pack, &error);
    if (r == PEN_OK)
        r = pen_pack_find(pack, argv[2], strlen(argv[2]), &sample, &error);
    for (uint32_t f = 0; r == PEN_OK && f < pen_pack_info(pack)->n_fields; f++)
        r = pen_pack_info(pack)->fields[f].type == PEN_TYPE_IMAGE
                ? write_image(pack, sample, f, argv[3], &error)
                : print_value(pack, sample, f, &error);
    pen_pack_close(&pack);
    return r < 0 ? fail(&error) : 0;
}
