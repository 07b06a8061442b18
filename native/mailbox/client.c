/* Submits and releases tasks; wait.c waits for them. hbrt/attach/tasks.py handles the rare cases. */
#define _GNU_SOURCE
#include "client.h"

#include <stdlib.h>
#include <time.h>

#include "kill.h"

static _Thread_local struct {
    hbrt_client *client;
    uint64_t handle;
} newest;

uint32_t hbrt_layout_version(void) { return HBRT_LAYOUT_VERSION; }

hbrt_client *hbrt_client_new(void *map, uint64_t map_bytes, const void *header, uint32_t client_id, int doorbell,
                             const int *core_doorbells, const int *urgent_bells, uint64_t first_serial) {
    hbrt_client *client = calloc(1, sizeof *client);
    if (client == NULL) return NULL;
    if (client_id < HBRT_CLIENTS && hbrt_file_open(&client->file, map, map_bytes, header)) {
        uint32_t slots = client->file.at.slot_count, cores = client->file.at.core_count;
        client->handles = calloc(slots, sizeof *client->handles);
        client->free_slots = calloc(slots, sizeof *client->free_slots);
        client->id = client_id;
        client->record = hbrt_client_at(&client->file, client_id);
        client->doorbell = doorbell;
        client->serial = first_serial;
        memcpy(client->core_doorbells, core_doorbells, cores * sizeof *core_doorbells);
        client->has_urgent_bells = urgent_bells != NULL;
        if (urgent_bells != NULL) memcpy(client->urgent_bells, urgent_bells, cores * sizeof *urgent_bells);
        pthread_mutex_init(&client->lock, NULL);
        client->followers.next = client->followers.previous = &client->followers;
        if (client->handles != NULL && client->free_slots != NULL) return client;
    }
    hbrt_client_free(client);
    return NULL;
}

void hbrt_client_free(hbrt_client *client) {
    if (newest.client == client) newest.client = NULL;
    free(client->handles);
    free(client->free_slots);
    hbrt_events_free(client->events);
    free(client);
}

uint64_t *hbrt_client_handles(hbrt_client *client) { return client->handles; }

uint64_t hbrt_client_serial(hbrt_client *client) { return __atomic_load_n(&client->serial, __ATOMIC_RELAXED); }

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

/* Threads ring doorbells and write states between these two: no descriptor or slot changes owner in the meantime. */
static int enter(hbrt_client *client) {
    __atomic_add_fetch(&client->inside, 1, __ATOMIC_SEQ_CST);
    return !__atomic_load_n(&client->has_left, __ATOMIC_SEQ_CST);
}

static void leave(hbrt_client *client) { __atomic_sub_fetch(&client->inside, 1, __ATOMIC_RELEASE); }

/* -- slots ---------------------------------------------------------------------------------------------------------- */

void hbrt_slots_give(hbrt_client *client, const uint32_t *slots, uint32_t count) {
    uint32_t most = client->file.at.slot_count;
    pthread_mutex_lock(&client->lock);
    for (uint32_t n = 0; n < count; n++)
        if (slots[n] < most && client->free_count < most) client->free_slots[client->free_count++] = slots[n];
    pthread_mutex_unlock(&client->lock);
}

int64_t hbrt_slot_take(hbrt_client *client) {
    pthread_mutex_lock(&client->lock);
    int64_t slot = client->free_count ? (int64_t)client->free_slots[--client->free_count] : HBRT_NO_SLOT;
    pthread_mutex_unlock(&client->lock);
    return slot;
}

uint32_t hbrt_slot_count(hbrt_client *client) {
    pthread_mutex_lock(&client->lock);
    uint32_t count = client->free_count;
    pthread_mutex_unlock(&client->lock);
    return count;
}

/* -- submit --------------------------------------------------------------------------------------------------------- */

static int is_served(const hbrt_client *client, uint32_t mask) {
    for (uint32_t core = 0; core < client->file.at.core_count; core++)
        if (hbrt_may_run(&client->file, core, mask) && hbrt_load(&hbrt_core_at(&client->file, core)->activity) != HBRT_CORE_OFFLINE)
            return 1;
    return 0;
}

/* Ring a core for a task that has just become READY; 0 if every core that may run it is offline. */
static int ring_core(hbrt_client *client, uint32_t mask, int is_urgent) {
    uint32_t cores = client->file.at.core_count, wanted = 0, offline = 0;
    int bell = -1;
    for (uint32_t core = 0; core < cores; core++) {
        if (!hbrt_may_run(&client->file, core, mask)) continue;
        wanted++;
        switch (hbrt_load(&hbrt_core_at(&client->file, core)->activity)) {
        case HBRT_CORE_LOOKING: return 1;
        case HBRT_CORE_ASLEEP:
            if (bell < 0) bell = client->core_doorbells[core];
            break;
        case HBRT_CORE_OFFLINE: offline++; break;
        default: break;
        }
    }
    if (bell >= 0) {
        hbrt_ring(bell);
    } else if (offline == wanted) {
        return 0;
    } else if (is_urgent && client->has_urgent_bells) {
        for (uint32_t core = 0; core < cores; core++)
            if (hbrt_may_run(&client->file, core, mask)) hbrt_ring(client->urgent_bells[core]);
    }
    return 1;
}

static int lock_claims(hbrt_client *client) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000; /* the holder needs microseconds but may be waiting for a CPU */
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return hbrt_is_locked(client->file.claim_lock, pthread_mutex_timedlock(client->file.claim_lock, &until));
}

/* Cancel a task that no core will claim; 0 if one already has or the claim lock is unavailable. */
static int take_back(hbrt_client *client, uint32_t slot) {
    if (!lock_claims(client)) return 0;
    int is_ready = hbrt_load(client->file.states + slot) == HBRT_READY;
    if (is_ready) hbrt_store(client->file.states + slot, HBRT_CANCELLED);
    pthread_mutex_unlock(client->file.claim_lock);
    return is_ready;
}

static int release(hbrt_client *client, int64_t handle) {
    uint32_t slot = slot_of(client, handle);
    if (live(client, slot) != (uint64_t)handle || hbrt_load(client->file.states + slot) < HBRT_DONE) return HBRT_ASK;
    HBRT_KILL_POINT("client-R01");
    if (hbrt_forget(client, handle) != 1) return HBRT_ASK;
    HBRT_KILL_POINT("client-R02");
    hbrt_store(client->file.states + slot, HBRT_EMPTY);
    HBRT_KILL_POINT("client-R03");
    hbrt_slots_give(client, &slot, 1);
    return 1;
}

/* Fill a slot and leave it HBRT_SENT. Returns its handle, or the code that refuses the task. */
static int64_t fill(hbrt_client *client, const hbrt_request *task, int is_checked) {
    hbrt_file *file = &client->file;
    if (task->cmd < 0 || task->cmd > 0xffff || task->priority < 0 || task->priority > HBRT_PREEMPT ||
        task->core_mask < 0 || (is_checked != HBRT_ELSEWHERE && task->core_mask >> file->at.core_count))
        return HBRT_ASK;
    if (!is_checked && !(hbrt_is_usable(file, client->id, task->input_phy, task->input_bytes) &&
                         hbrt_is_usable(file, client->id, task->output_phy, task->output_bytes)))
        return HBRT_ASK;

    pthread_mutex_lock(&client->lock);
    if (client->free_count == 0) {
        pthread_mutex_unlock(&client->lock);
        return HBRT_NO_SLOT;
    }
    uint32_t slot = client->free_slots[--client->free_count];
    uint64_t serial = client->serial + 1, sequence = hbrt_now_ns();
    __atomic_store_n(&client->serial, serial, __ATOMIC_RELAXED);
    if (sequence <= client->sequence) sequence = client->sequence + 1;
    client->sequence = sequence;
    pthread_mutex_unlock(&client->lock);

    HBRT_KILL_POINT("client-S01");
    uint64_t handle = (((uint64_t)client->id << HBRT_SERIAL_BITS | serial) << HBRT_SLOT_BITS) | slot;
    hbrt_slot_record *record = hbrt_record(file, slot);
    HBRT_KILL_POINT("client-S02");
    HBRT_PUT(record->sequence, sequence);
    HBRT_PUT(record->custom_id, task->custom_id);
    record->cmd = (uint32_t)task->cmd;
    HBRT_PUT(record->priority, (uint16_t)task->priority);
    HBRT_PUT(record->core_mask, (uint16_t)task->core_mask);
    record->owner = record->client = client->id;
    record->input_phy = task->input_phy;
    record->input_bytes = task->input_bytes;
    record->output_phy = task->output_phy;
    record->output_bytes = task->output_bytes;
    __atomic_store_n(&client->handles[slot], handle, __ATOMIC_RELEASE);
    newest.client = client;
    newest.handle = handle;
    hbrt_store(file->states + slot, HBRT_SENT);
    return (int64_t)handle;
}

static void announce(hbrt_file *file, uint32_t slot, uint32_t core_mask) {
    for (uint32_t core = 0; core < file->at.core_count; core++)
        if (hbrt_may_run(file, core, core_mask)) hbrt_store(hbrt_announced(file, core) + slot, 1);
    hbrt_full_fence(); /* the task before the cores' activity: pairs with the fence of a core going to sleep */
}

/* Announce a task to the cores. */
static int64_t publish(hbrt_client *client, int64_t handle, uint32_t core_mask, int is_urgent) {
    hbrt_file *file = &client->file;
    uint32_t slot = slot_of(client, handle);
    HBRT_KILL_POINT("client-S03");
    hbrt_store(file->states + slot, HBRT_READY); /* the record is complete: pairs with the claim */
    HBRT_KILL_POINT("client-S04");
    announce(file, slot, core_mask);
    HBRT_KILL_POINT("client-S05");
    int is_served = ring_core(client, core_mask, is_urgent);
    HBRT_KILL_POINT("client-S06");
    if (is_served || !take_back(client, slot)) return handle;
    release(client, handle);
    return HBRT_UNSERVED;
}

/* Record a submission that began at `start_ns`; 0 if the client records nothing. */
static void note_submission(hbrt_client *client, int64_t handle, uint64_t start_ns) {
    if (start_ns == 0 || handle <= 0) return;
    const hbrt_slot_record *record = hbrt_record(&client->file, slot_of(client, handle));
    hbrt_note(client->events, (hbrt_event){.start_ns = start_ns, .end_ns = hbrt_now_ns(), .kind = HBRT_NOTE_SUBMIT,
                                           .a = HBRT_GET(record->sequence), .b = HBRT_GET(record->cmd),
                                           .unit = (uint16_t)HBRT_GET(record->client)});
}

static int64_t submit(hbrt_client *client, const hbrt_request *task, int is_checked) {
    int64_t answer = HBRT_ASK;
    uint64_t start_ns = begin_note(client);
    newest.client = NULL; /* a caller interrupted now must not undo an older task */
    if (enter(client)) answer = fill(client, task, is_checked);
    if (answer > 0) answer = publish(client, answer, (uint32_t)task->core_mask, task->priority >= HBRT_URGENT);
    leave(client);
    note_submission(client, answer, start_ns);
    return answer;
}

int64_t hbrt_submit(hbrt_client *client, const void *request, int is_checked) {
    return submit(client, request, is_checked);
}

int64_t hbrt_rpc(hbrt_client *client, uintptr_t control, uintptr_t input, uintptr_t output) {
    const hbrt_control *how = (const hbrt_control *)control;
    const hbrt_block *in = (const hbrt_block *)input, *out = (const hbrt_block *)output;
    hbrt_request task = {how->cmd, how->priority, how->core_mask, how->custom_id, in->phy, in->bytes, out->phy, out->bytes};
    int is_for_dsp = task.core_mask >= 0 && task.core_mask >> client->file.dsp_count == 0;
    return task.cmd == HBRT_PING || task.cmd == HBRT_BUTT || !is_for_dsp ? HBRT_ASK : submit(client, &task, 0);
}

int64_t hbrt_prepare(hbrt_client *client, const void *request, int is_checked) {
    const hbrt_request *task = request;
    int64_t answer = HBRT_ASK;
    uint64_t start_ns = begin_note(client);
    newest.client = NULL;
    if (enter(client)) {
        answer = fill(client, task, is_checked);
        if (answer > 0 && is_checked != HBRT_ELSEWHERE && !is_served(client, (uint32_t)task->core_mask)) {
            hbrt_store(client->file.states + slot_of(client, answer), HBRT_CANCELLED); /* no other process knows the task */
            release(client, answer);
            answer = HBRT_UNSERVED;
        }
    }
    leave(client);
    note_submission(client, answer, start_ns);
    return answer;
}

int64_t hbrt_publish(hbrt_client *client, int64_t handle) {
    int64_t answer = HBRT_ASK;
    uint32_t slot = slot_of(client, handle);
    if (enter(client) && live(client, slot) == (uint64_t)handle &&
        hbrt_load(client->file.states + slot) == HBRT_SENT) {
        const hbrt_slot_record *record = hbrt_record(&client->file, slot);
        answer = publish(client, handle, HBRT_GET(record->core_mask), HBRT_GET(record->priority) >= HBRT_URGENT);
    }
    leave(client);
    return answer;
}

int hbrt_relay(hbrt_client *client, uint32_t slot, const void *request) {
    hbrt_file *file = &client->file;
    hbrt_slot_record sent;
    int answer = HBRT_NOTHING;
    memcpy(&sent, request, HBRT_REQUEST_BYTES);
    HBRT_KILL_POINT("relay-R13");
    if (!hbrt_is_locked(file->claim_lock, pthread_mutex_trylock(file->claim_lock))) return HBRT_LOCKED;
    HBRT_KILL_POINT("relay-R14");
    if (hbrt_load(file->states + slot) == HBRT_SENT && memcmp(hbrt_record(file, slot), &sent, HBRT_REQUEST_BYTES) == 0)
        answer = is_served(client, sent.core_mask) ? 1 : HBRT_UNSERVED;
    if (answer == 1) {
        HBRT_KILL_POINT("relay-R15");
        hbrt_store(file->states + slot, HBRT_READY);
        HBRT_KILL_POINT("relay-R16");
        announce(file, slot, sent.core_mask);
        HBRT_KILL_POINT("relay-R17");
    }
    pthread_mutex_unlock(file->claim_lock);
    if (answer == 1) {
        HBRT_KILL_POINT("relay-R18");
        ring_core(client, sent.core_mask, sent.priority >= HBRT_URGENT);
    }
    return answer;
}

int64_t hbrt_newest(hbrt_client *client, int64_t cmd, uint64_t input_phy, uint64_t output_phy) {
    if (newest.client != client) return HBRT_ASK;
    uint32_t slot = slot_of(client, (int64_t)newest.handle);
    const hbrt_slot_record *record = hbrt_record(&client->file, slot);
    int is_it = live(client, slot) == newest.handle && record->cmd == (uint64_t)cmd &&
                record->input_phy == input_phy && record->output_phy == output_phy;
    return is_it ? (int64_t)newest.handle : HBRT_ASK;
}

/* -- release -------------------------------------------------------------------------------------------------------- */

int hbrt_forget(hbrt_client *client, int64_t handle) {
    uint32_t slot = slot_of(client, handle);
    uint64_t expected = (uint64_t)handle;
    return handle > 0 && __atomic_compare_exchange_n(&client->handles[slot], &expected, 0, 0, __ATOMIC_ACQ_REL,
                                                     __ATOMIC_ACQUIRE)
               ? 1
               : HBRT_ASK;
}

int hbrt_cancel(hbrt_client *client, uint32_t slot, int32_t status, const char *text) {
    hbrt_file *file = &client->file;
    hbrt_slot_record *record = hbrt_record(file, slot);
    int answer = HBRT_NOTHING;
    HBRT_KILL_POINT("client-X01");
    if (!lock_claims(client)) return HBRT_LOCKED;
    HBRT_KILL_POINT("client-X02");
    uint8_t state = hbrt_load(file->states + slot);
    if (state == HBRT_SENT || state == HBRT_READY) {
        record->core = -1;
        record->result = status;
        record->text_bytes = (uint32_t)strlen(text);
        record->has_work = 0;
        record->claim_ns = record->start_ns = record->cycles = 0;
        record->done_ns = hbrt_now_ns();
        memcpy((char *)record + HBRT_SLOT_TEXT, text, record->text_bytes);
        HBRT_KILL_POINT("client-X03");
        hbrt_store(file->states + slot, HBRT_CANCELLED);
        HBRT_KILL_POINT("client-X04");
        answer = 1;
    }
    pthread_mutex_unlock(file->claim_lock);
    return answer;
}

int hbrt_release(hbrt_client *client, int64_t handle) {
    int answer = enter(client) ? release(client, handle) : HBRT_ASK;
    leave(client);
    return answer;
}
