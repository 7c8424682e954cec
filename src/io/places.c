/* SPDX-License-Identifier: Apache-2.0 */
#include "io/places.h"

#include <pthread.h>
#include <string.h>

#include "base/error.h"

#define WHERE "io/places"

typedef struct Place {
    char *address;
    PenRemote *remote;
} Place;

struct PenPlaces {
    PenRemoteSettings settings;
    pthread_mutex_t mutex; /* of all below */
    Place *items;
    uint32_t n, cap;
    int is_stopped;
};

int pen__places_new(const PenRemoteSettings *settings, PenPlaces **ret, PenError *reterr)
{
    PenPlaces *p = pen__zalloc(sizeof *p);
    if (!p)
        return pen__fail_memory(reterr, WHERE, "sources");
    int r = pen__remote_settings_copy(settings, &p->settings, reterr);
    if (r < 0) {
        pen__free(p);
        return r;
    }
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
    int r = pen__remote_open(address, &p->settings, &place.remote, reterr);
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

void pen__places_stop(PenPlaces *p, int stop)
{
    pthread_mutex_lock(&p->mutex);
    p->is_stopped = stop;
    for (uint32_t i = 0; i < p->n; i++)
        pen__remote_stop(p->items[i].remote, stop);
    pthread_mutex_unlock(&p->mutex);
}
