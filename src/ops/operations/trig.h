/* SPDX-License-Identifier: Apache-2.0 */
/* Angles, rounded correctly but for about one result in 2^40, so that they are those of Python's
 * math module and the same on every machine. Angles are of at most 100 radians. */
#ifndef PEN_OPS_OPERATIONS_TRIG_H
#define PEN_OPS_OPERATIONS_TRIG_H

double pen__real_sin(double x);
double pen__real_cos(double x);
double pen__real_tan(double x);
double pen__real_atan(double x);
double pen__real_radians(double degrees);
double pen__real_degrees(double radians);

#endif
