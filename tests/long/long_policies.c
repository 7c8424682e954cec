/* SPDX-License-Identifier: Apache-2.0 */
/* What policies draw: operations, magnitudes, signs and probabilities against the published tables
 * by chi-square, from the steps of sample plans. */
#include <inttypes.h>
#include <math.h>

#include "lib/sweep.h"
#include "ops/run/program.h"
#include "unit/test.h"

enum { WIDTH = 224, HEIGHT = 200, MOST_KEYS = 20000, KEY = 64 };

/* ---- counts of outcomes ---- */

typedef struct Outcome {
    char key[KEY];
    double p;
    uint64_t n;
} Outcome;

typedef struct Table {
    uint32_t n;
    uint64_t draws, unknown;
    Outcome rows[MOST_KEYS];
} Table;

static Table table;

static uint32_t place_of(const char *key)
{
    uint32_t h = 2166136261u;
    for (const char *s = key; *s; s++)
        h = (h ^ (uint8_t)*s) * 16777619u;
    for (h %= MOST_KEYS; table.rows[h].key[0] && strcmp(table.rows[h].key, key) != 0;)
        h = (h + 1) % MOST_KEYS;
    return h;
}

/* Keys are not empty. */
static void expect_key(const char *key, double p)
{
    Outcome *row = &table.rows[place_of(key)];
    if (p <= 0)
        return;
    snprintf(row->key, KEY, "%s", key);
    row->p += p;
}

static void count_key(const char *key)
{
    Outcome *row = &table.rows[place_of(key)];
    table.draws++;
    table.unknown += !row->key[0];
    row->n += row->key[0] != '\0';
}

/* Sums up to 1, nothing that is not in the table, and within five standard deviations. */
static void check_table(const char *what)
{
    double all = 0, chi = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < MOST_KEYS; i++) {
        const Outcome *row = &table.rows[i];
        if (!row->key[0])
            continue;
        double want = row->p * (double)table.draws, off = (double)row->n - want;
        all += row->p;
        chi += off * off / want;
        n++;
    }
    printf("%s: %" PRIu64 " draws, %u outcomes, chi-square %.1f\n", what, table.draws, n, chi);
    CHECK_INT(table.unknown, 0);
    CHECK(fabs(all - 1) < 1e-9);
    CHECK(fabs(chi - (n - 1)) < 5 * sqrt(2.0 * (n - 1)));
    memset(&table, 0, sizeof table);
}

/* ---- operations as text ---- */

typedef struct Space {
    int bins;
    double shear, width, height, rotate, factor;
    int bits, fewer;
} Space;

static const Space rand_space = {31, 0.3, 150.0 / 331 * WIDTH, 150.0 / 331 * HEIGHT, 30, 0.9, 8, 4};
static const Space auto_space = {10, 0.3, 150.0 / 331 * WIDTH, 150.0 / 331 * HEIGHT, 30, 0.9, 8, 4};
static const Space wide_space = {31, 0.99, 32, 32, 135, 0.99, 8, 6};
static const Space mix_space = {10, 0.3, WIDTH / 3.0, HEIGHT / 3.0, 30, 0.9, 4, 4};

static const char *const names[] = {
    "Identity", "ShearX",   "ShearY",    "TranslateX", "TranslateY", "Rotate",       "Brightness",
    "Color",    "Contrast", "Sharpness", "Posterize",  "Solarize",   "AutoContrast", "Equalize"};

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool is_move(const char *name)
{
    return strncmp(name, "Shear", 5) == 0 || strncmp(name, "Trans", 5) == 0 || is(name, "Rotate");
}

static bool is_factor(const char *name)
{
    return is(name, "Brightness") || is(name, "Color") || is(name, "Contrast") ||
           is(name, "Sharpness");
}

static bool is_signed(const char *name)
{
    return is_move(name) || is_factor(name);
}

/* Translations are cut off: the last bit of torch.linspace matters. */
static float even(double end, int n, int i)
{
    float step = (float)end / (float)(n - 1);
    return i < n / 2 ? step * (float)i : fmaf(-step, (float)(n - 1 - i), (float)end);
}

/* The number of a step's key. */
static long number_of(const Space *s, const char *name, int bin, int sign)
{
    double part = (double)bin / (s->bins - 1) * sign;
    if (strncmp(name, "Shear", 5) == 0)
        return lround(s->shear * part * 10000);
    if (strncmp(name, "Translate", 9) == 0)
        return sign * (long)even(is(name, "TranslateX") ? s->width : s->height, s->bins, bin);
    if (is(name, "Rotate"))
        return lround(s->rotate * part * 100);
    if (is_factor(name))
        return lround(s->factor * part * 10000);
    if (is(name, "Posterize"))
        return s->bits - lrint(bin / ((s->bins - 1) / (double)s->fewer));
    if (is(name, "Solarize"))
        return (long)ceil(255 - 255.0 * bin / (s->bins - 1) - 1e-4);
    return 0;
}

/* "" for what adds no step. */
static void key_of_table(const Space *s, const char *name, int bin, int sign, char key[KEY])
{
    long number = number_of(s, name, bin, sign);
    key[0] = '\0';
    if (!is(name, "Identity") && (number || !is_move(name)))
        snprintf(key, KEY, "%s %ld", name, number);
}

static void key_of_warp(const PenWarp *w, char key[KEY])
{
    const double *a = w->a;
    if (a[1] != 0 && a[3] != 0)
        snprintf(key, KEY, "Rotate %ld", lround(atan2(a[3], a[0]) * 18000 / M_PI));
    else if (a[1] != 0)
        snprintf(key, KEY, "ShearX %ld", lround(a[1] * 10000));
    else if (a[3] != 0)
        snprintf(key, KEY, "ShearY %ld", lround(a[3] * 10000));
    else if (a[2] != 0)
        snprintf(key, KEY, "TranslateX %ld", lround(-a[2]));
    else
        snprintf(key, KEY, "TranslateY %ld", lround(-a[5]));
}

static void key_of_step(const PenStep *step, char key[KEY])
{
    long factor = lround((step->u.factor / 65536.0 - 1) * 10000);
    switch (step->kind) {
    case PEN_STEP_WARP:
    case PEN_STEP_BLEND_WARP:
        key_of_warp(&step->u.warp, key);
        break;
    case PEN_STEP_BRIGHTNESS:
        snprintf(key, KEY, "Brightness %ld", factor);
        break;
    case PEN_STEP_SATURATION:
        snprintf(key, KEY, "Color %ld", factor);
        break;
    case PEN_STEP_CONTRAST:
        snprintf(key, KEY, "Contrast %ld", factor);
        break;
    case PEN_STEP_SHARPNESS:
        snprintf(key, KEY, "Sharpness %ld", factor);
        break;
    case PEN_STEP_POSTERIZE:
        snprintf(key, KEY, "Posterize %d", step->u.value);
        break;
    case PEN_STEP_SOLARIZE:
        snprintf(key, KEY, "Solarize %d", step->u.value);
        break;
    default:
        snprintf(key, KEY, "%s 0",
                 step->kind == PEN_STEP_AUTOCONTRAST ? "AutoContrast"
                 : step->kind == PEN_STEP_EQUALIZE   ? "Equalize"
                 : step->kind == PEN_STEP_INVERT     ? "Invert"
                                                     : "?");
    }
}

/* ---- plans ---- */

static PenProgram *program(const char *policy)
{
    char text[200];
    PenSpec s = {0};
    PenProgram *p = NULL;
    PenError err = {0};
    PenFieldKind image = {.kind = PEN_KIND_IMAGE};
    snprintf(text, sizeof text, "decode | center_crop %d,%d | %s", HEIGHT, WIDTH, policy);
    int r = pen__spec_parse(text, &s, &err);
    if (r == PEN_OK)
        r = pen__program_new(&s.fields[0], &image, &p, &err);
    if (r < 0)
        test__fail(__FILE__, __LINE__, "%s: %s", text, err.message);
    pen__spec_free(&s);
    return p;
}

static const PenSamplePlan *plan_of(const PenProgram *p, uint64_t sample)
{
    static PenSamplePlan plan;
    PenError err = {0};
    PenImageShape shape = {WIDTH, HEIGHT, 1, 0};
    if (pen__sample_plan_make(p, &shape, pen__draw_key(5, 6), sample, &plan, &err) < 0)
        test__fail(__FILE__, __LINE__, "%s", err.message);
    return &plan;
}

/* All steps behind the first pass; "-" for none. */
static void key_of_plan(const PenSamplePlan *plan, char key[2 * KEY])
{
    snprintf(key, KEY, "-");
    size_t used = 0;
    for (uint32_t i = 1; i < plan->n_steps; i++) {
        char one[KEY];
        key_of_step(&plan->steps[i], one);
        used += (size_t)snprintf(key + used, 2 * KEY - used, "%s%s", used ? ", " : "", one);
    }
}

static void join(const char *a, const char *b, char key[2 * KEY])
{
    snprintf(key, 2 * KEY, "%s%s%s", a, a[0] && b[0] ? ", " : "", b);
    if (!key[0])
        snprintf(key, KEY, "-");
}

static void count_plans(const char *policy)
{
    uint64_t n = scaled(1000000, 20000);
    PenProgram *p = program(policy);
    char key[2 * KEY];
    for (uint64_t i = 0; p && i < n; i++) {
        key_of_plan(plan_of(p, i), key);
        count_key(key);
    }
    pen__program_free(&p);
    check_table(policy);
}

/* ---- RandAugment and TrivialAugment ---- */

typedef struct Single { /* an operation of a table with its sign */
    char key[KEY];
    double p;
} Single;

static uint32_t singles_of(const Space *s, uint32_t n_names, int from, int to, Single *ret)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < n_names; k++)
        for (int bin = from; bin < to; bin++)
            for (int sign = -1; sign <= 1; sign += 2) {
                bool turned = sign < 0 && is_signed(names[k]);
                ret[n].p = 1.0 / n_names / (to - from) / 2;
                key_of_table(s, names[k], bin, turned ? -1 : 1, ret[n++].key);
            }
    return n;
}

TEST(rand_augment_is_as_published)
{
    static Single singles[100];
    char key[2 * KEY];
    uint32_t n = singles_of(&rand_space, PEN_LEN(names), 9, 10, singles);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++) {
            join(singles[i].key, singles[k].key, key);
            expect_key(key, singles[i].p * singles[k].p);
        }
    count_plans("rand_augment");
}

TEST(trivial_augment_is_as_published)
{
    static Single singles[2000];
    char key[2 * KEY];
    uint32_t n = singles_of(&wide_space, PEN_LEN(names), 0, 31, singles);
    for (uint32_t i = 0; i < n; i++) {
        join(singles[i].key, "", key);
        expect_key(key, singles[i].p);
    }
    count_plans("trivial_augment");
}

/* ---- AutoAugment ---- */

typedef struct Part {
    const char *name;
    double p;
    int bin; /* -1: none */
} Part;

static const Part policies[3][25][2] = {
    {
        {{"Posterize", 0.4, 8}, {"Rotate", 0.6, 9}},
        {{"Solarize", 0.6, 5}, {"AutoContrast", 0.6, -1}},
        {{"Equalize", 0.8, -1}, {"Equalize", 0.6, -1}},
        {{"Posterize", 0.6, 7}, {"Posterize", 0.6, 6}},
        {{"Equalize", 0.4, -1}, {"Solarize", 0.2, 4}},
        {{"Equalize", 0.4, -1}, {"Rotate", 0.8, 8}},
        {{"Solarize", 0.6, 3}, {"Equalize", 0.6, -1}},
        {{"Posterize", 0.8, 5}, {"Equalize", 1.0, -1}},
        {{"Rotate", 0.2, 3}, {"Solarize", 0.6, 8}},
        {{"Equalize", 0.6, -1}, {"Posterize", 0.4, 6}},
        {{"Rotate", 0.8, 8}, {"Color", 0.4, 0}},
        {{"Rotate", 0.4, 9}, {"Equalize", 0.6, -1}},
        {{"Equalize", 0.0, -1}, {"Equalize", 0.8, -1}},
        {{"Invert", 0.6, -1}, {"Equalize", 1.0, -1}},
        {{"Color", 0.6, 4}, {"Contrast", 1.0, 8}},
        {{"Rotate", 0.8, 8}, {"Color", 1.0, 2}},
        {{"Color", 0.8, 8}, {"Solarize", 0.8, 7}},
        {{"Sharpness", 0.4, 7}, {"Invert", 0.6, -1}},
        {{"ShearX", 0.6, 5}, {"Equalize", 1.0, -1}},
        {{"Color", 0.4, 0}, {"Equalize", 0.6, -1}},
        {{"Equalize", 0.4, -1}, {"Solarize", 0.2, 4}},
        {{"Solarize", 0.6, 5}, {"AutoContrast", 0.6, -1}},
        {{"Invert", 0.6, -1}, {"Equalize", 1.0, -1}},
        {{"Color", 0.6, 4}, {"Contrast", 1.0, 8}},
        {{"Equalize", 0.8, -1}, {"Equalize", 0.6, -1}},
    },
    {
        {{"Invert", 0.1, -1}, {"Contrast", 0.2, 6}},
        {{"Rotate", 0.7, 2}, {"TranslateX", 0.3, 9}},
        {{"Sharpness", 0.8, 1}, {"Sharpness", 0.9, 3}},
        {{"ShearY", 0.5, 8}, {"TranslateY", 0.7, 9}},
        {{"AutoContrast", 0.5, -1}, {"Equalize", 0.9, -1}},
        {{"ShearY", 0.2, 7}, {"Posterize", 0.3, 7}},
        {{"Color", 0.4, 3}, {"Brightness", 0.6, 7}},
        {{"Sharpness", 0.3, 9}, {"Brightness", 0.7, 9}},
        {{"Equalize", 0.6, -1}, {"Equalize", 0.5, -1}},
        {{"Contrast", 0.6, 7}, {"Sharpness", 0.6, 5}},
        {{"Color", 0.7, 7}, {"TranslateX", 0.5, 8}},
        {{"Equalize", 0.3, -1}, {"AutoContrast", 0.4, -1}},
        {{"TranslateY", 0.4, 3}, {"Sharpness", 0.2, 6}},
        {{"Brightness", 0.9, 6}, {"Color", 0.2, 8}},
        {{"Solarize", 0.5, 2}, {"Invert", 0.0, -1}},
        {{"Equalize", 0.2, -1}, {"AutoContrast", 0.6, -1}},
        {{"Equalize", 0.2, -1}, {"Equalize", 0.6, -1}},
        {{"Color", 0.9, 9}, {"Equalize", 0.6, -1}},
        {{"AutoContrast", 0.8, -1}, {"Solarize", 0.2, 8}},
        {{"Brightness", 0.1, 3}, {"Color", 0.7, 0}},
        {{"Solarize", 0.4, 5}, {"AutoContrast", 0.9, -1}},
        {{"TranslateY", 0.9, 9}, {"TranslateY", 0.7, 9}},
        {{"AutoContrast", 0.9, -1}, {"Solarize", 0.8, 3}},
        {{"Equalize", 0.8, -1}, {"Invert", 0.1, -1}},
        {{"TranslateY", 0.7, 9}, {"AutoContrast", 0.9, -1}},
    },
    {
        {{"ShearX", 0.9, 4}, {"Invert", 0.2, -1}},
        {{"ShearY", 0.9, 8}, {"Invert", 0.7, -1}},
        {{"Equalize", 0.6, -1}, {"Solarize", 0.6, 6}},
        {{"Invert", 0.9, -1}, {"Equalize", 0.6, -1}},
        {{"Equalize", 0.6, -1}, {"Rotate", 0.9, 3}},
        {{"ShearX", 0.9, 4}, {"AutoContrast", 0.8, -1}},
        {{"ShearY", 0.9, 8}, {"Invert", 0.4, -1}},
        {{"ShearY", 0.9, 5}, {"Solarize", 0.2, 6}},
        {{"Invert", 0.9, -1}, {"AutoContrast", 0.8, -1}},
        {{"Equalize", 0.6, -1}, {"Rotate", 0.9, 3}},
        {{"ShearX", 0.9, 4}, {"Solarize", 0.3, 3}},
        {{"ShearY", 0.8, 8}, {"Invert", 0.7, -1}},
        {{"Equalize", 0.9, -1}, {"TranslateY", 0.6, 6}},
        {{"Invert", 0.9, -1}, {"Equalize", 0.6, -1}},
        {{"Contrast", 0.3, 3}, {"Rotate", 0.8, 4}},
        {{"Invert", 0.8, -1}, {"TranslateY", 0.0, 2}},
        {{"ShearY", 0.7, 6}, {"Solarize", 0.4, 8}},
        {{"Invert", 0.6, -1}, {"Rotate", 0.8, 4}},
        {{"ShearY", 0.3, 7}, {"TranslateX", 0.9, 3}},
        {{"ShearX", 0.1, 6}, {"Invert", 0.6, -1}},
        {{"Solarize", 0.7, 2}, {"TranslateY", 0.6, 7}},
        {{"ShearY", 0.8, 4}, {"Invert", 0.8, -1}},
        {{"ShearX", 0.7, 9}, {"TranslateY", 0.8, 3}},
        {{"ShearY", 0.8, 5}, {"AutoContrast", 0.7, -1}},
        {{"ShearX", 0.7, 2}, {"Invert", 0.1, -1}},
    },
};

/* Not at all, and with both signs. */
static void parts_of(const Part *part, Single ret[3])
{
    int bin = part->bin < 0 ? 0 : part->bin;
    ret[0] = (Single){.p = 1 - part->p};
    for (int i = 1; i < 3; i++) {
        ret[i].p = part->p / 2;
        key_of_table(&auto_space, part->name, bin, i == 1 || !is_signed(part->name) ? 1 : -1,
                     ret[i].key);
    }
}

static void expect_pair(const Part pair[2])
{
    Single a[3], b[3];
    char key[2 * KEY];
    parts_of(&pair[0], a);
    parts_of(&pair[1], b);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            join(a[i].key, b[k].key, key);
            expect_key(key, a[i].p * b[k].p / 25);
        }
}

static void check_auto(int policy, const char *text)
{
    for (int i = 0; i < 25; i++)
        expect_pair(policies[policy][i]);
    count_plans(text);
}

TEST(auto_augment_is_as_published)
{
    check_auto(0, "auto_augment imagenet");
    check_auto(1, "auto_augment cifar10");
    check_auto(2, "auto_augment svhn");
}

/* ---- AugMix ---- */

/* Which of 20 equally likely parts of the distribution a number is in, for its cumulative share. */
static void count_share(double cumulative)
{
    char key[KEY];
    snprintf(key, KEY, "%d", (int)fmin(cumulative * 20, 19));
    count_key(key);
}

static void expect_shares(void)
{
    char key[KEY];
    for (int i = 0; i < 20; i++) {
        snprintf(key, KEY, "%d", i);
        expect_key(key, 0.05);
    }
}

typedef void CountPlan(const PenSamplePlan *plan);

static void count_mixes(const char *text, CountPlan *count, const char *what)
{
    uint64_t n = scaled(1000000, 8000);
    PenProgram *p = program(text);
    for (uint64_t i = 0; p && i < n; i++)
        count(plan_of(p, i));
    pen__program_free(&p);
    check_table(what);
}

static void count_original(const PenSamplePlan *plan)
{
    count_share(plan->steps[1].u.weight); /* Beta(1, 1) is even */
}

static float first_weight(const PenSamplePlan *plan)
{
    uint32_t i = 1;
    while (plan->steps[i].kind != PEN_STEP_BLEND_ADD)
        i++;
    return plan->steps[i].u.weight;
}

/* One of three numbers of Dirichlet(1, 1, 1) is below x with 1 - (1 - x)^2. */
static void count_chain(const PenSamplePlan *plan)
{
    double rest = 1 - first_weight(plan) / (1.0 - plan->steps[1].u.weight);
    count_share(1 - rest * rest);
}

/* Steps of the first chain that can be seen: moves of magnitude 0 cannot. */
static void count_depth(const PenSamplePlan *plan)
{
    char key[KEY];
    int n = 0;
    while (plan->steps[2 + n].kind != PEN_STEP_BLEND_ADD)
        n++;
    snprintf(key, KEY, "%d", n);
    count_key(key);
}

static void expect_depths(double seen)
{
    double p[4] = {0}, hidden = 1 - seen;
    p[0] = (hidden + hidden * hidden + hidden * hidden * hidden) / 3;
    p[1] = (seen + 2 * seen * hidden + 3 * seen * hidden * hidden) / 3;
    p[2] = (seen * seen + 3 * seen * seen * hidden) / 3;
    p[3] = seen * seen * seen / 3;
    for (int i = 0; i < 4; i++)
        expect_key((char[2]){(char)('0' + i)}, p[i]);
}

static void count_links(const PenSamplePlan *plan)
{
    for (uint32_t i = 2; i + 1 < plan->n_steps; i++) {
        char key[KEY];
        if (plan->steps[i].kind == PEN_STEP_BLEND_ADD)
            continue;
        key_of_step(&plan->steps[i], key);
        count_key(key);
    }
}

static void expect_links(int severity, bool all)
{
    uint32_t n = 0;
    double seen = 0, p;
    char key[KEY];
    for (uint32_t k = 1; k < PEN_LEN(names); k++)
        n += all || !is_factor(names[k]);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t k = 1; k < PEN_LEN(names); k++)
            for (int i = 0; i < 2 * severity && (all || !is_factor(names[k])); i++) {
                key_of_table(&mix_space, names[k], i / 2, i % 2 && is_signed(names[k]) ? -1 : 1,
                             key);
                p = key[0] ? 0.5 / severity / n : 0;
                seen += pass ? 0 : p;
                if (pass)
                    expect_key(key, p / seen);
            }
}

TEST(aug_mix_is_as_published)
{
    expect_shares();
    count_mixes("aug_mix", count_original, "aug_mix: weight of the original");
    expect_shares();
    count_mixes("aug_mix", count_chain, "aug_mix: weight of a chain");
    expect_depths(1 - 5.0 / 39);
    count_mixes("aug_mix", count_depth, "aug_mix: depth");
    expect_links(3, true);
    count_mixes("aug_mix", count_links, "aug_mix: operations");
    expect_links(10, false);
    count_mixes("aug_mix severity=10 all_ops=no mixture_width=1 chain_depth=1", count_links,
                "aug_mix: operations without colors");
}

/* ---- 3-Augment ---- */

static void count_three(const PenSamplePlan *plan)
{
    char key[KEY];
    snprintf(key, KEY, "%d, %u", plan->steps[1].kind, plan->n_steps);
    count_key(key);
}

static void count_sigma(const PenSamplePlan *plan)
{
    if (plan->steps[1].kind == PEN_STEP_BLUR)
        count_share((plan->steps[1].u.blur.sigma - 0.1) / 1.9);
}

TEST(three_augment_is_as_published)
{
    static const int32_t kinds[] = {PEN_STEP_GREY, PEN_STEP_SOLARIZE, PEN_STEP_BLUR};
    char key[KEY];
    for (int i = 0; i < 3; i++) {
        snprintf(key, KEY, "%d, 5", kinds[i]);
        expect_key(key, 1.0 / 3);
    }
    count_mixes("three_augment", count_three, "three_augment");
    expect_shares();
    count_mixes("three_augment", count_sigma, "three_augment: sigma of the blur");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(rand_augment_is_as_published);
    RUN(trivial_augment_is_as_published);
    RUN(auto_augment_is_as_published);
    RUN(aug_mix_is_as_published);
    RUN(three_augment_is_as_published);
    return TEST_END();
}
