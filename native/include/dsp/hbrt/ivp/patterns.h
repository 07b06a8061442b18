/* Patterns for selects and shuffles: named numbers, also for C.
 *
 * A number describes an operation on elements of this many bytes; the chip's own numbers are not public, so these
 * differ. Programs use the names.
 */
#ifndef HBRT_IVP_PATTERNS_H
#define HBRT_IVP_PATTERNS_H

/* Of two neighbors, the first gives the low result of a dual select, the second the high one. */
enum hbrt_ivp_pattern_kind {
  HBRT_INTERLEAVE_LO, HBRT_INTERLEAVE_HI,
  HBRT_DEINTERLEAVE_EVEN, HBRT_DEINTERLEAVE_ODD,
  HBRT_INTERLEAVE_C3_LO, HBRT_INTERLEAVE_C3_HI,
  HBRT_DEINTERLEAVE_C3_LO, HBRT_DEINTERLEAVE_C3_HI,
  HBRT_INTERLEAVE_EVEN, HBRT_INTERLEAVE_ODD,
  HBRT_ROTATE_RIGHT, HBRT_ROTATE_LEFT,
  HBRT_LO_HALVES, HBRT_HI_HALVES,
  HBRT_SWAP, HBRT_REVERSE, HBRT_REPEAT
};
/* `count`: a group, a distance, an offset, or a step. */
#define HBRT_PATTERN(kind, unit, count) (HBRT_##kind << 16 | (unit) << 8 | (count))

//! family: Patterns
//! A pattern is for elements of 8, 16 or 32 bits; a name without a width means 16. In a pair of vectors, `low` comes before `high`.
//! each: WIDTH = 8B_,16B_,32B_,
//! IVP_SELI_{WIDTH}ROTATE_RIGHT_{1..31} | element i is element i + k of low and high | guide, halide
//! IVP_SELI_{WIDTH}ROTATE_LEFT_{1..31} | the last k elements of low, then those of high | halide, tflm
//! IVP_SELI_8B_ROTATE_{RIGHT,LEFT}_{32..63} | the same, further | tflm
//! IVP_SELI_{WIDTH}INTERLEAVE_{1,2,4}_{LO,HI} | groups of k elements, alternating low, high, low, high, from their lower or upper halves | halide
//! IVP_SELI_{WIDTH}INTERLEAVE_{1,2,4}_{EVEN,ODD} | the same for their even or odd groups | tflm; inferred from the name
//! IVP_SELI_{WIDTH}EXTRACT_1_OF_2_OFF_{0,1} | the even or odd elements of low and high | halide
//! IVP_SELI_{WIDTH}DEINTERLEAVE_1_{EVEN,ODD} | another name for the same | halide, tflm
//! IVP_SELI_{WIDTH}EXTRACT_{LO,HI}_HALVES | the lower or upper half of low, then that of high | tflm; inferred from the name
//! IVP_DSELI_{WIDTH}INTERLEAVE_{1,2,4} | INTERLEAVE_LO for the low result, INTERLEAVE_HI for the high one | halide
//! IVP_DSELI_{WIDTH}DEINTERLEAVE_{1,2,4} | even groups of low and high for the low result, odd ones for the high one | halide, tflm
//! IVP_DSELI_8B_{INTERLEAVE,DEINTERLEAVE}_C3_STEP_{0,1} | one of two steps with three vectors of bytes; see IVP_DSEL2NX8I_H | halide
//! IVP_SHFLI_{WIDTH}SWAP_{1,2,4,8} | element i is element i xor k | assumed
//! IVP_SHFLI_{WIDTH}REVERSE_1 | all elements in reverse order | assumed
//! IVP_SHFLI_REP_{0..31}X1 | the 16-bit element k in all lanes | tflm
#define HBRT_ROTATE(W, UNIT, K)                                              \
  IVP_SELI_##W##ROTATE_RIGHT_##K = HBRT_PATTERN(ROTATE_RIGHT, UNIT, K),      \
  IVP_SELI_##W##ROTATE_LEFT_##K = HBRT_PATTERN(ROTATE_LEFT, UNIT, K),
#define HBRT_REPEAT_ONE(_, UNIT, K) IVP_SHFLI_REP_##K##X1 = HBRT_PATTERN(REPEAT, UNIT, K),
#define HBRT_OVER_1_31(DO, W, U)                                                                                     \
  DO(W, U, 1) DO(W, U, 2) DO(W, U, 3) DO(W, U, 4) DO(W, U, 5) DO(W, U, 6) DO(W, U, 7) DO(W, U, 8) DO(W, U, 9)         \
  DO(W, U, 10) DO(W, U, 11) DO(W, U, 12) DO(W, U, 13) DO(W, U, 14) DO(W, U, 15) DO(W, U, 16) DO(W, U, 17)             \
  DO(W, U, 18) DO(W, U, 19) DO(W, U, 20) DO(W, U, 21) DO(W, U, 22) DO(W, U, 23) DO(W, U, 24) DO(W, U, 25)             \
  DO(W, U, 26) DO(W, U, 27) DO(W, U, 28) DO(W, U, 29) DO(W, U, 30) DO(W, U, 31)
#define HBRT_OVER_32_63(DO, W, U)                                                                                    \
  DO(W, U, 32) DO(W, U, 33) DO(W, U, 34) DO(W, U, 35) DO(W, U, 36) DO(W, U, 37) DO(W, U, 38) DO(W, U, 39)             \
  DO(W, U, 40) DO(W, U, 41) DO(W, U, 42) DO(W, U, 43) DO(W, U, 44) DO(W, U, 45) DO(W, U, 46) DO(W, U, 47)             \
  DO(W, U, 48) DO(W, U, 49) DO(W, U, 50) DO(W, U, 51) DO(W, U, 52) DO(W, U, 53) DO(W, U, 54) DO(W, U, 55)             \
  DO(W, U, 56) DO(W, U, 57) DO(W, U, 58) DO(W, U, 59) DO(W, U, 60) DO(W, U, 61) DO(W, U, 62) DO(W, U, 63)
#define HBRT_GROUPS(W, UNIT, K)                                                      \
  IVP_SELI_##W##INTERLEAVE_##K##_LO = HBRT_PATTERN(INTERLEAVE_LO, UNIT, K),          \
  IVP_SELI_##W##INTERLEAVE_##K##_HI = HBRT_PATTERN(INTERLEAVE_HI, UNIT, K),          \
  IVP_SELI_##W##INTERLEAVE_##K##_EVEN = HBRT_PATTERN(INTERLEAVE_EVEN, UNIT, K),      \
  IVP_SELI_##W##INTERLEAVE_##K##_ODD = HBRT_PATTERN(INTERLEAVE_ODD, UNIT, K),        \
  IVP_DSELI_##W##INTERLEAVE_##K = HBRT_PATTERN(INTERLEAVE_LO, UNIT, K),              \
  IVP_DSELI_##W##DEINTERLEAVE_##K = HBRT_PATTERN(DEINTERLEAVE_EVEN, UNIT, K),
#define HBRT_PATTERNS(W, UNIT)                                                       \
  HBRT_OVER_1_31(HBRT_ROTATE, W, UNIT)                                               \
  HBRT_GROUPS(W, UNIT, 1) HBRT_GROUPS(W, UNIT, 2) HBRT_GROUPS(W, UNIT, 4)            \
  IVP_SELI_##W##EXTRACT_1_OF_2_OFF_0 = HBRT_PATTERN(DEINTERLEAVE_EVEN, UNIT, 1),     \
  IVP_SELI_##W##EXTRACT_1_OF_2_OFF_1 = HBRT_PATTERN(DEINTERLEAVE_ODD, UNIT, 1),      \
  IVP_SELI_##W##DEINTERLEAVE_1_EVEN = HBRT_PATTERN(DEINTERLEAVE_EVEN, UNIT, 1),      \
  IVP_SELI_##W##DEINTERLEAVE_1_ODD = HBRT_PATTERN(DEINTERLEAVE_ODD, UNIT, 1),        \
  IVP_SELI_##W##EXTRACT_LO_HALVES = HBRT_PATTERN(LO_HALVES, UNIT, 1),                \
  IVP_SELI_##W##EXTRACT_HI_HALVES = HBRT_PATTERN(HI_HALVES, UNIT, 1),                \
  IVP_SHFLI_##W##SWAP_1 = HBRT_PATTERN(SWAP, UNIT, 1),                               \
  IVP_SHFLI_##W##SWAP_2 = HBRT_PATTERN(SWAP, UNIT, 2),                               \
  IVP_SHFLI_##W##SWAP_4 = HBRT_PATTERN(SWAP, UNIT, 4),                               \
  IVP_SHFLI_##W##SWAP_8 = HBRT_PATTERN(SWAP, UNIT, 8),                               \
  IVP_SHFLI_##W##REVERSE_1 = HBRT_PATTERN(REVERSE, UNIT, 1),

enum hbrt_ivp_pattern {
  HBRT_PATTERNS(8B_, 1)
  HBRT_PATTERNS(16B_, 2)
  HBRT_PATTERNS(32B_, 4)
  HBRT_PATTERNS(, 2)
  HBRT_OVER_32_63(HBRT_ROTATE, 8B_, 1)
  HBRT_OVER_1_31(HBRT_REPEAT_ONE, , 2)
  IVP_SHFLI_REP_0X1 = HBRT_PATTERN(REPEAT, 2, 0),
  IVP_DSELI_8B_INTERLEAVE_C3_STEP_0 = HBRT_PATTERN(INTERLEAVE_C3_LO, 1, 0),
  IVP_DSELI_8B_INTERLEAVE_C3_STEP_1 = HBRT_PATTERN(INTERLEAVE_C3_LO, 1, 1),
  IVP_DSELI_8B_DEINTERLEAVE_C3_STEP_0 = HBRT_PATTERN(DEINTERLEAVE_C3_LO, 1, 0),
  IVP_DSELI_8B_DEINTERLEAVE_C3_STEP_1 = HBRT_PATTERN(DEINTERLEAVE_C3_LO, 1, 1)
};

#undef HBRT_PATTERNS
#undef HBRT_GROUPS
#undef HBRT_OVER_32_63
#undef HBRT_OVER_1_31
#undef HBRT_REPEAT_ONE
#undef HBRT_ROTATE
#endif /* HBRT_IVP_PATTERNS_H */
