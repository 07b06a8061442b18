/* The methods of tdnnf.idl, on top of the forward pass of tdnnf_image.c or tdnnf_hvx.c, which includes this file. */
#ifndef TDNNF_FASTRPC_H
#define TDNNF_FASTRPC_H

#include <stdlib.h>

#include "tdnnf.h" /* from hbrt idl */

#define MAX_ROWS 1100
#define WIDEST 256
#define TENSOR_BYTES (MAX_ROWS * WIDEST)
#define FIRST_BYTE 128
#define SUMS (FIRST_BYTE + TENSORS * TENSOR_BYTES)
#define WORKSPACE_BYTES (SUMS + 4 * TENSOR_BYTES)

#ifdef __hexagon__
#define RUN(call, steps, weights, output) run_counted(call, steps, weights, output)
#define TILE_MANAGER NULL
#else
#define RUN(call, steps, weights, output) run(call, steps, weights, 0, output)
extern char hbrt_dsp_tile_manager[]; /* an interface gets none, unlike an op */
#define TILE_MANAGER ((xvTileManager *)hbrt_dsp_tile_manager)
#endif

/* A handle owns the memory of the tensors: allocated once, and not for each call. */
int tdnnf_open(const char *uri, remote_handle64 *h) {
  (void)uri;
  uint8_t *workspace = aligned_alloc(128, WORKSPACE_BYTES);
  if (!workspace) return AEE_ENOMEMORY;
  memset(workspace, 0, FIRST_BYTE);
  for (uint32_t i = 0; i < TENSORS; i++) ((struct tensor *)workspace)[i].offset = FIRST_BYTE + i * TENSOR_BYTES;
  *h = (remote_handle64)(uintptr_t)workspace;
  return 0;
}

int tdnnf_close(remote_handle64 h) {
  free((void *)(uintptr_t)h);
  return 0;
}

int tdnnf_forward(remote_handle64 h, const uint8_t *steps, int steps_len, const uint8_t *input, int input_len,
                  const uint8_t *weights, int weights_len, uint8_t *output, int output_len, double scale,
                  int32_t zero_point, int32_t rows, int32_t columns, int32_t denominator, int32_t is_exact) {
  if (rows < 1 || columns < 1 || rows > MAX_ROWS || columns > WIDEST || input_len != rows * columns) return AEE_EBADPARM;
  uint8_t *workspace = (uint8_t *)(uintptr_t)h;
  struct tensor *in = (struct tensor *)workspace;
  in->scale = scale;
  in->zero_point = (uint32_t)zero_point & LEVELS;
  in->rows = (uint32_t)rows;
  in->columns = (uint32_t)columns;
  memcpy(workspace + in->offset, input, (size_t)input_len);
  const struct param param = {.weights_bytes = (uint32_t)weights_len,
                              .tensors_bytes = WORKSPACE_BYTES,
                              .count = (uint32_t)steps_len / sizeof(struct step),
                              .sums = SUMS,
                              .denominator = (uint32_t)denominator,
                              .is_exact = (uint32_t)is_exact,
                              .output_bytes = (uint32_t)output_len};
  struct call call = {&param, workspace, (int32_t *)(workspace + SUMS), TILE_MANAGER, 0};
  return RUN(&call, (const struct step *)steps, weights, output) ? AEE_EFAILED : 0;
}

int tdnnf_executed(remote_handle64 h, int64_t *packets, int64_t *instructions, int64_t *vectors) {
  (void)h;
#ifdef __hexagon__
  *packets = (int64_t)executed[0], *instructions = (int64_t)executed[1], *vectors = (int64_t)executed[2];
  return 0;
#else
  *packets = *instructions = *vectors = 0;
  return AEE_EUNSUPPORTED;
#endif
}

int tdnnf_touch(remote_handle64 h, const uint8_t *input, int input_len, const uint8_t *weights, int weights_len,
                uint8_t *output, int output_len) {
  (void)h, (void)input, (void)input_len, (void)weights, (void)weights_len, (void)output, (void)output_len;
  return 0;
}

#define W(n) const uint8_t *w##n __attribute__((unused)), int w##n##_len __attribute__((unused))

int tdnnf_touch_each(remote_handle64 h, const uint8_t *input, int input_len, W(0), W(1), W(2), W(3), W(4), W(5), W(6), W(7),
                     W(8), W(9), W(10), W(11), W(12), W(13), W(14), W(15), W(16), W(17), W(18), W(19), W(20),
                     uint8_t *output, int output_len) {
  (void)h, (void)input, (void)input_len, (void)output, (void)output_len;
  return 0;
}

#endif /* TDNNF_FASTRPC_H */
