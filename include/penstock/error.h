/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Status codes and error details. <penstock/penstock.h> describes the rules of all calls. */
#ifndef PENSTOCK_ERROR_H
#define PENSTOCK_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifndef PEN_API
#define PEN_API __attribute__((visibility("default")))
#endif
#define PEN_NODISCARD __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

/** Every call that can fail returns one of these values. 0 is success, a positive value is an
 * outcome that is not a failure, and a negative value is a failure. */
#define PEN_STATUS_MAP(XX)                                                                         \
    XX(OK, 0, "success")                                                                           \
    XX(END, 1, "no more data")                                                                     \
    XX(E_INVALID, -1, "invalid argument or setting")                                               \
    XX(E_NO_MEMORY, -2, "out of memory")                                                           \
    XX(E_NOT_FOUND, -3, "no such file, sample or field")                                           \
    XX(E_ACCESS, -4, "permission refused")                                                         \
    XX(E_IO, -5, "read or write failed")                                                           \
    XX(E_TIMEOUT, -6, "timed out")                                                                 \
    XX(E_FORMAT, -7, "not a pack, or a version not supported")                                     \
    XX(E_CORRUPT, -8, "checksum or structure mismatch")                                            \
    XX(E_DECODE, -9, "image could not be decoded")                                                 \
    XX(E_UNSUPPORTED, -10, "not supported")                                                        \
    XX(E_EXISTS, -11, "exists already")                                                            \
    XX(E_BUSY, -12, "in use by another process")                                                   \
    XX(E_LIMIT, -13, "over a limit")                                                               \
    XX(E_CANCELLED, -14, "cancelled by the caller")                                                \
    XX(E_CLOSED, -15, "closed, or opened by a parent process")                                     \
    XX(E_CHANGED, -16, "changed while in use")                                                     \
    XX(E_DECODE_TIMEOUT, -17, "a video decoder exceeded its time limit")

typedef enum PenStatus {
#define XX(name, value, text) PEN_##name = (value),
    PEN_STATUS_MAP(XX)
#undef XX
} PenStatus;

/** Details of a failure. The caller owns the struct. Its size is fixed, so a call can report an
 * error when no memory is left. Every call accepts NULL. Its content is unspecified after success.
 */
typedef struct PenError {
    int32_t status;   /**< a PenStatus, < 0 */
    int32_t os_errno; /**< errno of the failed system call; 0 if none failed */
    /** number of the sample in the pack, or of the file in pen_decode_batch; -1 if the error is not
     * about one of them */
    int64_t sample;
    char where[32];    /**< the part of the library that failed: "pack/block", "codec/jpeg" */
    char message[472]; /**< one line: the object, what was expected and found, what to do */
} PenError;

/** Returns a short description of a status. Never returns NULL. Any thread may call it. */
PEN_API const char *pen_strerror(int status);

#ifdef __cplusplus
}
#endif
#endif
