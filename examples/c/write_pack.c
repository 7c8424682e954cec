/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a pack of image files: each sample has an image, a number and a text.
 *
 *     cc -O2 write_pack.c -o write_pack $(pkg-config --cflags --libs penstock)
 *     ./write_pack photos.pen cat.jpg dog.jpg */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/penstock.h>

static const PenField FIELDS[] = {
    {.name = "image", .type = PEN_TYPE_IMAGE},
    {.name = "label", .type = PEN_TYPE_I64},
    {.name = "path", .type = PEN_TYPE_TEXT},
};
enum { N_FIELDS = sizeof FIELDS / sizeof *FIELDS };

/* Returns the bytes of a file, which the caller frees, or NULL. */
static void *read_file(const char *path, size_t *ret_bytes)
{
    FILE *file = fopen(path, "rb");
    void *data = NULL;
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size > 0 && fseek(file, 0, SEEK_SET) == 0)
        data = malloc((size_t)size);
    if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
        free(data);
        data = NULL;
    }
    if (file)
        fclose(file);
    *ret_bytes = data ? (size_t)size : 0;
    return data;
}

static int add_file(PenWriter *writer, const char *path, int64_t label, PenError *error)
{
    size_t bytes = 0;
    void *data = read_file(path, &bytes);
    if (!data) {
        snprintf(error->message, sizeof error->message, "%s: cannot read the file", path);
        return PEN_E_IO;
    }
    const PenValue values[N_FIELDS] = {
        {.data = data, .bytes = bytes},
        {.data = &label, .bytes = sizeof label},
        {.data = path, .bytes = strlen(path)},
    };
    int r = pen_writer_add(writer, path, strlen(path), values, N_FIELDS, error);
    free(data);
    return r;
}

int main(int argc, char **argv)
{
    PenError error;
    PenWriter *writer = NULL;
    PenWriterSettings settings;
    uint64_t n = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: write_pack OUT.pen IMAGE...\n");
        return 2;
    }
    pen_writer_settings_init(&settings);
    settings.fields = FIELDS;
    settings.n_fields = N_FIELDS;
    int r = pen_writer_open(argv[1], &settings, &writer, &error);
    for (int i = 2; r == PEN_OK && i < argc; i++)
        r = add_file(writer, argv[i], i - 2, &error);
    if (r == PEN_OK)
        r = pen_writer_finish(writer, &n, &error);
    pen_writer_close(&writer);
    if (r < 0) {
        fprintf(stderr, "write_pack: %s\n", error.message);
        return 1;
    }
    printf("%llu samples\n", (unsigned long long)n);
    return 0;
}
