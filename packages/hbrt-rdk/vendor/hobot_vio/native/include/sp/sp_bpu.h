/* A model with one picture as its input, for RDK boards in C: libspcdev, built on hbDNN.
 *
 * Functions return 0, or -1. Set output_tensor before predicting.
 *
 * Source: RDK documentation, C multimedia interface, BPU, https://github.com/HorizonRDK/rdk_x3_doc; structures and
 * numbers as in https://github.com/D-Robotics/x5-hobot-spdev (Apache 2.0).
 */
#ifndef HBRT_SP_BPU_H
#define HBRT_SP_BPU_H

#include <stdint.h>

#include "dnn/hb_dnn.h"

#define SP_PREDICT_TYPE_YOLOV5 1
#define SP_PREDICT_TYPE_MOBILENET 2
#define SP_PREDICT_TYPE_FCOS 3

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes used to scale boxes. */
typedef struct {
  int32_t m_model_w;
  int32_t m_model_h;
  int32_t m_ori_width;
  int32_t m_ori_height;
} bpu_image_info_t;

typedef struct {
  float xmin;
  float ymin;
  float xmax;
  float ymax;
  int32_t id;
  float score;
} classfiy_result;

typedef struct {
  int32_t m_alog_type;
  hbPackedDNNHandle_t m_packed_dnn_handle;
  hbDNNHandle_t m_dnn_handle;
  hbDNNTensor input_tensor;
  hbDNNTensor *output_tensor;
} bpu_module;

/* Load a file's first model; NULL on failure. */
bpu_module *sp_init_bpu_module(const char *model_file_name);
int32_t sp_release_bpu_module(bpu_module *bpu_handle);
/* Allocate memory for all of the model's output tensors, and set their properties. */
int32_t sp_init_bpu_tensors(bpu_module *bpu_handle, hbDNNTensor *output_tensors);
int32_t sp_deinit_bpu_tensor(hbDNNTensor *tensor, int32_t len);
/* Run on a picture of the input's size, without padding, and wait. */
int32_t sp_bpu_start_predict(bpu_module *bpu_handle, char *addr);

#ifdef __cplusplus
}
#endif

#endif
