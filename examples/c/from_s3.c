/* SPDX-License-Identifier: Apache-2.0 */
/* Loads one epoch of a pack in an object store through a local cache directory. Endpoint, region
 * and credentials come from the environment, as for the AWS command line.
 *
 *     cc -O2 from_s3.c -o from_s3 $(pkg-config --cflags --libs penstock)
 *     AWS_PROFILE=training ./from_s3 s3://packs/photos.pen /nvme/cache */
#include <stdio.h>

#include <penstock/penstock.h>

static int open_with_cache(const char *url, const char *cache, PenPack **ret, PenError *error)
{
    PenRemoteSettings remote;
    PenCacheSettings settings;
    pen_remote_settings_init(&remote);
    remote.outage_ms = 60000; /* stop retrying after a minute */
    pen_cache_settings_init(&settings);
    settings.directory = cache;
    int r = pen_pack_open(url, &remote, ret, error);
    return r < 0 ? r : pen_pack_cache(*ret, &settings, error);
}

static int load_epoch(PenPack *pack, unsigned long long *ret_samples, PenError *error)
{
    PenLoader *loader = NULL;
    PenBatch *batch = NULL;
    PenLoaderSettings settings;
    pen_loader_settings_init(&settings);
    settings.order = PEN_ORDER_SHUFFLE; /* mixed, and read with large requests */
    settings.batch_size = 32;
    settings.pipeline = "decode | center_crop 224 | tensor u8 nhwc";
    int r = pen_loader_open(pack, &settings, &loader, error);
    if (r == PEN_OK)
        r = pen_loader_begin(loader, error);
    while (r == PEN_OK && (r = pen_loader_next(loader, -1, &batch, error)) == PEN_OK) {
        *ret_samples += batch->n_valid;
        pen_batch_unref(&batch);
    }
    pen_loader_close(&loader);
    return r == PEN_END ? PEN_OK : r;
}

int main(int argc, char **argv)
{
    PenError error;
    PenPack *pack = NULL;
    PenRemoteStats remote;
    PenCacheStats cache;
    unsigned long long samples = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: from_s3 URL CACHE_DIRECTORY\n");
        return 2;
    }
    int r = open_with_cache(argv[1], argv[2], &pack, &error);
    if (r == PEN_OK)
        r = load_epoch(pack, &samples, &error);
    if (r < 0) {
        fprintf(stderr, "from_s3: %s\n", error.message);
    } else {
        pen_pack_remote_stats(pack, &remote);
        pen_pack_cache_stats(pack, &cache);
        printf("%llu samples\n", samples);
        printf("%llu bytes fetched, %llu cache hits\n", (unsigned long long)remote.bytes,
               (unsigned long long)cache.hits);
    }
    pen_pack_close(&pack);
    return r < 0 ? 1 : 0;
}
