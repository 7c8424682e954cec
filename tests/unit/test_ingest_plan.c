/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/plan/plan.h"

#include "base/rng.h"
#include "ingest_plan_help.h"

/* ---- folders --------------------------------------------------------------------------------- */

TEST(folder_in_source_order)
{
    PenPlan *plan = NULL;
    ask("f");
    settings.order = PEN_PACK_SOURCE;
    CHECK_GOES(make_open(&plan, &err));
    const PenPlanInfo *info = pen__plan_info(plan);
    CHECK_INT(info->n_items, 6);
    CHECK_INT(info->n_known, 0);
    CHECK_INT(info->in_order, 0);
    CHECK_INT(info->source_bytes, 6 * 9);
    CHECK_INT(info->n_fields, 2);
    CHECK_STR(info->fields[0].name, "image");
    CHECK_INT(info->fields[0].type, PEN_TYPE_IMAGE);
    CHECK_STR(info->fields[1].name, "label");
    CHECK_INT(info->fields[1].type, PEN_TYPE_I64);
    CHECK_INT(info->class_field, 1);
    CHECK_INT(info->n_classes, 3);
    CHECK_STR(info->classes[2], "eel");
    CHECK_STR(info->settings, "{\"mode\":\"tile\"}");
    char found[256];
    keys(plan, found, sizeof found);
    CHECK_STR(found, ALL_KEYS);

    PenBuf scratch = {0}, data = {0};
    PenItem item;
    PenPartReader *reader = NULL;
    uint64_t disk = 0;
    char name[300];
    CHECK_GOES(pen__part_reader_open(plan, &reader, &err));
    CHECK_GOES(pen__plan_item(plan, 4, &item, &scratch, &err));
    CHECK_INT(item.n_parts, 2);
    CHECK_STR(item.parts[0].path, "dog/2.jpg");
    CHECK_INT(number(&item.parts[1]), 1);
    CHECK_GOES(pen__part_read(reader, &item.parts[0], &data, &disk, &err));
    CHECK(help_is(data.data, data.bytes, "dog/2.jpg"));
    CHECK(disk % 512 == 0);
    pen__part_name(plan, &item.parts[0], name, sizeof name);
    CHECK_STR(name, at("f/dog/2.jpg"));
    CHECK_GOES(pen__part_read(reader, &item.parts[1], &data, NULL, &err));
    CHECK_INT(data.bytes, 8);
    CHECK_FAILS(pen__plan_item(plan, 6, &item, &scratch, &err), PEN_E_NOT_FOUND,
                "below 6, found 6");
    pen__buf_free(&scratch);
    pen__buf_free(&data);
    pen__part_reader_close(&reader);
    pen__plan_close(&plan);
}

/* The order as the header describes it, made a second time. */
TEST(shuffled_order_is_as_described)
{
    char found[256], expected[256] = "", *names[] = {"cat/1.jpg", "cat/2.jpg", "cat/3.jpg",
                                                     "dog/1.jpg", "dog/2.jpg", "eel/9.png"};
    ask("f");
    settings.seed = 0x123456789abcull;
    plan_keys(found, sizeof found);
    CHECK_OK_SO_FAR();
    PenRng rng = pen__rng_init(settings.seed, 1);
    for (uint64_t i = 5; i > 0; i--) {
        uint64_t k = pen__rng_below(&rng, i + 1);
        char *swap = names[i];
        names[i] = names[k];
        names[k] = swap;
    }
    for (int i = 0; i < 6; i++)
        help_add(expected, sizeof expected, "%s%s", i ? " " : "", names[i]);
    CHECK_STR(found, expected);
    char other[256];
    settings.seed = 0;
    plan_keys(other, sizeof other);
    CHECK(strcmp(found, other) != 0);
    /* Written down once: it must never change. */
    CHECK_STR(other, "dog/1.jpg cat/1.jpg cat/2.jpg cat/3.jpg dog/2.jpg eel/9.png");
}

TEST(fraction_of_each_class)
{
    char found[256];
    ask("f");
    settings.order = PEN_PACK_SOURCE;
    settings.fraction = 0.5; /* 2 of 3, 1 of 2, 1 of 1 */
    plan_keys(found, sizeof found);
    int cats = 0, dogs = 0;
    for (char *p = found; (p = strstr(p, "cat/")); p++)
        cats++;
    for (char *p = found; (p = strstr(p, "dog/")); p++)
        dogs++;
    CHECK_INT(cats, 2);
    CHECK_INT(dogs, 1);
    CHECK(strstr(found, "eel/9.png"));
    CHECK(strncmp(found, "cat/", 4) == 0); /* still sorted */
    /* The shuffled order takes the same ones. */
    char shuffled[256];
    settings.order = PEN_PACK_SHUFFLED;
    plan_keys(shuffled, sizeof shuffled);
    CHECK_INT(strlen(found), strlen(shuffled));
    char *rest = NULL;
    for (char *word = strtok_r(found, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        CHECK(strstr(shuffled, word));
    settings.fraction = 0;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "fraction: expected more than 0");
    settings.fraction = 1.01;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "found 1.01");
    settings.fraction = __builtin_nan("");
    CHECK_PLAN_FAILS(PEN_E_INVALID, "fraction");
}

static void check_fraction(double fraction, uint64_t expected)
{
    PenPlan *plan = NULL;
    settings.fraction = fraction;
    CHECK_GOES(make_open(&plan, &err));
    CHECK_INT(pen__plan_info(plan)->n_items, expected);
    pen__plan_close(&plan);
}

/* Without classes it is a share of all; rounding errors do not add one. */
TEST(fraction_of_all)
{
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "flat/%03d.jpg", i);
        help_text(name, "x");
    }
    ask("flat");
    check_fraction(0.07, 7); /* 0.07 * 100 is 7.000000000000001 */
    CHECK_OK_SO_FAR();
    check_fraction(0.071, 8);
    CHECK_OK_SO_FAR();
    check_fraction(1e-9, 1);
    CHECK_OK_SO_FAR();
    check_fraction(0.999, 100);
    CHECK_OK_SO_FAR();
    check_fraction(1, 100);
}

TEST(bad_settings)
{
    ask("f");
    settings.n_sources = 0;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "sources: expected");
    ask("f");
    settings.order = 7;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "order: expected shuffled or source");
    ask("f");
    settings.block_samples = ((uint64_t)1 << 31) + 1;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "block samples");
}

/* ---- identity -------------------------------------------------------------------------------- */

static void get_id(uint8_t ret[32])
{
    PenPlan *plan = NULL;
    CHECK_GOES(make_open(&plan, &err));
    memcpy(ret, pen__plan_info(plan)->id, 32);
    pen__plan_close(&plan);
}

TEST(id_covers_what_matters_and_no_more)
{
    uint8_t id[32], other[32];
    ask("f");
    get_id(id);
    make_folder("elsewhere/g");
    CHECK_OK_SO_FAR();
    ask("elsewhere/g");
    get_id(other);
    CHECK_MEM(other, id, 32);
    settings.n_tasks = 3; /* the shards' ids have it */
    get_id(other);
    CHECK_MEM(other, id, 32);
    ask("f");
    settings.seed = 1;
    get_id(other);
    CHECK(memcmp(other, id, 32) != 0);
    ask("f");
    request.settings_text = "{}";
    get_id(other);
    CHECK(memcmp(other, id, 32) != 0);
    ask("f");
    settings.block_samples = 3;
    get_id(other);
    CHECK(memcmp(other, id, 32) != 0);
    help_text("elsewhere/g/eel/9.png", "another size");
    ask("elsewhere/g");
    get_id(other);
    CHECK(memcmp(other, id, 32) != 0);
}

TEST(tasks_and_base_are_recorded)
{
    PenPlan *plan = NULL;
    PenField fields[] = {{.name = "image", .type = PEN_TYPE_IMAGE},
                         {.name = "label", .type = PEN_TYPE_I64}};
    const char *classes[] = {"ant", "cat", "dog", "eel"};
    PenPackInfo base = {.n_fields = 2,
                        .fields = fields,
                        .class_field = 1,
                        .n_classes = 4,
                        .classes = classes,
                        .block_samples = 48,
                        .id = "0123456789abcde"};
    uint8_t id[32], other[32];
    ask("f");
    settings.n_tasks = 5;
    request.base = &base;
    CHECK_GOES(make_open(&plan, &err));
    const PenPlanInfo *info = pen__plan_info(plan);
    CHECK_MEM(info->base, base.id, 16);
    CHECK_INT(info->block_samples, 48);
    CHECK_INT(info->n_classes, 4);
    pen__plan_close(&plan);
    get_id(id);
    base.id[3] ^= 1; /* the same samples appended to another pack are other shards */
    get_id(other);
    CHECK(memcmp(id, other, 32) != 0);
    settings.block_samples = 32;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "expected 48 as in the pack, found 32");
}

/* ---- keys ------------------------------------------------------------------------------------ */

TEST(keys_that_come_twice)
{
    const char *both[] = {at("f"), at("elsewhere/g")};
    ask("f");
    settings.sources = both;
    settings.n_sources = 2;
    CHECK_PLAN_FAILS(PEN_E_EXISTS, "elsewhere/g/");
    CHECK_PLAN_FAILS(PEN_E_EXISTS, "twice: ");
    help_text("twice.csv", "path,label\nf/cat/1.jpg,1\nf/cat/2.jpg,2\nf/cat/1.jpg,3\n");
    ask("twice.csv");
    CHECK_PLAN_FAILS(PEN_E_EXISTS, "f/cat/1.jpg twice: ");
    CHECK_PLAN_FAILS(PEN_E_EXISTS, "(input 0) and ");
    CHECK_PLAN_FAILS(PEN_E_EXISTS, "(input 2)");
    settings.fraction = 0.1; /* also when not all of them are taken */
    CHECK_PLAN_FAILS(PEN_E_EXISTS, "twice");
}

/* ---- photographs ----------------------------------------------------------------------------- */

TEST(photographs)
{
    const char *photos = getenv("PENSTOCK_PHOTOS");
    if (!photos)
        photos = "../shared/data/photos";
    struct stat st;
    if (stat(photos, &st) < 0)
        SKIP("no photographs here");
    ask("f");
    settings.sources = &photos;
    CHECK_GOES(make_and_read(&err));
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    make_folder("f");
    RUN(folder_in_source_order);
    RUN(shuffled_order_is_as_described);
    RUN(fraction_of_each_class);
    RUN(fraction_of_all);
    RUN(bad_settings);
    RUN(id_covers_what_matters_and_no_more);
    RUN(tasks_and_base_are_recorded);
    RUN(keys_that_come_twice);
    RUN(photographs);
    help_end();
    return TEST_END();
}
