/* Trace events, in the format of hbrt/trace/ring.py and kinds.py. */
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
    uint64_t number; /* from 1; 0 while being written */
} hbrt_event;

/* The records of an event ring. */
typedef struct hbrt_events {
    void *records;
    uint32_t count;
    int is_over;     /* recording has stopped */
    uint64_t newest; /* number of the newest event */
    struct hbrt_events *older; /* this client's previous ring */
} hbrt_events;

/* Record an event of this thread; sets its thread and number. */
void hbrt_note(hbrt_events *ring, hbrt_event what);

void hbrt_events_free(hbrt_events *newest);

#endif
