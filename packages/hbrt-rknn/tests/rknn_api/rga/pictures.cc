// As a C++ program calls the 2D engine: by default arguments, and by the names that a compiler makes of overloads.
#include <fcntl.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "RockchipRga.h"
#include "im2d.hpp"
#include "im2d_api/im2d.hpp"

int main() {
  const int width = 32, height = 16;
  std::vector<uint8_t> from(width * height * 3, 100), to(width * height * 12, 0);
  rga_buffer_handle_t source = importbuffer_virtualaddr(from.data(), width, height, RK_FORMAT_RGB_888);
  rga_buffer_handle_t target = importbuffer_virtualaddr(to.data(), static_cast<int>(to.size()));
  rga_buffer_t src = wrapbuffer_handle(source, width, height, RK_FORMAT_RGB_888);
  rga_buffer_t dst = wrapbuffer_handle(target, width * 2, height * 2, RK_FORMAT_RGB_888, width * 2, height * 2);
  if (imcheck(src, dst, {}, {}) != IM_STATUS_NOERROR || imresize(src, dst) != IM_STATUS_SUCCESS || to[500] != 100) return 1;
  if (imfill(dst, im_rect{0, 0, 8, 8}, 0x010203) != IM_STATUS_SUCCESS || to[0] != 3) return 2;
  if (imrectangle(dst, im_rect{8, 8, 16, 16}, 0xff, 2) != IM_STATUS_SUCCESS || to[(8 * 64 + 8) * 3] != 255) return 3;
  rga_info_t filled{};
  filled.fd = -1, filled.virAddr = to.data(), filled.color = 0x0a0b0c;
  rga_set_rect(&filled.rect, 0, 0, 8, 8, width * 2, height * 2, RK_FORMAT_RGB_888);
  if (RockchipRga::get().RkRgaCollorFill(&filled) != 0 || to[2] != 0x0a) return 8;
  rga_buffer_t plain = wrapbuffer_virtualaddr(to.data(), width + 8, height + 8, RK_FORMAT_RGB_888);
  if (immakeBorder(src, plain, 4, 4, 4, 4, IM_BORDER_CONSTANT, 0x050505) != IM_STATUS_SUCCESS) return 4;
  if (to[0] != 5 || to[(4 * 40 + 4) * 3] != 100) return 5;
  if (immakeBorder(src, plain, 4, 4, 4, 4, IM_BORDER_REFLECT) != IM_STATUS_SUCCESS || to[0] != 100) return 14;
  if (immakeBorder(src, plain, 4, 4, 4, 0, IM_BORDER_WRAP) != IM_STATUS_INVALID_PARAM) return 15;
  if (imrectangle(dst, im_rect{0, 0, 8, 8}, 0, 1) != IM_STATUS_INVALID_PARAM || imrectangle(dst, im_rect{0, 0, 8, 8}, 7, 9) != IM_STATUS_SUCCESS) return 16;
  if (imrotate(src, src, IM_HAL_TRANSFORM_ROT_90 | IM_HAL_TRANSFORM_ROT_180) != IM_STATUS_INVALID_PARAM) return 17;
  if (imtranslate(src, dst, 2, 2) != IM_STATUS_INVALID_PARAM || imtranslate(src, plain, -2, 2) != IM_STATUS_INVALID_PARAM) return 18;
  im_opt_t opt{};
  opt.color = 0x0a0a0a;
  if (improcess(src, plain, {}, {}, im_rect{0, 0, 8, 8}, {}, -1, nullptr, &opt, IM_COLOR_FILL) != IM_STATUS_SUCCESS || to[0] != 10) return 6;
  if (get_bpp_from_format(RK_FORMAT_RGB_888) != 3 || imcheckHeader() != IM_STATUS_NOERROR) return 7;
  if (imcheck({}, plain, {}, im_rect{0, 0, 8, 8}, IM_COLOR_FILL) != IM_STATUS_NOERROR || imcheck({}, plain, {}, {}, IM_MOSAIC) != IM_STATUS_NOERROR) return 9;
  if (imcheck_composite(src, src, src, {}, {}, {}) != IM_STATUS_NOERROR) return 13;
  int fences[2] = {0, 0};
  if (imcopy(src, src, 0, &fences[0]) != IM_STATUS_SUCCESS || imcopy(src, src, 1, &fences[1]) != IM_STATUS_SUCCESS) return 10;
  if (fences[0] <= 0 || fences[1] != -1 || imsync(fences[0]) != IM_STATUS_SUCCESS || fcntl(fences[0], F_GETFD) != -1) return 11;
  if (imcopy(src, dst, 0, &fences[1]) == IM_STATUS_SUCCESS || fences[1] != -1) return 12;
  std::printf("%s\n", imStrError(imcopy(src, dst)));
  return releasebuffer_handle(source) == IM_STATUS_SUCCESS && releasebuffer_handle(target) == IM_STATUS_SUCCESS ? 0 : 8;
}
