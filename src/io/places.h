/* SPDX-License-Identifier: Apache-2.0 */
/* Remote places that inputs lie in. Each is opened once, with the settings of the run, and
 * shared by all threads. Those in one bucket or at one server share connections, credentials and
 * limits. Only addresses that the user has given are opened: credentials go to no other host. */
#ifndef PEN_IO_PLACES_H
#define PEN_IO_PLACES_H

#include "net/remote/remote.h"

typedef struct PenPlaces PenPlaces;

/* `settings` are the program's, and may be NULL. Connects to nothing yet. */
int pen__places_new(const PenRemoteSettings *settings, PenPlaces **ret, PenError *reterr);
void pen__places_free(PenPlaces **places); /* accepts NULL */
/* The place at the address, which stays theirs. Thread-safe. */
int pen__places_get(PenPlaces *places, const char *address, PenRemote **ret, PenError *reterr);
/* The place of one object, and the object's name there. Objects side by side share a place. */
typedef struct PenObjectPlace {
    PenRemote *remote;
    const char *name; /* points into the address */
} PenObjectPlace;
int pen__places_find(PenPlaces *places, const char *address, PenObjectPlace *ret, PenError *reterr);
/* The object at the address as it was the first time that anybody asked. Thread-safe. */
int pen__places_object(PenPlaces *places, const char *address, PenObject *ret, PenError *reterr);

/* 1: from now on, until it is 0 again, all threads that wait for a server give up. */
void pen__places_stop(PenPlaces *places, int stop);

#endif
