/* <xtensa/tie/xt_misc.h>: scalar instructions of the core as functions and macros.
 *
 * Source: names and arguments as in https://github.com/foss-xtensa/tflmlib_vision. The instructions are those of
 * Xtensa's miscellaneous option: MIN, MAX, NSA, NSAU, SEXT, CLAMPS, SALT; the conditional moves are core ones.
 */
#ifndef HBRT_XTENSA_XT_MISC_H
#define HBRT_XTENSA_XT_MISC_H

#include <stdint.h>

#ifndef XT_MIN
#define XT_MIN(a, b) ((a) < (b) ? (a) : (b))
#endif
#ifndef XT_MAX
#define XT_MAX(a, b) ((a) > (b) ? (a) : (b))
#endif
#define XT_MINU(a, b) ((uint32_t)(a) < (uint32_t)(b) ? (uint32_t)(a) : (uint32_t)(b))
#define XT_MAXU(a, b) ((uint32_t)(a) > (uint32_t)(b) ? (uint32_t)(a) : (uint32_t)(b))
/* Write `value` to `result` if `test` is below zero, at least zero, zero, or not zero. */
#define XT_MOVLTZ(result, value, test) ((void)((test) < 0 ? ((result) = (value)) : (result)))
#define XT_MOVGEZ(result, value, test) ((void)((test) >= 0 ? ((result) = (value)) : (result)))
#define XT_MOVEQZ(result, value, test) ((void)((test) == 0 ? ((result) = (value)) : (result)))
#define XT_MOVNEZ(result, value, test) ((void)((test) != 0 ? ((result) = (value)) : (result)))
/* 1 if a < b, else 0. */
#define XT_SALT(a, b) ((int32_t)(a) < (int32_t)(b) ? 1 : 0)
#define XT_SALTU(a, b) ((uint32_t)(a) < (uint32_t)(b) ? 1 : 0)
/* Orders memory accesses. */
#define XT_MEMW() __sync_synchronize()

static inline uint32_t hbrt_nsau(uint32_t x) { return x == 0 ? 32u : (uint32_t)__builtin_clz(x); }
static inline int32_t hbrt_clamps(int32_t x, int bits) {
  const int32_t high = (int32_t)((1u << bits) - 1);
  return x > high ? high : x < -high - 1 ? -high - 1 : x;
}
/* Leading zeros; how far a value can shift left and keep its sign. */
#define XT_NSAU(x) hbrt_nsau((uint32_t)(x))
#define XT_NSA(x) __builtin_clrsb((int32_t)(x))
/* The sign is bit `bit`; values that do not fit in `bits` bits and a sign saturate. */
#define XT_SEXT(x, bit) ((int32_t)((uint32_t)(x) << (31 - (bit))) >> (31 - (bit)))
#define XT_CLAMPS(x, bits) hbrt_clamps((int32_t)(x), bits)
#define XT_ABS(x) ((int32_t)(x) < 0 ? (int32_t)(0u - (uint32_t)(x)) : (int32_t)(x))

#endif /* HBRT_XTENSA_XT_MISC_H */
