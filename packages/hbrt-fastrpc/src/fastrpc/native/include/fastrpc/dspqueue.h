/* Packet queues between a program and an image, as rings in board memory; for both sides.
 *
 * Source: qualcomm/fastrpc, dspqueue.h, for names, values and layouts, https://github.com/qualcomm/fastrpc
 */
#ifndef HBRT_FASTRPC_DSPQUEUE_H
#define HBRT_FASTRPC_DSPQUEUE_H

#include <stdint.h>

#include "AEEStdDef.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSPQUEUE_TIMEOUT_NONE 0xffffffff

/* Flags of a packet. */
enum dspqueue_packet_flags {
  DSPQUEUE_PACKET_FLAG_MESSAGE = 1,
  DSPQUEUE_PACKET_FLAG_BUFFERS = 2,
  DSPQUEUE_PACKET_FLAG_WAKEUP = 4,
  DSPQUEUE_PACKET_FLAG_DRIVER_READY = 8,
  DSPQUEUE_PACKET_FLAG_USER_READY = 16,
};

/* Flags of a buffer. */
enum dspqueue_buffer_flags {
  DSPQUEUE_BUFFER_FLAG_REF = 0x04,
  DSPQUEUE_BUFFER_FLAG_DEREF = 0x08,
  DSPQUEUE_BUFFER_FLAG_FLUSH_SENDER = 0x10,
  DSPQUEUE_BUFFER_FLAG_INVALIDATE_SENDER = 0x20,
  DSPQUEUE_BUFFER_FLAG_FLUSH_RECIPIENT = 0x40,
  DSPQUEUE_BUFFER_FLAG_INVALIDATE_RECIPIENT = 0x80,
};

/* Statistics of a queue. */
enum dspqueue_stat {
  DSPQUEUE_STAT_READ_QUEUE_PACKETS = 1,
  DSPQUEUE_STAT_READ_QUEUE_BYTES = 2,
  DSPQUEUE_STAT_WRITE_QUEUE_PACKETS = 3,
  DSPQUEUE_STAT_WRITE_QUEUE_BYTES = 4,
  DSPQUEUE_STAT_EARLY_WAKEUP_WAIT_TIME = 5,
  DSPQUEUE_STAT_EARLY_WAKEUP_MISSES = 6,
  DSPQUEUE_STAT_SIGNALING_PERF = 7,
};

#define DSPQUEUE_SIGNALING_PERF_REDUCED_SIGNALING 100
#define DSPQUEUE_SIGNALING_PERF_OPTIMIZED_SIGNALING 1000

/* A queue. */
typedef struct dspqueue *dspqueue_t;

/* A buffer referenced by a packet. */
struct dspqueue_buffer {
  uint32_t fd;     /* descriptor, as for fastrpc_mmap */
  uint32_t size;   /* 0 for the whole buffer, with offset 0 */
  uint32_t offset;
  uint32_t flags;
  void *ptr; /* set by a read: its address on this side; NULL if it has none */
};

/* Called when packets have arrived, or on an error. */
typedef void (*dspqueue_callback_t)(dspqueue_t queue, AEEResult error, void *context);

/* -- programs. A size of 0 selects the default: 65536 bytes of requests, 16384 of responses; at most 16 MiB. */
AEEResult dspqueue_create(int domain, uint32_t flags, uint32_t req_queue_size, uint32_t resp_queue_size,
                          dspqueue_callback_t packet_callback, dspqueue_callback_t error_callback,
                          void *callback_context, dspqueue_t *queue);
AEEResult dspqueue_export(dspqueue_t queue, uint64_t *queue_id);

/* -- images, in a method: from then on packet_callback is called when requests arrive, and reads them. */
AEEResult dspqueue_import(uint64_t queue_id, dspqueue_callback_t packet_callback, dspqueue_callback_t error_callback,
                          void *callback_context, dspqueue_t *queue);

/* -- both */
AEEResult dspqueue_close(dspqueue_t queue);
AEEResult dspqueue_write(dspqueue_t queue, uint32_t flags, uint32_t num_buffers, struct dspqueue_buffer *buffers,
                         uint32_t message_length, const uint8_t *message, uint32_t timeout_us);
AEEResult dspqueue_write_noblock(dspqueue_t queue, uint32_t flags, uint32_t num_buffers,
                                 struct dspqueue_buffer *buffers, uint32_t message_length, const uint8_t *message);
AEEResult dspqueue_read(dspqueue_t queue, uint32_t *flags, uint32_t max_buffers, uint32_t *num_buffers,
                        struct dspqueue_buffer *buffers, uint32_t max_message_length, uint32_t *message_length,
                        uint8_t *message, uint32_t timeout_us);
AEEResult dspqueue_read_noblock(dspqueue_t queue, uint32_t *flags, uint32_t max_buffers, uint32_t *num_buffers,
                                struct dspqueue_buffer *buffers, uint32_t max_message_length,
                                uint32_t *message_length, uint8_t *message);
AEEResult dspqueue_peek(dspqueue_t queue, uint32_t *flags, uint32_t *num_buffers, uint32_t *message_length,
                        uint32_t timeout_us);
AEEResult dspqueue_peek_noblock(dspqueue_t queue, uint32_t *flags, uint32_t *num_buffers, uint32_t *message_length);
AEEResult dspqueue_write_early_wakeup_noblock(dspqueue_t queue, uint32_t wakeup_delay, uint32_t packet_flags);
AEEResult dspqueue_get_stat(dspqueue_t queue, enum dspqueue_stat stat, uint64_t *value);

#ifdef __cplusplus
}
#endif

#endif
