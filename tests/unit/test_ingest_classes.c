/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest_plan_help.h"

/* ---- classes --------------------------------------------------------------------------------- */

/* The labels of all items in source order, as text. */
static int labels(char out[128], PenError *err)
{
    PenPlan *plan = NULL;
    PenBuf scratch = {0};
    settings.order = PEN_PACK_SOURCE;
    out[0] = 0;
    int r = make_open(&plan, err);
    for (uint64_t i = 0; r == 0 && i < pen__plan_info(plan)->n_items; i++) {
        PenItem item;
        r = pen__plan_item(plan, i, &item, &scratch, err);
        if (r == 0)
            help_add(out, 128, "%d ", (int)number(&item.parts[1]));
    }
    pen__buf_free(&scratch);
    pen__plan_close(&plan);
    return r;
}

TEST(classes_from_another_pack)
{
    char found[128];
    const char *turned[] = {"zebra", "eel", "dog", "cat"};
    const char *fewer[] = {"cat", "dog"};
    PenPackInfo from = with_classes(turned, 4);
    ask("f");
    request.classes_from = &from;
    CHECK_GOES(labels(found, &err));
    CHECK_STR(found, "3 3 3 2 2 1 ");
    from = with_classes(fewer, 2);
    CHECK_PLAN_FAILS(PEN_E_NOT_FOUND, "class eel of ");
    CHECK_PLAN_FAILS(PEN_E_NOT_FOUND, "f/eel/9.png: expected one of the 2 classes");
    from.class_field = -1;
    from.n_classes = 0;
    settings.classes_from = "train.pen";
    CHECK_PLAN_FAILS(PEN_E_INVALID, "train.pen: expected a pack with classes");
    from = with_classes(turned, 4);
    ask("flat");
    request.classes_from = &from;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "expected sources with labels");
}

/* Names of folders are names, also when they are digits. */
TEST(folders_with_numbers_for_names)
{
    char found[128];
    help_text("digits/2/a.jpg", "x");
    help_text("digits/10/b.jpg", "x");
    ask("digits");
    CHECK_GOES(labels(found, &err));
    CHECK_STR(found, "0 1 "); /* "10" comes before "2" */
}

/* Labels of a list may be the names of the classes or their numbers. */
TEST(classes_for_a_list)
{
    char found[128];
    const char *digits[] = {"10", "2", "7"};
    PenPackInfo from = with_classes(digits, 3);
    help_text("n.csv", "path,label\nf/cat/1.jpg,2\nf/cat/2.jpg,10\n");
    ask("n.csv");
    request.classes_from = &from;
    CHECK_GOES(labels(found, &err));
    CHECK_STR(found, "1 0 "); /* all of them are names */
    help_text("n.csv", "path,label\nf/cat/1.jpg,2\nf/cat/2.jpg,0\n");
    CHECK_PLAN_FAILS(PEN_E_INVALID, "label 2 of "); /* class 2, or a new class named 0? */
    help_text("n.csv", "path,label\nf/cat/1.jpg,1\nf/cat/2.jpg,0\n");
    CHECK_GOES(labels(found, &err));
    CHECK_STR(found, "1 0 "); /* none of them is a name: they are numbers */
    help_text("n.csv", "path,label\nf/cat/1.jpg,2\nf/cat/2.jpg,3\n");
    CHECK_PLAN_FAILS(PEN_E_NOT_FOUND, "class 3 of ");
    help_text("n.csv", "path,label\nf/cat/1.jpg,2\nf/cat/2.jpg,-1\n");
    CHECK_PLAN_FAILS(PEN_E_NOT_FOUND, "class -1 of ");
}

/* ---- appending ------------------------------------------------------------------------------- */

static int is_known(void *ctx, const void *key, size_t key_bytes, PenError *reterr)
{
    const char *known = ctx;
    if (strcmp(known, "fail") == 0)
        return pen__fail(reterr, PEN_E_IO, "test", "cannot look");
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)key_bytes, (const char *)key);
    return strstr(known, text) != NULL;
}

TEST(known_keys_are_left_out)
{
    char found[256];
    const char *classes[] = {"cat", "dog", "eel"};
    PenPackInfo base = with_classes(classes, 3);
    ask("f");
    settings.order = PEN_PACK_SOURCE;
    request.base = &base;
    request.known = is_known;
    request.known_ctx = "cat/2.jpg dog/1.jpg";
    plan_keys(found, sizeof found);
    CHECK_STR(found, "cat/1.jpg cat/3.jpg dog/2.jpg eel/9.png");
    PenPlan *plan = NULL;
    request.known_ctx = ALL_KEYS;
    CHECK_GOES(make_open(&plan, &err));
    CHECK_INT(pen__plan_info(plan)->n_items, 0);
    CHECK_INT(pen__plan_info(plan)->n_known, 6);
    pen__plan_close(&plan);
    request.known_ctx = "fail";
    CHECK_PLAN_FAILS(PEN_E_IO, "cannot look");
    /* The fraction is one of all inputs, so that the same settings give nothing new. */
    settings.fraction = 0.5;
    request.known_ctx = "";
    plan_keys(found, sizeof found);
    request.known_ctx = found;
    CHECK_GOES(make_open(&plan, &err));
    CHECK_INT(pen__plan_info(plan)->n_items, 0);
    CHECK_INT(pen__plan_info(plan)->n_known, 4);
    pen__plan_close(&plan);
}

TEST(base_must_fit)
{
    const char *classes[] = {"cat", "dog", "eel"}, *others[] = {"cat", "eel", "dog"};
    PenPackInfo base = with_classes(classes, 3), from = with_classes(others, 3);
    PenField fields[3] = {{.name = "image", .type = PEN_TYPE_IMAGE},
                          {.name = "label", .type = PEN_TYPE_I64},
                          {.name = "text", .type = PEN_TYPE_TEXT}};
    base.fields = fields;
    ask("f");
    request.base = &base;
    CHECK_GOES(make(&err));
    base.n_classes = 2;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "class eel of ");
    base.n_classes = 3;
    request.classes_from = &from;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "leave --classes-from out");
    request.classes_from = NULL;
    base.n_fields = 3;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "field text: the pack has this field, but the sources do not");
    base.n_fields = 1;
    base.class_field = -1;
    CHECK_PLAN_FAILS(PEN_E_INVALID,
                     "field label: the sources have this field, but the pack does not");
    base.n_fields = 2;
    base.n_classes = 0;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "has no class names, found the class cat");
    fields[1].type = PEN_TYPE_F64;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "field label: expected f64 as in the pack, found i64");
    fields[1].type = PEN_TYPE_I64;
    fields[1].n_dims = 1;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "field label: expected i64 array");
    fields[1].n_dims = 0;
    fields[0].flags = PEN_FIELD_MASK;
    CHECK_PLAN_FAILS(PEN_E_INVALID, "field image: expected image (mask)");
}

/* The pack decides the order of the fields and what the values are. */
TEST(base_decides_types)
{
    PenField fields[] = {{.name = "f32", .type = PEN_TYPE_F32},
                         {.name = "note", .type = PEN_TYPE_TEXT},
                         {.name = "f64", .type = PEN_TYPE_F64},
                         {.name = "image", .type = PEN_TYPE_IMAGE}};
    PenPackInfo base = {.n_fields = 4, .fields = fields, .class_field = -1, .block_samples = 4};
    help_text("v.csv", "path,f64,note,f32\nf/cat/1.jpg,1,2,3\n");
    ask("v.csv");
    request.base = &base;
    PenPlan *plan = NULL;
    PenBuf scratch = {0};
    PenItem item;
    CHECK_GOES(make_open(&plan, &err));
    CHECK_GOES(pen__plan_item(plan, 0, &item, &scratch, &err));
    float single;
    double wide;
    CHECK_INT(item.parts[0].bytes, 4);
    memcpy(&single, item.parts[0].data, 4);
    CHECK(single == 3.0f);
    CHECK(help_is(item.parts[1].data, item.parts[1].bytes, "2"));
    memcpy(&wide, item.parts[2].data, 8);
    CHECK(wide == 1.0);
    CHECK_INT(item.parts[3].kind, PEN_PART_FILE);
    pen__buf_free(&scratch);
    pen__plan_close(&plan);
    help_text("v.csv", "path,f64,note,f32\nf/cat/1.jpg,x,2,3\n");
    CHECK_PLAN_FAILS(PEN_E_INVALID, "field f64: expected f64 as in the pack, found text");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    make_folder("f");
    help_text("flat/1.jpg", "x");
    RUN(classes_from_another_pack);
    RUN(folders_with_numbers_for_names);
    RUN(classes_for_a_list);
    RUN(known_keys_are_left_out);
    RUN(base_must_fit);
    RUN(base_decides_types);
    help_end();
    return TEST_END();
}
