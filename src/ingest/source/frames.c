/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/source/frames.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "ingest/source/text.h"

#define WHERE "ingest/frames"

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Two runs of digits by what they are worth; both pointers move behind them. */
static int compare_numbers(const char **a, const char **b)
{
    while (**a == '0')
        ++*a;
    while (**b == '0')
        ++*b;
    size_t m = 0, n = 0;
    while (is_digit((*a)[m]))
        m++;
    while (is_digit((*b)[n]))
        n++;
    int order = m != n ? (m > n) - (m < n) : memcmp(*a, *b, m);
    *a += m;
    *b += n;
    return order;
}

int pen__frames_compare(const char *a, const char *b)
{
    const char *p = a, *q = b;
    while (*p && *q) {
        int order = 0;
        if (is_digit(*p) && is_digit(*q)) {
            order = compare_numbers(&p, &q);
        } else {
            order = (uint8_t)*p - (uint8_t)*q;
            p++;
            q++;
        }
        if (order)
            return order;
    }
    if (*p || *q)
        return *p ? 1 : -1;
    return strcmp(a, b); /* 1.jpg and 01.jpg */
}

static int by_number(const void *a, const void *b)
{
    return pen__frames_compare(*(char *const *)a, *(char *const *)b);
}

bool pen__frames_has(const char *name)
{
    return name[0] != '.' && pen__name_is_image(name);
}

/* `all`: also what is no frame by its name. */
static int list(const char *folder, bool all, PenNames *ret, PenError *reterr)
{
    PenNames names = {0};
    int r = pen__dir_list(folder, &names, reterr);
    if (r < 0)
        return r;
    uint64_t n = 0;
    for (uint64_t i = 0; i < names.n; i++) {
        if (all ? names.names[i][0] != '.' : pen__frames_has(names.names[i]))
            names.names[n++] = names.names[i];
        else
            pen__free(names.names[i]);
    }
    names.n = n;
    if (n)
        qsort(names.names, (size_t)n, sizeof *names.names, by_number);
    *ret = names;
    return PEN_OK;
}

int pen__frames_list(const char *folder, PenNames *ret, PenError *reterr)
{
    return list(folder, false, ret, reterr);
}

static int measure_one(const char *folder, const char *name, PenFramesSize *sum, PenError *reterr)
{
    PenFileStat st = {0};
    char *path = pen__path_join(folder, name);
    if (!path)
        return pen__fail_memory(reterr, WHERE, folder);
    int r = pen__sys->stat_path(path, &st);
    bool is_ignored = !pen__frames_has(name) && !st.is_dir;
    if (is_ignored)
        r = PEN_OK;
    else if (r < 0)
        r = pen__fail_os(reterr, -r, WHERE, "%s: cannot stat", path);
    else if (!st.is_file)
        r = pen__fail(
            reterr, PEN_E_INVALID, WHERE,
            "%s: expected a frame of a clip, found %s; a folder of frames may contain nothing else",
            path, st.is_dir ? "a folder" : "no file");
    else if (pen__add_over(sum->bytes, st.bytes, &sum->bytes))
        r = pen__fail(
            reterr, PEN_E_LIMIT, WHERE,
            "%s: the frames are too large: expected less than 2^64 bytes in total, found %" PRIu64
            " more",
            path, st.bytes);
    else
        pen__stamp_add(&sum->stamp, name, &st);
    sum->n += !is_ignored;
    pen__free(path);
    return r;
}

int pen__frames_measure(const char *folder, PenFramesSize *ret, PenError *reterr)
{
    PenNames names = {0};
    PenFramesSize sum = {0};
    int r = list(folder, true, &names, reterr);
    for (uint64_t i = 0; r == PEN_OK && i < names.n; i++)
        r = measure_one(folder, names.names[i], &sum, reterr);
    if (r == PEN_OK)
        *ret = sum;
    pen__names_free(&names);
    return r;
}
