/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes and points of any bits, moved by any pipeline: a pipeline and a 0 byte; two bytes for each
 * side of the image, its orientation; what the rows are and what is done; and the rows. What is
 * kept is in order, and clipped boxes lie in the result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "ops/pipeline/spec.h"
#include "ops/run/program.h"
#include "ops/sample/follow.h"

enum { MOST_ROWS = 64 };

/* Of the image that the text describes. */
static bool make_plan(Input *in, PenSamplePlan *ret)
{
    PenSpec spec = {0};
    PenProgram *p = NULL;
    PenError err;
    PenFieldKind image = {.kind = PEN_KIND_IMAGE};
    const uint8_t *end = memchr(in->data, 0, in->bytes);
    size_t n = end ? (size_t)(end - in->data) + 1 : 0;
    char *text = n ? copy_of(in->data, n) : NULL;
    bool made = false;
    in->data += n;
    in->bytes -= n;
    PenImageShape shape = {1 + take_below(in, 65535), 1 + take_below(in, 65535),
                           (uint8_t)take_below(in, 10), 1};
    if (text && GOES(pen__spec_parse(text, &spec, &err)) &&
        GOES(pen__program_new(&spec.fields[0], &image, &p, &err)))
        made = GOES(pen__sample_plan_make(p, &shape, pen__draw_key(1, 2), 3, ret, &err));
    pen__program_free(&p);
    pen__spec_free(&spec);
    free(text);
    return made;
}

static PenFollowRule make_rule(Input *in)
{
    PenFollowRule rule = {.stored = (PenCoordinates)(1 + take_below(in, 4)),
                          .wanted = (PenCoordinates)(1 + take_below(in, 3))};
    uint8_t bits = take_byte(in);
    rule.stored_relative = bits & 1;
    rule.wanted_relative = bits >> 1 & 1;
    rule.clip = bits >> 2 & 1;
    rule.drop = bits >> 3 & 1;
    rule.points = 1 + (bits >> 4 & 3);
    rule.min_size = take_byte(in) / 8.0;
    rule.min_area = take_byte(in);
    rule.min_visibility = take_byte(in) / 255.0;
    if (rule.stored == PEN_COORDS_POINTS)
        rule.wanted = PEN_COORDS_POINTS;
    return rule;
}

static void check_box(const PenFollowRule *rule, const float *row, double width, double height)
{
    double wide = rule->wanted_relative ? 1 : width, high = rule->wanted_relative ? 1 : height;
    double slack = 1e-6 * (wide + high);
    for (uint32_t i = 0; i < 4; i++)
        REQUIRE(isfinite(row[i]));
    if (rule->wanted == PEN_COORDS_XYXY)
        REQUIRE(row[0] <= row[2] && row[1] <= row[3]);
    else
        REQUIRE(row[2] >= 0 && row[3] >= 0);
    if (rule->clip && rule->wanted == PEN_COORDS_XYXY)
        REQUIRE(row[0] >= 0 && row[1] >= 0 && row[2] <= wide && row[3] <= high);
    if (rule->clip && rule->wanted == PEN_COORDS_XYWH)
        REQUIRE(row[0] >= 0 && row[0] + row[2] <= wide + slack && row[1] + row[3] <= high + slack);
}

static void check(const PenFollowRule *rule, const PenSamplePlan *plan, Input *in)
{
    PenError err;
    size_t width = pen__follow_width(rule), bytes;
    const uint8_t *data = take_bytes(in, MOST_ROWS * width * sizeof(float), &bytes);
    uint32_t stored = (uint32_t)(bytes / (width * sizeof(float))), n = 0;
    float *rows = copy_of(data, stored * width * sizeof(float));
    int64_t *kept = malloc(stored * sizeof *kept + 1);
    REQUIRE(kept);
    if (GOES(pen__follow_rows(rule, plan, rows, stored, kept, &n, &err))) {
        REQUIRE(rule->drop ? n <= stored : n == stored);
        for (uint32_t i = 0; i < n; i++) {
            REQUIRE(kept[i] >= (i ? kept[i - 1] + 1 : 0) && kept[i] < stored);
            if (rule->stored != PEN_COORDS_POINTS)
                check_box(rule, rows + i * width, plan->width, plan->height);
        }
    }
    free(rows);
    free(kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static PenSamplePlan plan;
    Input in = {data, bytes};
    if (!make_plan(&in, &plan))
        return 0;
    PenFollowRule rule = make_rule(&in);
    check(&rule, &plan, &in);
    return 0;
}
