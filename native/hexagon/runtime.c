/* The runtime of a process domain that runs as Hexagon code: the calls of an image, over a socket to its core.
 *
 * The program is one of QEMU's, beside the core's process, and has the board's DDR file mapped. The core sends it a
 * task by the physical addresses of its blocks, answers what it asks while the task runs, and gets its status back.
 * fastrpc/dsp/hexagon.py is the other side of the socket. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine.h"
#include "fastrpc.h"
#include "hb_dsp.h"
#include "remote.h"

#undef hb_dsp_register_fn
#undef hb_dsp_start
#undef hb_dsp_mem_map
#undef hb_dsp_mem_unmap

enum { CALL = 1, REGISTER, READY, DONE, MAP, LOG, CLIENT, MAX_TEXT = 4096, MAX_OPS = 64, CACHED = 256, MAX_IMPORTS = 1024, GENERATION = 2048 };

struct message {
  uint32_t kind, word;
  uint64_t a, b, c, d, e;
};
struct packet {
  struct message head;
  char text[MAX_TEXT];
};

static int channel = -1, core;
static uint8_t *ddr; /* the DDR file */
static uint64_t ddr_base, ddr_bytes;
static struct {
  uint32_t cmd;
  hb_dsp_fn fn;
} ops[MAX_OPS];
static int op_count;
static uint64_t task_client;      /* of the task that runs: its id, and in the lower half its process */
static _Atomic int is_in_task;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static struct frame frame;
HBRT_THREAD struct frame *hbrt_dsp_frame = &frame;

/* Ranges that the core has allowed, while the board's tables do not change. */
static struct {
  uint64_t phy_addr, size, client;
  uint8_t *address;
} cache[CACHED];
static uint64_t cached_generation;

/* Memory of the program's other libraries, which lies in the board's address space and not in the DDR file. */
static struct {
  uint64_t word, start, end;
  uint8_t *address;
} imports[MAX_IMPORTS];
static int import_count;

static void end(const char *why) {
  fprintf(stderr, "The process domain ends: %s.\n", why);
  _exit(1);
}

static void send_packet(const struct message *head, const char *text, size_t size) {
  struct iovec parts[] = {{(void *)(uintptr_t)head, sizeof *head}, {(void *)(uintptr_t)text, size}};
  const struct msghdr all = {.msg_iov = parts, .msg_iovlen = 2};
  if (channel < 0) end("it asks for a board: hbrt start --image FILE");
  if (sendmsg(channel, &all, MSG_NOSIGNAL) < 0) _exit(0); /* the core is gone */
}

static size_t receive(struct packet *packet) {
  for (;;) {
    const ssize_t size = recv(channel, packet, sizeof *packet - 1, 0);
    if (size == 0) _exit(0);
    if (size >= (ssize_t)sizeof packet->head) return (size_t)size;
  }
}

/* Ask the core, which answers while a task runs; 0 outside one. */
static int ask(struct packet *packet) {
  if (!is_in_task) return 0;
  const uint32_t kind = packet->head.kind;
  pthread_mutex_lock(&asking);
  send_packet(&packet->head, NULL, 0);
  const size_t size = receive(packet);
  pthread_mutex_unlock(&asking);
  ((char *)packet)[size] = 0;
  return packet->head.kind == kind;
}

static uint8_t *imported(const struct packet *told) {
  const struct message *head = &told->head; /* a, b: start and end; c: what the block's record says; d: its place in the file */
  for (int at = 0; at < import_count; ++at)
    if (imports[at].word == head->c && imports[at].start == head->a && imports[at].end == head->b) return imports[at].address;
  const int fd = open(told->text, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  const uint64_t page = 1 << 16, skipped = head->d % page; /* QEMU's pages of a Hexagon are that large */
  uint8_t *made = mmap(NULL, (size_t)(head->b - head->a + skipped), PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(head->d - skipped));
  close(fd);
  if (made == MAP_FAILED) return NULL;
  if (import_count == MAX_IMPORTS) { /* the oldest goes: nothing of it is in use when a task begins */
    munmap(imports[0].address, (size_t)(imports[0].end - imports[0].start));
    memmove(imports, imports + 1, sizeof imports - sizeof *imports);
    --import_count;
  }
  imports[import_count].word = head->c;
  imports[import_count].start = head->a;
  imports[import_count].end = head->b;
  return imports[import_count++].address = made + skipped;
}

void *hb_dsp_mem_map(uint64_t phy_addr, int64_t size) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static struct packet packet; /* under the lock */
  uint8_t *found = NULL;
  pthread_mutex_lock(&lock);
  uint64_t generation;
  memcpy(&generation, ddr + GENERATION, sizeof generation);
  if (generation != cached_generation) {
    memset(cache, 0, sizeof cache);
    cached_generation = generation;
  }
  const uint32_t place = ((uint32_t)(phy_addr >> 6) + (uint32_t)size) * 2654435769u >> 24; /* buffers lie side by side */
  if (cache[place].address && cache[place].phy_addr == phy_addr && cache[place].size == (uint64_t)size && cache[place].client == task_client) {
    found = cache[place].address;
  } else {
    packet.head = (struct message){.kind = MAP, .a = phy_addr, .b = (uint64_t)size};
    if (ask(&packet) && !packet.head.word) {
      if (packet.head.c) {
        uint8_t *start = imported(&packet);
        found = start ? start + (phy_addr - packet.head.a) : NULL;
      } else if (phy_addr - ddr_base < ddr_bytes) {
        found = ddr + (phy_addr - ddr_base);
      }
    }
    if (found) cache[place].phy_addr = phy_addr, cache[place].size = (uint64_t)size, cache[place].client = task_client, cache[place].address = found;
  }
  pthread_mutex_unlock(&lock);
  return found ? found : MAP_FAILED;
}

int hb_dsp_mem_unmap(uintptr_t mapped) { return (void)mapped, 0; }

int hb_dsp_core_id(void) { return core; }

uint64_t hbrt_dsp_client(int32_t id) {
  if (id < 0) return task_client;
  struct packet packet = {.head = {.kind = CLIENT, .word = (uint32_t)id}};
  return ask(&packet) ? packet.head.a : 0;
}

int32_t hbrt_engine_client(uint32_t *client) { return (void)client, 0; }

void hb_dsp_log(int level, const char *format, ...) {
  char text[MAX_TEXT];
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (size < 0) return;
  if (size >= (int)sizeof text) size = sizeof text - 1;
  const struct message head = {.kind = LOG, .word = (uint32_t)level};
  if (is_in_task) send_packet(&head, text, (size_t)size);
  else fprintf(stderr, "%s\n", text);
}

int hb_dsp_set_log_level(int level) { return (void)level, 0; }
int hb_dsp_env_init(void) { return 0; }

int hb_dsp_register_fn(int cmd, hb_dsp_fn fn, int latency) {
  if (op_count == MAX_OPS || !fn) return HB_DSP_INVALID_ARGUMENT;
  ops[op_count].cmd = (uint32_t)cmd, ops[op_count++].fn = fn;
  send_packet(&(struct message){.kind = REGISTER, .word = (uint32_t)cmd, .a = (uint64_t)latency}, NULL, 0);
  return 0;
}

static int run(const struct message *task) {
  frame.input_bytes = task->b, frame.output_bytes = task->d;
  void *input = task->b ? hb_dsp_mem_map(task->a, (int64_t)task->b) : NULL;
  void *output = task->d ? hb_dsp_mem_map(task->c, (int64_t)task->d) : NULL;
  if (input == MAP_FAILED || output == MAP_FAILED) return HB_ERR_MMAP_FAILED;
  for (int at = op_count - 1; at >= 0; --at)
    if (ops[at].cmd == task->word) return ops[at].fn(input, output, NULL);
  return HB_DSP_INVALID_ARGUMENT;
}

/* Serve tasks until the core closes the socket, which ends the process. */
int hb_dsp_start(void) {
  static struct packet packet;
  send_packet(&(struct message){.kind = READY}, NULL, 0);
  for (;;) {
    receive(&packet);
    if (packet.head.kind != CALL) continue;
    const struct message task = packet.head;
    task_client = task.e;
    is_in_task = 1;
    const int status = run(&task);
    fflush(stdout);
    is_in_task = 0;
    send_packet(&(struct message){.kind = DONE, .word = (uint32_t)status}, NULL, 0);
  }
}

__attribute__((weak)) int main(void) { return hbrt_fastrpc_main(); }

/* What hb_dsp.h makes of the calls above: with the line of the call, which nobody asks for here. */
void *hbrt_dsp_mem_map(const char *site, uint64_t phy_addr, int64_t size) { return (void)site, hb_dsp_mem_map(phy_addr, size); }
int hbrt_dsp_mem_unmap(const char *site, uintptr_t mapped) { return (void)site, hb_dsp_mem_unmap(mapped); }
int hbrt_dsp_start(const char *site) { return (void)site, hb_dsp_start(); }
int hbrt_dsp_register_fn(const char *site, const char *name, int cmd, hb_dsp_fn fn, int latency) {
  return (void)site, (void)name, hb_dsp_register_fn(cmd, fn, latency);
}

static uint64_t number(const char *name) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 0) : 0;
}

/* Without a board, a program with a main() of its own runs by itself, until it asks for one. */
__attribute__((constructor(101))) static void begin(void) {
  if (!getenv("HBRT_HEXAGON_SOCKET")) return;
  const int fd = (int)number("HBRT_HEXAGON_DDR");
  channel = (int)number("HBRT_HEXAGON_SOCKET");
  core = (int)number("HBRT_HEXAGON_CORE");
  ddr_base = number("HBRT_HEXAGON_BASE");
  ddr_bytes = number("HBRT_HEXAGON_BYTES");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* By the kernel's call: the library's takes no more than half of the addresses. */
  const long at = ddr_bytes < UINT32_MAX ? syscall(SYS_mmap2, 0, (size_t)ddr_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : -1;
  ddr = (uint8_t *)at;
  if (at == -1) end("the board's DDR does not fit into the 32 bits of a Hexagon: start the board with less, as by --ddr 1G");
  close(fd);
}
