/* SPDX-License-Identifier: Apache-2.0 */
/* Uses every struct of the API that may grow. tests/python/test_c_abi.py builds it with headers
 * whose structs are shorter or longer than those of the library, and compares what it prints.
 *
 *     use_all DIRECTORY FOLDER_OF_IMAGES
 *
 * Every struct is an allocation of its own, so that the address sanitizer sees a byte too many.
 * With ADDED, settings have a member that the library does not know, and every call is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <penstock/penstock.h>

enum { SAMPLES = 40 };

static char work[256], pack_path[300], copy_path[300], cache_path[300];
static const char *images;

#define NEW(type) ((type *)fresh(sizeof(type)))

static void *fresh(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p)
        exit(3);
    return memset(p, 0xaa, bytes);
}

#ifdef ADDED
#define SET_ADDED(s) ((s)->added_pointer = "text")
#else
#define SET_ADDED(s) ((void)(s))
#endif

/* Prints the outcome of a call; 1 when the rest of the scene can run. */
static int outcome(const char *call, int r, const PenError *err)
{
    printf("%s: %d", call, r);
    if (r < 0)
        printf(" %s", err->message);
    printf("\n");
    return r == PEN_OK;
}

#define ROW(name, value) printf("  %s %lld\n", name, (long long)(value))

static void write_it(void)
{
    static const PenField fields[] = {{.name = "label", .type = PEN_TYPE_I64},
                                      {.name = "note", .type = PEN_TYPE_TEXT}};
    PenError err;
    PenWriter *writer = NULL;
    PenWriterSettings *s = NEW(PenWriterSettings);
    uint64_t n = 0;
    pen_writer_settings_init(s);
    s->fields = fields;
    s->n_fields = 2;
    s->block_samples = 8;
    SET_ADDED(s);
    if (!outcome("writer", pen_writer_open(pack_path, s, &writer, &err), &err)) {
        free(s);
        return;
    }
    for (int64_t i = 0; i < SAMPLES; i++) {
        PenValue values[] = {{.data = &i, .bytes = sizeof i}, {.data = "a note", .bytes = 6}};
        if (pen_writer_add(writer, &i, sizeof i, values, 2, &err) < 0)
            exit(4);
    }
    outcome("finish", pen_writer_finish(writer, &n, &err), &err);
    ROW("samples", n);
    pen_writer_close(&writer);
    free(s);
}

static PenPack *open_it(const char *path)
{
    PenError err;
    PenPack *pack = NULL;
    PenRemoteSettings *s = NEW(PenRemoteSettings);
    pen_remote_settings_init(s);
    SET_ADDED(s);
    if (!outcome("open", pen_pack_open_at(path, s, &pack, &err), &err) &&
        pen_pack_open(path, &pack, NULL) < 0)
        exit(5);
    ROW("samples", pen_pack_info(pack)->n_samples);
    free(s);
    return pack;
}

/* Is the loader of this process among those that run? */
static void find_it(void)
{
    PenError err;
    PenLoaderList *list = NULL;
    PenRunningLoader *running = NEW(PenRunningLoader);
    PenLoaderStats *stats = NEW(PenLoaderStats);
    int found = 0;
    if (outcome("running", pen_loader_list_open(&list, &err), &err))
        for (uint64_t i = 0; pen_loader_list_get(list, i, running) == PEN_OK; i++)
            if (running->process == getpid() && pen_loader_list_stats(list, i, stats) == PEN_OK)
                found += pen_loader_bottleneck(stats) != NULL;
    ROW("found", found);
    pen_loader_list_close(&list);
    free(stats);
    free(running);
}

static void load_it(PenPack *pack)
{
    PenError err;
    PenLoader *loader = NULL;
    PenBatch *batch = NULL;
    PenLoaderSettings *s = NEW(PenLoaderSettings);
    PenLoaderStats *stats = NEW(PenLoaderStats);
    PenBadSample *bad = NEW(PenBadSample);
    int64_t sum = 0;
    pen_loader_settings_init(s);
    s->batch_size = 16;
    s->order = PEN_ORDER_RANDOM;
    SET_ADDED(s);
    if (outcome("loader", pen_loader_open(pack, s, &loader, &err), &err) &&
        outcome("begin", pen_loader_begin(loader, &err), &err)) {
        while (pen_loader_next(loader, -1, &batch, &err) == PEN_OK) {
            const int64_t *labels = batch->fields[0].data;
            for (uint32_t i = 0; i < batch->n_samples; i++)
                sum += batch->valid[i] ? labels[i] : 0;
            ROW("valid", batch->n_valid);
            pen_batch_unref(&batch);
        }
        ROW("sum", sum);
        find_it();
        pen_loader_stats(loader, stats);
        ROW("batches", stats->batches);
        ROW("bad", pen_loader_bad_sample(loader, 0, bad));
    }
    pen_loader_close(&loader);
    free(bad);
    free(stats);
    free(s);
}

static void mix_it(PenPack *pack)
{
    PenError err;
    PenLoader *loader = NULL;
    PenMixSettings *s = NEW(PenMixSettings);
    PenPack *packs[] = {pack, pack};
    const double weights[] = {1, 3};
    uint64_t counts[2];
    pen_mix_settings_init(s);
    s->n_sources = 2;
    s->packs = packs;
    s->weights = weights;
    SET_ADDED(s);
    if (outcome("mix", pen_loader_open_mix(s, NULL, &loader, &err), &err) &&
        outcome("epoch", pen_loader_set_epoch(loader, 1, &err), &err)) {
        pen_loader_source_counts(loader, counts);
        ROW("sources", pen_loader_sources(loader));
        ROW("samples", (counts[0] + counts[1] == pen_loader_samples(loader)));
    }
    pen_loader_close(&loader);
    free(s);
}

static void measure_it(PenPack *pack)
{
    PenError err;
    PenLoaderSettings *s = NEW(PenLoaderSettings);
    PenStages *stages = NEW(PenStages);
    pen_loader_settings_init(s);
    s->threads = 2;
    SET_ADDED(s);
    if (outcome("stages", pen_bench_stages(pack, s, 0.01, stages, &err), &err))
        ROW("threads", stages->threads);
    free(stages);
    free(s);
}

static void diagnose_it(PenPack *pack)
{
    PenError err;
    PenLoader *loader = NULL;
    PenRunFacts *facts = NEW(PenRunFacts);
    PenDiagnosis *diagnosis = NEW(PenDiagnosis);
    PenLoaderStats *stats = NEW(PenLoaderStats);
    if (pen_loader_open(pack, NULL, &loader, NULL) < 0)
        exit(6);
    pen_loader_stats(loader, stats);
    pen_run_facts_init(facts);
    SET_ADDED(facts);
    if (outcome("facts", pen_run_facts_of(loader, facts, &err), &err))
        ROW("pack", facts->pack_bytes > 0);
    if (outcome("diagnose", pen_diagnose(stats, facts, diagnosis, &err), &err))
        ROW("text", pen_diagnosis_text(diagnosis, NULL, 0) > 0);
    pen_loader_close(&loader);
    free(stats);
    free(diagnosis);
    free(facts);
}

static void verify_it(PenPack *pack)
{
    PenError err;
    PenVerifySettings *s = NEW(PenVerifySettings);
    PenVerifyResult *result = NEW(PenVerifyResult);
    pen_verify_settings_init(s);
    s->threads = 2;
    SET_ADDED(s);
    if (outcome("verify", pen_pack_verify(pack, s, result, &err), &err))
        ROW("samples", result->samples);
    free(result);
    free(s);
}

static int see_image(void *ctx, const PenImageAnalysis *image)
{
    *(uint32_t *)ctx += image->width;
    return 0;
}

static void analyse_it(PenPack *pack)
{
    PenError err;
    uint32_t width = 0;
    PenAnalyseSettings *s = NEW(PenAnalyseSettings);
    PenAnalyseResult *result = NEW(PenAnalyseResult);
    pen_analyse_settings_init(s);
    s->threads = 2;
    s->image = see_image;
    s->ctx = &width;
    SET_ADDED(s);
    if (outcome("analyse", pen_pack_analyse(pack, s, result, &err), &err)) {
        ROW("samples", result->samples);
        ROW("width", width);
    }
    free(result);
    free(s);
}

static void decode_it(void)
{
    static const char pixel[] = "\x89PNG\r\n\x1a\n" /* a PNG of one black pixel */
                                "\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0:~\x9bU"
                                "\0\0\0\nIDATx\x9c"
                                "c`\0\0\0\2\0\1H\xaf\xa4q"
                                "\0\0\0\0IEND\xae"
                                "B`\x82";
    PenError err;
    unsigned char pixels[12] = {1};
    PenDecodeItem item = {
        .data = pixel, .bytes = sizeof pixel - 1, .pixels = pixels, .cap = sizeof pixels};
    PenDecodeSettings *s = NEW(PenDecodeSettings);
    pen_decode_settings_init(s);
    s->width = s->height = 2;
    SET_ADDED(s);
    if (outcome("decode", pen_decode(&item, s, &err), &err))
        ROW("pixel", pixels[0]);
    if (outcome("decode_batch", pen_decode_batch(&item, 1, s, &err), &err))
        ROW("height", item.size[0]);
    free(s);
}

static void copy_it(void)
{
    PenError err;
    PenCopySettings *s = NEW(PenCopySettings);
    PenRemoteSettings *to = NEW(PenRemoteSettings);
    PenCopyResult *result = NEW(PenCopyResult);
    PenGcResult *gc = NEW(PenGcResult);
    pen_copy_settings_init(s);
    pen_remote_settings_init(to);
    s->from = pack_path;
    s->to = copy_path;
    s->to_remote = to;
    SET_ADDED(s);
    if (outcome("copy", pen_copy(s, result, &err), &err))
        ROW("shards", result->shards);
    SET_ADDED(to);
    if (outcome("gc", pen_ingest_gc_at(copy_path, to, NULL, gc, &err), &err))
        ROW("files", gc->files);
    if (outcome("gc", pen_ingest_gc_all(copy_path, to, NULL, gc, &err), &err))
        ROW("files", gc->files);
    free(gc);
    free(result);
    free(to);
    free(s);
}

static void on_pack(void *ctx, const PenCachePack *pack)
{
    (void)ctx;
    ROW("in use", pack->in_use);
    ROW("entries", pack->entries);
}

static void allow_files(void)
{
    PenError err;
    PenPack *pack = open_it(pack_path);
    PenFileSettings *s = NEW(PenFileSettings);
    const char *root = "/";
    pen_file_settings_init(s);
    s->roots = &root;
    s->n_roots = 1;
    SET_ADDED(s);
    outcome("files", pen_pack_files(pack, s, &err), &err);
    pen_pack_close(&pack);
    free(s);
}

static void cache_it(void)
{
    PenError err;
    PenPack *pack = open_it(pack_path);
    PenCacheSettings *s = NEW(PenCacheSettings);
    PenCacheStats *stats = NEW(PenCacheStats);
    PenRemoteStats *remote = NEW(PenRemoteStats);
    PenCacheTotal *total = NEW(PenCacheTotal);
    pen_cache_settings_init(s);
    s->directory = cache_path;
    SET_ADDED(s);
    if (outcome("cache", pen_pack_cache(pack, s, &err), &err)) {
        load_it(pack);
        mix_it(pack);
        pen_pack_cache_stats(pack, stats);
        ROW("misses", stats->misses);
        pen_pack_remote_stats(pack, remote);
        ROW("requests", remote->requests);
        if (outcome("inspect", pen_cache_inspect(cache_path, on_pack, NULL, total, &err), &err))
            ROW("packs", total->packs);
        pen_pack_close(&pack);
        if (outcome("clear", pen_cache_clear(cache_path, total, &err), &err))
            ROW("packs", total->packs);
    }
    pen_pack_close(&pack);
    free(total);
    free(remote);
    free(stats);
    free(s);
}

static void preload_it(void)
{
    PenError err;
    PenPack *pack = open_it(pack_path);
    PenPreloadSettings *s = NEW(PenPreloadSettings);
    PenPreloadResult *result = NEW(PenPreloadResult);
    pen_preload_settings_init(s);
    SET_ADDED(s);
    if (outcome("preload", pen_pack_preload(pack, s, result, &err), &err))
        ROW("sealed", result->is_sealed);
    pen_pack_close(&pack);
    free(result);
    free(s);
}

static void trace_it(void)
{
    PenError err;
    char path[300];
    PenTrace *trace = NULL;
    PenTraceSettings *s = NEW(PenTraceSettings);
    PenTraceStats *stats = NEW(PenTraceStats);
    snprintf(path, sizeof path, "%s/run.json", work);
    pen_trace_settings_init(s);
    SET_ADDED(s);
    if (outcome("trace", pen_trace_open(path, s, &trace, &err), &err)) {
        pen_trace_span(trace, "forward", 1, 2);
        if (outcome("close", pen_trace_close(&trace, stats, &err), &err))
            ROW("filled", stats->struct_size > 0);
    }
    free(stats);
    free(s);
}

static void ingest(const char *name, uint32_t n_tasks,
                   int (*call)(const PenIngestSettings *, PenIngestResult *, PenError *))
{
    PenError err;
    char out[300];
    PenIngestSettings *s = NEW(PenIngestSettings);
    PenIngestResult *result = NEW(PenIngestResult);
    snprintf(out, sizeof out, "%s/%s.pen", work, name);
    pen_ingest_settings_init(s);
    s->sources = &images;
    s->n_sources = 1;
    s->out = out;
    s->n_tasks = n_tasks;
    SET_ADDED(s);
    if (outcome(name, call(s, result, &err), &err)) {
        ROW("samples", result->n_samples);
        ROW("classes", result->n_classes);
        ROW("published", result->published);
        if (n_tasks && outcome("finalise", pen_ingest_finalise_at(s, result, &err), &err))
            ROW("published", result->published);
    }
    free(result);
    free(s);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    snprintf(work, sizeof work, "%s", argv[1]);
    snprintf(pack_path, sizeof pack_path, "%s/a.pen", work);
    snprintf(copy_path, sizeof copy_path, "%s/b.pen", work);
    snprintf(cache_path, sizeof cache_path, "%s/cache", work);
    images = argv[2];
    write_it();
    PenPack *pack = open_it(pack_path);
    load_it(pack);
    measure_it(pack);
    diagnose_it(pack);
    verify_it(pack);
    analyse_it(pack);
    pen_pack_close(&pack);
    decode_it();
    copy_it();
    allow_files();
    cache_it();
    preload_it();
    trace_it();
    ingest("plan", 0, pen_ingest_plan);
    ingest("run", 0, pen_ingest_run);
    ingest("task", 1, pen_ingest_run);
    return 0;
}
