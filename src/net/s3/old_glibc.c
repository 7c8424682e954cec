/* SPDX-License-Identifier: Apache-2.0 */
/* Only in wheels. Debian's expat draws a salt for its tables by a function that glibc has since
 * 2.36 alone; with one of our own inside, a wheel runs on 2.34 (Red Hat 9, Ubuntu 22.04), too. */
#include <stdlib.h>

#include "base/sys.h"

void arc4random_buf(void *buf, size_t size);

void arc4random_buf(void *buf, size_t size)
{
    /* A salt that is not random makes tables slow at the worst, and answers are limited. */
    (void)pen__sys->random(buf, size);
}
