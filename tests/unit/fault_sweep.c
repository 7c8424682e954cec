/* SPDX-License-Identifier: Apache-2.0 */
#include "fault_sweep.h"

#include "lib/fault_sys.h"
#include "test.h"

static void run_once(int (*body)(PenError *err), const FaultPlan *plan, bool *ret_failed)
{
    PenError err = {0};
    fault_begin(plan);
    int r = body(&err);
    FaultSeen seen = fault_end();
    *ret_failed = seen.failed;
    CHECK_INT(seen.memory, 0);
    CHECK_INT(seen.files, 0);
    if (r >= 0)
        return;
    CHECK_INT(err.status, r);
    CHECK(err.message[0] && err.where[0]);
    CHECK(seen.failed);
    if (seen.by_kind[FAULT_ALLOC] == seen.calls)
        CHECK_INT(r, PEN_E_NO_MEMORY);
}

void fault_sweep(int (*body)(PenError *err), int *ret_points)
{
    *ret_points = 0;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        FaultPlan plan = {.for_ever = for_ever};
        bool failed = true;
        while (failed) {
            plan.at++;
            run_once(body, &plan, &failed);
            CHECK_OK_SO_FAR();
            *ret_points += failed;
        }
    }
}

int fault_sweep_memory(int (*body)(void))
{
    FaultPlan plan = {.for_ever = true};
    FaultSeen seen;
    int r;
    do {
        plan.at++;
        fault_begin(&plan);
        r = body();
        seen = fault_end();
    } while (r == PEN_E_NO_MEMORY && seen.memory == 0 && seen.failed);
    return r >= 0 && seen.memory == 0 ? (int)plan.at - 1 : -1;
}
