/* Calls that are noted into a ring of events while a board is traced; hbrt/trace/ring.py has the file. A caller uses them in
 * place of those that they call: nothing else knows of a trace. */
#define _GNU_SOURCE
#include "mailbox.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "layout.h"
#include "note.h"

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

static int64_t note_submission(hbrt_client *client, int64_t handle, uint64_t start_ns) {
    hbrt_events *ring = __atomic_load_n(hbrt_client_events(client), __ATOMIC_ACQUIRE);
    if (handle <= 0 || ring == NULL) return handle;
    const hbrt_slot_record *record = hbrt_client_slot(client, handle);
    hbrt_note(ring, (hbrt_event){.start_ns = start_ns, .end_ns = hbrt_now_ns(), .kind = HBRT_NOTE_SUBMIT,
                                 .a = HBRT_GET(record->sequence), .b = HBRT_GET(record->cmd),
                                 .unit = (uint16_t)HBRT_GET(record->client)});
    return handle;
}

int hbrt_is_noted(hbrt_client *client) {
    const hbrt_events *ring = __atomic_load_n(hbrt_client_events(client), __ATOMIC_ACQUIRE);
    return ring != NULL && !__atomic_load_n(&ring->is_over, __ATOMIC_RELAXED);
}

int64_t hbrt_noted_rpc(hbrt_client *client, uintptr_t control, uintptr_t input, uintptr_t output) {
    uint64_t start_ns = hbrt_now_ns();
    return note_submission(client, hbrt_rpc(client, control, input, output), start_ns);
}

int64_t hbrt_noted_submit(hbrt_client *client, const void *request, int is_checked) {
    uint64_t start_ns = hbrt_now_ns();
    return note_submission(client, hbrt_submit(client, request, is_checked), start_ns);
}

int64_t hbrt_noted_prepare(hbrt_client *client, const void *request, int is_checked) {
    uint64_t start_ns = hbrt_now_ns();
    return note_submission(client, hbrt_prepare(client, request, is_checked), start_ns);
}

/* One wait of a program may be several calls, between which a signal's handler runs: it is noted once, from its begin. */
int hbrt_noted_wait(hbrt_client *client, int64_t handle, int64_t timeout_ns, int64_t poll_ns, int *polled) {
    static _Thread_local struct {
        int64_t handle;
        uint64_t since_ns;
    } begun;
    if (begun.handle != handle) begun.since_ns = hbrt_now_ns();
    begun.handle = 0;
    int answer = hbrt_wait(client, handle, timeout_ns, poll_ns, polled);
    if (answer == HBRT_INTERRUPTED || answer == HBRT_ASKED) begun.handle = handle;
    hbrt_events *ring = __atomic_load_n(hbrt_client_events(client), __ATOMIC_ACQUIRE);
    if (ring == NULL || (answer < HBRT_STATE_DONE && answer != HBRT_TIMEOUT)) return answer;
    const hbrt_slot_record *record = hbrt_client_slot(client, handle);
    hbrt_event what = {.start_ns = begun.since_ns, .end_ns = hbrt_now_ns(), .kind = HBRT_NOTE_WAIT, .a = HBRT_GET(record->sequence),
                  .b = HBRT_GET(record->claim_ns), .d = HBRT_GET(record->cmd), .unit = (uint16_t)HBRT_GET(record->client)};
    if (what.b < what.a) what.b = 0; /* of an earlier task in the slot */
    if (answer >= HBRT_STATE_DONE) what.c = HBRT_GET(record->done_ns);
    hbrt_note(ring, what);
    return answer;
}

int hbrt_noted_end(hbrt_client *client, int64_t handle, int waits) {
    int polled, state = waits ? HBRT_STATE_DONE : hbrt_end(client, handle, 0);
    return state < HBRT_STATE_DONE ? state : hbrt_noted_wait(client, handle, -1, 0, &polled);
}

int hbrt_noted_finish(hbrt_client *client, int64_t handle, int64_t poll_ns, int *polled) {
    int state = hbrt_noted_wait(client, handle, -1, poll_ns, polled);
    if (state == HBRT_STATE_DONE && hbrt_release(client, handle) != 1) return HBRT_ASK;
    return state;
}

int hbrt_client_note(hbrt_client *client, void *records, uint32_t count) {
    hbrt_events **place = hbrt_client_events(client), *ring = NULL;
    if (records != NULL) {
        ring = calloc(1, sizeof *ring);
        if (ring == NULL) return 0;
        *ring = (hbrt_events){.records = records, .count = count, .older = *place};
    }
    /* Another thread may be in the middle of a call: an older ring is freed with the client. */
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
