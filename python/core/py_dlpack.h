/* SPDX-License-Identifier: Apache-2.0 */
/* The structures of DLPack 1.0 that a tensor in host memory needs, by the names of its
 * specification (dmlc.github.io/dlpack). */
#ifndef PEN_PY_DLPACK_H
#define PEN_PY_DLPACK_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0 };
enum { kDLCPU = 1, kDLCUDAHost = 3, kDLROCMHost = 11 };
enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 };

typedef struct DLDevice {
    int32_t device_type;
    int32_t device_id;
} DLDevice;

typedef struct DLDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLPackVersion {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

#define DLPACK_FLAG_BITMASK_READ_ONLY 1u

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif
