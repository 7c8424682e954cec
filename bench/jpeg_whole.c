/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit that most loaders share: libjpeg-turbo decodes whole images, and nothing else is done.
 *
 *     jpeg_whole THREADS LIST       decode all files of LIST for every line that comes on stdin
 *     jpeg_whole --ppm FILE         the pixels of one file, as a PPM on stdout
 *
 * The files are in memory before the clock starts; a thread keeps its decoder and its buffer. For
 * every line of stdin one line is printed: seconds, images, pixels.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

enum { MAX_THREADS = 256, MAX_LINE = 4096, ROWS = 16 };

typedef struct {
    uint8_t *data;
    size_t size;
    char *name;
} File;

typedef struct {
    File *files;
    size_t n_files;
    atomic_size_t next;
} Work;

typedef struct {
    struct jpeg_error_mgr base; /* first: libjpeg gives back a pointer to it */
    jmp_buf failed;
} Failure;

typedef struct {
    Work *work;
    struct jpeg_decompress_struct jpeg;
    Failure failure;
    uint8_t *pixels;
    size_t capacity;
    uint64_t n_pixels;
    pthread_t thread;
} Decoder;

static void die(const char *what, const char *name)
{
    fprintf(stderr, "jpeg_whole: %s: %s\n", name, what);
    exit(1);
}

static void *must(void *p)
{
    if (!p)
        die("out of memory", "malloc");
    return p;
}

static void on_failure(j_common_ptr jpeg)
{
    Failure *failure = (Failure *)jpeg->err;
    longjmp(failure->failed, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    (void)jpeg;
    (void)level;
}

static void read_file(File *file)
{
    FILE *f = fopen(file->name, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        die("cannot be read", file->name);
    long size = ftell(f);
    if (size <= 0)
        die("is empty", file->name);
    rewind(f);
    file->size = (size_t)size;
    file->data = must(malloc(file->size));
    if (fread(file->data, 1, file->size, f) != file->size)
        die("cannot be read", file->name);
    fclose(f);
}

static void add_file(Work *work, const char *name)
{
    if ((work->n_files & (work->n_files - 1)) == 0) {
        size_t n = work->n_files ? 2 * work->n_files : 1;
        work->files = must(realloc(work->files, n * sizeof *work->files));
    }
    File *file = &work->files[work->n_files++];
    file->name = must(strdup(name));
    read_file(file);
}

static void read_list(Work *work, const char *list)
{
    char line[MAX_LINE];
    FILE *f = fopen(list, "r");
    if (!f)
        die("cannot be read", list);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0])
            add_file(work, line);
    }
    fclose(f);
    if (!work->n_files)
        die("names no file", list);
}

static void decoder_init(Decoder *d, Work *work)
{
    memset(d, 0, sizeof *d);
    d->work = work;
    d->jpeg.err = jpeg_std_error(&d->failure.base);
    d->failure.base.error_exit = on_failure;
    d->failure.base.emit_message = on_message;
    jpeg_create_decompress(&d->jpeg);
}

static void decoder_fini(Decoder *d)
{
    jpeg_destroy_decompress(&d->jpeg);
    free(d->pixels);
}

/* RGB, but what has four colours stays so: libjpeg does not convert it. */
static void start(Decoder *d, const File *file)
{
    jpeg_mem_src(&d->jpeg, file->data, (unsigned long)file->size);
    jpeg_read_header(&d->jpeg, TRUE);
    d->jpeg.out_color_space = d->jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&d->jpeg);
    /* Some rows more than there are: the decoder is offered ROWS of them at a time. */
    size_t bytes = (size_t)d->jpeg.output_width * (d->jpeg.output_height + ROWS) *
                   (size_t)d->jpeg.output_components;
    if (bytes > d->capacity) {
        free(d->pixels);
        d->pixels = must(malloc(bytes));
        d->capacity = bytes;
    }
}

static void decode(Decoder *d, const File *file)
{
    JSAMPROW rows[ROWS];
    if (setjmp(d->failure.failed) != 0)
        die("cannot be decoded", file->name);
    start(d, file);
    size_t stride = (size_t)d->jpeg.output_width * (size_t)d->jpeg.output_components;
    while (d->jpeg.output_scanline < d->jpeg.output_height) {
        for (size_t i = 0; i < ROWS; i++)
            rows[i] = d->pixels + (d->jpeg.output_scanline + i) * stride;
        jpeg_read_scanlines(&d->jpeg, rows, ROWS);
    }
    d->n_pixels += (uint64_t)d->jpeg.output_width * d->jpeg.output_height;
    jpeg_finish_decompress(&d->jpeg);
}

static void *decode_some(void *arg)
{
    Decoder *d = arg;
    size_t i;
    while ((i = atomic_fetch_add(&d->work->next, 1)) < d->work->n_files)
        decode(d, &d->work->files[i]);
    return NULL;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void decode_all(Work *work, Decoder *decoders, int threads)
{
    uint64_t pixels = 0;
    double began = now();
    atomic_store(&work->next, 0);
    for (int i = 0; i < threads; i++) {
        decoders[i].n_pixels = 0;
        if (pthread_create(&decoders[i].thread, NULL, decode_some, &decoders[i]) != 0)
            die("no thread", "pthread_create");
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(decoders[i].thread, NULL);
        pixels += decoders[i].n_pixels;
    }
    printf("%.6f %zu %llu\n", now() - began, work->n_files, (unsigned long long)pixels);
    fflush(stdout);
}

static int serve(const char *list, int threads)
{
    char line[MAX_LINE];
    Work work = {0};
    Decoder *decoders = must(malloc((size_t)threads * sizeof *decoders));
    read_list(&work, list);
    for (int i = 0; i < threads; i++)
        decoder_init(&decoders[i], &work);
    printf("libjpeg-turbo %d files %zu\n", LIBJPEG_TURBO_VERSION_NUMBER, work.n_files);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        decode_all(&work, decoders, threads);
    for (int i = 0; i < threads; i++)
        decoder_fini(&decoders[i]);
    for (size_t i = 0; i < work.n_files; i++) {
        free(work.files[i].data);
        free(work.files[i].name);
    }
    free(work.files);
    free(decoders);
    return 0;
}

static int write_ppm(const char *name)
{
    Work work = {0};
    Decoder d;
    add_file(&work, name);
    decoder_init(&d, &work);
    decode(&d, &work.files[0]);
    if (d.jpeg.output_components != 3)
        die("has four colours", name);
    size_t bytes = (size_t)d.jpeg.output_width * d.jpeg.output_height * 3;
    printf("P6\n%u %u\n255\n", d.jpeg.output_width, d.jpeg.output_height);
    bool ok = fwrite(d.pixels, 1, bytes, stdout) == bytes && fflush(stdout) == 0;
    decoder_fini(&d);
    free(work.files[0].data);
    free(work.files[0].name);
    free(work.files);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--ppm") == 0)
        return write_ppm(argv[2]);
    long threads = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
    if (threads < 1 || threads > MAX_THREADS) {
        fprintf(stderr, "usage: jpeg_whole THREADS LIST | jpeg_whole --ppm FILE\n");
        return 2;
    }
    return serve(argv[2], (int)threads);
}
