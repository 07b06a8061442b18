/* What note.c needs of a client. */
#ifndef HBRT_NOTE_H
#define HBRT_NOTE_H

#include "layout.h"
#include "mailbox.h"

/* The records of a ring of events. */
typedef struct hbrt_events {
    void *records;
    uint32_t count;
    int is_over;     /* nothing is noted any more */
    uint64_t newest; /* number of the newest event */
    struct hbrt_events *older; /* ring of this client */
} hbrt_events;

/* Where a client has its ring, NULL for none. */
hbrt_events **hbrt_client_events(hbrt_client *client);
void hbrt_events_free(hbrt_events *newest);
/* The record of a handle's slot. */
const hbrt_slot_record *hbrt_client_slot(hbrt_client *client, int64_t handle);

#endif
