/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

void cli_interrupt_install(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;
        /* Stays ignored if the caller ignores it: nohup, a background job of a shell. */
        if (sigaction(numbers[i], NULL, &old) != 0 || old.sa_handler == SIG_IGN)
            continue;
        struct sigaction action = {.sa_handler = on_signal};
        sigemptyset(&action.sa_mask);
        action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
        (void)sigaction(numbers[i], &action, NULL);
    }
}

int cli_interrupted(void)
{
    return interrupted != 0;
}
