/**
 * The functions of libhbrt.so, each once: CALL(result, name, answer without a board, parameters, arguments).
 *
 * calls.c makes them of this list, the compiler holds it to the headers, and Python reads the parameters' types from
 * its text: base types, stars and const, no more.
 */
#include "rknn_calls.h"

#define HBRT_CALLS(CALL) HBRT_FAST_CALLS(CALL) HBRT_INVOKE(CALL) HBRT_OTHER_CALLS(CALL) HBRT_FASTRPC_CALLS(CALL) HBRT_RKNN_CALLS(CALL) HBRT_RGA_CALLS(CALL)

/** Those that fast.c and fastrpc.c try first. */
#define HBRT_FAST_CALLS(CALL)                                                                                        \
  CALL(int32_t, hbDSPRpc, HB_DSP_NOT_RUNNING,                                                                        \
       (hbDSPTask_t * task, hbSysMem * input, hbSysMem * output, hbDSPRpcCtrlParam * rpcCtrlParam),                  \
       (task, input, output, rpcCtrlParam))                                                                          \
  CALL(int32_t, hbDSPWaitTaskDone, HB_DSP_NOT_RUNNING, (hbDSPTask_t task, int32_t timeout), (task, timeout))         \
  CALL(int32_t, hbDSPReleaseTask, HB_DSP_NOT_RUNNING, (hbDSPTask_t task), (task))

#define HBRT_INVOKE(CALL)                                                                                            \
  CALL(int32_t, remote_handle64_invoke, AEE_ECONNREFUSED, (remote_handle64 h, uint32_t dwScalars, remote_arg * pra), \
       (h, dwScalars, pra))

#define HBRT_OTHER_CALLS(CALL)                                                                                       \
  CALL(int32_t, hbSysAllocMem, HB_SYS_NOT_RUNNING, (hbSysMem * mem, uint32_t size), (mem, size))                     \
  CALL(int32_t, hbSysAllocCachedMem, HB_SYS_NOT_RUNNING, (hbSysMem * mem, uint32_t size), (mem, size))               \
  CALL(int32_t, hbSysFlushMem, HB_SYS_NOT_RUNNING, (hbSysMem * mem, int32_t flag), (mem, flag))                      \
  CALL(int32_t, hbSysFreeMem, HB_SYS_NOT_RUNNING, (hbSysMem * mem), (mem))                                           \
  CALL(int32_t, hbSysWriteMem, HB_SYS_NOT_RUNNING, (hbSysMem * dest, char *src, uint32_t size), (dest, src, size))   \
  CALL(int32_t, hbSysReadMem, HB_SYS_NOT_RUNNING, (char *dest, hbSysMem *src, uint32_t size), (dest, src, size))     \
  CALL(int32_t, hbSysRegisterMem, HB_SYS_NOT_RUNNING, (hbSysMem * mem), (mem))                                       \
  CALL(int32_t, hbSysUnregisterMem, HB_SYS_NOT_RUNNING, (hbSysMem * mem), (mem))                                     \
  CALL(const char *, hbDSPGetVersion, "", (void), ())                                                                \
  CALL(const char *, hbDSPGetErrorDesc, "", (int32_t code), (code))                                                  \
  CALL(int32_t, hbDSPSetTaskDoneCb, HB_DSP_NOT_RUNNING,                                                              \
       (hbDSPTask_t task, hbDSPTaskDoneCb callback, void *userdata), (task, callback, userdata))                     \
  CALL(const char *, hbDNNGetVersion, "", (void), ())                                                                \
  CALL(const char *, hbDNNGetErrorDesc, "", (int32_t errorCode), (errorCode))                                        \
  CALL(int32_t, hbDNNInitializeFromFiles, HB_SYS_NOT_RUNNING,                                                        \
       (hbPackedDNNHandle_t * packedDNNHandle, const char **modelFileNames, int32_t modelFileCount),                 \
       (packedDNNHandle, modelFileNames, modelFileCount))                                                            \
  CALL(int32_t, hbDNNInitializeFromDDR, HB_SYS_NOT_RUNNING,                                                          \
       (hbPackedDNNHandle_t * packedDNNHandle, const void **modelData, int32_t *modelDataLengths,                    \
        int32_t modelDataCount),                                                                                     \
       (packedDNNHandle, modelData, modelDataLengths, modelDataCount))                                               \
  CALL(int32_t, hbDNNRelease, HB_SYS_NOT_RUNNING, (hbPackedDNNHandle_t packedDNNHandle), (packedDNNHandle))          \
  CALL(int32_t, hbDNNGetModelNameList, HB_SYS_NOT_RUNNING,                                                           \
       (const char ***modelNameList, int32_t *modelNameCount, hbPackedDNNHandle_t packedDNNHandle),                  \
       (modelNameList, modelNameCount, packedDNNHandle))                                                             \
  CALL(int32_t, hbDNNGetModelHandle, HB_SYS_NOT_RUNNING,                                                             \
       (hbDNNHandle_t * dnnHandle, hbPackedDNNHandle_t packedDNNHandle, const char *modelName),                      \
       (dnnHandle, packedDNNHandle, modelName))                                                                      \
  CALL(int32_t, hbDNNGetInputCount, HB_SYS_NOT_RUNNING, (int32_t * inputCount, hbDNNHandle_t dnnHandle),             \
       (inputCount, dnnHandle))                                                                                      \
  CALL(int32_t, hbDNNGetOutputCount, HB_SYS_NOT_RUNNING, (int32_t * outputCount, hbDNNHandle_t dnnHandle),           \
       (outputCount, dnnHandle))                                                                                     \
  CALL(int32_t, hbDNNGetInputName, HB_SYS_NOT_RUNNING,                                                               \
       (const char **name, hbDNNHandle_t dnnHandle, int32_t inputIndex), (name, dnnHandle, inputIndex))              \
  CALL(int32_t, hbDNNGetOutputName, HB_SYS_NOT_RUNNING,                                                              \
       (const char **name, hbDNNHandle_t dnnHandle, int32_t outputIndex), (name, dnnHandle, outputIndex))            \
  CALL(int32_t, hbDNNGetInputSource, HB_SYS_NOT_RUNNING,                                                             \
       (int32_t * inputSource, hbDNNHandle_t dnnHandle, int32_t inputIndex), (inputSource, dnnHandle, inputIndex))   \
  CALL(int32_t, hbDNNGetInputTensorProperties, HB_SYS_NOT_RUNNING,                                                   \
       (hbDNNTensorProperties * properties, hbDNNHandle_t dnnHandle, int32_t inputIndex),                            \
       (properties, dnnHandle, inputIndex))                                                                          \
  CALL(int32_t, hbDNNGetOutputTensorProperties, HB_SYS_NOT_RUNNING,                                                  \
       (hbDNNTensorProperties * properties, hbDNNHandle_t dnnHandle, int32_t outputIndex),                           \
       (properties, dnnHandle, outputIndex))                                                                         \
  CALL(int32_t, hbDNNInfer, HB_SYS_NOT_RUNNING,                                                                      \
       (hbDNNTaskHandle_t * taskHandle, hbDNNTensor * *output, const hbDNNTensor *input, hbDNNHandle_t dnnHandle,    \
        hbDNNInferCtrlParam *inferCtrlParam),                                                                        \
       (taskHandle, output, input, dnnHandle, inferCtrlParam))                                                       \
  CALL(int32_t, hbDNNRoiInfer, HB_SYS_NOT_RUNNING,                                                                   \
       (hbDNNTaskHandle_t * taskHandle, hbDNNTensor * *output, const hbDNNTensor *input, hbDNNRoi *rois,             \
        int32_t roiCount, hbDNNHandle_t dnnHandle, hbDNNInferCtrlParam *inferCtrlParam),                             \
       (taskHandle, output, input, rois, roiCount, dnnHandle, inferCtrlParam))                                       \
  CALL(int32_t, hbDNNResize, HB_SYS_NOT_RUNNING,                                                                     \
       (hbDNNTaskHandle_t * taskHandle, hbDNNTensor * output, const hbDNNTensor *input, const hbDNNRoi *roi,         \
        hbDNNResizeCtrlParam *resizeCtrlParam),                                                                      \
       (taskHandle, output, input, roi, resizeCtrlParam))                                                            \
  CALL(int32_t, hbDNNWaitTaskDone, HB_SYS_NOT_RUNNING, (hbDNNTaskHandle_t taskHandle, int32_t timeout),              \
       (taskHandle, timeout))                                                                                        \
  CALL(int32_t, hbDNNReleaseTask, HB_SYS_NOT_RUNNING, (hbDNNTaskHandle_t taskHandle), (taskHandle))                  \
  CALL(int32_t, hbDNNSetTaskDoneCb, HB_SYS_NOT_RUNNING,                                                              \
       (hbDNNTaskHandle_t taskHandle, hbDNNTaskDoneCb callback, void *userdata), (taskHandle, callback, userdata))   \
  CALL(int32_t, hbrt_register_layer, HB_SYS_NOT_RUNNING,                                                             \
       (const char *layerType, const hbrtLayer *functions, void *context), (layerType, functions, context))          \
  CALL(int32_t, hbrt_register_fd, HB_SYS_NOT_RUNNING, (hbSysMem * mem, int32_t fd, uint64_t offset, uint32_t size),      \
       (mem, fd, offset, size))                                                                                      \
  CALL(int32_t, hbDNNUnregisterLayerCreator, HB_SYS_NOT_RUNNING, (const char *layerType), (layerType))               \
  CALL(const char *, hbrt_last_error, hbrt_said(), (void), ()) \
  CALL(int32_t, remote_handle64_open, AEE_ECONNREFUSED, (const char *name, remote_handle64 *ph), (name, ph))             \
  CALL(int32_t, hbrt_fastrpc_finish, AEE_ECONNREFUSED, (remote_handle64 h, uint64_t task), (h, task))                \
  CALL(int32_t, remote_handle64_close, AEE_ECONNREFUSED, (remote_handle64 h), (h))

/** Those behind FastRPC's headers: addresses as numbers, which fastrpc/c_library reads by its own types. */
#define HBRT_FASTRPC_CALLS(CALL) \
  CALL(int32_t, hbrt_fastrpc_open32, AEE_ECONNREFUSED, (const char *name, remote_handle *ph), (name, ph)) \
  CALL(int32_t, hbrt_fastrpc_invoke_async, AEE_ECONNREFUSED, (remote_handle64 h, uint64_t desc, uint32_t word, remote_arg * pra), (h, desc, word, pra)) \
  CALL(int32_t, hbrt_fastrpc_async_status, AEE_ECONNREFUSED, (uint64_t job, int32_t timeout_us, uint64_t result), (job, timeout_us, result)) \
  CALL(int32_t, hbrt_fastrpc_release_job, AEE_ECONNREFUSED, (uint64_t job), (job)) \
  CALL(int32_t, hbrt_fastrpc_session_control, AEE_ECONNREFUSED, (uint32_t req, uint64_t data, uint32_t size), (req, data, size)) \
  CALL(int32_t, hbrt_fastrpc_handle_control, AEE_ECONNREFUSED, (uint32_t req, uint64_t data, uint32_t size), (req, data, size)) \
  CALL(int32_t, hbrt_fastrpc_handle64_control, AEE_ECONNREFUSED, (remote_handle64 h, uint32_t req, uint64_t data, uint32_t size), (h, req, data, size)) \
  CALL(uint64_t, hbrt_rpcmem_alloc, 0, (uint64_t size), (size)) \
  CALL(int32_t, hbrt_rpcmem_free, 0, (uint64_t address), (address)) \
  CALL(int32_t, hbrt_rpcmem_to_fd, -1, (uint64_t address), (address)) \
  CALL(int32_t, hbrt_register_buf, 0, (uint64_t address, uint64_t size, int32_t fd), (address, size, fd)) \
  CALL(int64_t, hbrt_fastrpc_register_fd, -1, (int32_t fd, uint64_t size), (fd, size)) \
  CALL(int32_t, hbrt_fastrpc_mmap, AEE_ECONNREFUSED, (int32_t domain, int32_t fd, uint64_t address, int32_t offset, uint64_t length, int32_t flags), (domain, fd, address, offset, length, flags)) \
  CALL(int32_t, hbrt_fastrpc_munmap, AEE_ECONNREFUSED, (int32_t domain, int32_t fd, uint64_t address, uint64_t length), (domain, fd, address, length)) \
  CALL(int32_t, hbrt_fastrpc_mem_map, AEE_ECONNREFUSED, (int32_t domain, int32_t fd, int32_t flags, uint64_t address, uint64_t size, uint64_t remote), (domain, fd, flags, address, size, remote)) \
  CALL(int32_t, hbrt_fastrpc_dma_handle, AEE_ECONNREFUSED, (int32_t fd, uint32_t length), (fd, length)) \
  CALL(int32_t, hbrt_fastrpc_mem_unmap, AEE_ECONNREFUSED, (int32_t domain, uint64_t remote, uint64_t size), (domain, remote, size)) \
  CALL(int32_t, hbrt_fastrpc_queue_create, AEE_ECONNREFUSED, (int32_t domain, uint32_t requests, uint32_t responses, uint64_t callbacks, uint64_t queue), (domain, requests, responses, callbacks, queue)) \
  CALL(int32_t, hbrt_fastrpc_queue_close, AEE_ECONNREFUSED, (uint64_t queue), (queue)) \
  CALL(int32_t, hbrt_fastrpc_queue_export, AEE_ECONNREFUSED, (uint64_t queue, uint64_t number), (queue, number)) \
  CALL(int32_t, hbrt_fastrpc_queue_write, AEE_ECONNREFUSED, (uint64_t queue, uint32_t flags, uint32_t count, uint64_t buffers, uint32_t length, uint64_t message, uint32_t timeout_us), (queue, flags, count, buffers, length, message, timeout_us)) \
  CALL(int32_t, hbrt_fastrpc_queue_read, AEE_ECONNREFUSED, (uint64_t queue, uint64_t places, uint32_t timeout_us), (queue, places, timeout_us)) \
  CALL(int32_t, hbrt_fastrpc_queue_peek, AEE_ECONNREFUSED, (uint64_t queue, uint64_t flags, uint64_t count, uint64_t length, uint32_t timeout_us), (queue, flags, count, length, timeout_us)) \
  CALL(int32_t, hbrt_fastrpc_queue_wake, AEE_ECONNREFUSED, (uint64_t queue, uint32_t delay_us, uint32_t flags), (queue, delay_us, flags)) \
  CALL(int32_t, hbrt_fastrpc_queue_stat, AEE_ECONNREFUSED, (uint64_t queue, int32_t stat, uint64_t value), (queue, stat, value))

/** The 2D engine, behind rga.c. */
#define HBRT_RGA_CALLS(CALL) \
  CALL(int32_t, hbrt_rga_do, -1, (uint64_t job), (job)) \
  CALL(uint64_t, hbrt_rga_import, 0, (int32_t kind, uint64_t value, uint64_t size), (kind, value, size)) \
  CALL(int32_t, hbrt_rga_release, -1, (uint64_t handle), (handle))
