/* Single-precision floating point. Each operation rounds once, to nearest, ties to even; subnormals are kept.
 *
 * Build with -ffp-contract=off; otherwise, where the host has a fused multiply-add, the compiler fuses a multiplication
 * from one intrinsic with an addition from another.
 */
#ifndef HBRT_IVP_FLOAT_H
#define HBRT_IVP_FLOAT_H

#include <cmath>

#include <hbrt/ivp/arithmetic.h>

namespace hbrt_ivp::rule {

/* a * b + c, rounded once. */
HBRT_IVP xb_vecN_2xf32 fused(const xb_vecN_2xf32 &a, const xb_vecN_2xf32 &b, const xb_vecN_2xf32 &c) {
  xb_vecN_2xf32 r;
  for (int i = 0; i < r.size; ++i) r.lane[i] = __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]);
  return r;
}
HBRT_IVP xb_vecN_2xf32 abs_f(const xb_vecN_2xf32 &a) {
  return recast<xb_vecN_2xf32>(and_(recast<xb_vecN_2x32Uv>(a), xb_vecN_2x32Uv(0x7fffffffu)));
}
HBRT_IVP xb_vecN_2xf32 divide(const xb_vecN_2xf32 &a, const xb_vecN_2xf32 &b) {
  return from_native<xb_vecN_2xf32>(lanes(a) / lanes(b));
}
template <float (*FUNCTION)(float), class V>
HBRT_IVP V each(const V &a) {
  V r;
  for (int i = 0; i < r.size; ++i) r.lane[i] = FUNCTION(a.lane[i]);
  return r;
}
inline float away(float x) { return __builtin_roundf(x); }
inline float even(float x) { return __builtin_rintf(x); }
inline float down(float x) { return __builtin_floorf(x); }
inline float up(float x) { return __builtin_ceilf(x); }
inline float cut(float x) { return __builtin_truncf(x); }
inline float root(float x) { return __builtin_sqrtf(x); }
inline float inverse(float x) { return 1.0f / x; }
inline float inverse_root(float x) { return 1.0f / __builtin_sqrtf(x); }

/* x * 2^scale rounded toward zero, saturated to L; NaN becomes 0. */
template <class L>
HBRT_IVP vec<L, 16> truncated(const xb_vecN_2xf32 &a, int scale) {
  const double unit = std::ldexp(1.0, scale);
  vec<L, 16> r;
  for (int i = 0; i < r.size; ++i) r.lane[i] = lane_of<L>(static_cast<double>(a.lane[i]) * unit);
  return r;
}
/* x * 2^-scale, rounded once. */
template <class L>
HBRT_IVP xb_vecN_2xf32 floated(const vec<L, 16> &a, int scale) {
  const double unit = std::ldexp(1.0, -scale);
  xb_vecN_2xf32 r;
  for (int i = 0; i < r.size; ++i) r.lane[i] = static_cast<float>(static_cast<double>(a.lane[i]) * unit);
  return r;
}

}  // namespace hbrt_ivp::rule

/* What single and half precision share, for lanes V and booleans B: names that end with TYPE, and two of their
 * rules. */
#define HBRT_FLOATING(TYPE, V, B, NEGATE, FUSED)                                                          \
  HBRT_BINARY(MAX, TYPE, V, max_or_nan)                                                                   \
  HBRT_BINARY(MIN, TYPE, V, min_or_nan)                                                                   \
  HBRT_BINARY(MAXNUM, TYPE, V, max_number)                                                                \
  HBRT_BINARY(MINNUM, TYPE, V, min_number)                                                                \
  HBRT_UNARY(NEG, TYPE, V, NEGATE)                                                                        \
  HBRT_UNARY(FIROUND, TYPE, V, each<hbrt_ivp::rule::away>)                                                \
  HBRT_UNARY(FIRINT, TYPE, V, each<hbrt_ivp::rule::even>)                                                 \
  HBRT_UNARY(FIFLOOR, TYPE, V, each<hbrt_ivp::rule::down>)                                                \
  HBRT_UNARY(FICEIL, TYPE, V, each<hbrt_ivp::rule::up>)                                                   \
  HBRT_UNARY(FITRUNC, TYPE, V, each<hbrt_ivp::rule::cut>)                                                 \
  template <class R>                                                                                      \
  HBRT_IVP void IVP_MUL##TYPE##T(R &r, const V &a, const V &b, B where) {                                 \
    r = hbrt_ivp::blend(where, IVP_MUL##TYPE(a, b), V(r));                                                \
  }                                                                                                       \
  template <class R>                                                                                      \
  HBRT_IVP void IVP_MUL##TYPE##F(R &r, const V &a, const V &b, B where) {                                 \
    r = hbrt_ivp::blend(~where, IVP_MUL##TYPE(a, b), V(r));                                               \
  }                                                                                                       \
  HBRT_IVP void IVP_MULA##TYPE(V &r, const V &a, const V &b) {                                            \
    HBRT_CYCLES_COUNT(MUL);                                                                               \
    r = hbrt_ivp::rule::FUSED(a, b, r);                                                                   \
  }                                                                                                       \
  HBRT_IVP void IVP_MULS##TYPE(V &r, const V &a, const V &b) {                                            \
    HBRT_CYCLES_COUNT(MUL);                                                                               \
    r = hbrt_ivp::rule::FUSED(hbrt_ivp::rule::NEGATE(a), b, r);                                           \
  }                                                                                                       \
  HBRT_IVP void IVP_MULA##TYPE##T(V &r, const V &a, const V &b, B where) {                                \
    HBRT_CYCLES_COUNT(MUL);                                                                               \
    r = hbrt_ivp::blend(where, hbrt_ivp::rule::FUSED(a, b, r), r);                                        \
  }                                                                                                       \
  HBRT_IVP void IVP_MULS##TYPE##T(V &r, const V &a, const V &b, B where) {                                \
    HBRT_CYCLES_COUNT(MUL);                                                                               \
    r = hbrt_ivp::blend(where, hbrt_ivp::rule::FUSED(hbrt_ivp::rule::NEGATE(a), b, r), r);                \
  }                                                                                                       \
  HBRT_FLOATING_COMPARE(LT, TYPE, V, B, a < b, ~(a >= b))                                                 \
  HBRT_FLOATING_COMPARE(LE, TYPE, V, B, a <= b, ~(a > b))                                                 \
  HBRT_FLOATING_COMPARE(GT, TYPE, V, B, a > b, ~(a <= b))                                                 \
  HBRT_FLOATING_COMPARE(GE, TYPE, V, B, a >= b, ~(a < b))                                                 \
  HBRT_FLOATING_COMPARE(EQ, TYPE, V, B, a == b, ~(a < b) & ~(a > b))                                      \
  HBRT_FLOATING_COMPARE(NEQ, TYPE, V, B, (a < b) | (a > b), a != b)                                       \
  HBRT_IVP B IVP_UN##TYPE(const V &a, const V &b) { return (a != a) | (b != b); }
#define HBRT_FLOATING_COMPARE(NAME, TYPE, V, B, ORDERED, UNORDERED)                 \
  HBRT_IVP B IVP_O##NAME##TYPE(const V &a, const V &b) { return ORDERED; }          \
  HBRT_IVP B IVP_U##NAME##TYPE(const V &a, const V &b) { return UNORDERED; }

//! family: Floating point
//! IVP_ADDN_2XF32{,T,F}(a, b) | a + b | guide
//! IVP_SUBN_2XF32{,T,F}(a, b) | a - b | guide
//! IVP_MULN_2XF32{,T,F}(a, b) | a * b | guide
//! IVP_MULAN_2XF32(&r, a, b) | r + a * b, rounded once | guide, halide; the single rounding is assumed
//! IVP_MULAN_2XF32T(&r, a, b, where) | the same in the lanes where the boolean is set | assumed
//! IVP_MULSN_2XF32(&r, a, b) | r - a * b, rounded once | assumed
//! IVP_MULSN_2XF32T(&r, a, b, where) | the same in the lanes where the boolean is set | assumed
//! IVP_MAXN_2XF32{,T,F}(a, b) | the larger one, NaN where either is NaN | guide, halide; NaN is assumed
//! IVP_MINN_2XF32{,T,F}(a, b) | the smaller one, NaN where either is NaN | halide; NaN is assumed
//! IVP_MAXNUMN_2XF32{,T,F}(a, b) | the larger one, the number where one is NaN | assumed, as IEEE 754's maxNum
//! IVP_MINNUMN_2XF32{,T,F}(a, b) | the smaller one, the number where one is NaN | assumed, as IEEE 754's minNum
//! IVP_NEGN_2XF32{,T,F}(a) | -a, also for zeros and NaN | assumed
//! IVP_ABSN_2XF32{,T,F}(a) | the magnitude of a | halide
//! IVP_DIVN_2XF32(a, b) | a / b | halide; the rounding is assumed
//! IVP_RECIPN_2XF32(a) | 1 / a | assumed
//! IVP_SQRTN_2XF32(a) | the square root | halide; the rounding is assumed
//! IVP_RSQRTN_2XF32(a) | 1 / the square root | assumed
//! IVP_FIROUNDN_2XF32{,T,F}(a) | the nearest integer, ties away from zero | assumed
//! IVP_FIRINTN_2XF32{,T,F}(a) | the nearest integer, ties to even | halide; the ties are assumed
//! IVP_FIFLOORN_2XF32{,T,F}(a) | the largest integer not above a | halide
//! IVP_FICEILN_2XF32{,T,F}(a) | the smallest integer not below a | assumed
//! IVP_FITRUNCN_2XF32{,T,F}(a) | a truncated toward zero | assumed
//! IVP_FLOATN_2X32(a, scale) | a / 2^scale as float | guide, halide
//! IVP_UFLOATN_2X32U(a, scale) | the same for unsigned lanes | assumed
//! IVP_TRUNCN_2XF32(a, scale) | a * 2^scale as int32, toward zero, saturates, NaN becomes 0 | guide, halide; the last two are assumed
//! IVP_UTRUNCN_2XF32(a, scale) | the same as uint32 | halide; saturation is assumed
//! IVP_O{LT,LE,GT,GE,EQ,NEQ}N_2XF32(a, b) | the comparison, false where either is NaN | halide
//! IVP_U{LT,LE,GT,GE,EQ,NEQ}N_2XF32(a, b) | the comparison, true where either is NaN | guide
//! IVP_UNN_2XF32(a, b) | true where either is NaN | guide
HBRT_BINARY(ADD, N_2XF32, xb_vecN_2xf32, add)
HBRT_BINARY(SUB, N_2XF32, xb_vecN_2xf32, sub)
HBRT_UNARY(ABS, N_2XF32, xb_vecN_2xf32, abs_f)

#define HBRT_FLOAT(NAME, COUNT, PARAMETERS, RESULT)          \
  HBRT_IVP xb_vecN_2xf32 IVP_##NAME PARAMETERS {             \
    HBRT_CYCLES_COUNT(COUNT);                                \
    return hbrt_ivp::rule::RESULT;                           \
  }
HBRT_FLOAT(MULN_2XF32, MUL, (const xb_vecN_2xf32 &a, const xb_vecN_2xf32 &b), mul(a, b))
HBRT_FLOAT(DIVN_2XF32, DIVIDE, (const xb_vecN_2xf32 &a, const xb_vecN_2xf32 &b), divide(a, b))
HBRT_FLOAT(RECIPN_2XF32, DIVIDE, (const xb_vecN_2xf32 &a), each<hbrt_ivp::rule::inverse>(a))
HBRT_FLOAT(SQRTN_2XF32, DIVIDE, (const xb_vecN_2xf32 &a), each<hbrt_ivp::rule::root>(a))
HBRT_FLOAT(RSQRTN_2XF32, DIVIDE, (const xb_vecN_2xf32 &a), each<hbrt_ivp::rule::inverse_root>(a))
HBRT_FLOAT(FLOATN_2X32, ALU, (const xb_vecN_2x32v &a, int scale), floated(a, scale))
HBRT_FLOAT(UFLOATN_2X32U, ALU, (const xb_vecN_2x32Uv &a, int scale), floated(a, scale))

HBRT_FLOATING(N_2XF32, xb_vecN_2xf32, vboolN_2, neg, fused)
HBRT_IVP xb_vecN_2x32v IVP_TRUNCN_2XF32(const xb_vecN_2xf32 &a, int scale) {
  HBRT_CYCLES_COUNT(ALU);
  return hbrt_ivp::rule::truncated<int32_t>(a, scale);
}
HBRT_IVP xb_vecN_2x32Uv IVP_UTRUNCN_2XF32(const xb_vecN_2xf32 &a, int scale) {
  HBRT_CYCLES_COUNT(ALU);
  return hbrt_ivp::rule::truncated<uint32_t>(a, scale);
}

#undef HBRT_FLOAT
#endif /* HBRT_IVP_FLOAT_H */
