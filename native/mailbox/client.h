/* A client: what client.c and wait.c share. */
#ifndef HBRT_CLIENT_H
#define HBRT_CLIENT_H

#include "clock.h"
#include "layout.h"
#include "mailbox.h"
#include "note.h"
#include "polling.h"

/* A thread that waits: for one of some tasks to end, or for a nudge. */
typedef struct waiter {
    const uint64_t *handles;
    uint32_t count, seen; /* of hbrt_nudge calls */
    int for_nudges;
    uint32_t bell; /* futex: 1 when it is to check */
    struct waiter *next, *previous;
} waiter;

struct hbrt_client {
    hbrt_file file;
    uint32_t id;
    int doorbell, has_urgent_bells;
    int core_doorbells[HBRT_MAX_CORES], urgent_bells[HBRT_MAX_CORES];
    hbrt_client_record *record;
    uint64_t *handles; /* of each slot's live task */
    pthread_mutex_t lock;
    /* Under the lock. */
    uint32_t *free_slots, free_count;
    uint64_t serial, sequence;
    int has_leader; /* one of the threads that wait sleeps on the doorbell, and wakes the others */
    waiter followers; /* the list's head */
    hbrt_habit polling, late; /* late: in the poll window around an expected end */
    hbrt_choice choice;
    hbrt_times times;
    /* Read without it. */
    uint32_t follower_count, waiting, inside, nudges;
    int has_left;
    hbrt_events *events; /* of note.c; NULL for none */
};

static inline uint64_t live(const hbrt_client *client, uint32_t slot) {
    return __atomic_load_n(&client->handles[slot], __ATOMIC_ACQUIRE);
}

/* The time at which a call begins that is to be noted; 0 while this client notes nothing. */
static inline uint64_t begin_note(const hbrt_client *client) {
    const hbrt_events *ring = __atomic_load_n(&client->events, __ATOMIC_ACQUIRE);
    return ring != NULL && !__atomic_load_n(&ring->is_over, __ATOMIC_RELAXED) ? hbrt_now_ns() : 0;
}

static inline uint32_t slot_of(const hbrt_client *client, int64_t handle) {
    return (uint32_t)handle & ((1u << HBRT_SLOT_BITS) - 1) & (client->file.at.slot_count - 1);
}

#endif
