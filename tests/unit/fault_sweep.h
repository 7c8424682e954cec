/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of the system interface made to fail, one after the other. */
#ifndef PEN_TESTS_UNIT_FAULT_SWEEP_H
#define PEN_TESTS_UNIT_FAULT_SWEEP_H

#include <penstock/error.h>

/* Runs `body` again and again, with the first call failing, then the second, until none is left,
 * and all of it twice: the call fails once; it and all after it fail. `body` returns what the call
 * under test did, and leaves no memory and no file behind. *ret_points: at how many calls it
 * failed. */
void fault_sweep(int (*body)(PenError *err), int *ret_points);

/* For a `body` without an error, that only allocates: all allocations from the first on fail, then
 * from the second on. The number of allocations it needs, or -1: it left some behind, or failed by
 * other than PEN_E_NO_MEMORY. */
int fault_sweep_memory(int (*body)(void));

#endif
