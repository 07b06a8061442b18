/* Products of matrices: A of ones and twos times B of small numbers, in two layouts and two sizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_matmul_api.h"

#define CHECK(what) \
  if (!(what)) return __LINE__
enum { K = 64, N = 96 };

static int8_t a_at(int m, int k) { return (int8_t)(1 + (m + k) % 2); }
static int8_t b_at(int k, int n) { return (int8_t)((k * 7 + n * 3) % 11 - 5); }

static int product(rknn_matmul_layout layout) {
  rknn_matmul_shape shapes[2] = {{1, K, N}, {5, K, N}};
  rknn_matmul_info info = {.M = 1, .K = K, .N = N, .type = RKNN_INT8_MM_INT8_TO_INT32, .B_layout = layout};
  rknn_matmul_io_attr attrs[2];
  rknn_matmul_ctx ctx = 0;
  CHECK(rknn_matmul_create_dynamic_shape(&ctx, &info, 2, shapes, attrs) == RKNN_SUCC);
  CHECK(attrs[1].A.size == 5 * K && attrs[1].B.size == K * N && attrs[1].C.size == 5 * N * 4);
  CHECK(rknn_matmul_set_dynamic_shape(ctx, &shapes[1]) == RKNN_SUCC);
  rknn_tensor_mem *a = rknn_create_mem(ctx, attrs[1].A.size), *b = rknn_create_mem(ctx, attrs[1].B.size);
  rknn_tensor_mem *c = rknn_create_mem(ctx, attrs[1].C.size);
  CHECK(a != NULL && b != NULL && c != NULL);
  int8_t plain[K * N];
  for (int m = 0; m < 5; m++)
    for (int k = 0; k < K; k++) ((int8_t *)a->virt_addr)[m * K + k] = a_at(m, k);
  for (int k = 0; k < K; k++)
    for (int n = 0; n < N; n++) plain[k * N + n] = b_at(k, n);
  if (layout == RKNN_MM_LAYOUT_NATIVE) {
    CHECK(rknn_B_normal_layout_to_native_layout(plain, b->virt_addr, K, N, &info) == RKNN_SUCC);
  } else {
    memcpy(b->virt_addr, plain, sizeof plain);
  }
  CHECK(rknn_matmul_set_io_mem(ctx, a, &attrs[1].A) == RKNN_SUCC);
  CHECK(rknn_matmul_run(ctx) == RKNN_ERR_FAIL);
  CHECK(rknn_matmul_set_io_mem(ctx, b, &attrs[1].B) == RKNN_SUCC);
  CHECK(rknn_matmul_set_io_mem(ctx, a, &attrs[1].C) == RKNN_ERR_PARAM_INVALID);
  CHECK(rknn_matmul_set_io_mem(ctx, c, &attrs[1].C) == RKNN_SUCC);
  CHECK(rknn_matmul_set_core_mask(ctx, RKNN_NPU_CORE_0_1) == RKNN_SUCC && rknn_matmul_run(ctx) == RKNN_SUCC);
  float scales[2] = {0, 0}, all[N];
  for (int n = 0; n < N; n++) all[n] = (float)n;
  rknn_quant_params params = {.name = "B", .scale = all, .scale_len = N};
  CHECK(rknn_matmul_set_quant_params(ctx, &params) == RKNN_SUCC);
  memset(&params, 0, sizeof params);
  CHECK(rknn_matmul_get_quant_params(ctx, &params, &scales[0]) == RKNN_SUCC && scales[0] == N - 1 && scales[1] == 0);
  CHECK(params.scale_len == N && !memcmp(params.scale, all, sizeof all) && params.zp_len == 1 && !params.zp[0]);
  CHECK(rknn_matmul_get_quant_params(ctx, &params, NULL) == RKNN_ERR_PARAM_INVALID);
  for (int m = 0; m < 5; m++)
    for (int n = 0; n < N; n++) {
      int32_t sum = 0;
      for (int k = 0; k < K; k++) sum += a_at(m, k) * b_at(k, n);
      CHECK(((int32_t *)c->virt_addr)[m * N + n] == sum);
    }
  CHECK(rknn_destroy_mem(ctx, a) == RKNN_SUCC && rknn_destroy_mem(ctx, b) == RKNN_SUCC);
  CHECK(rknn_matmul_destroy(ctx) == RKNN_SUCC && rknn_matmul_run(ctx) == RKNN_ERR_CTX_INVALID);
  return rknn_destroy_mem(0, c);
}

static int scaled(void) {
  rknn_matmul_info info = {.M = 1, .K = 32, .N = 32, .type = RKNN_FLOAT16_MM_INT8_TO_FLOAT32};
  rknn_matmul_io_attr attr;
  rknn_matmul_ctx ctx = 0;
  CHECK(rknn_matmul_create(&ctx, &info, &attr) == RKNN_SUCC);
  rknn_tensor_mem *mems[3] = {rknn_create_mem(ctx, attr.A.size), rknn_create_mem(ctx, attr.B.size),
                              rknn_create_mem(ctx, attr.C.size)};
  for (int at = 0; at < 32; at++) ((uint16_t *)mems[0]->virt_addr)[at] = 0x3c00; /* 1.0 */
  memset(mems[1]->virt_addr, 3, mems[1]->size);
  float scale[32];
  int32_t zero[32];
  for (int at = 0; at < 32; at++) scale[at] = (float)at, zero[at] = 1;
  rknn_quant_params params = {.name = "B", .scale = scale, .scale_len = 32, .zp = zero, .zp_len = 32};
  CHECK(rknn_matmul_set_quant_params(ctx, &params) == RKNN_SUCC);
  CHECK(rknn_matmul_get_quant_params(ctx, &params, scale) == RKNN_ERR_PARAM_INVALID);
  params.scale_len = 7;
  CHECK(rknn_matmul_set_quant_params(ctx, &params) == RKNN_ERR_PARAM_INVALID);
  CHECK(rknn_matmul_set_io_mem(ctx, mems[0], &attr.A) == RKNN_SUCC);
  CHECK(rknn_matmul_set_io_mem(ctx, mems[1], &attr.B) == RKNN_SUCC);
  CHECK(rknn_matmul_set_io_mem(ctx, mems[2], &attr.C) == RKNN_SUCC && rknn_matmul_run(ctx) == RKNN_SUCC);
  for (int at = 0; at < 32; at++) CHECK(((float *)mems[2]->virt_addr)[at] == 64.0f * (float)at);
  CHECK(rknn_matmul_destroy(ctx) == RKNN_SUCC);
  for (int at = 0; at < 3; at++) CHECK(rknn_destroy_mem(0, mems[at]) == RKNN_SUCC);
  return 0;
}

int main(void) {
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_io_attr attr;
  rknn_matmul_info info = {.M = 1, .K = 33, .N = 32, .type = RKNN_INT8_MM_INT8_TO_INT32};
  CHECK(rknn_matmul_create(&ctx, &info, &attr) == RKNN_ERR_PARAM_INVALID);
  CHECK(rknn_matmul_create(NULL, &info, &attr) == RKNN_ERR_PARAM_INVALID);
  CHECK(rknn_matmul_create(&ctx, NULL, NULL) == RKNN_ERR_PARAM_INVALID);
  rknn_matmul_shape shape = {1, 32, 32};
  CHECK(rknn_matmul_create_dynamic_shape(&ctx, &info, -1, &shape, &attr) == RKNN_ERR_PARAM_INVALID);
  info.K = 32;
  CHECK(rknn_B_normal_layout_to_native_layout(NULL, NULL, 32, 32, &info) == RKNN_ERR_PARAM_INVALID);
  int code = product(RKNN_MM_LAYOUT_NORM);
  if (code == 0) code = product(RKNN_MM_LAYOUT_NATIVE);
  if (code == 0) code = scaled();
  printf("%d\n", code);
  return code != 0;
}
