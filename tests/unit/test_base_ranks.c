/* SPDX-License-Identifier: Apache-2.0 */
/* How many processes a node has, and what each may ask for. */
#include "base/machine/ranks.h"

#include "test.h"

#include "base/attr.h"
#include "base/sys.h"

static const char *local, *procid, *step, *tasks, *cpus;

static const char *environment(const char *name)
{
    if (strcmp(name, "LOCAL_WORLD_SIZE") == 0)
        return local;
    if (strcmp(name, "SLURM_PROCID") == 0)
        return procid;
    if (strcmp(name, "SLURM_STEP_TASKS_PER_NODE") == 0)
        return step;
    if (strcmp(name, "SLURM_CPUS_ON_NODE") == 0)
        return cpus;
    return strcmp(name, "SLURM_NTASKS_PER_NODE") == 0 ? tasks : NULL;
}

TEST(ranks)
{
    static const struct {
        const char *local, *procid, *step, *tasks;
        uint32_t given;
        int expected; /* 0: refused */
    } cases[] = {
        {NULL, NULL, NULL, NULL, 0, 1},
        {NULL, NULL, NULL, NULL, 3, 3},
        {"8", NULL, NULL, NULL, 0, 8},
        {"8", NULL, NULL, NULL, 2, 2},
        {"", NULL, NULL, NULL, 0, 1},
        {"", "0", "", "6", 0, 6},
        {NULL, NULL, "4", "6", 0, 1},
        {NULL, "0", "4", "6", 0, 4},
        {NULL, "0", "4(x2),3", NULL, 0, 4},
        {NULL, "0", "4,3", NULL, 0, 4},
        {"2", "0", "4", "6", 0, 2},
        {"0", NULL, NULL, NULL, 0, 0},
        {"-1", NULL, NULL, NULL, 0, 0},
        {"eight", NULL, NULL, NULL, 0, 0},
        {"8 ", NULL, NULL, NULL, 0, 0},
        {"4097", NULL, NULL, NULL, 0, 0},
        {"4096", NULL, NULL, NULL, 0, 4096},
        {"99999999999999999999", NULL, NULL, NULL, 0, 0},
        {NULL, NULL, NULL, NULL, 4097, 0},
        {NULL, "0", "(x2)", NULL, 0, 0},
        {"4294967297", NULL, NULL, NULL, 0, 0},
    };
    PenSys sys = pen__sys_real;
    sys.environment = environment;
    pen__sys = &sys;
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        uint32_t n = 77;
        PenError err = {0};
        local = cases[i].local;
        procid = cases[i].procid;
        step = cases[i].step;
        tasks = cases[i].tasks;
        int r = pen__node_ranks(cases[i].given, &n, &err);
        CHECK_INT(r, cases[i].expected ? PEN_OK : PEN_E_INVALID);
        CHECK_INT(n, cases[i].expected ? cases[i].expected : 77);
        CHECK(r == PEN_OK || strstr(err.message, "expected 1 to 4096 processes"));
    }
    pen__sys = &pen__sys_real;
}

TEST(cores_of_the_job)
{
    PenSys sys = pen__sys_real;
    sys.environment = environment;
    pen__sys = &sys;
    procid = NULL;
    cpus = "32";
    CHECK_INT(pen__node_job_cores(), 0);
    procid = "0";
    CHECK_INT(pen__node_job_cores(), 32);
    cpus = "many";
    CHECK_INT(pen__node_job_cores(), 0);
    cpus = NULL;
    CHECK_INT(pen__node_job_cores(), 0);
    pen__sys = &pen__sys_real;
}

TEST(shares)
{
    CHECK_INT(pen__node_share(64, 1), 64);
    CHECK_INT(pen__node_share(64, 8), 8);
    CHECK_INT(pen__node_share(64, 7), 9);
    CHECK_INT(pen__node_share(64, 64), 4);
    CHECK_INT(pen__node_share(2, 1), 2);
    CHECK_INT(pen__node_share(2, 8), 2);
    CHECK_INT(pen__node_share(6, 2), 4);
    CHECK_INT(pen__node_usual(64, 1), 64);
    CHECK_INT(pen__node_usual(64, 8), 64);
    CHECK_INT(pen__node_usual(64, 16), 32);
    CHECK_INT(pen__node_usual(256, 8), 64);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(ranks);
    RUN(cores_of_the_job);
    RUN(shares);
    return TEST_END();
}
