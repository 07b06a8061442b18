/* The RKNN runtime on hbrt's board: names, structures and calls of its public reference, in our own words.
 *
 * Source: RKNN C API Reference (2.3.2), https://github.com/airockchip/rknn-toolkit2
 * Emulator: numbers that the reference does not print. The include guard is
 * the vendor's, so a program's own copy of the header replaces this file.
 */
#ifndef _RKNN_API_H
#define _RKNN_API_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RKNN_MAX_DIMS 16
#define RKNN_MAX_NUM_CHANNEL 15
#define RKNN_MAX_NAME_LEN 256
#define RKNN_MAX_DYNAMIC_SHAPE_NUM 512

/* What a call returns. */
#define RKNN_SUCC 0
#define RKNN_ERR_FAIL (-1)
#define RKNN_ERR_TIMEOUT (-2)
#define RKNN_ERR_DEVICE_UNAVAILABLE (-3)
#define RKNN_ERR_MALLOC_FAIL (-4)
#define RKNN_ERR_PARAM_INVALID (-5)
#define RKNN_ERR_MODEL_INVALID (-6)
#define RKNN_ERR_CTX_INVALID (-7)
#define RKNN_ERR_INPUT_INVALID (-8)
#define RKNN_ERR_OUTPUT_INVALID (-9)
#define RKNN_ERR_DEVICE_UNMATCH (-10)
#define RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL (-11)
#define RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION (-12)
#define RKNN_ERR_TARGET_PLATFORM_UNMATCH (-13)
#define RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE (-14)

/* Flags of rknn_init; the last one belongs to rknn_create_mem2. */
#define RKNN_FLAG_PRIOR_HIGH 0x0
#define RKNN_FLAG_PRIOR_MEDIUM 0x1
#define RKNN_FLAG_PRIOR_LOW 0x2
#define RKNN_FLAG_ASYNC_MASK 0x4
#define RKNN_FLAG_COLLECT_PERF_MASK 0x8
#define RKNN_FLAG_MEM_ALLOC_OUTSIDE 0x10
#define RKNN_FLAG_SHARE_WEIGHT_MEM 0x20
#define RKNN_FLAG_FENCE_IN_OUTSIDE 0x40
#define RKNN_FLAG_FENCE_OUT_OUTSIDE 0x80
#define RKNN_FLAG_COLLECT_MODEL_INFO_ONLY 0x100
#define RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE 0x200
#define RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU 0x400
#define RKNN_FLAG_ENABLE_SRAM 0x800
#define RKNN_FLAG_SHARE_SRAM 0x1000
#define RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY 0x2000
#define RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE 0x4000
#define RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE 0x8000
#define RKNN_FLAG_MODEL_BUFFER_ZERO_COPY 0x10000
#define RKNN_MEM_FLAG_ALLOC_NO_CONTEXT 0x20000

/* The commands of rknn_query. */
typedef enum {
  RKNN_QUERY_IN_OUT_NUM = 0,
  RKNN_QUERY_INPUT_ATTR = 1,
  RKNN_QUERY_OUTPUT_ATTR = 2,
  RKNN_QUERY_PERF_DETAIL = 3,
  RKNN_QUERY_PERF_RUN = 4,
  RKNN_QUERY_SDK_VERSION = 5,
  RKNN_QUERY_MEM_SIZE = 6,
  RKNN_QUERY_CUSTOM_STRING = 7,
  RKNN_QUERY_NATIVE_INPUT_ATTR = 8,
  RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR = 8,
  RKNN_QUERY_NATIVE_OUTPUT_ATTR = 9,
  RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR = 9,
  RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR = 10,
  RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR = 11,
  RKNN_QUERY_DEVICE_MEM_INFO = 12,
  RKNN_QUERY_INPUT_DYNAMIC_RANGE = 13,
  RKNN_QUERY_CURRENT_INPUT_ATTR = 14,
  RKNN_QUERY_CURRENT_OUTPUT_ATTR = 15,
  RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR = 16,
  RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR = 17,
  RKNN_QUERY_CMD_MAX = 18,
} rknn_query_cmd;

/* Order of a tensor's dimensions. */
typedef enum {
  RKNN_TENSOR_NCHW = 0,
  RKNN_TENSOR_NHWC = 1,
  RKNN_TENSOR_NC1HWC2 = 2,
  RKNN_TENSOR_UNDEFINED = 3,
  RKNN_TENSOR_FORMAT_MAX = 4,
} rknn_tensor_format;

/* Types of elements. */
typedef enum {
  RKNN_TENSOR_FLOAT32 = 0,
  RKNN_TENSOR_FLOAT16 = 1,
  RKNN_TENSOR_INT8 = 2,
  RKNN_TENSOR_UINT8 = 3,
  RKNN_TENSOR_INT16 = 4,
  RKNN_TENSOR_UINT16 = 5,
  RKNN_TENSOR_INT32 = 6,
  RKNN_TENSOR_UINT32 = 7,
  RKNN_TENSOR_INT64 = 8,
  RKNN_TENSOR_BOOL = 9,
  RKNN_TENSOR_INT4 = 10,
  RKNN_TENSOR_BFLOAT16 = 11,
  RKNN_TENSOR_TYPE_MAX = 12,
} rknn_tensor_type;

/* How stored numbers map to real ones. */
typedef enum {
  RKNN_TENSOR_QNT_NONE = 0,
  RKNN_TENSOR_QNT_DFP = 1,
  RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC = 2,
  RKNN_TENSOR_QNT_MAX = 3,
} rknn_tensor_qnt_type;

/* Names of a type, a quantization and a format, as printed in program logs. */
static inline const char *get_type_string(rknn_tensor_type type) {
  static const char *const names[] = {"FP32",  "FP16",   "INT8",  "UINT8", "INT16", "UINT16",
                                      "INT32", "UINT32", "INT64", "BOOL",  "INT4",  "BF16"};
  return (unsigned)type < RKNN_TENSOR_TYPE_MAX ? names[type] : "UNKNOW";
}

static inline const char *get_qnt_type_string(rknn_tensor_qnt_type type) {
  static const char *const names[] = {"NONE", "DFP", "AFFINE"};
  return (unsigned)type < RKNN_TENSOR_QNT_MAX ? names[type] : "UNKNOW";
}

static inline const char *get_format_string(rknn_tensor_format fmt) {
  static const char *const names[] = {"NCHW", "NHWC", "NC1HWC2", "UNDEFINED"};
  return (unsigned)fmt < RKNN_TENSOR_FORMAT_MAX ? names[fmt] : "UNKNOW";
}

/* NPU cores that a context may use. */
typedef enum {
  RKNN_NPU_CORE_AUTO = 0,
  RKNN_NPU_CORE_0 = 1,
  RKNN_NPU_CORE_1 = 2,
  RKNN_NPU_CORE_2 = 4,
  RKNN_NPU_CORE_0_1 = 3,
  RKNN_NPU_CORE_0_1_2 = 7,
  RKNN_NPU_CORE_ALL = 0xffff,
  RKNN_NPU_CORE_UNDEFINED = 0x10000,
} rknn_core_mask;

/* Flags of rknn_create_mem2. */
typedef enum {
  RKNN_FLAG_MEMORY_FLAGS_DEFAULT = 0,
  RKNN_FLAG_MEMORY_CACHEABLE = 1,
  RKNN_FLAG_MEMORY_NON_CACHEABLE = 2,
  RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM = 4,
} rknn_mem_alloc_flags;

/* Origin of memory. */
typedef enum {
  RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE = 1,
  RKNN_TENSOR_MEMORY_FLAGS_FROM_FD = 2,
  RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS = 3,
  RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN = 4,
} rknn_tensor_mem_flags;

/* Direction of a cache operation. */
typedef enum {
  RKNN_MEMORY_SYNC_TO_DEVICE = 1,
  RKNN_MEMORY_SYNC_FROM_DEVICE = 2,
  RKNN_MEMORY_SYNC_BIDIRECTIONAL = 3,
} rknn_mem_sync_mode;

typedef uint64_t rknn_context;

/* How many inputs and outputs a model has. */
typedef struct {
  uint32_t n_input;
  uint32_t n_output;
} rknn_input_output_num;

/* A tensor: the caller sets index, rknn_query fills in the rest. Sizes in bytes, strides in pixels. */
typedef struct {
  uint32_t index;
  uint32_t n_dims;
  uint32_t dims[RKNN_MAX_DIMS];
  char name[RKNN_MAX_NAME_LEN];
  uint32_t n_elems;
  uint32_t size;
  rknn_tensor_format fmt;
  rknn_tensor_type type;
  rknn_tensor_qnt_type qnt_type;
  int8_t fl;
  int32_t zp;
  float scale;
  uint32_t w_stride;
  uint32_t size_with_stride;
  uint8_t pass_through;
  uint32_t h_stride;
} rknn_tensor_attr;

/* The possible shapes of an input. */
typedef struct {
  uint32_t index;
  uint32_t shape_number;
  rknn_tensor_format fmt;
  char name[RKNN_MAX_NAME_LEN];
  uint32_t dyn_range[RKNN_MAX_DYNAMIC_SHAPE_NUM][RKNN_MAX_DIMS];
  uint32_t n_dims;
} rknn_input_range;

/* A run's performance table as text: address and length. */
typedef struct {
  char *perf_data;
  uint64_t data_len;
} rknn_perf_detail;

/* Duration of the last run, in microseconds of this machine. */
typedef struct {
  int64_t run_duration;
} rknn_perf_run;

/* Versions. */
typedef struct {
  char api_version[256];
  char drv_version[256];
} rknn_sdk_version;

/* The memory needed by a model, in bytes. */
typedef struct {
  uint32_t total_weight_size;
  uint32_t total_internal_size;
  uint64_t total_dma_allocated_size;
  uint32_t total_sram_size;
  uint32_t free_sram_size;
  uint32_t reserved[10];
} rknn_mem_size;

/* The text of the model's configuration. */
typedef struct {
  char string[1024];
} rknn_custom_string;

/* Board memory: address in this process, physical address, descriptor or -1, size in bytes. */
typedef struct {
  void *virt_addr;
  uint64_t phys_addr;
  int32_t fd;
  int32_t offset;
  uint32_t size;
  uint32_t flags;
  void *priv_data;
} rknn_tensor_mem;

/* An input of the general API; buf is an address, such as array.ctypes.data in Python. */
typedef struct {
  uint32_t index;
  void *buf;
  uint32_t size;
  uint8_t pass_through;
  rknn_tensor_type type;
  rknn_tensor_format fmt;
} rknn_input;

/* An output of the general API. */
typedef struct {
  uint8_t want_float;
  uint8_t is_prealloc;
  uint32_t index;
  void *buf;
  uint32_t size;
} rknn_output;

/* The extended arguments of rknn_init. */
typedef struct {
  rknn_context ctx;
  int32_t real_model_offset;
  uint32_t real_model_size;
  int32_t model_buffer_fd;
  uint32_t model_buffer_flags;
  uint8_t reserved[112];
} rknn_init_extend;

/* Arguments of rknn_run. */
typedef struct {
  uint64_t frame_id;
  int32_t non_block;
  int32_t timeout_ms;
  int32_t fence_fd;
} rknn_run_extend;

/* An output for rknn_outputs_get. */
typedef struct {
  uint64_t frame_id;
} rknn_output_extend;

/* Each returns a code; if it is not RKNN_SUCC, a message on standard error gives the reason. Functions that return
 * memory return NULL on failure. */
int rknn_init(rknn_context *context, void *model, uint32_t size, uint32_t flag, rknn_init_extend *extend);
int rknn_dup_context(rknn_context *context_in, rknn_context *context_out);
int rknn_destroy(rknn_context context);
int rknn_query(rknn_context context, rknn_query_cmd cmd, void *info, uint32_t size);
int rknn_inputs_set(rknn_context context, uint32_t n_inputs, rknn_input inputs[]);
int rknn_set_batch_core_num(rknn_context context, int core_num);
int rknn_set_core_mask(rknn_context context, rknn_core_mask core_mask);
int rknn_run(rknn_context context, rknn_run_extend *extend);
int rknn_wait(rknn_context context, rknn_run_extend *extend);
int rknn_outputs_get(rknn_context context, uint32_t n_outputs, rknn_output outputs[], rknn_output_extend *extend);
int rknn_outputs_release(rknn_context context, uint32_t n_outputs, rknn_output outputs[]);
rknn_tensor_mem *rknn_create_mem_from_phys(rknn_context context, uint64_t phys_addr, void *virt_addr, uint32_t size);
rknn_tensor_mem *rknn_create_mem_from_mb_blk(rknn_context context, void *mb_blk, int32_t offset);
rknn_tensor_mem *rknn_create_mem_from_fd(rknn_context context, int32_t fd, void *virt_addr, uint32_t size, int32_t offset);
rknn_tensor_mem *rknn_create_mem(rknn_context context, uint32_t size);
rknn_tensor_mem *rknn_create_mem2(rknn_context context, uint64_t size, uint64_t alloc_flags);
int rknn_destroy_mem(rknn_context context, rknn_tensor_mem *mem);
int rknn_set_weight_mem(rknn_context context, rknn_tensor_mem *mem);
int rknn_set_internal_mem(rknn_context context, rknn_tensor_mem *mem);
int rknn_set_io_mem(rknn_context context, rknn_tensor_mem *mem, rknn_tensor_attr *attr);
int rknn_set_input_shape(rknn_context context, rknn_tensor_attr *attr);
int rknn_set_input_shapes(rknn_context context, uint32_t n_inputs, rknn_tensor_attr attr[]);
int rknn_mem_sync(rknn_context context, rknn_tensor_mem *mem, rknn_mem_sync_mode mode);

#ifdef __cplusplus
}
#endif

#endif
