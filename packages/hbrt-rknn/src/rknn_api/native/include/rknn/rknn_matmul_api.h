/* Matrix products on the NPU: names, structures and calls of the public reference, in our own words.
 *
 * Source: RKNN C API Reference (2.3.2), https://github.com/airockchip/rknn-toolkit2
 * Emulator: the fields of the structures, and numbers that the reference does not print. tools/abi.py generates
 * rknn_api/types.py from it.
 */
#ifndef _RKNN_MATMUL_API_H
#define _RKNN_MATMUL_API_H

#include "rknn_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef rknn_context rknn_matmul_ctx;

/* Types of A, B and C. */
typedef enum {
  RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32 = 1,
  RKNN_INT8_MM_INT8_TO_INT32 = 2,
  RKNN_INT8_MM_INT8_TO_INT8 = 3,
  RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16 = 4,
  RKNN_FLOAT16_MM_INT8_TO_FLOAT32 = 5,
  RKNN_FLOAT16_MM_INT8_TO_FLOAT16 = 6,
  RKNN_FLOAT16_MM_INT4_TO_FLOAT32 = 7,
  RKNN_FLOAT16_MM_INT4_TO_FLOAT16 = 8,
  RKNN_INT8_MM_INT8_TO_FLOAT32 = 9,
  RKNN_INT4_MM_INT4_TO_INT16 = 10,
  RKNN_INT8_MM_INT4_TO_INT32 = 11,
  RKNN_FLOAT16_MM_INT4_TO_BFLOAT16 = 12,
  RKNN_INT8_MM_INT4_TO_FLOAT16 = 15,
} rknn_matmul_type;

/* How the numbers of B are quantized: one scale for all, one per column, or one for group_size rows of a column. */
typedef enum {
  RKNN_QUANT_TYPE_PER_LAYER_SYM = 0,
  RKNN_QUANT_TYPE_PER_LAYER_ASYM = 1,
  RKNN_QUANT_TYPE_PER_CHANNEL_SYM = 2,
  RKNN_QUANT_TYPE_PER_CHANNEL_ASYM = 3,
  RKNN_QUANT_TYPE_PER_GROUP_SYM = 4,
  RKNN_QUANT_TYPE_PER_GROUP_ASYM = 5,
} rknn_matmul_quant_type;

/* A matrix's layout in memory: row by row, in the chip's tiles, or with B transposed. */
typedef enum {
  RKNN_MM_LAYOUT_NORM = 0,
  RKNN_MM_LAYOUT_NATIVE = 1,
  RKNN_MM_LAYOUT_TP_NORM = 2,
} rknn_matmul_layout;

/* The name of a type, as printed in program logs. */
static inline const char *get_matmul_type_string(rknn_matmul_type type) {
  switch (type) {
#define RKNN_MATMUL_NAME(name) \
  case name:                   \
    return #name
    RKNN_MATMUL_NAME(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32);
    RKNN_MATMUL_NAME(RKNN_INT8_MM_INT8_TO_INT32);
    RKNN_MATMUL_NAME(RKNN_INT8_MM_INT8_TO_INT8);
    RKNN_MATMUL_NAME(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16);
    RKNN_MATMUL_NAME(RKNN_FLOAT16_MM_INT8_TO_FLOAT32);
    RKNN_MATMUL_NAME(RKNN_FLOAT16_MM_INT8_TO_FLOAT16);
    RKNN_MATMUL_NAME(RKNN_FLOAT16_MM_INT4_TO_FLOAT32);
    RKNN_MATMUL_NAME(RKNN_FLOAT16_MM_INT4_TO_FLOAT16);
    RKNN_MATMUL_NAME(RKNN_INT8_MM_INT8_TO_FLOAT32);
    RKNN_MATMUL_NAME(RKNN_INT4_MM_INT4_TO_INT16);
    RKNN_MATMUL_NAME(RKNN_INT8_MM_INT4_TO_INT32);
    RKNN_MATMUL_NAME(RKNN_FLOAT16_MM_INT4_TO_BFLOAT16);
    RKNN_MATMUL_NAME(RKNN_INT8_MM_INT4_TO_FLOAT16);
#undef RKNN_MATMUL_NAME
  }
  return "UNKNOW";
}

/* C (M by N) = A (M by K) times B (K by N); the chip determines the multiples for K and N. */
typedef struct {
  int32_t M;
  int32_t K;
  int32_t N;
} rknn_matmul_shape;

/* A product: layouts are rknn_matmul_layout, quantizations rknn_matmul_quant_type; 0 is the default. */
typedef struct {
  int32_t M;
  int32_t K;
  int32_t N;
  rknn_matmul_type type;
  int16_t B_layout;
  int16_t B_quant_type;
  int16_t AC_layout;
  int16_t AC_quant_type;
  int32_t iommu_domain_id;
  int16_t group_size;
  int8_t reserved[34];
} rknn_matmul_info;

/* A matrix of a product: its dimensions in memory. */
typedef struct {
  char name[RKNN_MAX_NAME_LEN];
  uint32_t n_dims;
  uint32_t dims[RKNN_MAX_DIMS];
  uint32_t size;
  rknn_tensor_type type;
} rknn_matmul_tensor_attr;

/* The matrices of a product. */
typedef struct {
  rknn_matmul_tensor_attr A;
  rknn_matmul_tensor_attr B;
  rknn_matmul_tensor_attr C;
} rknn_matmul_io_attr;

/* Scales and zero points of the matrix given by name: a single one, or one per column. */
typedef struct {
  char name[RKNN_MAX_NAME_LEN];
  float *scale;
  int32_t scale_len;
  int32_t *zp;
  int32_t zp_len;
} rknn_quant_params;

int rknn_matmul_create(rknn_matmul_ctx *ctx, rknn_matmul_info *info, rknn_matmul_io_attr *io_attr);
int rknn_matmul_create_dynamic_shape(rknn_matmul_ctx *ctx, rknn_matmul_info *info, int shape_num,
                                     rknn_matmul_shape dynamic_shapes[], rknn_matmul_io_attr io_attrs[]);
int rknn_matmul_set_dynamic_shape(rknn_matmul_ctx ctx, rknn_matmul_shape *shape);
int rknn_matmul_set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem *mem, rknn_matmul_tensor_attr *attr);
int rknn_matmul_set_core_mask(rknn_matmul_ctx ctx, rknn_core_mask core_mask);
int rknn_matmul_set_quant_params(rknn_matmul_ctx ctx, rknn_quant_params *params);
int rknn_matmul_get_quant_params(rknn_matmul_ctx ctx, rknn_quant_params *params, float *scale);
int rknn_matmul_run(rknn_matmul_ctx ctx);
int rknn_matmul_destroy(rknn_matmul_ctx ctx);
int rknn_B_normal_layout_to_native_layout(void *B_input, void *B_output, int K, int N, rknn_matmul_info *info);

#ifdef __cplusplus
}
#endif

#endif
