/**
 * hbDNN*: models.
 *
 * Every function returns 0, or a negative status of hb_dnn_status.h, unless stated otherwise. Every function returns
 * HB_DNN_INVALID_ARGUMENT for NULL, for an index out of range, and for inconsistent arguments.
 * Source: BPU SDK API manual (J5 OE 1.1.77), 9.2; https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
 */
#ifndef HBRT_DNN_HB_DNN_H
#define HBRT_DNN_HB_DNN_H

#include <stdint.h>

#include "hb_dnn_status.h"
#include "hb_sys.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HB_DNN_VERSION_MAJOR 1U
#define HB_DNN_VERSION_MINOR 1U
#define HB_DNN_VERSION_PATCH 0U

#define HB_DNN_TENSOR_MAX_DIMENSIONS 8

/** Values of the variable HB_DNN_LOG_LEVEL (BPU SDK API manual). */
#define HB_DNN_LOG_NONE 0
#define HB_DNN_LOG_WARNING 3
#define HB_DNN_LOG_ERROR 4
#define HB_DNN_LOG_FATAL 5

/** Opaque handle of the models loaded by one call. Threads may share handles. */
typedef void *hbPackedDNNHandle_t;
/** Opaque handle of one model. */
typedef void *hbDNNHandle_t;
/** Opaque handle of a model task; NULL until hbDNNInfer fills it. */
typedef void *hbDNNTaskHandle_t;

/** Order of a tensor's dimensions. */
typedef enum { HB_DNN_LAYOUT_NHWC = 0, HB_DNN_LAYOUT_NCHW = 2, HB_DNN_LAYOUT_NONE = 255 } hbDNNTensorLayout;

/** Types of tensors: images, then numbers. */
typedef enum {
  HB_DNN_IMG_TYPE_Y,
  HB_DNN_IMG_TYPE_NV12,
  HB_DNN_IMG_TYPE_NV12_SEPARATE,
  HB_DNN_IMG_TYPE_YUV444,
  HB_DNN_IMG_TYPE_RGB,
  HB_DNN_IMG_TYPE_BGR,
  HB_DNN_TENSOR_TYPE_S4,
  HB_DNN_TENSOR_TYPE_U4,
  HB_DNN_TENSOR_TYPE_S8,
  HB_DNN_TENSOR_TYPE_U8,
  HB_DNN_TENSOR_TYPE_F16,
  HB_DNN_TENSOR_TYPE_S16,
  HB_DNN_TENSOR_TYPE_U16,
  HB_DNN_TENSOR_TYPE_F32,
  HB_DNN_TENSOR_TYPE_S32,
  HB_DNN_TENSOR_TYPE_U32,
  HB_DNN_TENSOR_TYPE_F64,
  HB_DNN_TENSOR_TYPE_S64,
  HB_DNN_TENSOR_TYPE_U64,
  HB_DNN_TENSOR_TYPE_MAX
} hbDNNDataType;

/** How stored numbers map to real ones. */
typedef enum { NONE, SHIFT, SCALE } hbDNNQuantiType;

/** Priorities of model tasks; larger first. */
typedef enum {
  HB_DNN_PRIORITY_LOWEST = 0,
  HB_DNN_PRIORITY_HIGHEST = 255,
  HB_DNN_PRIORITY_PREEMP = HB_DNN_PRIORITY_HIGHEST
} hbDNNTaskPriority;

/** The BPU cores that may run a task: bit i for core i, 0 for any. */
typedef enum { HB_BPU_CORE_ANY = 0, HB_BPU_CORE_0 = 1 << 0, HB_BPU_CORE_1 = 1 << 1 } hbBPUCore;

#ifndef HBRT_HB_DSP_CORE
#define HBRT_HB_DSP_CORE
/** Which core may run a task; bit i stands for core i, 0 for any. */
typedef enum { HB_DSP_CORE_ANY = 0, HB_DSP_CORE_0 = 1 << 0, HB_DSP_CORE_1 = 1 << 1 } hbDSPCore;
#endif

/** Interpolation of a resizer. */
typedef enum { HB_DNN_RESIZE_TYPE_BILINEAR = 0 } hbDNNResizeType;

/** Sizes of a tensor's dimensions (36 bytes). */
typedef struct hbDNNTensorShape {
  int32_t dimensionSize[HB_DNN_TENSOR_MAX_DIMENSIONS];
  int32_t numDimensions;
} hbDNNTensorShape;

/** Shifts: real = stored / 2^shift. */
typedef struct hbDNNQuantiShift {
  int32_t shiftLen;
  uint8_t *shiftData;
} hbDNNQuantiShift;

/** Scales and zero points: real = (stored - zero point) * scale. */
typedef struct hbDNNQuantiScale {
  int32_t scaleLen;
  float *scaleData;
  union { /* both spellings occur in the DNN API manual's text */
    int32_t zeroPointLen;
    int32_t zeropointLen;
  };
  union {
    int8_t *zeroPointData;
    int8_t *zeropointData;
  };
} hbDNNQuantiScale;

/** The memory layout of a tensor. A caller may change only alignedShape and tensorType. */
typedef struct hbDNNTensorProperties {
  hbDNNTensorShape validShape;
  hbDNNTensorShape alignedShape;
  int32_t tensorLayout; /* hbDNNTensorLayout */
  int32_t tensorType;   /* hbDNNDataType */
  hbDNNQuantiShift shift;
  hbDNNQuantiScale scale;
  hbDNNQuantiType quantiType;
  int32_t quantizeAxis;
  int32_t alignedByteSize;
  int32_t stride[HB_DNN_TENSOR_MAX_DIMENSIONS]; /* bytes */
} hbDNNTensorProperties;

/** Memory and properties of a tensor; NV12_SEPARATE uses sysMem[0] for Y and [1] for UV, all others sysMem[0]. */
typedef struct hbDNNTensor {
  hbSysMem sysMem[4];
  hbDNNTensorProperties properties;
} hbDNNTensor;

/** A region with inclusive corners: width = right - left + 1. */
typedef struct hbDNNRoi {
  int32_t left;
  int32_t top;
  int32_t right;
  int32_t bottom;
} hbDNNRoi;

/** How a model task is scheduled. */
typedef struct hbDNNInferCtrlParam {
  int32_t bpuCoreId; /* hbBPUCore */
  int32_t dspCoreId; /* hbDSPCore */
  int32_t priority;
  int32_t more; /* 1 if more inferences will be added to the task */
  int64_t customId;
  union { /* also in two spellings */
    int32_t reserved1;
    int32_t Reserved1;
  };
  union {
    int32_t reserved2;
    int32_t Reserved2;
  };
} hbDNNInferCtrlParam;

/** Set the manual's defaults: any core, priority LOWEST, no more inferences to come. */
#define HB_DNN_INITIALIZE_INFER_CTRL_PARAM(param) \
  do {                                            \
    (param)->bpuCoreId = HB_BPU_CORE_ANY;         \
    (param)->dspCoreId = HB_DSP_CORE_ANY;         \
    (param)->priority = HB_DNN_PRIORITY_LOWEST;   \
    (param)->more = 0;                            \
    (param)->customId = 0;                        \
    (param)->reserved1 = 0;                       \
    (param)->reserved2 = 0;                       \
  } while (0)

/** Called in a runtime thread when a task has ended. In Python, pass a plain function. */
typedef void (*hbDNNTaskDoneCb)(hbDNNTaskHandle_t task, int32_t status, void *userdata);

/** Version of the API and of the emulator. */
const char *hbDNNGetVersion(void);

/** Message for a status; valid for the process's lifetime. */
const char *hbDNNGetErrorDesc(int32_t errorCode);

/**
 * Load models from files.
 * Returns 0; HB_DNN_CAN_NOT_OPEN_FILE, _INVALID_MODEL, _INCOMPATIBLE_MODEL, _MODEL_NUMBER_EXCEED_LIMIT. If one file is
 * rejected, none is loaded.
 */
int32_t hbDNNInitializeFromFiles(hbPackedDNNHandle_t *packedDNNHandle, const char **modelFileNames,
                                 int32_t modelFileCount);

/** Load models from memory. Returns the same codes as hbDNNInitializeFromFiles, except those about files. */
int32_t hbDNNInitializeFromDDR(hbPackedDNNHandle_t *packedDNNHandle, const void **modelData, int32_t *modelDataLengths,
                               int32_t modelDataCount);

/** Release models. Returns 0; HB_DNN_INVALID_PACKED_DNN_HANDLE; HB_DNN_MODEL_IS_RUNNING while a task uses one. */
int32_t hbDNNRelease(hbPackedDNNHandle_t packedDNNHandle);

/**
 * Names of the models, in runtime memory that is valid until hbDNNRelease. Returns 0;
 * HB_DNN_INVALID_PACKED_DNN_HANDLE.
 */
int32_t hbDNNGetModelNameList(const char ***modelNameList, int32_t *modelNameCount,
                              hbPackedDNNHandle_t packedDNNHandle);

/** Handle of a model, given its name. Returns 0; HB_DNN_INVALID_PACKED_DNN_HANDLE; HB_DNN_INVALID_ARGUMENT. */
int32_t hbDNNGetModelHandle(hbDNNHandle_t *dnnHandle, hbPackedDNNHandle_t packedDNNHandle, const char *modelName);

/** Number of inputs. Returns 0; HB_DNN_INVALID_DNN_HANDLE. */
int32_t hbDNNGetInputCount(int32_t *inputCount, hbDNNHandle_t dnnHandle);

/** Number of outputs. Returns 0; HB_DNN_INVALID_DNN_HANDLE. */
int32_t hbDNNGetOutputCount(int32_t *outputCount, hbDNNHandle_t dnnHandle);

/** Name of an input, in runtime memory that is valid until hbDNNRelease. Returns 0; HB_DNN_INVALID_DNN_HANDLE. */
int32_t hbDNNGetInputName(const char **name, hbDNNHandle_t dnnHandle, int32_t inputIndex);

/** Name of an output, in runtime memory that is valid until hbDNNRelease. Returns 0; HB_DNN_INVALID_DNN_HANDLE. */
int32_t hbDNNGetOutputName(const char **name, hbDNNHandle_t dnnHandle, int32_t outputIndex);

/**
 * Type, shape and memory layout of an input; the arrays are in runtime memory. Returns 0;
 * HB_DNN_INVALID_DNN_HANDLE.
 */
int32_t hbDNNGetInputTensorProperties(hbDNNTensorProperties *properties, hbDNNHandle_t dnnHandle, int32_t inputIndex);

/**
 * Type, shape and memory layout of an output; the arrays are in runtime memory. Returns 0;
 * HB_DNN_INVALID_DNN_HANDLE.
 */
int32_t hbDNNGetOutputTensorProperties(hbDNNTensorProperties *properties, hbDNNHandle_t dnnHandle, int32_t outputIndex);

/**
 * Submit one inference. *taskHandle is NULL for a new task, or a task that accepts more inferences. *output is an
 * array. Returns 0; HB_DNN_INVALID_DNN_HANDLE; HB_DNN_API_USE_ERROR: *taskHandle is not NULL and accepts no more
 * inferences; HB_DNN_TASK_NUM_EXCEED_LIMIT: 32 tasks are alive; HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT.
 */
int32_t hbDNNInfer(hbDNNTaskHandle_t *taskHandle, hbDNNTensor **output, const hbDNNTensor *input,
                   hbDNNHandle_t dnnHandle, hbDNNInferCtrlParam *inferCtrlParam);

/** Submit inferences on regions of images, for models with resizer inputs. Returns the same codes as hbDNNInfer. */
int32_t hbDNNRoiInfer(hbDNNTaskHandle_t *taskHandle, hbDNNTensor **output, const hbDNNTensor *input, hbDNNRoi *rois,
                      int32_t roiCount, hbDNNHandle_t dnnHandle, hbDNNInferCtrlParam *inferCtrlParam);

/**
 * Wait for a task. `timeout` is in milliseconds; <= 0 waits forever.
 * Returns 0; HB_DNN_TIMEOUT, and the task keeps running; HB_DNN_RUN_TASK_FAILED; HB_DNN_INVALID_TASK_HANDLE;
 * HB_DNN_API_USE_ERROR: the task still expects more inferences.
 */
int32_t hbDNNWaitTaskDone(hbDNNTaskHandle_t taskHandle, int32_t timeout);

/**
 * Release a task; call this exactly once per task. Returns 0; HB_DNN_INVALID_TASK_HANDLE. Its tensors are not written
 * to afterwards.
 */
int32_t hbDNNReleaseTask(hbDNNTaskHandle_t taskHandle);

/**
 * Have `callback(task, status, userdata)` called once when the task has ended; a later call replaces the callback.
 * Returns 0; HB_DNN_INVALID_TASK_HANDLE; HB_DNN_INVALID_ARGUMENT if the callback is NULL.
 */
int32_t hbDNNSetTaskDoneCb(hbDNNTaskHandle_t taskHandle, hbDNNTaskDoneCb callback, void *userdata);

#ifdef __cplusplus
}
#endif

#endif
