/* Wide registers to vectors, and vectors to wide registers. */
#ifndef HBRT_IVP_PACK_H
#define HBRT_IVP_PACK_H

#include <hbrt/ivp/multiply.h>
#include <hbrt/ivp/shift.h>

namespace hbrt_ivp::rule {

/* A lane shifted right by 0 to 63 bits, then narrowed. */
template <class L, bool ROUNDS, bool SATURATES>
HBRT_IVP L packed(int64_t value, int shift) {
  const int n = shift < 0 ? 0 : shift > 63 ? 63 : shift;
  int64_t shifted = value >> n;
  if (ROUNDS && n > 0) shifted += value >> (n - 1) & 1;
  return SATURATES ? bounded<L>(shifted) : static_cast<L>(shifted);
}
/* Shift all lanes by one count, in lanes of the register's own type: a shift past the width shifts out all bits but the
 * sign. */
template <class V, bool ROUNDS, bool SATURATES, class W>
HBRT_IVP V pack(const W &w, int shift) {
  using L = typename V::lane_type;
  using X = std::remove_cv_t<std::remove_reference_t<decltype(w.lane[0])>>;
  using U = std::make_unsigned_t<X>;
  constexpr int most = 8 * sizeof(X) - 1;
  constexpr X high = static_cast<X>((1ull << (8 * sizeof(L) - std::is_signed_v<L>)) - 1), low = std::is_signed_v<L> ? -high - 1 : 0;
  const int n = shift < 0 ? 0 : shift > most ? most : shift, before = n > 0 ? n - 1 : 0;
  const X half = ROUNDS && n > 0;
  V r;
  for (int i = 0; i < V::size; ++i) {
    const X x = static_cast<X>(static_cast<U>(w.lane[i]) << W::unused) >> W::unused;
    const X shifted = (x >> n) + (x >> before & half);
    r.lane[i] = static_cast<L>(!SATURATES ? shifted : shifted < low ? low : shifted > high ? high : shifted);
  }
  return r;
}
template <class V, bool ROUNDS, bool SATURATES, class W, class C>
HBRT_IVP V pack_each(const W &w, const C &shifts) {
  V r;
  for (int i = 0; i < V::size; ++i) r.lane[i] = packed<typename V::lane_type, ROUNDS, SATURATES>(w.value(i), shifts.lane[i]);
  return r;
}
/* The even (PART 0) or odd (PART 1) lanes, twice as wide as in `pack`. */
template <class V, int PART, bool ROUNDS, bool SATURATES, class W>
HBRT_IVP V pack_half(const W &w, int shift) {
  V r;
  for (int i = 0; i < V::size; ++i) r.lane[i] = packed<typename V::lane_type, ROUNDS, SATURATES>(w.value(2 * i + PART), shift);
  return r;
}
/* V::size lanes from lane FROM on. */
template <class V, int FROM, bool SATURATES, class W>
HBRT_IVP V narrow(const W &w) {
  V r;
  for (int i = 0; i < V::size; ++i) r.lane[i] = packed<typename V::lane_type, false, SATURATES>(w.value(FROM + i), 0);
  return r;
}
template <class W, class V>
HBRT_IVP void widen_into(W &w, const V &v, int from) {
  for (int i = 0; i < V::size; ++i) w.lane[from + i] = static_cast<decltype(w.value(0))>(v.lane[i]);
}
template <class W, class V>
HBRT_IVP W widen(const V &high, const V &low) {
  W w;
  widen_into(w, low, 0);
  widen_into(w, high, V::size);
  return w;
}

}  // namespace hbrt_ivp::rule

//! family: Packing wide registers
//! `V` shifts by a count per lane, `VR` by one count; both round to nearest, ties up, and saturate; `U` saturates to unsigned; `NR` neither rounds nor saturates. A shift below 0 counts as 0 and above 63 as 63 (assumed). `_0` takes the even lanes, `_1` the odd ones, into lanes of twice the width.
//! IVP_PACK{V,VR}{2NX24,NX48,N_2X64W}(w, shift) | shifts, rounds, saturates | halide
//! IVP_PACK{V,VR}NR{2NX24,NX48,N_2X64W}(w, shift) | shifts, takes the low bits | guide, halide
//! IVP_PACK{V,VR}U{2NX24,NX48,N_2X64W}(w, shift) | shifts, rounds, saturates to unsigned | halide
//! IVP_PACKVR{2NX24,NX48}_{0,1}(w, shift) | shifts, rounds, saturates every second lane | tflm
//! IVP_PACKVRNR{2NX24,NX48}_{0,1}(w, shift) | shifts every second lane, takes the low bits | halide, tflm
//! IVP_PACKL{2NX24,NX48,N_2X64W}(w) | the low 8, 16 or 32 bits | halide, tflm
//! IVP_PACKLN_2X96(w) | the low 32 bits | halide
//! IVP_PACKL2NX24_{0,1}(w) | the low 16 bits of every second lane | tflm
//! IVP_PACKMNX48(w) | bits 16 to 31 | tflm
//! IVP_PACKHNX48(w) | bits 32 to 47 | tflm
//! IVP_PACKHN_2X64W(w) | bits 32 to 63 | guide, halide
//! IVP_PACKQNX48(w) | w / 2^15, rounded to nearest, ties up, saturates | halide; saturation is assumed
#define HBRT_PACK(WIDE, W, NARROW, UNSIGNED, COUNTS)                                                                                     \
  HBRT_PACK_BY(VR, WIDE, W, NARROW, int, pack<NARROW HBRT_COMMA true HBRT_COMMA true>)                                            \
  HBRT_PACK_BY(VRNR, WIDE, W, NARROW, int, pack<NARROW HBRT_COMMA false HBRT_COMMA false>)                                        \
  HBRT_PACK_BY(VRU, WIDE, W, UNSIGNED, int, pack<UNSIGNED HBRT_COMMA true HBRT_COMMA true>)                                           \
  HBRT_PACK_BY(V, WIDE, W, NARROW, const COUNTS &, pack_each<NARROW HBRT_COMMA true HBRT_COMMA true>)                                  \
  HBRT_PACK_BY(VNR, WIDE, W, NARROW, const COUNTS &, pack_each<NARROW HBRT_COMMA false HBRT_COMMA false>)                              \
  HBRT_PACK_BY(VU, WIDE, W, UNSIGNED, const COUNTS &, pack_each<UNSIGNED HBRT_COMMA true HBRT_COMMA true>)                                 \
  HBRT_IVP NARROW IVP_PACKL##WIDE(const W &w) {                                                                              \
    HBRT_CYCLES_COUNT(PACK);                                                                                            \
    return hbrt_ivp::rule::pack<NARROW, false, false>(w, 0);                                                                 \
  }
#define HBRT_PACK_BY(HOW, WIDE, W, V, COUNT, RULE)                  \
  HBRT_IVP V IVP_PACK##HOW##WIDE(const W &w, COUNT shift) {         \
    HBRT_CYCLES_COUNT(PACK);                                        \
    return hbrt_ivp::rule::RULE(w, shift);                          \
  }
#define HBRT_PACK_HALF(WIDE, PART, W, V)                                                                                \
  HBRT_PACK_BY(VR, WIDE##_##PART, W, V, int, pack_half<V HBRT_COMMA PART HBRT_COMMA true HBRT_COMMA true>)              \
  HBRT_PACK_BY(VRNR, WIDE##_##PART, W, V, int, pack_half<V HBRT_COMMA PART HBRT_COMMA false HBRT_COMMA false>)
#define HBRT_COMMA ,
HBRT_PACK(2NX24, xb_vec2Nx24, xb_vec2Nx8, xb_vec2Nx8U, xb_vec2Nx8)
HBRT_PACK(NX48, xb_vecNx48, xb_vecNx16, xb_vecNx16U, xb_vecNx16)
HBRT_PACK(N_2X64W, xb_vecN_2x64w, xb_vecN_2x32v, xb_vecN_2x32Uv, xb_vecN_2x32v)
HBRT_PACK_HALF(2NX24, 0, xb_vec2Nx24, xb_vecNx16)
HBRT_PACK_HALF(2NX24, 1, xb_vec2Nx24, xb_vecNx16)
HBRT_PACK_HALF(NX48, 0, xb_vecNx48, xb_vecN_2x32v)
HBRT_PACK_HALF(NX48, 1, xb_vecNx48, xb_vecN_2x32v)

#define HBRT_PACK_OUT(NAME, W, V, RESULT)             \
  HBRT_IVP V IVP_##NAME(const W &w) {                 \
    HBRT_CYCLES_COUNT(PACK);                          \
    return hbrt_ivp::rule::RESULT;                    \
  }
HBRT_PACK_OUT(PACKLN_2X96, xb_vecN_2x64w, xb_vecN_2x32v, pack<xb_vecN_2x32v HBRT_COMMA false HBRT_COMMA false>(w, 0))
HBRT_PACK_OUT(PACKL2NX24_0, xb_vec2Nx24, xb_vecNx16, pack_half<xb_vecNx16 HBRT_COMMA 0 HBRT_COMMA false HBRT_COMMA false>(w, 0))
HBRT_PACK_OUT(PACKL2NX24_1, xb_vec2Nx24, xb_vecNx16, pack_half<xb_vecNx16 HBRT_COMMA 1 HBRT_COMMA false HBRT_COMMA false>(w, 0))
HBRT_PACK_OUT(PACKMNX48, xb_vecNx48, xb_vecNx16, pack<xb_vecNx16 HBRT_COMMA false HBRT_COMMA false>(w, 16))
HBRT_PACK_OUT(PACKHNX48, xb_vecNx48, xb_vecNx16, pack<xb_vecNx16 HBRT_COMMA false HBRT_COMMA false>(w, 32))
HBRT_PACK_OUT(PACKHN_2X64W, xb_vecN_2x64w, xb_vecN_2x32v, pack<xb_vecN_2x32v HBRT_COMMA false HBRT_COMMA false>(w, 32))
HBRT_PACK_OUT(PACKQNX48, xb_vecNx48, xb_vecNx16, pack<xb_vecNx16 HBRT_COMMA true HBRT_COMMA true>(w, 15))

//! family: Conversions of wide registers
//! IVP_CVT32S2NX24{LL,LH,HL,HH}(w) | lanes 0 to 15, 16 to 31, 32 to 47 or 48 to 63, with their sign | halide, tflm
//! IVP_CVT16S2NX24{L,H}(w) | the lower or upper half of the lanes in 16 bits, saturates | halide, tflm; saturation is assumed
//! IVP_CVT16U2NX24{L,H}(w) | the same, the low 16 bits | halide, tflm
//! IVP_CVT32SNX48{L,H}(w) | the lower or upper half of the lanes in 32 bits, saturates | halide, tflm; saturation is assumed
//! IVP_CVT32UNX48{L,H}(w) | the same, the low 32 bits | halide, tflm
//! IVP_CVT64SNX48{LL,LH,HL,HH}(w) | eight lanes with their sign, as pairs of 32 bits: lanes 0 to 7, 8 to 15, 16 to 23 or 24 to 31 | tflm
//! IVP_CVT48SNX32(high, low) | 32 lanes of two vectors, with their sign | halide, tflm
//! IVP_CVT48UNX32(high, low) | 32 lanes of two vectors of unsigned lanes | halide, tflm
//! IVP_CVT48SNX32L(low) | 16 lanes in the lower half, 0 in the upper one | tflm; the upper half is assumed
//! IVP_CVT48UNX32L(low) | the same for unsigned lanes | tflm; the upper half is assumed
//! IVP_CVT24S2NX16(high, low) | 64 lanes of two vectors, with their sign | halide, tflm
//! IVP_CVT24UNX32L(high, low) | 32 lanes of two vectors in the lower half, the low 24 bits, 0 in the upper one | halide, tflm
//! IVP_CVT24UNX32H(&w, high, low) | the same into the upper half | halide, tflm
//! IVP_UNPK{S,U}2NX8_{0,1}(v) | the even or odd lanes in 16 bits, with or without their sign | tflm
//! IVP_UNPK{S,U}NX16_{L,H}(v) | the lower or upper half of the lanes in 32 bits, with or without their sign | tflm
//! IVP_MOV2NX24_FROMNX48(w) | the bits of 32 lanes of 48 as 64 of 24: the low half of each in an even lane | tflm
//! IVP_MOVNX48_FROM2NX24(w) | the bits of 64 lanes of 24 as 32 of 48 | tflm
//! IVP_ZERO{2NX24,NX48,N_2X64W}() | a wide register of zeros | halide, tflm
#define HBRT_CVT(NAME, W, V, FROM, SATURATES) HBRT_PACK_OUT(NAME, W, V, narrow<V HBRT_COMMA FROM HBRT_COMMA SATURATES>(w))
HBRT_CVT(CVT32S2NX24LL, xb_vec2Nx24, xb_vecN_2x32v, 0, false)
HBRT_CVT(CVT32S2NX24LH, xb_vec2Nx24, xb_vecN_2x32v, 16, false)
HBRT_CVT(CVT32S2NX24HL, xb_vec2Nx24, xb_vecN_2x32v, 32, false)
HBRT_CVT(CVT32S2NX24HH, xb_vec2Nx24, xb_vecN_2x32v, 48, false)
HBRT_CVT(CVT16S2NX24L, xb_vec2Nx24, xb_vecNx16, 0, true)
HBRT_CVT(CVT16S2NX24H, xb_vec2Nx24, xb_vecNx16, 32, true)
HBRT_CVT(CVT16U2NX24L, xb_vec2Nx24, xb_vecNx16U, 0, false)
HBRT_CVT(CVT16U2NX24H, xb_vec2Nx24, xb_vecNx16U, 32, false)
HBRT_CVT(CVT32SNX48L, xb_vecNx48, xb_vecN_2x32v, 0, true)
HBRT_CVT(CVT32SNX48H, xb_vecNx48, xb_vecN_2x32v, 16, true)
HBRT_CVT(CVT32UNX48L, xb_vecNx48, xb_vecN_2x32Uv, 0, false)
HBRT_CVT(CVT32UNX48H, xb_vecNx48, xb_vecN_2x32Uv, 16, false)

#define HBRT_CVT64(NAME, FROM)                                                                    \
  HBRT_IVP xb_vecN_2x32v IVP_CVT64SNX48##NAME(const xb_vecNx48 &w) {                              \
    HBRT_CYCLES_COUNT(PACK);                                                                      \
    int64_t lane[8];                                                                              \
    for (int i = 0; i < 8; ++i) lane[i] = w.value(FROM + i);                                      \
    xb_vecN_2x32v r;                                                                              \
    std::memcpy(r.lane, lane, sizeof lane);                                                       \
    return r;                                                                                     \
  }
HBRT_CVT64(LL, 0)
HBRT_CVT64(LH, 8)
HBRT_CVT64(HL, 16)
HBRT_CVT64(HH, 24)

#define HBRT_WIDEN(NAME, W, V)                                \
  HBRT_IVP W IVP_##NAME(const V &high, const V &low) {        \
    HBRT_CYCLES_COUNT(PACK);                                  \
    return hbrt_ivp::rule::widen<W>(high, low);               \
  }
HBRT_WIDEN(CVT48SNX32, xb_vecNx48, xb_vecN_2x32v)
HBRT_WIDEN(CVT48UNX32, xb_vecNx48, xb_vecN_2x32Uv)
HBRT_WIDEN(CVT24S2NX16, xb_vec2Nx24, xb_vecNx16)
HBRT_IVP xb_vecNx48 IVP_CVT48SNX32L(const xb_vecN_2x32v &low) { return IVP_CVT48SNX32(xb_vecN_2x32v(0), low); }
HBRT_IVP xb_vecNx48 IVP_CVT48UNX32L(const xb_vecN_2x32Uv &low) { return IVP_CVT48UNX32(xb_vecN_2x32Uv(0), low); }
HBRT_IVP xb_vec2Nx24 IVP_CVT24UNX32L(const xb_vecN_2x32Uv &high, const xb_vecN_2x32Uv &low) {
  HBRT_CYCLES_COUNT(PACK);
  xb_vec2Nx24 w(0);
  hbrt_ivp::rule::widen_into(w, low, 0);
  hbrt_ivp::rule::widen_into(w, high, 16);
  return w;
}
HBRT_IVP void IVP_CVT24UNX32H(xb_vec2Nx24 &w, const xb_vecN_2x32Uv &high, const xb_vecN_2x32Uv &low) {
  HBRT_CYCLES_COUNT(PACK);
  hbrt_ivp::rule::widen_into(w, low, 32);
  hbrt_ivp::rule::widen_into(w, high, 48);
}
HBRT_IVP xb_vec2Nx24 IVP_MOV2NX24_FROMNX48(const xb_vecNx48 &w) {
  xb_vec2Nx24 r;
  for (int i = 0; i < w.size; ++i) {
    r.lane[2 * i] = static_cast<int32_t>(w.value(i));
    r.lane[2 * i + 1] = static_cast<int32_t>(w.value(i) >> 24);
  }
  return r;
}
HBRT_IVP xb_vecNx48 IVP_MOVNX48_FROM2NX24(const xb_vec2Nx24 &w) {
  xb_vecNx48 r;
  for (int i = 0; i < r.size; ++i) r.lane[i] = static_cast<int64_t>(w.value(2 * i + 1)) * (1 << 24) + (w.value(2 * i) & 0xffffff);
  return r;
}
#define HBRT_UNPACK(NAME, R, V, LANE)                                                                     \
  HBRT_IVP R IVP_UNPK##NAME(const V &v) {                                                                 \
    HBRT_CYCLES_COUNT(ALU);                                                                               \
    R r;                                                                                                  \
    for (int i = 0; i < R::size; ++i) r.lane[i] = static_cast<R::lane_type>(v.lane[LANE]);                \
    return r;                                                                                             \
  }
HBRT_UNPACK(S2NX8_0, xb_vecNx16, xb_vec2Nx8, 2 * i)
HBRT_UNPACK(S2NX8_1, xb_vecNx16, xb_vec2Nx8, 2 * i + 1)
HBRT_UNPACK(U2NX8_0, xb_vecNx16U, xb_vec2Nx8U, 2 * i)
HBRT_UNPACK(U2NX8_1, xb_vecNx16U, xb_vec2Nx8U, 2 * i + 1)
HBRT_UNPACK(SNX16_L, xb_vecN_2x32v, xb_vecNx16, i)
HBRT_UNPACK(SNX16_H, xb_vecN_2x32v, xb_vecNx16, 16 + i)
HBRT_UNPACK(UNX16_L, xb_vecN_2x32Uv, xb_vecNx16U, i)
HBRT_UNPACK(UNX16_H, xb_vecN_2x32Uv, xb_vecNx16U, 16 + i)
#define HBRT_ZERO(SUFFIX, W)                     \
  HBRT_IVP W IVP_ZERO##SUFFIX() {                \
    HBRT_CYCLES_COUNT(MOVE);                \
    return W(0);                            \
  }
HBRT_ZERO(2NX24, xb_vec2Nx24)
HBRT_ZERO(NX48, xb_vecNx48)
HBRT_ZERO(N_2X64W, xb_vecN_2x64w)

#undef HBRT_ZERO
#undef HBRT_UNPACK
#undef HBRT_WIDEN
#undef HBRT_CVT64
#undef HBRT_CVT
#undef HBRT_PACK_OUT
#undef HBRT_PACK_HALF
#undef HBRT_PACK_BY
#undef HBRT_PACK
#undef HBRT_COMMA
#endif /* HBRT_IVP_PACK_H */
