/* SPDX-License-Identifier: Apache-2.0 */
/* Reads every sample of a pack, as a program of a user's would, and tells how it went:
 *
 *     read_remote ADDRESS [deadline_ms=N] [outage_ms=N] [in_flight=N] [threads=N] [seconds=N]
 *                 [ca=FILE] [step=1]
 *
 * prints "sample I HASH" for every sample read, then "status NAME", "message TEXT", "hash HEX" of
 * all samples in order, "seconds S", "threads BEFORE AFTER", "files BEFORE AFTER" and "settled S":
 * how long after the end they were back at what they had been, at most 10 s.
 * seconds=N: opens and reads it again and again for so long. step=1: waits for a line of input
 * before each sample. */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <penstock/penstock.h>

#include "base/attr.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/sys.h"

#define MOST_BYTES (1u << 20)
enum { MOST_THREADS = 64 };

typedef struct Run {
    const char *address;
    PenRemoteSettings remote;
    uint32_t threads, seconds;
    int step;
    PenPack *pack;
    uint64_t n;
    atomic_uint_fast64_t next;
    uint8_t (*hashes)[32];
    pthread_mutex_t mutex; /* of the error, and of what is printed */
    int status;
    PenError err;
} Run;

static const char *status_name(int status)
{
    switch (status) {
#define XX(name, value, text)                                                                      \
    case value:                                                                                    \
        return #name;
        PEN_STATUS_MAP(XX)
#undef XX
    default:
        return "?";
    }
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static void print_hex(const uint8_t hash[32])
{
    for (int i = 0; i < 32; i++)
        printf("%02x", hash[i]);
    printf("\n");
}

static uint32_t number_of(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

static int take_option(Run *run, char *option)
{
    char *value = strchr(option, '=');
    if (!value)
        return -1;
    *value++ = 0;
    if (strcmp(option, "ca") == 0) {
        run->remote.ca_file = value;
        return 0;
    }
    uint32_t step = 0;
    const struct {
        const char *name;
        uint32_t *to;
    } numbers[] = {
        {"deadline_ms", &run->remote.deadline_ms},
        {"outage_ms", &run->remote.outage_ms},
        {"in_flight", &run->remote.in_flight},
        {"threads", &run->threads},
        {"seconds", &run->seconds},
        {"step", &step},
    };
    for (size_t i = 0; i < PEN_LEN(numbers); i++)
        if (strcmp(option, numbers[i].name) == 0) {
            *numbers[i].to = number_of(value);
            run->step = run->step || step;
            return 0;
        }
    return -1;
}

static int hash_sample(Run *run, uint64_t sample, uint8_t *buf, PenError *err)
{
    const PenPackInfo *info = pen_pack_info(run->pack);
    PenSha256 h;
    pen__sha256_init(&h);
    pen__sha256_update(&h, &sample, sizeof sample);
    size_t bytes;
    int r = pen_pack_key(run->pack, sample, buf, MOST_BYTES, &bytes, err);
    if (r == PEN_OK)
        pen__sha256_update(&h, buf, bytes);
    for (uint32_t f = 0; f < info->n_fields && r == PEN_OK; f++) {
        r = pen_pack_read(run->pack, sample, f, buf, MOST_BYTES, &bytes, err);
        if (r == PEN_OK)
            pen__sha256_update(&h, buf, bytes);
    }
    if (r == PEN_OK)
        pen__sha256_final(&h, run->hashes[sample]);
    return r;
}

static void one_sample(Run *run, uint64_t sample, uint8_t *buf)
{
    char line[16];
    PenError err = {.status = PEN_OK};
    if (run->step && !fgets(line, sizeof line, stdin))
        exit(2);
    int r = hash_sample(run, sample, buf, &err);
    pthread_mutex_lock(&run->mutex);
    if (r < 0 && run->status == PEN_OK) {
        run->status = r;
        run->err = err;
    } else if (r == PEN_OK) {
        printf("sample %" PRIu64 " ", sample);
        print_hex(run->hashes[sample]);
        fflush(stdout);
    }
    pthread_mutex_unlock(&run->mutex);
}

static void *reader(void *ctx)
{
    Run *run = ctx;
    uint8_t *buf = malloc(MOST_BYTES);
    if (!buf)
        exit(2);
    for (;;) {
        uint64_t i = atomic_fetch_add(&run->next, 1);
        pthread_mutex_lock(&run->mutex);
        int over = i >= run->n || run->status < 0;
        pthread_mutex_unlock(&run->mutex);
        if (over)
            break;
        one_sample(run, i, buf);
    }
    free(buf);
    return NULL;
}

static void read_all(Run *run)
{
    pthread_t threads[MOST_THREADS];
    run->n = pen_pack_info(run->pack)->n_samples;
    run->hashes = calloc(run->n ? run->n : 1, sizeof *run->hashes);
    atomic_store(&run->next, 0);
    for (uint32_t i = 0; i < run->threads; i++)
        if (pthread_create(&threads[i], NULL, reader, run))
            exit(2);
    for (uint32_t i = 0; i < run->threads; i++)
        pthread_join(threads[i], NULL);
    PenSha256 h;
    uint8_t hash[32];
    pen__sha256_init(&h);
    pen__sha256_update(&h, run->hashes, run->n * sizeof *run->hashes);
    pen__sha256_final(&h, hash);
    free(run->hashes);
    if (run->status == PEN_OK) {
        printf("hash ");
        print_hex(hash);
    }
}

static double settle(int threads, int files)
{
    uint64_t began = pen__sys->now_ns(), took = 0;
    while ((entries("/proc/self/task") > threads || entries("/proc/self/fd") > files) &&
           took < 10000000000u) {
        usleep(2000);
        took = pen__sys->now_ns() - began;
    }
    return (double)took / 1e9;
}

int main(int argc, char **argv)
{
    Run run = {.threads = 1, .mutex = PTHREAD_MUTEX_INITIALIZER};
    pen_remote_settings_init(&run.remote);
    if (argc < 2)
        return 2;
    run.address = argv[1];
    for (int i = 2; i < argc; i++)
        if (take_option(&run, argv[i]) < 0)
            return 2;
    if (run.threads < 1 || run.threads > MOST_THREADS)
        return 2;
    int threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
    uint64_t began = pen__sys->now_ns();
    do {
        run.status = pen_pack_open(run.address, &run.remote, &run.pack, &run.err);
        if (run.status == PEN_OK)
            read_all(&run);
        pen_pack_close(&run.pack);
    } while (run.status == PEN_OK && pen__sys->now_ns() - began < run.seconds * 1000000000ull);
    uint64_t ended = pen__sys->now_ns();
    printf("seconds %.3f\n", (double)(ended - began) / 1e9);
    printf("threads %d %d\n", threads, entries("/proc/self/task"));
    printf("files %d %d\n", files, entries("/proc/self/fd"));
    printf("settled %.3f\n", settle(threads, files));
    printf("status %s\n", status_name(run.status));
    printf("message %s\n", run.status < 0 ? run.err.message : "");
    return 0;
}
