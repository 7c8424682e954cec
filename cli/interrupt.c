/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted, on_terminal;

static void on_signal(int number)
{
    int saved = errno;
    if (interrupted) {
        /* The prompt of the shell then has a line of its own, below the progress. */
        if (on_terminal)
            (void)!write(STDERR_FILENO, "\n", 1);
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
    interrupted = 1;
    errno = saved;
}

void cli_interrupt_install(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    on_terminal = isatty(STDERR_FILENO);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;
        /* Stays ignored if the caller ignores it: nohup, a background job of a shell. */
        if (sigaction(numbers[i], NULL, &old) != 0 || old.sa_handler == SIG_IGN)
            continue;
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        (void)sigaction(numbers[i], &action, NULL);
    }
}

int cli_interrupted(void)
{
    return interrupted != 0;
}
