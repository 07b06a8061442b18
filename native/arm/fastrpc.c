/** remote_handle64_invoke without Python, for an invocation that Python has sent before and that uses only shared
 * buffers. */
#include "fastrpc.h"

#include "calls.h"
#include "fast.h"

#include <string.h>

struct hbrt_prepared hbrt_prepared[HBRT_PREPARED_COUNT];

static struct hbrt_prepared *place_of(remote_handle64 handle, uint32_t word, const remote_arg *arguments, uint32_t count) {
  uint64_t hash = handle * UINT64_C(0x9e3779b97f4a7c15) + word;
  for (uint32_t at = 0; at < count; at++)
    hash = (hash ^ (uintptr_t)arguments[at].buf.pv ^ (uint64_t)arguments[at].buf.nLen << 40) * UINT64_C(0x9e3779b97f4a7c15);
  return &hbrt_prepared[hash >> 58];
}

int32_t hbrt_prepared_place(remote_handle64 handle, uint32_t word, const remote_arg *arguments) {
  return (int32_t)(place_of(handle, word, arguments, REMOTE_SCALARS_LENGTH(word)) - hbrt_prepared);
}

/** Send a place's message if it belongs to the invocation: 1 if its task is queued. */
static int send(struct hbrt_prepared *place, remote_handle64 handle, uint32_t word, const remote_arg *arguments,
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

bool hbrt_fast_invoke(remote_handle64 handle, uint32_t word, const remote_arg *arguments, void *site, int32_t *code) {
  const uint32_t count = REMOTE_SCALARS_LENGTH(word);
  if (!atomic_load_explicit(&hbrt_lent, memory_order_acquire) || !arguments || !count || count > HBRT_MAX_PREPARED)
    return false;
  struct hbrt_prepared *place = place_of(handle, word, arguments, count);
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
  return is_sent;
}
