/* Gathers and scatters: one address per lane. */
#ifndef HBRT_IVP_GATHER_H
#define HBRT_IVP_GATHER_H

#include <hbrt/ivp/memory.h>

namespace hbrt_ivp {

inline constexpr uint32_t window_bytes = 1 << 16;

__attribute__((noinline, cold)) inline void outside(const char *name, unsigned long offset) {
  std::fprintf(stderr, "%s: offset %lu is more than 64 KiB after the base, which the chip cannot reach: use another base, "
               "or move the data closer.\n", name, offset);
}

/* Report once per intrinsic that an offset is too large for the chip. */
template <class M, class O>
HBRT_IVP void check_window(const char *name, bool &is_said, const O &offsets, vbool<O::size> where) {
  if constexpr (sizeof(typename O::lane_type) * 8 > 16) {
    for (int i = 0; i < O::size; ++i)
      if (__builtin_expect(offsets.lane[i] > window_bytes - sizeof(M) && where[i] && !is_said, 0)) {
        is_said = true;
        outside(name, offsets.lane[i]);
      }
  }
}

/* Elements M at base + offset bytes, where the boolean is set; 0 elsewhere. */
template <class M, class O>
HBRT_IVP xb_gsr gathered(const char *name, bool &is_said, const void *base, const O &offsets, vbool<O::size> where) {
  xb_gsr r;
  check_window<M>(name, is_said, offsets, where);
  std::memset(&r, 0, sizeof r);
  for (int i = 0; i < O::size; ++i)
    if (where[i]) std::memcpy(&r.lane[i], at(base, static_cast<intptr_t>(offsets.lane[i])), sizeof(M));
  return r;
}
template <class V, class M>
HBRT_IVP V taken(const xb_gsr &from) {
  V r;
  for (int i = 0; i < V::size; ++i) {
    M element;
    std::memcpy(&element, &from.lane[i], sizeof element);
    r.lane[i] = static_cast<typename V::lane_type>(element);
  }
  return r;
}
/* Write lanes from FROM on to base + offset bytes where the boolean is set, the highest lane last. */
template <class M, int FROM, class V, class O>
HBRT_IVP void scattered(const char *name, bool &is_said, const V &v, void *base, const O &offsets, vbool<O::size> where) {
  check_window<M>(name, is_said, offsets, where);
  for (int i = 0; i < O::size; ++i) {
    const M element = static_cast<M>(v.lane[FROM + i]);
    if (where[i]) std::memcpy(at(base, static_cast<intptr_t>(offsets.lane[i])), &element, sizeof element);
  }
}
template <int N>
inline constexpr vbool<N> all_lanes{static_cast<typename vbool<N>::bits_type>(~0ull)};

}  // namespace hbrt_ivp

//! family: Gathers and scatters
//! Offsets are unsigned and in bytes (Halide). The first half of a gather reads, the second half returns the elements. The chip reaches the 64 KiB after the base; elements outside it are read and written here, and reported once on standard error.
//! each: GATHERS = NX8S,NX8U,NX16,NX16U,N_2X32,N_2X32U,N_2XF32,NXF16
//! IVP_GATHERA{GATHERS}(base, offsets) | reads the element at `base` + offset of each lane into a gather register | halide
//! IVP_GATHERA{GATHERS}T(base, offsets, where) | the same in the lanes where the boolean is set, 0 elsewhere; other addresses are not read | tflm; the 0 is assumed
//! IVP_GATHERD{GATHERS}(gsr) | the vector that was read; 8 bits become 16 with (S) or without (U) a sign | halide
//! IVP_GATHER{GATHERS}(base, offsets) | both halves | tflm
//! IVP_GATHER{GATHERS}T(base, offsets, where) | both halves, in the lanes where the boolean is set | tflm
//! IVP_SCATTER{GATHERS}(v, base, offsets) | writes each lane to `base` + its offset, its low bits if it is wider; if offsets are equal, the highest lane wins | tflm; the order is assumed
//! IVP_SCATTER{GATHERS}T(v, base, offsets, where) | the same for the lanes where the boolean is set | tflm
//! IVP_GATHERD{2NX8,2NX8U}_L(gsr) | the 32 bytes read by IVP_GATHERANX8 in the lower 32 8-bit lanes, 0 in the upper ones | tflm; the 0 is assumed
//! IVP_GATHERD{2NX8,2NX8U}_H(&v, gsr) | the same into the upper 32 lanes | tflm
//! IVP_SCATTER{2NX8,2NX8U}_{L,H}(v, base, offsets) | the lower or upper 32 lanes of 8 bits | tflm; the halves are inferred from the name
//! IVP_SCATTER{2NX8,2NX8U}T_{L,H}(v, base, offsets, where) | the same for the lanes where the boolean of all 64 lanes is set | tflm
//! IVP_SCATTERW() | waits for scatters; here they are already done | tflm
#define HBRT_GATHER(SUFFIX, V, M, O)                                                                                 \
  HBRT_IVP xb_gsr IVP_GATHERA##SUFFIX##T(const void *base, const O &offsets, hbrt_ivp::vbool<O::size> where) {       \
    static bool is_said;                                                                                             \
    HBRT_CYCLES_COUNT(GATHER);                                                                                       \
    return hbrt_ivp::gathered<M>("IVP_GATHERA" #SUFFIX, is_said, base, offsets, where);                              \
  }                                                                                                                  \
  HBRT_IVP xb_gsr IVP_GATHERA##SUFFIX(const void *base, const O &offsets) {                                          \
    return IVP_GATHERA##SUFFIX##T(base, offsets, hbrt_ivp::all_lanes<O::size>);                                      \
  }                                                                                                                  \
  HBRT_IVP V IVP_GATHERD##SUFFIX(const xb_gsr &gsr) {                                                                \
    HBRT_CYCLES_COUNT(MOVE);                                                                                         \
    return hbrt_ivp::taken<V, M>(gsr);                                                                               \
  }                                                                                                                  \
  HBRT_IVP V IVP_GATHER##SUFFIX(const void *base, const O &offsets) {                                                \
    return IVP_GATHERD##SUFFIX(IVP_GATHERA##SUFFIX(base, offsets));                                                  \
  }                                                                                                                  \
  HBRT_IVP V IVP_GATHER##SUFFIX##T(const void *base, const O &offsets, hbrt_ivp::vbool<O::size> where) {             \
    return IVP_GATHERD##SUFFIX(IVP_GATHERA##SUFFIX##T(base, offsets, where));                                        \
  }                                                                                                                  \
  HBRT_SCATTER(SUFFIX, , V, M, 0, O)
#define HBRT_SCATTER(SUFFIX, HALF, V, M, FROM, O)                                                                    \
  HBRT_IVP void IVP_SCATTER##SUFFIX##T##HALF(const V &v, void *base, const O &offsets, hbrt_ivp::vbool<V::size> where) { \
    using bits_type = hbrt_ivp::vbool<O::size>::bits_type;                                                           \
    static bool is_said;                                                                                             \
    HBRT_CYCLES_COUNT(GATHER);                                                                                       \
    hbrt_ivp::scattered<M, FROM>("IVP_SCATTER" #SUFFIX #HALF, is_said, v, base, offsets,                             \
                                 hbrt_ivp::vbool<O::size>{static_cast<bits_type>(where.bits >> FROM)});              \
  }                                                                                                                  \
  HBRT_IVP void IVP_SCATTER##SUFFIX##HALF(const V &v, void *base, const O &offsets) {                                \
    IVP_SCATTER##SUFFIX##T##HALF(v, base, offsets, hbrt_ivp::all_lanes<V::size>);                                    \
  }
#define HBRT_GATHER_HALVES(SUFFIX, V)                                                                                \
  template <class R>                                                                                                 \
  HBRT_IVP void IVP_GATHERD##SUFFIX##_H(R &v, const xb_gsr &gsr) {                                                   \
    HBRT_CYCLES_COUNT(MOVE);                                                                                         \
    for (int i = 0; i < 32; ++i) v.lane[32 + i] = static_cast<typename R::lane_type>(gsr.lane[i]);                   \
  }                                                                                                                  \
  HBRT_IVP V IVP_GATHERD##SUFFIX##_L(const xb_gsr &gsr) {                                                            \
    HBRT_CYCLES_COUNT(MOVE);                                                                                         \
    V v(0);                                                                                                          \
    for (int i = 0; i < 32; ++i) v.lane[i] = static_cast<V::lane_type>(gsr.lane[i]);                                 \
    return v;                                                                                                        \
  }
HBRT_GATHER_HALVES(2NX8, xb_vec2Nx8)
HBRT_GATHER_HALVES(2NX8U, xb_vec2Nx8U)
HBRT_GATHER(NX8S, xb_vecNx16, int8_t, xb_vecNx16U)
HBRT_GATHER(NX8U, xb_vecNx16U, uint8_t, xb_vecNx16U)
HBRT_GATHER(NX16, xb_vecNx16, int16_t, xb_vecNx16U)
HBRT_GATHER(NX16U, xb_vecNx16U, uint16_t, xb_vecNx16U)
HBRT_GATHER(N_2X32, xb_vecN_2x32v, int32_t, xb_vecN_2x32Uv)
HBRT_GATHER(N_2X32U, xb_vecN_2x32Uv, uint32_t, xb_vecN_2x32Uv)
HBRT_GATHER(N_2XF32, xb_vecN_2xf32, float, xb_vecN_2x32Uv)
HBRT_GATHER(NXF16, xb_vecNxf16, xb_f16, xb_vecNx16U)
HBRT_SCATTER(2NX8, _L, xb_vec2Nx8, int8_t, 0, xb_vecNx16U)
HBRT_SCATTER(2NX8, _H, xb_vec2Nx8, int8_t, 32, xb_vecNx16U)
HBRT_SCATTER(2NX8U, _L, xb_vec2Nx8U, uint8_t, 0, xb_vecNx16U)
HBRT_SCATTER(2NX8U, _H, xb_vec2Nx8U, uint8_t, 32, xb_vecNx16U)
HBRT_IVP void IVP_SCATTERW() { HBRT_CYCLES_COUNT(STORE); }

#undef HBRT_GATHER_HALVES
#undef HBRT_SCATTER
#undef HBRT_GATHER
#endif /* HBRT_IVP_GATHER_H */
