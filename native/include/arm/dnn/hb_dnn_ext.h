/**
 * hbDNNResize: a standalone resizer from the previous chip (X3), superseded by hbDNNRoiInfer. Also hbDNNGetInputSource.
 *
 * Source: RDK DNN API manual (rdk_doc), 4.2; https://d-robotics.github.io/rdk_doc/en/Algorithm_Application/cdev_dnn_api
 * hbDNNGetInputSource: as hobot_dnn calls it, https://github.com/HorizonRDK/hobot_dnn
 */
#ifndef HBRT_DNN_HB_DNN_EXT_H
#define HBRT_DNN_HB_DNN_EXT_H

#include "hb_dnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The source of an input: memory, regions of an image (hbDNNRoiInfer), or a whole image. Emulator: the numbers. */
typedef enum {
  HB_DNN_INPUT_FROM_DDR = 0,
  HB_DNN_INPUT_FROM_RESIZER = 1,
  HB_DNN_INPUT_FROM_PYRAMID = 2
} hbDNNInputSource;

/** Get what fills an input: an hbDNNInputSource. Returns 0; HB_DNN_INVALID_DNN_HANDLE. */
int32_t hbDNNGetInputSource(int32_t *inputSource, hbDNNHandle_t dnnHandle, int32_t inputIndex);

/** How a resize task is scheduled. */
typedef struct hbDNNResizeCtrlParam {
  int32_t bpuCoreId; /* hbBPUCore */
  int32_t priority;
  hbDNNResizeType resizeType;
  int32_t reserved1;
  int32_t reserved2;
  int32_t reserved3;
  int32_t reserved4;
} hbDNNResizeCtrlParam;

/** Set the manual's defaults: any BPU core, bilinear, priority LOWEST. */
#define HB_DNN_INITIALIZE_RESIZE_CTRL_PARAM(param)     \
  do {                                                 \
    (param)->bpuCoreId = HB_BPU_CORE_ANY;              \
    (param)->priority = HB_DNN_PRIORITY_LOWEST;        \
    (param)->resizeType = HB_DNN_RESIZE_TYPE_BILINEAR; \
    (param)->reserved1 = 0;                            \
    (param)->reserved2 = 0;                            \
    (param)->reserved3 = 0;                            \
    (param)->reserved4 = 0;                            \
  } while (0)

/**
 * Submit one resize of a region of an image; `roi` NULL takes the whole image.
 * Returns 0; HB_DNN_INVALID_ARGUMENT, with the violated rule; HB_DNN_TASK_NUM_EXCEED_LIMIT: 32 tasks are alive.
 */
int32_t hbDNNResize(hbDNNTaskHandle_t *taskHandle, hbDNNTensor *output, const hbDNNTensor *input, const hbDNNRoi *roi,
                    hbDNNResizeCtrlParam *resizeCtrlParam);

#ifdef __cplusplus
}
#endif

#endif
