/**
 * Parameter structures of the packaged NN ops: what a program writes into the input block of hbDSPRpc.
 *
 * Addresses are physical. docs/nn-ops.md and docs/pointcloud.md have each op's rules and formulas.
 * This is a separate header because the manual's listings declare hbDSPSoftmaxParam themselves.
 * Emulator: everything except hbDSPSoftmaxParam.
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
  int32_t data_size; /* bytes of float32 input, 4 * count; the output block gets the same number of bytes */
  uint64_t input; /* physical address of the first value */
} hbDSPSoftmaxParam;

/** Input block of softmax over many rows (0x405), 16 bytes: data_size at 0, rows at 4, input at 8. */
typedef struct {
  int32_t data_size; /* bytes per float32 row, 4 * count */
  int32_t rows; /* number of rows; rows * data_size bytes are read, and the same number is written */
  uint64_t input; /* physical address of the first value; the rows are contiguous */
} hbDSPSoftmaxRowsParam;

/**
 * Input block of quantize (0x401), 96 bytes: converts float32 at input to tensor_type in the output block. With an
 * axis, `channels` is shape[axis], `inner` is the product of the dimensions after it, and element i of the row-major
 * tensor belongs to channel (i / inner) % channels.
 */
typedef struct {
  uint64_t input; /* physical address of the elements to convert, row-major */
  uint64_t scale_data; /* physical address of float32[channels]; read for SCALE with an axis */
  uint64_t zero_point_data; /* physical address of int32[channels]; read for SCALE with an axis; 0: every channel uses
                               zero_point */
  uint64_t shift_data; /* physical address of int32[channels]; read for SHIFT with an axis */
  int32_t shape[8]; /* dimensions; the first dimension_count of them are used */
  int32_t dimension_count; /* 1..8; the number of elements is the product of the dimensions and may be 0 */
  int32_t axis; /* dimension along which the arrays run, or HB_DSP_QUANTI_PER_TENSOR */
  int32_t quanti_type; /* QUANTI_SHIFT or QUANTI_SCALE */
  int32_t tensor_type; /* quantized type: 8 S8, 9 U8, 11 S16, 12 U16 or 14 S32 */
  float scale; /* for the whole tensor, finite and above 0 */
  int32_t zero_point; /* for the whole tensor, within the range of the quantized type */
  int32_t shift; /* for the whole tensor, 0..126 */
  int32_t flags; /* HB_DSP_QUANTI_* bits; all others must be 0 */
} hbDSPQuantizeParam;

/**
 * Input block of dequantize (0x402): converts tensor_type at input to float32 in the output block. Fields as in
 * hbDSPQuantizeParam.
 */
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

/** Input block of the pre-processing of CenterPoint (0x403) and PointPillars (0x404): 96 bytes, with padding at 92. */
typedef struct {
  uint64_t input; /* physical address of the step's input */
  int32_t step; /* POINTCLOUD_* step */
  int32_t dims; /* numbers per point, 4 or 5 */
  int32_t count; /* points at input, for ENCODE_POINTS; 0 is allowed */
  int32_t first_voxel; /* first pillar to convert, for the other steps */
  int32_t voxel_count; /* pillars to convert; all other places keep the output's contents */
  int32_t max_voxels; /* capacity of the buffers, in pillars */
  int32_t max_points; /* capacity of a pillar, in points */
  float back; /* range of x, meters: back <= x < front */
  float front;
  float right; /* range of y: right <= y < left */
  float left;
  float bottom; /* range of z: bottom <= z < top */
  float top;
  float lower; /* bounds by which the fourth number is scaled, lower to upper; it is not filtered */
  float upper;
  float voxel_x; /* size of a pillar, meters */
  float voxel_y;
  float scale; /* quantization scale, finite and above 0 */
  int32_t grid_x; /* cells along x */
  int32_t grid_y; /* cells along y */
  int32_t flags; /* HB_DSP_POINTCLOUD_* bits; all others must be 0 */
} hbDSPPointCloudParam;

#endif
