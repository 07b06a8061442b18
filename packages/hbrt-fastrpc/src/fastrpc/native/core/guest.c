/* The ops of an image that is Hexagon code: each has the program next to this process run the task, and waits. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "clock.h"
#include "layout.h"
#include "polling.h"
#include "runtime.h"

/* A packet sent by the program while a task runs; 0 bytes: it has ended, and so does this process. */
typedef void take_packet(const void *packet, size_t size);

static struct hbrt_guest_page *page;
static int channel;
static const uint8_t *ddr;
static uint64_t ddr_base;
static take_packet *take;
static uint32_t number; /* of the newest task */
static uint32_t taken;  /* packets among those counted by page->said */
static hbrt_habit polling;
static uint32_t commands[HBRT_GUEST_OPS];

EXPORT void hbrt_guest_open(void *shared, int32_t socket, const void *ddr_map, uint64_t base, int64_t poll_ns, take_packet *taker) {
  page = shared, channel = socket, ddr = ddr_map, ddr_base = base, take = taker;
  page->version = HBRT_GUEST_VERSION, page->poll_ns = poll_ns;
  polling = (hbrt_habit){.budget_ns = poll_ns, .most_skipped = SKIPPED_IN_VAIN, .most_skipped_cpu_lost = SKIPPED_CPU_LOST};
}

static int is_done(void) { return __atomic_load_n(&page->done, __ATOMIC_ACQUIRE) == number; }

static int has_said(void) { return __atomic_load_n(&page->said, __ATOMIC_ACQUIRE) != taken; }

static int is_changed(const void *unused) { return (void)unused, is_done() || has_said(); }

static void poll_program(void) {
  enum { POLLS_PER_YIELD = 4 }; /* few: the program may share the CPU */
  const int64_t poll_ns = hbrt_habit_begin(&polling);
  if (poll_ns > 0) hbrt_habit_note(&polling, hbrt_poll(is_changed, NULL, POLLS_PER_YIELD, poll_ns));
}

/* Wait for the task's end and for every announced packet; if this side sleeps, a packet reports the end. */
static void wait_for_end(void) {
  static struct hbrt_guest_packet packet;
  poll_program();
  while (!is_done() || has_said()) {
    hbrt_store(&page->is_core_asleep, 1);
    hbrt_full_fence(); /* asleep before the last check: pairs with the program's fence */
    if (is_done() && !has_said()) break;
    const ssize_t size = recv(channel, &packet, sizeof packet, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size >= (ssize_t)sizeof packet.head && packet.head.kind == HBRT_GUEST_DONE) continue;
    taken += packet.head.kind == HBRT_GUEST_MAP || packet.head.kind == HBRT_GUEST_LOG;
    hbrt_dsp_runtime();
    take(&packet, size > 0 ? (size_t)size : 0);
  }
  hbrt_store(&page->is_core_asleep, 0);
}

static uint64_t place(const void *block, uint64_t bytes) { return bytes ? (uint64_t)((const uint8_t *)block - ddr) + ddr_base : 0; }

static int run(uint32_t op, const void *input, const void *output) {
  const struct frame *task = hbrt_dsp_frame;
  page->input_bytes = task->input_bytes, page->output_bytes = task->output_bytes;
  page->input = place(input, task->input_bytes), page->output = place(output, task->output_bytes);
  page->cmd = commands[op], page->client = hbrt_dsp_task_client();
  __atomic_store_n(&page->posted, ++number, __ATOMIC_RELEASE);
  hbrt_full_fence(); /* posted before the flag: pairs with a program that goes to sleep */
  if (hbrt_load(&page->is_program_asleep)) {
    const struct hbrt_guest_message wake = {.kind = HBRT_GUEST_WAKE};
    hbrt_store(&page->is_program_asleep, 0);
    send(channel, &wake, sizeof wake, MSG_NOSIGNAL); /* its death is found below */
  }
  wait_for_end();
  return page->status;
}

/* An op has no argument for its command: each has its own function. */
#define OP(n) static int op_##n(void *input, void *output, void *tm) { return (void)tm, run(n, input, output); }
#define EIGHT(each, tens) each(tens##0) each(tens##1) each(tens##2) each(tens##3) each(tens##4) each(tens##5) each(tens##6) each(tens##7)
#define ALL(each) EIGHT(each, 0) EIGHT(each, 01) EIGHT(each, 02) EIGHT(each, 03) EIGHT(each, 04) EIGHT(each, 05) EIGHT(each, 06) EIGHT(each, 07)
ALL(OP)
#define NAME(n) op_##n,

/* The function of an op of the program; NULL if it has too many. */
EXPORT void *hbrt_guest_op(uint32_t cmd) {
  static int (*const functions[])(void *, void *, void *) = {ALL(NAME)};
  static uint32_t count;
  if (count == HBRT_GUEST_OPS) return NULL;
  commands[count] = cmd;
  return (void *)functions[count++];
}
