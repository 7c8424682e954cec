/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "ingest/source/frames.h"
#include "ingest/source/text.h"

#define WHERE "ingest/pattern"
#define MAX_GROUPS 16
#define MAX_NAME 4096
#define MAX_DIGITS 18 /* fits an int64_t */

typedef struct Group {
    size_t begin, end; /* in the pattern, between the braces */
    bool is_range;
    uint64_t from, to;
    int width; /* with zeros in front; 0 = as it is */
    uint64_t n;
} Group;

typedef struct Pattern {
    const char *text;
    uint32_t n_groups;
    Group groups[MAX_GROUPS];
} Pattern;

static int fail(const char *text, const char *what, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "%.200s: %s", text, what);
}

/* Digits up to `end`; their number, 0 when there is another character or there are too many. */
static size_t digits(const char *p, const char *end, uint64_t *ret)
{
    size_t n = (size_t)(end - p);
    if (n == 0 || n > MAX_DIGITS)
        return 0;
    uint64_t v = 0;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9')
            return 0;
        v = v * 10 + (uint64_t)(*p - '0');
    }
    *ret = v;
    return n;
}

static bool parse_range(const char *begin, const char *end, Group *g)
{
    const char *dots = memmem(begin, (size_t)(end - begin), "..", 2);
    if (!dots)
        return false;
    size_t a = digits(begin, dots, &g->from);
    size_t b = digits(dots + 2, end, &g->to);
    if (!a || !b)
        return false;
    bool padded = (a > 1 && begin[0] == '0') || (b > 1 && dots[2] == '0');
    g->width = padded ? (int)PEN_MAX(a, b) : 0;
    g->n = (g->from < g->to ? g->to - g->from : g->from - g->to) + 1;
    g->is_range = true;
    return true;
}

static int parse_group(const char *text, size_t begin, size_t end, Group *ret, PenError *reterr)
{
    Group g = {.begin = begin, .end = end, .n = 1};
    if (memchr(text + begin, '{', end - begin))
        return fail(text, "expected no nested braces, found { inside {}; write the names out",
                    reterr);
    if (!parse_range(text + begin, text + end, &g)) {
        for (size_t i = begin; i < end; i++)
            g.n += text[i] == ',';
        if (g.n == 1)
            return fail(text, "expected {000..017} or {a,b}, found something else in the braces",
                        reterr);
    }
    *ret = g;
    return PEN_OK;
}

static int parse(const char *text, Pattern *ret, PenError *reterr)
{
    ret->text = text;
    ret->n_groups = 0;
    for (const char *p = text; (p = strchr(p, '{')); p++) {
        const char *close = strchr(p, '}');
        if (!close)
            return fail(text, "expected a } for every {, found none", reterr);
        if (ret->n_groups == MAX_GROUPS)
            return fail(text, "expected at most 16 groups in braces, found more", reterr);
        int r = parse_group(text, (size_t)(p + 1 - text), (size_t)(close - text),
                            &ret->groups[ret->n_groups], reterr);
        if (r < 0)
            return r;
        ret->n_groups++;
        p = close;
    }
    return PEN_OK;
}

/* What the group gives for `which`, at `out`; the bytes of it, or 0 and *ret_fits false. */
static size_t put_choice(const Pattern *pat, const Group *g, uint64_t which, char *out, size_t cap,
                         bool *ret_fits)
{
    if (g->is_range) {
        uint64_t v = g->from < g->to ? g->from + which : g->from - which;
        int n = snprintf(out, cap, "%0*" PRIu64, g->width, v);
        *ret_fits = (size_t)n < cap;
        return *ret_fits ? (size_t)n : 0;
    }
    const char *p = pat->text + g->begin, *end = pat->text + g->end;
    while (which--)
        p = (const char *)memchr(p, ',', (size_t)(end - p)) + 1;
    const char *comma = memchr(p, ',', (size_t)(end - p));
    size_t n = (size_t)((comma ? comma : end) - p);
    *ret_fits = n < cap;
    if (!*ret_fits)
        return 0;
    memcpy(out, p, n);
    return n;
}

/* The name in which group i stands at choice[i]. */
static bool put_name(const Pattern *pat, const uint64_t *choice, char out[MAX_NAME])
{
    size_t at = 0, from = 0;
    for (uint32_t i = 0; i <= pat->n_groups; i++) {
        const Group *g = i < pat->n_groups ? &pat->groups[i] : NULL;
        size_t end = g ? g->begin - 1 : strlen(pat->text);
        size_t n = end - from;
        if (n >= MAX_NAME - at)
            return false;
        memcpy(out + at, pat->text + from, n);
        at += n;
        if (g) {
            bool fits;
            at += put_choice(pat, g, choice[i], out + at, MAX_NAME - at, &fits);
            if (!fits)
                return false;
            from = g->end + 1;
        }
    }
    out[at] = 0;
    return true;
}

static int add_name(PenNames *names, const char *name, PenError *reterr)
{
    if (names->n == names->cap) {
        uint64_t cap = names->cap ? names->cap * 2 : 16;
        char **grown = pen__resize(names->names, (size_t)cap * sizeof *grown);
        if (!grown)
            return pen__fail_memory(reterr, WHERE, name);
        names->names = grown;
        names->cap = cap;
    }
    char *copy = pen__strdup(name);
    if (!copy)
        return pen__fail_memory(reterr, WHERE, name);
    names->names[names->n++] = copy;
    return PEN_OK;
}

int pen__pattern_expand(const char *pattern, PenNames *names, PenError *reterr)
{
    Pattern pat;
    int r = parse(pattern, &pat, reterr);
    if (r < 0)
        return r;
    uint64_t n = 1;
    for (uint32_t i = 0; i < pat.n_groups; i++)
        if (pen__mul_over(n, pat.groups[i].n, &n))
            n = UINT64_MAX, i = pat.n_groups;
    if (names->n >= PEN_PATTERN_NAMES || n > PEN_PATTERN_NAMES - names->n)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%.200s: expected at most %d names in total, found more", pattern,
                         PEN_PATTERN_NAMES);
    uint64_t choice[MAX_GROUPS] = {0};
    for (uint64_t k = 0; k < n; k++) {
        char name[MAX_NAME];
        if (!put_name(&pat, choice, name))
            return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                             "%.200s: expected a name of at most %d bytes, found a longer one",
                             pattern, MAX_NAME - 1);
        r = add_name(names, name, reterr);
        if (r < 0)
            return r;
        for (uint32_t i = pat.n_groups; i-- && ++choice[i] == pat.groups[i].n;)
            choice[i] = 0;
    }
    return PEN_OK;
}

/* ---- sources as words ------------------------------------------------------------------------ */

/* Where two names have numbers, all else being equal, and b's is the next one. */
typedef struct Step {
    size_t at, a_digits, b_digits;
} Step;

static size_t digits_at(const char *p, uint64_t *ret)
{
    size_t n = strspn(p, "0123456789");
    if (n == 0 || n > 18)
        return 0;
    *ret = strtoull(p, NULL, 10);
    return n;
}

static bool follows(const char *a, const char *b, Step *ret)
{
    uint64_t from, to;
    size_t at = 0;
    while (a[at] && a[at] == b[at])
        at++;
    while (at && a[at - 1] >= '0' && a[at - 1] <= '9')
        at--;
    *ret = (Step){at, digits_at(a + at, &from), digits_at(b + at, &to)};
    return ret->a_digits && ret->b_digits && to == from + 1 &&
           (ret->a_digits == ret->b_digits || a[at] != '0') &&
           strcmp(a + at + ret->a_digits, b + at + ret->b_digits) == 0;
}

/* How many of the names from the first on are one pattern; *ret is where its number is. */
static uint64_t run_of(char *const *names, uint64_t n, Step *ret)
{
    uint64_t i = 1;
    for (Step step; i < n && follows(names[i - 1], names[i], &step); i++) {
        if (i > 1 && step.at != ret->at)
            break;
        *ret = step;
    }
    return i;
}

static int put_word(const char *root, char *const *names, uint64_t n, const Step *step, char *to,
                    size_t cap)
{
    const char *slash = root[strlen(root) - 1] == '/' ? "" : "/";
    if (n == 1)
        return snprintf(to, cap, " '%s%s%s'", root, slash, names[0]);
    uint64_t unused;
    const char *first = names[0], *last = names[n - 1];
    return snprintf(to, cap, " '%s%s%.*s{%.*s..%.*s}%s'", root, slash, (int)step->at, first,
                    (int)digits_at(first + step->at, &unused), first + step->at,
                    (int)step->b_digits, last + step->at, last + step->at + step->b_digits);
}

static int by_number(const void *a, const void *b)
{
    return pen__frames_compare(*(char *const *)a, *(char *const *)b);
}

void pen__names_as_words(const char *root, PenNames *names, char *ret, size_t cap)
{
    static const char more[] = " ...";
    size_t used = 0;
    if (names->n)
        qsort(names->names, (size_t)names->n, sizeof *names->names, by_number);
    *ret = 0;
    for (uint64_t i = 0; i < names->n;) {
        Step step = {0};
        uint64_t n = run_of(names->names + i, names->n - i, &step);
        size_t room = cap - used - sizeof more;
        int bytes = put_word(root, names->names + i, n, &step, ret + used, room);
        if (bytes < 0 || (size_t)bytes >= room) {
            memcpy(ret + used, more, sizeof more);
            return;
        }
        used += (size_t)bytes;
        i += n;
    }
}
