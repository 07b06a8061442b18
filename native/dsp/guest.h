/* Between a core and the program of Hexagon code beside it: a page that both have mapped, and two sockets of packets.
 *
 * A task and its status pass through the page, and no packet, while both sides are awake. A side that sleeps on
 * its socket says so in the page, and then gets a packet. What else the program says is packets only, which it announces
 * in the page. The core's answers have a socket of their own: another thread may ask while the main one sleeps. A
 * socket's end tells the death of the other side. */
#ifndef HBRT_GUEST_H
#define HBRT_GUEST_H

#include <stdint.h>

/* Kinds of packets; WAKE: a task is posted. fastrpc/dsp/hexagon.py has the same. */
enum { HBRT_GUEST_WAKE = 1, HBRT_GUEST_REGISTER, HBRT_GUEST_READY, HBRT_GUEST_DONE, HBRT_GUEST_MAP, HBRT_GUEST_LOG };
enum { HBRT_GUEST_PAGE_BYTES = 1 << 16 /* a page of a Hexagon, by QEMU */, HBRT_GUEST_TEXT = 4096, HBRT_GUEST_OPS = 64 };
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
  /* The core's. */
  uint32_t version; /* HBRT_GUEST_VERSION: of this page and the packets */
  uint32_t cmd;
  uint64_t input, input_bytes, output, output_bytes; /* physical addresses */
  int64_t poll_ns; /* for how long a side polls before it sleeps; 0 for never */
  uint32_t client;
  uint32_t posted; /* number of the task */
  uint8_t is_core_asleep, is_program_asleep; /* each set by itself, and cleared by who wakes it */
  uint8_t reserved[2 + 64]; /* the rest has its own cache line */
  /* The program's. */
  uint32_t done; /* number of the last task that has ended */
  int32_t status;
  uint32_t said; /* MAP and LOG packets so far, each counted before it is sent */
};

#endif
