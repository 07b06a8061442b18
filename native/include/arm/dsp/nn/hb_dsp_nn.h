/**
 * Parameter structures of the packaged NN ops: what a program writes into the input block of hbDSPRpc.
 *
 * Addresses are physical. docs/nn-ops.md and docs/pointcloud.md have each op's rules and formulas.
 * A header of its own: the manual's listings declare hbDSPSoftmaxParam themselves.
 * Emulator: all but hbDSPSoftmaxParam is its choice.
 */
#ifndef HBRT_DSP_NN_HB_DSP_NN_H
#define HBRT_DSP_NN_HB_DSP_NN_H

#include <stdint.h>

/** quanti_type: as hbDNNQuantiType. */
#define QUANTI_SHIFT 1
#define QUANTI_SCALE 2
/** axis: one scale, zero point or shift for the whole tensor. */
#define HB_DSP_QUANTI_PER_TENSOR (-1)
/** Bits of flags. */
#define HB_DSP_QUANTI_ROUND_HALF_AWAY 1
#define HB_DSP_QUANTI_DDR_PATH 2
#define HB_DSP_QUANTI_ZERO_POINT_LAST 4
/** Steps of the point-cloud ops. */
#define POINTCLOUD_ENCODE_POINTS 1
#define POINTCLOUD_ENCODE_PILLARS 2
#define POINTCLOUD_TRANSPOSE 3
/** Bit of the point-cloud ops' flags. */
#define HB_DSP_POINTCLOUD_DDR_PATH 1

/** Input block of softmax (0x400), 16 bytes: data_size at 0, 4 bytes of padding, input at 8. */
typedef struct {
  int32_t data_size;
  uint64_t input;
} hbDSPSoftmaxParam;

/** Input block of softmax of many rows (0x405), 16 bytes: data_size at 0, rows at 4, input at 8. */
typedef struct {
  int32_t data_size;
  int32_t rows;
  uint64_t input;
} hbDSPSoftmaxRowsParam;

/** Input block of quantize (0x401): float32 at input to tensor_type in the output block. */
typedef struct {
  uint64_t input;
  uint64_t scale_data;
  uint64_t zero_point_data;
  uint64_t shift_data;
  int32_t shape[8];
  int32_t dimension_count;
  int32_t axis;
  int32_t quanti_type;
  int32_t tensor_type;
  float scale;
  int32_t zero_point;
  int32_t shift;
  int32_t flags;
} hbDSPQuantizeParam;

/** Input block of dequantize (0x402): tensor_type at input to float32 in the output block. */
typedef struct {
  uint64_t input;
  uint64_t scale_data;
  uint64_t zero_point_data;
  uint64_t shift_data;
  int32_t shape[8];
  int32_t dimension_count;
  int32_t axis;
  int32_t quanti_type;
  int32_t tensor_type;
  float scale;
  int32_t zero_point;
  int32_t shift;
  int32_t flags;
} hbDSPDequantizeParam;

/** Input block of CenterPoint's (0x403) and PointPillars' (0x404) pre-processing: 96 bytes, with padding at 92. */
typedef struct {
  uint64_t input;
  int32_t step;
  int32_t dims;
  int32_t count;
  int32_t first_voxel;
  int32_t voxel_count;
  int32_t max_voxels;
  int32_t max_points;
  float back;
  float front;
  float right;
  float left;
  float bottom;
  float top;
  float lower;
  float upper;
  float voxel_x;
  float voxel_y;
  float scale;
  int32_t grid_x;
  int32_t grid_y;
  int32_t flags;
} hbDSPPointCloudParam;

#endif
