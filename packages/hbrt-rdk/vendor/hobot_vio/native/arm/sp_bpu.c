/** libspcdev's models, built on hbDNN, which reports what fails. */
#include "sp_bpu.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

/** The number of rows of a planar picture, and the bytes per row in the program's and the model's layout; 0 rows for
 * other tensors. */
struct rows {
  int64_t count, given, aligned;
};

static struct rows rows_of(const hbDNNTensorProperties *of) {
  const int32_t *valid = of->validShape.dimensionSize, *aligned = of->alignedShape.dimensionSize;
  bool is_nhwc = of->tensorLayout == HB_DNN_LAYOUT_NHWC;
  int at = is_nhwc ? 1 : 2;
  switch (of->tensorType) {
    case HB_DNN_IMG_TYPE_Y: return (struct rows){valid[at], valid[at + 1], aligned[at + 1]};
    case HB_DNN_IMG_TYPE_NV12:
    case HB_DNN_IMG_TYPE_NV12_SEPARATE: return (struct rows){valid[at] * 3 / 2, valid[at + 1], aligned[at + 1]};
    default: return (struct rows){0, 0, 0};
  }
}

/** Copy the dimensions from `at` on into the model's padded layout. Returns the end of the program's data. */
static const char *copy_padded(const hbDNNTensorProperties *of, int32_t at, char *to, const char *from) {
  int64_t count = of->validShape.dimensionSize[at], step = of->stride[at];
  if (at == of->validShape.numDimensions - 1) {
    memcpy(to, from, (size_t)(count * step));
    return from + count * step;
  }
  for (int64_t index = 0; index < count; index++) from = copy_padded(of, at + 1, to + index * step, from);
  return from;
}

/** Copy the program's input into the model's; if NV12 is in two blocks, the second gets the rest of the first. */
static void copy_input(hbDNNTensor *input, const char *from) {
  const hbDNNTensorProperties *of = &input->properties;
  const hbDNNTensorShape *valid = &of->validShape, *aligned = &of->alignedShape;
  hbSysMem *mem = input->sysMem;
  struct rows rows = rows_of(of);
  for (int64_t row = 0; row < rows.count; row++)
    memcpy((char *)mem->virAddr + row * rows.aligned, from + row * rows.given, (size_t)rows.given);
  if (of->tensorType == HB_DNN_IMG_TYPE_NV12_SEPARATE) {
    uint32_t luma = (uint32_t)(rows.count * 2 / 3 * rows.aligned);
    mem[1] = (hbSysMem){mem->phyAddr + luma, (char *)mem->virAddr + luma, mem->memSize - luma};
  }
  if (rows.count) return;
  if (memcmp(valid->dimensionSize, aligned->dimensionSize, sizeof(int32_t) * (size_t)valid->numDimensions))
    copy_padded(of, 0, mem->virAddr, from);
  else
    memcpy(mem->virAddr, from, (size_t)of->alignedByteSize);
}

API bpu_module *sp_init_bpu_module(const char *model_file_name) {
  bpu_module *made = calloc(1, sizeof *made);
  const char **names;
  int32_t count;
  if (!made) return NULL;
  hbDNNTensorProperties *of = &made->input_tensor.properties;
  if (!hbDNNInitializeFromFiles(&made->m_packed_dnn_handle, &model_file_name, 1)) {
    if (!hbDNNGetModelNameList(&names, &count, made->m_packed_dnn_handle) &&
        !hbDNNGetModelHandle(&made->m_dnn_handle, made->m_packed_dnn_handle, names[0]) &&
        !hbDNNGetInputTensorProperties(of, made->m_dnn_handle, 0)) {
      struct rows rows = rows_of(of);
      int64_t size = rows.count * rows.aligned;
      if (size < of->alignedByteSize) size = of->alignedByteSize;
      if (!hbSysAllocCachedMem(made->input_tensor.sysMem, (uint32_t)size)) return made;
    }
    hbDNNRelease(made->m_packed_dnn_handle);
  }
  free(made);
  return NULL;
}

API int32_t sp_release_bpu_module(bpu_module *bpu_handle) {
  if (!bpu_handle) return -1;
  int32_t code = hbSysFreeMem(bpu_handle->input_tensor.sysMem);
  if (hbDNNRelease(bpu_handle->m_packed_dnn_handle)) code = -1;
  free(bpu_handle);
  return code ? -1 : 0;
}

API int32_t sp_init_bpu_tensors(bpu_module *bpu_handle, hbDNNTensor *output_tensors) {
  int32_t count;
  if (!bpu_handle || !output_tensors || hbDNNGetOutputCount(&count, bpu_handle->m_dnn_handle)) return -1;
  for (int32_t at = 0; at < count; at++) {
    hbDNNTensorProperties *of = &output_tensors[at].properties;
    if (hbDNNGetOutputTensorProperties(of, bpu_handle->m_dnn_handle, at)) return -1;
    if (hbSysAllocCachedMem(output_tensors[at].sysMem, (uint32_t)of->alignedByteSize)) return -1;
  }
  return 0;
}

API int32_t sp_deinit_bpu_tensor(hbDNNTensor *tensor, int32_t len) {
  int32_t code = tensor ? 0 : -1;
  for (int32_t at = 0; tensor && at < len; at++)
    if (hbSysFreeMem(tensor[at].sysMem)) code = -1;
  return code;
}

API int32_t sp_bpu_start_predict(bpu_module *bpu_handle, char *addr) {
  if (!bpu_handle || !addr || !bpu_handle->output_tensor) return -1;
  hbDNNTensor *input = &bpu_handle->input_tensor;
  copy_input(input, addr);
  int32_t count, code = hbSysFlushMem(input->sysMem, HB_SYS_MEM_CACHE_CLEAN);
  hbDNNInferCtrlParam how;
  HB_DNN_INITIALIZE_INFER_CTRL_PARAM(&how);
  hbDNNTaskHandle_t task = NULL;
  if (code || hbDNNGetOutputCount(&count, bpu_handle->m_dnn_handle)) return -1;
  code = hbDNNInfer(&task, &bpu_handle->output_tensor, input, bpu_handle->m_dnn_handle, &how);
  if (code) return -1;
  code = hbDNNWaitTaskDone(task, 0);
  for (int32_t at = 0; !code && at < count; at++) code = hbSysFlushMem(bpu_handle->output_tensor[at].sysMem, HB_SYS_MEM_CACHE_INVALIDATE);
  if (hbDNNReleaseTask(task)) code = -1;
  return code ? -1 : 0;
}
