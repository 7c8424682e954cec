/* SPDX-License-Identifier: Apache-2.0 */
#include "output/sample_values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/messages.h"
#include "output/report.h"

void cli_buffer_fini(CliBuffer *buffer)
{
    free(buffer->data);
    *buffer = (CliBuffer){0};
}

static int buffer_fit(CliBuffer *buffer, size_t bytes, PenError *reterr)
{
    if (bytes <= buffer->cap && buffer->data)
        return PEN_OK;
    uint8_t *data = realloc(buffer->data, bytes > 64 ? bytes : 64);
    if (!data)
        return cli_fail_memory(reterr);
    buffer->data = data;
    buffer->cap = bytes > 64 ? bytes : 64;
    return PEN_OK;
}

int cli_value_key(PenPack *pack, uint64_t sample, CliBuffer *out, PenError *reterr)
{
    int r = buffer_fit(out, 4096, reterr); /* the longest key there is */
    return r < 0 ? r : pen_pack_key(pack, sample, out->data, out->cap, &out->bytes, reterr);
}

int cli_value_read(PenPack *pack, uint64_t sample, uint32_t field, CliBuffer *out, PenError *reterr)
{
    size_t bytes;
    int r = pen_pack_read(pack, sample, field, NULL, 0, &bytes, reterr);
    if (r == PEN_OK)
        r = buffer_fit(out, bytes, reterr);
    return r < 0 ? r : pen_pack_read(pack, sample, field, out->data, out->cap, &out->bytes, reterr);
}

int cli_field_is_ragged(const PenField *field)
{
    return field->n_dims > 0 && field->dims[0] == PEN_DIM_ANY;
}

int cli_field_is_numeric(const PenField *field)
{
    return field->type == PEN_TYPE_I64 || field->type == PEN_TYPE_F32 ||
           field->type == PEN_TYPE_F64;
}

uint64_t cli_value_numbers(const PenField *field, const CliBuffer *value)
{
    return value->bytes / (field->type == PEN_TYPE_F32 ? sizeof(float) : sizeof(double));
}

uint64_t cli_value_rows(const PenField *field, const CliBuffer *value)
{
    uint64_t row = 1;
    for (uint32_t d = 1; d < field->n_dims && d < 4; d++)
        row *= field->dims[d];
    return cli_value_numbers(field, value) / row;
}

static const char *float_text(float value, char buf[32])
{
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(buf, 32, "%.*g", digits, (double)value);
        if (strtof(buf, NULL) == value)
            break;
    }
    return buf;
}

const char *cli_number_text(const PenField *field, const CliBuffer *value, uint64_t i, char buf[32])
{
    if (field->type == PEN_TYPE_F32) {
        float f;
        memcpy(&f, value->data + i * sizeof f, sizeof f);
        return float_text(f, buf);
    }
    if (field->type == PEN_TYPE_F64) {
        double d;
        memcpy(&d, value->data + i * sizeof d, sizeof d);
        return cli_real_text(d, buf);
    }
    int64_t n;
    memcpy(&n, value->data + i * sizeof n, sizeof n);
    snprintf(buf, 32, "%" PRId64, n);
    return buf;
}

const char *cli_class_name(const PenPackInfo *info, const CliBuffer *value)
{
    int64_t n;
    if (value->bytes != sizeof n)
        return NULL;
    memcpy(&n, value->data, sizeof n);
    return n >= 0 && n < info->n_classes ? info->classes[n] : NULL;
}
