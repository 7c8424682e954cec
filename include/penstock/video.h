/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The decoder of kept videos: a plug-in that is opened when the first loader of videos is.
 *
 * penstock itself contains no video decoder. The plug-in libpenstock-video.so.0 is built with
 * -Dvideo=enabled and uses libavcodec. Programs need only the first two functions here. The rest is
 * the interface between the library and a plug-in, for those who write one.
 *
 * If the environment variable PENSTOCK_VIDEO is "process", each thread that decodes starts the
 * program penstock-video-decoder, which is installed beside the plug-in, and decodes in this
 * confined process. "inline" is the default. */
#ifndef PENSTOCK_VIDEO_H
#define PENSTOCK_VIDEO_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Chooses the plug-in of this process by its path. The file is opened when it is first needed.
 * NULL = the default: the path in the environment variable PENSTOCK_VIDEO_LIBRARY, or
 * libpenstock-video.so.0, which the dynamic linker finds. Fails with PEN_E_INVALID if a plug-in is
 * open already: the first one stays until the process ends. Any thread may call it. */
PEN_NODISCARD PEN_API int pen_video_use(const char *path, PenError *reterr);

/** Opens the plug-in if it is not open yet. `ret_name`, which may be NULL, receives the name and
 * the version of the decoder library: "libavcodec 59.37.100". Fails with PEN_E_UNSUPPORTED if the
 * plug-in cannot be opened or is of another release; the message says how to install it. Any thread
 * may call it. */
PEN_NODISCARD PEN_API int pen_video_available(const char **ret_name, PenError *reterr);

/** Version of the interface between the library and a plug-in. Both must have the same. */
enum { PEN_VIDEO_ABI = 1 };

/** Codecs of videos. */
enum {
    PEN_VIDEO_H264 = 1,
    PEN_VIDEO_HEVC = 2,
    PEN_VIDEO_VP9 = 3,
    PEN_VIDEO_AV1 = 4,
    PEN_VIDEO_MPEG4 = 5, /**< MPEG-4 part 2 */
    PEN_VIDEO_MJPEG = 6,
    PEN_VIDEO_VP8 = 7
};

enum { PEN_VIDEO_SIDE = 16384 }; /**< largest width and height of a picture */

/** What a decoder is opened for. */
typedef struct PenVideoDecoderConfig {
    uint32_t codec;         /**< PEN_VIDEO_* */
    uint32_t width, height; /**< of the pictures */
    uint64_t max_pixels;    /**< fail with PEN_E_LIMIT on larger pictures, before allocating them */
    const void *extra;      /**< codec configuration as FFmpeg's "extradata": avcC, hvcC, av1C... */
    uint64_t extra_bytes;
} PenVideoDecoderConfig;

enum {
    /** The picture is to be delivered. A decoder may skip a picture without this flag if no other
     * picture refers to it, and does not deliver it. */
    PEN_VIDEO_WANTED = 1,
    /** The picture is shown before the key picture where decoding started, so pictures that it
     * refers to may be missing: damage in it is not an error. */
    PEN_VIDEO_LEADING = 2
};

/** One packet: the bytes of one picture, as the container has them. */
typedef struct PenCodedPacket {
    uint32_t flags;   /**< PEN_VIDEO_WANTED, PEN_VIDEO_LEADING */
    int64_t time;     /**< of its picture, from -2^60 to 2^60, in a unit of the caller */
    const void *data; /**< valid during the call */
    uint64_t bytes;   /**< 1 to 2^31 - 4096 */
} PenCodedPacket;

enum { PEN_VIDEO_RANGE_UNKNOWN = 0, PEN_VIDEO_RANGE_LIMITED = 1, PEN_VIDEO_RANGE_FULL = 2 };

/** A decoded picture: luma, or luma, Cb and Cr, in planes. */
typedef struct PenVideoPicture {
    uint32_t width, height; /**< of the first plane */
    uint32_t n_planes;      /**< 1 (gray) or 3 */
    uint32_t depth;         /**< bits: 8 in one byte; 9 to 16 in two, in the machine's byte order */
    uint32_t shift_x;       /**< chroma has (width + 2^shift_x - 1) >> shift_x columns */
    uint32_t shift_y;       /**< and so for its rows */
    uint32_t range;         /**< PEN_VIDEO_RANGE_* */
    uint32_t matrix;        /**< MatrixCoefficients of ITU-T H.273; 2 = unknown */
    int64_t time;           /**< of its packet */
    const void *planes[3];  /**< first row of each */
    int64_t strides[3];     /**< bytes from one row to the next; may be negative */
} PenVideoPicture;

/** A decoder of a plug-in. It is used by one thread at a time. */
typedef struct PenVideoDecoder PenVideoDecoder;

/** The functions of a plug-in. They print nothing, start no threads, and fill `reterr` on failure.
 * Different threads may use different decoders at the same time. */
typedef struct PenVideoPlugin {
    uint32_t abi;     /**< PEN_VIDEO_ABI of the header it was built with */
    const char *name; /**< name and version of the decoder library */
    /** Fails with PEN_E_UNSUPPORTED if the plug-in does not have the codec. */
    int (*open)(const PenVideoDecoderConfig *config, PenVideoDecoder **ret, PenError *reterr);
    /** Decodes a packet. Call `receive` until it returns PEN_END before the next packet. Fails with
     * PEN_E_DECODE if the packet is damaged; call `flush` to continue at a key packet. */
    int (*send)(PenVideoDecoder *decoder, const PenCodedPacket *packet, PenError *reterr);
    /** The end of the packets: `receive` returns all that is left. Call `flush` before the next
     * packet. */
    int (*drain)(PenVideoDecoder *decoder, PenError *reterr);
    /** The next picture in the order of times, or PEN_END if there is none now. The picture is
     * valid until the next call of the decoder. */
    int (*receive)(PenVideoDecoder *decoder, const PenVideoPicture **ret, PenError *reterr);
    /** Forgets all packets; the next one is a key packet. */
    void (*flush)(PenVideoDecoder *decoder);
    void (*close)(PenVideoDecoder *decoder);
} PenVideoPlugin;

/** The only function that a plug-in exports. It has the name "pen_video_plugin", and returns a
 * table that is valid until the process ends. */
typedef const PenVideoPlugin *(*PenVideoPluginFunction)(void);

#ifdef __cplusplus
}
#endif
#endif
