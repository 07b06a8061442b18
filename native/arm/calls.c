/** Every function of the library: a jump into Python by way of host.c, which three of them mostly do without. */
#include "calls.h"

#include "AEEStdErr.h"
#include "dnn/hb_dnn.h"
#include "dnn/hb_dnn_ext.h"
#include "dnn/hb_sys.h"
#include "dnn/plugin/hbrt_layer.h"
#include "dsp/hb_dsp.h"
#include "dspqueue.h"
#include "fast.h"
#include "fastrpc.h"
#include "hbrt.h"
#include "host.h"
#include "remote.h"
#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"
#include "rpcmem.h"

#include <pthread.h>

#define NUMBER(result, name, refusal, parameters, arguments) NUMBER_##name,
#define ENTRY(result, name, refusal, parameters, arguments) {#name, #result, #parameters, 0},
#define FUNCTION(result, name, refusal, parameters, arguments)                                                        \
  __attribute__((visibility("default"))) result name parameters {                                                     \
    BY_PYTHON(result, name, refusal, parameters, arguments)                                                           \
  }
/* As hbrt_enter and hbrt_leave. */
#define UNCANCELLED(statement)                                                                                        \
  do {                                                                                                                \
    int cancel_state;                                                                                                 \
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);                                                    \
    statement;                                                                                                        \
    pthread_setcancelstate(cancel_state, NULL);                                                                       \
  } while (0)
#define FAST_FUNCTION(result, name, refusal, parameters, arguments)                                                   \
  __attribute__((visibility("default"))) result name parameters {                                                     \
    bool is_done;                                                                                                     \
    UNCANCELLED(is_done = FAST_##name arguments);                                                                     \
    if (is_done) return 0;                                                                                            \
    BY_PYTHON(result, name, refusal, parameters, arguments)                                                           \
  }
#define INVOKE_FUNCTION(result, name, refusal, parameters, arguments)                                                 \
  __attribute__((visibility("default"))) result name parameters {                                                     \
    int32_t code;                                                                                                     \
    bool is_done;                                                                                                     \
    UNCANCELLED(is_done = hbrt_fast_invoke(h, dwScalars, pra, __builtin_return_address(0), &code));                   \
    if (is_done) return code;                                                                                         \
    BY_PYTHON(result, name, refusal, parameters, arguments)                                                           \
  }
/* Where the program calls a function here that calls another one: its line is told, not ours. */
__thread void *hbrt_caller;
#define BY_PYTHON(result, name, refusal, parameters, arguments)                                                       \
  struct hbrt_call call;                                                                                              \
  void *from = hbrt_caller ? hbrt_caller : __builtin_return_address(0);                                               \
  hbrt_caller = NULL;                                                                                                 \
  result(*function) parameters =                                                                                      \
      (result(*) parameters)hbrt_enter(&call, NUMBER_##name, from);                            \
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
HBRT_FASTRPC_CALLS(FUNCTION)
HBRT_RKNN_CALLS(FUNCTION)
HBRT_RGA_CALLS(FUNCTION)
HBRT_FAST_CALLS(FAST_FUNCTION)
HBRT_INVOKE(INVOKE_FUNCTION)

/* FastRPC's calls, whose structures Python reads at their addresses. */
#define API __attribute__((visibility("default")))
#define AT(pointer) ((uintptr_t)(pointer))
API int remote_handle_open(const char *name, remote_handle *ph) { return hbrt_fastrpc_open32(name, ph); }
API int remote_handle_invoke(remote_handle h, uint32_t word, remote_arg *pra) { return remote_handle64_invoke(h, word, pra); }
API int remote_handle_close(remote_handle h) { return remote_handle64_close(h); }
API int remote_handle_invoke_async(remote_handle h, fastrpc_async_descriptor_t *desc, uint32_t word, remote_arg *pra) {
  return hbrt_fastrpc_invoke_async(h, AT(desc), word, pra);
}
API int remote_handle64_invoke_async(remote_handle64 h, fastrpc_async_descriptor_t *desc, uint32_t word, remote_arg *pra) {
  return hbrt_fastrpc_invoke_async(h, AT(desc), word, pra);
}
API int fastrpc_async_get_status(fastrpc_async_jobid jobid, int timeout_us, int *result) {
  return hbrt_fastrpc_async_status(jobid, timeout_us, AT(result));
}
API int fastrpc_release_async_job(fastrpc_async_jobid jobid) { return hbrt_fastrpc_release_job(jobid); }
API int remote_session_control(uint32_t req, void *data, uint32_t size) { return hbrt_fastrpc_session_control(req, AT(data), size); }
API int remote_handle_control(uint32_t req, void *data, uint32_t size) { return hbrt_fastrpc_handle_control(req, AT(data), size); }
API int remote_handle64_control(remote_handle64 h, uint32_t req, void *data, uint32_t size) {
  return hbrt_fastrpc_handle64_control(h, req, AT(data), size);
}
API void rpcmem_init(void) {}
API void rpcmem_deinit(void) {}
API void *rpcmem_alloc2(int heapid, uint32_t flags, size_t size) {
  (void)heapid, (void)flags;
  return (void *)(uintptr_t)hbrt_rpcmem_alloc(size);
}
API void *rpcmem_alloc(int heapid, uint32_t flags, int size) { return rpcmem_alloc2(heapid, flags, size < 0 ? 0 : (size_t)size); }
API void rpcmem_free(void *po) { hbrt_rpcmem_free(AT(po)); }
API int rpcmem_to_fd(void *po) { return hbrt_rpcmem_to_fd(AT(po)); }
API void remote_register_buf_attr2(void *buf, size_t size, int fd, int attr) {
  (void)attr;
  hbrt_register_buf(AT(buf), size, fd);
}
API void remote_register_buf_attr(void *buf, int size, int fd, int attr) {
  remote_register_buf_attr2(buf, size < 0 ? 0 : (size_t)size, fd, attr);
}
API void remote_register_buf(void *buf, int size, int fd) { remote_register_buf_attr(buf, size, fd, 0); }
API void *remote_register_fd2(int fd, size_t size) { return (void *)(intptr_t)hbrt_fastrpc_register_fd(fd, size); }
API void *remote_register_fd(int fd, int size) { return remote_register_fd2(fd, size < 0 ? 0 : (size_t)size); }
API int fastrpc_mmap(int domain, int fd, void *addr, int offset, size_t length, enum fastrpc_map_flags flags) {
  return hbrt_fastrpc_mmap(domain, fd, AT(addr), offset, length, (int32_t)flags);
}
API int fastrpc_munmap(int domain, int fd, void *addr, size_t length) { return hbrt_fastrpc_munmap(domain, fd, AT(addr), length); }
API int remote_mem_map(int domain, int fd, int flags, uint64_t virtAddr, size_t size, uint64_t *remoteVirtAddr) {
  return hbrt_fastrpc_mem_map(domain, fd, flags, virtAddr, size, AT(remoteVirtAddr));
}
API int remote_mem_unmap(int domain, uint64_t remoteVirtAddr, size_t size) { return hbrt_fastrpc_mem_unmap(domain, remoteVirtAddr, size); }
API int remote_register_dma_handle(int fd, uint32_t len) { return hbrt_fastrpc_dma_handle(fd, len); }
API int remote_register_dma_handle_attr(int fd, uint32_t len, uint32_t attr) {
  (void)attr;
  return hbrt_fastrpc_dma_handle(fd, len);
}
API int remote_mmap64(int fd, uint32_t flags, uint64_t vaddrin, int64_t size, uint64_t *vaddrout) {
  (void)flags;
  return remote_mem_map(CDSP_DOMAIN_ID, fd, REMOTE_MAP_MEM_STATIC, vaddrin, size < 0 ? 0 : (size_t)size, vaddrout);
}
API int remote_munmap64(uint64_t vaddrout, int64_t size) {
  return remote_mem_unmap(CDSP_DOMAIN_ID, vaddrout, size < 0 ? 0 : (size_t)size);
}
API int remote_mmap(int fd, uint32_t flags, uint32_t vaddrin, int size, uint32_t *vaddrout) {
  uint64_t out = 0;
  const int code = remote_mmap64(fd, flags, vaddrin, size, &out);
  if (code) return code;
  if (!vaddrout || out > UINT32_MAX) { /* only the 64-bit form can say where it lies */
    remote_munmap64(out, size);
    return vaddrout ? AEE_ENOMEMORY : AEE_EBADPARM;
  }
  *vaddrout = (uint32_t)out;
  return 0;
}
API int remote_munmap(uint32_t vaddrout, int size) { return remote_munmap64(vaddrout, size); }
API int remote_set_mode(uint32_t mode) { return mode <= REMOTE_MODE_SERIAL ? 0 : AEE_EBADPARM; }

API AEEResult dspqueue_create(int domain, uint32_t flags, uint32_t requests, uint32_t responses, dspqueue_callback_t packet_callback,
                              dspqueue_callback_t error_callback, void *context, dspqueue_t *queue) {
  CALLED_HERE();
  (void)flags;
  const uint64_t callbacks[] = {AT(packet_callback), AT(error_callback), AT(context)};
  return hbrt_fastrpc_queue_create(domain, requests, responses, AT(callbacks), AT(queue));
}
API AEEResult dspqueue_close(dspqueue_t queue) { return hbrt_fastrpc_queue_close(AT(queue)); }
API AEEResult dspqueue_export(dspqueue_t queue, uint64_t *queue_id) { return hbrt_fastrpc_queue_export(AT(queue), AT(queue_id)); }
API AEEResult dspqueue_import(uint64_t queue_id, dspqueue_callback_t packet_callback, dspqueue_callback_t error_callback, void *context,
                              dspqueue_t *queue) { /* an image's */
  (void)queue_id, (void)packet_callback, (void)error_callback, (void)context, (void)queue;
  return AEE_EUNSUPPORTED;
}
API AEEResult dspqueue_write(dspqueue_t queue, uint32_t flags, uint32_t count, struct dspqueue_buffer *buffers, uint32_t length,
                             const uint8_t *message, uint32_t timeout_us) {
  CALLED_HERE();
  return hbrt_fastrpc_queue_write(AT(queue), flags, count, AT(buffers), length, AT(message), timeout_us);
}
API AEEResult dspqueue_write_noblock(dspqueue_t queue, uint32_t flags, uint32_t count, struct dspqueue_buffer *buffers, uint32_t length,
                                     const uint8_t *message) {
  CALLED_HERE();
  return dspqueue_write(queue, flags, count, buffers, length, message, 0);
}
API AEEResult dspqueue_read(dspqueue_t queue, uint32_t *flags, uint32_t most_buffers, uint32_t *count, struct dspqueue_buffer *buffers,
                            uint32_t most_message, uint32_t *length, uint8_t *message, uint32_t timeout_us) {
  CALLED_HERE();
  const uint64_t places[] = {AT(flags), most_buffers, AT(count), AT(buffers), most_message, AT(length), AT(message)};
  return hbrt_fastrpc_queue_read(AT(queue), AT(places), timeout_us);
}
API AEEResult dspqueue_read_noblock(dspqueue_t queue, uint32_t *flags, uint32_t most_buffers, uint32_t *count,
                                    struct dspqueue_buffer *buffers, uint32_t most_message, uint32_t *length, uint8_t *message) {
  CALLED_HERE();
  return dspqueue_read(queue, flags, most_buffers, count, buffers, most_message, length, message, 0);
}
API AEEResult dspqueue_peek(dspqueue_t queue, uint32_t *flags, uint32_t *count, uint32_t *length, uint32_t timeout_us) {
  CALLED_HERE();
  return hbrt_fastrpc_queue_peek(AT(queue), AT(flags), AT(count), AT(length), timeout_us);
}
API AEEResult dspqueue_peek_noblock(dspqueue_t queue, uint32_t *flags, uint32_t *count, uint32_t *length) {
  CALLED_HERE();
  return dspqueue_peek(queue, flags, count, length, 0);
}
API AEEResult dspqueue_write_early_wakeup_noblock(dspqueue_t queue, uint32_t wakeup_delay, uint32_t packet_flags) {
  return hbrt_fastrpc_queue_wake(AT(queue), wakeup_delay, packet_flags);
}
API AEEResult dspqueue_get_stat(dspqueue_t queue, enum dspqueue_stat stat, uint64_t *value) {
  return hbrt_fastrpc_queue_stat(AT(queue), (int32_t)stat, AT(value));
}
