/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C and similar signals: the work stops at the next progress call. A second signal ends the
 * program immediately. */
#ifndef PEN_CLI_INTERRUPT_H
#define PEN_CLI_INTERRUPT_H

void cli_interrupt_install(void);
int cli_interrupted(void);

#endif
