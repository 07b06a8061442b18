// The 2D engine's combinations, arrays of rectangles, and jobs of several tasks, as C++ programs call them.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "im2d.hpp"
#include "im2d_task.h"

int main() {
  const int width = 32, height = 16;
  std::vector<uint8_t> from(width * height * 4, 0xf0), to(width * height * 4, 0x0f);
  rga_buffer_t src = wrapbuffer_virtualaddr(from.data(), width, height, RK_FORMAT_RGBA_8888);
  rga_buffer_t dst = wrapbuffer_virtualaddr(to.data(), width, height, RK_FORMAT_RGBA_8888);
  if (imrop(src, dst, IM_ROP_OR) != IM_STATUS_SUCCESS || to[0] != 0xff || to[3] != 0xf0) return 1;
  if (imrop(src, dst, 0x12) != IM_STATUS_INVALID_PARAM) return 2;
  if (imcolorkey(src, dst, im_colorkey_range{0xf0f0f0, 0xe0e0e0}) != IM_STATUS_SUCCESS || to[0] != 0xff) return 3;
  if (imcolorkey(src, dst, im_colorkey_range{0xf0f0f0, 0xe0e0e0}, IM_ALPHA_COLORKEY_INVERTED) != IM_STATUS_SUCCESS || to[0] != 0xf0) return 4;
  im_rect both[2] = {{0, 0, 4, 4}, {8, 8, 4, 4}};
  if (imfillArray(dst, both, 2, 0xff000001) != IM_STATUS_SUCCESS || to[0] != 1 || to[(8 * width + 8) * 4] != 1 || to[16] != 0xf0) return 5;
  if (immosaic(dst, im_rect{0, 0, 8, 8}, IM_MOSAIC_8) != IM_STATUS_SUCCESS || to[0] != 180 || to[7 * 4] != 180) return 6;
  if (immosaic(dst, im_rect{0, 0, 8, 8}, 9) != IM_STATUS_INVALID_PARAM || imgaussianBlur(src, dst, 3, 3, 1) != IM_STATUS_SUCCESS) return 7;
  if (imgaussianBlur(src, dst, 2, 3, 1) != IM_STATUS_INVALID_PARAM || imquantize(src, dst, im_nn_t{}) != IM_STATUS_NOT_SUPPORTED) return 8;

  im_job_handle_t job = imbeginJob();
  if (!job || imfillTask(job, dst, im_rect{0, 0, width, height}, 0xff030303) != IM_STATUS_SUCCESS) return 9;
  if (imcropTask(job, src, dst, im_rect{0, 0, 8, 8}) != IM_STATUS_SUCCESS || imrectangleTaskArray(job, dst, both, 2, 0xff000007, 2) != IM_STATUS_SUCCESS) return 10;
  if (imrotateTask(job, src, dst, IM_HAL_TRANSFORM_ROT_90) != IM_STATUS_SUCCESS || imcopyTask(job, src, wrapbuffer_virtualaddr(to.data(), 8, 8, RK_FORMAT_RGBA_8888)) != IM_STATUS_INVALID_PARAM) return 11;
  if (to[0] != 0xf0) return 12;  // nothing is done yet
  im_rect beyond[2] = {{24, 0, 4, 4}, {30, 0, 4, 4}};
  if (imfillTaskArray(job, dst, beyond, 2, 0xff050505) != IM_STATUS_INVALID_PARAM || imfillArray(dst, nullptr, 1, 0) != IM_STATUS_INVALID_PARAM) return 17;
  {
    rga_buffer_t gone = dst;
    if (imfillTask(job, gone, im_rect{16, 0, 4, 4}, 0xff090909) != IM_STATUS_SUCCESS) return 13;
    gone = {};
  }
  if (imendJob(job) != IM_STATUS_SUCCESS || to[16 * 4] != 9 || to[20 * 4] != 0xf0 || to[24 * 4] != 0xf0) return 14;
  if (imendJob(job) != IM_STATUS_ILLEGAL_PARAM || imcopyTask(job, src, dst) != IM_STATUS_ILLEGAL_PARAM) return 15;
  job = imbeginJob();
  if (imfillTask(job, dst, im_rect{0, 0, 4, 4}, 0) != IM_STATUS_SUCCESS || imcancelJob(job) != IM_STATUS_SUCCESS || to[0] != 0xf0) return 16;
  std::printf("%s\n", imStrError(imcancelJob(job)));
  return 0;
}
