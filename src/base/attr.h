/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler attributes and the few macros used everywhere. */
#ifndef PEN_BASE_ATTR_H
#define PEN_BASE_ATTR_H

#define PEN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define PEN_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define PEN_LIKELY(x) __builtin_expect(!!(x), 1)
#define PEN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define PEN_UNUSED __attribute__((unused))
#define PEN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define PEN_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Functions that are made fast by arguments which are constants where they are called. */
#define PEN_INLINE __attribute__((always_inline)) static inline

#endif
