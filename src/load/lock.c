/* SPDX-License-Identifier: Apache-2.0 */
#include "load/lock.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/thread.h"

int pen__load_lock_init(PenLoadLock *l, PenError *reterr)
{
    pthread_cond_t *all[] = {&l->readers, &l->decoders, &l->caller};
    for (size_t i = 0; i < PEN_LEN(all); i++)
        if (pen__cond_init(all[i]) < 0) {
            while (i-- > 0)
                pthread_cond_destroy(all[i]);
            return pen__fail_memory(reterr, "load/lock", "condition");
        }
    pthread_mutex_init(&l->mutex, NULL);
    l->stop = l->paused = false;
    return PEN_OK;
}

void pen__load_lock_fini(PenLoadLock *l)
{
    pthread_cond_destroy(&l->readers);
    pthread_cond_destroy(&l->decoders);
    pthread_cond_destroy(&l->caller);
    pthread_mutex_destroy(&l->mutex);
}
