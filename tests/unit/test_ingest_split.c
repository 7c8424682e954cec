/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a plan: which items each task has. */
#include "base/crc32c.h"
#include "ingest_plan_help.h"

typedef uint64_t (*SizeFn)(uint64_t i, uint64_t n);

static int add_inputs(PenPlanDraft *d, uint64_t n, SizeFn size, PenError *err)
{
    PenInputs *in = &d->inputs;
    uint32_t root;
    uint16_t column = 0;
    int r = pen__inputs_add_root(in, PEN_ROOT_FOLDER, "photos", 6, 0, &root, err);
    if (r == PEN_OK)
        r = pen__inputs_add_column(in, "image", PEN_TYPE_IMAGE, 0, &column, err);
    for (uint64_t i = 0; i < n && r == PEN_OK; i++) {
        char key[32];
        PenCell cell = {.kind = PEN_PART_FILE,
                        .path = PEN_PATH_KEY,
                        .column = column,
                        .source = root,
                        .bytes = size(i, n)};
        int bytes = snprintf(key, sizeof key, "%08d.jpg", (int)i);
        r = pen__inputs_add(in, key, (size_t)bytes, NULL, &cell, 1, err);
    }
    return r;
}

/* A plan of files that do not exist, in this order. */
static int write_plan(uint64_t n, SizeFn size, PenError *err)
{
    ask("photos");
    settings.order = PEN_PACK_SOURCE;
    PenPlanDraft d = {.request = &request, .block_samples = 32};
    d.inputs.settings = &settings;
    d.inputs.kind = PEN_ROOT_FOLDER;
    d.inputs.what = PEN_INPUT_IMAGES;
    int r = add_inputs(&d, n, size, err);
    if (r == PEN_OK)
        r = pen__plan_schema_make(&d.inputs, &request, &d.shape, err);
    if (r == PEN_OK)
        r = pen__order_make(&d, err);
    if (r == PEN_OK)
        r = pen__plan_write(&d, at("plan"), err);
    pen__sequence_close(&d.sequence);
    pen__plan_schema_free(&d.shape);
    pen__inputs_free(&d.inputs);
    return r;
}

/* The smallest and the largest part, in bytes. */
typedef struct Spread {
    uint64_t least, most;
} Spread;

/* Checks that every item is in exactly one part. */
static void spread_of(const PenPlan *plan, uint32_t n_tasks, SizeFn size, Spread *ret)
{
    Spread s = {UINT64_MAX, 0};
    uint64_t n = pen__plan_info(plan)->n_items, end = 0;
    CHECK_GOES(pen__plan_split(plan, 0, n_tasks, &end, &err));
    CHECK_INT(end, 0);
    for (uint32_t t = 1; t <= n_tasks; t++) {
        uint64_t first = end, bytes = 0;
        CHECK_GOES(pen__plan_split(plan, t, n_tasks, &end, &err));
        CHECK(end >= first && end <= n);
        for (uint64_t i = first; i < end; i++)
            bytes += size(i, n);
        s.least = PEN_MIN(s.least, bytes);
        s.most = PEN_MAX(s.most, bytes);
    }
    CHECK_INT(end, n);
    *ret = s;
}

/* Small files first, then files that are up to 50 times as large, as of two sources in order. */
static uint64_t skewed(uint64_t i, uint64_t n)
{
    uint32_t draw = (uint32_t)(i * 2654435761u);
    return i < n / 2 ? 500 + draw % 1000 : 20000 + draw % 30000;
}

TEST(a_thousand_tasks_have_the_same_bytes)
{
    enum { N = 200000, TASKS = 1000 };
    PenPlan *plan = NULL;
    CHECK_GOES(write_plan(N, skewed, &err));
    CHECK_GOES(pen__plan_open(at("plan"), &plan, &err));
    CHECK_INT(pen__plan_marks(plan).stride, 49);
    Spread s = {0, 0}, other;
    spread_of(plan, TASKS, skewed, &s);
    double mean = (double)pen__plan_info(plan)->source_bytes / TASKS;
    printf("a_thousand_tasks: %.4f to %.4f of the mean\n", (double)s.least / mean,
           (double)s.most / mean);
    CHECK((double)s.least > 0.98 * mean && (double)s.most < 1.02 * mean);
    spread_of(plan, 7, skewed, &other);
    pen__plan_close(&plan);
}

static uint64_t none(uint64_t i, uint64_t n)
{
    (void)i;
    (void)n;
    return 0;
}

static uint64_t one_giant(uint64_t i, uint64_t n)
{
    (void)n;
    return i == 3 ? (uint64_t)1 << 40 : 1;
}

static uint64_t beyond_all(uint64_t i, uint64_t n)
{
    (void)n;
    return i % 3 == 0 ? UINT64_MAX - 1 : 5;
}

static void check_all_parts(uint64_t n, SizeFn size)
{
    PenPlan *plan = NULL;
    CHECK_GOES(write_plan(n, size, &err));
    CHECK_GOES(pen__plan_open(at("plan"), &plan, &err));
    static const uint32_t counts[] = {1, 2, 3, 10, 11, 1000};
    Spread s;
    for (size_t i = 0; i < PEN_LEN(counts); i++)
        spread_of(plan, counts[i], size, &s);
    uint64_t end = 0;
    CHECK_GOES(pen__plan_split(plan, UINT32_MAX, UINT32_MAX, &end, &err));
    CHECK_INT(end, n);
    pen__plan_close(&plan);
}

TEST(every_input_is_in_one_part)
{
    static const uint64_t counts[] = {0, 1, 2, 10, 500};
    for (size_t i = 0; i < PEN_LEN(counts); i++) {
        check_all_parts(counts[i], none);
        check_all_parts(counts[i], one_giant);
        check_all_parts(counts[i], beyond_all);
        CHECK_OK_SO_FAR();
    }
}

TEST(inputs_without_sizes_are_split_by_their_number)
{
    PenPlan *plan = NULL;
    CHECK_GOES(write_plan(100, none, &err));
    CHECK_GOES(pen__plan_open(at("plan"), &plan, &err));
    for (uint32_t t = 0; t <= 10; t++) {
        uint64_t found = 0;
        CHECK_GOES(pen__plan_split(plan, t, 10, &found, &err));
        CHECK_INT(found, t * 10);
    }
    pen__plan_close(&plan);
}

/* Turns the plan into one that an earlier release has written. */
static void make_old(void)
{
    FILE *f = fopen(at("plan"), "rb");
    uint8_t data[65536];
    size_t bytes = fread(data, 1, sizeof data, f);
    fclose(f);
    uint8_t *foot = data + bytes - PEN_PLAN_FOOT;
    uint64_t texts = pen__load64(foot + PEN_FOOT_TEXTS_OFFSET);
    uint64_t n = pen__load64(foot + PEN_FOOT_N_ITEMS) * 8;
    memmove(data + texts - n, data + texts, bytes - texts);
    bytes -= n;
    foot -= n;
    pen__store64(data + 8, PEN_PLAN_UNMARKED);
    pen__store32(foot + PEN_FOOT_VERSION, PEN_PLAN_UNMARKED);
    pen__store64(foot + PEN_FOOT_FILE_BYTES, bytes);
    pen__store64(foot + PEN_FOOT_TEXTS_OFFSET, texts - n);
    pen__store64(foot + PEN_FOOT_STRIDE, 0); /* and the checksum of the marks */
    pen__store32(foot + PEN_FOOT_CRC,
                 pen__crc32c(0, foot + PEN_FOOT_FILE_BYTES, PEN_PLAN_FOOT - PEN_FOOT_FILE_BYTES));
    help_file("plan", data, bytes);
}

/* Tasks that have begun with it keep their parts. */
TEST(plans_of_an_earlier_release_are_split_by_number)
{
    PenPlan *plan = NULL;
    CHECK_GOES(write_plan(100, skewed, &err));
    make_old();
    CHECK_GOES(pen__plan_open(at("plan"), &plan, &err));
    for (uint32_t t = 0; t <= 3; t++) {
        static const uint64_t expected[] = {0, 33, 66, 100};
        uint64_t found = 0;
        CHECK_GOES(pen__plan_split(plan, t, 3, &found, &err));
        CHECK_INT(found, expected[t]);
    }
    pen__plan_close(&plan);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(a_thousand_tasks_have_the_same_bytes);
    RUN(every_input_is_in_one_part);
    RUN(inputs_without_sizes_are_split_by_their_number);
    RUN(plans_of_an_earlier_release_are_split_by_number);
    help_end();
    return TEST_END();
}
