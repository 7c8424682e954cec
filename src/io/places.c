/* SPDX-License-Identifier: Apache-2.0 */
#include "io/places.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

#define WHERE "io/places"

typedef struct Place {
    char *address;
    PenRemote *remote;
} Place;

typedef struct Known {
    char *address;
    PenObject object;
} Known;

struct PenPlaces {
    PenRemoteSettings settings;
    pthread_mutex_t mutex; /* of all below */
    Place *items;
    uint32_t n, cap;
    Known *known; /* sorted by address */
    size_t n_known, cap_known;
    int is_stopped;
};

int pen__places_new(const PenRemoteSettings *settings, PenPlaces **ret, PenError *reterr)
{
    PenPlaces *p = pen__zalloc(sizeof *p);
    if (!p)
        return pen__fail_memory(reterr, WHERE, "sources");
    p->settings = pen__remote_settings(settings);
    pthread_mutex_init(&p->mutex, NULL);
    *ret = p;
    return PEN_OK;
}

void pen__places_free(PenPlaces **places)
{
    PenPlaces *p = *places;
    *places = NULL;
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n; i++) {
        pen__remote_close(&p->items[i].remote);
        pen__free(p->items[i].address);
    }
    for (size_t i = 0; i < p->n_known; i++)
        pen__free(p->known[i].address);
    pen__free(p->known);
    pen__free(p->items);
    pthread_mutex_destroy(&p->mutex);
    pen__free(p);
}

static int reserve(PenPlaces *p)
{
    if (p->n < p->cap)
        return PEN_OK;
    uint32_t cap = p->cap ? p->cap * 2 : 4;
    Place *grown = pen__resize(p->items, cap * sizeof *grown);
    if (!grown)
        return PEN_E_NO_MEMORY;
    p->items = grown;
    p->cap = cap;
    return PEN_OK;
}

static int add(PenPlaces *p, const char *address, PenRemote **ret, PenError *reterr)
{
    Place place = {.address = pen__strdup(address)};
    if (!place.address || reserve(p) < 0) {
        pen__free(place.address);
        return pen__fail_memory(reterr, WHERE, "sources");
    }
    PenRemote *beside = NULL;
    for (uint32_t i = 0; i < p->n && !beside; i++)
        if (pen__remote_is_beside(p->items[i].remote, address, NULL))
            beside = p->items[i].remote;
    int r = beside ? pen__remote_open_beside(beside, address, &place.remote, reterr)
                   : pen__remote_open(address, &p->settings, &place.remote, reterr);
    if (r < 0) {
        pen__free(place.address);
        return r;
    }
    if (p->is_stopped)
        pen__remote_stop(place.remote, 1);
    p->items[p->n++] = place;
    *ret = place.remote;
    return PEN_OK;
}

int pen__places_get(PenPlaces *p, const char *address, PenRemote **ret, PenError *reterr)
{
    PenRemote *found = NULL;
    int r = PEN_OK;
    pthread_mutex_lock(&p->mutex);
    for (uint32_t i = 0; i < p->n && !found; i++)
        if (strcmp(p->items[i].address, address) == 0)
            found = p->items[i].remote;
    if (!found)
        r = add(p, address, &found, reterr);
    pthread_mutex_unlock(&p->mutex);
    if (r == PEN_OK)
        *ret = found;
    return r;
}

/* ---- objects -------------------------------------------------------------------------------- */

/* The name in an https URL is encoded, and joining would encode it again: such an object is a place
 * of its own. */
int pen__places_find(PenPlaces *p, const char *address, PenObjectPlace *ret, PenError *reterr)
{
    const char *slash = strrchr(address, '/');
    bool is_s3 = strncasecmp(address, "s3://", 5) == 0;
    const char *host = strstr(address, "//");
    if (!slash || !host || slash < host + 2 || !slash[1] || (!is_s3 && strchr(slash, '%'))) {
        ret->name = "";
        return pen__places_get(p, address, &ret->remote, reterr);
    }
    char *parent = pen__strndup(address, (size_t)(slash - address) + !is_s3);
    if (!parent)
        return pen__fail_memory(reterr, WHERE, "sources");
    int r = pen__places_get(p, parent, &ret->remote, reterr);
    pen__free(parent);
    ret->name = slash + 1;
    return r;
}

/* Where the address is in `known`, or would be. */
static size_t place_of(const PenPlaces *p, const char *address, bool *ret_found)
{
    size_t low = 0, high = p->n_known;
    *ret_found = false;
    while (low < high && !*ret_found) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(p->known[mid].address, address);
        *ret_found = order == 0;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return high;
}

/* Another thread may have been faster: what it has found stays. */
static int remember(PenPlaces *p, const char *address, PenObject *object)
{
    bool found;
    size_t at = place_of(p, address, &found);
    if (found) {
        *object = p->known[at].object;
        return PEN_OK;
    }
    if (p->n_known == p->cap_known) {
        size_t cap = p->cap_known ? p->cap_known * 2 : 16;
        Known *grown = pen__resize(p->known, cap * sizeof *grown);
        if (!grown)
            return PEN_E_NO_MEMORY;
        p->known = grown;
        p->cap_known = cap;
    }
    char *copy = pen__strdup(address);
    if (!copy)
        return PEN_E_NO_MEMORY;
    memmove(p->known + at + 1, p->known + at, (p->n_known - at) * sizeof *p->known);
    p->known[at] = (Known){copy, *object};
    p->n_known++;
    return PEN_OK;
}

int pen__places_object(PenPlaces *p, const char *address, PenObject *ret, PenError *reterr)
{
    bool found;
    PenObjectPlace place;
    pthread_mutex_lock(&p->mutex);
    size_t at = place_of(p, address, &found);
    if (found)
        *ret = p->known[at].object;
    pthread_mutex_unlock(&p->mutex);
    if (found)
        return PEN_OK;
    int r = pen__places_find(p, address, &place, reterr);
    if (r == PEN_OK)
        r = pen__remote_stat(place.remote, place.name, ret, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&p->mutex);
    r = remember(p, address, ret);
    pthread_mutex_unlock(&p->mutex);
    return r < 0 ? pen__fail_memory(reterr, WHERE, "sources") : PEN_OK;
}

void pen__places_stop(PenPlaces *p, int stop)
{
    pthread_mutex_lock(&p->mutex);
    p->is_stopped = stop;
    for (uint32_t i = 0; i < p->n; i++)
        pen__remote_stop(p->items[i].remote, stop);
    pthread_mutex_unlock(&p->mutex);
}
