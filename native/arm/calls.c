/** Every function of the library: a jump into Python by way of host.c, which three of them mostly do without. */
#include "calls.h"

#include "AEEStdErr.h"
#include "dnn/hb_dnn.h"
#include "dnn/hb_dnn_ext.h"
#include "dnn/hb_sys.h"
#include "dnn/plugin/hbrt_layer.h"
#include "dsp/hb_dsp.h"
#include "fast.h"
#include "hbrt.h"
#include "host.h"
#include "remote.h"
#include "rpcmem.h"

#define NUMBER(result, name, refusal, parameters, arguments) NUMBER_##name,
#define ENTRY(result, name, refusal, parameters, arguments) {#name, #result, #parameters, 0},
#define FUNCTION(result, name, refusal, parameters, arguments)                                                        \
  __attribute__((visibility("default"))) result name parameters {                                                     \
    BY_PYTHON(result, name, refusal, parameters, arguments)                                                           \
  }
#define FAST_FUNCTION(result, name, refusal, parameters, arguments)                                                   \
  __attribute__((visibility("default"))) result name parameters {                                                     \
    if (FAST_##name arguments) return 0;                                                                              \
    BY_PYTHON(result, name, refusal, parameters, arguments)                                                           \
  }
#define BY_PYTHON(result, name, refusal, parameters, arguments)                                                       \
  struct hbrt_call call;                                                                                              \
  result(*function) parameters =                                                                                      \
      (result(*) parameters)hbrt_enter(&call, NUMBER_##name, __builtin_return_address(0));                            \
  if (!function) return refusal;                                                                                      \
  function arguments;                                                                                                 \
  hbrt_leave(&call);                                                                                                  \
  return call.has_answer ? (result)(intptr_t)call.answer : refusal;
#define FAST_hbDSPRpc hbrt_fast_rpc
#define FAST_hbDSPWaitTaskDone(task, timeout) hbrt_fast_wait(task, timeout, __builtin_return_address(0))
#define FAST_hbDSPReleaseTask hbrt_fast_release

enum { HBRT_CALLS(NUMBER) ENTRY_COUNT };

struct hbrt_entry hbrt_entries[] = {HBRT_CALLS(ENTRY)};
const int32_t hbrt_entry_count = ENTRY_COUNT;

HBRT_OTHER_CALLS(FUNCTION)
HBRT_FAST_CALLS(FAST_FUNCTION)

/* FastRPC's calls that return nothing, or an address. */
#define API __attribute__((visibility("default")))
API void rpcmem_init(void) {}
API void rpcmem_deinit(void) {}
API void *rpcmem_alloc(int heapid, uint32_t flags, int size) {
  (void)heapid, (void)flags;
  return (void *)(uintptr_t)hbrt_rpcmem_alloc(size);
}
API void rpcmem_free(void *po) { hbrt_rpcmem_free((uintptr_t)po); }
API int rpcmem_to_fd(void *po) { return hbrt_rpcmem_to_fd((uintptr_t)po); }
API void remote_register_buf(void *buf, int size, int fd) { hbrt_register_buf((uintptr_t)buf, size, fd); }
API int fastrpc_mmap(int domain, int fd, void *addr, int offset, size_t length, enum fastrpc_map_flags flags) {
  (void)addr;
  return hbrt_fastrpc_mmap(domain, fd, offset, length, (int32_t)flags);
}
API int fastrpc_munmap(int domain, int fd, void *addr, size_t length) {
  (void)addr;
  return hbrt_fastrpc_munmap(domain, fd, length);
}
