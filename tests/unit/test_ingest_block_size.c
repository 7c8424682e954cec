/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest_plan_help.h"

/* ---- block size ------------------------------------------------------------------------------ */

static void check_block_samples(uint64_t expected)
{
    PenPlan *plan = NULL;
    CHECK_GOES(make_open(&plan, &err));
    CHECK_INT(pen__plan_info(plan)->block_samples, expected);
    pen__plan_close(&plan);
}

static void make_sized(const char *root, int n, size_t bytes)
{
    char *data = calloc(1, bytes + 1);
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%d.jpg", root, i);
        help_file(name, data, bytes);
    }
    free(data);
}

TEST(block_samples_by_size)
{
    make_sized("k1", 4, 131072); /* 32 of them are 4 MiB */
    ask("k1");
    check_block_samples(32);
    CHECK_OK_SO_FAR();
    make_sized("k1", 1, 131076); /* one a little larger: their mean is too */
    check_block_samples(16);
    CHECK_OK_SO_FAR();
    settings.block_samples = 5;
    check_block_samples(5);
    CHECK_OK_SO_FAR();
    make_sized("k2", 2, 5 << 20);
    ask("k2");
    check_block_samples(1);
    CHECK_OK_SO_FAR();
    make_sized("k3", 3, 0);
    ask("k3");
    check_block_samples(65536);
}

TEST(block_samples_by_probing)
{
    make_png("px/a/1.png", 512, 256);
    make_png("px/a/2.png", 512, 256);
    CHECK_OK_SO_FAR();
    ask("px");
    settings.mode = PEN_MODE_RAW; /* 393,216 bytes and a label's 8 */
    check_block_samples(8);
    CHECK_OK_SO_FAR();
    settings.max_side = 256; /* 98,304 */
    check_block_samples(32);
    CHECK_OK_SO_FAR();
    settings.max_side = 0;
    settings.short_side = 64; /* 128 * 64 * 3 = 24,576 */
    check_block_samples(128);
    CHECK_OK_SO_FAR();
    settings.short_side = 1024; /* never enlarged */
    check_block_samples(8);
    CHECK_OK_SO_FAR();
    settings.short_side = 0;
    settings.mode = PEN_MODE_ENCODE; /* 131,072 / 4 = 32,768, and the label */
    check_block_samples(64);
    CHECK_OK_SO_FAR();
    settings.mode = PEN_MODE_SMART;
    settings.smart_threshold = 512 * 256 * 3; /* all of them raw */
    check_block_samples(8);
    CHECK_OK_SO_FAR();
    settings.smart_threshold--;
    check_block_samples(64);
    CHECK_OK_SO_FAR();
    settings.mode = PEN_MODE_MIX;
    settings.raw_share = 0.25; /* 98,304 and a quarter more of what little the files take */
    check_block_samples(32);
    CHECK_OK_SO_FAR();
    settings.raw_share = 0; /* resized, so encoded anew: a quarter byte a pixel */
    settings.max_side = 511;
    check_block_samples(128);
    CHECK_OK_SO_FAR();
    settings.raw_share = 0.25;
    settings.max_side = 0;
    settings.mode = PEN_MODE_RAW; /* a file that is no image counts with its size */
    help_text("px/a/0.png", "no image");
    help_text("px/a/4.png", "no image");
    check_block_samples(16);
}

/* A mask is kept as it is, and so counts with its size. */
TEST(block_samples_with_a_mask)
{
    make_png("px/m.png", 512, 256);
    help_text("px/m.csv", "path,mask\na/1.png,m.png\n");
    ask("px/m.csv");
    settings.mode = PEN_MODE_RAW;
    check_block_samples(8);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(block_samples_by_size);
    RUN(block_samples_by_probing);
    RUN(block_samples_with_a_mask);
    help_end();
    return TEST_END();
}
