/* Run a model with both APIs: program MODEL; picture from standard input, outputs printed as numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rknn_api.h"

static uint8_t picture[6 * 10 * 3];

static int general(char *path) {
  rknn_context ctx = 0;
  if (rknn_init(&ctx, path, 0, 0, NULL) != RKNN_SUCC) return 1;
  rknn_input_output_num number;
  if (rknn_query(ctx, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number) != RKNN_SUCC || number.n_output != 2) return 2;
  rknn_input input = {.buf = picture, .size = sizeof picture, .type = RKNN_TENSOR_UINT8, .fmt = RKNN_TENSOR_NHWC};
  if (rknn_inputs_set(ctx, 1, &input) != RKNN_SUCC || rknn_run(ctx, NULL) != RKNN_SUCC) return 3;
  rknn_output outputs[2] = {{.index = 0, .want_float = 1}, {.index = 1, .want_float = 1}};
  if (rknn_outputs_get(ctx, 2, outputs, NULL) != RKNN_SUCC) return 4;
  for (uint32_t at = 0; at < outputs[1].size / sizeof(float); at++) printf("%.9g ", ((float *)outputs[1].buf)[at]);
  printf("\n");
  if (rknn_outputs_release(ctx, 2, outputs) != RKNN_SUCC || outputs[0].buf != NULL) return 5;
  rknn_context twin = 0;
  if (rknn_dup_context(&ctx, &twin) != RKNN_SUCC || rknn_destroy(twin) != RKNN_SUCC) return 6;
  return rknn_destroy(ctx) == RKNN_SUCC && rknn_destroy(ctx) == RKNN_ERR_CTX_INVALID ? 0 : 7;
}

static int zero_copy(void *model, uint32_t size) {
  rknn_context ctx = 0;
  if (rknn_init(&ctx, model, size, 0, NULL) != RKNN_SUCC) return 11;
  rknn_tensor_attr in, out[2];
  memset(&in, 0, sizeof in);
  memset(out, 0, sizeof out);
  if (rknn_query(ctx, RKNN_QUERY_NATIVE_INPUT_ATTR, &in, sizeof in) != RKNN_SUCC) return 12;
  if (rknn_query(ctx, RKNN_QUERY_INPUT_ATTR, &in, 372) != RKNN_ERR_PARAM_INVALID) return 13;
  in.type = RKNN_TENSOR_UINT8;
  rknn_tensor_mem *from = rknn_create_mem(ctx, in.size_with_stride), *to[2];
  if (from == NULL) return 14;
  rknn_tensor_mem *same = rknn_create_mem_from_fd(ctx, from->fd, from->virt_addr, in.size_with_stride, 0);
  if (same == NULL || same->phys_addr != from->phys_addr || rknn_set_io_mem(ctx, same, &in) != RKNN_SUCC) return 14;
  for (uint32_t at = 0; at < 2; at++) {
    out[at].index = at;
    if (rknn_query(ctx, RKNN_QUERY_OUTPUT_ATTR, &out[at], sizeof out[at]) != RKNN_SUCC) return 15;
    out[at].type = RKNN_TENSOR_FLOAT32;
    to[at] = rknn_create_mem2(ctx, out[at].n_elems * 4, RKNN_FLAG_MEMORY_CACHEABLE);
    if (to[at] == NULL || rknn_set_io_mem(ctx, to[at], &out[at]) != RKNN_SUCC) return 16;
  }
  for (int row = 0; row < 6; row++)
    memcpy((uint8_t *)from->virt_addr + row * in.w_stride * 3, picture + row * 30, 30);
  if (rknn_mem_sync(ctx, from, RKNN_MEMORY_SYNC_TO_DEVICE) != RKNN_SUCC || rknn_run(ctx, NULL) != RKNN_SUCC) return 17;
  const uint8_t *mapped = mmap(NULL, from->size, PROT_READ, MAP_SHARED, from->fd, from->offset);
  if (mapped == MAP_FAILED || memcmp(mapped, (uint8_t *)from->virt_addr + from->offset, from->size)) return 22;
  lseek(from->fd, 0, SEEK_SET); /* the board's own tables are there */
  if (mmap(NULL, from->size, PROT_READ, MAP_SHARED, from->fd, 0) != MAP_FAILED) return 23;
  for (uint32_t at = 0; at < out[1].n_elems; at++) printf("%.9g ", ((float *)to[1]->virt_addr)[at]);
  printf("\n");
  if (rknn_destroy_mem(ctx, from) != RKNN_SUCC || rknn_run(ctx, NULL) != RKNN_SUCC) return 18;
  if (rknn_destroy_mem(ctx, same) != RKNN_SUCC || rknn_run(ctx, NULL) != RKNN_ERR_FAIL) return 18;
  if (rknn_create_mem_from_fd(ctx, -1, NULL, 4096, 0) != NULL) return 19;
  if (rknn_destroy(ctx) != RKNN_SUCC) return 20;
  for (int at = 0; at < 2; at++)
    if (rknn_destroy_mem(0, to[at]) != RKNN_SUCC) return 21;
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 2 || fread(picture, 1, sizeof picture, stdin) != sizeof picture) return 90;
  static uint8_t model[1 << 20];
  FILE *file = fopen(argv[1], "rb");
  if (file == NULL) return 91;
  uint32_t size = (uint32_t)fread(model, 1, sizeof model, file);
  fclose(file);
  int code = general(argv[1]);
  return code ? code : zero_copy(model, size);
}
