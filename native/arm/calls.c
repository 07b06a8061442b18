/** Every function of the library: a jump into Python by way of host.c, which three of them mostly do without. */
#include "calls.h"

#include "AEEStdErr.h"
#include "dnn/hb_dnn.h"
#include "dnn/hb_dnn_ext.h"
#include "dnn/hb_sys.h"
#include "dnn/plugin/hbrt_layer.h"
#include "dsp/hb_dsp.h"
#include "fast.h"
#include "fastrpc.h"
#include "hbrt.h"
#include "host.h"
#include "remote.h"
#include "rknn_api.h"
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
#define INVOKE_FUNCTION(result, name, refusal, parameters, arguments)                                                 \
  __attribute__((visibility("default"))) result name parameters {                                                     \
    int32_t code;                                                                                                     \
    if (hbrt_fast_invoke(h, dwScalars, pra, __builtin_return_address(0), &code)) return code;                         \
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
HBRT_RKNN_CALLS(FUNCTION)
HBRT_FAST_CALLS(FAST_FUNCTION)
HBRT_INVOKE(INVOKE_FUNCTION)

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

/* RKNN's calls, whose structures Python reads at their addresses. */
API int rknn_init(rknn_context *context, void *model, uint32_t size, uint32_t flag, rknn_init_extend *extend) {
  return hbrt_rknn_init((uintptr_t)context, (uintptr_t)model, size, flag, (uintptr_t)extend);
}
API int rknn_dup_context(rknn_context *context_in, rknn_context *context_out) {
  return hbrt_rknn_dup_context((uintptr_t)context_in, (uintptr_t)context_out);
}
API int rknn_destroy(rknn_context context) {
  return hbrt_rknn_destroy(context);
}
API int rknn_query(rknn_context context, rknn_query_cmd cmd, void *info, uint32_t size) {
  return hbrt_rknn_query(context, (int32_t)cmd, (uintptr_t)info, size);
}
API int rknn_inputs_set(rknn_context context, uint32_t n_inputs, rknn_input inputs[]) {
  return hbrt_rknn_inputs_set(context, n_inputs, (uintptr_t)inputs);
}
API int rknn_set_batch_core_num(rknn_context context, int core_num) {
  return hbrt_rknn_set_batch_core_num(context, core_num);
}
API int rknn_set_core_mask(rknn_context context, rknn_core_mask core_mask) {
  return hbrt_rknn_set_core_mask(context, (int32_t)core_mask);
}
API int rknn_run(rknn_context context, rknn_run_extend *extend) {
  return hbrt_rknn_run(context, (uintptr_t)extend);
}
API int rknn_wait(rknn_context context, rknn_run_extend *extend) {
  return hbrt_rknn_wait(context, (uintptr_t)extend);
}
API int rknn_outputs_get(rknn_context context, uint32_t n_outputs, rknn_output outputs[], rknn_output_extend *extend) {
  return hbrt_rknn_outputs_get(context, n_outputs, (uintptr_t)outputs, (uintptr_t)extend);
}
API int rknn_outputs_release(rknn_context context, uint32_t n_outputs, rknn_output outputs[]) {
  return hbrt_rknn_outputs_release(context, n_outputs, (uintptr_t)outputs);
}
API rknn_tensor_mem *rknn_create_mem_from_phys(rknn_context context, uint64_t phys_addr, void *virt_addr, uint32_t size) {
  return (rknn_tensor_mem *)(uintptr_t)hbrt_rknn_create_mem_from_phys(context, phys_addr, (uintptr_t)virt_addr, size);
}
API rknn_tensor_mem *rknn_create_mem_from_fd(rknn_context context, int32_t fd, void *virt_addr, uint32_t size, int32_t offset) {
  return (rknn_tensor_mem *)(uintptr_t)hbrt_rknn_create_mem_from_fd(context, fd, (uintptr_t)virt_addr, size, offset);
}
API rknn_tensor_mem *rknn_create_mem(rknn_context context, uint32_t size) {
  return (rknn_tensor_mem *)(uintptr_t)hbrt_rknn_create_mem(context, size);
}
API rknn_tensor_mem *rknn_create_mem2(rknn_context context, uint64_t size, uint64_t alloc_flags) {
  return (rknn_tensor_mem *)(uintptr_t)hbrt_rknn_create_mem2(context, size, alloc_flags);
}
API int rknn_destroy_mem(rknn_context context, rknn_tensor_mem *mem) {
  return hbrt_rknn_destroy_mem(context, (uintptr_t)mem);
}
API int rknn_set_weight_mem(rknn_context context, rknn_tensor_mem *mem) {
  return hbrt_rknn_set_weight_mem(context, (uintptr_t)mem);
}
API int rknn_set_internal_mem(rknn_context context, rknn_tensor_mem *mem) {
  return hbrt_rknn_set_internal_mem(context, (uintptr_t)mem);
}
API int rknn_set_io_mem(rknn_context context, rknn_tensor_mem *mem, rknn_tensor_attr *attr) {
  return hbrt_rknn_set_io_mem(context, (uintptr_t)mem, (uintptr_t)attr);
}
API int rknn_set_input_shape(rknn_context context, rknn_tensor_attr *attr) {
  return hbrt_rknn_set_input_shape(context, (uintptr_t)attr);
}
API int rknn_set_input_shapes(rknn_context context, uint32_t n_inputs, rknn_tensor_attr attr[]) {
  return hbrt_rknn_set_input_shapes(context, n_inputs, (uintptr_t)attr);
}
API int rknn_mem_sync(rknn_context context, rknn_tensor_mem *mem, rknn_mem_sync_mode mode) {
  return hbrt_rknn_mem_sync(context, (uintptr_t)mem, (int32_t)mode);
}
