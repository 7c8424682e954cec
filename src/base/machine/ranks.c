/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/ranks.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/sys.h"

#define WHERE "net/node"

enum { SHARE_LEAST = 4, NODE_MOST = 512 };

/* "8", or of Slurm "8(x2),4": nodes may differ, and the first group is the largest. */
static uint32_t leading_number(const char *text)
{
    uint32_t n = 0;
    for (; *text >= '0' && *text <= '9' && n <= PEN_NODE_RANKS_MOST; text++)
        n = n * 10 + (uint32_t)(*text - '0');
    return *text == 0 || *text == '(' || *text == ',' ? n : 0;
}

int pen__node_ranks(uint32_t given, uint32_t *ret, PenError *reterr)
{
    static const char *const names[] = {"LOCAL_WORLD_SIZE", "SLURM_STEP_TASKS_PER_NODE",
                                        "SLURM_NTASKS_PER_NODE"};
    const char *from = "node_ranks", *text = NULL;
    uint32_t n = given ? given : 1;
    /* Slurm's, only in one of its tasks. */
    size_t n_names = pen__sys->environment("SLURM_PROCID") ? PEN_LEN(names) : 1;
    for (size_t i = 0; !given && !text && i < n_names; i++) {
        text = pen__sys->environment(names[i]);
        if (text && !*text)
            text = NULL;
        if (text) {
            from = names[i];
            n = leading_number(text);
        }
    }
    if (n < 1 || n > PEN_NODE_RANKS_MOST)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: expected 1 to %d processes on this node%s%.40s", from,
                         PEN_NODE_RANKS_MOST, text ? ", found " : "", text ? text : "");
    *ret = n;
    return PEN_OK;
}

uint32_t pen__node_job_cores(void)
{
    const char *text = NULL;
    if (pen__sys->environment("SLURM_PROCID"))
        text = pen__sys->environment("SLURM_CPUS_ON_NODE");
    return text ? leading_number(text) : 0;
}

uint32_t pen__node_share(uint32_t all, uint32_t ranks)
{
    return PEN_MIN(all, PEN_MAX(all / ranks, (uint32_t)SHARE_LEAST));
}

uint32_t pen__node_usual(uint32_t want, uint32_t ranks)
{
    return PEN_MIN(want, pen__node_share(NODE_MOST, ranks));
}
