/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of this repository and of libcrypto, for inputs of several lengths.
 *
 *     sha256 [ROUNDS]
 *
 * All ways take turns in each round. Times are of the thread's CPU, the median of the rounds, in
 * nanoseconds for one hash. OPENSSL_ia32cap=:~0x20000000 switches SHA-NI off in libcrypto.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/evp.h>

#include "base/attr.h"
#include "base/mem.h"
#include "base/sha256.h"

enum { MAX_ROUNDS = 99, N_SIZES = 5 };

static const size_t sizes[N_SIZES] = {10, 20, 60, 4096, 1 << 20};
static EVP_MD *fetched;
static EVP_MD_CTX *kept;

static void by_evp(const void *data, size_t bytes, uint8_t ret[32])
{
    EVP_Digest(data, bytes, ret, NULL, EVP_sha256(), NULL);
}

static void by_fetched(const void *data, size_t bytes, uint8_t ret[32])
{
    EVP_Digest(data, bytes, ret, NULL, fetched, NULL);
}

static void by_kept(const void *data, size_t bytes, uint8_t ret[32])
{
    EVP_DigestInit_ex2(kept, fetched, NULL);
    EVP_DigestUpdate(kept, data, bytes);
    EVP_DigestFinal_ex(kept, ret, NULL);
}

static struct Way {
    const char *name;
    void (*hash)(const void *data, size_t bytes, uint8_t ret[32]);
    double ns[N_SIZES][MAX_ROUNDS];
} ways[] = {
    {.name = "this repository", .hash = pen__sha256},
    {.name = "this repository, no SHA-NI", .hash = pen__sha256_soft},
    {.name = "EVP_Digest", .hash = by_evp},
    {.name = "EVP_Digest, fetched once", .hash = by_fetched},
    {.name = "EVP, fetched once, context kept", .hash = by_kept},
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double measure(const struct Way *way, const uint8_t *data, size_t bytes)
{
    uint8_t found[32], expected[32];
    int n = (int)(1 + ((size_t)1 << 19) / (bytes + 128));
    double start = now_ns();
    for (int i = 0; i < n; i++)
        way->hash(data, bytes, found);
    double ns = (now_ns() - start) / n;
    pen__sha256(data, bytes, expected);
    if (memcmp(found, expected, 32) != 0) {
        fprintf(stderr, "sha256: %s: another hash\n", way->name);
        exit(1);
    }
    return ns;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_ways(size_t rounds)
{
    printf("%-34s", "bytes");
    for (size_t s = 0; s < N_SIZES; s++)
        printf("%10zu", sizes[s]);
    for (size_t w = 0; w < PEN_LEN(ways); w++) {
        printf("\n%-34s", ways[w].name);
        for (size_t s = 0; s < N_SIZES; s++) {
            qsort(ways[w].ns[s], rounds, sizeof(double), compare);
            printf("%10.0f", ways[w].ns[s][rounds / 2]);
        }
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    static uint8_t data[1 << 20];
    size_t rounds = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 15;
    rounds = PEN_MAX(PEN_MIN(rounds, (size_t)MAX_ROUNDS), (size_t)1);
    fetched = EVP_MD_fetch(NULL, "SHA256", NULL);
    kept = EVP_MD_CTX_new();
    if (!fetched || !kept)
        return 1;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 31);
    for (size_t r = 0; r < rounds; r++)
        for (size_t w = 0; w < PEN_LEN(ways); w++)
            for (size_t s = 0; s < N_SIZES; s++)
                ways[w].ns[s][r] = measure(&ways[w], data, sizes[s]);
    print_ways(rounds);
    EVP_MD_CTX_free(kept);
    EVP_MD_free(fetched);
    return 0;
}
