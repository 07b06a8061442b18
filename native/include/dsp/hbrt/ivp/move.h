/* Register to register: conditional moves, other views of the same bits, constants, single lanes. */
#ifndef HBRT_IVP_MOVE_H
#define HBRT_IVP_MOVE_H

#include <hbrt/ivp/lanes.h>

//! family: Moves
//! IVP_MOV{LANES}T(a, b, where) | lanes of a where the boolean is set, of b elsewhere | guide, halide
//! IVP_MOV{LANES}F(a, b, where) | lanes of a where the boolean is clear, of b elsewhere | assumed
//! IVP_SEQ{2NX8,2NX8U,NX16,NX16U,N_2X32,N_2X32U}() | lane i holds i | halide, tflm
//! IVP_ZERO{2NX8,2NX8U,NX16,NX16U,N_2X32,N_2X32U}() | zeros | tflm
#define HBRT_MOVES(SUFFIX, V)                                                                                  \
  HBRT_IVP V IVP_MOV##SUFFIX##T(const V &a, const V &b, hbrt_ivp::vbool<V::size> where) {                      \
    HBRT_CYCLES_COUNT(MOVE);                                                                              \
    return hbrt_ivp::blend(where, a, b);                                                                  \
  }                                                                                                       \
  HBRT_IVP V IVP_MOV##SUFFIX##F(const V &a, const V &b, hbrt_ivp::vbool<V::size> where) {                      \
    HBRT_CYCLES_COUNT(MOVE);                                                                              \
    return hbrt_ivp::blend(~where, a, b);                                                                 \
  }
#define HBRT_CONSTANTS(SUFFIX, V)                                                                              \
  HBRT_IVP V IVP_SEQ##SUFFIX() {                                                                               \
    HBRT_CYCLES_COUNT(MOVE);                                                                              \
    V r;                                                                                                  \
    for (int i = 0; i < V::size; ++i) r.lane[i] = static_cast<V::lane_type>(i);                           \
    return r;                                                                                             \
  }                                                                                                       \
  HBRT_IVP V IVP_ZERO##SUFFIX() {                                                                              \
    HBRT_CYCLES_COUNT(MOVE);                                                                              \
    return V(0);                                                                                          \
  }
#define HBRT_ALL_LANES(DO)      \
  DO(2NX8, xb_vec2Nx8)          \
  DO(2NX8U, xb_vec2Nx8U)        \
  DO(NX16, xb_vecNx16)          \
  DO(NX16U, xb_vecNx16U)        \
  DO(N_2X32, xb_vecN_2x32v)     \
  DO(N_2X32U, xb_vecN_2x32Uv)
HBRT_ALL_LANES(HBRT_MOVES)
HBRT_ALL_LANES(HBRT_CONSTANTS)
HBRT_MOVES(N_2XF32, xb_vecN_2xf32)
HBRT_MOVES(NXF16, xb_vecNxf16)

//! family: The same bits as another type
//! each: VIEWS = 2NX8,2NX8U,NX16,NX16U,N_2X32,N_2X32U,N_2XF32,NXF16
//! IVP_MOV{VIEWS}_FROM{VIEWS}(v) | the 64 bytes of v as that type | guide, halide
#define HBRT_VIEW(TO, R, FROM, V)                              \
  HBRT_IVP R IVP_MOV##TO##_FROM##FROM(const V &v) {            \
    HBRT_CYCLES_COUNT(MOVE);                                   \
    return hbrt_ivp::recast<R>(v);                             \
  }
#define HBRT_VIEWS_OF(FROM, V)               \
  HBRT_VIEW(2NX8, xb_vec2Nx8, FROM, V)       \
  HBRT_VIEW(2NX8U, xb_vec2Nx8U, FROM, V)     \
  HBRT_VIEW(NX16, xb_vecNx16, FROM, V)       \
  HBRT_VIEW(NX16U, xb_vecNx16U, FROM, V)     \
  HBRT_VIEW(N_2X32, xb_vecN_2x32v, FROM, V)  \
  HBRT_VIEW(N_2X32U, xb_vecN_2x32Uv, FROM, V) \
  HBRT_VIEW(N_2XF32, xb_vecN_2xf32, FROM, V) \
  HBRT_VIEW(NXF16, xb_vecNxf16, FROM, V)
HBRT_ALL_LANES(HBRT_VIEWS_OF)
HBRT_VIEWS_OF(N_2XF32, xb_vecN_2xf32)
HBRT_VIEWS_OF(NXF16, xb_vecNxf16)

//! family: Scalars and lanes
//! IVP_MOV{NX16_FROM16,NX16U_FROM16U,NX16_FROM32,NX16_FROM32U,NX16_FROM8U,NX16_FROM8,N_2X32_FROM32,N_2XF32_FROMF32}(x) | a vector with x in each lane, its low bits if it is wider | tflm; that it fills all lanes is assumed
//! IVP_MOVVA{8,16,32}(x) | a vector with x in each lane | tflm
//! IVP_MOVAV{8,16,32}(v) | lane 0 of 8, 16 or 32 bits, with its sign | tflm
//! IVP_MOVAVU{8,16,32}(v) | lane 0, without a sign | tflm
//! IVP_MOVF32_FROMN_2XF32(v) | lane 0 | guide
//! IVP_MOV{16_FROMNX16,32_FROMN_2X32,32U_FROMN_2X32U}(v) | lane 0 | tflm
//! IVP_EXTR{2NX8,NX16,N_2X32}(v, lane) | that lane, with its sign | halide, tflm
//! IVP_EXTRVRN_2X32(v, bytes) | the 32-bit lane at that byte offset | tflm
//! IVP_EXTRPRN_2X32(v, lane) | the four bytes of that lane, as coefficients | halide
//! IVP_EXTRPR64N_2X32(v, pair) | the eight bytes of lanes 2 pair and 2 pair + 1, as coefficients | halide; the order is assumed
//! IVP_DEXTRPRN_2X32(v1, v0, lane1, lane0) | eight coefficients: lane0 of v0 in the lower half, lane1 of v1 in the upper one | halide, tflm; the order is assumed
//! IVP_INSRNX16(&v, x, lane) | writes x into that lane | assumed
//! IVP_INSRN_2X32(&v, x, lane) | writes x into that lane | assumed
#define HBRT_FROM_SCALAR(NAME, V, S)               \
  HBRT_IVP V IVP_##NAME(S x) {                     \
    HBRT_CYCLES_COUNT(MOVE);                       \
    return V(x);                                   \
  }
HBRT_FROM_SCALAR(MOVNX16_FROM16, xb_vecNx16, int16_t)
HBRT_FROM_SCALAR(MOVNX16U_FROM16U, xb_vecNx16U, uint16_t)
HBRT_FROM_SCALAR(MOVNX16_FROM32, xb_vecNx16, int32_t)
HBRT_FROM_SCALAR(MOVNX16_FROM32U, xb_vecNx16, uint32_t)
HBRT_FROM_SCALAR(MOVNX16_FROM8U, xb_vecNx16, uint8_t)
HBRT_FROM_SCALAR(MOVNX16_FROM8, xb_vecNx16, int8_t)
HBRT_FROM_SCALAR(MOVN_2X32_FROM32, xb_vecN_2x32v, int32_t)
HBRT_FROM_SCALAR(MOVN_2XF32_FROMF32, xb_vecN_2xf32, float)
HBRT_FROM_SCALAR(MOVVA8, xb_vec2Nx8, int32_t)
HBRT_FROM_SCALAR(MOVVA16, xb_vecNx16, int32_t)
HBRT_FROM_SCALAR(MOVVA32, xb_vecN_2x32v, int32_t)

#define HBRT_TO_SCALAR(NAME, V, S)                 \
  HBRT_IVP S IVP_##NAME(const V &v) {              \
    HBRT_CYCLES_COUNT(MOVE);                       \
    return static_cast<S>(v.lane[0]);              \
  }
HBRT_TO_SCALAR(MOVAV8, xb_vec2Nx8, int32_t)
HBRT_TO_SCALAR(MOVAV16, xb_vecNx16, int32_t)
HBRT_TO_SCALAR(MOVAV32, xb_vecN_2x32v, int32_t)
HBRT_TO_SCALAR(MOVAVU8, xb_vec2Nx8U, uint32_t)
HBRT_TO_SCALAR(MOVAVU16, xb_vecNx16U, uint32_t)
HBRT_TO_SCALAR(MOVAVU32, xb_vecN_2x32Uv, uint32_t)
HBRT_TO_SCALAR(MOVF32_FROMN_2XF32, xb_vecN_2xf32, xtfloat)
HBRT_TO_SCALAR(MOV16_FROMNX16, xb_vecNx16, int16_t)
HBRT_TO_SCALAR(MOV32_FROMN_2X32, xb_vecN_2x32v, int32_t)
HBRT_TO_SCALAR(MOV32U_FROMN_2X32U, xb_vecN_2x32Uv, uint32_t)

#define HBRT_EXTRACT(NAME, V, S, LANE)             \
  HBRT_IVP S IVP_##NAME(const V &v, int lane) {    \
    HBRT_CYCLES_COUNT(MOVE);                       \
    return v.lane[(LANE) & (V::size - 1)];         \
  }
HBRT_EXTRACT(EXTR2NX8, xb_vec2Nx8, int32_t, lane)
HBRT_EXTRACT(EXTRNX16, xb_vecNx16, int32_t, lane)
HBRT_EXTRACT(EXTRN_2X32, xb_vecN_2x32v, int32_t, lane)
HBRT_EXTRACT(EXTRPRN_2X32, xb_vecN_2x32v, xb_int32pr, lane)
HBRT_EXTRACT(EXTRVRN_2X32, xb_vecN_2x32v, int32_t, lane / 4)

namespace hbrt_ivp {
HBRT_IVP int64_t coefficients(int32_t upper, int32_t lower) {
  return static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(upper)) << 32 | static_cast<uint32_t>(lower));
}
}  // namespace hbrt_ivp
HBRT_IVP xb_int64pr IVP_EXTRPR64N_2X32(const xb_vecN_2x32v &v, int pair) {
  HBRT_CYCLES_COUNT(MOVE);
  return hbrt_ivp::coefficients(v.lane[(2 * pair + 1) & 15], v.lane[2 * pair & 15]);
}
HBRT_IVP xb_int64pr IVP_DEXTRPRN_2X32(const xb_vecN_2x32v &v1, const xb_vecN_2x32v &v0, int lane1, int lane0) {
  HBRT_CYCLES_COUNT(MOVE);
  return hbrt_ivp::coefficients(v1.lane[lane1 & 15], v0.lane[lane0 & 15]);
}
template <class R>
HBRT_IVP void IVP_INSRNX16(R &v, int x, int lane) {
  HBRT_CYCLES_COUNT(MOVE);
  v.lane[lane & 31] = static_cast<typename R::lane_type>(x);
}
template <class R>
HBRT_IVP void IVP_INSRN_2X32(R &v, int x, int lane) {
  HBRT_CYCLES_COUNT(MOVE);
  v.lane[lane & 15] = static_cast<typename R::lane_type>(x);
}

//! family: Conversions with their types in the name
//! xb_{vec2Nx8_rtor_xb_vec2Nx8U,vec2Nx8U_rtor_xb_vec2Nx8,vecNx16_rtor_xb_vecNx16U,vecNx16U_rtor_xb_vecNx16,vecN_2x32v_rtor_xb_vecN_2x32Uv,vecN_2x32Uv_rtor_xb_vecN_2x32v}(v) | the same bits, signed or unsigned | halide
//! xb_int16U_rtor_uint16(x) | the scalar as it is | halide
#define HBRT_RTOR(A, B) \
  HBRT_IVP B A##_rtor_##B(const A &v) { return B(v); }
HBRT_RTOR(xb_vec2Nx8, xb_vec2Nx8U)
HBRT_RTOR(xb_vec2Nx8U, xb_vec2Nx8)
HBRT_RTOR(xb_vecNx16, xb_vecNx16U)
HBRT_RTOR(xb_vecNx16U, xb_vecNx16)
HBRT_RTOR(xb_vecN_2x32v, xb_vecN_2x32Uv)
HBRT_RTOR(xb_vecN_2x32Uv, xb_vecN_2x32v)
HBRT_IVP uint16_t xb_int16U_rtor_uint16(xb_int16U x) { return x; }

#undef HBRT_RTOR
#undef HBRT_EXTRACT
#undef HBRT_TO_SCALAR
#undef HBRT_FROM_SCALAR
#undef HBRT_VIEWS_OF
#undef HBRT_VIEW
#undef HBRT_ALL_LANES
#undef HBRT_CONSTANTS
#undef HBRT_MOVES
#endif /* HBRT_IVP_MOVE_H */
