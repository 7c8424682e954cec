/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C and its like: the work is asked to stop at the next progress call. A second one ends the
 * program at once. */
#ifndef PEN_CLI_INTERRUPT_H
#define PEN_CLI_INTERRUPT_H

void cli_interrupt_install(void);
int cli_interrupted(void);

#endif
