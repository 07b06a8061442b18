/* The client's internals, shared by client.c and wait.c. */
#ifndef HBRT_CLIENT_H
#define HBRT_CLIENT_H

#include "clock.h"
#include "layout.h"
#include "mailbox.h"
#include "note.h"
#include "polling.h"

/* A thread waiting for any of several tasks to end, or for a nudge. */
typedef struct waiter {
    const uint64_t *handles;
    uint32_t count, seen; /* seen: hbrt_nudge calls */
    int for_nudges;
    uint32_t bell; /* futex: 1 when the thread must check */
    struct waiter *next, *previous;
} waiter;

struct hbrt_client {
    hbrt_file file;
    uint32_t id;
    int doorbell, has_urgent_bells;
    int core_doorbells[HBRT_MAX_CORES], urgent_bells[HBRT_MAX_CORES];
    hbrt_client_record *record;
    uint64_t *handles; /* each slot's live task */
    pthread_mutex_t lock;
    /* Protected by the lock. */
    uint32_t *free_slots, free_count;
    uint64_t serial, sequence;
    int has_leader; /* one waiting thread sleeps on the doorbell and wakes the others */
    waiter followers; /* list head */
    hbrt_habit polling, late; /* late: for the poll window around an expected end */
    hbrt_choice choice;
    hbrt_times times;
    /* Read without the lock. */
    uint32_t follower_count, waiting, inside, nudges;
    int has_left;
    hbrt_events *events; /* see note.c; NULL if none */
};

static inline uint64_t live(const hbrt_client *client, uint32_t slot) {
    return __atomic_load_n(&client->handles[slot], __ATOMIC_ACQUIRE);
}

/* Start time of a call to record; 0 while this client records nothing. */
static inline uint64_t begin_note(const hbrt_client *client) {
    const hbrt_events *ring = __atomic_load_n(&client->events, __ATOMIC_ACQUIRE);
    return ring != NULL && !__atomic_load_n(&ring->is_over, __ATOMIC_RELAXED) ? hbrt_now_ns() : 0;
}

static inline uint32_t slot_of(const hbrt_client *client, int64_t handle) {
    return (uint32_t)handle & ((1u << HBRT_SLOT_BITS) - 1) & (client->file.at.slot_count - 1);
}

#endif
