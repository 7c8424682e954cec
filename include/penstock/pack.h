/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Reads packs.
 *
 * Threads may share a PenPack. Every read is checked: a call returns the right bytes or an error.
 * An open pack does not change, also when samples are appended to it on disk.
 *
 * Calls with `buf` and `cap` write at most `cap` bytes to `buf`, and the number of bytes that exist
 * to *ret_bytes. With `buf` NULL they only return that number. They fail with PEN_E_LIMIT if `cap`
 * is too small. Samples are numbered from 0. */
#ifndef PENSTOCK_PACK_H
#define PENSTOCK_PACK_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>
#include <penstock/remote.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PenPack PenPack;

typedef enum PenType {
    PEN_TYPE_IMAGE = 1,
    PEN_TYPE_CLIP = 2, /**< a sequence of images */
    PEN_TYPE_BYTES = 3,
    PEN_TYPE_JSON = 4,
    PEN_TYPE_TEXT = 5,
    PEN_TYPE_I64 = 6,
    PEN_TYPE_F32 = 7,
    PEN_TYPE_F64 = 8
} PenType;

enum {
    PEN_FIELD_MASK = 1, /**< an image that is a mask: never resampled or encoded with loss */
    /** bytes, json, text or a ragged field that samples may lack: see pen_pack_missing */
    PEN_FIELD_OPTIONAL = 2,
    /** Rows of a ragged f32 field that are coordinates in the image: `flags &
     * PEN_FIELD_COORDINATES` is 0 or one of the next four. They are in pixels, or with
     * PEN_FIELD_RELATIVE a fraction of the width and the height. */
    PEN_FIELD_COORDINATES = 4 + 8 + 16,
    PEN_FIELD_BOXES_XYXY = 4,    /**< left, top, right, bottom; dims are PEN_DIM_ANY, 4 */
    PEN_FIELD_BOXES_XYWH = 8,    /**< left, top, width, height */
    PEN_FIELD_BOXES_CXCYWH = 12, /**< center x, center y, width, height */
    PEN_FIELD_POINTS = 16,       /**< x, y; the last of two or more dims is 2 */
    PEN_FIELD_RELATIVE = 32
};
/** dims[0] of a ragged field: a value has any number of rows, also none. The other dims are the
 * shape of a row. */
enum { PEN_DIM_ANY = 0 };
enum { PEN_FIELD_COUNT = 256 }; /**< largest number of fields in a pack */

typedef struct PenField {
    const char *name;
    int32_t type;     /**< a PenType */
    uint32_t flags;   /**< PEN_FIELD_* */
    uint32_t n_dims;  /**< of numbers; 0 = a single number */
    uint32_t dims[4]; /**< the first one may be PEN_DIM_ANY */
} PenField;

/** The file format of a stored image. The numbers are those of the pack format. */
enum {
    PEN_STORED_NONE = 0,
    PEN_STORED_JPEG = 1,
    PEN_STORED_PNG = 2,
    PEN_STORED_WEBP = 3,
    PEN_STORED_RAW = 4
};
/** How a stored image was made from its source. The numbers are those of the pack format. */
enum {
    PEN_HOW_KEPT = 0,
    PEN_HOW_TILED = 1, /**< by an earlier build: cut into tiles without loss */
    PEN_HOW_ENCODED = 2,
    PEN_HOW_RAW = 3,
    PEN_HOW_KEPT_UNTILED = 4, /**< the same: kept, because it cannot be tiled without loss */
    PEN_HOW_KEPT_QUALITY = 5, /**< kept: its quality is not above the requested one */
    PEN_HOW_INDEXED = 6,      /**< kept, with places at which decoding can start */
    PEN_HOW_CONVERTED = 7,    /**< a baseline JPEG with the same pixels, with such places */
    PEN_HOW_COUNT = 8,
    PEN_STORED_COUNT = 8
};
/** Returns the name of a PEN_STORED_* number: "jpeg"; "?" if it is unknown. The text is static. */
PEN_API const char *pen_stored_name(int codec);
/** Returns the name of a PEN_HOW_* number: "tiled"; "?" if it is unknown. The text is static. */
PEN_API const char *pen_how_name(int how);
/** Returns the name of a PenType: "image"; "?" if it is unknown. The text is static. */
PEN_API const char *pen_type_name(int type);

/** Totals of a pack. */
typedef struct PenPackStats {
    uint64_t source_bytes; /**< of the files it was made from */
    uint64_t payload_bytes;
    uint64_t index_bytes;
    uint64_t section_bytes; /**< metadata stored apart from the images, and columns */
    uint64_t bad;           /**< broken inputs that were left out */
    uint64_t images[PEN_STORED_COUNT][PEN_HOW_COUNT]; /**< number of images of each kind */
    /** For each field, the number of samples that lack it: no image, or no value of an optional
     * field. */
    uint64_t missing[PEN_FIELD_COUNT];
    uint64_t videos;       /**< clips that are stored as videos */
    uint64_t video_frames; /**< frames of those */
} PenPackStats;

/** Describes a pack. The library owns the struct. */
typedef struct PenPackInfo {
    uint32_t format_version;
    uint64_t n_samples, n_blocks, n_shards;
    uint64_t block_samples; /**< samples per block */
    uint64_t total_bytes;   /**< manifest and shards, with the files of an in-place pack */
    uint64_t largest_block_bytes;
    uint8_t id[16]; /**< hash of the manifest */
    uint32_t n_fields;
    const PenField *fields;
    int32_t class_field; /**< the field whose values are classes; -1 = no classes */
    uint32_t n_classes;
    const char *const *classes; /**< name of each class */
    const char *settings;       /**< how it was packed, as JSON; "{}" if not known */
    PenPackStats stats;
    /** Manifest and shards as they are stored; less than total_bytes for an in-place pack. */
    uint64_t stored_bytes;
} PenPackInfo;

/** Opens the pack in a directory or at an s3://, https:// or http:// URL. Reads the manifest and no
 * shard. `settings` are for a URL, and may be NULL. */
PEN_NODISCARD PEN_API int pen_pack_open(const char *where, const PenRemoteSettings *settings,
                                        PenPack **ret_pack, PenError *reterr);

/** Where the files of an in-place pack are, see pen_ingest_run. A path in such a pack is relative
 * to the directory or prefix that holds the pack, or absolute, or the URL of an object. Files below
 * that directory are always found; others only below the directories and URLs named here. */
typedef struct PenFileSettings {
    uint32_t n_roots; /**< number of roots */
    /** Directories below which absolute paths may lie, and s3://, https:// or http:// URLs below
     * which objects may lie. */
    const char *const *roots;
    uint32_t n_moved; /**< number of moved directories */
    /** Directories and URLs that have moved since the pack was made: a path that begins with
     * `moved_from[i]` is read below `moved_to[i]` instead. The first one that fits is taken. */
    const char *const *moved_from;
    const char *const *moved_to;
    /** For the URLs among these. NULL = the defaults, also if the pack was opened with others. */
    const PenRemoteSettings *remote;
} PenFileSettings;

PEN_API void pen_file_settings_init(PenFileSettings *settings);
/** Says where the files of an in-place pack are. Call it directly after pen_pack_open, before any
 * other use of the pack. It has no effect on a pack that holds its samples itself. */
PEN_NODISCARD PEN_API int pen_pack_files(PenPack *pack, const PenFileSettings *settings,
                                         PenError *reterr);

/** Releases the pack; no other thread may use it then. */
PEN_API void pen_pack_close(PenPack **pack);
/** Returns a description of the pack, which is valid until the pack is closed. */
PEN_API const PenPackInfo *pen_pack_info(const PenPack *pack);

/** Returns the request counters of a remote pack; all are 0 for a local one. */
PEN_API void pen_pack_remote_stats(const PenPack *pack, PenRemoteStats *ret);

/** Finds the number of the field with this name; PEN_E_NOT_FOUND if there is none. */
PEN_NODISCARD PEN_API int pen_pack_field(const PenPack *pack, const char *name, uint32_t *ret_field,
                                         PenError *reterr);

/* ---- one sample ----------------------------------------------------------------------------- */

/** Reads the key of a sample. */
PEN_NODISCARD PEN_API int pen_pack_key(PenPack *pack, uint64_t sample, void *buf, size_t cap,
                                       size_t *ret_bytes, PenError *reterr);

/** Finds the sample with this key; PEN_E_NOT_FOUND if there is none. */
PEN_NODISCARD PEN_API int pen_pack_find(PenPack *pack, const void *key, size_t key_bytes,
                                        uint64_t *ret_sample, PenError *reterr);

/** Reads the stored bytes of a field: the file of an image or its raw pixels, all frames of a clip
 * one after another, the numbers of a numeric field, or the bytes of another field. A ragged field
 * has as many rows as its bytes hold. */
PEN_NODISCARD PEN_API int pen_pack_read(PenPack *pack, uint64_t sample, uint32_t field, void *buf,
                                        size_t cap, size_t *ret_bytes, PenError *reterr);

/** Sets *ret to 1 if the sample has no image in this field, or no value in a field with
 * PEN_FIELD_OPTIONAL; otherwise to 0. An empty value has 0 bytes too, but is not missing. Other
 * fields are never missing. */
PEN_NODISCARD PEN_API int pen_pack_missing(PenPack *pack, uint64_t sample, uint32_t field,
                                           int32_t *ret, PenError *reterr);

typedef struct PenImage {
    uint32_t width, height; /**< in pixels as stored, before the orientation is applied */
    uint8_t codec;          /**< PEN_STORED_* */
    uint8_t how;            /**< PEN_HOW_* */
    uint8_t orientation;    /**< EXIF orientation, 1 to 8 */
    uint8_t channels;
    uint64_t bytes;        /**< as stored */
    uint64_t source_bytes; /**< of the file it was made from */
    int64_t timestamp_ns;  /**< of a frame of a clip */
} PenImage;

/** Describes an image or a frame of a clip; reads no pixels. For an image, `frame` is 0. */
PEN_NODISCARD PEN_API int pen_pack_image(PenPack *pack, uint64_t sample, uint32_t field,
                                         uint32_t frame, PenImage *ret_image, PenError *reterr);
/** Returns the number of frames of a clip, also of one that is stored as a video. */
PEN_NODISCARD PEN_API int pen_pack_frame_count(PenPack *pack, uint64_t sample, uint32_t field,
                                               uint32_t *ret_n, PenError *reterr);

/** Returns the times of all frames of a clip, in nanoseconds: of a video from its first frame, of
 * images as they were given. `buf` has room for `cap` numbers; ret_n receives how many there are.
 * With `buf` NULL the call only returns their number. */
PEN_NODISCARD PEN_API int pen_pack_frame_times(PenPack *pack, uint64_t sample, uint32_t field,
                                               int64_t *buf, uint32_t cap, uint32_t *ret_n,
                                               PenError *reterr);

/** The n frames first, first + step, ... */
typedef struct PenFrameRange {
    uint32_t first, step, n;
    size_t *ret_frame_bytes; /**< receives the bytes of each of the n frames; may be NULL */
} PenFrameRange;

/** Reads some frames of a clip, one after another, with one read from the first to the last. */
PEN_NODISCARD PEN_API int pen_pack_read_frames(PenPack *pack, uint64_t sample, uint32_t field,
                                               const PenFrameRange *range, void *buf, size_t cap,
                                               size_t *ret_bytes, PenError *reterr);

/** A clip that is stored as a video: the file that it was made from, or a part of one. */
typedef struct PenClipVideo {
    uint32_t width, height; /**< as shown */
    uint32_t n_frames;
    uint8_t codec;         /**< see pen_video_codec_name */
    uint8_t container;     /**< see pen_video_suffix; 0: a part of a file */
    uint8_t orientation;   /**< EXIF orientation, 1 to 8 */
    uint8_t depth;         /**< bits per component */
    uint64_t bytes;        /**< as stored */
    uint64_t source_bytes; /**< of the file it was made from */
} PenClipVideo;

/** Describes a clip that is stored as a video. Returns 1, or 0 if the clip is not stored as one. */
PEN_NODISCARD PEN_API int pen_pack_video(PenPack *pack, uint64_t sample, uint32_t field,
                                         PenClipVideo *ret_video, PenError *reterr);
/** Reads some bytes of a clip that is stored as a video, from `offset` on, and checks them. */
PEN_NODISCARD PEN_API int pen_pack_video_bytes(PenPack *pack, uint64_t sample, uint32_t field,
                                               uint64_t offset, void *buf, size_t bytes,
                                               PenError *reterr);
/** "h264", "hevc", "vp9", "av1", "mpeg4", "mjpeg" or "vp8"; "?" for any other number. */
PEN_API const char *pen_video_codec_name(int codec);
/** ".mp4", ".mov", ".mkv" or ".webm"; "" for any other number. */
PEN_API const char *pen_video_suffix(int container);

/** Reads the metadata (EXIF, ICC) that was removed from an image when it was tiled or encoded:
 * complete JPEG marker segments, or 0 bytes. */
PEN_NODISCARD PEN_API int pen_pack_metadata(PenPack *pack, uint64_t sample, uint32_t field,
                                            uint32_t frame, void *buf, size_t cap,
                                            size_t *ret_bytes, PenError *reterr);

/** Returns an image as a file: a JPEG with its metadata restored, raw pixels as PNG, other files as
 * stored; for frame 0 of a clip that is stored as a video, its file. The caller releases *ret_data
 * with pen_free. ret_suffix receives ".jpg", ".png", ".webp", a text of pen_video_suffix, or "";
 * the text is static. */
PEN_NODISCARD PEN_API int pen_pack_extract(PenPack *pack, uint64_t sample, uint32_t field,
                                           uint32_t frame, void **ret_data, size_t *ret_bytes,
                                           const char **ret_suffix, PenError *reterr);
PEN_API void pen_free(void *data); /**< accepts NULL */

/** An image, or the frames first, first + step, ... of a clip. */
typedef struct PenPixelRange {
    uint64_t sample;
    uint32_t field;
    uint32_t first, step, n; /**< for an image 0, 1, 1 */
    uint32_t channels;       /**< 3 = RGB; 1 = gray, or a mask unchanged */
} PenPixelRange;

/** Decodes images to upright pixels, one byte per channel, image after image and row after row: the
 * pixels that a loader delivers without further operations. All images must have the same size;
 * ret_size receives height and width. With `buf` NULL the call only returns the size. */
PEN_NODISCARD PEN_API int pen_pack_pixels(PenPack *pack, const PenPixelRange *what, void *buf,
                                          size_t cap, uint32_t ret_size[2], PenError *reterr);

/* ---- all samples ---------------------------------------------------------------------------- */

/** What of a field is a column. */
enum {
    PEN_COLUMN_VALUE = 0, /**< numbers: the value, as pen_pack_read returns it */
    /** Images, and the first frames of clips: width and height of the upright image, each a
     * uint32_t; 0 and 0 if there is none. */
    PEN_COLUMN_SIZE = 1,
    PEN_COLUMN_FRAMES = 2, /**< clips: the number of frames, a uint32_t */
    PEN_COLUMN_COUNT = 3
};

/** A column of the samples `first` to `first + n - 1`. */
typedef struct PenColumnRange {
    uint32_t field;
    int32_t what; /**< PEN_COLUMN_* */
    uint64_t first, n;
} PenColumnRange;

/** Reads one value of each of many samples, one after another in memory, without their images.
 * Packs store such columns in their shards. If a shard lacks them (packs of earlier builds, numbers
 * of more than 64 bytes), the call reads the index of every block instead. Both return the same
 * bytes. Ragged fields have no column. */
PEN_NODISCARD PEN_API int pen_pack_column(PenPack *pack, const PenColumnRange *what, void *buf,
                                          size_t cap, size_t *ret_bytes, PenError *reterr);

/* ---- verify --------------------------------------------------------------------------------- */

typedef struct PenVerifySettings {
    int32_t decode;  /**< 1 = decode every image too; default 0 */
    int32_t threads; /**< 0 = the cores this process may use, the default */
    /** Called for every problem, from any thread but one call at a time; the check continues. May
     * be NULL. */
    void (*problem)(void *ctx, const PenError *error);
    /** Called every now and then from the calling thread; a return value other than 0 stops the
     * check with PEN_E_CANCELLED. May be NULL. */
    int (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    void *ctx;
} PenVerifySettings;

typedef struct PenVerifyResult {
    uint64_t shards, blocks, samples, images; /**< checked */
    uint64_t bytes;                           /**< read and checked */
    uint64_t problems;
    /** Of an in-place pack: files with another time of last change than when they were indexed.
     * They may have the same content; if not, that is a problem as well. */
    uint64_t modified_files;
} PenVerifyResult;

PEN_API void pen_verify_settings_init(PenVerifySettings *settings);

/** Checks every byte of the pack. Returns PEN_OK if no problem was found, and PEN_E_CORRUPT with
 * the first problem in reterr otherwise; `ret` is filled in both cases, and with what was checked
 * so far when the call is cancelled or fails. Invalid settings fail with PEN_E_INVALID before
 * anything is read. */
PEN_NODISCARD PEN_API int pen_pack_verify(PenPack *pack, const PenVerifySettings *settings,
                                          PenVerifyResult *ret, PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
