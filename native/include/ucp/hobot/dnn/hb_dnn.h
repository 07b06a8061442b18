/**
 * hbDNN*: models of the S series. This header's path selects its structures; those of dnn/hb_dnn.h are for earlier
 * boards. An NV12 picture takes two inputs, Y and UV, named NAME_y and NAME_uv.
 *
 * Every function returns 0, or a negative status of hb_dnn_status.h, unless stated otherwise.
 * Source: S100 OE documentation (3.5.0), BPU SDK API, https://toolchain.d-robotics.cc
 */
#ifndef HBRT_HOBOT_DNN_HB_DNN_H
#define HBRT_HOBOT_DNN_HB_DNN_H

#include "../hb_ucp.h"

#if defined(HBRT_DNN_HB_DNN_H) && !defined(HBRT_BOTH_GENERATIONS)
#error "Include dnn/hb_dnn.h (X3, J5, X5) or hobot/dnn/hb_dnn.h (S series), not both: their structures differ."
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HBRT_UCP_MAX_DIMENSIONS 10

#ifndef HBRT_BOTH_GENERATIONS /* used when compiling libhbrt.so itself */
#define hbrtUcpShape hbDNNTensorShape
#define hbrtUcpScale hbDNNQuantiScale
#define hbrtUcpProperties hbDNNTensorProperties
#define hbrtUcpTensor hbDNNTensor
#endif

/** Sizes of a tensor's dimensions; -1 if the data decides. */
struct hbrtUcpShape {
  int32_t dimensionSize[HBRT_UCP_MAX_DIMENSIONS];
  int32_t numDimensions;
};

/** Scales and zero points: real = (stored - zero point) * scale. */
struct hbrtUcpScale {
  int32_t scaleLen;
  float *scaleData;
  union {
    int32_t zeroPointLen;
    int32_t zeropointLen; /* the manual uses both spellings */
  };
  union {
    int32_t *zeroPointData;
    int32_t *zeropointData;
  };
};

#ifndef HBRT_BOTH_GENERATIONS
/** How stored numbers map to real ones. */
typedef enum { NONE, SCALE } hbDNNQuantiType;
#endif

/** Type, shape and memory layout of a tensor. A caller may change stride and tensorType, and sizes of -1. */
struct hbrtUcpProperties {
  struct hbrtUcpShape validShape;
  int32_t tensorType; /* hbDNNDataType */
  struct hbrtUcpScale scale;
  hbDNNQuantiType quantiType;
  int32_t quantizeAxis;
  int64_t alignedByteSize;
  int64_t stride[HBRT_UCP_MAX_DIMENSIONS]; /* bytes; -1 if the caller decides */
};

/** Memory and properties of a tensor. */
struct hbrtUcpTensor {
  hbUCPSysMem sysMem;
  struct hbrtUcpProperties properties;
};

#ifndef HBRT_BOTH_GENERATIONS
#define HB_DNN_TENSOR_MAX_DIMENSIONS HBRT_UCP_MAX_DIMENSIONS

/** Threads may share handles. */
typedef void *hbDNNPackedHandle_t;
typedef void *hbDNNHandle_t;

/** Types of tensors. */
typedef enum {
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
  HB_DNN_TENSOR_TYPE_BOOL8,
  HB_DNN_TENSOR_TYPE_MAX
} hbDNNDataType;

typedef struct hbrtUcpShape hbDNNTensorShape;
typedef struct hbrtUcpScale hbDNNQuantiScale;
typedef struct hbrtUcpProperties hbDNNTensorProperties;
typedef struct hbrtUcpTensor hbDNNTensor;

/** Version of the API and of the emulator. */
const char *hbDNNGetVersion(void);

/** Message for a status; valid for the process's lifetime. */
const char *hbDNNGetErrorDesc(int32_t errorCode);

/** Load models from files. Returns 0; HB_DNN_CAN_NOT_OPEN_FILE, _INVALID_MODEL, _INCOMPATIBLE_MODEL. */
int32_t hbDNNInitializeFromFiles(hbDNNPackedHandle_t *dnnPackedHandle, char const **modelFileNames,
                                 int32_t modelFileCount);

/** Load models from memory. Returns the same codes as hbDNNInitializeFromFiles, except those about files. */
int32_t hbDNNInitializeFromDDR(hbDNNPackedHandle_t *dnnPackedHandle, const void **modelData, int32_t *modelDataLengths,
                               int32_t modelDataCount);

/** Release models. Returns 0; HB_DNN_INVALID_PACKED_DNN_HANDLE; HB_DNN_MODEL_IS_RUNNING while a task uses one. */
int32_t hbDNNRelease(hbDNNPackedHandle_t dnnPackedHandle);

/** Names of the models, in runtime memory that is valid until hbDNNRelease. */
int32_t hbDNNGetModelNameList(char const ***modelNameList, int32_t *modelNameCount, hbDNNPackedHandle_t dnnPackedHandle);

/** Handle of a model, given its name. */
int32_t hbDNNGetModelHandle(hbDNNHandle_t *dnnHandle, hbDNNPackedHandle_t dnnPackedHandle, char const *modelName);

/** Number of outputs. */
int32_t hbDNNGetOutputCount(int32_t *outputCount, hbDNNHandle_t dnnHandle);

/** Name of an output, in runtime memory that is valid until hbDNNRelease. */
int32_t hbDNNGetOutputName(char const **name, hbDNNHandle_t dnnHandle, int32_t outputIndex);

/* Functions of earlier boards have the same names but other structures, so these have other names in the library. */
#define HBRT_UCP(name) __asm__("hbrt_ucp_" #name)
#else
#define HBRT_UCP(name)
#define hbDNNGetInputCount hbrt_ucp_hbDNNGetInputCount
#define hbDNNGetInputName hbrt_ucp_hbDNNGetInputName
#define hbDNNGetInputTensorProperties hbrt_ucp_hbDNNGetInputTensorProperties
#define hbDNNGetOutputTensorProperties hbrt_ucp_hbDNNGetOutputTensorProperties
#endif

/** Number of inputs; an NV12 picture counts as two. */
int32_t hbDNNGetInputCount(int32_t *inputCount, hbDNNHandle_t dnnHandle) HBRT_UCP(hbDNNGetInputCount);

/** Name of an input, in runtime memory. */
int32_t hbDNNGetInputName(char const **name, hbDNNHandle_t dnnHandle, int32_t inputIndex) HBRT_UCP(hbDNNGetInputName);

/** Type, shape and memory layout of an input; the arrays are in runtime memory. */
int32_t hbDNNGetInputTensorProperties(struct hbrtUcpProperties *properties, hbDNNHandle_t dnnHandle, int32_t inputIndex)
    HBRT_UCP(hbDNNGetInputTensorProperties);

/** Type, shape and memory layout of an output; the arrays are in runtime memory. */
int32_t hbDNNGetOutputTensorProperties(struct hbrtUcpProperties *properties, hbDNNHandle_t dnnHandle,
                                       int32_t outputIndex) HBRT_UCP(hbDNNGetOutputTensorProperties);

#ifdef HBRT_BOTH_GENERATIONS
#undef hbDNNGetInputCount
#undef hbDNNGetInputName
#undef hbDNNGetInputTensorProperties
#undef hbDNNGetOutputTensorProperties
#endif

/** Number of BPU cores that a model was compiled for: 1. */
int32_t hbDNNGetCompileBpuCoreNum(int32_t *num, hbDNNHandle_t dnnHandle);

/** Description of a model: empty. */
int32_t hbDNNGetModelDesc(char const **desc, uint32_t *size, int32_t *type, hbDNNHandle_t dnnHandle);

/** Description of an input: empty. */
int32_t hbDNNGetInputDesc(char const **desc, uint32_t *size, int32_t *type, hbDNNHandle_t dnnHandle, int32_t inputIndex);

/** Description of an output: empty. */
int32_t hbDNNGetOutputDesc(char const **desc, uint32_t *size, int32_t *type, hbDNNHandle_t dnnHandle,
                           int32_t outputIndex);

/**
 * Create a task with one inference, or add it to a task that has not been submitted; `taskHandle` NULL runs it
 * immediately. The tensors are arrays, read when the task is submitted. Returns 0; HB_DNN_INVALID_DNN_HANDLE;
 * HB_DNN_API_USE_ERROR.
 */
int32_t hbDNNInferV2(hbUCPTaskHandle_t *taskHandle, struct hbrtUcpTensor *output, struct hbrtUcpTensor const *input,
                     hbDNNHandle_t dnnHandle);

/**
 * Type, shape and memory layout of an output of the task's inference `inferIndex`; sizes that depend on the data are
 * those of the result.
 */
int32_t hbDNNGetTaskOutputTensorProperties(struct hbrtUcpProperties *properties, hbUCPTaskHandle_t taskHandle,
                                           int32_t inferIndex, int32_t outputIndex);

#ifdef __cplusplus
}
#endif

#endif
