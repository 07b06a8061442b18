/* A model with one picture as its input, of RDK boards in C: libspcdev, on hbDNN.
 *
 * A function returns 0, or -1. A program sets output_tensor before it predicts.
 *
 * Source: RDK documentation, C multimedia interface, BPU, https://github.com/HorizonRDK/rdk_x3_doc; structures and numbers
 * as https://github.com/D-Robotics/x5-hobot-spdev has them (Apache 2.0).
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

/* What a program scales boxes by. */
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

/* Load a file's first model; NULL where that fails. */
bpu_module *sp_init_bpu_module(const char *model_file_name);
int32_t sp_release_bpu_module(bpu_module *bpu_handle);
/* Allocate memory for as many output tensors as the model has, with their properties. */
int32_t sp_init_bpu_tensors(bpu_module *bpu_handle, hbDNNTensor *output_tensors);
int32_t sp_deinit_bpu_tensor(hbDNNTensor *tensor, int32_t len);
/* Run on a picture of the input's size, without padding, and wait. */
int32_t sp_bpu_start_predict(bpu_module *bpu_handle, char *addr);

#ifdef __cplusplus
}
#endif

#endif
