/* A core and a client in C against processes that write anything into the slots, the states, the announcements, the records of
 * clients and those of cores, also while an op runs. usage: fuzz SEED ROUNDS. What is no part of the table is poisoned. */
#define _GNU_SOURCE
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "layout.h"
#include "mailbox.h"

enum { CORES = 3, DSP_CORES = 2, SLOTS = 64, HEAP_PAGES = 32, BLOCKS = 6, GAP = 4096, FIRST_CMD = 0x1000 };
static const uint64_t BASE = 0x80000000u;

static hbrt_file file;
static uint64_t noise;
static uint8_t is_core = 1;
static uint64_t served;

static uint64_t draw(uint64_t below) {
    noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
    return (noise >> 11) % below;
}

static uint64_t word(void) {
    static const uint64_t ODD[] = {0, 1, 2, 3, 4, 5, 6, 7, 255, 256, 1023, 1024, 0xffff, 0x10000, 0x7fffffff, 0x80000000u, 0xffffffffu, 1ull << 63, ~0ull};
    if (draw(2)) return ODD[draw(sizeof ODD / sizeof *ODD)];
    return draw(3) ? BASE + file.at.heap + draw(HEAP_PAGES * 512) * 8 : noise;
}

/* The next part of a table, and poisoned bytes behind it. */
static uint64_t part(uint64_t *end, uint64_t bytes) {
    const uint64_t at = *end;
    *end = (at + bytes + GAP + 63) / 64 * 64;
    return at;
}

static void poison(uint64_t *until, uint64_t at, uint64_t bytes) {
    ASAN_POISON_MEMORY_REGION(file.map + *until, at - *until);
    *until = at + bytes;
}

static void make_table(void) {
    hbrt_header at = {.magic = "HBRTDDR", .version = HBRT_LAYOUT_VERSION, .ddr_base = BASE, .core_count = CORES};
    uint64_t end = 8192;
    at.core_record_bytes = 256, at.client_record_bytes = 64, at.client_count = HBRT_CLIENTS;
    at.slot_record_bytes = 4096, at.slot_count = SLOTS, at.block_record_bytes = 128;
    at.history_record_bytes = sizeof(hbrt_history_record), at.history_count = 16;
    at.cores = part(&end, CORES * 256);
    at.clients = part(&end, HBRT_CLIENTS * 64);
    at.states = part(&end, SLOTS);
    at.announce = part(&end, CORES * SLOTS);
    at.records = part(&end, SLOTS * 4096);
    at.pages = part(&end, HEAP_PAGES * 4);
    at.blocks = end, end += 2 * BLOCKS * 128;
    at.history = end, end += CORES * 16 * sizeof(hbrt_history_record);
    at.heap = end = (end + GAP + 4095) / 4096 * 4096;
    at.heap_bytes = HEAP_PAGES * 4096;
    at.file_bytes = at.heap + at.heap_bytes;
    uint8_t *map = aligned_alloc(4096, at.file_bytes);
    if (map == NULL) abort();
    memset(map, 0, at.file_bytes);
    memcpy(map, &at, sizeof at);
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_settype(&shared, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init((pthread_mutex_t *)(void *)(map + HBRT_CLAIM_LOCK), &shared);
    if (!hbrt_file_open(&file, map, at.file_bytes, map)) abort();
    file.dsp_count = DSP_CORES;
    for (uint32_t block = 1; block <= BLOCKS; block++) { /* of 1 to 3 pages, with a free one behind each */
        hbrt_block_record *record = (hbrt_block_record *)(void *)(map + at.blocks + (uint64_t)block * 128);
        const uint32_t first = block * 5 - 5, pages = 1 + block % 3;
        *record = (hbrt_block_record){.phy_addr = BASE + at.heap + first * 4096, .size_bytes = pages * 4096 - 8 * (block % 2), .owner = 1 + block % 3};
        for (uint32_t page = first; page < first + pages; page++) memcpy(map + at.pages + 4 * page, &block, 4);
    }
    uint64_t until = 8192;
    poison(&until, at.cores, CORES * 256);
    poison(&until, at.clients, HBRT_CLIENTS * 64);
    poison(&until, at.states, SLOTS);
    poison(&until, at.announce, CORES * SLOTS);
    poison(&until, at.records, SLOTS * 4096);
    poison(&until, at.pages, HEAP_PAGES * 4);
    poison(&until, at.blocks, at.heap - GAP - at.blocks);
    for (uint32_t block = 1; block <= BLOCKS; block++)
        poison(&until, at.heap + (block * 5 - 5) * 4096, (1 + block % 3) * 4096 - 8 * (block % 2));
    poison(&until, at.file_bytes, 0);
}

static void scribble(void) {
    const uint64_t value = word();
    const uint32_t slot = (uint32_t)draw(SLOTS);
    uint8_t *record = (uint8_t *)hbrt_record(&file, slot);
    switch (draw(6)) {
    case 0: file.states[slot] = (uint8_t)(draw(2) ? draw(8) : value); break;
    case 1: hbrt_announced(&file, (uint32_t)draw(CORES))[slot] = (uint8_t)(draw(2) ? 1 : value); break;
    case 2: memcpy(record + draw(40) * 4, &value, 4); break;
    case 3: memcpy(record + draw(20) * 8, &value, 8); break;
    case 4: ((uint8_t *)hbrt_client_at(&file, (uint32_t)draw(5)))[draw(8)] = (uint8_t)value; break;
    default: ((uint8_t *)hbrt_core_at(&file, (uint32_t)draw(CORES)))[draw(48)] = (uint8_t)(draw(2) ? draw(6) : value);
    }
}

/* A task as a program writes it. */
static void post(void) {
    const uint32_t slot = (uint32_t)draw(SLOTS);
    hbrt_slot_record *record = hbrt_record(&file, slot);
    const uint64_t place = BASE + file.at.heap + draw(BLOCKS) * 5 * 4096;
    *record = (hbrt_slot_record){.sequence = draw(1000), .custom_id = (int64_t)draw(3), .cmd = FIRST_CMD + (uint32_t)draw(5), .priority = (uint16_t)draw(300),
                                 .core_mask = (uint16_t)draw(8), .owner = (uint32_t)draw(5), .client = (uint32_t)draw(5),
                                 .input_phy = draw(4) ? place : word(), .input_bytes = draw(4) ? draw(4097) : word(),
                                 .output_phy = draw(4) ? place : word(), .output_bytes = draw(4) ? draw(4097) : word()};
    file.states[slot] = HBRT_READY;
    hbrt_announced(&file, (uint32_t)draw(CORES))[slot] = 1;
}

static void touch(void *block, uint64_t bytes) {
    volatile uint8_t *at = block;
    if (bytes) at[0]++, at[bytes - 1]++, at[bytes / 2]++;
}

static int32_t call(void *code, void *input, void *output, uint64_t input_bytes, uint64_t output_bytes, uint32_t client, int32_t *result, uint64_t *spent) {
    (void)client;
    served++;
    touch(input, input_bytes);
    touch(output, output_bytes);
    if (!draw(3)) scribble();
    *result = code == (void *)2 ? (int32_t)word() : 0;
    memset(spent, 0, 8 * (1 + HBRT_WORK_COUNTS));
    spent[0] = draw(3);
    return !draw(8);
}

static void run_core(hbrt_core *core) {
    const int slot = draw(4) ? hbrt_core_next(core) : hbrt_core_claim(core, (int64_t)draw(300) - 20);
    uint32_t owners[4];
    hbrt_ending end = {.slot = (uint32_t)slot, .result = draw(2) ? 0 : -5, .is_nested = (int32_t)draw(2), .done_ns = 7, .cycles = draw(9), .has_work = draw(2)};
    if (slot >= SLOTS) abort();
    if (slot >= 0) {
        end.owner = hbrt_record(&file, (uint32_t)slot)->owner;
        hbrt_core_answer(core, &end);
    } else if (slot == HBRT_RAN && hbrt_core_adopt(core) >= 0) {
        end.slot = hbrt_core_ran(core)->slot, end.owner = hbrt_core_ran(core)->owner;
        hbrt_core_answer(core, &end);
    }
    hbrt_core_unrung(core, owners, 4);
    hbrt_core_is_queued(core, (uint32_t)draw(SLOTS));
    hbrt_core_first_rank(core);
}

static void run_client(hbrt_client *client) {
    static int64_t handles[16];
    int64_t *handle = &handles[draw(16)];
    const uint64_t place = BASE + file.at.heap + draw(BLOCKS) * 5 * 4096;
    const hbrt_request task = {draw(4) ? FIRST_CMD + (int64_t)draw(5) : (int64_t)word(), draw(4) ? (int64_t)draw(256) : (int64_t)word(), draw(4) ? (int64_t)draw(8) : (int64_t)word(),
                               (int64_t)draw(3), draw(3) ? place : word(), draw(3) ? draw(4096) : word(), 0, 0};
    const int64_t given = draw(8) ? *handle : (int64_t)word();
    switch (draw(8)) {
    case 0: *handle = hbrt_submit(client, &task, 0); break;
    case 1: *handle = hbrt_prepare(client, &task, draw(2) ? 0 : HBRT_ELSEWHERE); break;
    case 2: hbrt_publish(client, given); break;
    case 3: hbrt_wait(client, given, 0, 1); break;
    case 4: hbrt_cancel(client, (uint32_t)given % SLOTS, -9, "away"); break;
    case 5: hbrt_release(client, given); break;
    case 6: hbrt_newest(client, task.cmd, task.input_phy, 0); break;
    default: hbrt_forget(client, given);
    }
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    noise = strtoull(arguments[1], NULL, 10) * 2654435761u + 1;
    make_table();
    int bells[CORES], doorbell = eventfd(0, EFD_NONBLOCK), control = eventfd(1, EFD_NONBLOCK), epoll = epoll_create1(0);
    for (int core = 0; core < CORES; core++) bells[core] = eventfd(0, EFD_NONBLOCK);
    struct epoll_event on = {.events = EPOLLIN, .data.fd = control};
    epoll_ctl(epoll, EPOLL_CTL_ADD, control, &on);
    hbrt_core *core = hbrt_core_new(file.map, file.at.file_bytes, file.map, 1, bells, epoll, control, 1);
    hbrt_client *client = hbrt_client_new(file.map, file.at.file_bytes, file.map, 2, doorbell, bells, bells, 0);
    if (core == NULL || client == NULL) return 2;
    hbrt_core_calls(core, call, &is_core);
    for (uintptr_t cmd = 0; cmd < 4; cmd++) hbrt_core_op(core, FIRST_CMD + (uint32_t)cmd, (void *)(cmd + 1));
    hbrt_core_client(core, 2, 0, doorbell);
    hbrt_core_age(core, draw(2) * 1000);
    uint32_t slots[SLOTS];
    for (uint32_t slot = 0; slot < SLOTS; slot++) slots[slot] = slot;
    for (long rounds = strtol(arguments[2], NULL, 10); rounds-- > 0;) {
        if (rounds % 100 == 0) hbrt_slots_give(client, slots, SLOTS / 2);
        if (draw(2)) post();
        for (int times = draw(500) ? 0 : 300; times--;) post(), hbrt_core_first_rank(core); /* the queue is full */
        for (int times = (int)draw(4); times--;) scribble();
        if (draw(2)) run_core(core);
        if (draw(2)) run_client(client);
    }
    hbrt_core_free(core);
    hbrt_client_free(client);
    if (served == 0) return 3;
    puts("good");
    return 0;
}
