/* SPDX-License-Identifier: Apache-2.0 */
/* libjpeg's errors as values: what the files that call libjpeg share. No other file sees a jump. */
#ifndef PEN_CODEC_JPEG_TURBO_SESSION_H
#define PEN_CODEC_JPEG_TURBO_SESSION_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>
/* behind jpeglib.h, which it needs */
#include <jerror.h>

#include "codec/codec.h"

/* What of libjpeg's memory is ours, and its own calls for the rest. */
typedef struct PenTurboCoefs {
    struct jvirt_barray_control *list;
    void *block; /* all of them */
    size_t bytes;
    void (*realise)(j_common_ptr cinfo);
    void (*free_pool)(j_common_ptr cinfo, int pool);
    void (*self_destruct)(j_common_ptr cinfo);
} PenTurboCoefs;

/* One use of libjpeg. Its callbacks reach it through client_data. */
typedef struct PenTurbo {
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    int status;
    PenError *reterr;
    const PenLimits *limits;
    struct jpeg_decompress_struct d;
    PenTurboCoefs coefs;
    size_t in_bytes; /* place in the file of the end of what libjpeg's source points into */
} PenTurbo;

/* Clears everything but a decompressor that was made before. */
void pen__turbo_start(PenTurbo *t, const PenLimits *limits, PenError *reterr);
/* coefficients.c: behind jpeg_create_decompress. Whole coefficients are then in memory of ours, of
 * which so much is kept until the other call, behind jpeg_destroy_decompress. */
enum { PEN_TURBO_KEEP_BYTES = 64 << 10 };
void pen__turbo_own_coefs(PenTurbo *t);
void pen__turbo_free_coefs(PenTurbo *t);
void pen__turbo_limit_memory(const PenTurbo *t, struct jpeg_memory_mgr *mem);

/* The only setjmp: everything that may jump runs inside `body`, and all it changes lives in what
 * begins with *t and belongs to the caller, so that no variable is left undefined by the jump. */
int pen__turbo_guard(PenTurbo *t, int (*body)(PenTurbo *t));

/* Out of `body`, from a callback of libjpeg. */
_Noreturn void pen__turbo_leave(PenTurbo *t, int status);

/* Where in the file libjpeg is. */
size_t pen__turbo_place(const PenTurbo *t);

/* Behind jpeg_read_header: asks for grey (gives 1), RGB (3) or CMYK (3: what is to become of it).
 */
int pen__turbo_choose_output(PenTurbo *t);

/* Behind jpeg_start_decompress: are bits of some coefficient still to come? Then libjpeg makes up
 * the rest from the blocks around. */
bool pen__turbo_scans_missing(const struct jpeg_decompress_struct *d);

/* CMYK is stored inverted, as Adobe does it and everyone after; the arithmetic is Pillow's. `rgb`
 * may be where `cmyk` is, or before it. */
void pen__cmyk_to_rgb(const uint8_t *cmyk, uint8_t *rgb, size_t pixels);

#endif
