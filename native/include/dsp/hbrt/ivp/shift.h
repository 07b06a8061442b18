/* Shifts, by a constant or by a count per lane. */
#ifndef HBRT_IVP_SHIFT_H
#define HBRT_IVP_SHIFT_H

#include <hbrt/ivp/arithmetic.h>

namespace hbrt_ivp::rule {

/* x * 2^count without overflow, in 64 bits: |count| is limited to the lane width, so nothing is lost. */
template <class L>
HBRT_IVP int64_t scaled(L x, int count) {
  constexpr int bits = 8 * sizeof(L);
  const int n = count < -bits ? -bits : count > bits ? bits : count;
  return n < 0 ? static_cast<int64_t>(x) >> -n : static_cast<int64_t>(static_cast<uint64_t>(static_cast<int64_t>(x)) << n);
}
template <class L>
HBRT_IVP L bounded(int64_t x) {
  constexpr int64_t high = static_cast<int64_t>((1ull << (8 * sizeof(L) - std::is_signed_v<L>)) - 1);
  constexpr int64_t low = std::is_signed_v<L> ? -high - 1 : 0;
  return static_cast<L>(x < low ? low : x > high ? high : x);
}

/* Left for positive counts, right for negative ones; LOGICAL shifts in zeros from the left. */
template <bool LOGICAL, bool SATURATES, class V, class C>
HBRT_IVP V left(const V &a, const C &count) {
  using L = typename V::lane_type;
  using X = std::conditional_t<LOGICAL, std::make_unsigned_t<L>, L>;
  V r;
  for (int i = 0; i < V::size; ++i) {
    const int64_t wide_value = scaled(static_cast<X>(a.lane[i]), count.lane[i]);
    r.lane[i] = SATURATES ? bounded<L>(wide_value) : static_cast<L>(wide_value);
  }
  return r;
}
/* Left or right by one count: a count within the lane width shifts all lanes at once. */
template <class V>
HBRT_IVP V left_all(const V &a, int count) {
  using L = typename V::lane_type;
  if (count < 0 || count >= static_cast<int>(8 * sizeof(L))) return left<true, false>(a, vec<int32_t, V::size>(count));
  return from_native<V>(bits_of(a) << static_cast<std::make_unsigned_t<L>>(count));
}
template <class X, class V>
HBRT_IVP V right_all(const V &a, int count) {
  using vector = vec<X, V::size>;
  const vector x = recast<vector>(a);
  if (count < 0 || count >= static_cast<int>(8 * sizeof(X)))
    return recast<V>(left<std::is_unsigned_v<X>, false>(x, vec<int32_t, V::size>(count == INT32_MIN ? INT32_MAX : -count)));
  return recast<V>(from_native<vector>(lanes(x) >> static_cast<X>(count)));
}
template <class C>
HBRT_IVP C turned(const C &count) {
  C r;
  for (int i = 0; i < C::size; ++i) r.lane[i] = count.lane[i] == std::numeric_limits<typename C::lane_type>::min()
                                                    ? std::numeric_limits<typename C::lane_type>::max()
                                                    : static_cast<typename C::lane_type>(-count.lane[i]);
  return r;
}

}  // namespace hbrt_ivp::rule

//! family: Shifts
//! By a count per lane: a negative count shifts the other way; a count past the lane width leaves only zeros or sign bits (assumed). Halide's test of these operations uses counts from -16 to 16 and from -31 to 31.
//! IVP_SLLI{INTEGERS}(a, count) | left by a constant | guide, halide
//! IVP_SRLI{INTEGERS}(a, count) | right by a constant, shifts in zeros, also for signed types | guide, halide
//! IVP_SRAI{INTEGERS}(a, count) | right by a constant, shifts in the sign, also for unsigned types | halide
//! IVP_SLSI{NX16,N_2X32}(a, count) | left by a constant, saturates | halide
//! IVP_SLL{NX16,NX16U,N_2X32,N_2X32U}(a, counts) | left; a right shift shifts in zeros | halide
//! IVP_SRL{NX16,NX16U,N_2X32,N_2X32U}(a, counts) | right, shifts in zeros | halide
//! IVP_SLA{NX16,N_2X32}(a, counts) | left; a right shift shifts in the sign | halide
//! IVP_SRA{NX16,N_2X32}(a, counts) | right, shifts in the sign | halide
//! IVP_SLS{NX16,N_2X32}(a, counts) | left, saturates; a right shift shifts in the sign | halide
//! IVP_SRS{NX16,N_2X32}(a, counts) | right, shifts in the sign; a left shift saturates | halide
#define HBRT_SHIFT(NAME, SUFFIX, V, COUNT, RESULT)                          \
  HBRT_IVP V IVP_##NAME##SUFFIX(const V &a, COUNT count) {                  \
    HBRT_CYCLES_COUNT(ALU);                                            \
    return hbrt_ivp::rule::RESULT;                                     \
  }
#define HBRT_BY_CONSTANT(_, SUFFIX, V, __)                                             \
  HBRT_SHIFT(SLLI, SUFFIX, V, int, left_all(a, count))                                 \
  HBRT_SHIFT(SRLI, SUFFIX, V, int, right_all<std::make_unsigned_t<V::lane_type>>(a, count)) \
  HBRT_SHIFT(SRAI, SUFFIX, V, int, right_all<std::make_signed_t<V::lane_type>>(a, count))
#define HBRT_COMMA ,
HBRT_OF_INTEGERS(HBRT_BY_CONSTANT, _, _)

#define HBRT_BY_LANES(SUFFIX, V, C)                                                                     \
  HBRT_SHIFT(SLL, SUFFIX, V, const C &, left<true HBRT_COMMA false>(a, count))                          \
  HBRT_SHIFT(SRL, SUFFIX, V, const C &, left<true HBRT_COMMA false>(a, hbrt_ivp::rule::turned(count)))
HBRT_BY_LANES(NX16, xb_vecNx16, xb_vecNx16)
HBRT_BY_LANES(NX16U, xb_vecNx16U, xb_vecNx16)
HBRT_BY_LANES(N_2X32, xb_vecN_2x32v, xb_vecN_2x32v)
HBRT_BY_LANES(N_2X32U, xb_vecN_2x32Uv, xb_vecN_2x32v)

#define HBRT_SIGNED_SHIFTS(SUFFIX, V)                                                                            \
  HBRT_SHIFT(SLSI, SUFFIX, V, int, left<false HBRT_COMMA true>(a, V(count)))                                     \
  HBRT_SHIFT(SLA, SUFFIX, V, const V &, left<false HBRT_COMMA false>(a, count))                                  \
  HBRT_SHIFT(SRA, SUFFIX, V, const V &, left<false HBRT_COMMA false>(a, hbrt_ivp::rule::turned(count)))          \
  HBRT_SHIFT(SLS, SUFFIX, V, const V &, left<false HBRT_COMMA true>(a, count))                                   \
  HBRT_SHIFT(SRS, SUFFIX, V, const V &, left<false HBRT_COMMA true>(a, hbrt_ivp::rule::turned(count)))
HBRT_SIGNED_SHIFTS(NX16, xb_vecNx16)
HBRT_SIGNED_SHIFTS(N_2X32, xb_vecN_2x32v)

#undef HBRT_SIGNED_SHIFTS
#undef HBRT_BY_LANES
#undef HBRT_BY_CONSTANT
#undef HBRT_SHIFT
#undef HBRT_COMMA
#endif /* HBRT_IVP_SHIFT_H */
