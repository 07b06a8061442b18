/* dspqueue.c and fastrpc.c of an image against programs that write anything, also in the middle of a call.
 * usage: fuzz SEED ROUNDS. All memory that is not the calling program's is poisoned: ASan ends the run at its first use. */
#include <sanitizer/asan_interface.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "AEEStdErr.h"
#include "HAP_mem.h"
#include "dspqueue.h"
#include "engine.h"
#include "fastrpc.h"
#include "hb_dsp.h"
#include "remote.h"

enum { PAGE = 4096, PAGES = 64, CLIENTS = 3, BLOCKS = 4, BLOCK_PAGES = 4, MAX_CALLS = 40 };
static const uint64_t BASE = 0x80000000u;

static uint8_t *ddr;
static struct { uint32_t page, bytes; } blocks[CLIENTS][BLOCKS];
static uint32_t running, processes[CLIENTS]; /* the client whose task runs; which process each is by now */
static uint64_t noise = 1;
static int is_hostile; /* the program writes while it is served */
static int calls;
static int (*op)(void *, void *, void *);

static uint32_t draw(uint32_t below) {
  noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
  return (uint32_t)((noise >> 11) % below);
}

/* A word as a program that means harm, or has a bug, writes it. */
static uint32_t word(void) {
  static const uint32_t ODD[] = {0, 1, 4, 8, 16, 24, 63, 64, 65, 72, 255, 4096, 65535, 65536, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff};
  return draw(3) ? ODD[draw(sizeof ODD / sizeof *ODD)] : draw(2) ? draw(2048) * 8 : draw(0x7fffffff) * 2 + draw(2);
}

static uint8_t *block(uint32_t client, uint32_t at) { return ddr + blocks[client][at].page * PAGE; }
static uint64_t phy(const uint8_t *place) { return BASE + (uint64_t)(place - ddr); }

static void scribble(void) {
  const uint32_t at = draw(BLOCKS), bytes = blocks[running][at].bytes;
  uint8_t *place = block(running, at) + (draw(2) ? draw(bytes / 8) * 8 : draw(40) * 4 % (bytes & ~3u));
  const uint32_t value = word();
  memcpy(place, &value, place + 4 <= block(running, at) + bytes ? 4 : 1);
}

static void begin(uint32_t client) {
  running = client;
  ASAN_POISON_MEMORY_REGION(ddr, PAGES * PAGE);
  for (uint32_t at = 0; at < BLOCKS; at++) ASAN_UNPOISON_MEMORY_REGION(block(client, at), blocks[client][at].bytes);
}

/* -- what the two files call */

HBRT_THREAD struct frame *hbrt_dsp_frame;

void *hbrt_dsp_mem_map(const char *site, uint64_t phy_addr, int64_t size) {
  (void)site;
  if (is_hostile && !draw(4)) scribble();
  for (uint32_t at = 0; size > 0 && at < BLOCKS; at++) {
    const uint64_t offset = phy_addr - phy(block(running, at)), bytes = blocks[running][at].bytes;
    if (offset < bytes && (uint64_t)size <= bytes - offset) return block(running, at) + offset;
  }
  return MAP_FAILED;
}
int hbrt_dsp_mem_unmap(const char *site, uintptr_t mapped) { return (void)site, (void)mapped, is_hostile && !draw(4) ? scribble(), 0 : 0; }
int hb_dsp_core_id(void) { return 0; }
int hb_dsp_env_init(void) { return 0; }
int hbrt_dsp_start(const char *site) { return (void)site, 0; }
int hbrt_dsp_register_fn(const char *site, const char *name, int cmd, hb_dsp_fn fn, int latency) {
  (void)site, (void)name, (void)cmd, (void)latency;
  op = fn;
  return 0;
}
int fuzz_raise(int);
uint32_t hbrt_dsp_task_client(void) { return running; }
int (*hbrt_dsp_offered_main)(void);
void (*hbrt_dsp_at_end)(void);
uint64_t hbrt_dsp_client(int32_t id) { return (uint64_t)(id < 0 ? running : (uint32_t)id) << 32 | processes[id < 0 ? running : (uint32_t)id]; }
void hb_dsp_log(int level, const char *format, ...) {
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  (void)level, vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
}

int fuzz_raise(int number) { return number; } /* for raise: the message that ends a core */

/* -- the image */

static dspqueue_t queue;

static void touch(void *place, uint64_t bytes) {
  volatile uint8_t *at = place;
  if (!bytes) return;
  at[0]++, at[bytes - 1]++, at[bytes / 2]++;
}

static void answer_packets(dspqueue_t from, AEEResult error, void *context) {
  (void)error, (void)context;
  static uint8_t message[65536];
  struct dspqueue_buffer buffers[64];
  uint32_t flags, count = 0, length = 0;
  uint64_t value;
  while (++calls % MAX_CALLS) {
    switch (draw(8)) {
      case 0: dspqueue_write_early_wakeup_noblock(from, word(), word()); break;
      case 1: dspqueue_peek_noblock(from, &flags, &count, &length); break;
      case 2: dspqueue_get_stat(from, (enum dspqueue_stat)draw(9), &value); break;
      case 3: memset(buffers, 1, sizeof buffers), dspqueue_write(from, word(), draw(66), buffers, draw(300), message, 0); break;
      case 4:
        if (draw(20)) break;
        dspqueue_close(from);
        return;
      default: {
        if (dspqueue_read_noblock(from, &flags, draw(2) ? 64 : 2, &count, buffers, draw(2) ? sizeof message : 40, &length, message)) return;
        for (uint32_t at = 0; at < count; at++) touch(buffers[at].ptr, buffers[at].size);
        dspqueue_write_noblock(from, flags, count, buffers, length, message);
      }
    }
  }
}

static int skeleton(remote_handle64 handle, uint32_t scalars, remote_arg *arguments) {
  (void)handle;
  const uint32_t count = REMOTE_SCALARS_LENGTH(scalars);
  uint64_t id = 0;
  if (arguments && count && arguments[0].buf.nLen >= sizeof id) memcpy(&id, arguments[0].buf.pv, sizeof id);
  for (uint32_t at = 0; arguments && at < count; at++) touch(arguments[at].buf.pv, arguments[at].buf.nLen);
  switch (REMOTE_SCALARS_METHOD(scalars)) {
    case 0: return 0;
    case 1: return 0;
    case 2: return dspqueue_import(id, answer_packets, NULL, NULL, &queue);
    case 3: return dspqueue_close(queue);
    case 5: {
      void *address = NULL;
      if (!HAP_mmap_get((int)draw(3), &address, NULL)) touch(address, 1);
      if (draw(2)) HAP_mmap_put((int)draw(3));
      return 0;
    }
    case 4: answer_packets(queue, 0, NULL); return 0; /* also of a queue of another program */
    default: return (int)word();
  }
}

/* -- the programs */

static int run(const uint8_t *input, uint64_t input_bytes, uint8_t *output, uint64_t output_bytes) {
  struct frame frame = {.is_op = 1, .input_bytes = input_bytes, .output_bytes = output_bytes};
  hbrt_dsp_frame = &frame;
  is_hostile = draw(2);
  const int code = op(input_bytes ? (void *)(uintptr_t)input : NULL, output, NULL);
  is_hostile = 0;
  hbrt_dsp_frame = NULL;
  return code;
}

static uint64_t handles[CLIENTS];

/* A queue with some packets, in block 1. */
static void make_queue(void) {
  uint8_t *head = block(running, 1);
  const uint32_t sizes[] = {64 + 8 * (2 + draw(200)), 64 + 8 * (2 + draw(200))};
  if (64 + sizes[0] + sizes[1] > blocks[running][1].bytes) return;
  memset(head, 0, 64 + sizes[0] + sizes[1]);
  memcpy(head, sizes, sizeof sizes);
  uint32_t at = 0;
  for (int packets = (int)draw(5); packets-- && at + 400 < sizes[0];) {
    const uint16_t flags[] = {(uint16_t)(draw(4) ? 0 : draw(65536)), (uint16_t)draw(3)};
    const uint32_t length = draw(64);
    memcpy(head + 128 + at, flags, 4);
    memcpy(head + 132 + at, &length, 4);
    for (uint32_t one = 0; one < flags[1]; one++) {
      const uint64_t place = draw(4) ? phy(block(running, 2)) : word();
      const uint32_t size = draw(4) ? draw(100) : word();
      memcpy(head + 140 + at + 24 * one, &size, 4);
      memcpy(head + 152 + at + 24 * one, &place, 8);
    }
    at += (8 + 24u * flags[1] + length + 7) & ~7u;
  }
  memcpy(head + 64, &at, 4);
}

static void step(void) {
  begin(draw(CLIENTS));
  if (!draw(100)) processes[running]++;
  const uint32_t bytes = blocks[running][0].bytes;
  const uint32_t offset = draw(3) ? 0 : draw(bytes / 8) * 8;
  uint8_t *input = block(running, 0) + offset, *output = block(running, 3);
  uint64_t input_bytes = draw(3) ? bytes - offset : draw(bytes - offset + 1), output_bytes = draw(4) ? 8 : draw(8);
  uint8_t raw[24 + 510 * 16] = {0};
  uint32_t kind = 1 + draw(5);
  uint32_t inputs = draw(3) ? 1 + draw(3) : draw(256), outputs = draw(3) ? draw(3) : draw(256);
  uint32_t scalars = draw(8) ? REMOTE_SCALARS_MAKE(draw(6), inputs, outputs) : word(), count = draw(8) ? inputs + outputs : word();
  uint64_t handle = kind == 5 ? phy(block(running, 1)) : draw(8) ? handles[draw(8) ? running : draw(CLIENTS)] : word();
  static const char uri[] = "file:///lib.so?skel&_modver=1.0";
  if (kind == 1) count = draw(8) ? (uint32_t)strlen(uri) : word(), memcpy(raw + 24, uri, strlen(uri));
  memcpy(raw, &kind, 4), memcpy(raw + 4, &scalars, 4), memcpy(raw + 8, &handle, 8), memcpy(raw + 16, &count, 4);
  for (uint32_t at = 0; kind == 2 && at < 510; at++) {
    const uint64_t place = draw(6) ? phy(block(running, 2)) + draw(64) : word(), size = draw(6) ? draw(100) : word();
    memcpy(raw + 24 + at * 16, &place, 8), memcpy(raw + 32 + at * 16, &size, 8);
  }
  const uint32_t table = (uint32_t)(phy(block(running, 2)) / PAGE);
  if (kind == 2) memcpy(raw + 20, &table, 4);
  if (kind == 2 && !draw(3)) { /* a table of descriptors, and a call that uses it */
    const uint32_t row[] = {draw(3), 1};
    const uint64_t memory[] = {phy(block(draw(4) ? running : draw(CLIENTS), 3)), 1 + draw(100)};
    scalars = REMOTE_SCALARS_MAKE(5, 0, 0), count = 0;
    memcpy(raw + 4, &scalars, 4), memcpy(raw + 16, &count, 4);
    memcpy(block(running, 2) + 24 * draw(3), row, 8), memcpy(block(running, 2) + 8 + 24 * draw(3), memory, 16);
  } else if (kind == 2 && draw(2)) { /* an import */
    const uint64_t id = phy(block(running, 1)), place = phy(block(running, 2)), size = 8;
    scalars = REMOTE_SCALARS_MAKE(2, 1, 0), count = 1, handle = handles[running];
    memcpy(raw + 4, &scalars, 4), memcpy(raw + 8, &handle, 8), memcpy(raw + 16, &count, 4);
    if (draw(8)) make_queue();
    memcpy(block(running, 2), &id, 8), memcpy(raw + 24, &place, 8), memcpy(raw + 32, &size, 8);
  }
  memcpy(input, raw, input_bytes < sizeof raw ? input_bytes : sizeof raw);
  if (kind == 5 && draw(2)) make_queue();
  for (int times = draw(3) ? 0 : (int)draw(4); times--;) scribble();
  const int code = run(input, input_bytes, output, output_bytes);
  if (kind == 1 && !code && output_bytes >= 8) memcpy(&handles[running], output, 8);
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  noise = strtoull(arguments[1], NULL, 10) * 2654435761u + 1;
  ddr = aligned_alloc(PAGE, PAGES * PAGE);
  if (!ddr) return 2;
  memset(ddr, 0x5a, PAGES * PAGE);
  for (uint32_t client = 0, page = 1; client < CLIENTS; client++)
    for (uint32_t at = 0; at < BLOCKS; at++, page += BLOCK_PAGES + 1) {
      blocks[client][at].page = page;
      blocks[client][at].bytes = at ? BLOCK_PAGES * PAGE - (at == 2 ? 0 : 8 * draw(3)) : 9000 + 8 * draw(5);
    }
  hbrt_fastrpc_register("skel", skeleton, 1);
  for (long rounds = strtol(arguments[2], NULL, 10); rounds-- > 0;) step();
  puts("good");
  return 0;
}
