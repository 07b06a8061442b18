/* Records a client's events in a ring while its board is traced; hbrt/trace/ring.py defines the file. */
#define _GNU_SOURCE
#include "client.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

_Static_assert(sizeof(hbrt_event) == 64 && offsetof(hbrt_event, number) == 56, "a record of hbrt/trace/ring.py");

void hbrt_note(hbrt_events *ring, hbrt_event what) {
    static _Thread_local uint32_t thread;
    if (thread == 0) thread = (uint32_t)syscall(SYS_gettid);
    if (__atomic_load_n(&ring->is_over, __ATOMIC_RELAXED)) return;
    uint64_t number = __atomic_add_fetch(&ring->newest, 1, __ATOMIC_RELAXED);
    hbrt_event *kept = (hbrt_event *)ring->records + number % ring->count;
    __atomic_store_n(&kept->number, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    what.thread = thread;
    memcpy(kept, &what, offsetof(hbrt_event, number));
    __atomic_store_n(&kept->number, number, __ATOMIC_RELEASE);
}

void hbrt_note_submission(hbrt_client *client, int64_t handle, uint64_t start_ns) {
    if (start_ns == 0 || handle <= 0) return;
    const hbrt_slot_record *record = hbrt_record(&client->file, slot_of(client, handle));
    hbrt_note(client->events, (hbrt_event){.start_ns = start_ns, .end_ns = hbrt_now_ns(), .kind = HBRT_NOTE_SUBMIT,
                                           .a = HBRT_GET(record->sequence), .b = HBRT_GET(record->cmd),
                                           .unit = (uint16_t)HBRT_GET(record->client)});
}

void hbrt_note_wait(hbrt_client *client, int64_t handle, uint64_t start_ns, int answer) {
    if (answer < HBRT_DONE && answer != HBRT_TIMEOUT) return;
    const hbrt_slot_record *record = hbrt_record(&client->file, slot_of(client, handle));
    hbrt_event what = {.start_ns = start_ns, .end_ns = hbrt_now_ns(), .kind = HBRT_NOTE_WAIT, .a = HBRT_GET(record->sequence),
                       .b = HBRT_GET(record->claim_ns), .d = HBRT_GET(record->cmd), .unit = (uint16_t)HBRT_GET(record->client)};
    if (what.b < what.a) what.b = 0; /* left by an earlier task in the slot */
    if (answer >= HBRT_DONE) what.c = HBRT_GET(record->done_ns);
    hbrt_note(client->events, what);
}

int hbrt_client_note(hbrt_client *client, void *records, uint32_t count) {
    hbrt_events **place = &client->events, *ring = NULL;
    if (records != NULL) {
        ring = calloc(1, sizeof *ring);
        if (ring == NULL) return 0;
        *ring = (hbrt_events){.records = records, .count = count, .older = *place};
    }
    /* Another thread may be in the middle of a call, so older rings are freed only with the client. */
    if (ring == NULL && *place != NULL) {
        __atomic_store_n(&(*place)->is_over, 1, __ATOMIC_RELAXED);
        return 1;
    }
    __atomic_store_n(place, ring, __ATOMIC_RELEASE);
    return 1;
}

void hbrt_events_free(hbrt_events *ring) {
    while (ring != NULL) {
        hbrt_events *older = ring->older;
        free(ring);
        ring = older;
    }
}
