/* SPDX-License-Identifier: Apache-2.0 */
#include <penstock/loader.h>

const char *pen_dtype_name(int dtype)
{
    static const char *const names[] = {"?", "u8", "f16", "bf16", "f32", "f64", "i64"};
    return dtype >= PEN_U8 && dtype <= PEN_I64 ? names[dtype] : names[0];
}

size_t pen_dtype_bytes(int dtype)
{
    static const size_t bytes[] = {0, 1, 2, 2, 4, 8, 8};
    return dtype >= PEN_U8 && dtype <= PEN_I64 ? bytes[dtype] : 0;
}
