/* The 2D engine (RGA) on hbrt's board: the names, structures and calls of im2d, in our own words. They run on the CPU.
 *
 * Source: librga (Apache 2.0), https://github.com/airockchip/librga
 * The include guards are the vendor's, so a program's own copies replace these files.
 */
#ifndef _im2d_h_
#define _im2d_h_
#define _im2d_hpp_
#define _RGA_IM2D_TYPE_H_
#define _RGA_IM2D_VERSION_H_
#define _im2d_common_h_
#define _im2d_buffer_h_
#define _im2d_single_h_
#define _im2d_task_h_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "rga.h"

#define RGA_API_MAJOR_VERSION 1
#define RGA_API_MINOR_VERSION 10
#define RGA_API_REVISION_VERSION 3
#define RGA_API_BUILD_VERSION 1
#define RGA_API_VERSION "1.10.3_[1]"
#define RGA_API_FULL_VERSION "rga_api version " RGA_API_VERSION
#define RGA_CURRENT_API_VERSION 0x010a0301
#define RGA_CURRENT_API_HEADER_VERSION RGA_CURRENT_API_VERSION

#define IM_API
#ifdef __cplusplus
#define IM_C_API extern "C"
#define IM_EXPORT_API extern "C"
#else
#define IM_C_API
#define IM_EXPORT_API
#endif

typedef uint32_t im_api_version_t;
typedef uint32_t im_job_handle_t;
typedef uint32_t im_ctx_id_t;
typedef uint32_t rga_buffer_handle_t;

/* Operations applied to a picture; combinable bits. */
typedef enum {
  IM_HAL_TRANSFORM_ROT_90 = 1 << 0,
  IM_HAL_TRANSFORM_ROT_180 = 1 << 1,
  IM_HAL_TRANSFORM_ROT_270 = 1 << 2,
  IM_HAL_TRANSFORM_FLIP_H = 1 << 3,
  IM_HAL_TRANSFORM_FLIP_V = 1 << 4,
  IM_HAL_TRANSFORM_FLIP_H_V = 1 << 5,
  IM_HAL_TRANSFORM_MASK = 0x3f,
  IM_HAL_TRANSFORM_ROT_MASK = 0x7,
  IM_HAL_TRANSFORM_FLIP_MASK = 0x38,
  IM_ALPHA_BLEND_SRC_OVER = 1 << 6,
  IM_ALPHA_BLEND_SRC = 1 << 7,
  IM_ALPHA_BLEND_DST = 1 << 8,
  IM_ALPHA_BLEND_SRC_IN = 1 << 9,
  IM_ALPHA_BLEND_DST_IN = 1 << 10,
  IM_ALPHA_BLEND_SRC_OUT = 1 << 11,
  IM_ALPHA_BLEND_DST_OUT = 1 << 12,
  IM_ALPHA_BLEND_DST_OVER = 1 << 13,
  IM_ALPHA_BLEND_SRC_ATOP = 1 << 14,
  IM_ALPHA_BLEND_DST_ATOP = 1 << 15,
  IM_ALPHA_BLEND_XOR = 1 << 16,
  IM_ALPHA_BLEND_MASK = 0x1ffc0,
  IM_ALPHA_COLORKEY_NORMAL = 1 << 17,
  IM_ALPHA_COLORKEY_INVERTED = 1 << 18,
  IM_ALPHA_COLORKEY_MASK = 0x60000,
  IM_SYNC = 1 << 19,
  IM_CROP = 1 << 20,
  IM_COLOR_FILL = 1 << 21,
  IM_COLOR_PALETTE = 1 << 22,
  IM_NN_QUANTIZE = 1 << 23,
  IM_ROP = 1 << 24,
  IM_ALPHA_BLEND_PRE_MUL = 1 << 25,
  IM_ASYNC = 1 << 26,
  IM_MOSAIC = 1 << 27,
  IM_OSD = 1 << 28,
  IM_PRE_INTR = 1 << 29,
  IM_ALPHA_BIT_MAP = 1 << 30,
  IM_GAUSS = (int)(1u << 31),
} IM_USAGE;

typedef enum {
  IM_RASTER_MODE = 1 << 0,
  IM_AFBC16x16_MODE = 1 << 1,
  IM_TILE8x8_MODE = 1 << 2,
  IM_TILE4x4_MODE = 1 << 3,
  IM_RKFBC64x4_MODE = 1 << 4,
  IM_AFBC32x8_MODE = 1 << 5,
  IM_FBC_MODE = IM_AFBC16x16_MODE,
  IM_TILE_MODE = IM_TILE8x8_MODE,
} IM_RD_MODE;

typedef enum {
  IM_SCHEDULER_RGA3_CORE0 = 1 << 0,
  IM_SCHEDULER_RGA3_CORE1 = 1 << 1,
  IM_SCHEDULER_RGA2_CORE0 = 1 << 2,
  IM_SCHEDULER_RGA2_CORE1 = 1 << 3,
  IM_SCHEDULER_RGA3_DEFAULT = IM_SCHEDULER_RGA3_CORE0,
  IM_SCHEDULER_RGA2_DEFAULT = IM_SCHEDULER_RGA2_CORE0,
  IM_SCHEDULER_MASK = 0xf,
  IM_SCHEDULER_DEFAULT = 0,
} IM_SCHEDULER_CORE;

/* Matrices between RGB and YUV; the default is BT.601 with limited range. */
typedef enum {
  IM_YUV_TO_RGB_BT601_LIMIT = 1 << 0,
  IM_YUV_TO_RGB_BT601_FULL = 2 << 0,
  IM_YUV_TO_RGB_BT709_LIMIT = 3 << 0,
  IM_YUV_TO_RGB_MASK = 3 << 0,
  IM_RGB_TO_YUV_BT601_FULL = 1 << 2,
  IM_RGB_TO_YUV_BT601_LIMIT = 2 << 2,
  IM_RGB_TO_YUV_BT709_LIMIT = 3 << 2,
  IM_RGB_TO_YUV_MASK = 3 << 2,
  IM_RGB_TO_Y4 = 1 << 4,
  IM_RGB_TO_Y4_DITHER = 2 << 4,
  IM_RGB_TO_Y1_DITHER = 3 << 4,
  IM_Y4_MASK = 3 << 4,
  IM_RGB_FULL = 1 << 8,
  IM_RGB_CLIP = 2 << 8,
  IM_YUV_BT601_LIMIT_RANGE = 3 << 8,
  IM_YUV_BT601_FULL_RANGE = 4 << 8,
  IM_YUV_BT709_LIMIT_RANGE = 5 << 8,
  IM_YUV_BT709_FULL_RANGE = 6 << 8,
  IM_FULL_CSC_MASK = 0xf << 8,
  IM_COLOR_SPACE_DEFAULT = 0,
} IM_COLOR_SPACE_MODE;

typedef enum { IM_UP_SCALE, IM_DOWN_SCALE } IM_SCALE;
typedef enum { INTER_NEAREST, INTER_LINEAR, INTER_CUBIC } IM_SCALE_MODE;
typedef enum {
  IM_INTERP_DEFAULT = 0,
  IM_INTERP_LINEAR = 1,
  IM_INTERP_CUBIC = 2,
  IM_INTERP_AVERAGE = 3,
  IM_INTERP_MASK = 0xf,
  IM_INTERP_HORIZ_SHIFT = 0,
  IM_INTERP_VERTI_SHIFT = 4,
  IM_INTERP_HORIZ_FLAG = 1 << 8,
  IM_INTERP_VERTI_FLAG = 1 << 9,
} IM_INTER_MODE;
#define IM_INTERP_HORIZ(mode) (((mode) & IM_INTERP_MASK) << IM_INTERP_HORIZ_SHIFT | IM_INTERP_HORIZ_FLAG)
#define IM_INTERP_VERTI(mode) (((mode) & IM_INTERP_MASK) << IM_INTERP_VERTI_SHIFT | IM_INTERP_VERTI_FLAG)
#define IM_INTERP(across, down) (IM_INTERP_HORIZ(across) | IM_INTERP_VERTI(down))
typedef enum { IM_CONFIG_SCHEDULER_CORE, IM_CONFIG_PRIORITY, IM_CONFIG_CHECK } IM_CONFIG_NAME;
typedef enum { IM_BORDER_CONSTANT = 0, IM_BORDER_REFLECT = 2, IM_BORDER_WRAP = 3 } IM_BORDER_TYPE;

/* A raster operation, by the engine's number for it. */
typedef enum {
  IM_ROP_AND = 0x88,
  IM_ROP_OR = 0xee,
  IM_ROP_NOT_DST = 0x55,
  IM_ROP_NOT_SRC = 0x33,
  IM_ROP_XOR = 0xf6,
  IM_ROP_NOT_XOR = 0xf9,
} IM_ROP_CODE;

/* Side length in pixels of a mosaic's squares. */
typedef enum { IM_MOSAIC_8, IM_MOSAIC_16, IM_MOSAIC_32, IM_MOSAIC_64, IM_MOSAIC_128 } IM_MOSAIC_MODE;

/* For text overlays (imosd), mid-picture interrupts, and contexts: hbrt rejects calls that use them. */
typedef enum { IM_OSD_MODE_STATISTICS = 1 << 0, IM_OSD_MODE_AUTO_INVERT = 1 << 1 } IM_OSD_MODE;
typedef enum {
  IM_OSD_INVERT_CHANNEL_NONE = 0,
  IM_OSD_INVERT_CHANNEL_Y_G = 1 << 0,
  IM_OSD_INVERT_CHANNEL_C_RB = 1 << 1,
  IM_OSD_INVERT_CHANNEL_ALPHA = 1 << 2,
  IM_OSD_INVERT_CHANNEL_COLOR = IM_OSD_INVERT_CHANNEL_Y_G | IM_OSD_INVERT_CHANNEL_C_RB,
  IM_OSD_INVERT_CHANNEL_BOTH = IM_OSD_INVERT_CHANNEL_COLOR | IM_OSD_INVERT_CHANNEL_ALPHA,
} IM_OSD_INVERT_CHANNEL;
typedef enum { IM_OSD_FLAGS_INTERNAL, IM_OSD_FLAGS_EXTERNAL } IM_OSD_FLAGS_MODE;
typedef enum { IM_OSD_INVERT_USE_FACTOR, IM_OSD_INVERT_USE_SWAP } IM_OSD_INVERT_MODE;
typedef enum { IM_OSD_BACKGROUND_DEFAULT_BRIGHT, IM_OSD_BACKGROUND_DEFAULT_DARK } IM_OSD_BACKGROUND_DEFAULT;
typedef enum { IM_OSD_BLOCK_MODE_NORMAL, IM_OSD_BLOCK_MODE_DIFFERENT } IM_OSD_BLOCK_WIDTH_MODE;
typedef enum { IM_OSD_MODE_HORIZONTAL, IM_OSD_MODE_VERTICAL } IM_OSD_DIRECTION;
typedef enum { IM_OSD_COLOR_PIXEL, IM_OSD_COLOR_EXTERNAL } IM_OSD_COLOR_MODE;
typedef enum { IM_INTR_READ_INTR = 1 << 0, IM_INTR_READ_HOLD = 1 << 1, IM_INTR_WRITE_INTR = 1 << 2 } IM_PRE_INTR_FLAGS;
typedef enum {
  IM_CONTEXT_NONE = 0,
  IM_CONTEXT_SRC_FIX_ENABLE = 1 << 0,
  IM_CONTEXT_SRC_CACHE_INFO = 1 << 1,
  IM_CONTEXT_SRC1_FIX_ENABLE = 1 << 2,
  IM_CONTEXT_SRC1_CACHE_INFO = 1 << 3,
  IM_CONTEXT_DST_FIX_ENABLE = 1 << 4,
  IM_CONTEXT_DST_CACHE_INFO = 1 << 5,
} IM_CONTEXT_FLAGS;

/* Topics of querystring. */
typedef enum {
  RGA_VENDOR = 0,
  RGA_VERSION,
  RGA_MAX_INPUT,
  RGA_MAX_OUTPUT,
  RGA_BYTE_STRIDE,
  RGA_SCALE_LIMIT,
  RGA_INPUT_FORMAT,
  RGA_OUTPUT_FORMAT,
  RGA_FEATURE,
  RGA_EXPECTED,
  RGA_ALL,
} IM_INFORMATION;

/* What a call returns: NOERROR from a check, SUCCESS from other calls. */
typedef enum {
  IM_STATUS_NOERROR = 2,
  IM_STATUS_SUCCESS = 1,
  IM_STATUS_FAILED = 0,
  IM_STATUS_NOT_SUPPORTED = -1,
  IM_STATUS_OUT_OF_MEMORY = -2,
  IM_STATUS_INVALID_PARAM = -3,
  IM_STATUS_ILLEGAL_PARAM = -4,
  IM_STATUS_ERROR_VERSION = -5,
  IM_STATUS_NO_SESSION = -6,
} IM_STATUS;

typedef struct {
  int x;
  int y;
  int width;
  int height;
} im_rect;

typedef struct {
  int max;
  int min;
} im_colorkey_range;

typedef struct im_nn {
  int scale_r;
  int scale_g;
  int scale_b;
  int offset_r;
  int offset_g;
  int offset_b;
} im_nn_t;

/* A picture: its memory (a handle, else a descriptor, an address, or a physical address) and its layout. Strides in
 * pixels. */
typedef struct {
  void *vir_addr;
  void *phy_addr;
  int fd;
  int width;
  int height;
  int wstride;
  int hstride;
  int format;
  int color_space_mode;
  union {
    int global_alpha;
    struct {
      uint16_t alpha0;
      uint16_t alpha1;
    } alpha_bit;
  };
  int rd_mode;
  int color;
  im_colorkey_range colorkey_range;
  im_nn_t nn;
  int rop_code;
  rga_buffer_handle_t handle;
} rga_buffer_t;

typedef struct im_color {
  union {
    struct {
      uint8_t red;
      uint8_t green;
      uint8_t blue;
      uint8_t alpha;
    };
    uint32_t value;
  };
} im_color_t;

typedef struct im_size {
  int width;
  int height;
} im_size_t;

typedef struct im_osd_invert_factor {
  uint8_t alpha_max;
  uint8_t alpha_min;
  uint8_t yg_max;
  uint8_t yg_min;
  uint8_t crb_max;
  uint8_t crb_min;
} im_osd_invert_factor_t;

typedef struct im_osd_bpp2 {
  uint8_t ac_swap;
  uint8_t endian_swap;
  im_color_t color0;
  im_color_t color1;
} im_osd_bpp2_t;

typedef struct im_osd_block {
  int width_mode;
  union {
    int width;
    int width_index;
  };
  int block_count;
  int background_config;
  int direction;
  int color_mode;
  im_color_t normal_color;
  im_color_t invert_color;
} im_osd_block_t;

typedef struct im_osd_invert {
  int invert_channel;
  int flags_mode;
  int flags_index;
  uint64_t invert_flags;
  uint64_t current_flags;
  int invert_mode;
  im_osd_invert_factor_t factor;
  int threash;
} im_osd_invert_t;

typedef struct im_osd {
  int osd_mode;
  im_osd_block_t block_parm;
  im_osd_invert_t invert_config;
  im_osd_bpp2_t bpp2_info;
} im_osd_t;

typedef struct im_intr_config {
  uint32_t flags;
  int read_threshold;
  int write_start;
  int write_step;
} im_intr_config_t;

typedef struct im_gauss {
  im_size_t ksize;
  double sigma_x;
  double sigma_y;
  double *matrix;
} im_gauss_t;

/* What improcess takes besides pictures; hbrt reads what its usage flags request. */
typedef struct im_opt {
  im_api_version_t version;
  int color;
  im_colorkey_range colorkey_range;
  im_nn_t nn;
  int rop_code;
  int priority;
  int core;
  int mosaic_mode;
  im_osd_t osd_config;
  im_intr_config_t intr_config;
  int interp;
  im_gauss_t gauss_config;
  char reserve[92];
} im_opt_t;

typedef struct im_handle_param {
  uint32_t width;
  uint32_t height;
  uint32_t format;
} im_handle_param_t;

IM_EXPORT_API const char *querystring(int name);
IM_C_API const char *imStrError_t(IM_STATUS status);
IM_C_API IM_STATUS imcheck_t(const rga_buffer_t src, const rga_buffer_t dst, const rga_buffer_t pat,
                             const im_rect src_rect, const im_rect dst_rect, const im_rect pat_rect, const int mode_usage);
IM_EXPORT_API IM_STATUS imsync(int release_fence_fd);
IM_EXPORT_API IM_STATUS imconfig(IM_CONFIG_NAME name, uint64_t value);
IM_EXPORT_API IM_STATUS releasebuffer_handle(rga_buffer_handle_t handle);
IM_EXPORT_API void imsetAlphaBit(rga_buffer_t *buf, uint8_t alpha0, uint8_t alpha1);
IM_EXPORT_API void imsetOpacity(rga_buffer_t *buf, uint8_t alpha);
IM_EXPORT_API void imsetColorSpace(rga_buffer_t *buf, IM_COLOR_SPACE_MODE mode);
IM_C_API rga_buffer_t wrapbuffer_handle_t(rga_buffer_handle_t handle, int width, int height, int wstride, int hstride,
                                          int format);
IM_C_API rga_buffer_t wrapbuffer_virtualaddr_t(void *vir_addr, int width, int height, int wstride, int hstride, int format);
IM_C_API rga_buffer_t wrapbuffer_physicaladdr_t(void *phy_addr, int width, int height, int wstride, int hstride, int format);
IM_C_API rga_buffer_t wrapbuffer_fd_t(int fd, int width, int height, int wstride, int hstride, int format);

IM_EXPORT_API rga_buffer_handle_t importbuffer_fd(int fd, im_handle_param_t *param);
IM_EXPORT_API rga_buffer_handle_t importbuffer_virtualaddr(void *va, im_handle_param_t *param);
IM_EXPORT_API rga_buffer_handle_t importbuffer_physicaladdr(uint64_t pa, im_handle_param_t *param);

IM_C_API IM_STATUS improcess(rga_buffer_t src, rga_buffer_t dst, rga_buffer_t pat, im_rect srect, im_rect drect,
                             im_rect prect, int usage);
IM_C_API IM_STATUS imcopy_t(const rga_buffer_t src, rga_buffer_t dst, int sync);
IM_C_API IM_STATUS imresize_t(const rga_buffer_t src, rga_buffer_t dst, double fx, double fy, int interpolation, int sync);
IM_C_API IM_STATUS imcrop_t(const rga_buffer_t src, rga_buffer_t dst, im_rect rect, int sync);
IM_C_API IM_STATUS imtranslate_t(const rga_buffer_t src, rga_buffer_t dst, int x, int y, int sync);
IM_C_API IM_STATUS imcvtcolor_t(rga_buffer_t src, rga_buffer_t dst, int sfmt, int dfmt, int mode, int sync);
IM_C_API IM_STATUS imrotate_t(const rga_buffer_t src, rga_buffer_t dst, int rotation, int sync);
IM_C_API IM_STATUS imflip_t(const rga_buffer_t src, rga_buffer_t dst, int mode, int sync);
IM_C_API IM_STATUS imblend_t(const rga_buffer_t srcA, const rga_buffer_t srcB, rga_buffer_t dst, int mode, int sync);
IM_C_API IM_STATUS imfill_t(rga_buffer_t dst, im_rect rect, int color, int sync);
IM_C_API IM_STATUS imcolorkey_t(const rga_buffer_t src, rga_buffer_t dst, im_colorkey_range range, int mode, int sync);
IM_C_API IM_STATUS imquantize_t(const rga_buffer_t src, rga_buffer_t dst, im_nn_t nn_info, int sync);
IM_C_API IM_STATUS imrop_t(const rga_buffer_t src, rga_buffer_t dst, int rop_code, int sync);
IM_C_API IM_STATUS impalette_t(rga_buffer_t src, rga_buffer_t dst, rga_buffer_t lut, int sync);
IM_C_API IM_STATUS imgaussianBlur_t(rga_buffer_t src, rga_buffer_t dst, int gauss_width, int gauss_height, int sigma_x,
                                    int sigma_y, int sync);
#define impyramid(src, dst, direction) \
  imresize_t(src, dst, (direction) == IM_UP_SCALE ? 0.5 : 2, (direction) == IM_UP_SCALE ? 0.5 : 2, INTER_LINEAR, 1)

#ifdef __cplusplus

rga_buffer_handle_t importbuffer_fd(int fd, int size);
rga_buffer_handle_t importbuffer_virtualaddr(void *va, int size);
rga_buffer_handle_t importbuffer_physicaladdr(uint64_t pa, int size);
rga_buffer_handle_t importbuffer_fd(int fd, int width, int height, int format);
rga_buffer_handle_t importbuffer_virtualaddr(void *va, int width, int height, int format);
rga_buffer_handle_t importbuffer_physicaladdr(uint64_t pa, int width, int height, int format);
rga_buffer_t wrapbuffer_handle(rga_buffer_handle_t handle, int width, int height, int format);
rga_buffer_t wrapbuffer_handle(rga_buffer_handle_t handle, int width, int height, int format, int wstride, int hstride);
IM_STATUS imcheckHeader(im_api_version_t header_version = RGA_CURRENT_API_HEADER_VERSION);
IM_STATUS imcopy(const rga_buffer_t src, rga_buffer_t dst, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imresize(const rga_buffer_t src, rga_buffer_t dst, double fx = 0, double fy = 0, int interpolation = 0,
                   int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imcrop(const rga_buffer_t src, rga_buffer_t dst, im_rect rect, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imtranslate(const rga_buffer_t src, rga_buffer_t dst, int x, int y, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imcvtcolor(rga_buffer_t src, rga_buffer_t dst, int sfmt, int dfmt, int mode = IM_COLOR_SPACE_DEFAULT,
                     int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imrotate(const rga_buffer_t src, rga_buffer_t dst, int rotation, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imflip(const rga_buffer_t src, rga_buffer_t dst, int mode, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imblend(const rga_buffer_t fg, rga_buffer_t bg, int mode = IM_ALPHA_BLEND_SRC_OVER, int sync = 1,
                  int *release_fence_fd = NULL);
IM_STATUS imcomposite(const rga_buffer_t srcA, const rga_buffer_t srcB, rga_buffer_t dst,
                      int mode = IM_ALPHA_BLEND_SRC_OVER, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imfill(rga_buffer_t dst, im_rect rect, int color, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imrectangle(rga_buffer_t dst, im_rect rect, uint32_t color, int thickness, int sync = 1,
                      int *release_fence_fd = NULL);
IM_STATUS immakeBorder(rga_buffer_t src, rga_buffer_t dst, int top, int bottom, int left, int right, int border_type,
                       int value = 0, int sync = 1, int acquire_fence_fd = -1, int *release_fence_fd = NULL);
IM_STATUS improcess(rga_buffer_t src, rga_buffer_t dst, rga_buffer_t pat, im_rect srect, im_rect drect, im_rect prect,
                    int acquire_fence_fd, int *release_fence_fd, im_opt_t *opt_ptr, int usage);
IM_STATUS imcolorkey(const rga_buffer_t src, rga_buffer_t dst, im_colorkey_range range,
                     int mode = IM_ALPHA_COLORKEY_NORMAL, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imquantize(const rga_buffer_t src, rga_buffer_t dst, im_nn_t nn_info, int sync = 1,
                     int *release_fence_fd = NULL);
IM_STATUS imrop(const rga_buffer_t src, rga_buffer_t dst, int rop_code, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imosd(const rga_buffer_t osd, const rga_buffer_t dst, const im_rect osd_rect, im_osd_t *osd_config, int sync = 1,
                int *release_fence_fd = NULL);
IM_STATUS impalette(rga_buffer_t src, rga_buffer_t dst, rga_buffer_t lut, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imgaussianBlur(rga_buffer_t src, rga_buffer_t dst, int gauss_width, int gauss_height, int sigma_x,
                         int sigma_y = 0, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS imfillArray(rga_buffer_t dst, im_rect *rect_array, int array_size, uint32_t color, int sync = 1,
                      int *release_fence_fd = NULL);
IM_STATUS imrectangleArray(rga_buffer_t dst, im_rect *rect_array, int array_size, uint32_t color, int thickness,
                           int sync = 1, int *release_fence_fd = NULL);
IM_STATUS immosaic(const rga_buffer_t image, im_rect rect, int mosaic_mode, int sync = 1, int *release_fence_fd = NULL);
IM_STATUS immosaicArray(const rga_buffer_t image, im_rect *rect_array, int array_size, int mosaic_mode, int sync = 1,
                        int *release_fence_fd = NULL);

/* A job of several tasks: each is checked when it is added, and imendJob runs them in order. */
im_job_handle_t imbeginJob(uint64_t flags = 0);
IM_STATUS imendJob(im_job_handle_t job_handle, int sync_mode = IM_SYNC, int acquire_fence_fd = 0,
                   int *release_fence_fd = NULL);
IM_STATUS imcancelJob(im_job_handle_t job_handle);
IM_STATUS imcopyTask(im_job_handle_t job_handle, const rga_buffer_t src, rga_buffer_t dst);
IM_STATUS imresizeTask(im_job_handle_t job_handle, const rga_buffer_t src, rga_buffer_t dst, double fx = 0, double fy = 0,
                       int interpolation = 0);
IM_STATUS imcropTask(im_job_handle_t job_handle, const rga_buffer_t src, rga_buffer_t dst, im_rect rect);
IM_STATUS imtranslateTask(im_job_handle_t job_handle, const rga_buffer_t src, rga_buffer_t dst, int x, int y);
IM_STATUS imcvtcolorTask(im_job_handle_t job_handle, rga_buffer_t src, rga_buffer_t dst, int sfmt, int dfmt,
                         int mode = IM_COLOR_SPACE_DEFAULT);
IM_STATUS imrotateTask(im_job_handle_t job_handle, const rga_buffer_t src, rga_buffer_t dst, int rotation);
IM_STATUS imflipTask(im_job_handle_t job_handle, const rga_buffer_t src, rga_buffer_t dst, int mode);
IM_STATUS imblendTask(im_job_handle_t job_handle, const rga_buffer_t fg_image, rga_buffer_t bg_image,
                      int mode = IM_ALPHA_BLEND_SRC_OVER);
IM_STATUS imcompositeTask(im_job_handle_t job_handle, const rga_buffer_t fg_image, const rga_buffer_t bg_image,
                          rga_buffer_t output_image, int mode = IM_ALPHA_BLEND_SRC_OVER);
IM_STATUS imcolorkeyTask(im_job_handle_t job_handle, const rga_buffer_t fg_image, rga_buffer_t bg_image,
                         im_colorkey_range range, int mode = IM_ALPHA_COLORKEY_NORMAL);
IM_STATUS imosdTask(im_job_handle_t job_handle, const rga_buffer_t osd, const rga_buffer_t bg_image, const im_rect osd_rect,
                    im_osd_t *osd_config);
IM_STATUS imquantizeTask(im_job_handle_t job_handle, const rga_buffer_t src, rga_buffer_t dst, im_nn_t nn_info);
IM_STATUS imropTask(im_job_handle_t job_handle, const rga_buffer_t src, rga_buffer_t dst, int rop_code);
IM_STATUS imfillTask(im_job_handle_t job_handle, rga_buffer_t dst, im_rect rect, uint32_t color);
IM_STATUS imfillTaskArray(im_job_handle_t job_handle, rga_buffer_t dst, im_rect *rect_array, int array_size, uint32_t color);
IM_STATUS imrectangleTask(im_job_handle_t job_handle, rga_buffer_t dst, im_rect rect, uint32_t color, int thickness);
IM_STATUS imrectangleTaskArray(im_job_handle_t job_handle, rga_buffer_t dst, im_rect *rect_array, int array_size,
                               uint32_t color, int thickness);
IM_STATUS immosaicTask(im_job_handle_t job_handle, const rga_buffer_t image, im_rect rect, int mosaic_mode);
IM_STATUS immosaicTaskArray(im_job_handle_t job_handle, const rga_buffer_t image, im_rect *rect_array, int array_size,
                            int mosaic_mode);
IM_STATUS impaletteTask(im_job_handle_t job_handle, rga_buffer_t src, rga_buffer_t dst, rga_buffer_t lut);
IM_STATUS improcessTask(im_job_handle_t job_handle, rga_buffer_t src, rga_buffer_t dst, rga_buffer_t pat, im_rect srect,
                        im_rect drect, im_rect prect, im_opt_t *opt_ptr, int usage);

static inline const char *imStrError(int status = IM_STATUS_INVALID_PARAM) { return imStrError_t((IM_STATUS)status); }
static inline IM_STATUS imcheck(const rga_buffer_t src, const rga_buffer_t dst, im_rect src_rect, im_rect dst_rect,
                                int usage = 0) {
  return imcheck_t(src, dst, rga_buffer_t(), src_rect, dst_rect, im_rect(), usage);
}
static inline IM_STATUS imcheck_composite(const rga_buffer_t src, const rga_buffer_t dst, const rga_buffer_t pat,
                                          im_rect src_rect, im_rect dst_rect, im_rect pat_rect, int usage = 0) {
  return imcheck_t(src, dst, pat, src_rect, dst_rect, pat_rect, usage);
}
static inline rga_buffer_t wrapbuffer_virtualaddr(void *at, int width, int height, int format, int wstride = 0,
                                                  int hstride = 0) {
  return wrapbuffer_virtualaddr_t(at, width, height, wstride ? wstride : width, hstride ? hstride : height, format);
}
static inline rga_buffer_t wrapbuffer_physicaladdr(void *at, int width, int height, int format, int wstride = 0,
                                                   int hstride = 0) {
  return wrapbuffer_physicaladdr_t(at, width, height, wstride ? wstride : width, hstride ? hstride : height, format);
}
static inline rga_buffer_t wrapbuffer_fd(int fd, int width, int height, int format, int wstride = 0, int hstride = 0) {
  return wrapbuffer_fd_t(fd, width, height, wstride ? wstride : width, hstride ? hstride : height, format);
}

#else

/* The value of an optional argument, given its position, or its default. */
#define RGA_GIVEN(at, otherwise, ...)                                                                                   \
  ({                                                                                                                   \
    const double given[] = {0, ##__VA_ARGS__};                                                                         \
    sizeof given / sizeof *given > (at) + 1 ? given[sizeof given / sizeof *given > (at) + 1 ? (at) + 1 : 0] : (otherwise); \
  })
#define RGA_WRAPPED(kind, where, width, height, format, ...)                         \
  wrapbuffer_##kind##_t(where, width, height, (int)RGA_GIVEN(0, width, ##__VA_ARGS__), \
                        (int)RGA_GIVEN(1, height, ##__VA_ARGS__), format)
#define wrapbuffer_handle(where, width, height, format, ...) \
  RGA_WRAPPED(handle, where, width, height, format, ##__VA_ARGS__)
#define wrapbuffer_virtualaddr(where, width, height, format, ...) \
  RGA_WRAPPED(virtualaddr, where, width, height, format, ##__VA_ARGS__)
#define wrapbuffer_physicaladdr(where, width, height, format, ...) \
  RGA_WRAPPED(physicaladdr, where, width, height, format, ##__VA_ARGS__)
#define wrapbuffer_fd(where, width, height, format, ...) \
  RGA_WRAPPED(fd, where, width, height, format, ##__VA_ARGS__)
#define imStrError(...) imStrError_t((IM_STATUS)(int)RGA_GIVEN(0, IM_STATUS_INVALID_PARAM, ##__VA_ARGS__))
#define imcheck(src, dst, src_rect, dst_rect, ...)                                     \
  imcheck_t(src, dst, (rga_buffer_t){0}, src_rect, dst_rect, (im_rect){0, 0, 0, 0}, \
            (int)RGA_GIVEN(0, 0, ##__VA_ARGS__))
#define imcheck_composite(src, dst, pat, src_rect, dst_rect, pat_rect, ...) \
  imcheck_t(src, dst, pat, src_rect, dst_rect, pat_rect, (int)RGA_GIVEN(0, 0, ##__VA_ARGS__))
#define imcopy(src, dst, ...) imcopy_t(src, dst, (int)RGA_GIVEN(0, 1, ##__VA_ARGS__))
#define imresize(src, dst, ...)                                                                   \
  imresize_t(src, dst, RGA_GIVEN(0, 0, ##__VA_ARGS__), RGA_GIVEN(1, 0, ##__VA_ARGS__),            \
             (int)RGA_GIVEN(2, INTER_LINEAR, ##__VA_ARGS__), (int)RGA_GIVEN(3, 1, ##__VA_ARGS__))
#define imcrop(src, dst, rect, ...) imcrop_t(src, dst, rect, (int)RGA_GIVEN(0, 1, ##__VA_ARGS__))
#define imtranslate(src, dst, x, y, ...) imtranslate_t(src, dst, x, y, (int)RGA_GIVEN(0, 1, ##__VA_ARGS__))
#define imcvtcolor(src, dst, sfmt, dfmt, ...)                                                         \
  imcvtcolor_t(src, dst, sfmt, dfmt, (int)RGA_GIVEN(0, 0, ##__VA_ARGS__), (int)RGA_GIVEN(1, 1, ##__VA_ARGS__))
#define imrotate(src, dst, rotation, ...) imrotate_t(src, dst, rotation, (int)RGA_GIVEN(0, 1, ##__VA_ARGS__))
#define imflip(src, dst, mode, ...) imflip_t(src, dst, mode, (int)RGA_GIVEN(0, 1, ##__VA_ARGS__))
#define imblend(fg, bg, ...)                                                                               \
  imblend_t(fg, (rga_buffer_t){0}, bg, (int)RGA_GIVEN(0, IM_ALPHA_BLEND_SRC_OVER, ##__VA_ARGS__), \
            (int)RGA_GIVEN(1, 1, ##__VA_ARGS__))
#define imcomposite(srcA, srcB, dst, ...)                                                      \
  imblend_t(srcA, srcB, dst, (int)RGA_GIVEN(0, IM_ALPHA_BLEND_SRC_OVER, ##__VA_ARGS__), \
            (int)RGA_GIVEN(1, 1, ##__VA_ARGS__))
#define imfill(dst, rect, color, ...) imfill_t(dst, rect, color, (int)RGA_GIVEN(0, 1, ##__VA_ARGS__))
#define imcolorkey(src, dst, range, ...)                                             \
  imcolorkey_t(src, dst, range, (int)RGA_GIVEN(0, IM_ALPHA_COLORKEY_NORMAL, ##__VA_ARGS__), \
               (int)RGA_GIVEN(1, 1, ##__VA_ARGS__))
#define imquantize(src, dst, nn_info, ...) imquantize_t(src, dst, nn_info, (int)RGA_GIVEN(0, 1, ##__VA_ARGS__))
#define imrop(src, dst, rop_code, ...) imrop_t(src, dst, rop_code, (int)RGA_GIVEN(0, 1, ##__VA_ARGS__))
#define impalette(src, dst, lut, ...) impalette_t(src, dst, lut, (int)RGA_GIVEN(0, 1, ##__VA_ARGS__))
#define imgaussianBlur(src, dst, gauss_width, gauss_height, sigma_x, ...)                            \
  imgaussianBlur_t(src, dst, gauss_width, gauss_height, sigma_x, (int)RGA_GIVEN(0, 0, ##__VA_ARGS__), \
                   (int)RGA_GIVEN(1, 1, ##__VA_ARGS__))
IM_STATUS immosaic(const rga_buffer_t image, im_rect rect, int mosaic_mode, int sync);
IM_STATUS imosd(const rga_buffer_t osd, const rga_buffer_t dst, const im_rect osd_rect, im_osd_t *osd_config, int sync);
#define imdraw imfill
#define imreset imfill

#endif

#endif
