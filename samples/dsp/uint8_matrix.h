/* Arithmetic on matrices of asymmetric uint8 in plain C: products and sums in int32, and back to uint8.
 *
 * r = scale * (q - zero_point). Each function returns the same as the one with its name in
 * samples/arm/asr/recognizer/matrix.py, bit for bit. The cost of each loop in vector instructions is charged next to
 * it; for a Hexagon, uint8_hvx.h has the loops.
 *
 * Source: Youdao's account of speech recognition on a DSP, 4.2, https://segmentfault.com/a/1190000039169471
 */
#ifndef UINT8_MATRIX_H
#define UINT8_MATRIX_H

#include <stdint.h>
#include <string.h>

#include "hb_dsp.h"

#define BLOCK_ROWS 4
#define BLOCK_COLUMNS 32
#define LEVELS 255

/* The compiler generates one function per kind of CPU, and the loader picks the one that fits. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define FOR_EACH_CPU __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define FOR_EACH_CPU
#endif

/* A matrix of uint8, or of float with scale 1; rows are contiguous. */
struct tensor {
  double scale;
  uint32_t zero_point, rows, columns;
  uint32_t offset; /* of its values in the block of tensors */
};

#ifdef __hexagon__
#include "uint8_hvx.h"
#else

/* 4 rows by 32 columns of a product. a: 4 rows, pitch bytes apart; w: terms rows of 32. All CPUs give the same sums. */
FOR_EACH_CPU void block_of_sums(const uint8_t *a, uint32_t pitch, const uint8_t *w, uint32_t terms,
                                uint32_t sums[BLOCK_ROWS][BLOCK_COLUMNS]) {
  memset(sums, 0, sizeof(uint32_t[BLOCK_ROWS][BLOCK_COLUMNS]));
  for (uint32_t term = 0; term < terms; term++, w += BLOCK_COLUMNS)
    for (uint32_t row = 0; row < BLOCK_ROWS; row++) {
      const uint16_t factor = a[row * pitch + term];
      for (uint32_t column = 0; column < BLOCK_COLUMNS; column++)
        sums[row][column] += (uint16_t)(factor * w[column]); /* at most 65025 */
    }
}

FOR_EACH_CPU void find_range(const int32_t *sums, uint64_t count, int32_t *low, int32_t *high) {
  int32_t least = 0, most = 0; /* the range includes 0 */
  for (uint64_t i = 0; i < count; i++) {
    least = XT_MIN(least, sums[i]);
    most = XT_MAX(most, sums[i]);
  }
  *low = least;
  *high = most;
}

FOR_EACH_CPU void scale_down(const int32_t *sums, uint8_t *out, uint64_t count, int32_t multiplier, int32_t half, int shift,
                             int32_t zero) {
  for (uint64_t i = 0; i < count; i++) {
    const int32_t q = ((sums[i] * multiplier + half) >> shift) + zero;
    out[i] = (uint8_t)XT_MIN(XT_MAX(q, 0), LEVELS);
  }
}

/* sums = by_a * (a - its zero point) + by_b * (b - its zero point); b is one row if row_step is 0. */
FOR_EACH_CPU void weighted_sum(const uint8_t *a, const uint8_t *b, int32_t *sums, uint32_t rows, uint32_t columns,
                               uint32_t row_step, int32_t by_a, int32_t by_b, int32_t zero_a, int32_t zero_b) {
  for (uint32_t row = 0; row < rows; row++, a += columns, b += row_step, sums += columns)
    for (uint32_t i = 0; i < columns; i++) sums[i] = by_a * (a[i] - zero_a) + by_b * (b[i] - zero_b);
}

FOR_EACH_CPU void products(const uint8_t *a, const uint8_t *b, int32_t *sums, uint32_t rows, uint32_t columns,
                           int32_t zero_a, int32_t zero_b) {
  for (uint32_t row = 0; row < rows; row++, a += columns, sums += columns)
    for (uint32_t i = 0; i < columns; i++) sums[i] = (a[i] - zero_a) * (b[i] - zero_b);
}

FOR_EACH_CPU void at_least(const uint8_t *in, uint8_t *out, uint64_t count, uint8_t least) {
  for (uint64_t i = 0; i < count; i++) out[i] = XT_MAX(in[i], least);
}

#endif /* __hexagon__ */

/* int32 to uint8 by the range of the numbers; L is denominator. Returns L1, 0 if everything would be lost. */
static int32_t requantize(const int32_t *sums, double scale, uint32_t denominator, int is_exact, struct tensor *out,
                          uint8_t *values) {
  const uint64_t count = (uint64_t)out->rows * out->columns;
  int32_t low, high;
  find_range(sums, count, &low, &high);
  hb_dsp_charge(count, 32, (struct hb_dsp_operations){.load = 1, .alu = 2});
  if (low == high) {
    out->scale = 1;
    out->zero_point = 0;
    memset(values, 0, count);
    return (int32_t)denominator;
  }
  const int64_t span = (int64_t)high - low, multiplier = (int64_t)LEVELS * denominator / span;
  out->zero_point = (uint32_t)((2 * LEVELS * -(int64_t)low + span) / (2 * span));
  out->scale = is_exact ? scale * denominator / (double)multiplier : scale * (double)span / LEVELS;
  scale_down(sums, values, count, (int32_t)multiplier, (int32_t)denominator / 2, __builtin_ctz(denominator),
             (int32_t)out->zero_point);
  hb_dsp_charge(count, 32, (struct hb_dsp_operations){.load = 1, .mul = 1, .alu = 4, .pack = 1});
  hb_dsp_charge(count, 8, (struct hb_dsp_operations){.store = 1});
  return (int32_t)multiplier;
}

/* The sum of a and b, times b_factor, where b is a matrix or one row. Returns the scale of the sums, 0 if they may
 * overflow int32. */
static double add(const struct tensor *a, const uint8_t *a_values, const struct tensor *b, const uint8_t *b_values,
                  double b_factor, uint32_t denominator, int32_t *sums) {
  const double scale_a = a->scale, scale_b = b_factor * b->scale;
  const int is_b_larger = scale_b > scale_a;
  const double large = is_b_larger ? scale_b : scale_a, small = is_b_larger ? scale_a : scale_b;
  const double multiplier = denominator * large / small;
  if (!(LEVELS * ((int64_t)multiplier + (int64_t)denominator) < INT64_C(1) << 31)) return 0;
  const int32_t of_large = (int32_t)multiplier, of_small = (int32_t)denominator;
  weighted_sum(a_values, b_values, sums, a->rows, a->columns, b->rows == 1 ? 0 : a->columns,
               is_b_larger ? of_small : of_large, is_b_larger ? of_large : of_small, (int32_t)a->zero_point,
               (int32_t)b->zero_point);
  hb_dsp_charge((uint64_t)a->rows * a->columns, 32, (struct hb_dsp_operations){.load = 1, .alu = 3, .mul = 2, .store = 1});
  return small / denominator;
}

/* a times one row, element by element. Returns the scale of the products. */
static double multiply(const struct tensor *a, const uint8_t *a_values, const struct tensor *b, const uint8_t *b_values,
                       int32_t *sums) {
  products(a_values, b_values, sums, a->rows, a->columns, (int32_t)a->zero_point, (int32_t)b->zero_point);
  hb_dsp_charge((uint64_t)a->rows * a->columns, 32, (struct hb_dsp_operations){.load = 1, .alu = 2, .mul = 1, .store = 1});
  return a->scale * b->scale;
}

#endif /* UINT8_MATRIX_H */
