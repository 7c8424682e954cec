/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of a gulp: the first byte is the size of its data file. Clips that are taken go into
 * records of a plan, and come out as they went in; every frame lies inside the data file. */
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "ingest/plan/plan_impl.h"
#include "ingest/source/gulp.h"
#include "ingest/source/gulp_table.h"
#include "memory_fs.h"

static void check_frames(const PenPart *part, uint64_t data_bytes)
{
    PenGulpTable table = {part->data, (const uint8_t *)part->data + part->data_bytes, 0};
    PenGulpFrame f;
    uint64_t n = 0, bytes = 0;
    while (pen__gulp_table_next(&table, &f)) {
        REQUIRE(f.bytes && f.offset <= data_bytes && f.bytes <= data_bytes - f.offset);
        bytes += f.bytes;
        n++;
    }
    REQUIRE(table.p == table.end && n == part->offset && bytes == part->bytes);
}

static void check_input(const PenInputs *in, const PenPlanSchema *shape, uint64_t i,
                        uint64_t data_bytes)
{
    PenError err;
    PenBuf record = {0};
    PenItem item;
    PenInput input;
    PenRecordFrame frame = {shape->n_fields, shape->fields, in->n_roots, in->roots, "", NULL, NULL};
    pen__inputs_get(in, i, &input);
    size_t stamps;
    MUST(pen__record_add(shape, &input, &record, &stamps, &err));
    MUST(pen__record_parse(&frame, &item, &record, &err));
    REQUIRE(item.key_bytes == input.key_bytes && memcmp(item.key, input.key, input.key_bytes) == 0);
    REQUIRE(item.parts[0].kind == PEN_PART_GULP);
    check_frames(&item.parts[0], data_bytes);
    const PenPart *meta = &item.parts[item.n_parts - 1];
    REQUIRE(meta->kind == PEN_PART_INLINE && meta->bytes >= 2 && *(const char *)meta->data == '{');
    pen__buf_free(&record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenIngestSettings settings;
    if (!bytes)
        return 0;
    uint8_t *exact = copy_of(data + 1, bytes - 1);
    fs_begin(0);
    pen_ingest_settings_init(&settings);
    PenPlanRequest request = {.settings = &settings, .settings_text = "{}"};
    PenInputs *in = calloc(1, sizeof *in);
    PenPlanSchema *shape = calloc(1, sizeof *shape);
    in->settings = &settings;
    in->kind = PEN_ROOT_GULP;
    int r = CALL(pen__scan_gmeta(in, "m", exact, bytes - 1, "d", data[0], &err));
    /* No class for some clips, or one name for two things: refused. */
    if (r == PEN_OK && in->n && GOES(pen__plan_schema_make(in, &request, shape, &err)))
        for (uint64_t i = 0; i < in->n; i++)
            check_input(in, shape, i, data[0]);
    pen__plan_schema_free(shape);
    pen__inputs_free(in);
    free(shape);
    free(in);
    fs_end();
    free(exact);
    return 0;
}
