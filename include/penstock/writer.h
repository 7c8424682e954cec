/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a pack sample by sample, from data of any origin. One thread at a time per writer. */
#ifndef PENSTOCK_WRITER_H
#define PENSTOCK_WRITER_H

#include <penstock/ingest.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PenWriter PenWriter;

typedef struct PenWriterSettings {
    uint32_t struct_size; /* set by the init call */
    uint32_t n_fields;
    const PenField *fields;
    const char *class_field; /* name of the i64 field that the classes name; NULL = none */
    uint32_t n_classes;
    const char *const *classes;

    int32_t mode; /* a PenMode, with its settings as in PenIngestSettings */
    int32_t quality;
    uint32_t max_side, short_side;
    double raw_share;
    int32_t check_decode;
    int32_t sixteen_bit; /* a PenSixteenBit */

    uint64_t block_samples;          /* default 32 */
    uint64_t shard_bytes;            /* default 512 MiB */
    const PenRemoteSettings *remote; /* of an s3:// address; NULL = as the environment says */
    const char *work;                /* for such an address, as in PenIngestSettings */
    const char *name; /* goes into the shards' ids: say which data this is; NULL = "" */
} PenWriterSettings;

/* One value. Numbers: `data` points to them. Images, bytes, json, text: the bytes. A clip: n_frames
 * JPEG, PNG or WebP files in `frames`, and their timestamps (may be NULL). `data` NULL says that
 * the sample has no value, in a field that is PEN_FIELD_OPTIONAL; in others it is an empty one. */
typedef struct PenValue {
    const void *data;
    size_t bytes;
    const struct PenValue *frames;
    uint32_t n_frames;
    const int64_t *timestamps_ns;
} PenValue;

PEN_API void pen_writer_settings_init(PenWriterSettings *settings);
PEN_NODISCARD PEN_API int pen_writer_open(const char *path, const PenWriterSettings *settings,
                                          PenWriter **ret_writer, PenError *reterr);
/* n_values is the number of fields, in their order. A bad image is PEN_E_DECODE and leaves the
 * writer as it was; after any other failure only closing is of use. */
PEN_NODISCARD PEN_API int pen_writer_add(PenWriter *writer, const void *key, size_t key_bytes,
                                         const PenValue *values, uint32_t n_values,
                                         PenError *reterr);
/* Publishes. The writer is to be closed after it. */
PEN_NODISCARD PEN_API int pen_writer_finish(PenWriter *writer, uint64_t *ret_n_samples,
                                            PenError *reterr);
PEN_API void pen_writer_close(PenWriter **writer); /* without finish: leaves no pack */

#ifdef __cplusplus
}
#endif
#endif
