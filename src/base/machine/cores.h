/* SPDX-License-Identifier: Apache-2.0 */
/* How many cores there are to use. */
#ifndef PEN_BASE_MACHINE_CORES_H
#define PEN_BASE_MACHINE_CORES_H

/* How many cores this process may use: the smaller of its CPU affinity and its cgroup's CPU quota
 * (versions 1 and 2, rounded up). At least 1. */
unsigned pen__thread_cores(void);

/* How many of them it should use as one of `processes` of this machine: all of its affinity when
 * that is narrower than the machine (or the container, or the `job` cores that the job has of it;
 * 0: not known), for then somebody has divided the cores already; otherwise an even share. A CPU
 * quota is one for all of them, and is divided. At least 1. */
unsigned pen__cores_share(unsigned processes, unsigned job);

#endif
