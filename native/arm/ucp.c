/** hbUCP*, and hbDNN* of the S series: another generation's structures on top of hbSys*, hbDNN* and hbDSP*. */
#define _GNU_SOURCE
#include "dnn/hb_dnn.h"
#include "dnn/hb_sys.h"
#include "dsp/hb_dsp.h"
#include "host.h"
#include "ucp.h"

#define HBRT_BOTH_GENERATIONS
#include "hobot/dnn/hb_dnn.h"
#include "hobot/dsp/hb_dsp.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { MAX_TASKS = 1024, FIRST_NUMBER = HB_DNN_TENSOR_TYPE_S4, U8_OF_S = 3, PLANES = 2 };
enum kind { INPUT, OUTPUT };

struct inference {
  hbDNNHandle_t model;
  hbDNNTensor *inputs, *outputs;
  int32_t output_count;
};

struct task {
  uint32_t generation; /* odd while it is alive */
  bool is_dsp, is_submitted, is_done;
  int32_t count;
  struct inference *inferences;
  hbDNNTaskHandle_t dnn;
  hbDSPTask_t dsp;
  hbSysMem blocks[2];
  hbSysMem own; /* the input block, if the task has allocated it */
  int32_t command;
  hbUCPTaskDoneCb callback;
  void *userdata;
  hbUCPTaskHandle_t watched; /* the handle that a callback is still to come for, maybe after the release */
};

/* What a tensor's properties and names point to; kept until the process ends, since handles are never reused. */
struct kept {
  hbDNNHandle_t model;
  enum kind kind;
  int32_t index;
  char *name;
  float *scale;
  int32_t *zero_points;
  struct kept *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct task tasks[MAX_TASKS];
static struct kept *all_kept;

int32_t hbrt_ucp_refused(int32_t status, const char *format, ...) {
  char sentence[256];
  va_list values;
  va_start(values, format);
  vsnprintf(sentence, sizeof sentence, format, values);
  va_end(values);
  fprintf(stderr, "hbrt: %s\n", sentence);
  return status;
}

static hbUCPTaskHandle_t handle_of(const struct task *task) {
  return (hbUCPTaskHandle_t)(((uintptr_t)task->generation << 16) + (uintptr_t)(task - tasks) + 1);
}

static struct task *task_of(hbUCPTaskHandle_t handle) {
  uintptr_t at = ((uintptr_t)handle & 0xffff) - 1;
  struct task *task = at < MAX_TASKS ? &tasks[at] : NULL;
  return task && task->generation % 2 && handle_of(task) == handle ? task : NULL;
}

static struct task *new_task(void) {
  pthread_mutex_lock(&lock);
  struct task *found = NULL;
  for (int32_t at = 0; at < MAX_TASKS && !found; at++)
    if (tasks[at].generation % 2 == 0 && !tasks[at].watched) found = &tasks[at];
  if (found) {
    uint32_t generation = found->generation + 1;
    *found = (struct task){.generation = generation};
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static void end_task(struct task *task) {
  if (task->own.phyAddr) hbSysFreeMem(&task->own);
  for (int32_t at = 0; at < task->count; at++) free(task->inferences[at].inputs), free(task->inferences[at].outputs);
  free(task->inferences);
  pthread_mutex_lock(&lock);
  task->count = 0, task->inferences = NULL;
  task->generation++;
  pthread_mutex_unlock(&lock);
}

static struct kept *kept_of(hbDNNHandle_t model, enum kind kind, int32_t index) {
  pthread_mutex_lock(&lock);
  struct kept *found = all_kept;
  while (found && !(found->model == model && found->kind == kind && found->index == index)) found = found->next;
  if (!found && (found = calloc(1, sizeof *found))) {
    *found = (struct kept){.model = model, .kind = kind, .index = index, .next = all_kept};
    all_kept = found;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

/* Memory. */

static hbSysMem old_block(const hbUCPSysMem *mem) {
  return (hbSysMem){mem->phyAddr, mem->virAddr, mem->memSize > UINT32_MAX ? UINT32_MAX : (uint32_t)mem->memSize};
}

static int32_t allocate(int32_t (*call)(hbSysMem *, uint32_t), hbUCPSysMem *mem, uint64_t size) {
  hbSysMem block = {0, NULL, 0};
  /* larger than any block: the call reports the largest */
  int32_t status = call(mem ? &block : NULL, size > UINT32_MAX ? UINT32_MAX : (uint32_t)size);
  if (!status) *mem = (hbUCPSysMem){block.phyAddr, block.virAddr, block.memSize};
  return status;
}

API int32_t hbUCPMalloc(hbUCPSysMem *mem, uint64_t size, int32_t deviceId) {
  (void)deviceId;
  return ASKED(allocate(hbSysAllocMem, mem, size));
}

API int32_t hbUCPMallocCached(hbUCPSysMem *mem, uint64_t size, int32_t deviceId) {
  (void)deviceId;
  return ASKED(allocate(hbSysAllocCachedMem, mem, size));
}

API int32_t hbUCPFree(hbUCPSysMem *mem) {
  hbSysMem block = mem ? old_block(mem) : (hbSysMem){0, NULL, 0};
  return ASKED(hbSysFreeMem(mem ? &block : NULL));
}

API int32_t hbUCPMemFlush(const hbUCPSysMem *mem, int32_t flag) {
  hbSysMem block = mem ? old_block(mem) : (hbSysMem){0, NULL, 0};
  return ASKED(hbSysFlushMem(mem ? &block : NULL, flag));
}

API int32_t hbDSPAddrMap(hbUCPSysMem *out, const hbUCPSysMem *in) {
  if (!out || !in)
    return hbrt_ucp_refused(HB_SYS_INVALID_ARGUMENT, "hbDSPAddrMap: %s is NULL; pass an hbUCPSysMem.",
                            out ? "in" : "out");
  hbSysMem block = old_block(in);
  int32_t status = ASKED(hbSysRegisterMem(&block)); /* refused outside live blocks; the DSP sees them all */
  if (status) return status;
  hbSysUnregisterMem(&block);
  *out = *in;
  return 0;
}

API int32_t hbDSPAddrUnmap(const hbUCPSysMem *mem) {
  return mem ? 0 : hbrt_ucp_refused(HB_SYS_INVALID_ARGUMENT, "hbDSPAddrUnmap: mem is NULL; pass an hbUCPSysMem.");
}

API const char *hbUCPGetVersion(void) { return hbDNNGetVersion(); }
API const char *hbUCPGetSocName(void) { return "S100"; }
API const char *hbUCPGetErrorDesc(int32_t errorCode) { return hbDNNGetErrorDesc(errorCode); }

/* Tensor properties. */

static bool is_planes(const hbDNNTensorProperties *old) { return old->tensorType == HB_DNN_IMG_TYPE_NV12; }

/* A model's inputs in order, an NV12 picture as two: the model's own input number, and which plane. */
static int32_t find_input(hbDNNHandle_t model, int32_t index, int32_t *at, int32_t *plane, hbDNNTensorProperties *old) {
  int32_t count = 0, status = hbDNNGetInputCount(&count, model);
  for (*at = 0; !status && *at < count; ++*at) {
    if ((status = hbDNNGetInputTensorProperties(old, model, *at))) return status;
    int32_t many = is_planes(old) ? PLANES : 1;
    if (index >= 0 && index < many) {
      *plane = is_planes(old) ? index : -1;
      return 0;
    }
    index -= many;
  }
  return status ? status : hbDNNGetInputTensorProperties(old, model, index < 0 ? -1 : count); /* which rejects it */
}

static void fill_scale(struct hbrtUcpProperties *made, const hbDNNTensorProperties *old, struct kept *kept) {
  int32_t n = old->quantiType == SCALE ? old->scale.scaleLen : old->quantiType == SHIFT ? old->shift.shiftLen : 0;
  made->quantiType = n > 0;
  made->quantizeAxis = n > 1 ? old->quantizeAxis : -1;
  if (n <= 0 || !kept) return;
  pthread_mutex_lock(&lock);
  if (!kept->scale) {
    float *scale = calloc((size_t)n, sizeof *scale);
    int32_t *zero_points = calloc((size_t)n, sizeof *zero_points);
    for (int32_t at = 0; scale && zero_points && at < n; at++) {
      scale[at] = old->quantiType == SCALE ? old->scale.scaleData[at] : 1.0f / (float)(1u << old->shift.shiftData[at]);
      if (old->quantiType == SCALE && at < old->scale.zeroPointLen) zero_points[at] = old->scale.zeroPointData[at];
    }
    kept->scale = scale, kept->zero_points = zero_points;
  }
  pthread_mutex_unlock(&lock);
  made->scale.scaleLen = made->scale.zeroPointLen = n;
  made->scale.scaleData = kept->scale;
  made->scale.zeroPointData = kept->zero_points;
}

static void fill(struct hbrtUcpProperties *made, const hbDNNTensorProperties *old, struct kept *kept) {
  memset(made, 0, sizeof *made);
  made->tensorType = old->tensorType < (int32_t)FIRST_NUMBER ? (int32_t)U8_OF_S : old->tensorType - (int32_t)FIRST_NUMBER;
  made->validShape.numDimensions = old->validShape.numDimensions;
  for (int32_t at = 0; at < old->validShape.numDimensions; at++) {
    made->validShape.dimensionSize[at] = old->validShape.dimensionSize[at];
    made->stride[at] = old->alignedByteSize < 0 ? -1 : old->stride[at];
  }
  made->alignedByteSize = old->alignedByteSize;
  fill_scale(made, old, kept);
}

static void fill_plane(struct hbrtUcpProperties *made, const hbDNNTensorProperties *old, int32_t plane) {
  bool is_first = old->tensorLayout == HB_DNN_LAYOUT_NCHW;
  const int32_t *sizes = old->validShape.dimensionSize;
  int32_t height = sizes[is_first ? 2 : 1], width = sizes[is_first ? 3 : 2], channels = plane + 1;
  int32_t shape[] = {sizes[0], height / channels, width / channels, channels};
  memset(made, 0, sizeof *made);
  made->validShape.numDimensions = 4;
  memcpy(made->validShape.dimensionSize, shape, sizeof shape);
  made->tensorType = U8_OF_S;
  made->quantizeAxis = -1;
  made->stride[0] = made->stride[1] = -1; /* the caller decides the rows' sizes */
  made->stride[2] = channels, made->stride[3] = 1;
  made->alignedByteSize = -1;
}

API int32_t hbrt_ucp_hbDNNGetInputCount(int32_t *inputCount, hbDNNHandle_t dnnHandle) {
  int32_t count = 0, status = ASKED(hbDNNGetInputCount(inputCount ? &count : NULL, dnnHandle));
  if (status) return status;
  *inputCount = count;
  for (int32_t at = 0; at < count; at++) {
    hbDNNTensorProperties old;
    if ((status = ASKED(hbDNNGetInputTensorProperties(&old, dnnHandle, at)))) return status;
    *inputCount += is_planes(&old);
  }
  return 0;
}

API int32_t hbrt_ucp_hbDNNGetInputName(const char **name, hbDNNHandle_t dnnHandle, int32_t inputIndex) {
  hbDNNTensorProperties old;
  int32_t at, plane, status = ASKED(find_input(dnnHandle, inputIndex, &at, &plane, &old));
  if (status) return status;
  if ((status = ASKED(hbDNNGetInputName(name, dnnHandle, at))) || plane < 0) return status;
  struct kept *kept = kept_of(dnnHandle, INPUT, inputIndex);
  if (!kept) return HB_DNN_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  if (!kept->name && asprintf(&kept->name, "%s_%s", *name, plane ? "uv" : "y") < 0) kept->name = NULL;
  pthread_mutex_unlock(&lock);
  *name = kept->name;
  return *name ? 0 : HB_DNN_OUT_OF_MEMORY;
}

API int32_t hbrt_ucp_hbDNNGetInputTensorProperties(struct hbrtUcpProperties *properties, hbDNNHandle_t dnnHandle,
                                                   int32_t inputIndex) {
  hbDNNTensorProperties old;
  int32_t at, plane, status = ASKED(find_input(dnnHandle, inputIndex, &at, &plane, properties ? &old : NULL));
  if (status) return status;
  if (plane < 0) fill(properties, &old, kept_of(dnnHandle, INPUT, inputIndex));
  else fill_plane(properties, &old, plane);
  return 0;
}

API int32_t hbrt_ucp_hbDNNGetOutputTensorProperties(struct hbrtUcpProperties *properties, hbDNNHandle_t dnnHandle,
                                                    int32_t outputIndex) {
  hbDNNTensorProperties old;
  int32_t status = ASKED(hbDNNGetOutputTensorProperties(properties ? &old : NULL, dnnHandle, outputIndex));
  if (!status) fill(properties, &old, kept_of(dnnHandle, OUTPUT, outputIndex));
  return status;
}

API int32_t hbDNNGetCompileBpuCoreNum(int32_t *num, hbDNNHandle_t dnnHandle) {
  int32_t status = ASKED(hbDNNGetInputCount(num, dnnHandle));
  if (!status) *num = 1;
  return status;
}

static int32_t no_text(const char **desc, uint32_t *size, int32_t *type, int32_t status) {
  if (!status && !desc) status = HB_DNN_INVALID_ARGUMENT;
  if (status) return status;
  *desc = "";
  if (size) *size = 0;
  if (type) *type = 0;
  return 0;
}

API int32_t hbDNNGetModelDesc(const char **desc, uint32_t *size, int32_t *type, hbDNNHandle_t dnnHandle) {
  int32_t count;
  return no_text(desc, size, type, ASKED(hbDNNGetInputCount(&count, dnnHandle)));
}

API int32_t hbDNNGetInputDesc(const char **desc, uint32_t *size, int32_t *type, hbDNNHandle_t dnnHandle,
                              int32_t inputIndex) {
  struct hbrtUcpProperties told;
  return no_text(desc, size, type, hbrt_ucp_hbDNNGetInputTensorProperties(&told, dnnHandle, inputIndex));
}

API int32_t hbDNNGetOutputDesc(const char **desc, uint32_t *size, int32_t *type, hbDNNHandle_t dnnHandle,
                               int32_t outputIndex) {
  struct hbrtUcpProperties told;
  return no_text(desc, size, type, hbrt_ucp_hbDNNGetOutputTensorProperties(&told, dnnHandle, outputIndex));
}

/* Tasks. */

/* Sizes filled in by the caller, if the data decides them. */
static void take_shape(hbDNNTensorProperties *old, const struct hbrtUcpProperties *given) {
  for (int32_t at = 0; at < old->validShape.numDimensions; at++)
    if (old->validShape.dimensionSize[at] < 0) old->validShape.dimensionSize[at] = given->validShape.dimensionSize[at];
}

/* The rows of a picture's two planes, which must be the same. */
static int32_t take_rows(hbDNNTensorProperties *old, const struct hbrtUcpTensor *planes, const char *name) {
  const int64_t rows[] = {planes[0].properties.stride[1], planes[1].properties.stride[1]};
  for (int32_t at = 0; at < PLANES; at++)
    if (rows[at] <= 0 || rows[at] > INT32_MAX)
      return hbrt_ucp_refused(HB_DNN_INVALID_ARGUMENT,
                              "hbDNNInferV2: stride[1] of the input %s_%s is %lld; set it to the bytes of a row.", name,
                              at ? "uv" : "y", (long long)rows[at]);
  if (rows[0] != rows[1])
    return hbrt_ucp_refused(HB_DNN_INVALID_ARGUMENT,
                            "hbDNNInferV2: stride[1] is %lld for %s_y and %lld for %s_uv; both must be the same.",
                            (long long)rows[0], name, (long long)rows[1], name);
  old->alignedShape.dimensionSize[old->tensorLayout == HB_DNN_LAYOUT_NCHW ? 3 : 2] = (int32_t)rows[0];
  return 0;
}

/* Whether the given strides are these, along dimensions that have neighbors. */
static bool is_stride(const struct hbrtUcpProperties *given, const hbDNNTensorShape *shape, const int64_t *stride) {
  bool is_same = true;
  for (int32_t at = 0; at < shape->numDimensions; at++)
    is_same = is_same && (shape->dimensionSize[at] <= 1 || given->stride[at] == stride[at]);
  return is_same;
}

/* Strides of the padded array, of the dense one, or none at all. */
static int32_t take_strides(hbDNNTensorProperties *old, const struct hbrtUcpProperties *given, const char *name) {
  const hbDNNTensorShape *shape = &old->validShape;
  int64_t padded[HB_DNN_TENSOR_MAX_DIMENSIONS], none[HB_DNN_TENSOR_MAX_DIMENSIONS] = {0};
  int64_t dense[HB_DNN_TENSOR_MAX_DIMENSIONS];
  if (old->alignedByteSize < 0 || shape->numDimensions < 1) return 0;
  for (int32_t at = shape->numDimensions - 1; at >= 0; at--) {
    padded[at] = old->stride[at];
    dense[at] = at + 1 < shape->numDimensions ? dense[at + 1] * shape->dimensionSize[at + 1] : old->stride[at];
  }
  if (is_stride(given, shape, padded) || is_stride(given, shape, none)) return 0;
  if (!is_stride(given, shape, dense))
    return hbrt_ucp_refused(
        HB_DNN_INVALID_ARGUMENT,
        "hbDNNInferV2: the strides of the input %s are neither those that were reported nor those of the dense array.",
        name);
  old->alignedShape = *shape;
  return 0;
}

static int32_t take_inputs(struct inference *made, const struct hbrtUcpTensor *given) {
  int32_t count = 0, status = hbDNNGetInputCount(&count, made->model);
  if (status) return status;
  if (!(made->inputs = calloc((size_t)count + 1, sizeof *made->inputs))) return HB_DNN_OUT_OF_MEMORY;
  for (int32_t at = 0; at < count; at++, given++) {
    hbDNNTensor *tensor = &made->inputs[at];
    if ((status = hbDNNGetInputTensorProperties(&tensor->properties, made->model, at))) return status;
    const char *name;
    if ((status = hbDNNGetInputName(&name, made->model, at))) return status;
    tensor->sysMem[0] = old_block(&given->sysMem);
    if (!is_planes(&tensor->properties)) {
      if ((status = take_strides(&tensor->properties, &given->properties, name))) return status;
      take_shape(&tensor->properties, &given->properties);
      continue;
    }
    if ((status = take_rows(&tensor->properties, given, name))) return status;
    tensor->properties.tensorType = HB_DNN_IMG_TYPE_NV12_SEPARATE;
    given++;
    tensor->sysMem[1] = old_block(&given->sysMem);
  }
  return 0;
}

static int32_t take_outputs(struct inference *made, const struct hbrtUcpTensor *given) {
  int32_t status = hbDNNGetOutputCount(&made->output_count, made->model);
  if (status) return status;
  if (!(made->outputs = calloc((size_t)made->output_count + 1, sizeof *made->outputs))) return HB_DNN_OUT_OF_MEMORY;
  for (int32_t at = 0; at < made->output_count; at++) {
    hbDNNTensor *tensor = &made->outputs[at];
    if ((status = hbDNNGetOutputTensorProperties(&tensor->properties, made->model, at))) return status;
    tensor->sysMem[0] = old_block(&given[at].sysMem);
  }
  return 0;
}

static int32_t at_once(struct task *task);

static int32_t too_many(int32_t status) {
  return hbrt_ucp_refused(status, "%d tasks are alive; release them with hbUCPReleaseTask.", (int)MAX_TASKS);
}

API int32_t hbDNNInferV2(hbUCPTaskHandle_t *taskHandle, struct hbrtUcpTensor *output, const struct hbrtUcpTensor *input,
                         hbDNNHandle_t dnnHandle) {
  if (!output || !input)
    return hbrt_ucp_refused(HB_DNN_INVALID_ARGUMENT, "hbDNNInferV2: %s is NULL; pass an array of hbDNNTensor.",
                            output ? "input" : "output");
  bool is_new = !taskHandle || !*taskHandle;
  struct task *task = is_new ? new_task() : task_of(*taskHandle);
  if (!task) return is_new ? too_many(HB_DNN_TASK_NUM_EXCEED_LIMIT) : ASKED(hbDNNReleaseTask(*taskHandle));
  if (task->is_submitted || task->is_dsp)
    return hbrt_ucp_refused(HB_DNN_API_USE_ERROR,
                            "hbDNNInferV2: *taskHandle is a task %s; set it to NULL for a new task.",
                            task->is_dsp ? "of hbDSPRpcV2" : "that was already submitted");
  struct inference made = {.model = dnnHandle};
  int32_t status = ASKED(take_inputs(&made, input));
  if (!status) status = ASKED(take_outputs(&made, output));
  struct inference *grown = NULL;
  if (!status && !(grown = realloc(task->inferences, ((size_t)task->count + 1) * sizeof made)))
    status = HB_DNN_OUT_OF_MEMORY;
  if (status) {
    free(made.inputs), free(made.outputs);
    if (is_new) end_task(task);
    return status;
  }
  task->inferences = grown;
  task->inferences[task->count++] = made;
  if (!taskHandle) return ASKED(at_once(task));
  *taskHandle = handle_of(task);
  return 0;
}

API int32_t hbDSPRpcV2(hbUCPTaskHandle_t *taskHandle, hbUCPSysMem *input, hbUCPSysMem *output, int32_t rpcCmd) {
  if (taskHandle && *taskHandle)
    return hbrt_ucp_refused(HB_DSP_INVALID_ARGUMENT, "hbDSPRpcV2: *taskHandle is %p; set it to NULL for a new task.",
                            *taskHandle);
  struct task *task = new_task();
  if (!task) return too_many(HB_DSP_TASK_NUM_EXCEED_LIMIT);
  task->is_dsp = true;
  task->command = rpcCmd;
  if (input) task->blocks[0] = old_block(input);
  if (output) task->blocks[1] = old_block(output);
  if (!taskHandle) return ASKED(at_once(task));
  *taskHandle = handle_of(task);
  return 0;
}

int32_t hbrt_ucp_op(hbUCPTaskHandle_t *taskHandle, const void *param, size_t size, hbUCPSysMem *output, int32_t command) {
  hbUCPTaskHandle_t made = taskHandle ? *taskHandle : NULL;
  hbSysMem own = {0, NULL, 0};
  int32_t status = hbSysAllocMem(&own, (uint32_t)size);
  if (status) return status;
  memcpy(own.virAddr, param, size);
  hbUCPSysMem input = {own.phyAddr, own.virAddr, own.memSize};
  if ((status = hbDSPRpcV2(&made, &input, output, command))) {
    hbSysFreeMem(&own);
    return status;
  }
  task_of(made)->own = own;
  if (!taskHandle) return at_once(task_of(made));
  *taskHandle = made;
  return 0;
}

static void models_ended(hbDNNTaskHandle_t old, int32_t status, void *watched) {
  (void)old;
  pthread_mutex_lock(&lock);
  struct task task = *(struct task *)watched;
  ((struct task *)watched)->watched = NULL;
  pthread_mutex_unlock(&lock);
  task.callback(task.watched, status, task.userdata);
}

static void op_ended(hbDSPTask_t old, int32_t status, void *watched) { models_ended(old, status, watched); }

static int32_t watch(struct task *task) {
  if (!task->callback || task->watched) return 0;
  task->watched = handle_of(task);
  int32_t status = task->is_dsp ? hbDSPSetTaskDoneCb(task->dsp, op_ended, task)
                                : hbDNNSetTaskDoneCb(task->dnn, models_ended, task);
  if (status) task->watched = NULL;
  return status;
}

/* The cores of one kind, from bit `first` of the backends on; -1 if there are none of this kind. */
static int32_t cores(uint64_t backend, int first, int count, uint64_t any) {
  uint64_t mask = backend >> first & ((1u << count) - 1);
  return backend & any || backend == HB_UCP_CORE_ANY ? 0 : mask ? (int32_t)mask : -1;
}

static int32_t submit(struct task *task, const hbUCPSchedParam *how) {
  int32_t mask = task->is_dsp ? cores(how->backend, 8, 2, HB_UCP_DSP_CORE_ANY)
                              : cores(how->backend, 0, 4, HB_UCP_BPU_CORE_ANY);
  const char *kind = task->is_dsp ? "DSP" : "BPU";
  if (mask < 0)
    return hbrt_ucp_refused(task->is_dsp ? HB_DSP_INVALID_CORE : HB_DNN_INVALID_ARGUMENT,
                            "hbUCPSubmitTask: backend is 0x%llx, which names no %s core: use HB_UCP_%s_CORE_ANY.",
                            (unsigned long long)how->backend, kind, kind);
  if (task->is_dsp) {
    hbDSPRpcCtrlParam ctrl;
    HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&ctrl);
    ctrl.dspCoreId = mask;
    ctrl.rpcCmd = task->command, ctrl.priority = how->priority, ctrl.customId = how->customId;
    hbSysMem *blocks[] = {&task->blocks[0], &task->blocks[1]};
    return hbDSPRpc(&task->dsp, blocks[0]->phyAddr ? blocks[0] : NULL, blocks[1]->phyAddr ? blocks[1] : NULL, &ctrl);
  }
  hbDNNInferCtrlParam ctrl;
  HB_DNN_INITIALIZE_INFER_CTRL_PARAM(&ctrl);
  ctrl.bpuCoreId = mask;
  ctrl.priority = how->priority, ctrl.customId = how->customId;
  for (int32_t at = 0; at < task->count; at++) {
    struct inference *one = &task->inferences[at];
    ctrl.more = at + 1 < task->count;
    int32_t status = hbDNNInfer(&task->dnn, &one->outputs, one->inputs, one->model, &ctrl);
    if (status) {
      if (task->dnn) hbDNNReleaseTask(task->dnn);
      task->dnn = NULL;
      return status;
    }
  }
  return 0;
}

static int32_t submit_and_watch(struct task *task, const hbUCPSchedParam *how) {
  int32_t status = submit(task, how);
  if (status) return status;
  task->is_submitted = true;
  return watch(task);
}

static int32_t wait_for(struct task *task, int32_t timeout) {
  if (!task->is_dsp) return hbDNNWaitTaskDone(task->dnn, timeout);
  int32_t status = hbDSPWaitTaskDone(task->dsp, timeout);
  task->is_done = status != HB_DSP_TIMEOUT;
  return status;
}

static int32_t release(struct task *task) {
  int32_t status = 0;
  if (task->own.phyAddr && task->is_submitted && !task->is_done) /* the op may still read its block */
    status = hbDSPWaitTaskDone(task->dsp, 0);
  if (task->is_submitted) status = task->is_dsp ? hbDSPReleaseTask(task->dsp) : hbDNNReleaseTask(task->dnn);
  end_task(task);
  return status;
}

/* Submit, wait for and release a task for which the program gets no handle. */
static int32_t at_once(struct task *task) {
  hbUCPSchedParam how;
  HB_UCP_INITIALIZE_SCHED_PARAM(&how);
  int32_t status = submit_and_watch(task, &how);
  if (!status) status = wait_for(task, 0);
  release(task);
  return status;
}

API int32_t hbUCPSubmitTask(hbUCPTaskHandle_t taskHandle, hbUCPSchedParam *schedParam) {
  struct task *task = task_of(taskHandle);
  if (!task) return ASKED(hbDNNReleaseTask(taskHandle)); /* which rejects it, with a message */
  if (!schedParam)
    return hbrt_ucp_refused(HB_DNN_INVALID_ARGUMENT, "hbUCPSubmitTask: schedParam is NULL; pass an hbUCPSchedParam.");
  if (task->is_submitted)
    return hbrt_ucp_refused(HB_DNN_API_USE_ERROR, "hbUCPSubmitTask: the task was already submitted; create a new one.");
  return ASKED(submit_and_watch(task, schedParam));
}

API int32_t hbUCPWaitTaskDone(hbUCPTaskHandle_t taskHandle, int32_t timeout) {
  struct task *task = task_of(taskHandle);
  if (!task) return ASKED(hbDNNWaitTaskDone(taskHandle, timeout));
  if (!task->is_submitted)
    return hbrt_ucp_refused(HB_DNN_API_USE_ERROR,
                            "hbUCPWaitTaskDone: the task was not submitted; call hbUCPSubmitTask first.");
  return ASKED(wait_for(task, timeout));
}

API int32_t hbUCPReleaseTask(hbUCPTaskHandle_t taskHandle) {
  struct task *task = task_of(taskHandle);
  return task ? ASKED(release(task)) : ASKED(hbDNNReleaseTask(taskHandle));
}

API int32_t hbUCPSetTaskDoneCb(hbUCPTaskHandle_t taskHandle, hbUCPTaskDoneCb callback, void *userData) {
  struct task *task = task_of(taskHandle);
  if (!task) return ASKED(hbDNNReleaseTask(taskHandle));
  if (!callback)
    return hbrt_ucp_refused(HB_DNN_INVALID_ARGUMENT, "hbUCPSetTaskDoneCb: callback is NULL; pass a function.");
  task->callback = callback;
  task->userdata = userData;
  return task->is_submitted ? ASKED(watch(task)) : 0;
}

API int32_t hbDNNGetTaskOutputTensorProperties(struct hbrtUcpProperties *properties, hbUCPTaskHandle_t taskHandle,
                                               int32_t inferIndex, int32_t outputIndex) {
  struct task *task = task_of(taskHandle);
  if (!task) return ASKED(hbDNNReleaseTask(taskHandle));
  if (!properties || inferIndex < 0 || inferIndex >= task->count || outputIndex < 0 ||
      outputIndex >= task->inferences[inferIndex].output_count)
    return hbrt_ucp_refused(HB_DNN_INVALID_ARGUMENT,
                            "hbDNNGetTaskOutputTensorProperties: properties is NULL, or the task has no inference %d "
                            "with an output %d.",
                            inferIndex, outputIndex);
  const struct inference *one = &task->inferences[inferIndex];
  fill(properties, &one->outputs[outputIndex].properties, kept_of(one->model, OUTPUT, outputIndex));
  return 0;
}
