/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithm and exponential with the same last bit on every machine, unlike those of the C library:
 * they use + - * / alone, which IEEE 754 rounds exactly. */
#ifndef PEN_DSP_REAL_H
#define PEN_DSP_REAL_H

/* Within 2 units in the last place of the true values; x > 0, and |x| < 700. */
double pen__real_log(double x);
double pen__real_exp(double x);

#endif
