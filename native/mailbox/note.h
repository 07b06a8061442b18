/* Events of a trace, as hbrt/trace/ring.py and kinds.py have them. */
#ifndef HBRT_NOTE_H
#define HBRT_NOTE_H

#include "layout.h"
#include "mailbox.h"

enum { HBRT_NOTE_SUBMIT = 1, HBRT_NOTE_WAIT = 2, HBRT_NOTE_RUN = 20, HBRT_NOTE_COPY, HBRT_NOTE_DMA_WAIT, HBRT_NOTE_TCM = 24 };

typedef struct {
    uint64_t start_ns, end_ns, a, b, c;
    uint32_t thread;
    uint16_t kind, unit;
    uint32_t text, d;
    uint64_t number; /* from 1; 0 while this is written */
} hbrt_event;

/* The records of a ring of events. */
typedef struct hbrt_events {
    void *records;
    uint32_t count;
    int is_over;     /* nothing is noted any more */
    uint64_t newest; /* number of the newest event */
    struct hbrt_events *older; /* ring of this client */
} hbrt_events;

/* Keep an event of this thread; its thread and number are set. */
void hbrt_note(hbrt_events *ring, hbrt_event what);

void hbrt_events_free(hbrt_events *newest);

/* Note a task that was queued, and a wait for one, begun at these times; 0: the client notes nothing. */
void hbrt_note_submission(hbrt_client *client, int64_t handle, uint64_t start_ns);
void hbrt_note_wait(hbrt_client *client, int64_t handle, uint64_t start_ns, int answer);

#endif
