/* Custom ops in RKNN models: the structures and calls of the public reference, in our own words.
 *
 * Source: RKNN C API Reference (2.3.2), https://github.com/airockchip/rknn-toolkit2
 * Emulator: numbers and lengths that the reference does not print.
 */
#ifndef _RKNN_CUSTOM_OP_H
#define _RKNN_CUSTOM_OP_H

#include "rknn_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RKNN_CUSTOM_OP_MAX_STR_LEN 64
#define RKNN_CUSTOM_OP_MAX_VALUE_LEN 32
#define RKNN_CSTOP_PLUGIN_PREFIX "librkcst_"
/* Put this before a plug-in's entry point: it exports the name even if names are hidden by default. */
#define RKNN_CUSTOM_OP_EXPORT __attribute__((visibility("default")))

/* Where an op's callbacks run. */
typedef enum {
  RKNN_TARGET_TYPE_CPU = 1,
  RKNN_TARGET_TYPE_GPU = 2, /* not emulated: the callbacks run on the CPU, and gpu_ctx is NULL */
  RKNN_TARGET_TYPE_MAX,
} rknn_target_type;

/* OpenCL's objects, which are NULL here. */
typedef struct {
  void *cl_context;
  void *cl_command_queue;
  void *cl_kernel;
} rknn_gpu_op_context;

typedef uint64_t rknn_custom_op_interal_context;

/* A node that the op computes; priv_data is for the program's use. */
typedef struct {
  rknn_target_type target;
  rknn_custom_op_interal_context internal_ctx;
  rknn_gpu_op_context gpu_ctx;
  void *priv_data;
} rknn_custom_op_context;

/* An input or output; its first byte is at (char *)mem.virt_addr + mem.offset. */
typedef struct {
  rknn_tensor_attr attr;
  rknn_tensor_mem mem;
} rknn_custom_op_tensor;

/* An attribute of a node; n_elems is 0 if the node does not set it. */
typedef struct {
  char name[RKNN_MAX_NAME_LEN];
  rknn_tensor_type dtype;
  uint32_t n_elems;
  void *data;
} rknn_custom_op_attr;

/* An op. A callback returns 0 or an error code. */
typedef struct {
  uint32_t version;
  rknn_target_type target;
  char op_type[RKNN_MAX_NAME_LEN];
  char cl_kernel_name[RKNN_MAX_NAME_LEN];
  char *cl_kernel_source;
  uint64_t cl_source_size;
  char cl_build_options[RKNN_MAX_NAME_LEN];
  int (*init)(rknn_custom_op_context *op_ctx, rknn_custom_op_tensor *inputs, uint32_t n_inputs,
              rknn_custom_op_tensor *outputs, uint32_t n_outputs);
  int (*prepare)(rknn_custom_op_context *op_ctx, rknn_custom_op_tensor *inputs, uint32_t n_inputs,
                 rknn_custom_op_tensor *outputs, uint32_t n_outputs);
  int (*compute)(rknn_custom_op_context *op_ctx, rknn_custom_op_tensor *inputs, uint32_t n_inputs,
                 rknn_custom_op_tensor *outputs, uint32_t n_outputs);
  int (*compute_native)(rknn_custom_op_context *op_ctx, rknn_custom_op_tensor *inputs, uint32_t n_inputs,
                        rknn_custom_op_tensor *outputs, uint32_t n_outputs);
  int (*destroy)(rknn_custom_op_context *op_ctx);
} rknn_custom_op;

/* The entry point of a plug-in, librkcst_NAME.so: one op per library. */
typedef rknn_custom_op *(*get_custom_op_func)(void);

int rknn_register_custom_ops(rknn_context ctx, rknn_custom_op op[], uint32_t custom_op_num);
void rknn_custom_op_get_op_attr(rknn_custom_op_context *op_ctx, const char *attr_name, rknn_custom_op_attr *op_attr);

#ifdef __cplusplus
}
#endif

#endif
