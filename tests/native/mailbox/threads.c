/* Two clients of three threads each, and two cores, on a table in their own memory: for the sanitizers. */
#define _GNU_SOURCE
#include "layout.h"
#include "mailbox.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CORES = 2, CLIENTS = 2, THREADS = 3, CALLS = 500, SLOTS = 4096, HEAP_PAGES = 16 };

static hbrt_file file;
static hbrt_client *clients[CLIENTS];
static int core_bells[CORES], client_bells[CLIENTS], stop;

static void *make_table(uint64_t *bytes) {
    hbrt_header at = {.magic = "HBRTDDR", .version = HBRT_LAYOUT_VERSION, .ddr_base = 0x80000000, .core_count = CORES};
    at.cores = 4096;
    at.core_record_bytes = 256;
    at.clients = at.cores + 4096;
    at.client_record_bytes = 64;
    at.client_count = HBRT_CLIENTS;
    at.states = at.clients + HBRT_CLIENTS * 64;
    at.slot_count = SLOTS;
    at.announce = at.states + SLOTS;
    at.records = at.announce + HBRT_MAX_CORES * SLOTS;
    at.slot_record_bytes = 256;
    at.pages = at.records + SLOTS * 256;
    at.blocks = at.pages + 4096;
    at.block_record_bytes = 64;
    at.history = at.blocks + 4096;
    at.history_record_bytes = sizeof(hbrt_history_record);
    at.history_count = 64;
    at.heap = at.history + (uint64_t)CORES * at.history_count * at.history_record_bytes;
    at.heap_bytes = HEAP_PAGES * 4096;
    *bytes = at.file_bytes = at.heap + at.heap_bytes;
    uint8_t *map = aligned_alloc(4096, (*bytes + 4095) & ~4095ull);
    assert(map != NULL);
    memset(map, 0, *bytes);
    memcpy(map, &at, sizeof at);
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_settype(&shared, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init((pthread_mutex_t *)(void *)(map + HBRT_CLAIM_LOCK), &shared);
    return map;
}

static const uint8_t is_core = 1;
enum { IN_C = 2 }; /* of a command: 0x1002 returns 0, 0x1003 fails */

static int32_t call(void *code, void *input, void *output, uint64_t input_bytes, uint64_t output_bytes, uint32_t client,
                    int32_t *result, uint64_t *cycles) {
    (void)input, (void)output, (void)input_bytes, (void)output_bytes, (void)client;
    *result = code == (void *)0x1003 ? -42 : 0;
    *cycles = 5;
    return 0;
}

/* What a core's heartbeat asks and says. */
static void *beat_main(void *given) {
    hbrt_core *core = given;
    uint32_t owners[CLIENTS + 1], runs = 0;
    uint64_t last_ns;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        runs += hbrt_core_runs(core, 0x1000 + IN_C, &last_ns) + hbrt_core_runs(core, 0x1001 + IN_C, &last_ns);
        assert(hbrt_core_running(core) < (int)SLOTS);
        hbrt_core_unrung(core, owners, CLIENTS + 1);
        hbrt_core_interrupt(core);
        usleep(100);
    }
    return (void *)(uintptr_t)runs;
}

static void *core_main(void *given) {
    uint32_t index = (uint32_t)(uintptr_t)given;
    int epoll = epoll_create1(0);
    struct epoll_event on = {.events = EPOLLIN | EPOLLET, .data.fd = core_bells[index]};
    epoll_ctl(epoll, EPOLL_CTL_ADD, core_bells[index], &on);
    hbrt_core *core = hbrt_core_new(file.map, file.at.file_bytes, file.map, index, core_bells, epoll, -1, 0);
    assert(core != NULL);
    for (uint32_t client = 0; client < CLIENTS; client++) hbrt_core_client(core, client + 1, 0, client_bells[client]);
    hbrt_core_calls(core, call, &is_core);
    for (uintptr_t cmd = 0x1002; cmd < 0x1004; cmd++) hbrt_core_op(core, (uint32_t)cmd, (void *)cmd);
    pthread_t beat;
    pthread_create(&beat, NULL, beat_main, core);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        int slot = hbrt_core_next(core);
        if (slot == HBRT_RAN) {
            slot = (int)hbrt_core_ran(core)->slot;
            assert(hbrt_core_adopt(core) == slot && hbrt_core_ran(core)->result == -42);
        }
        if (slot == HBRT_LOCKED || slot < 0) continue;
        hbrt_slot_record *record = hbrt_record(&file, (uint32_t)slot);
        int fails = record->cmd & 1;
        if (fails) record->result = -42;
        hbrt_core_answer(core, &(hbrt_ending){(uint32_t)slot, record->owner, fails ? -42 : 0, 0, 1, 2, record->cmd, 0});
    }
    void *runs;
    pthread_join(beat, &runs);
    assert(runs != NULL && hbrt_core_cycles(core) % 5 == 0);
    hbrt_core_free(core);
    close(epoll);
    return NULL;
}

static void *client_main(void *given) {
    uint32_t number = (uint32_t)(uintptr_t)given;
    hbrt_client *client = clients[number / THREADS];
    for (int call = 0; call < CALLS; call++) {
        int fails = call % 7 == 3;
        int in_steps = call % 3 == 0;
        hbrt_request task = {.cmd = 0x1000 + fails + IN_C * (call % 2), .priority = call % 256, call % 4, call % 3};
        int64_t handle = (in_steps ? hbrt_prepare : hbrt_submit)(client, &task, 0);
        assert(handle > 0 && (!in_steps || hbrt_publish(client, handle) == handle));
        int64_t patience_ns = call % 5 == 0 ? 1000 : -1;
        int state, polls = call % 11 == 0;
        do {
            state = hbrt_wait(client, handle, patience_ns, polls);
            assert(state != HBRT_INTERRUPTED || polls); /* no signal comes: it has polled in vain */
            polls = 0;
        } while (state == HBRT_TIMEOUT || state == HBRT_INTERRUPTED);
        assert(state == (fails ? HBRT_FAILED : HBRT_DONE));
        assert(hbrt_release(client, handle) == 1);
        assert(hbrt_release(client, handle) == HBRT_ASK);
        assert(hbrt_wait(client, handle, -1, 0) == HBRT_ASK);
    }
    return NULL;
}

/* Waits for nudges alone, next to those that wait for tasks. */
static void *nudged_main(void *given) {
    hbrt_client *client = given;
    uint32_t seen = 0;
    while (hbrt_wait_any(client, NULL, 0, seen, -1) == 1) seen = hbrt_nudges(client);
    return NULL;
}

/* A queue that one task fills, announced again and again, takes the others all the same. */
static void test_announced_again(void *map, uint64_t bytes) {
    hbrt_core *core = hbrt_core_new(map, bytes, map, 0, core_bells, -1, -1, 0);
    for (uint32_t slot = 5; slot < 7; slot++) {
        hbrt_record(&file, slot)->priority = (uint16_t)(7 * slot);
        hbrt_store(file.states + slot, HBRT_READY);
    }
    for (int n = 0; n < 3 * SLOTS; n++) {
        hbrt_store(hbrt_announced(&file, 0) + 5, 1);
        if (n == 2 * SLOTS) hbrt_store(hbrt_announced(&file, 0) + 6, 1);
        assert(hbrt_core_first_rank(core) == (n < 2 * SLOTS ? 35 : 42));
    }
    assert(hbrt_core_claim(core, 0) == 6 && hbrt_core_claim(core, 0) == 5 && hbrt_core_claim(core, 0) == HBRT_NOTHING);
    memset(file.states, HBRT_EMPTY, SLOTS);
    hbrt_core_free(core);
}

/* What a hostile program writes into the file: no core and no other client goes by it. */
static void test_hostile_bytes(void *map, uint64_t bytes) {
    hbrt_header header;
    memcpy(&header, map, sizeof header);
    memset(map, 0xff, sizeof header);
    hbrt_core *core = hbrt_core_new(map, bytes, &header, 1, core_bells, -1, -1, 0);
    hbrt_client *client = hbrt_client_new(map, bytes, &header, 1, -1, core_bells, NULL, 0);
    assert(core != NULL && client != NULL);
    memset(hbrt_record(&file, 9), 0xff, 64);
    hbrt_store(file.states + 9, HBRT_READY);
    hbrt_store(hbrt_announced(&file, 1) + 9, 1);
    memset(hbrt_core_at(&file, 0), 0xff, 256);
    assert(hbrt_core_claim(core, 0) == 9);
    assert(hbrt_core_answer(core, &(hbrt_ending){9, 0xffffffff, 0, 0, 1, 2, 3, 0}) == 1);
    memset(file.map + header.pages, 0xff, header.heap - header.pages);
    hbrt_request task = {.cmd = 1, .input_phy = header.ddr_base + header.heap, .input_bytes = 64};
    assert(hbrt_submit(client, &task, 0) == HBRT_ASK);
    memset(file.map + header.pages, 0, header.heap - header.pages);
    hbrt_client_free(client);
    hbrt_core_free(core);
    memcpy(map, &header, sizeof header);
    memset(file.map + header.cores, 0, header.heap - header.cores);
}

/* What an interrupted caller would undo is the submission that it made, not an older one. */
static void test_newest(hbrt_client *client) {
    hbrt_control how = {.cmd = 7}, wrong = {.cmd = 7, .priority = 256};
    uintptr_t none = (uintptr_t)&(hbrt_block){0};
    int64_t handle = hbrt_rpc(client, (uintptr_t)&how, none, none);
    assert(handle > 0 && hbrt_newest(client, 7, 0, 0) == handle && hbrt_newest(client, 8, 0, 0) == HBRT_ASK);
    assert(hbrt_rpc(client, (uintptr_t)&wrong, none, none) == HBRT_ASK && hbrt_newest(client, 7, 0, 0) == HBRT_ASK);
    assert(hbrt_wait(client, handle, 0, 1) == HBRT_TIMEOUT && hbrt_wait(client, handle + 1, -1, 0) == HBRT_ASK);
    assert(hbrt_publish(client, handle) == HBRT_ASK && hbrt_publish(client, handle + 1) == HBRT_ASK); /* it is READY */
    uint32_t slot = (uint32_t)handle & (SLOTS - 1);
    assert(hbrt_cancel(client, slot, -5, "gone") == 1 && hbrt_cancel(client, slot, -5, "gone") == HBRT_NOTHING);
    assert(hbrt_wait(client, handle, -1, 1) == HBRT_CANCELLED && hbrt_record(&file, slot)->result == -5);
    assert(memcmp((char *)hbrt_record(&file, slot) + HBRT_SLOT_TEXT, "gone", 4) == 0 && hbrt_release(client, handle) == 1);
    for (uint32_t core = 0; core < CORES; core++) hbrt_store(hbrt_announced(&file, core) + slot, 0);
}

int main(void) {
    uint64_t bytes;
    void *map = make_table(&bytes);
    pthread_t cores[CORES], users[CLIENTS * THREADS], nudged;
    assert(hbrt_file_open(&file, map, bytes, map));
    test_announced_again(map, bytes);
    test_hostile_bytes(map, bytes);
    for (uintptr_t core = 0; core < CORES; core++) core_bells[core] = eventfd(0, EFD_NONBLOCK);
    for (uint32_t client = 0; client < CLIENTS; client++) {
        client_bells[client] = eventfd(0, 0);
        clients[client] = hbrt_client_new(map, bytes, map, client + 1, client_bells[client], core_bells, NULL, 100);
        assert(clients[client] != NULL);
        hbrt_client_polls(clients[client], client % 2 * 20000);
        for (uint32_t n = 0; n < THREADS; n++) hbrt_slots_give(clients[client], (uint32_t[]){client * 64 + n}, 1);
    }
    test_newest(clients[0]);
    for (uintptr_t core = 0; core < CORES; core++) pthread_create(&cores[core], NULL, core_main, (void *)core);
    pthread_create(&nudged, NULL, nudged_main, clients[0]);
    for (uintptr_t user = 0; user < CLIENTS * THREADS; user++)
        pthread_create(&users[user], NULL, client_main, (void *)user);
    for (int n = 0; n < 1000; n++) hbrt_nudge(clients[0]);
    for (int user = 0; user < CLIENTS * THREADS; user++) pthread_join(users[user], NULL);
    assert(hbrt_slot_count(clients[0]) == THREADS);
    hbrt_client_leave(clients[0]);
    pthread_join(nudged, NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    uint64_t tasks = 0;
    for (int core = 0; core < CORES; core++) eventfd_write(core_bells[core], 1);
    for (int core = 0; core < CORES; core++) pthread_join(cores[core], NULL);
    for (uint32_t core = 0; core < CORES; core++) tasks += hbrt_core_at(&file, core)->tasks;
    assert(tasks == CLIENTS * THREADS * CALLS);
    for (int client = 0; client < CLIENTS; client++) hbrt_client_free(clients[client]);
    /* What is not a board's file is refused. */
    memset(map, 'x', 8);
    assert(hbrt_client_new(map, bytes, map, 1, 0, core_bells, NULL, 0) == NULL);
    assert(hbrt_core_new(map, bytes, map, 0, core_bells, 0, 0, 0) == NULL);
    assert(hbrt_core_new(map, 100, map, 0, core_bells, 0, 0, 0) == NULL);
    free(map);
    puts("good");
    return 0;
}
