/* SPDX-License-Identifier: Apache-2.0 */
#include "load/read/location.h"

int pen__location_find(PenPack *pack, uint64_t sample, PenBlock *block, PenLocation *ret,
                       PenError *reterr)
{
    *ret = (PenLocation){0};
    if (!block)
        return pen__pack_locate(pack, sample, &ret->block, &ret->in_block, reterr);
    ret->block = block;
    ret->in_block = (uint32_t)(sample - block->first_sample);
    ret->borrowed = true;
    return PEN_OK;
}

void pen__location_release(PenPack *pack, PenLocation *at)
{
    if (at->block && !at->borrowed)
        pen__pack_block_put(pack, at->block);
    at->block = NULL;
}
