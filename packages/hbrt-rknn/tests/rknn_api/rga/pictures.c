/* The 2D engine in C: crop, scale, rotate, convert, fill and blend pictures, and its errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "RgaApi.h"
#include "RgaUtils.h"
#include "im2d.h"
#include "rknn_api.h"

#define CHECK(what) \
  if (!(what)) return __LINE__
enum { W = 32, H = 16 };

static uint8_t rgb[H][W][3], out[64 * 64 * 4];

static int crops_and_turns(void) {
  rga_buffer_t src = wrapbuffer_virtualaddr(rgb, W, H, RK_FORMAT_RGB_888), dst = wrapbuffer_virtualaddr(out, 8, 4, RK_FORMAT_RGB_888);
  im_rect part = {4, 2, 8, 4}, none = {0, 0, 0, 0};
  CHECK(imcheck(src, dst, part, none) == IM_STATUS_NOERROR);
  CHECK(imcrop(src, dst, part) == IM_STATUS_SUCCESS);
  for (int y = 0; y < 4; y++) CHECK(memcmp(out + y * 24, rgb[y + 2][4], 24) == 0);
  dst = wrapbuffer_virtualaddr(out, H, W, RK_FORMAT_BGR_888);
  CHECK(imrotate(src, dst, IM_HAL_TRANSFORM_ROT_90) == IM_STATUS_SUCCESS);
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++)
      for (int c = 0; c < 3; c++) CHECK(out[(x * H + H - 1 - y) * 3 + 2 - c] == rgb[y][x][c]);
  dst = wrapbuffer_virtualaddr(out, W, H, RK_FORMAT_RGBA_8888, 64, 64);
  CHECK(imflip(src, dst, IM_HAL_TRANSFORM_FLIP_H) == IM_STATUS_SUCCESS);
  CHECK(memcmp(out + (3 * 64 + 5) * 4, rgb[3][W - 6], 3) == 0 && out[(3 * 64 + 5) * 4 + 3] == 255);
  dst = wrapbuffer_virtualaddr(out, 2 * W, 2 * H, RK_FORMAT_RGB_888);
  CHECK(imresize(src, dst) == IM_STATUS_SUCCESS && imresize(src, dst, 2, 2, INTER_CUBIC, 1) == IM_STATUS_SUCCESS);
  CHECK(imcopy(src, dst) == IM_STATUS_INVALID_PARAM && strstr(imStrError(IM_STATUS_INVALID_PARAM), "32 x 16 and 64 x 32 must be equal"));
  return 0;
}

static int blits(void) {
  rga_info_t src = {.fd = -1, .virAddr = rgb, .mmuFlag = 1}, dst = {.fd = -1, .virAddr = out, .mmuFlag = 1};
  CHECK(sizeof src == 704 && RgaInit(&(void *){0}) == 0);
  rga_set_rect(&src.rect, 4, 2, 8, 4, W, H, RK_FORMAT_RGB_888);
  rga_set_rect(&dst.rect, 0, 0, 4, 8, 4, 8, RK_FORMAT_BGR_888);
  rga_set_rotation(&src, 90);
  CHECK(c_RkRgaBlit(&src, &dst, NULL) == 0 && RgaFlush() == 0);
  for (int y = 0; y < 4; y++)
    for (int x = 0; x < 8; x++)
      for (int c = 0; c < 3; c++) CHECK(out[(x * 4 + 3 - y) * 3 + 2 - c] == rgb[y + 2][x + 4][c]);
  rga_set_rect(&dst.rect, 2, 2, 4, 4, 64, 64, RK_FORMAT_RGBA_8888);
  dst.color = 0x40302010;
  CHECK(c_RkRgaColorFill(&dst) == 0 && memcmp(out + (5 * 64 + 5) * 4, "\x10\x20\x30\x40", 4) == 0);
  src.blend = 0xff0200;
  CHECK(c_RkRgaBlit(&src, &dst, NULL) == -EINVAL && c_RkRgaBlit(NULL, &dst, NULL) == -EINVAL);
  RgaDeInit(NULL);
  return 0;
}

static int converts(void) {
  memset(rgb, 200, sizeof rgb);
  rga_buffer_t src = wrapbuffer_virtualaddr(rgb, W, H, RK_FORMAT_RGB_888), yuv = wrapbuffer_virtualaddr(out, W, H, RK_FORMAT_YCbCr_420_SP);
  CHECK(imcvtcolor(src, yuv, RK_FORMAT_RGB_888, RK_FORMAT_YCbCr_420_SP) == IM_STATUS_SUCCESS);
  CHECK(out[0] == 188 && out[W * H - 1] == 188 && out[W * H] == 128 && out[W * H * 3 / 2 - 1] == 128); /* 16 + 219 * 200 / 255 */
  CHECK(imcvtcolor(yuv, src, RK_FORMAT_YCbCr_420_SP, RK_FORMAT_RGB_888) == IM_STATUS_SUCCESS && rgb[7][9][1] == 200);
  yuv.width = 30, yuv.height = 15;
  CHECK(imresize(yuv, src) == IM_STATUS_INVALID_PARAM && strstr(imStrError(IM_STATUS_INVALID_PARAM), "must have even numbers"));
  CHECK(get_bpp_from_format(RK_FORMAT_YCbCr_420_SP) == 1.5f && strcmp(translate_format_str(RK_FORMAT_RGB_888), "rgb_888") == 0);
  return 0;
}

static int fills_and_blends(void) {
  rga_buffer_t dst = wrapbuffer_virtualaddr(out, W, H, RK_FORMAT_RGBA_8888);
  im_rect all = {0, 0, W, H}, half = {0, 0, W / 2, H};
  CHECK(imfill(dst, all, 0xff302010) == IM_STATUS_SUCCESS && imfill(dst, half, 0x80405060) == IM_STATUS_SUCCESS);
  CHECK(memcmp(out, "\x60\x50\x40\x80", 4) == 0 && memcmp(out + W * 2, "\x10\x20\x30\xff", 4) == 0);
  uint8_t red[W * H * 4];
  for (int at = 0; at < W * H; at++) memcpy(red + 4 * at, "\xff\0\0\x80", 4);
  rga_buffer_t above = wrapbuffer_virtualaddr(red, W, H, RK_FORMAT_RGBA_8888);
  CHECK(imblend(above, dst, IM_ALPHA_BLEND_SRC_OVER | IM_ALPHA_BLEND_PRE_MUL) == IM_STATUS_SUCCESS);
  CHECK(out[W * 2] == 136 && out[W * 2 + 1] == 16 && out[W * 2 + 3] == 255); /* 255 * 128 / 255 + 16 * 127 / 255 */
  CHECK(improcess(above, dst, (rga_buffer_t){0}, all, all, all, IM_MOSAIC) == IM_STATUS_NOT_SUPPORTED);
  return 0;
}

static int refuses(void) {
  rga_buffer_t odd = wrapbuffer_virtualaddr(rgb, 30, 16, RK_FORMAT_RGB_888, 30, 16), dst = wrapbuffer_virtualaddr(out, 8, 4, RK_FORMAT_RGB_888);
  CHECK(imresize(odd, dst) == IM_STATUS_INVALID_PARAM && strstr(imStrError(IM_STATUS_INVALID_PARAM), "must be a multiple of 4"));
  rga_buffer_t src = wrapbuffer_virtualaddr(rgb, W, H, RK_FORMAT_RGB_888), tiny = wrapbuffer_virtualaddr(out, 2, 2, RK_FORMAT_RGBA_8888);
  CHECK(imresize(src, tiny) == IM_STATUS_SUCCESS);
  src.width = src.wstride = 64, src.height = src.hstride = 8;
  CHECK(imcheck(src, tiny, ((im_rect){0, 0, 64, 8}), ((im_rect){0, 0, 2, 2})) == IM_STATUS_INVALID_PARAM);
  CHECK(imcrop(src, dst, ((im_rect){60, 0, 8, 4})) == IM_STATUS_INVALID_PARAM);
  src.format = 0x99 << 8;
  CHECK(imresize(src, dst) == IM_STATUS_NOT_SUPPORTED && releasebuffer_handle(77) == IM_STATUS_INVALID_PARAM);
  return strstr(querystring(RGA_ALL), "RGA version") ? 0 : __LINE__;
}

static int in_device_memory(void) {
  rknn_tensor_mem *made[2] = {rknn_create_mem2(0, 4096, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT), rknn_create_mem2(0, 4096, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT)};
  CHECK(made[0] && made[1] && made[0]->fd != made[1]->fd);
  memset(made[0]->virt_addr, 7, 4096);
  memset(made[1]->virt_addr, 9, 4096);
  im_handle_param_t of = {W, H, RK_FORMAT_RGB_888};
  rga_buffer_handle_t first = importbuffer_fd(made[0]->fd, &of), second = importbuffer_physicaladdr(made[1]->phys_addr, &of);
  CHECK(first && second && !importbuffer_virtualaddr(NULL, &of) && !importbuffer_fd(999, &of));
  CHECK(imcopy(wrapbuffer_handle(first, W, H, RK_FORMAT_RGB_888), wrapbuffer_handle(second, W, H, RK_FORMAT_RGB_888)) == IM_STATUS_SUCCESS);
  CHECK(((uint8_t *)made[1]->virt_addr)[W * H * 3 - 1] == 7 && ((uint8_t *)made[1]->virt_addr)[W * H * 3] == 9);
  CHECK(imcopy(wrapbuffer_fd(made[1]->fd, W, H, RK_FORMAT_RGB_888), wrapbuffer_virtualaddr(rgb, W, H, RK_FORMAT_RGB_888)) == IM_STATUS_SUCCESS);
  CHECK(rgb[H - 1][W - 1][2] == 7 && releasebuffer_handle(first) == IM_STATUS_SUCCESS && releasebuffer_handle(second) == IM_STATUS_SUCCESS);
  CHECK(imcopy(wrapbuffer_handle(first, W, H, RK_FORMAT_RGB_888), wrapbuffer_virtualaddr(rgb, W, H, RK_FORMAT_RGB_888)) == IM_STATUS_INVALID_PARAM);
  return rknn_destroy_mem(0, made[0]) || rknn_destroy_mem(0, made[1]) ? __LINE__ : 0;
}

int main(void) {
  for (int at = 0; at < W * H * 3; at++) ((uint8_t *)rgb)[at] = (uint8_t)(at * 37 + at / 96);
  int code = crops_and_turns();
  if (code == 0) code = blits();
  if (code == 0) code = converts();
  if (code == 0) code = fills_and_blends();
  if (code == 0) code = refuses();
  if (code == 0) code = in_device_memory();
  printf("%d\n", code);
  return code != 0;
}
