/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/source/text.h"

#include <fnmatch.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/sha256.h"

bool pen__text_ends(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcasecmp(text + a - b, end) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool pen__text_i64(const char *text, int64_t *ret)
{
    bool minus = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    if (!*text)
        return false;
    int64_t v = 0;
    for (; *text; text++) {
        if (!is_digit(*text) || __builtin_mul_overflow(v, 10, &v))
            return false;
        int digit = *text - '0';
        if (__builtin_add_overflow(v, minus ? -digit : digit, &v))
            return false;
    }
    *ret = v;
    return true;
}

static const char *skip_digits(const char *p)
{
    while (is_digit(*p))
        p++;
    return p;
}

/* 12, -1.5, .5, 2., 1e-3; no hexadecimal forms, spaces, inf or nan, which strtod would take. */
static bool is_decimal(const char *p)
{
    if (*p == '-' || *p == '+')
        p++;
    const char *whole = p;
    p = skip_digits(p);
    bool any = p > whole;
    if (*p == '.') {
        const char *part = ++p;
        p = skip_digits(p);
        any = any || p > part;
    }
    if (!any)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '-' || *p == '+')
            p++;
        const char *power = p;
        p = skip_digits(p);
        if (p == power)
            return false;
    }
    return !*p;
}

bool pen__text_f64(const char *text, double *ret)
{
    if (!is_decimal(text))
        return false;
    /* The program may have chosen a locale in which 1.5 is written 1,5. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return false;
    double v = strtod_l(text, NULL, c);
    freelocale(c);
    if (__builtin_isinf(v))
        return false;
    *ret = v;
    return true;
}

/* ---- sets of names --------------------------------------------------------------------------- */

static uint32_t slot_of(const PenNameSet *set, const char *name, size_t bytes)
{
    /* The names are not ours: a hash that cannot be steered keeps the search short. */
    uint8_t hash[32];
    pen__sha256(name, bytes, hash);
    uint32_t i = pen__load32(hash) & (set->n_slots - 1);
    while (set->slots[i]) {
        const char *have = set->names[set->slots[i] - 1];
        if (strncmp(have, name, bytes) == 0 && !have[bytes])
            break;
        i = (i + 1) & (set->n_slots - 1);
    }
    return i;
}

/* Room for one more name, with at most half of the slots taken. */
static int grow(PenNameSet *set)
{
    if (set->n == set->cap) {
        uint32_t cap = set->cap ? set->cap * 2 : 64;
        char **names = cap < (1u << 30) ? pen__resize(set->names, cap * sizeof *names) : NULL;
        if (!names)
            return PEN_E_NO_MEMORY;
        set->names = names;
        set->cap = cap;
    }
    if (set->n + 1 <= set->n_slots / 2)
        return PEN_OK;
    uint32_t n_slots = set->n_slots ? set->n_slots * 2 : 256;
    uint32_t *slots = pen__zalloc(n_slots * sizeof *slots);
    if (!slots)
        return PEN_E_NO_MEMORY;
    pen__free(set->slots);
    set->slots = slots;
    set->n_slots = n_slots;
    for (uint32_t i = 0; i < set->n; i++)
        slots[slot_of(set, set->names[i], strlen(set->names[i]))] = i + 1;
    return PEN_OK;
}

int pen__name_set_add(PenNameSet *set, const char *name, size_t bytes, uint32_t *ret, bool *ret_new,
                      PenError *reterr)
{
    if (ret_new)
        *ret_new = false;
    if (set->n && strncmp(set->names[set->last], name, bytes) == 0 &&
        !set->names[set->last][bytes]) {
        *ret = set->last;
        return PEN_OK;
    }
    if (grow(set) < 0)
        return pen__fail_memory(reterr, "ingest/names", "set of names");
    uint32_t slot = slot_of(set, name, bytes);
    if (!set->slots[slot]) {
        char *copy = pen__strndup(name, bytes);
        if (!copy)
            return pen__fail_memory(reterr, "ingest/names", "set of names");
        set->names[set->n++] = copy;
        set->slots[slot] = set->n;
        if (ret_new)
            *ret_new = true;
    }
    set->last = set->slots[slot] - 1;
    *ret = set->last;
    return PEN_OK;
}

void pen__name_set_free(PenNameSet *set)
{
    for (uint32_t i = 0; i < set->n; i++)
        pen__free(set->names[i]);
    pen__free(set->names);
    pen__free(set->slots);
    *set = (PenNameSet){0};
}

bool pen__text_seconds(const char *text, uint64_t *ret_ns)
{
    double seconds;
    if (!pen__text_f64(text, &seconds) || !(seconds >= 0 && seconds <= 8589934592.0))
        return false;
    /* To the nanosecond; a double has 15 digits, which is a microsecond in 30 years. */
    *ret_ns = (uint64_t)(seconds * 1e9 + 0.5);
    return true;
}

/* ---- endings --------------------------------------------------------------------------------- */

static bool ends_in_one(const char *name, const char *const *ends, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (pen__text_ends(name, ends[i]))
            return true;
    return false;
}

bool pen__name_is_image(const char *name)
{
    static const char *const ends[] = {
        ".jpg", ".jpeg", ".jpe", ".jfif", ".png",  ".webp", /* the others cannot be read */
        ".bmp", ".gif",  ".tif", ".tiff", ".ppm",  ".pgm",  ".pbm",
        ".pnm", ".jp2",  ".jxl", ".avif", ".heic", ".heif"};
    return ends_in_one(name, ends, PEN_LEN(ends));
}

bool pen__name_is_video(const char *name)
{
    static const char *const ends[] = {".mp4", ".avi",  ".mkv",  ".webm", ".mov", ".m4v",
                                       ".mpg", ".mpeg", ".wmv",  ".flv",  ".ts",  ".3gp",
                                       ".ogv", ".mts",  ".m2ts", ".vob",  ".asf"};
    return ends_in_one(name, ends, PEN_LEN(ends));
}

bool pen__name_is_tar(const char *name)
{
    static const char *const ends[] = {".tar",    ".tar.gz", ".tgz",     ".tar.bz2", ".tbz2",
                                       ".tar.xz", ".txz",    ".tar.zst", ".tzst",    ".tar.lz4"};
    return ends_in_one(name, ends, PEN_LEN(ends));
}

/* ---- patterns -------------------------------------------------------------------------------- */

bool pen__name_is_excluded(const PenIngestSettings *s, const char *path)
{
    const char *slash = strrchr(path, '/');
    for (uint32_t i = 0; i < s->n_exclude; i++) {
        bool is_path = strchr(s->exclude[i], '/') != NULL;
        const char *text = is_path || !slash ? path : slash + 1;
        if (fnmatch(s->exclude[i], text, is_path ? FNM_PATHNAME : 0) == 0)
            return true;
    }
    return false;
}

int pen__exclude_check(const PenIngestSettings *s, PenError *reterr)
{
    for (uint32_t i = 0; i < s->n_exclude; i++) {
        const char *text = s->exclude[i];
        size_t n = text ? strlen(text) : 0;
        if (!n || text[0] == '/' || text[n - 1] == '/')
            return pen__fail(reterr, PEN_E_INVALID, "ingest/names",
                             "exclude '%.200s': expected a name such as '*.gif' or a path below "
                             "the source such as 'cat/old', found %s",
                             n ? text : "", n ? "a / at its start or its end" : "an empty text");
    }
    return PEN_OK;
}
