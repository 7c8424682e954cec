/* SPDX-License-Identifier: Apache-2.0 */
/* What a program that reads hostile files is kept from, beyond its limits of time and memory: it
 * dies with the thread that started it, writes no files (RLIMIT_FSIZE) and no core, opens few
 * files, gets no rights that it does not have, and makes no sockets. */
#ifndef PEN_BASE_CONFINE_H
#define PEN_BASE_CONFINE_H

/* For the calling process, which is about to exec. System calls alone. What the kernel does not
 * have is left out: each of them is a second line of defence. */
void pen__confine(void);

#endif
