/* Between a core and the Hexagon program next to it: a page mapped by both, and two packet sockets.
 *
 * While both sides are awake, a task and its status pass through the page, without packets. A side that sleeps on its
 * socket sets a flag in the page, and is then sent a packet. All other messages of the program are packets, announced
 * in the page. The core's answers use a second socket, because another thread may send requests while the main one
 * sleeps. A closed socket means that the other side has died. */
#ifndef HBRT_GUEST_H
#define HBRT_GUEST_H

#include <stdint.h>

/* Kinds of packets; WAKE: a task is posted. fastrpc/dsp/hexagon.py has the same. */
enum { HBRT_GUEST_WAKE = 1, HBRT_GUEST_REGISTER, HBRT_GUEST_READY, HBRT_GUEST_DONE, HBRT_GUEST_MAP, HBRT_GUEST_LOG };
enum { HBRT_GUEST_PAGE_BYTES = 1 << 16 /* a Hexagon page, in QEMU */, HBRT_GUEST_TEXT = 4096, HBRT_GUEST_OPS = 64 };
enum { HBRT_GUEST_VERSION = 1 }; /* increase it with every change in this file */

struct hbrt_guest_message {
  uint32_t kind, word;
  uint64_t a, b, c, d, e;
};
struct hbrt_guest_packet {
  struct hbrt_guest_message head;
  char text[HBRT_GUEST_TEXT];
};

struct hbrt_guest_page {
  /* Written by the core. */
  uint32_t version; /* HBRT_GUEST_VERSION: of this page and the packets */
  uint32_t cmd;
  uint64_t input, input_bytes, output, output_bytes; /* physical addresses */
  int64_t poll_ns; /* how long a side polls before it sleeps; 0: never */
  uint32_t client;
  uint32_t posted; /* number of the task */
  uint8_t is_core_asleep, is_program_asleep; /* each set by its side, and cleared by the side that wakes it */
  uint8_t reserved[2 + 64]; /* the rest has its own cache line */
  /* Written by the program. */
  uint32_t done; /* number of the last finished task */
  int32_t status;
  uint32_t said; /* MAP and LOG packets so far, each counted before it is sent */
};

#endif
