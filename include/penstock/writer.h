/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Writes a pack sample by sample, from data of any origin.
 *
 * One thread at a time may use a writer; threads may use different writers at the same time. The
 * pack becomes visible when pen_writer_finish succeeds.
 *
 * Several processes can write one pack: each opens a writer with `task` and `n_tasks`, and
 * pen_ingest_finalise joins what they wrote. */
#ifndef PENSTOCK_WRITER_H
#define PENSTOCK_WRITER_H

#include <penstock/ingest.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PenWriter PenWriter;

/** n_tasks of a writer if nobody knows yet how many tasks there will be. */
#define PEN_TASKS_OPEN UINT32_MAX

typedef struct PenWriterSettings {
    uint32_t n_fields;
    const PenField *fields;
    const char *class_field; /**< name of the i64 field whose values are classes; NULL = none */
    uint32_t n_classes;
    const char *const *classes; /**< name of each class */

    int32_t mode; /**< a PenMode; this and the next six as in PenIngestSettings */
    int32_t quality;
    uint32_t max_side, short_side;
    double raw_share;
    int32_t check_decode;
    int32_t sixteen_bit; /**< a PenSixteenBit */

    uint64_t block_samples; /**< samples per block; default 32 */
    uint64_t shard_bytes;   /**< a shard is closed at this size; default 512 MiB */
    /** For s3:// URLs; NULL = from the environment. An in-place writer reads objects later, so what
     * the settings point to must then stay valid until pen_writer_close. */
    const PenRemoteSettings *remote;
    const char *work;    /**< for an s3:// URL, as in PenIngestSettings */
    const char *name;    /**< names the data; enters the names of the shard files; NULL = "" */
    int32_t no_index;    /**< as in PenIngestSettings */
    int32_t progressive; /**< a PenProgressive, as in PenIngestSettings */
    /** The writer writes part `task` of n_tasks, and pen_ingest_finalise publishes the pack. 0
     * of 0 = the entire pack. With PEN_TASKS_OPEN the number of tasks is given to
     * pen_ingest_finalise. All tasks need the same settings. `work` is ignored. */
    uint32_t task, n_tasks;
    int32_t codec;            /**< a PenEncoding, as in PenIngestSettings */
    uint64_t smart_threshold; /**< as in PenIngestSettings */
    /** Clips are parts of video files, which stay where they are: see PenValue. Needs the mode
     * keep and no tasks. Files of this machine need a pack on this machine. */
    int32_t in_place;
    uint32_t video_seconds; /**< of in_place: as in PenIngestSettings; default 600 */
} PenWriterSettings;

/** The value of one field. Numbers: `data` points to them, in the byte order of the machine; the
 * bytes of a ragged field are those of complete rows.
 * Images, bytes, json and text: their bytes. A clip: n_frames JPEG, PNG or WebP files in `frames`,
 * and their timestamps, which may be NULL. If `data` is NULL, a field with PEN_FIELD_OPTIONAL has
 * no value in this sample; another field has an empty one.
 * With in_place a clip is consecutive frames of a video: `data` is the path or s3:// URL of the
 * file, which is read once if consecutive samples have the same in a field, and
 * timestamps_ns are the times of n_frames frames, from the start of the file. The frames have to
 * have these times, to within a quarter of the distance between them (a single
 * one: 1 ms); `frames` is NULL. */
typedef struct PenValue {
    const void *data;
    size_t bytes;
    const struct PenValue *frames;
    uint32_t n_frames;
    const int64_t *timestamps_ns;
} PenValue;

PEN_API void pen_writer_settings_init(PenWriterSettings *settings);

/** Starts a pack in directory `path` or at an s3:// URL. Fails with PEN_E_EXISTS if a pack is
 * there, or if tasks with another schema, other settings or another number have begun there. Fails
 * with PEN_E_BUSY if another process writes the same pack, or the same task in a directory. A task
 * that is written again replaces what it wrote before. */
PEN_NODISCARD PEN_API int pen_writer_open(const char *path, const PenWriterSettings *settings,
                                          PenWriter **ret_writer, PenError *reterr);
/** Adds a sample. `values` holds one value for each field, in the order of the fields; the writer
 * copies them. Keys are unique in a pack. A broken image fails with PEN_E_DECODE and leaves the
 * writer usable; after any other failure only pen_writer_close is useful. */
PEN_NODISCARD PEN_API int pen_writer_add(PenWriter *writer, const void *key, size_t key_bytes,
                                         const PenValue *values, uint32_t n_values,
                                         PenError *reterr);
/** Completes the pack and makes it visible, or completes the task, which may have no samples.
 * ret_n_samples is the number of samples added; it may be NULL. Close the writer next. */
PEN_NODISCARD PEN_API int pen_writer_finish(PenWriter *writer, uint64_t *ret_n_samples,
                                            PenError *reterr);
/** Releases the writer. Without a successful pen_writer_finish there is no pack, and a task is not
 * complete. */
PEN_API void pen_writer_close(PenWriter **writer);

#ifdef __cplusplus
}
#endif
#endif
