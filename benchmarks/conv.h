/* A 3x3 convolution over int8, as plain C: benchmarks/conv.py calls it in process, and conv_image.c tile by tile. */
#ifndef CONV_H
#define CONV_H

#include <stddef.h>
#include <stdint.h>

#define CONV_CMD 0x1000
#define CONV_SHIFT 4

typedef struct {
  uint64_t source; /* physical address of (rows + 2) x (width + 2) bytes */
  uint32_t width, rows;
  int8_t weights[16]; /* 9 of them */
} conv_param;

/* `rows` of `width`, saturated; the source begins one row above and one column to the left. */
static __attribute__((noinline)) void conv_rows(const int8_t *restrict source, size_t source_pitch, int8_t *restrict out, size_t out_pitch,
                             uint32_t width, uint32_t rows, const int8_t weights[9]) {
  const int16_t w0 = weights[0], w1 = weights[1], w2 = weights[2], w3 = weights[3], w4 = weights[4], w5 = weights[5],
                w6 = weights[6], w7 = weights[7], w8 = weights[8];
  for (uint32_t row = 0; row < rows; row++) {
    const int8_t *a = source + row * source_pitch, *b = a + source_pitch, *c = b + source_pitch;
    int8_t *to = out + row * out_pitch;
    for (uint32_t x = 0; x < width; x++) {
      int32_t sum = w0 * a[x] + w1 * a[x + 1] + w2 * a[x + 2] + w3 * b[x] + w4 * b[x + 1] + w5 * b[x + 2] +
                    w6 * c[x] + w7 * c[x + 1] + w8 * c[x + 2];
      sum >>= CONV_SHIFT;
      to[x] = (int8_t)(sum > 127 ? 127 : sum < -128 ? -128 : sum);
    }
  }
}

#endif
