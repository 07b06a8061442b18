/* Half-precision floating point. Each operation rounds once, to nearest, ties to even; subnormals are kept.
 *
 * A float has more than twice the bits of a half plus two, so a sum, product, quotient or root rounded to float and
 * then to half is the same as if rounded once.
 */
#ifndef HBRT_IVP_HALF_H
#define HBRT_IVP_HALF_H

#include <hbrt/ivp/float.h>

namespace hbrt_ivp::rule {

template <float (*FUNCTION)(float, float), int N>
HBRT_IVP vec<half, N> each_pair(const vec<half, N> &a, const vec<half, N> &b) {
  vec<half, N> r;
  for (int i = 0; i < N; ++i) r.lane[i] = FUNCTION(a.lane[i], b.lane[i]);
  return r;
}
inline float sum_of(float x, float y) { return x + y; }
inline float difference_of(float x, float y) { return x - y; }
inline float product_of(float x, float y) { return x * y; }
inline float quotient_of(float x, float y) { return x / y; }

inline double inverse_d(float x) { return 1.0 / static_cast<double>(x); }
inline double inverse_root_d(float x) { return 1.0 / __builtin_sqrt(static_cast<double>(x)); }
template <double (*FUNCTION)(float)>
HBRT_IVP xb_vecNxf16 each_by_double(const xb_vecNxf16 &a) {
  xb_vecNxf16 r;
  for (int i = 0; i < r.size; ++i) r.lane[i] = FUNCTION(a.lane[i]);
  return r;
}
/* Only the sign changes, including that of a NaN. */
template <int N>
HBRT_IVP vec<half, N> half_neg(const vec<half, N> &a) {
  using U = vec<uint16_t, N>;
  return recast<vec<half, N>>(xor_(recast<U>(a), U(0x8000)));
}
HBRT_IVP xb_vecNxf16 half_abs(const xb_vecNxf16 &a) {
  return recast<xb_vecNxf16>(and_(recast<xb_vecNx16U>(a), xb_vecNx16U(0x7fff)));
}
/* The double-precision sum of two numbers, with its last bit set if it is inexact: rounding it again to fewer bits
 * gives the same result as rounding once. */
inline double sum_to_odd(double x, double y) {
  const double sum = x + y, back = sum - x, error = (x - (sum - back)) + (y - back);
  uint64_t word;
  std::memcpy(&word, &sum, sizeof word);
  if (!(error != 0) || __builtin_isinf(sum) || sum != sum || (word & 1)) return sum;
  word += (error > 0) == (sum > 0) ? 1 : -1;
  double odd;
  std::memcpy(&odd, &word, sizeof odd);
  return odd;
}
/* a * b + c, rounded once: the product of two halves is exact. */
HBRT_IVP xb_vecNxf16 half_fused(const xb_vecNxf16 &a, const xb_vecNxf16 &b, const xb_vecNxf16 &c) {
  xb_vecNxf16 r;
  for (int i = 0; i < r.size; ++i)
    r.lane[i] = sum_to_odd(static_cast<double>(a.lane[i]) * static_cast<double>(b.lane[i]), c.lane[i]);
  return r;
}
/* x * 2^scale rounded toward zero, saturated to L; NaN becomes 0. */
template <class V>
HBRT_IVP V half_truncated(const xb_vecNxf16 &a, int scale) {
  V r;
  for (int i = 0; i < r.size; ++i) r.lane[i] = lane_of<typename V::lane_type>(std::ldexp(static_cast<double>(a.lane[i]), scale));
  return r;
}
/* x * 2^-scale, rounded once. */
template <class V>
HBRT_IVP xb_vecNxf16 half_floated(const V &a, int scale) {
  xb_vecNxf16 r;
  for (int i = 0; i < r.size; ++i) r.lane[i] = std::ldexp(static_cast<double>(a.lane[i]), -scale);
  return r;
}
template <bool (*FUNCTION)(float, float), int N>
HBRT_IVP vbool<N> half_compare(const vec<half, N> &a, const vec<half, N> &b) {
  uint64_t bits = 0;
  for (int i = 0; i < N; ++i) bits |= static_cast<uint64_t>(FUNCTION(a.lane[i], b.lane[i])) << i;
  return {static_cast<typename vbool<N>::bits_type>(bits)};
}
inline bool is_lt(float x, float y) { return x < y; }
inline bool is_le(float x, float y) { return x <= y; }
inline bool is_gt(float x, float y) { return x > y; }
inline bool is_ge(float x, float y) { return x >= y; }
inline bool is_eq(float x, float y) { return x == y; }
inline bool is_neq(float x, float y) { return x != y; }

}  // namespace hbrt_ivp::rule

namespace hbrt_ivp {

#define HBRT_HALF_OPERATOR(OP, COUNT, FUNCTION)                                       \
  template <int N>                                                                    \
  HBRT_IVP vec<half, N> operator OP(const vec<half, N> &a, const vec<half, N> &b) {   \
    HBRT_CYCLES_COUNT(COUNT);                                                         \
    return rule::each_pair<rule::FUNCTION>(a, b);                                     \
  }
HBRT_HALF_OPERATOR(+, ALU, sum_of)
HBRT_HALF_OPERATOR(-, ALU, difference_of)
HBRT_HALF_OPERATOR(*, MUL, product_of)
#undef HBRT_HALF_OPERATOR
template <int N>
HBRT_IVP vec<half, N> operator-(const vec<half, N> &a) {
  HBRT_CYCLES_COUNT(ALU);
  return rule::half_neg(a);
}
#define HBRT_HALF_COMPARISON(OP, FUNCTION)                                        \
  template <int N>                                                                \
  HBRT_IVP vbool<N> operator OP(const vec<half, N> &a, const vec<half, N> &b) {   \
    HBRT_CYCLES_COUNT(ALU);                                                       \
    return rule::half_compare<rule::FUNCTION>(a, b);                              \
  }
HBRT_HALF_COMPARISON(<, is_lt)
HBRT_HALF_COMPARISON(<=, is_le)
HBRT_HALF_COMPARISON(>, is_gt)
HBRT_HALF_COMPARISON(>=, is_ge)
HBRT_HALF_COMPARISON(==, is_eq)
HBRT_HALF_COMPARISON(!=, is_neq)
#undef HBRT_HALF_COMPARISON

}  // namespace hbrt_ivp

//! family: Half precision
//! Each works like its single-precision counterpart. Assumed for all: results are rounded once, to nearest, ties to even.
//! IVP_ADDNXF16{,T,F}(a, b) | a + b | assumed
//! IVP_SUBNXF16{,T,F}(a, b) | a - b | assumed
//! IVP_MULNXF16{,T,F}(a, b) | a * b | assumed
//! IVP_MULANXF16(&r, a, b) | r + a * b, rounded once | halide; the single rounding is assumed
//! IVP_MULANXF16T(&r, a, b, where) | the same in the lanes where the boolean is set | assumed
//! IVP_MULSNXF16(&r, a, b) | r - a * b, rounded once | assumed
//! IVP_MULSNXF16T(&r, a, b, where) | the same in the lanes where the boolean is set | assumed
//! IVP_MAXNXF16{,T,F}(a, b) | the larger one, NaN where either is NaN | halide; NaN is assumed
//! IVP_MINNXF16{,T,F}(a, b) | the smaller one, NaN where either is NaN | halide; NaN is assumed
//! IVP_MAXNUMNXF16{,T,F}(a, b) | the larger one, the number where one is NaN | assumed, as IEEE 754's maxNum
//! IVP_MINNUMNXF16{,T,F}(a, b) | the smaller one, the number where one is NaN | assumed, as IEEE 754's minNum
//! IVP_NEGNXF16{,T,F}(a) | -a, also for zeros and NaN | assumed
//! IVP_ABSNXF16{,T,F}(a) | the magnitude of a | halide
//! IVP_DIVNXF16(a, b) | a / b | halide; the rounding is assumed
//! IVP_RECIPNXF16(a) | 1 / a | assumed
//! IVP_SQRTNXF16(a) | the square root | halide; the rounding is assumed
//! IVP_RSQRTNXF16(a) | 1 / the square root | assumed
//! IVP_FIROUNDNXF16{,T,F}(a) | the nearest integer, ties away from zero | assumed
//! IVP_FIRINTNXF16{,T,F}(a) | the nearest integer, ties to even | halide; the ties are assumed
//! IVP_FIFLOORNXF16{,T,F}(a) | the largest integer not above a | halide
//! IVP_FICEILNXF16{,T,F}(a) | the smallest integer not below a | assumed
//! IVP_FITRUNCNXF16{,T,F}(a) | a truncated toward zero | assumed
//! IVP_FLOAT16NX16(a, scale) | a / 2^scale in half precision | halide
//! IVP_TRUNC16NXF16(a, scale) | a * 2^scale as int16, toward zero, saturates, NaN becomes 0 | halide; the last two are assumed
//! IVP_CVTF32NXF16_{0,1}(a) | the even (0) or odd (1) lanes in single precision | halide
//! IVP_CVTF16N_2XF32_0(a) | converted to half precision in the even lanes; the odd ones are 0 | halide; the 0 is assumed
//! IVP_O{LT,LE,GT,GE,EQ,NEQ}NXF16(a, b) | the comparison, false where either is NaN | halide
//! IVP_U{LT,LE,GT,GE,EQ,NEQ}NXF16(a, b) | the comparison, true where either is NaN | assumed
//! IVP_UNNXF16(a, b) | true where either is NaN | assumed
HBRT_BINARY(ADD, NXF16, xb_vecNxf16, each_pair<hbrt_ivp::rule::sum_of>)
HBRT_BINARY(SUB, NXF16, xb_vecNxf16, each_pair<hbrt_ivp::rule::difference_of>)
HBRT_UNARY(ABS, NXF16, xb_vecNxf16, half_abs)

#define HBRT_HALF(NAME, COUNT, R, PARAMETERS, RESULT)  \
  HBRT_IVP R IVP_##NAME PARAMETERS {                   \
    HBRT_CYCLES_COUNT(COUNT);                          \
    return hbrt_ivp::rule::RESULT;                     \
  }
HBRT_HALF(MULNXF16, MUL, xb_vecNxf16, (const xb_vecNxf16 &a, const xb_vecNxf16 &b), each_pair<hbrt_ivp::rule::product_of>(a, b))
HBRT_HALF(DIVNXF16, DIVIDE, xb_vecNxf16, (const xb_vecNxf16 &a, const xb_vecNxf16 &b), each_pair<hbrt_ivp::rule::quotient_of>(a, b))
HBRT_HALF(RECIPNXF16, DIVIDE, xb_vecNxf16, (const xb_vecNxf16 &a), each_by_double<hbrt_ivp::rule::inverse_d>(a))
HBRT_HALF(SQRTNXF16, DIVIDE, xb_vecNxf16, (const xb_vecNxf16 &a), each<hbrt_ivp::rule::root>(a))
HBRT_HALF(RSQRTNXF16, DIVIDE, xb_vecNxf16, (const xb_vecNxf16 &a), each_by_double<hbrt_ivp::rule::inverse_root_d>(a))
HBRT_HALF(FLOAT16NX16, ALU, xb_vecNxf16, (const xb_vecNx16 &a, int scale), half_floated(a, scale))
HBRT_HALF(TRUNC16NXF16, ALU, xb_vecNx16, (const xb_vecNxf16 &a, int scale), half_truncated<xb_vecNx16>(a, scale))

HBRT_FLOATING(NXF16, xb_vecNxf16, vboolN, half_neg, half_fused)

HBRT_IVP xb_vecN_2xf32 IVP_CVTF32NXF16_0(const xb_vecNxf16 &a) {
  HBRT_CYCLES_COUNT(ALU);
  xb_vecN_2xf32 r;
  for (int i = 0; i < r.size; ++i) r.lane[i] = a.lane[2 * i];
  return r;
}
HBRT_IVP xb_vecN_2xf32 IVP_CVTF32NXF16_1(const xb_vecNxf16 &a) {
  HBRT_CYCLES_COUNT(ALU);
  xb_vecN_2xf32 r;
  for (int i = 0; i < r.size; ++i) r.lane[i] = a.lane[2 * i + 1];
  return r;
}
HBRT_IVP xb_vecNxf16 IVP_CVTF16N_2XF32_0(const xb_vecN_2xf32 &a) {
  HBRT_CYCLES_COUNT(ALU);
  xb_vecNxf16 r(0);
  for (int i = 0; i < a.size; ++i) r.lane[2 * i] = a.lane[i];
  return r;
}

#undef HBRT_HALF
#undef HBRT_FLOATING
#undef HBRT_FLOATING_COMPARE
#endif /* HBRT_IVP_HALF_H */
