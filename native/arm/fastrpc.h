/** Invocations that this library sends by itself: Python has sent each before, and records here where its message
 * is. */
#ifndef HBRT_ARM_FASTRPC_H
#define HBRT_ARM_FASTRPC_H

#include "dsp/hb_dsp.h"
#include "remote.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { HBRT_PREPARED_COUNT = 64, HBRT_MAX_PREPARED = 16 };

struct hbrt_prepared {
  _Atomic uint32_t version; /* 0 for an empty place, odd while Python writes */
  _Atomic uint32_t users;   /* threads that may be sending its message */
  _Atomic uint64_t calls;
  uint64_t handle;
  uint32_t word, cmd, priority, core_mask;
  uint64_t phy_addr, size; /* of the message */
  remote_arg arguments[HBRT_MAX_PREPARED];
};

extern struct hbrt_prepared hbrt_prepared[HBRT_PREPARED_COUNT];

/** The place of an invocation. */
int32_t hbrt_prepared_place(remote_handle64 handle, uint32_t word, const remote_arg *arguments);

/** True if the invocation was sent; then its code. */
bool hbrt_fast_invoke(remote_handle64 handle, uint32_t word, const remote_arg *arguments, void *site, int32_t *code);

int32_t hbrt_fastrpc_finish(remote_handle64 handle, uint64_t task); /* For Python: the rest of a call that has not succeeded */

#endif
