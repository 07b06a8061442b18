/* Reductions of a vector's lanes to one number. */
#ifndef HBRT_IVP_REDUCE_H
#define HBRT_IVP_REDUCE_H

#include <hbrt/ivp/float.h>

namespace hbrt_ivp::rule {

template <class S, class V>
HBRT_IVP S total(const V &v) {
  using U = std::make_unsigned_t<S>;
  U sum = 0;
  for (int i = 0; i < V::size; ++i) sum = static_cast<U>(sum + static_cast<U>(v.lane[i]));
  return static_cast<S>(sum);
}
/* The sum in double precision, rounded once: the chip's order is not public, and no order has a smaller error. */
HBRT_IVP float total_f(const xb_vecN_2xf32 &v) {
  double sum = 0;
  for (int i = 0; i < v.size; ++i) sum += static_cast<double>(v.lane[i]);
  return static_cast<float>(sum);
}
/* The lane preferred by a comparison over all others. */
template <class V>
HBRT_IVP typename V::lane_type largest(const V &v) {
  auto r = v.lane[0];
  for (int i = 1; i < V::size; ++i) r = v.lane[i] > r ? v.lane[i] : r;
  return r;
}
template <class V>
HBRT_IVP typename V::lane_type smallest(const V &v) {
  auto r = v.lane[0];
  for (int i = 1; i < V::size; ++i) r = v.lane[i] < r ? v.lane[i] : r;
  return r;
}
/* The same for floats, with a rule for two vectors that defines the NaN behavior. */
template <xb_vecN_2xf32 (*PICK)(const xb_vecN_2xf32 &, const xb_vecN_2xf32 &)>
HBRT_IVP float fold(const xb_vecN_2xf32 &all) {
  xb_vecN_2xf32 v = all, other;
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < v.size; ++i) other.lane[i] = v.lane[(i + half) & (v.size - 1)];
    v = PICK(v, other);
  }
  return v.lane[0];
}

}  // namespace hbrt_ivp::rule

//! family: Reductions
//! IVP_RADD2NX8(v) | the sum, in 16 bits | halide
//! IVP_RADDU2NX8(v) | the sum of unsigned lanes, in 16 bits | halide
//! IVP_RADDNX16(v) | the sum, in 32 bits | halide, tflm
//! IVP_RADDUNX16(v) | the sum of unsigned lanes, in 32 bits | tflm
//! IVP_RADDN_2X32{,U}(v) | the sum, wraps | halide, tflm
//! IVP_RADDN_2XF32(v) | the sum, rounded once | guide; the rounding is assumed
//! IVP_RADD{2NX8,NX16,N_2X32,N_2XF32}T(v, where) | the sum of the lanes where the boolean is set | tflm
//! IVP_RADDU{2NX8,NX16}T(v, where) | the same for unsigned lanes | tflm
//! IVP_RADD{,U}RNX16(v) | IVP_RADDNX16 or IVP_RADDUNX16 | tflm
//! IVP_RMAX{2NX8,NX16,N_2X32,N_2XF32}(v) | the largest lane | halide
//! IVP_RMIN{2NX8,NX16,N_2X32,N_2XF32}(v) | the smallest lane | halide
//! IVP_RMAXU{2NX8,2NX8U,NX16,NX16U,N_2X32,N_2X32U}(v) | the largest of unsigned lanes | halide
//! IVP_RMINU{2NX8,2NX8U,NX16,NX16U,N_2X32,N_2X32U}(v) | the smallest of unsigned lanes | halide
//! IVP_R{MAX,MIN}{2NX8,NX16,N_2X32}{T,F}(v, where) | of the lanes where the boolean is set (T) or clear (F); the lowest or highest value if there is none | tflm; the last is assumed
//! IVP_R{MAXNUM,MINNUM}N_2XF32(v) | the largest or smallest lane, without NaN | assumed
#define HBRT_SUM(NAME, V, S, RULE)                                                     \
  HBRT_IVP S IVP_##NAME(const V &v) {                                                  \
    HBRT_CYCLES_COUNT(REDUCE);                                                         \
    return hbrt_ivp::rule::RULE(v);                                                    \
  }
#define HBRT_SUM_WHERE(NAME, V, S)                                                     \
  HBRT_IVP S IVP_##NAME##T(const V &v, hbrt_ivp::vbool<V::size> where) {               \
    return IVP_##NAME(hbrt_ivp::blend(where, v, V(0)));                                \
  }
HBRT_SUM(RADD2NX8, xb_vec2Nx8, int16_t, total<int16_t>)
HBRT_SUM(RADDU2NX8, xb_vec2Nx8U, uint16_t, total<uint16_t>)
HBRT_SUM(RADDNX16, xb_vecNx16, int32_t, total<int32_t>)
HBRT_SUM(RADDRNX16, xb_vecNx16, int32_t, total<int32_t>)
HBRT_SUM(RADDUNX16, xb_vecNx16U, uint32_t, total<uint32_t>)
HBRT_SUM(RADDURNX16, xb_vecNx16U, uint32_t, total<uint32_t>)
HBRT_SUM(RADDN_2X32, xb_vecN_2x32v, int32_t, total<int32_t>)
HBRT_SUM(RADDN_2X32U, xb_vecN_2x32Uv, uint32_t, total<uint32_t>)
HBRT_SUM(RADDN_2XF32, xb_vecN_2xf32, xtfloat, total_f)
HBRT_SUM_WHERE(RADD2NX8, xb_vec2Nx8, int16_t)
HBRT_SUM_WHERE(RADDU2NX8, xb_vec2Nx8U, uint16_t)
HBRT_SUM_WHERE(RADDNX16, xb_vecNx16, int32_t)
HBRT_SUM_WHERE(RADDUNX16, xb_vecNx16U, uint32_t)
HBRT_SUM_WHERE(RADDN_2X32, xb_vecN_2x32v, int32_t)
HBRT_SUM_WHERE(RADDN_2XF32, xb_vecN_2xf32, xtfloat)

#define HBRT_FOLD(NAME, SUFFIX, V, RULE)                                                    \
  HBRT_IVP V::lane_type IVP_##NAME##SUFFIX(const V &v) {                                    \
    HBRT_CYCLES_COUNT(REDUCE);                                                         \
    return hbrt_ivp::rule::RULE(v);                                                    \
  }
HBRT_OF_SIGNED(HBRT_FOLD, RMAX, largest)
HBRT_OF_SIGNED(HBRT_FOLD, RMIN, smallest)
HBRT_OF_U_NAMES(HBRT_FOLD, RMAXU, largest)
HBRT_OF_U_NAMES(HBRT_FOLD, RMINU, smallest)
HBRT_FOLD(RMAX, N_2XF32, xb_vecN_2xf32, fold<hbrt_ivp::rule::max_or_nan>)
HBRT_FOLD(RMIN, N_2XF32, xb_vecN_2xf32, fold<hbrt_ivp::rule::min_or_nan>)
HBRT_FOLD(RMAXNUM, N_2XF32, xb_vecN_2xf32, fold<hbrt_ivp::rule::max_number>)
HBRT_FOLD(RMINNUM, N_2XF32, xb_vecN_2xf32, fold<hbrt_ivp::rule::min_number>)

#define HBRT_FOLD_WHERE(NAME, SUFFIX, V, NEUTRAL)                                                                        \
  HBRT_IVP V::lane_type IVP_##NAME##SUFFIX##T(const V &v, hbrt_ivp::vbool<V::size> where) {                              \
    return IVP_##NAME##SUFFIX(hbrt_ivp::blend(where, v, V(std::numeric_limits<V::lane_type>::NEUTRAL())));               \
  }                                                                                                                 \
  HBRT_IVP V::lane_type IVP_##NAME##SUFFIX##F(const V &v, hbrt_ivp::vbool<V::size> where) {                              \
    return IVP_##NAME##SUFFIX##T(v, ~where);                                                                             \
  }
HBRT_OF_SIGNED(HBRT_FOLD_WHERE, RMAX, min)
HBRT_OF_SIGNED(HBRT_FOLD_WHERE, RMIN, max)

#undef HBRT_FOLD_WHERE
#undef HBRT_FOLD
#undef HBRT_SUM_WHERE
#undef HBRT_SUM
#endif /* HBRT_IVP_REDUCE_H */
