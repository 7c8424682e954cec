/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory could still be taken without anything being pushed out or killed for it. */
#ifndef PEN_BASE_MACHINE_MEMORY_H
#define PEN_BASE_MACHINE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct PenAvailable {
    uint64_t bytes;   /* UINT64_MAX: nobody says */
    bool is_by_group; /* a control group's limit says so, not the machine */
} PenAvailable;

/* The least of the kernel's MemAvailable and what the limits of the control groups leave. */
PenAvailable pen__memory_available(void);
/* The least of the kernel's MemTotal and the limits of the control groups: what all processes
 * together may take, whatever they hold now. */
PenAvailable pen__memory_limit(void);

#endif
