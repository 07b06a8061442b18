/** The 2D engine's functions. Each call becomes one job, which rknn_api/rga runs; C++ programs use mangled names. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "RgaApi.h"
#include "entry.h"
#include "im2d.h"
#undef imStrError
#undef imcheck
#undef imcopy
#undef imresize
#undef imcrop
#undef imcvtcolor
#undef imrotate
#undef imflip
#undef imblend
#undef imfill
#undef imcolorkey
#undef imquantize
#undef imrop
#undef impalette
#undef imgaussianBlur

#define API HBRT_EXPORT

enum { PROCESS, FILL, MOSAIC, BLUR, BORDER }; /* job kinds; Job of rknn_api/rga/calls.py has the same numbers */

struct job {
  int32_t kind, is_check, usage, color, interpolation, status, thickness;
  int32_t sizes[4]; /* a mosaic's squares; a blur's width and height, and sigmas; a border's top, bottom, left, right */
  const rga_buffer_t *src, *dst, *pat;
  im_rect from, to, of_pat;
  char text[256];
};

HBRT_FUNCTION(int32_t, hbrt_rga_do, -1, (uint64_t job), (job), "c_int32 c_uint64")
HBRT_FUNCTION(uint64_t, hbrt_rga_import, 0, (int32_t kind, uint64_t value, uint64_t size), (kind, value, size),
              "c_uint64 c_int32 c_uint64 c_uint64")
HBRT_FUNCTION(int32_t, hbrt_rga_release, -1, (uint64_t handle), (handle), "c_int32 c_uint64")

static __thread char last[sizeof ((struct job *)0)->text];

static IM_STATUS refuse(IM_STATUS status, const char *sentence) {
  snprintf(last, sizeof last, "%s", sentence);
  return status;
}

/* A job of several tasks, from imbeginJob to imendJob or imcancelJob. */
struct task {
  struct job job;
  rga_buffer_t src, dst, pat;
};
struct queue {
  im_job_handle_t handle;
  int count;
  struct task *tasks;
  struct queue *next;
};
static pthread_mutex_t queues_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the jobs and their tasks */
static struct queue *queues;
static __thread struct queue *adding; /* the tasks of the current task call; NULL if none */

static struct queue **place_of(im_job_handle_t handle) {
  struct queue **place = &queues;
  while (*place && (*place)->handle != handle) place = &(*place)->next;
  return place;
}

static IM_STATUS unknown(im_job_handle_t handle) {
  snprintf(last, sizeof last, "Unknown job handle %u: imbeginJob did not return it, or it was ended or cancelled.", handle);
  return IM_STATUS_ILLEGAL_PARAM;
}

static IM_STATUS add(struct queue *queue, const struct task *tasks, int count) {
  size_t size = sizeof *tasks;
  struct task *grown = realloc(queue->tasks, (size_t)(queue->count + count) * size);
  if (!grown) return refuse(IM_STATUS_OUT_OF_MEMORY, "Out of memory for another task of the job.");
  memcpy(grown + queue->count, tasks, (size_t)count * size);
  queue->tasks = grown, queue->count += count;
  return IM_STATUS_SUCCESS;
}

static IM_STATUS added(const struct job *job) {
  struct task task = {.job = *job};
  task.job.is_check = 0;
  if (job->src) task.src = *job->src;
  if (job->dst) task.dst = *job->dst;
  if (job->pat) task.pat = *job->pat;
  return add(adding, &task, 1);
}

/* End a task call: its job gets all of its tasks, or none if one was refused. */
static IM_STATUS joined(struct queue *call, IM_STATUS status) {
  pthread_mutex_lock(&queues_lock);
  struct queue *queue = *place_of(call->handle);
  if (queue && status == IM_STATUS_SUCCESS) status = add(queue, call->tasks, call->count);
  pthread_mutex_unlock(&queues_lock);
  free(call->tasks);
  return queue ? status : unknown(call->handle);
}

static struct queue *taken(im_job_handle_t handle) {
  pthread_mutex_lock(&queues_lock);
  struct queue **place = place_of(handle), *found = *place;
  if (found) *place = found->next;
  pthread_mutex_unlock(&queues_lock);
  return found;
}

static IM_STATUS done(struct job *job) {
  job->status = IM_STATUS_FAILED;
  if (adding) job->is_check = 1;
  hbrt_rga_do((uintptr_t)job);
  if (job->status <= IM_STATUS_FAILED) memcpy(last, job->text, sizeof last);
  return adding && job->status > IM_STATUS_FAILED ? added(job) : (IM_STATUS)job->status;
}

static IM_STATUS process(const rga_buffer_t *src, const rga_buffer_t *dst, im_rect from, im_rect to, int usage) {
  struct job job = {.kind = PROCESS, .src = src, .dst = dst, .from = from, .to = to, .usage = usage};
  return done(&job);
}

static IM_STATUS filled(const rga_buffer_t *dst, im_rect rect, int color, int thickness) {
  struct job job = {.kind = FILL, .dst = dst, .to = rect, .color = color, .thickness = thickness};
  return done(&job);
}

static const im_rect WHOLE = {0, 0, 0, 0};

static IM_STATUS processed(const rga_buffer_t *src, const rga_buffer_t *dst, const rga_buffer_t *pat, im_rect srect, im_rect drect, im_rect prect,
                           int usage, const im_opt_t *opt) {
  rga_buffer_t target = *dst;
  struct job job = {.kind = PROCESS, .src = src, .dst = &target, .pat = pat, .from = srect, .to = drect, .of_pat = prect, .usage = usage};
  if (opt) {
    target.color = opt->color, target.colorkey_range = opt->colorkey_range, target.rop_code = opt->rop_code;
    job.interpolation = opt->interp;
  }
  if (usage & IM_COLOR_FILL) job.kind = FILL, job.color = target.color;
  if (usage & IM_MOSAIC && opt) job.kind = MOSAIC, job.sizes[0] = 8 << (opt->mosaic_mode & 7);
  return done(&job);
}

API IM_STATUS improcess(rga_buffer_t src, rga_buffer_t dst, rga_buffer_t pat, im_rect srect, im_rect drect, im_rect prect, int usage) {
  return processed(&src, &dst, &pat, srect, drect, prect, usage, NULL);
}

static int unequal(const char *call, const rga_buffer_t *src, const rga_buffer_t *dst) {
  if (src->width == dst->width && src->height == dst->height) return 0;
  snprintf(last, sizeof last, "%s: the sizes %d x %d and %d x %d must be equal.", call, src->width, src->height, dst->width, dst->height);
  return 1;
}

API IM_STATUS imcopy_t(const rga_buffer_t src, rga_buffer_t dst, int sync) {
  (void)sync;
  if (unequal("imcopy", &src, &dst)) return IM_STATUS_INVALID_PARAM;
  return process(&src, &dst, WHOLE, WHOLE, 0);
}

static int is_yuv(int format) {
  const int number = format > 0xff ? format >> 8 : format;
  return (number >= 0x08 && number <= 0x0f) || number == 0x15 || (number >= 0x18 && number <= 0x23) || number == 0x32 || number == 0x33;
}

API IM_STATUS imresize_t(const rga_buffer_t src, rga_buffer_t dst, double fx, double fy, int interpolation, int sync) {
  (void)sync;
  if (fx > 0 || fy > 0) {
    const int even = is_yuv(dst.format) ? ~1 : ~0; /* the engine's rule: sizes are aligned downward */
    dst.width = (int)(src.width * (fx > 0 ? fx : 1)) & even;
    dst.height = (int)(src.height * (fy > 0 ? fy : 1)) & even;
  }
  struct job job = {.kind = PROCESS, .src = &src, .dst = &dst, .interpolation = interpolation};
  return done(&job);
}

API IM_STATUS imcrop_t(const rga_buffer_t src, rga_buffer_t dst, im_rect rect, int sync) {
  (void)sync;
  return process(&src, &dst, rect, WHOLE, IM_CROP);
}

API IM_STATUS imtranslate_t(const rga_buffer_t src, rga_buffer_t dst, int x, int y, int sync) {
  (void)sync;
  if (unequal("imtranslate", &src, &dst)) return IM_STATUS_INVALID_PARAM;
  const int width = src.width - abs(x), height = src.height - abs(y);
  im_rect from = {x < 0 ? -x : 0, y < 0 ? -y : 0, width, height}, to = {x > 0 ? x : 0, y > 0 ? y : 0, width, height};
  return process(&src, &dst, from, to, 0);
}

API IM_STATUS imcvtcolor_t(rga_buffer_t src, rga_buffer_t dst, int sfmt, int dfmt, int mode, int sync) {
  (void)sync;
  src.format = sfmt;
  dst.format = dfmt;
  dst.color_space_mode = mode;
  return process(&src, &dst, WHOLE, WHOLE, 0);
}

API IM_STATUS imrotate_t(const rga_buffer_t src, rga_buffer_t dst, int rotation, int sync) {
  (void)sync;
  return process(&src, &dst, WHOLE, WHOLE, rotation);
}

API IM_STATUS imflip_t(const rga_buffer_t src, rga_buffer_t dst, int mode, int sync) {
  (void)sync;
  return process(&src, &dst, WHOLE, WHOLE, mode);
}

API IM_STATUS imblend_t(const rga_buffer_t srcA, const rga_buffer_t srcB, rga_buffer_t dst, int mode, int sync) {
  (void)sync;
  return improcess(srcA, dst, srcB, WHOLE, WHOLE, WHOLE, mode);
}

API IM_STATUS imfill_t(rga_buffer_t dst, im_rect rect, int color, int sync) {
  (void)sync;
  return filled(&dst, rect, color, 0);
}

API IM_STATUS imcolorkey_t(const rga_buffer_t src, rga_buffer_t dst, im_colorkey_range range, int mode, int sync) {
  (void)sync;
  dst.colorkey_range = range;
  return process(&src, &dst, WHOLE, WHOLE, mode);
}

API IM_STATUS imrop_t(const rga_buffer_t src, rga_buffer_t dst, int rop_code, int sync) {
  (void)sync;
  dst.rop_code = rop_code;
  return process(&src, &dst, WHOLE, WHOLE, IM_ROP);
}

API IM_STATUS imquantize_t(const rga_buffer_t src, rga_buffer_t dst, im_nn_t nn_info, int sync) {
  (void)sync;
  dst.nn = nn_info;
  return process(&src, &dst, WHOLE, WHOLE, IM_NN_QUANTIZE);
}

API IM_STATUS impalette_t(rga_buffer_t src, rga_buffer_t dst, rga_buffer_t lut, int sync) {
  (void)sync;
  return improcess(src, dst, lut, WHOLE, WHOLE, WHOLE, IM_COLOR_PALETTE);
}

API IM_STATUS imosd(const rga_buffer_t osd, const rga_buffer_t dst, const im_rect osd_rect, im_osd_t *osd_config, int sync) {
  (void)sync, (void)osd_config;
  return improcess(osd, dst, (rga_buffer_t){0}, WHOLE, osd_rect, WHOLE, IM_OSD);
}

API IM_STATUS immosaic(const rga_buffer_t image, im_rect rect, int mosaic_mode, int sync) {
  (void)sync;
  if (mosaic_mode < IM_MOSAIC_8 || mosaic_mode > IM_MOSAIC_128) {
    snprintf(last, sizeof last, "immosaic: invalid mosaic_mode %d: must be IM_MOSAIC_8 (0) to IM_MOSAIC_128 (4).", mosaic_mode);
    return IM_STATUS_INVALID_PARAM;
  }
  struct job job = {.kind = MOSAIC, .dst = &image, .to = rect, .sizes = {8 << mosaic_mode}};
  return done(&job);
}

API IM_STATUS imgaussianBlur_t(rga_buffer_t src, rga_buffer_t dst, int width, int height, int sigma_x, int sigma_y, int sync) {
  (void)sync;
  struct job job = {.kind = BLUR, .src = &src, .dst = &dst, .sizes = {width, height, sigma_x, sigma_y}};
  return done(&job);
}

API IM_STATUS imcheck_t(const rga_buffer_t src, const rga_buffer_t dst, const rga_buffer_t pat, const im_rect from, const im_rect to,
                        const im_rect of_pat, const int usage) {
  const int kind = usage & (IM_COLOR_FILL | IM_MOSAIC) ? FILL : PROCESS; /* the former have no source */
  struct job job = {.kind = kind, .is_check = 1, .src = &src, .dst = &dst, .pat = &pat, .from = from, .to = to, .of_pat = of_pat, .usage = usage};
  return done(&job);
}

/** The status of a call that has ended, and the fence of an asynchronous one that succeeded: poll() finds it ready. */
static IM_STATUS ended(IM_STATUS status, int *fence, int sync) {
  if (fence) *fence = sync || status != IM_STATUS_SUCCESS ? -1 : eventfd(1, EFD_CLOEXEC);
  return status;
}

API IM_STATUS imsync(int fence) {
  if (fence > 0) close(fence);
  return IM_STATUS_SUCCESS;
}

API IM_STATUS imconfig(IM_CONFIG_NAME name, uint64_t value) {
  (void)name, (void)value;
  return IM_STATUS_SUCCESS;
}

API const char *imStrError_t(IM_STATUS status) {
  static __thread char text[sizeof last + 32];
  static const char *const names[] = {"Failed", "Not supported", "Out of memory", "Invalid parameters", "Illegal parameters",
                                      "Wrong version", "No session"};
  if (status > 0) return status == IM_STATUS_NOERROR ? "No errors during operation" : "Run successfully";
  snprintf(text, sizeof text, "%s: %s", -status < 7 ? names[-status] : "Unknown status", last);
  return text;
}

API const char *querystring(int name) {
  static const char *const texts[] = {
      "RGA vendor : hbrt (emulator)\n", "RGA version : rga_api version " RGA_API_VERSION "\n", "max input : 8192x8192\n",
      "max output : 8192x8192\n", "byte stride : 4\n", "scale limit : 0.0625 ~ 16\n",
      "input format : RGBA_8888 RGB_888 RGB_565 YUV420 YUV422 GRAY\n", "output format : RGBA_8888 RGB_888 RGB_565 YUV420 YUV422 GRAY\n",
      "feature : color_fill blend rotate flip\n", "expected performance : that of the CPU\n"};
  static char all[1024];
  if (name >= 0 && name < RGA_ALL) return texts[name];
  char made[sizeof all] = "";
  for (int at = 0; at < RGA_ALL; at++) strcat(made, texts[at]);
  memcpy(all, made, sizeof all);
  return all;
}

enum { BY_FD, BY_ADDRESS, BY_PHYSICAL };

static rga_buffer_handle_t imported(int kind, uint64_t value, uint64_t size) { return (rga_buffer_handle_t)hbrt_rga_import(kind, value, size); }

API float get_bpp_from_format(int format) {
  switch (format) {
    case RK_FORMAT_RGBA_8888: case RK_FORMAT_RGBX_8888: case RK_FORMAT_BGRA_8888: case RK_FORMAT_BGRX_8888:
    case RK_FORMAT_ARGB_8888: case RK_FORMAT_XRGB_8888: case RK_FORMAT_ABGR_8888: case RK_FORMAT_XBGR_8888: return 4;
    case RK_FORMAT_RGB_888: case RK_FORMAT_BGR_888: case RK_FORMAT_YCbCr_444_SP: case RK_FORMAT_YCrCb_444_SP: return 3;
    case RK_FORMAT_RGB_565: case RK_FORMAT_BGR_565: case RK_FORMAT_RGBA_5551: case RK_FORMAT_BGRA_5551: case RK_FORMAT_ARGB_5551:
    case RK_FORMAT_ABGR_5551: case RK_FORMAT_RGBA_4444: case RK_FORMAT_BGRA_4444: case RK_FORMAT_ARGB_4444: case RK_FORMAT_ABGR_4444:
    case RK_FORMAT_YCbCr_422_SP: case RK_FORMAT_YCbCr_422_P: case RK_FORMAT_YCrCb_422_SP: case RK_FORMAT_YCrCb_422_P:
    case RK_FORMAT_YUYV_422: case RK_FORMAT_UYVY_422: case RK_FORMAT_YVYU_422: case RK_FORMAT_VYUY_422: return 2;
    case RK_FORMAT_YCbCr_420_SP: case RK_FORMAT_YCrCb_420_SP: case RK_FORMAT_YCbCr_420_P: case RK_FORMAT_YCrCb_420_P: return 1.5f;
    case RK_FORMAT_YCbCr_400: case RK_FORMAT_BPP8: case RK_FORMAT_A8: case RK_FORMAT_Y8: return 1;
    default: return 0;
  }
}

static uint64_t bytes_of(uint64_t width, uint64_t height, int format) { return (uint64_t)((double)(width * height) * get_bpp_from_format(format)); }

API rga_buffer_handle_t importbuffer_fd(int fd, im_handle_param_t *of) {
  return of ? imported(BY_FD, (uint32_t)fd, bytes_of(of->width, of->height, (int)of->format)) : 0;
}
API rga_buffer_handle_t importbuffer_virtualaddr(void *va, im_handle_param_t *of) {
  return of ? imported(BY_ADDRESS, (uintptr_t)va, bytes_of(of->width, of->height, (int)of->format)) : 0;
}
API rga_buffer_handle_t importbuffer_physicaladdr(uint64_t pa, im_handle_param_t *of) {
  return of ? imported(BY_PHYSICAL, pa, bytes_of(of->width, of->height, (int)of->format)) : 0;
}
API IM_STATUS releasebuffer_handle(rga_buffer_handle_t handle) {
  return hbrt_rga_release(handle) ? IM_STATUS_INVALID_PARAM : IM_STATUS_SUCCESS;
}

static rga_buffer_t wrapped(int width, int height, int wstride, int hstride, int format) {
  rga_buffer_t made;
  memset(&made, 0, sizeof made);
  made.fd = -1;
  made.width = width, made.height = height, made.wstride = wstride, made.hstride = hstride, made.format = format;
  made.global_alpha = 0xff;
  return made;
}
API rga_buffer_t wrapbuffer_handle_t(rga_buffer_handle_t handle, int width, int height, int wstride, int hstride, int format) {
  rga_buffer_t made = wrapped(width, height, wstride, hstride, format);
  made.handle = handle;
  return made;
}
API rga_buffer_t wrapbuffer_virtualaddr_t(void *at, int width, int height, int wstride, int hstride, int format) {
  rga_buffer_t made = wrapped(width, height, wstride, hstride, format);
  made.vir_addr = at;
  return made;
}
API rga_buffer_t wrapbuffer_physicaladdr_t(void *at, int width, int height, int wstride, int hstride, int format) {
  rga_buffer_t made = wrapped(width, height, wstride, hstride, format);
  made.phy_addr = at;
  return made;
}
API rga_buffer_t wrapbuffer_fd_t(int fd, int width, int height, int wstride, int hstride, int format) {
  rga_buffer_t made = wrapped(width, height, wstride, hstride, format);
  made.fd = fd;
  return made;
}

API void imsetAlphaBit(rga_buffer_t *buf, uint8_t alpha0, uint8_t alpha1) { buf->alpha_bit.alpha0 = alpha0, buf->alpha_bit.alpha1 = alpha1; }
API void imsetOpacity(rga_buffer_t *buf, uint8_t alpha) { buf->global_alpha = alpha; }
API void imsetColorSpace(rga_buffer_t *buf, IM_COLOR_SPACE_MODE mode) { buf->color_space_mode = mode; }

API int get_perPixel_stride_from_format(int format) {
  float bytes = get_bpp_from_format(format);
  return bytes == 1.5f || (format >= RK_FORMAT_YCbCr_422_SP && format <= RK_FORMAT_YCrCb_422_P) ? 1 : (int)bytes;
}
API const char *translate_format_str(int format) {
  switch (format) {
    case RK_FORMAT_RGBA_8888: return "rgba_8888";
    case RK_FORMAT_RGBX_8888: return "rgbx_8888";
    case RK_FORMAT_RGB_888: return "rgb_888";
    case RK_FORMAT_BGRA_8888: return "bgra_8888";
    case RK_FORMAT_BGRX_8888: return "bgrx_8888";
    case RK_FORMAT_BGR_888: return "bgr_888";
    case RK_FORMAT_RGB_565: return "rgb_565";
    case RK_FORMAT_BGR_565: return "bgr_565";
    case RK_FORMAT_YCbCr_420_SP: return "cbcr420_sp";
    case RK_FORMAT_YCrCb_420_SP: return "crcb420_sp";
    case RK_FORMAT_YCbCr_420_P: return "cbcr420_p";
    case RK_FORMAT_YCrCb_420_P: return "crcb420_p";
    case RK_FORMAT_YCbCr_422_SP: return "cbcr422_sp";
    case RK_FORMAT_YCrCb_422_SP: return "crcb422_sp";
    case RK_FORMAT_YCbCr_400: return "cbcr400";
    case RK_FORMAT_YUYV_422: return "yuyv422";
    case RK_FORMAT_UYVY_422: return "uyvy422";
    default: return "UNF";
  }
}

/* The older interface. */
static rga_buffer_t whole_of(const rga_info_t *info, im_rect *part) {
  const rga_rect_t *rect = &info->rect;
  int width = rect->xoffset + rect->width, height = rect->yoffset + rect->height;
  int wstride = rect->wstride > width ? rect->wstride : width, hstride = rect->hstride > height ? rect->hstride : height;
  rga_buffer_t made = wrapped(wstride, hstride, wstride, hstride, rect->format ? rect->format : info->format);
  made.handle = (rga_buffer_handle_t)info->handle, made.fd = info->fd;
  made.vir_addr = info->virAddr, made.phy_addr = info->phyAddr;
  made.color_space_mode = info->color_space_mode;
  *part = (im_rect){rect->xoffset, rect->yoffset, rect->width, rect->height};
  return made;
}

static int turned(int rotation) {
  switch (rotation & 0x0f) {
    case HAL_TRANSFORM_FLIP_H: return IM_HAL_TRANSFORM_FLIP_H;
    case HAL_TRANSFORM_FLIP_V: return IM_HAL_TRANSFORM_FLIP_V;
    case HAL_TRANSFORM_ROT_90: return IM_HAL_TRANSFORM_ROT_90;
    case HAL_TRANSFORM_ROT_180: return IM_HAL_TRANSFORM_ROT_180;
    case HAL_TRANSFORM_ROT_270: return IM_HAL_TRANSFORM_ROT_270;
    case HAL_TRANSFORM_FLIP_H_V: return IM_HAL_TRANSFORM_FLIP_H_V;
    default: return 0;
  }
}

API int c_RkRgaInit(void) { return 0; }
API void c_RkRgaDeInit(void) {}
API void c_RkRgaGetContext(void **ctx) {
  if (ctx) *ctx = NULL;
}
API int c_RkRgaFlush(void) { return 0; }

API int c_RkRgaBlit(rga_info_t *src, rga_info_t *dst, rga_info_t *src1) {
  if (!src || !dst) return -EINVAL;
  im_rect from, to, under = WHOLE;
  rga_buffer_t source = whole_of(src, &from), target = whole_of(dst, &to), other;
  struct job job = {.kind = PROCESS, .src = &source, .dst = &target, .from = from, .to = to, .usage = turned(src->rotation)};
  int way = (int)(src->blend & 0xffff);
  if (way == 0x105 || way == 0x405) {
    job.usage |= IM_ALPHA_BLEND_SRC_OVER | (way == 0x405 ? IM_ALPHA_BLEND_PRE_MUL : 0);
    source.global_alpha = (int)(src->blend >> 16 & 0xff);
  } else if (way && way != 0x100) {
    fprintf(stderr, "E rga: blend %#x is not supported: must be 0x105 or 0x405, source over destination.\n", src->blend);
    return -EINVAL;
  }
  if (src1) other = whole_of(src1, &under), job.pat = &other, job.of_pat = under;
  return done(&job) == IM_STATUS_SUCCESS ? 0 : -EINVAL;
}

API int c_RkRgaColorFill(rga_info_t *dst) {
  im_rect to;
  if (!dst) return -EINVAL;
  rga_buffer_t target = whole_of(dst, &to);
  return filled(&target, to, dst->color, 0) == IM_STATUS_SUCCESS ? 0 : -EINVAL;
}

/* The names used by C++ programs. */
#define MANGLED(result, name, mangled, parameters, ...)   \
  result cpp_##name parameters __asm__(mangled);         \
  API result cpp_##name parameters __VA_ARGS__
#define SYNC int sync, int *fence
#define ANSWERED(call) \
  { return ended(call, fence, sync); }
MANGLED(IM_STATUS, imcopy, "_Z6imcopy12rga_buffer_tS_iPi", (const rga_buffer_t src, rga_buffer_t dst, SYNC), ANSWERED(imcopy_t(src, dst, 1)))
MANGLED(IM_STATUS, imresize, "_Z8imresize12rga_buffer_tS_ddiiPi", (const rga_buffer_t src, rga_buffer_t dst, double fx, double fy, int interpolation, SYNC),
        ANSWERED(imresize_t(src, dst, fx, fy, interpolation, 1)))
MANGLED(IM_STATUS, imcrop, "_Z6imcrop12rga_buffer_tS_7im_rectiPi", (const rga_buffer_t src, rga_buffer_t dst, im_rect rect, SYNC),
        ANSWERED(imcrop_t(src, dst, rect, 1)))
MANGLED(IM_STATUS, imtranslate, "_Z11imtranslate12rga_buffer_tS_iiiPi", (const rga_buffer_t src, rga_buffer_t dst, int x, int y, SYNC),
        ANSWERED(imtranslate_t(src, dst, x, y, 1)))
MANGLED(IM_STATUS, imcvtcolor, "_Z10imcvtcolor12rga_buffer_tS_iiiiPi", (rga_buffer_t src, rga_buffer_t dst, int sfmt, int dfmt, int mode, SYNC),
        ANSWERED(imcvtcolor_t(src, dst, sfmt, dfmt, mode, 1)))
MANGLED(IM_STATUS, imrotate, "_Z8imrotate12rga_buffer_tS_iiPi", (const rga_buffer_t src, rga_buffer_t dst, int rotation, SYNC),
        ANSWERED(imrotate_t(src, dst, rotation, 1)))
MANGLED(IM_STATUS, imflip, "_Z6imflip12rga_buffer_tS_iiPi", (const rga_buffer_t src, rga_buffer_t dst, int mode, SYNC), ANSWERED(imflip_t(src, dst, mode, 1)))
MANGLED(IM_STATUS, imblend, "_Z7imblend12rga_buffer_tS_iiPi", (const rga_buffer_t fg, rga_buffer_t bg, int mode, SYNC),
        ANSWERED(imblend_t(fg, (rga_buffer_t){0}, bg, mode, 1)))
MANGLED(IM_STATUS, imcomposite, "_Z11imcomposite12rga_buffer_tS_S_iiPi", (const rga_buffer_t a, const rga_buffer_t b, rga_buffer_t dst, int mode, SYNC),
        ANSWERED(imblend_t(a, b, dst, mode, 1)))
MANGLED(IM_STATUS, imfill, "_Z6imfill12rga_buffer_t7im_rectiiPi", (rga_buffer_t dst, im_rect rect, int color, SYNC), ANSWERED(filled(&dst, rect, color, 0)))
MANGLED(IM_STATUS, imrectangle, "_Z11imrectangle12rga_buffer_t7im_rectjiiPi", (rga_buffer_t dst, im_rect rect, uint32_t color, int thickness, SYNC),
        ANSWERED(filled(&dst, rect, (int)color, thickness)))
MANGLED(IM_STATUS, improcess, "_Z9improcess12rga_buffer_tS_S_7im_rectS0_S0_iPiP6im_opti",
        (rga_buffer_t src, rga_buffer_t dst, rga_buffer_t pat, im_rect srect, im_rect drect, im_rect prect, int acquired, int *fence, im_opt_t *opt, int usage), {
          (void)acquired;
          return ended(processed(&src, &dst, &pat, srect, drect, prect, usage, opt), fence, !(usage & IM_ASYNC));
        })
MANGLED(IM_STATUS, imcolorkey, "_Z10imcolorkey12rga_buffer_tS_17im_colorkey_rangeiiPi",
        (const rga_buffer_t src, rga_buffer_t dst, im_colorkey_range range, int mode, SYNC), ANSWERED(imcolorkey_t(src, dst, range, mode, 1)))
MANGLED(IM_STATUS, imquantize, "_Z10imquantize12rga_buffer_tS_5im_nniPi", (const rga_buffer_t src, rga_buffer_t dst, im_nn_t nn_info, SYNC),
        ANSWERED(imquantize_t(src, dst, nn_info, 1)))
MANGLED(IM_STATUS, imrop, "_Z5imrop12rga_buffer_tS_iiPi", (const rga_buffer_t src, rga_buffer_t dst, int rop_code, SYNC),
        ANSWERED(imrop_t(src, dst, rop_code, 1)))
MANGLED(IM_STATUS, imosd, "_Z5imosd12rga_buffer_tS_7im_rectP6im_osdiPi", (const rga_buffer_t osd, const rga_buffer_t dst, const im_rect rect, im_osd_t *how, SYNC),
        ANSWERED(imosd(osd, dst, rect, how, 1)))
MANGLED(IM_STATUS, impalette, "_Z9impalette12rga_buffer_tS_S_iPi", (rga_buffer_t src, rga_buffer_t dst, rga_buffer_t lut, SYNC),
        ANSWERED(impalette_t(src, dst, lut, 1)))
MANGLED(IM_STATUS, imgaussianBlur, "_Z14imgaussianBlur12rga_buffer_tS_iiiiiPi",
        (rga_buffer_t src, rga_buffer_t dst, int width, int height, int sigma_x, int sigma_y, SYNC), ANSWERED(imgaussianBlur_t(src, dst, width, height, sigma_x, sigma_y, 1)))
MANGLED(IM_STATUS, immosaic, "_Z8immosaic12rga_buffer_t7im_rectiiPi", (const rga_buffer_t image, im_rect rect, int mode, SYNC), ANSWERED(immosaic(image, rect, mode, 1)))

/* Apply an operation to each of several rectangles, until one is rejected. */
#define EACH(call)                                                                                                         \
  {                                                                                                                        \
    IM_STATUS status = IM_STATUS_SUCCESS;                                                                                  \
    if (!rects || count < 1) return refuse(IM_STATUS_INVALID_PARAM, "The array of rectangles is NULL or empty."); \
    for (int at = 0; at < count && status == IM_STATUS_SUCCESS; at++) status = call;                                       \
    return status;                                                                                                         \
  }
static IM_STATUS filled_each(const rga_buffer_t *dst, const im_rect *rects, int count, uint32_t color, int thickness)
    EACH(filled(dst, rects[at], (int)color, thickness))
static IM_STATUS mosaic_each(const rga_buffer_t *image, const im_rect *rects, int count, int mode) EACH(immosaic(*image, rects[at], mode, 1))
MANGLED(IM_STATUS, imfillArray, "_Z11imfillArray12rga_buffer_tP7im_rectijiPi", (rga_buffer_t dst, im_rect *rects, int count, uint32_t color, SYNC),
        ANSWERED(filled_each(&dst, rects, count, color, 0)))
MANGLED(IM_STATUS, imrectangleArray, "_Z16imrectangleArray12rga_buffer_tP7im_rectijiiPi",
        (rga_buffer_t dst, im_rect *rects, int count, uint32_t color, int thickness, SYNC), ANSWERED(filled_each(&dst, rects, count, color, thickness)))
MANGLED(IM_STATUS, immosaicArray, "_Z13immosaicArray12rga_buffer_tP7im_rectiiiPi", (const rga_buffer_t image, im_rect *rects, int count, int mode, SYNC),
        ANSWERED(mosaic_each(&image, rects, count, mode)))

/* Jobs of several tasks. */
static void freed(struct queue *queue) {
  free(queue->tasks);
  free(queue);
}

MANGLED(im_job_handle_t, imbeginJob, "_Z10imbeginJobm", (uint64_t flags), {
  (void)flags;
  static im_job_handle_t newest;
  struct queue *made = calloc(1, sizeof *made);
  if (!made) return 0;
  pthread_mutex_lock(&queues_lock);
  made->handle = ++newest;
  made->next = queues;
  queues = made;
  pthread_mutex_unlock(&queues_lock);
  return made->handle;
})
MANGLED(IM_STATUS, imcancelJob, "_Z11imcancelJobj", (im_job_handle_t handle), {
  struct queue *queue = taken(handle);
  if (!queue) return unknown(handle);
  freed(queue);
  return IM_STATUS_SUCCESS;
})
MANGLED(IM_STATUS, imendJob, "_Z8imendJobjiiPi", (im_job_handle_t handle, int sync, int acquired, int *fence), {
  (void)acquired;
  struct queue *queue = taken(handle);
  if (!queue) return ended(unknown(handle), fence, 1);
  IM_STATUS status = IM_STATUS_SUCCESS;
  for (int at = 0; at < queue->count && status == IM_STATUS_SUCCESS; at++) {
    struct task *task = &queue->tasks[at];
    struct job *job = &task->job;
    job->src = job->src ? &task->src : NULL, job->dst = job->dst ? &task->dst : NULL, job->pat = job->pat ? &task->pat : NULL;
    status = done(job);
  }
  freed(queue);
  return ended(status, fence, !(sync & IM_ASYNC));
})
#define ADDED(call)                        \
  {                                        \
    struct queue made = {.handle = handle}; \
    adding = &made;                        \
    IM_STATUS status = call;               \
    adding = NULL;                         \
    return joined(&made, status);          \
  }
#define TASK(name, mangled, parameters, call) MANGLED(IM_STATUS, name, mangled, parameters, ADDED(call))
#define JOB im_job_handle_t handle
TASK(imcopyTask, "_Z10imcopyTaskj12rga_buffer_tS_", (JOB, const rga_buffer_t src, rga_buffer_t dst), imcopy_t(src, dst, 1))
TASK(imresizeTask, "_Z12imresizeTaskj12rga_buffer_tS_ddi", (JOB, const rga_buffer_t src, rga_buffer_t dst, double fx, double fy, int interpolation),
     imresize_t(src, dst, fx, fy, interpolation, 1))
TASK(imcropTask, "_Z10imcropTaskj12rga_buffer_tS_7im_rect", (JOB, const rga_buffer_t src, rga_buffer_t dst, im_rect rect), imcrop_t(src, dst, rect, 1))
TASK(imtranslateTask, "_Z15imtranslateTaskj12rga_buffer_tS_ii", (JOB, const rga_buffer_t src, rga_buffer_t dst, int x, int y), imtranslate_t(src, dst, x, y, 1))
TASK(imcvtcolorTask, "_Z14imcvtcolorTaskj12rga_buffer_tS_iii", (JOB, rga_buffer_t src, rga_buffer_t dst, int sfmt, int dfmt, int mode),
     imcvtcolor_t(src, dst, sfmt, dfmt, mode, 1))
TASK(imrotateTask, "_Z12imrotateTaskj12rga_buffer_tS_i", (JOB, const rga_buffer_t src, rga_buffer_t dst, int rotation), imrotate_t(src, dst, rotation, 1))
TASK(imflipTask, "_Z10imflipTaskj12rga_buffer_tS_i", (JOB, const rga_buffer_t src, rga_buffer_t dst, int mode), imflip_t(src, dst, mode, 1))
TASK(imblendTask, "_Z11imblendTaskj12rga_buffer_tS_i", (JOB, const rga_buffer_t fg, rga_buffer_t bg, int mode), imblend_t(fg, (rga_buffer_t){0}, bg, mode, 1))
TASK(imcompositeTask, "_Z15imcompositeTaskj12rga_buffer_tS_S_i", (JOB, const rga_buffer_t fg, const rga_buffer_t bg, rga_buffer_t dst, int mode),
     imblend_t(fg, bg, dst, mode, 1))
TASK(imcolorkeyTask, "_Z14imcolorkeyTaskj12rga_buffer_tS_17im_colorkey_rangei", (JOB, const rga_buffer_t fg, rga_buffer_t bg, im_colorkey_range range, int mode),
     imcolorkey_t(fg, bg, range, mode, 1))
TASK(imosdTask, "_Z9imosdTaskj12rga_buffer_tS_7im_rectP6im_osd", (JOB, const rga_buffer_t osd, const rga_buffer_t bg, const im_rect rect, im_osd_t *how),
     imosd(osd, bg, rect, how, 1))
TASK(imquantizeTask, "_Z14imquantizeTaskj12rga_buffer_tS_5im_nn", (JOB, const rga_buffer_t src, rga_buffer_t dst, im_nn_t nn_info), imquantize_t(src, dst, nn_info, 1))
TASK(imropTask, "_Z9imropTaskj12rga_buffer_tS_i", (JOB, const rga_buffer_t src, rga_buffer_t dst, int rop_code), imrop_t(src, dst, rop_code, 1))
TASK(imfillTask, "_Z10imfillTaskj12rga_buffer_t7im_rectj", (JOB, rga_buffer_t dst, im_rect rect, uint32_t color), filled(&dst, rect, (int)color, 0))
TASK(imfillTaskArray, "_Z15imfillTaskArrayj12rga_buffer_tP7im_rectij", (JOB, rga_buffer_t dst, im_rect *rects, int count, uint32_t color),
     filled_each(&dst, rects, count, color, 0))
TASK(imrectangleTask, "_Z15imrectangleTaskj12rga_buffer_t7im_rectji", (JOB, rga_buffer_t dst, im_rect rect, uint32_t color, int thickness),
     filled(&dst, rect, (int)color, thickness))
TASK(imrectangleTaskArray, "_Z20imrectangleTaskArrayj12rga_buffer_tP7im_rectiji", (JOB, rga_buffer_t dst, im_rect *rects, int count, uint32_t color, int thickness),
     filled_each(&dst, rects, count, color, thickness))
TASK(immosaicTask, "_Z12immosaicTaskj12rga_buffer_t7im_recti", (JOB, const rga_buffer_t image, im_rect rect, int mode), immosaic(image, rect, mode, 1))
TASK(immosaicTaskArray, "_Z17immosaicTaskArrayj12rga_buffer_tP7im_rectii", (JOB, const rga_buffer_t image, im_rect *rects, int count, int mode),
     mosaic_each(&image, rects, count, mode))
TASK(impaletteTask, "_Z13impaletteTaskj12rga_buffer_tS_S_", (JOB, rga_buffer_t src, rga_buffer_t dst, rga_buffer_t lut), impalette_t(src, dst, lut, 1))
TASK(improcessTask, "_Z13improcessTaskj12rga_buffer_tS_S_7im_rectS0_S0_P6im_opti",
     (JOB, rga_buffer_t src, rga_buffer_t dst, rga_buffer_t pat, im_rect srect, im_rect drect, im_rect prect, im_opt_t *opt, int usage),
     processed(&src, &dst, &pat, srect, drect, prect, usage, opt))
MANGLED(IM_STATUS, immakeBorder, "_Z12immakeBorder12rga_buffer_tS_iiiiiiiiPi",
        (rga_buffer_t src, rga_buffer_t dst, int top, int bottom, int left, int right, int type, int value, int sync, int acquired, int *fence), {
          (void)acquired;
          if (type != IM_BORDER_CONSTANT && type != IM_BORDER_REFLECT && type != IM_BORDER_WRAP) {
            snprintf(last, sizeof last, "immakeBorder: border_type %d must be IM_BORDER_CONSTANT (0), REFLECT (2) or WRAP (3).", type);
            return ended(IM_STATUS_INVALID_PARAM, fence, 1);
          }
          struct job job = {.kind = BORDER, .is_check = type == IM_BORDER_CONSTANT, .src = &src, .dst = &dst, .interpolation = type};
          job.sizes[0] = top, job.sizes[1] = bottom, job.sizes[2] = left, job.sizes[3] = right;
          IM_STATUS status = done(&job);
          if (status == IM_STATUS_NOERROR) status = filled(&dst, WHOLE, value, 0);
          im_rect to = {left, top, src.width, src.height};
          if (type == IM_BORDER_CONSTANT && status == IM_STATUS_SUCCESS) status = process(&src, &dst, WHOLE, to, 0);
          return ended(status, fence, sync);
        })
MANGLED(IM_STATUS, imcheckHeader, "_Z13imcheckHeaderj", (im_api_version_t version), {
  (void)version;
  return IM_STATUS_NOERROR;
})
MANGLED(rga_buffer_handle_t, import_fd, "_Z15importbuffer_fdii", (int fd, int size), { return imported(BY_FD, (uint32_t)fd, (uint64_t)size); })
MANGLED(rga_buffer_handle_t, import_at, "_Z24importbuffer_virtualaddrPvi", (void *va, int size), { return imported(BY_ADDRESS, (uintptr_t)va, (uint64_t)size); })
MANGLED(rga_buffer_handle_t, import_phys, "_Z25importbuffer_physicaladdrmi", (uint64_t pa, int size), { return imported(BY_PHYSICAL, pa, (uint64_t)size); })
MANGLED(rga_buffer_handle_t, import_fd_of, "_Z15importbuffer_fdiiii", (int fd, int width, int height, int format),
        { return imported(BY_FD, (uint32_t)fd, bytes_of((uint64_t)width, (uint64_t)height, format)); })
MANGLED(rga_buffer_handle_t, import_at_of, "_Z24importbuffer_virtualaddrPviii", (void *va, int width, int height, int format),
        { return imported(BY_ADDRESS, (uintptr_t)va, bytes_of((uint64_t)width, (uint64_t)height, format)); })
MANGLED(rga_buffer_handle_t, import_phys_of, "_Z25importbuffer_physicaladdrmiii", (uint64_t pa, int width, int height, int format),
        { return imported(BY_PHYSICAL, pa, bytes_of((uint64_t)width, (uint64_t)height, format)); })
MANGLED(rga_buffer_t, wrap_handle, "_Z17wrapbuffer_handlejiii", (rga_buffer_handle_t handle, int width, int height, int format),
        { return wrapbuffer_handle_t(handle, width, height, width, height, format); })
MANGLED(rga_buffer_t, wrap_handle_of, "_Z17wrapbuffer_handlejiiiii", (rga_buffer_handle_t handle, int width, int height, int format, int wstride, int hstride),
        { return wrapbuffer_handle_t(handle, width, height, wstride, hstride, format); })
MANGLED(float, bpp, "_Z19get_bpp_from_formati", (int format), { return get_bpp_from_format(format); })
MANGLED(int, stride, "_Z31get_perPixel_stride_from_formati", (int format), { return get_perPixel_stride_from_format(format); })
MANGLED(const char *, format_str, "_Z20translate_format_stri", (int format), { return translate_format_str(format); })
