/** libcdsprpc.so: FastRPC's functions. It repeats by itself invocations that Python has sent before, and that use only
 * shared buffers: Python records here where the message of each is. */
#include "AEEStdErr.h"
#include "dspqueue.h"
#include "remote.h"
#include "rpcmem.h"

#include "entry.h"
#include "fast.h"
#include "fastrpc_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { PLACES = 64, MAX_PREPARED = 16 };

/** An invocation and its message; fastrpc/c_library/prepared.py has the same structure. */
struct prepared {
  _Atomic uint32_t version; /* 0 for an empty place, odd while Python writes */
  _Atomic uint32_t users;   /* threads that may be sending its message */
  _Atomic uint64_t calls;
  uint64_t handle;
  uint32_t word; /* 0, which has no arguments, while there is no invocation */
  uint32_t cmd, priority, core_mask;
  uint64_t phy_addr, size; /* of the message */
  remote_arg arguments[MAX_PREPARED];
};
static struct prepared places[PLACES];

/* For Python: the places, and the function that numbers an invocation's; and the rest of a call that has not succeeded. */
HBRT_FUNCTION(int32_t, hbrt_fastrpc_lend, AEE_ECONNREFUSED, (uint64_t all, uint64_t place_of), (all, place_of), "c_int32 c_uint64 c_uint64")
HBRT_FUNCTION(int32_t, hbrt_fastrpc_finish, AEE_ECONNREFUSED, (remote_handle64 h, uint64_t task), (h, task), "c_int32 c_uint64 c_uint64")

static struct prepared *place_of(remote_handle64 handle, uint32_t word, const remote_arg *arguments, uint32_t count) {
  uint64_t hash = handle * UINT64_C(0x9e3779b97f4a7c15) + word;
  for (uint32_t at = 0; at < count; at++)
    hash = (hash ^ (uintptr_t)arguments[at].buf.pv ^ (uint64_t)arguments[at].buf.nLen << 40) * UINT64_C(0x9e3779b97f4a7c15);
  return &places[hash >> 58];
}

static int32_t number_of(remote_handle64 handle, uint32_t word, const remote_arg *arguments) {
  return (int32_t)(place_of(handle, word, arguments, REMOTE_SCALARS_LENGTH(word)) - places);
}

/* A child has no board yet. */
static void forget(void) { memset(places, 0, sizeof places); }

static bool lend(void) {
  static _Atomic bool is_lent;
  if (!atomic_load(&is_lent) && !hbrt_fastrpc_lend((uintptr_t)places, (uintptr_t)number_of))
    if (!atomic_exchange(&is_lent, true)) pthread_atfork(NULL, NULL, forget);
  return false;
}

/** Send a place's message if it belongs to the invocation: 1 if its task is queued. */
static int send(struct prepared *place, remote_handle64 handle, uint32_t word, const remote_arg *arguments,
                uint32_t count, hbDSPTask_t *task) {
  const uint32_t version = atomic_load(&place->version);
  if (!version || version % 2 || place->handle != handle || place->word != word ||
      memcmp(place->arguments, arguments, count * sizeof *arguments) != 0)
    return 0;
  const hbSysMem input = {.phyAddr = place->phy_addr, .memSize = place->size}, none = {0};
  hbDSPRpcCtrlParam control;
  HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&control);
  control.rpcCmd = place->cmd;
  control.priority = place->priority;
  control.dspCoreId = place->core_mask;
  atomic_thread_fence(memory_order_acquire);
  return atomic_load(&place->version) == version && hbrt_fast_rpc(task, &input, &none, &control);
}

/** True if the invocation was sent; then its code. */
static bool invoked(remote_handle64 handle, uint32_t word, const remote_arg *arguments, void *site, int32_t *code) {
  const uint32_t count = REMOTE_SCALARS_LENGTH(word);
  if (!arguments || !count || count > MAX_PREPARED) return false;
  struct prepared *place = place_of(handle, word, arguments, count);
  hbDSPTask_t task;
  atomic_fetch_add(&place->users, 1); /* first: the message of a place in use is not given to another call */
  const int is_sent = send(place, handle, word, arguments, count, &task);
  if (is_sent) {
    atomic_fetch_add(&place->calls, 1);
    if (hbrt_fast_wait(task, 0, site)) {
      *code = 0;
      if (!hbrt_fast_release(task)) hbDSPReleaseTask(task);
    } else {
      *code = hbrt_fastrpc_finish(handle, (uint64_t)(uintptr_t)task);
    }
  }
  atomic_fetch_sub(&place->users, 1);
  return is_sent || lend();
}

#define FAST_remote_handle64_invoke(h, word, pra) invoked(h, word, pra, __builtin_return_address(0), &code)
#define FAST_remote_handle_invoke FAST_remote_handle64_invoke

HBRT_FASTRPC_CALLS(HBRT_FUNCTION, HBRT_FAST_FUNCTION)
