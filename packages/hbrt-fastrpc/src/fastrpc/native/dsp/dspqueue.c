/* dspqueue in an image in C: fastrpc/wire/ring.py defines the rings' bytes; fastrpc/dsp/skeleton.py is the Python
 * counterpart. */
#include "dspqueue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "AEEStdErr.h"
#include "fastrpc.h"
#include "hb_dsp.h"
#include "remote.h"

enum {
  HEAD = 64, MAX_RING = HEAD + (16 << 20), MAX_BUFFERS = 64, MAX_MESSAGE = 65536, SERVED = 16, IMPORTER = 17, SKIP = 0xffff, PAUSE_NS = 200000,
  OWN_FLAGS = DSPQUEUE_PACKET_FLAG_MESSAGE | DSPQUEUE_PACKET_FLAG_BUFFERS | DSPQUEUE_PACKET_FLAG_WAKEUP,
};

struct packet {
  uint16_t flags, buffers;
  uint32_t message;
};

struct buffer {
  uint32_t fd, size, offset, flags;
  uint64_t phy_addr;
};

/* A ring in the program's memory: the program can change each word of it at any time, so each is read once, and bounded
 * before use. */
struct ring {
  uint32_t *written, *read;
  uint8_t *bytes;
  uint32_t size;
};

struct dspqueue {
  struct dspqueue *next;
  uint64_t id;
  uint32_t client;
  uint8_t *head;
  struct ring requests, responses;
  dspqueue_callback_t call;
  void *context;
  uint64_t taken; /* requests that the image has read */
};

static struct dspqueue *queues;

static uint32_t load(const uint32_t *place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }
static void store(uint32_t *place, uint32_t value) { __atomic_store_n(place, value, __ATOMIC_RELEASE); }
static uint32_t whole(uint32_t buffers, uint32_t message) {
  return (uint32_t)(sizeof(struct packet) + buffers * sizeof(struct buffer) + message + 7) & ~7u;
}

static struct ring ring_at(uint8_t *start, uint32_t size) {
  return (struct ring){(uint32_t *)(void *)start, (uint32_t *)(void *)(start + 4), start + HEAD, size - HEAD};
}

static int is_inside(const struct ring *ring, uint32_t at) { return at < ring->size && at % 8 == 0; }

static int damaged(const struct ring *ring, uint32_t at) {
  char text[160];
  snprintf(text, sizeof text, "A ring of the queue is corrupt: no packet can be at position %u of its %u bytes. The program has overwritten it.",
           at, ring->size);
  hb_dsp_log(HB_DSP_LOG_ERROR, "%s", text);
  return AEE_EBADSTATE;
}

static int write_packet(const struct ring *ring, uint32_t flags, uint32_t count, const struct dspqueue_buffer *buffers,
                        uint32_t length, const uint8_t *message) {
  const struct packet skip = {SKIP, 0, 0};
  if (count > MAX_BUFFERS || length > MAX_MESSAGE || whole(count, length) > ring->size - 8) return AEE_EBADPARM;
  const uint32_t need = whole(count, length), written = load(ring->written), read = load(ring->read);
  if (!is_inside(ring, written) || !is_inside(ring, read)) return damaged(ring, is_inside(ring, written) ? read : written);
  uint32_t at = written;
  if (written >= read && need > ring->size - written - (read ? 0 : 8)) at = 0;
  if ((at != written || written < read) && need >= read - at) { /* a full ring would look empty */
    if (written == read) { /* it is empty: send the reader to the start, for the next attempt */
      memcpy(ring->bytes + written, &skip, sizeof skip);
      store(ring->written, 0);
    }
    return AEE_EWOULDBLOCK;
  }
  if (at != written) memcpy(ring->bytes + written, &skip, sizeof skip);
  flags |= (length ? DSPQUEUE_PACKET_FLAG_MESSAGE : 0) | (count ? DSPQUEUE_PACKET_FLAG_BUFFERS : 0);
  const struct packet head = {(uint16_t)flags, (uint16_t)count, length};
  uint8_t *place = ring->bytes + at;
  memcpy(place, &head, sizeof head);
  for (uint32_t one = 0; one < count; ++one) { /* the program knows its descriptors' addresses */
    const struct buffer told = {buffers[one].fd, buffers[one].size, buffers[one].offset, buffers[one].flags, 0};
    memcpy(place + sizeof head + one * sizeof told, &told, sizeof told);
  }
  if (length) memcpy(place + sizeof head + count * sizeof(struct buffer), message, length);
  store(ring->written, (at + need) % ring->size);
  return 0;
}

/* A packet of a ring: its position, its header, and the position of the next one. */
struct found {
  uint32_t at, after;
  struct packet head;
};

/* Get the packet at a position, or after the SKIP there: 0; AEE_EWOULDBLOCK if there is none, AEE_EBADSTATE if it is
 * invalid. */
static int find(const struct ring *ring, uint32_t at, uint32_t written, struct found *found) {
  if (!is_inside(ring, at) || !is_inside(ring, written)) return damaged(ring, is_inside(ring, at) ? written : at);
  while (at != written) {
    const uint32_t end = at < written ? written : ring->size;
    memcpy(&found->head, ring->bytes + at, sizeof found->head);
    if (found->head.flags == SKIP && at > written) {
      at = 0;
      continue;
    }
    const struct packet *head = &found->head;
    if (head->flags == SKIP || head->buffers > MAX_BUFFERS || head->message > MAX_MESSAGE || whole(head->buffers, head->message) > end - at)
      return damaged(ring, at);
    found->at = at;
    found->after = (at + whole(head->buffers, head->message)) % ring->size;
    return 0;
  }
  return AEE_EWOULDBLOCK;
}

/* Get the next packet that is not an early wake-up; returns the same codes as `find`. */
static int next(const struct ring *ring, struct found *found) {
  const uint32_t written = load(ring->written);
  uint32_t at = load(ring->read);
  int code;
  while (!(code = find(ring, at, written, found)) && found->head.flags & DSPQUEUE_PACKET_FLAG_WAKEUP) store(ring->read, at = found->after);
  if (code == AEE_EWOULDBLOCK && at != written) store(ring->read, written); /* the writer waits until the reader is back at the start */
  return code;
}

static int depth(const struct ring *ring, uint64_t *packets, uint64_t *bytes) {
  const uint32_t written = load(ring->written);
  uint32_t at = load(ring->read);
  struct found found;
  int code;
  *packets = *bytes = 0;
  for (; !(code = find(ring, at, written, &found)); at = found.after) *packets += 1, *bytes += whole(found.head.buffers, found.head.message);
  return code == AEE_EWOULDBLOCK ? 0 : code;
}

static dspqueue_t of(dspqueue_t queue) {
  for (dspqueue_t one = queues; one; one = one->next)
    if (one == queue) return one;
  return NULL;
}

/* Memory of the program whose task runs; NULL if it does not belong to the program. The board's memory does not move,
 * and memory freed by the program stays its own while its task runs. */
static void *bytes_at(uint64_t phy_addr, int64_t size) {
  void *mapped = hb_dsp_mem_map(phy_addr, size);
  if (mapped == MAP_FAILED) return NULL;
  hb_dsp_mem_unmap((uintptr_t)mapped);
  return mapped;
}

/* Locate the queue in its memory: 0; AEE_ENOSUCHMAP if that is not memory of the program whose task runs. */
static int map(dspqueue_t queue) {
  uint32_t sizes[2];
  uint8_t *head = bytes_at(queue->id, HEAD);
  if (!head) return AEE_ENOSUCHMAP;
  memcpy(sizes, head, sizeof sizes);
  for (int at = 0; at < 2; ++at)
    if (sizes[at] <= HEAD || sizes[at] > MAX_RING || sizes[at] % 8) return AEE_ENOSUCHMAP;
  head = bytes_at(queue->id, (int64_t)HEAD + sizes[0] + sizes[1]);
  if (!head) return AEE_ENOSUCHMAP;
  queue->head = head;
  queue->requests = ring_at(head + HEAD, sizes[0]);
  queue->responses = ring_at(head + HEAD + sizes[0], sizes[1]);
  return 0;
}

/* For a call by the image: 0 if the program whose task runs has the queue, else a code. */
static int enter(dspqueue_t queue) {
  return !of(queue) || queue->client != hbrt_dsp_task_client() ? AEE_EBADPARM : map(queue);
}

static void forget(dspqueue_t queue) {
  for (dspqueue_t *place = &queues; *place; place = &(*place)->next)
    if (*place == queue) {
      *place = queue->next;
      free(queue);
      return;
    }
}

void hbrt_dspqueue_forget(uint32_t client) {
  for (dspqueue_t one = queues, following; one; one = following) {
    following = one->next;
    if (one->client == client) forget(one);
  }
}

/* Have the image read requests: returns whether it has taken one; below 0 if it has closed the queue. */
static int offer(dspqueue_t queue) {
  const uint64_t before = queue->taken;
  queue->call(queue, 0, queue->context);
  return of(queue) != queue ? -1 : queue->taken != before;
}

int hbrt_dspqueue_serve(uint64_t id, uint32_t client) {
  dspqueue_t queue = queues;
  struct found found;
  while (queue && (queue->id != id || queue->client != client)) queue = queue->next;
  if (!queue) return hbrt_fastrpc_refuse(AEE_ENOSUCHHANDLE, "Unknown queue: the image has not imported it.");
  if (map(queue)) return hbrt_fastrpc_refuse(AEE_ENOSUCHMAP, "The queue's memory does not belong to the program anymore.");
  uint8_t *served = queue->head + SERVED;
  for (;;) {
    int taken = 1, code = 0; /* if it takes none, the next request calls it again */
    while (taken > 0 && !(code = next(&queue->requests, &found))) taken = offer(queue);
    if (taken < 0) return 0;
    __atomic_store_n(served, 0, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* before the last check */
    if (!code || code == AEE_EWOULDBLOCK) code = next(&queue->requests, &found);
    if (code) return code == AEE_EWOULDBLOCK ? 0 : HBRT_FASTRPC_ON_DSP(code);
    if (offer(queue) <= 0) return 0;
    __atomic_store_n(served, 1, __ATOMIC_SEQ_CST);
  }
}

EXPORT AEEResult dspqueue_import(uint64_t queue_id, dspqueue_callback_t packet_callback, dspqueue_callback_t error_callback,
                                 void *context, dspqueue_t *queue) {
  (void)error_callback; /* the program's end forgets the queue */
  if (!queue) return AEE_EBADPARM;
  if (!packet_callback) return AEE_EUNSUPPORTED; /* a core's process has one thread */
  dspqueue_t made = calloc(1, sizeof *made);
  if (!made) return AEE_ENOMEMORY;
  made->id = queue_id;
  made->client = hbrt_dsp_task_client();
  made->call = packet_callback;
  made->context = context;
  int code = map(made);
  for (dspqueue_t one = queues, following; !code && one; one = following) {
    following = one->next;
    if (one->id != queue_id) continue;
    if (made->head[IMPORTER]) code = AEE_EITEMBUSY;
    else forget(one); /* another queue was there */
  }
  if (code) {
    free(made);
    return code;
  }
  made->head[IMPORTER] = (uint8_t)(hb_dsp_core_id() + 1);
  made->next = queues;
  *queue = queues = made;
  return 0;
}

EXPORT AEEResult dspqueue_close(dspqueue_t queue) {
  const int code = enter(queue);
  if (code == AEE_EBADPARM) return code;
  if (!code) queue->head[IMPORTER] = 0;
  forget(queue);
  return 0;
}

EXPORT AEEResult dspqueue_create(int domain, uint32_t flags, uint32_t requests, uint32_t responses, dspqueue_callback_t packet_callback,
                                 dspqueue_callback_t error_callback, void *context, dspqueue_t *queue) { /* a program's */
  (void)domain, (void)flags, (void)requests, (void)responses, (void)packet_callback, (void)error_callback, (void)context, (void)queue;
  return AEE_EUNSUPPORTED;
}

EXPORT AEEResult dspqueue_export(dspqueue_t queue, uint64_t *queue_id) {
  (void)queue, (void)queue_id;
  return AEE_EUNSUPPORTED;
}

/* Sleep briefly; 0 if the timeout has expired. */
static int wait_until(const struct timespec *begin, uint32_t timeout_us) {
  struct timespec now;
  if (!timeout_us) return 0;
  nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t spent_us = (now.tv_sec - begin->tv_sec) * INT64_C(1000000) + (now.tv_nsec - begin->tv_nsec) / 1000;
  return timeout_us == DSPQUEUE_TIMEOUT_NONE || spent_us < timeout_us;
}

EXPORT AEEResult dspqueue_write(dspqueue_t queue, uint32_t flags, uint32_t count, struct dspqueue_buffer *buffers, uint32_t length,
                                const uint8_t *message, uint32_t timeout_us) {
  struct timespec begin;
  int code = (count && !buffers) || (length && !message) ? AEE_EBADPARM : enter(queue);
  if (code) return code;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (;;) {
    code = write_packet(&queue->responses, flags & 0xffff & ~(uint32_t)OWN_FLAGS, count, buffers, length, message);
    if (code != AEE_EWOULDBLOCK) return code;
    if (!wait_until(&begin, timeout_us)) return timeout_us ? AEE_EEXPIRED : AEE_EWOULDBLOCK;
  }
}

EXPORT AEEResult dspqueue_write_noblock(dspqueue_t queue, uint32_t flags, uint32_t count, struct dspqueue_buffer *buffers,
                                        uint32_t length, const uint8_t *message) {
  return dspqueue_write(queue, flags, count, buffers, length, message, 0);
}

EXPORT AEEResult dspqueue_read_noblock(dspqueue_t queue, uint32_t *flags, uint32_t most_buffers, uint32_t *count,
                                       struct dspqueue_buffer *buffers, uint32_t most_message, uint32_t *length, uint8_t *message) {
  struct found found;
  int code = enter(queue);
  if (code || (code = next(&queue->requests, &found))) return code;
  const struct packet head = found.head;
  const uint8_t *packet = queue->requests.bytes + found.at;
  if (head.buffers > most_buffers || head.message > most_message || (head.buffers && !buffers) || (head.message && !message))
    return AEE_EBADPARM;
  for (uint32_t at = 0; at < head.buffers; ++at) {
    struct buffer told;
    memcpy(&told, packet + sizeof head + at * sizeof told, sizeof told);
    void *mapped = bytes_at(told.phy_addr, told.size);
    if (!mapped) code = AEE_ENOSUCHMAP;
    buffers[at] = (struct dspqueue_buffer){told.fd, told.size, told.offset, told.flags, mapped};
  }
  if (head.message) memcpy(message, packet + sizeof head + head.buffers * sizeof(struct buffer), head.message);
  if (flags) *flags = head.flags;
  if (count) *count = head.buffers;
  if (length) *length = head.message;
  store(queue->requests.read, found.after);
  ++queue->taken;
  return code;
}

EXPORT AEEResult dspqueue_read(dspqueue_t queue, uint32_t *flags, uint32_t most_buffers, uint32_t *count, struct dspqueue_buffer *buffers,
                               uint32_t most_message, uint32_t *length, uint8_t *message, uint32_t timeout_us) {
  if (timeout_us) return AEE_EBADSTATE; /* its callback reads */
  return dspqueue_read_noblock(queue, flags, most_buffers, count, buffers, most_message, length, message);
}

EXPORT AEEResult dspqueue_peek_noblock(dspqueue_t queue, uint32_t *flags, uint32_t *count, uint32_t *length) {
  struct found found;
  int code = enter(queue);
  if (code || (code = next(&queue->requests, &found))) return code;
  if (flags) *flags = found.head.flags;
  if (count) *count = found.head.buffers;
  if (length) *length = found.head.message;
  return 0;
}

EXPORT AEEResult dspqueue_peek(dspqueue_t queue, uint32_t *flags, uint32_t *count, uint32_t *length, uint32_t timeout_us) {
  return timeout_us ? AEE_EBADSTATE : dspqueue_peek_noblock(queue, flags, count, length);
}

EXPORT AEEResult dspqueue_write_early_wakeup_noblock(dspqueue_t queue, uint32_t wakeup_delay, uint32_t packet_flags) {
  const uint32_t message[] = {wakeup_delay, packet_flags};
  const int code = enter(queue);
  return code ? code : write_packet(&queue->responses, DSPQUEUE_PACKET_FLAG_WAKEUP, 0, NULL, sizeof message, (const uint8_t *)message);
}

EXPORT AEEResult dspqueue_get_stat(dspqueue_t queue, enum dspqueue_stat stat, uint64_t *value) {
  uint64_t told[8] = {[DSPQUEUE_STAT_SIGNALING_PERF] = DSPQUEUE_SIGNALING_PERF_OPTIMIZED_SIGNALING};
  int code = !value || (int)stat < 1 || (int)stat > 7 ? AEE_EBADPARM : enter(queue);
  if (!code) code = depth(&queue->requests, &told[DSPQUEUE_STAT_READ_QUEUE_PACKETS], &told[DSPQUEUE_STAT_READ_QUEUE_BYTES]);
  if (!code) code = depth(&queue->responses, &told[DSPQUEUE_STAT_WRITE_QUEUE_PACKETS], &told[DSPQUEUE_STAT_WRITE_QUEUE_BYTES]);
  if (!code) *value = told[stat];
  return code;
}
