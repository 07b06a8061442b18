/* The runtime of a process domain that runs as Hexagon code: a core's tasks, from a page mapped by both sides.
 *
 * The program runs in QEMU, next to the core's process, and has the board's DDR file mapped. The core posts a task by
 * the physical addresses of its blocks, answers the program's requests over sockets while the task runs, and finds its
 * status in the page. core/guest.c and fastrpc/dsp/hexagon.py are the other side. */
#define _GNU_SOURCE
#include <errno.h>
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

#include "clock.h"
#include "engine.h"
#include "fastrpc.h"
#include "guest.h"
#include "hb_dsp.h"
#include "layout.h"
#include "polling.h"
#include "remote.h"

#undef hb_dsp_register_fn
#undef hb_dsp_start
#undef hb_dsp_mem_map
#undef hb_dsp_mem_unmap

enum { CACHED = 128, MAX_IMPORTS = 1024 };

static int channel = -1, answers = -1, core;
static struct hbrt_guest_page *page;
static hbrt_file ddr;
static hbrt_habit polling;
static struct {
  uint32_t cmd;
  hb_dsp_fn fn;
} ops[HBRT_GUEST_OPS];
static int op_count;
static _Atomic uint32_t task_client; /* of the task that runs, or ran last */
static _Atomic int is_in_task;
static int is_copy; /* in a process that the image has forked: it must not serve tasks as well */
static struct frame frame;
HBRT_THREAD struct frame *hbrt_dsp_frame = &frame;

/* Ranges that a task's program may use, as long as the board's tables do not change. Per thread: a lock adds a third to
 * the cost. */
static __thread struct {
  uint64_t phy_addr, size;
  uint32_t client;
  uint8_t *address;
} cache[CACHED];
static __thread uint64_t cached_generation;
static _Atomic uint32_t evictions; /* of imports */

/* Memory of the program's other libraries, which is in the board's address space but not in the DDR file. */
static struct {
  uint64_t word, start, end;
  uint8_t *address;
} imports[MAX_IMPORTS];
static int import_count;

static void end(const char *why) {
  fprintf(stderr, "The process domain ended: %s.\n", why);
  _exit(1);
}

static void send_packet(const struct hbrt_guest_message *head, const char *text, size_t size) {
  struct iovec parts[] = {{(void *)(uintptr_t)head, sizeof *head}, {(void *)(uintptr_t)text, size}};
  const struct msghdr all = {.msg_iov = parts, .msg_iovlen = 2};
  if (channel < 0) end("it needs a board: hbrt start --image FILE");
  if (sendmsg(channel, &all, MSG_NOSIGNAL) < 0) _exit(0); /* the core is gone */
}

static size_t receive(int from, struct hbrt_guest_packet *packet) {
  for (;;) {
    const ssize_t size = recv(from, packet, sizeof *packet - 1, 0);
    if (size == 0 || (size < 0 && errno != EINTR)) _exit(0); /* the core is gone, or the image has closed the socket */
    if (size >= (ssize_t)sizeof packet->head) return (size_t)size;
  }
}

/* Send a packet within a task: the core waits for each one that is counted, even if the task has ended. */
static void say(const struct hbrt_guest_message *head, const char *text, size_t size) {
  __atomic_add_fetch(&page->said, 1, __ATOMIC_SEQ_CST);
  send_packet(head, text, size);
}

/* Send the core a request, which it answers while a task runs; 0 outside a task. The caller holds the lock of
 * asked(). */
static int ask(struct hbrt_guest_packet *packet) {
  if (!is_in_task) return 0;
  const uint32_t kind = packet->head.kind;
  say(&packet->head, NULL, 0);
  const size_t size = receive(answers, packet);
  ((char *)packet)[size] = 0;
  return packet->head.kind == kind;
}

static uint8_t *imported(const struct hbrt_guest_packet *told) {
  const struct hbrt_guest_message *head = &told->head; /* a, b: start and end; c: flags of the block's record; d: its offset in the file */
  for (int at = 0; at < import_count; ++at)
    if (imports[at].word == head->c && imports[at].start == head->a && imports[at].end == head->b) return imports[at].address;
  const int fd = open(told->text, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  const uint64_t skipped = head->d % HBRT_GUEST_PAGE_BYTES;
  uint8_t *made = mmap(NULL, (size_t)(head->b - head->a + skipped), PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(head->d - skipped));
  close(fd);
  if (made == MAP_FAILED) return NULL;
  if (import_count == MAX_IMPORTS) { /* evict the oldest: nothing in it is in use when a task begins */
    ++evictions; /* first: no thread finds it in its cache anymore */
    const uint64_t before = (uintptr_t)imports[0].address % HBRT_GUEST_PAGE_BYTES;
    munmap(imports[0].address - before, (size_t)(imports[0].end - imports[0].start + before));
    memmove(imports, imports + 1, sizeof imports - sizeof *imports);
    --import_count;
  }
  imports[import_count].word = head->c;
  imports[import_count].start = head->a;
  imports[import_count].end = head->b;
  return imports[import_count++].address = made + skipped;
}

/* Memory of another library, or nothing; then the core gives the reason. */
static uint8_t *asked(uint64_t phy_addr, uint64_t size) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static struct hbrt_guest_packet packet; /* the caller holds the lock */
  uint8_t *start = NULL;
  pthread_mutex_lock(&lock);
  packet.head = (struct hbrt_guest_message){.kind = HBRT_GUEST_MAP, .a = phy_addr, .b = size};
  if (ask(&packet) && !packet.head.word && (start = imported(&packet))) start += phy_addr - packet.head.a;
  pthread_mutex_unlock(&lock);
  return start;
}

void *hb_dsp_mem_map(uint64_t phy_addr, int64_t signed_size) {
  const uint32_t client = task_client;
  const uint64_t generation = hbrt_generation(&ddr) + evictions, size = (uint64_t)signed_size;
  if (generation != cached_generation) {
    memset(cache, 0, sizeof cache);
    cached_generation = generation;
  }
  const uint32_t place = ((uint32_t)(phy_addr >> 6) + (uint32_t)size) * 2654435769u >> 25; /* buffers are adjacent */
  if (cache[place].address && cache[place].phy_addr == phy_addr && cache[place].size == size && cache[place].client == client)
    return cache[place].address;
  if (signed_size <= 0) return MAP_FAILED;
  const int is_in_file = hbrt_is_in_block(&ddr, client, phy_addr, size) == 1;
  uint8_t *found = is_in_file ? ddr.map + (phy_addr - ddr.at.ddr_base) : asked(phy_addr, size);
  if (!found) return MAP_FAILED;
  cache[place].phy_addr = phy_addr, cache[place].size = size, cache[place].client = client, cache[place].address = found;
  return found;
}

int hb_dsp_mem_unmap(uintptr_t mapped) { return (void)mapped, 0; }

int hb_dsp_core_id(void) { return core; }

uint64_t hbrt_dsp_client(int32_t id) {
  const uint32_t client = id < 0 ? task_client : (uint32_t)id;
  return (uint64_t)client << 32 | (client < HBRT_CLIENTS && ddr.map ? HBRT_GET(hbrt_client_at(&ddr, client)->pid) : 0);
}

uint32_t hbrt_dsp_task_client(void) { return (uint32_t)(hbrt_dsp_client(-1) >> 32); }
int (*hbrt_dsp_offered_main)(void);
void (*hbrt_dsp_at_end)(void);

void hb_dsp_log(int level, const char *format, ...) {
  char text[HBRT_GUEST_TEXT];
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (size < 0) return;
  if (size >= (int)sizeof text) size = sizeof text - 1;
  const struct hbrt_guest_message head = {.kind = HBRT_GUEST_LOG, .word = (uint32_t)level};
  if (is_in_task) say(&head, text, (size_t)size);
  else fprintf(stderr, "%s\n", text);
}

int hb_dsp_set_log_level(int level) { return (void)level, 0; }
int hb_dsp_env_init(void) { return 0; }

int hb_dsp_register_fn(int cmd, hb_dsp_fn fn, int latency) {
  if (op_count == HBRT_GUEST_OPS || !fn) return HB_DSP_INVALID_ARGUMENT;
  ops[op_count].cmd = (uint32_t)cmd, ops[op_count++].fn = fn;
  send_packet(&(struct hbrt_guest_message){.kind = HBRT_GUEST_REGISTER, .word = (uint32_t)cmd, .a = (uint64_t)latency}, NULL, 0);
  return 0;
}

static int run(void) {
  frame.input_bytes = page->input_bytes, frame.output_bytes = page->output_bytes;
  void *input = frame.input_bytes ? hb_dsp_mem_map(page->input, (int64_t)frame.input_bytes) : NULL;
  void *output = frame.output_bytes ? hb_dsp_mem_map(page->output, (int64_t)frame.output_bytes) : NULL;
  if (input == MAP_FAILED || output == MAP_FAILED) return HB_ERR_MMAP_FAILED;
  for (int at = op_count - 1; at >= 0; --at)
    if (ops[at].cmd == page->cmd) return ops[at].fn(input, output, NULL);
  return HB_DSP_INVALID_ARGUMENT;
}

static int is_posted(const void *unused) {
  return (void)unused, __atomic_load_n(&page->posted, __ATOMIC_ACQUIRE) != page->done;
}

/* Poll for a task if that pays, as a core does. */
static void poll_core(void) {
  enum { POLLS_PER_YIELD = 1 }; /* the other side may share the CPU, and a loop takes longer in QEMU */
  const int64_t poll_ns = hbrt_habit_begin(&polling);
  if (poll_ns > 0) hbrt_habit_note(&polling, hbrt_poll(is_posted, NULL, POLLS_PER_YIELD, poll_ns));
}

static void wait_for_task(void) {
  static struct hbrt_guest_packet packet;
  poll_core();
  while (!is_posted(NULL)) {
    hbrt_store(&page->is_program_asleep, 1);
    hbrt_full_fence(); /* asleep before the last check: pairs with the core's fence */
    if (!is_posted(NULL)) receive(channel, &packet);
  }
  hbrt_store(&page->is_program_asleep, 0);
}

/* Serve tasks until the core closes the socket, which ends the process. */
int hb_dsp_start(void) {
  send_packet(&(struct hbrt_guest_message){.kind = HBRT_GUEST_READY}, NULL, 0);
  polling = (hbrt_habit){.budget_ns = page->poll_ns, .most_skipped = SKIPPED_IN_VAIN, .most_skipped_cpu_lost = SKIPPED_CPU_LOST};
  for (;;) {
    wait_for_task();
    const uint32_t number = page->posted;
    task_client = page->client;
    is_in_task = 1;
    const int status = run();
    if (is_copy) _exit(0);
    fflush(stdout);
    page->status = status;
    is_in_task = 0;
    __atomic_store_n(&page->done, number, __ATOMIC_RELEASE);
    hbrt_full_fence(); /* done before the flag: pairs with a core that goes to sleep */
    if (!hbrt_load(&page->is_core_asleep)) continue;
    hbrt_store(&page->is_core_asleep, 0);
    send_packet(&(struct hbrt_guest_message){.kind = HBRT_GUEST_DONE, .word = number}, NULL, 0);
  }
}

__attribute__((weak)) int main(void) { return hbrt_fastrpc_main(); }

/* The targets of hb_dsp.h's macros for the calls above: with the line of the call, which is unused here. */
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

static void become_copy(void) { is_copy = 1; }

/* Without a board, a program with its own main() runs by itself, until it needs one. */
__attribute__((constructor(101))) static void begin(void) {
  if (!getenv("HBRT_HEXAGON_CHANNEL")) return;
  const int fd = (int)number("HBRT_HEXAGON_DDR"), shared = (int)number("HBRT_HEXAGON_PAGE");
  const uint64_t bytes = number("HBRT_HEXAGON_BYTES");
  channel = (int)number("HBRT_HEXAGON_CHANNEL");
  answers = (int)number("HBRT_HEXAGON_ANSWERS");
  core = (int)number("HBRT_HEXAGON_CORE");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pthread_atfork(NULL, NULL, become_copy);
  page = mmap(NULL, HBRT_GUEST_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  static const char other_version[] = "the image was built by another version of hbrt: rebuild it";
  if (page == MAP_FAILED || page->version != HBRT_GUEST_VERSION) end(other_version);
  /* By system call: the library's function uses at most half of the addresses. */
  const long at = bytes < UINT32_MAX ? syscall(SYS_mmap2, 0, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : -1;
  if (at == -1) end("the board's DDR does not fit into a Hexagon's 32-bit address space: start the board with less, for example --ddr 1G");
  if (!hbrt_file_open(&ddr, (void *)at, bytes, (void *)at)) end(other_version);
  close(fd);
  close(shared);
}
