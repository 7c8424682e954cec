/* SPDX-License-Identifier: Apache-2.0 */
/* Reading packs.
 *
 * Caveats. A PenPack may be used by several threads at once; one opened before fork()
 * answers PEN_E_CLOSED in the child, which has to open it again. Everything read is checked before
 * it is given out: a call returns the right bytes or an error, never wrong bytes. Packs are
 * immutable: what is open stays as it was even when samples are appended meanwhile. Pointers in
 * PenPackInfo live as long as the pack. */
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
    PEN_TYPE_CLIP = 2, /* a sequence of images */
    PEN_TYPE_BYTES = 3,
    PEN_TYPE_JSON = 4,
    PEN_TYPE_TEXT = 5,
    PEN_TYPE_I64 = 6,
    PEN_TYPE_F32 = 7,
    PEN_TYPE_F64 = 8
} PenType;

enum {
    PEN_FIELD_MASK = 1,    /* an image that is a mask: never resampled or encoded with loss */
    PEN_FIELD_OPTIONAL = 2 /* bytes, json or text that some samples may lack: pen_pack_missing */
};
enum { PEN_FIELD_COUNT = 256 }; /* the most that a pack has */

typedef struct PenField {
    const char *name;
    int32_t type;    /* a PenType */
    uint32_t flags;  /* PEN_FIELD_* */
    uint32_t n_dims; /* of numbers: 0 = a single one */
    uint32_t dims[4];
} PenField;

/* How an image is stored, and how it came to be so: the numbers of the format. */
enum {
    PEN_STORED_NONE = 0,
    PEN_STORED_JPEG = 1,
    PEN_STORED_PNG = 2,
    PEN_STORED_WEBP = 3,
    PEN_STORED_RAW = 4
};
enum {
    PEN_HOW_KEPT = 0,
    PEN_HOW_TILED = 1,
    PEN_HOW_ENCODED = 2,
    PEN_HOW_RAW = 3,
    PEN_HOW_KEPT_UNTILED = 4, /* cannot be tiled exactly */
    PEN_HOW_KEPT_QUALITY = 5, /* at or below the quality asked for */
    PEN_HOW_COUNT = 8,
    PEN_STORED_COUNT = 8
};
/* "jpeg", "tiled": texts for the numbers above; "?" for unknown ones. */
PEN_API const char *pen_stored_name(int codec);
PEN_API const char *pen_how_name(int how);
PEN_API const char *pen_type_name(int type);

typedef struct PenPackStats { /* totals; bytes but for the counts */
    uint64_t source_bytes;    /* of the files it was made from */
    uint64_t payload_bytes;
    uint64_t index_bytes;
    uint64_t section_bytes; /* metadata kept aside */
    uint64_t bad;           /* inputs left out as broken */
    uint64_t images[PEN_STORED_COUNT][PEN_HOW_COUNT];
    uint64_t missing[PEN_FIELD_COUNT]; /* of each field: samples that lack it (no image, no value of
                                          an optional field) */
} PenPackStats;

typedef struct PenPackInfo {
    uint32_t struct_size;
    uint32_t format_version;
    uint64_t n_samples, n_blocks, n_shards;
    uint64_t block_samples; /* K: samples per block */
    uint64_t total_bytes;   /* manifest and shards */
    uint64_t largest_block_bytes;
    uint8_t id[16]; /* hash of the manifest */
    uint32_t n_fields;
    const PenField *fields;
    int32_t class_field; /* whose values the classes name; -1 = no classes */
    uint32_t n_classes;
    const char *const *classes;
    const char *settings; /* JSON text; "{}" when there is none */
    PenPackStats stats;
} PenPackInfo;

/* Opens the pack in directory `path`, or at an s3://, https:// or http:// address. Reads the
 * manifest, nothing of any shard. */
PEN_NODISCARD PEN_API int pen_pack_open(const char *path, PenPack **ret_pack, PenError *reterr);
/* The same with settings for the address; they may be NULL. */
PEN_NODISCARD PEN_API int pen_pack_open_at(const char *where, const PenRemoteSettings *settings,
                                           PenPack **ret_pack, PenError *reterr);
PEN_API void pen_pack_close(PenPack **pack); /* accepts NULL; sets *pack to NULL */
PEN_API const PenPackInfo *pen_pack_info(const PenPack *pack);
/* All 0 when it is not at an address. struct_size is set. */
PEN_API void pen_pack_remote_stats(const PenPack *pack, PenRemoteStats *ret);

/* Number of the field with this name, or PEN_E_NOT_FOUND. */
PEN_NODISCARD PEN_API int pen_pack_field(const PenPack *pack, const char *name, uint32_t *ret_field,
                                         PenError *reterr);

/* The calls that give out bytes copy at most `cap` of them to `buf` and say in *ret_bytes how many
 * there are. With `buf` NULL they only say that. PEN_E_LIMIT when there are more than `cap`. */
PEN_NODISCARD PEN_API int pen_pack_key(PenPack *pack, uint64_t sample, void *buf, size_t cap,
                                       size_t *ret_bytes, PenError *reterr);

/* Which sample has this key? PEN_E_NOT_FOUND when none has. */
PEN_NODISCARD PEN_API int pen_pack_find(PenPack *pack, const void *key, size_t key_bytes,
                                        uint64_t *ret_sample, PenError *reterr);

/* The stored bytes of a field: the file of an image (or its raw pixels), all frames of a clip one
 * after another, the numbers of a numeric field, the bytes of the others. */
PEN_NODISCARD PEN_API int pen_pack_read(PenPack *pack, uint64_t sample, uint32_t field, void *buf,
                                        size_t cap, size_t *ret_bytes, PenError *reterr);

/* Does the sample lack this field? *ret is 1 when it has no image, or no value in a field that is
 * PEN_FIELD_OPTIONAL, else 0. A missing value has 0 bytes, and so has an empty one, which is not
 * missing. Numbers and clips are never missing. */
PEN_NODISCARD PEN_API int pen_pack_missing(PenPack *pack, uint64_t sample, uint32_t field,
                                           int32_t *ret, PenError *reterr);

typedef struct PenImage {
    uint32_t width, height; /* as stored, before the orientation is applied */
    uint8_t codec;          /* PEN_STORED_* */
    uint8_t how;            /* PEN_HOW_* */
    uint8_t orientation;    /* EXIF, 1 to 8 */
    uint8_t channels;
    uint64_t bytes;        /* stored */
    uint64_t source_bytes; /* of the file it was made from */
    int64_t timestamp_ns;  /* of a clip's frame */
} PenImage;

/* What is stored of an image, or of a frame of a clip; reads no pixels. */
PEN_NODISCARD PEN_API int pen_pack_image(PenPack *pack, uint64_t sample, uint32_t field,
                                         uint32_t frame, PenImage *ret_image, PenError *reterr);
PEN_NODISCARD PEN_API int pen_pack_frame_count(PenPack *pack, uint64_t sample, uint32_t field,
                                               uint32_t *ret_n, PenError *reterr);

typedef struct PenFrameRange { /* frames first, first + step, ... */
    uint32_t first, step, n;
    size_t *ret_frame_bytes; /* gets the bytes of each of the n; may be NULL */
} PenFrameRange;

/* Some frames of a clip, one after another, with one read from the first of them to the last. */
PEN_NODISCARD PEN_API int pen_pack_read_frames(PenPack *pack, uint64_t sample, uint32_t field,
                                               const PenFrameRange *range, void *buf, size_t cap,
                                               size_t *ret_bytes, PenError *reterr);

/* Metadata (EXIF, ICC) set aside when an image was tiled or encoded: whole JPEG marker segments. 0
 * bytes when there is none. */
PEN_NODISCARD PEN_API int pen_pack_metadata(PenPack *pack, uint64_t sample, uint32_t field,
                                            uint32_t frame, void *buf, size_t cap,
                                            size_t *ret_bytes, PenError *reterr);

/* ---- verify --------------------------------------------------------------------------------- */

typedef struct PenVerifySettings {
    uint32_t struct_size; /* set by the init call */
    int32_t decode;       /* decode every image too; default 0 */
    int32_t threads;      /* 0 = the cores this process may use, the default */
    /* Called, one call at a time, for every problem found; the check goes on. May be NULL. */
    void (*problem)(void *ctx, const PenError *error);
    /* Called now and then with what is done; non-zero stops with PEN_E_CANCELLED. May be NULL. */
    int (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    void *ctx;
} PenVerifySettings;

typedef struct PenVerifyResult {
    uint64_t shards, blocks, samples, images; /* checked */
    uint64_t bytes;                           /* read and checked */
    uint64_t problems;
} PenVerifyResult;

PEN_API void pen_verify_settings_init(PenVerifySettings *settings);
/* Checks every byte of the pack. PEN_OK when all is well; PEN_E_CORRUPT when there were problems,
 * with the first of them in reterr. `ret` is filled in both cases. Settings that make no sense are
 * PEN_E_INVALID, and nothing is read. */
PEN_NODISCARD PEN_API int pen_pack_verify(PenPack *pack, const PenVerifySettings *settings,
                                          PenVerifyResult *ret, PenError *reterr);

/* ---- taking apart --------------------------------------------------------------------------- */

/* An image as a file of its own: JPEGs with the metadata put back, raw pixels as PNG, all else as
 * stored. *ret_data is the caller's to pen_free; ret_suffix gets ".jpg", ".png", ".webp" or "". */
PEN_NODISCARD PEN_API int pen_pack_extract(PenPack *pack, uint64_t sample, uint32_t field,
                                           uint32_t frame, void **ret_data, size_t *ret_bytes,
                                           const char **ret_suffix, PenError *reterr);
PEN_API void pen_free(void *data); /* accepts NULL */

typedef struct PenPixelRange { /* an image, or frames first, first + step, ... of a clip */
    uint64_t sample;
    uint32_t field;
    uint32_t first, step, n; /* of an image 0, 1, 1 */
    uint32_t channels;       /* 3: RGB; 1: grey, or a mask as it is */
} PenPixelRange;

/* Upright pixels of one byte for each channel, image after image, row after row; the same as a
 * loader's batch has where nothing is done to them. All have to have one size: ret_size gets height
 * and width. With `buf` NULL it only says that. */
PEN_NODISCARD PEN_API int pen_pack_pixels(PenPack *pack, const PenPixelRange *what, void *buf,
                                          size_t cap, uint32_t ret_size[2], PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
