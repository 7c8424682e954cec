/* SPDX-License-Identifier: Apache-2.0 */
/* Loads one shuffled epoch of a pack and prints what the batches contain.
 *
 *     cc -O2 load_batches.c -o load_batches $(pkg-config --cflags --libs penstock)
 *     ./load_batches photos.pen 64 */
#include <stdio.h>
#include <stdlib.h>

#include <penstock/penstock.h>

static int fail(const PenError *error)
{
    fprintf(stderr, "load_batches: %s\n", error->message);
    return 1;
}

static void print_fields(const PenLoader *loader)
{
    for (uint32_t f = 0; f < pen_loader_fields(loader); f++) {
        PenTensor t = pen_loader_field_tensor(loader, f);
        printf("%s: %s [", pen_loader_field_name(loader, f), pen_dtype_name(t.dtype));
        for (uint32_t i = 0; i < t.n_dims; i++)
            printf("%s%lld", i ? ", " : "", (long long)t.shape[i]);
        printf("]\n");
    }
}

static int run_epoch(PenLoader *loader, PenError *error)
{
    unsigned long long batches = 0, samples = 0;
    PenBatch *batch = NULL;
    int r = pen_loader_begin(loader, error);
    while (r == PEN_OK && (r = pen_loader_next(loader, -1, &batch, error)) == PEN_OK) {
        /* A training step would use batch->fields[0].data here. Samples that only fill the last
         * batch have batch->valid[i] == 0. */
        batches++;
        samples += batch->n_valid;
        pen_batch_unref(&batch);
    }
    if (r != PEN_END)
        return r;
    printf("%llu batches, %llu samples\n", batches, samples);
    return PEN_OK;
}

int main(int argc, char **argv)
{
    PenError error;
    PenPack *pack = NULL;
    PenLoader *loader = NULL;
    PenLoaderSettings settings;
    if (argc != 3) {
        fprintf(stderr, "usage: load_batches PACK BATCH_SIZE\n");
        return 2;
    }
    pen_loader_settings_init(&settings);
    settings.batch_size = (uint32_t)strtoul(argv[2], NULL, 10);
    settings.order = PEN_ORDER_RANDOM;
    settings.pipeline = "decode | random_resized_crop 224 | hflip | tensor u8 nhwc";
    int r = pen_pack_open(argv[1], NULL, &pack, &error);
    if (r == PEN_OK)
        r = pen_loader_open(pack, &settings, &loader, &error);
    if (r == PEN_OK) {
        print_fields(loader);
        r = run_epoch(loader, &error);
    }
    pen_loader_close(&loader);
    pen_pack_close(&pack);
    return r < 0 ? fail(&error) : 0;
}
