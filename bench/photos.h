/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs that decode photographs share: files, boxes, time. */
#ifndef PEN_BENCH_PHOTOS_H
#define PEN_BENCH_PHOTOS_H

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <penstock/decode.h>

#include "base/mem.h"
#include "base/rng.h"

enum { MAX_ROUNDS = 99 };

static inline void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* CPU seconds of this thread. */
static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void read_file(const char *path, PenBuf *out)
{
    FILE *f = fopen(path, "rb");
    size_t n;
    if (!f)
        die(path);
    do {
        if (pen__buf_reserve(out, 65536 + PEN_SLACK) < 0)
            die("memory");
        n = fread(out->data + out->bytes, 1, 65536, f);
        out->bytes += n;
    } while (n);
    fclose(f);
}

/* The JPEG files in folders of `dir`; every *ret_step-th of them makes about n. */
static inline void find_photos(const char *dir, uint32_t n, glob_t *ret, size_t *ret_step)
{
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/*/*.[Jj][Pp]*[Gg]", dir);
    if (glob(pattern, 0, NULL, ret) != 0)
        die("no photographs");
    *ret_step = ret->gl_pathc > n ? ret->gl_pathc / n : 1;
}

static inline double uniform(PenRng *rng)
{
    return (double)(pen__rng_next(rng) >> 11) * 0x1p-53;
}

/* RandomResizedCrop: 8-100 % of the area. */
static inline PenBox draw_box(PenRng *rng, uint32_t width, uint32_t height)
{
    for (int i = 0; i < 10; i++) {
        double area = (0.08 + 0.92 * uniform(rng)) * width * height;
        double aspect = exp((2 * uniform(rng) - 1) * log(4.0 / 3));
        PenBox b = {.w = (uint32_t)lround(sqrt(area * aspect)),
                    .h = (uint32_t)lround(sqrt(area / aspect))};
        if (!b.w || !b.h || b.w > width || b.h > height)
            continue;
        b.x = (uint32_t)pen__rng_below(rng, width - b.w + 1);
        b.y = (uint32_t)pen__rng_below(rng, height - b.h + 1);
        return b;
    }
    return (PenBox){.w = width, .h = height};
}

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(const double *values, uint32_t n)
{
    double sorted[MAX_ROUNDS];
    memcpy(sorted, values, n * sizeof *values);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    return sorted[n / 2];
}

#endif
