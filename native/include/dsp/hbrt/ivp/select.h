/* Lanes to other lanes: by an index per lane, or by a named pattern. */
#ifndef HBRT_IVP_SELECT_H
#define HBRT_IVP_SELECT_H

#include <hbrt/ivp/lanes.h>
#include <hbrt/ivp/patterns.h>

namespace hbrt_ivp {

/* An element of three interleaved channels, given that the first two are already interleaved in one vector: pixel and
 * channel become an index into `low` (two channels, starting at the step's half), followed by `high` (the third). */
HBRT_IVP int of_three(int element, int n, int step) {
  const int pixel = element / 3, channel = element % 3;
  return channel == 2 ? n + pixel % n : (2 * (pixel - step * n / 2) + channel) & (n - 1);
}
/* The element of `low` and `high`, n each, that element i of the result takes. */
HBRT_IVP int source_of(int kind, int k, int n, int i) {
  const int group = k ? i / k : 0, within = k ? i % k : 0;
  switch (kind) {
    case HBRT_ROTATE_RIGHT: return i + k;
    case HBRT_ROTATE_LEFT: return n - k + i;
    case HBRT_INTERLEAVE_LO: return group / 2 * k + within + group % 2 * n;
    case HBRT_INTERLEAVE_HI: return n / 2 + group / 2 * k + within + group % 2 * n;
    case HBRT_INTERLEAVE_EVEN: return group / 2 * 2 * k + within + group % 2 * n;
    case HBRT_INTERLEAVE_ODD: return (group / 2 * 2 + 1) * k + within + group % 2 * n;
    case HBRT_DEINTERLEAVE_EVEN: return group * 2 * k + within;
    case HBRT_DEINTERLEAVE_ODD: return (group * 2 + 1) * k + within;
    case HBRT_LO_HALVES: return i < n / 2 ? i : n / 2 + i;
    case HBRT_HI_HALVES: return i < n / 2 ? n / 2 + i : n + i;
    case HBRT_SWAP: return i ^ k;
    case HBRT_REVERSE: return n - 1 - i;
    case HBRT_INTERLEAVE_C3_LO: return of_three(k ? 2 * n + i : i, n, k);
    case HBRT_INTERLEAVE_C3_HI: return of_three(n + i, n, k);
    case HBRT_DEINTERLEAVE_C3_LO: return (3 * (k * n / 2 + i / 2) + i % 2 - k * n) & (2 * n - 1);
    case HBRT_DEINTERLEAVE_C3_HI: return (3 * i + 2 - k * n) & (2 * n - 1);
    default: return k; /* HBRT_REPEAT */
  }
}

/* Elements of one size, with `high` after `low` in `both`, interleaved or every second one: the compiler turns this
 * into vector instructions. A group of k elements counts as one element of k times the size. */
template <class E>
HBRT_IVP bool by_groups(uint8_t *to, const uint8_t *from, int kind) {
  constexpr int n = 64 / sizeof(E);
  E both[2 * n], result[n];
  std::memcpy(both, from, sizeof both);
  switch (kind) {
    case HBRT_INTERLEAVE_LO:
      for (int i = 0; i < n / 2; ++i) result[2 * i] = both[i], result[2 * i + 1] = both[n + i];
      break;
    case HBRT_INTERLEAVE_HI:
      for (int i = 0; i < n / 2; ++i) result[2 * i] = both[n / 2 + i], result[2 * i + 1] = both[n + n / 2 + i];
      break;
    case HBRT_DEINTERLEAVE_EVEN:
      for (int i = 0; i < n; ++i) result[i] = both[2 * i];
      break;
    case HBRT_DEINTERLEAVE_ODD:
      for (int i = 0; i < n; ++i) result[i] = both[2 * i + 1];
      break;
    default: return false;
  }
  std::memcpy(to, result, sizeof result);
  return true;
}

template <class V>
HBRT_IVP V select_pattern(const V &high, const V &low, int pattern, int second = 0) {
  uint8_t from[128], to[64];
  std::memcpy(from, low.lane, 64);
  std::memcpy(from + 64, high.lane, 64);
  const int kind = (pattern >> 16) + second, unit = pattern >> 8 & 0xff, k = pattern & 0xff, n = 64 / unit, group = k * unit;
  const bool is_done = group == 1 ? by_groups<uint8_t>(to, from, kind) : group == 2 ? by_groups<uint16_t>(to, from, kind)
                     : group == 4 ? by_groups<uint32_t>(to, from, kind) : group == 8 ? by_groups<uint64_t>(to, from, kind) : false;
  if (!is_done)
    for (int i = 0; i < n; ++i) std::memcpy(to + i * unit, from + (source_of(kind, k, n, i) & (2 * n - 1)) * unit, static_cast<size_t>(unit));
  V r;
  std::memcpy(r.lane, to, sizeof to);
  return r;
}
/* Indices beyond two vectors wrap around. */
template <class V, class I>
HBRT_IVP V select(const V &high, const V &low, const I &index) {
  V r;
  for (int i = 0; i < V::size; ++i) {
    const int from = index.lane[i] & (2 * V::size - 1);
    r.lane[i] = from < V::size ? low.lane[from] : high.lane[from - V::size];
  }
  return r;
}
template <class V, class I>
HBRT_IVP V shuffle(const V &v, const I &index) {
  V r;
  for (int i = 0; i < V::size; ++i) r.lane[i] = v.lane[index.lane[i] & (V::size - 1)];
  return r;
}
/* A byte index for a dual select: the even bytes (PART 0) are for the low result, the odd ones for the high one. */
template <class V, int PART>
HBRT_IVP V select_by_bytes(const V &high, const V &low, const xb_vec2Nx8 &bytes) {
  vec<int32_t, V::size> index;
  for (int i = 0; i < V::size; ++i) index.lane[i] = bytes.lane[2 * i + PART];
  return select(high, low, index);
}

}  // namespace hbrt_ivp

//! family: Selects and shuffles
//! each: LANES = 2NX8,2NX8U,NX16,NX16U,N_2X32,N_2X32U,N_2XF32,NXF16
//! IVP_SEL{LANES}(high, low, index) | lane i is lane index[i] of low (0 to N - 1) and high (N to 2 N - 1); higher bits of the index are ignored | halide; the last is assumed
//! IVP_SEL{LANES}T(&r, high, low, index, where) | the same in the lanes where the boolean is set | tflm
//! IVP_SEL{LANES}I(high, low, pattern) | the same by a pattern IVP_SELI_ | guide, halide
//! IVP_SHFL{LANES}(v, index) | lane i is lane index[i] of v | halide, tflm
//! IVP_SHFL{LANES}I(v, pattern) | the same by a pattern IVP_SHFLI_ | tflm
//! IVP_SELS{LANES}(v, lane) | that lane, as a scalar | tflm
//! IVP_REP{LANES}(v, lane) | that lane in all lanes | tflm
//! IVP_DSEL{LANES}I(&r1, &r0, high, low, pattern) | two selects at once by a pattern IVP_DSELI_ | halide, tflm
//! IVP_DSEL{2NX8,2NX8U}I_H(&r1, &r0, high, low, pattern) | the same, but r1 keeps its lower half. Interleave a, b and c: (rg1, rg0) of b, a by INTERLEAVE_1; (r1, r0) of c, rg0 by C3_STEP_0; (r1, r2) of c, rg1 by C3_STEP_1 with _H; backwards likewise | halide
//! IVP_DSEL{NX16,NX16U}(&r1, &r0, high, low, bytes) | two selects: byte 2 i is the index of lane i of r0, byte 2 i + 1 that of r1 | halide
//! IVP_DSEL{NX16,NX16U}T(&r1, &r0, high, low, bytes, where) | the same where the bit of that byte is set | halide
#define HBRT_SELECTS(SUFFIX, V, INDEX)                                                                                       \
  HBRT_IVP V IVP_SEL##SUFFIX(const V &high, const V &low, const INDEX &index) {                                              \
    HBRT_CYCLES_COUNT(SELECT);                                                                                      \
    return hbrt_ivp::select(high, low, index);                                                                      \
  }                                                                                                                 \
  template <class R>                                                                                                \
  HBRT_IVP void IVP_SEL##SUFFIX##T(R &r, const V &high, const V &low, const INDEX &index, hbrt_ivp::vbool<V::size> where) {  \
    r = hbrt_ivp::blend(where, IVP_SEL##SUFFIX(high, low, index), V(r));                                                 \
  }                                                                                                                 \
  HBRT_IVP V IVP_SEL##SUFFIX##I(const V &high, const V &low, int pattern) {                                              \
    HBRT_CYCLES_COUNT(SELECT);                                                                                      \
    return hbrt_ivp::select_pattern(high, low, pattern);                                                            \
  }                                                                                                                 \
  HBRT_IVP V IVP_SHFL##SUFFIX(const V &v, const INDEX &index) {                                                              \
    HBRT_CYCLES_COUNT(SELECT);                                                                                      \
    return hbrt_ivp::shuffle(v, index);                                                                             \
  }                                                                                                                 \
  HBRT_IVP V IVP_SHFL##SUFFIX##I(const V &v, int pattern) {                                                              \
    HBRT_CYCLES_COUNT(SELECT);                                                                                      \
    return hbrt_ivp::select_pattern(v, v, pattern);                                                                 \
  }                                                                                                                 \
  HBRT_IVP V::lane_type IVP_SELS##SUFFIX(const V &v, int lane) {                                                         \
    HBRT_CYCLES_COUNT(SELECT);                                                                                      \
    return v.lane[lane & (V::size - 1)];                                                                            \
  }                                                                                                                 \
  HBRT_IVP V IVP_REP##SUFFIX(const V &v, int lane) { return V(IVP_SELS##SUFFIX(v, lane)); }                                   \
  template <class R1, class R0>                                                                                     \
  HBRT_IVP void IVP_DSEL##SUFFIX##I(R1 &r1, R0 &r0, const V &high, const V &low, int pattern) {                          \
    HBRT_CYCLES_COUNT(SELECT);                                                                                      \
    const V first = hbrt_ivp::select_pattern(high, low, pattern);                                                   \
    r1 = hbrt_ivp::select_pattern(high, low, pattern, 1);                                                           \
    r0 = first;                                                                                                     \
  }
HBRT_SELECTS(2NX8, xb_vec2Nx8, xb_vec2Nx8)
HBRT_SELECTS(2NX8U, xb_vec2Nx8U, xb_vec2Nx8)
HBRT_SELECTS(NX16, xb_vecNx16, xb_vecNx16)
HBRT_SELECTS(NX16U, xb_vecNx16U, xb_vecNx16)
HBRT_SELECTS(N_2X32, xb_vecN_2x32v, xb_vecN_2x32v)
HBRT_SELECTS(N_2X32U, xb_vecN_2x32Uv, xb_vecN_2x32v)
HBRT_SELECTS(N_2XF32, xb_vecN_2xf32, xb_vecN_2x32v)
HBRT_SELECTS(NXF16, xb_vecNxf16, xb_vecNx16)

#define HBRT_DUAL_UPPER(SUFFIX, V)                                                                                       \
  template <class R1, class R0>                                                                                     \
  HBRT_IVP void IVP_DSEL##SUFFIX##I_H(R1 &r1, R0 &r0, const V &high, const V &low, int pattern) {                        \
    HBRT_CYCLES_COUNT(SELECT);                                                                                      \
    const V first = hbrt_ivp::select_pattern(high, low, pattern);                                                   \
    r1 = hbrt_ivp::blend(vbool2N{~0ull << 32}, hbrt_ivp::select_pattern(high, low, pattern, 1), V(r1));             \
    r0 = first;                                                                                                     \
  }
HBRT_DUAL_UPPER(2NX8, xb_vec2Nx8)
HBRT_DUAL_UPPER(2NX8U, xb_vec2Nx8U)

#define HBRT_DUAL(SUFFIX, V)                                                                                             \
  template <class R1, class R0>                                                                                     \
  HBRT_IVP void IVP_DSEL##SUFFIX(R1 &r1, R0 &r0, const V &high, const V &low, const xb_vec2Nx8 &bytes) {                 \
    HBRT_CYCLES_COUNT(SELECT);                                                                                      \
    const V first = hbrt_ivp::select_by_bytes<V, 0>(high, low, bytes);                                              \
    r1 = hbrt_ivp::select_by_bytes<V, 1>(high, low, bytes);                                                         \
    r0 = first;                                                                                                     \
  }                                                                                                                 \
  template <class R1, class R0>                                                                                     \
  HBRT_IVP void IVP_DSEL##SUFFIX##T(R1 &r1, R0 &r0, const V &high, const V &low, const xb_vec2Nx8 &bytes, vbool2N where) { \
    V second, first;                                                                                                \
    vboolN odd{0}, even{0};                                                                                         \
    IVP_DSEL##SUFFIX(second, first, high, low, bytes);                                                                   \
    for (int i = 0; i < V::size; ++i) {                                                                             \
      even.bits |= static_cast<uint32_t>(where[2 * i]) << i;                                                        \
      odd.bits |= static_cast<uint32_t>(where[2 * i + 1]) << i;                                                     \
    }                                                                                                               \
    r1 = hbrt_ivp::blend(odd, second, V(r1));                                                                       \
    r0 = hbrt_ivp::blend(even, first, V(r0));                                                                       \
  }
HBRT_DUAL(NX16, xb_vecNx16)
HBRT_DUAL(NX16U, xb_vecNx16U)

#undef HBRT_DUAL
#undef HBRT_DUAL_UPPER
#undef HBRT_SELECTS
#endif /* HBRT_IVP_SELECT_H */
