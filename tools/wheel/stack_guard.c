/* SPDX-License-Identifier: Apache-2.0 */
/* The value that -fstack-protector stores in stack frames on ARM64. The runtime of zig has a
 * constant for it, which takes precedence over glibc's random value and can be known to an
 * attacker. This one takes precedence over both. On x86-64, the compiler reads glibc's value from
 * the thread. */

#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

__attribute__((visibility("hidden"))) uintptr_t __stack_chk_guard;

/* Runs before all other functions of the module or the program. As in glibc, the first byte is 0,
 * so that strings end there. */
__attribute__((constructor(101), no_stack_protector)) static void set_stack_guard(void)
{
    memcpy(&__stack_chk_guard, (const void *)getauxval(AT_RANDOM), sizeof(uintptr_t));
    __stack_chk_guard &= ~(uintptr_t)0xff;
}
