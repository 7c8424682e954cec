/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timing/stage_clock.h"

_Thread_local PenStageClock *pen__stage_clock;
