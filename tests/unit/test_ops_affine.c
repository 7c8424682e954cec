/* SPDX-License-Identifier: Apache-2.0 */
/* Angles against 300-bit arithmetic, matrices against those of torchvision and Pillow. */
#include "base/attr.h"
#include "ops/operations/affine.h"
#include "ops/operations/trig.h"
#include "test.h"

static const double angles[][5] = {
    /* x, sin, cos, tan, atan */
    {0x1.999999999999ap-4, 0x1.98eaecb8bcb2cp-4, 0x1.fd712f9a817c1p-1, 0x1.9af8877430b80p-4,
     0x1.983e282e2cc4dp-4},
    {-0x1.0c152382d7365p-1, -0x1.fffffffffffffp-2, 0x1.bb67ae8584cabp-1, -0x1.279a74590331cp-1,
     -0x1.edec9c192bfaap-2},
    {0x1.921fb54442d18p-1, 0x1.6a09e667f3bccp-1, 0x1.6a09e667f3bcdp-1, 0x1.fffffffffffffp-1,
     0x1.54e04c05d06a0p-1},
    {0x1.921fb54442d18p+0, 0x1.0000000000000p+0, 0x1.1a62633145c07p-54, 0x1.d02967c31cdb5p+53,
     0x1.00fe987ed02ffp+0},
    {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53, -0x1.0000000000000p+0, -0x1.1a62633145c07p-53,
     0x1.433b8a322ddd3p+0},
    {0x1.4cccccccccccdp+1, 0x1.07efcbba085bbp-1, -0x1.b6ba1f680f470p-1, -0x1.340478a535b2bp-1,
     0x1.34209a8c10980p+0},
    {-0x1.8cccccccccccdp+2, 0x1.54558dbbecd1dp-4, 0x1.fe3ac4079a9cep-1, 0x1.5583dee907af9p-4,
     -0x1.692fa44218618p+0},
    {0x1.9000000000000p+3, -0x1.0fa78cc21cfbbp-4, 0x1.fedf6a8227774p-1, -0x1.104100d067f5bp-4,
     0x1.7daff85a63058p+0},
    {0x1.12e0be826d695p-30, 0x1.12e0be826d695p-30, 0x1.0000000000000p+0, 0x1.12e0be826d695p-30,
     0x1.12e0be826d695p-30},
    {0x1.c6d1b4e3fefb0p+1, -0x1.99c14c69190dbp-2, -0x1.d538ceb38d05fp-1, 0x1.bf1c9780859d9p-2,
     0x1.4be4e80c540ccp+0},
    {0x1.ecf1a77e5babcp+2, 0x1.fa1e1432379a3p-1, 0x1.358e7d67cb4b3p-3, 0x1.a28dc3213076ap+2,
     0x1.71125b0f07320p+0},
    {0x1.7fb7194bda7bap+0, 0x1.fead44b228f8ap-1, 0x1.2648c86e2947dp-4, 0x1.bc3dcb532f7dbp+3,
     0x1.f703da845dc78p-1},
};

TEST(trig_is_rounded_correctly)
{
    for (uint32_t i = 0; i < PEN_LEN(angles); i++) {
        CHECK(pen__real_sin(angles[i][0]) == angles[i][1]);
        CHECK(pen__real_cos(angles[i][0]) == angles[i][2]);
        CHECK(pen__real_tan(angles[i][0]) == angles[i][3]);
        CHECK(pen__real_atan(angles[i][0]) == angles[i][4]);
    }
    CHECK(pen__real_sin(0) == 0 && pen__real_cos(0) == 1 && pen__real_tan(0) == 0);
    CHECK(pen__real_atan(0) == 0);
    CHECK(pen__real_degrees(pen__real_radians(90)) == 90);
}

static const struct {
    PenAffine map;
    double matrix[6];
} affine[] = {
    {{.center = {112.0, 100.5},
      .angle = 30.0,
      .translate = {0, 0},
      .scale = 1.0,
      .shear = {0.0, 0.0}},
     {0x1.bb67ae8584cabp-1, 0x1.fffffffffffffp-2, -0x1.19f57169a862cp+5, -0x1.fffffffffffffp-2,
      0x1.bb67ae8584cabp-1, 0x1.15db97f92abcep+6}},
    {{.center = {0.0, 0.0},
      .angle = 0.0,
      .translate = {0, 0},
      .scale = 1.0,
      .shear = {17.188733853924695, 0.0}},
     {0x1.0000000000000p+0, 0x1.3cc2a44e29998p-2, 0x0.0p+0, -0x0.0p+0, 0x1.0000000000000p+0,
      0x0.0p+0}},
    {{.center = {50.0, 40.0},
      .angle = -12.25,
      .translate = {7, -3},
      .scale = 0.8,
      .shear = {10.0, -20.0}},
     {0x1.309de122758c1p+0, -0x1.0cc887d1a8b31p-5, -0x1.09c5f43a1c120p+4, -0x1.6f5faca77614dp-3,
      0x1.516d27c8f6a1ap+0, 0x1.74c2ee1d83f80p+0}},
};

TEST(affine_is_that_of_torchvision)
{
    for (uint32_t i = 0; i < PEN_LEN(affine); i++) {
        double found[6];
        pen__affine_inverse(&affine[i].map, found);
        for (uint32_t k = 0; k < 6; k++)
            CHECK(found[k] == affine[i].matrix[k]);
    }
}

static const struct {
    double degrees, center[2], matrix[6];
} rotations[] = {
    {30.0,
     {112.0, 100.5},
     {0x1.bb67ae8584caep-1, -0x1.0000000000000p-1, 0x1.0505474b2bce8p+6, 0x1.0000000000000p-1,
      0x1.bb67ae8584caep-1, -0x1.5448d00daa868p+5}},
    {90.0,
     {100.0, 50.0},
     {0x0.0p+0, -0x1.0000000000000p+0, 0x1.2c00000000000p+7, 0x1.0000000000000p+0, 0x0.0p+0,
      -0x1.9000000000000p+5}},
    {-45.5,
     {3.0, 3.5},
     {0x1.66dd943f43373p-1, 0x1.6d2f29b1f2f41p-1, -0x1.995ee7564dfe0p+0, -0x1.6d2f29b1f2f41p-1,
      0x1.66dd943f43373p-1, 0x1.97e17d8e1b66cp+1}},
    {359.9999,
     {10.0, 10.0},
     {0x1.fffffffffca6ap-1, 0x1.d4821ce8f22edp-20, -0x1.24d1415280000p-16, -0x1.d4821ce8f22edp-20,
      0x1.fffffffffca6ap-1, 0x1.24d162d080000p-16}},
};

TEST(rotation_is_that_of_pillow)
{
    for (uint32_t i = 0; i < PEN_LEN(rotations); i++) {
        double found[6];
        pen__rotate_inverse(rotations[i].degrees, rotations[i].center, found);
        for (uint32_t k = 0; k < 6; k++)
            CHECK(found[k] == rotations[i].matrix[k]);
    }
}

TEST(quarters_of_a_turn_need_no_matrix)
{
    CHECK_INT(pen__rotate_quarters(0, 1, 4, 3), 0);
    CHECK_INT(pen__rotate_quarters(-360, 1, 4, 3), 0);
    CHECK_INT(pen__rotate_quarters(180, 1, 4, 3), 2);
    CHECK_INT(pen__rotate_quarters(90, 1, 4, 3), -1);
    CHECK_INT(pen__rotate_quarters(90, 1, 4, 4), 1);
    CHECK_INT(pen__rotate_quarters(-90, 1, 4, 4), 3);
    CHECK_INT(pen__rotate_quarters(180, 0, 4, 4), -1);
    CHECK_INT(pen__rotate_quarters(91, 1, 4, 4), -1);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(trig_is_rounded_correctly);
    RUN(affine_is_that_of_torchvision);
    RUN(rotation_is_that_of_pillow);
    RUN(quarters_of_a_turn_need_no_matrix);
    return TEST_END();
}
