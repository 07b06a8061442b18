/* Records events of a process in a ring while its board is traced; hbrt/trace/ring.py defines the file. */
#define _GNU_SOURCE
#include "note.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

void hbrt_events_free(hbrt_events *ring) {
    while (ring != NULL) {
        hbrt_events *older = ring->older;
        free(ring);
        ring = older;
    }
}
