/* Products in wide registers, and operations that accumulate them. */
#ifndef HBRT_IVP_MULTIPLY_H
#define HBRT_IVP_MULTIPLY_H

#include <hbrt/ivp/arithmetic.h>

namespace hbrt_ivp::rule {

template <class V>
using wide_of = std::conditional_t<V::size == 64, xb_vec2Nx24, std::conditional_t<V::size == 32, xb_vecNx48, xb_vecN_2x64w>>;

/* The term of lane i: products of 8 and 16 bits in 32, of 32 bits in 64. */
template <class A, class B>
HBRT_IVP auto term(const A &a, const B &b, int i) {
  if constexpr (sizeof(typename A::lane_type) == 4 || sizeof(typename B::lane_type) == 4)
    return static_cast<int64_t>(static_cast<uint64_t>(static_cast<int64_t>(a.lane[i])) * static_cast<uint64_t>(static_cast<int64_t>(b.lane[i])));
  else if constexpr (sizeof(typename A::lane_type) == 2 && std::is_unsigned_v<typename A::lane_type> && std::is_unsigned_v<typename B::lane_type>)
    return static_cast<int64_t>(static_cast<uint32_t>(a.lane[i]) * static_cast<uint32_t>(b.lane[i]));
  else
    return static_cast<int32_t>(a.lane[i]) * static_cast<int32_t>(b.lane[i]);
}

template <int SIGN, class W, class A, class B>
HBRT_IVP void accumulate(W &w, const A &a, const B &b) {
  using U = std::make_unsigned_t<decltype(w.value(0))>;
  for (int i = 0; i < W::size; ++i) {
    const auto product = static_cast<U>(term(a, b, i));
    w.lane[i] = static_cast<decltype(w.value(0))>(static_cast<U>(w.lane[i]) + (SIGN < 0 ? U(0) - product : product));
  }
}
template <class W, class A, class B>
HBRT_IVP W multiply(const A &a, const B &b) {
  W w;
  for (int i = 0; i < W::size; ++i) w.lane[i] = static_cast<decltype(w.value(0))>(term(a, b, i));
  return w;
}
template <int SIGN, class W, class A>
HBRT_IVP void accumulate_sum(W &w, const A &a, const A &b) {
  using U = std::make_unsigned_t<decltype(w.value(0))>;
  for (int i = 0; i < W::size; ++i) {
    const auto sum = static_cast<U>(static_cast<int32_t>(a.lane[i]) + static_cast<int32_t>(b.lane[i]));
    w.lane[i] = static_cast<decltype(w.value(0))>(static_cast<U>(w.lane[i]) + (SIGN < 0 ? U(0) - sum : sum));
  }
}

/* The even (PART 0) or odd (PART 1) 16-bit lanes, each next to a 32-bit lane. */
template <int PART, class V>
HBRT_IVP auto every_second(const V &a) {
  vec<typename V::lane_type, V::size / 2> r;
  for (int i = 0; i < r.size; ++i) r.lane[i] = a.lane[2 * i + PART];
  return r;
}
template <int PART, int SHIFT, class A, class B>
HBRT_IVP void accumulate_half(xb_vecN_2x64w &w, const A &a, const B &b) {
  const auto half = every_second<PART>(a);
  for (int i = 0; i < w.size; ++i) w.add(i, static_cast<int64_t>(static_cast<uint64_t>(term(half, b, i)) << SHIFT));
}

/* Byte k of a scalar with four or eight coefficients. */
template <class C>
HBRT_IVP C coefficient(int64_t packed, int k) {
  return static_cast<C>(static_cast<uint64_t>(packed) >> (8 * sizeof(C) * static_cast<unsigned>(k)));
}

}  // namespace hbrt_ivp::rule

//! family: Products in wide registers
//! Lanes of 8 bits multiply into 24, of 16 into 48, of 32 into 64. A sum wraps at that width. `U` before the type means unsigned lanes: `UU` in both operands, `US` in the first, `SU` in the second.
//! each: WIDTHS = 2NX8,NX16,N_2X32
//! IVP_MUL{WIDTHS}(a, b) | a * b | halide
//! IVP_MULA{WIDTHS}{,T}(&w, a, b) | w + a * b; T where a boolean is set | halide; T is assumed
//! IVP_MULS{WIDTHS}{,T}(&w, a, b) | w - a * b; T where a boolean is set | halide; T is assumed
//! IVP_MULUU{WIDTHS}{,U}(a, b) | a * b | halide, tflm
//! IVP_MULUUA{WIDTHS}{,U}(&w, a, b) | w + a * b | halide, tflm
//! IVP_MULUUS{WIDTHS}{,U}(&w, a, b) | w - a * b | halide, tflm
//! IVP_MULUS{WIDTHS}(a, b) | a * b | halide, tflm
//! IVP_MULUSA{WIDTHS}(&w, a, b) | w + a * b | tflm
//! IVP_MULUSS{WIDTHS}(&w, a, b) | w - a * b | assumed
//! IVP_MULSU{WIDTHS}(a, b) | a * b | assumed
//! IVP_MULSUA{WIDTHS}(&w, a, b) | w + a * b | assumed
//! IVP_MULSUS{WIDTHS}(&w, a, b) | w - a * b | assumed
#define HBRT_PRODUCT(SIGNS, SUFFIX, LEFT, B)                                                                                    \
  HBRT_IVP hbrt_ivp::rule::wide_of<LEFT> IVP_MUL##SIGNS##SUFFIX(const LEFT &a, const B &b) {                                       \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    return hbrt_ivp::rule::multiply<hbrt_ivp::rule::wide_of<LEFT>>(a, b);                                                  \
  }                                                                                                                     \
  HBRT_IVP void IVP_MUL##SIGNS##A##SUFFIX(hbrt_ivp::rule::wide_of<LEFT> &w, const LEFT &a, const B &b) {                           \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    hbrt_ivp::rule::accumulate<1>(w, a, b);                                                                             \
  }                                                                                                                     \
  HBRT_IVP void IVP_MUL##SIGNS##S##SUFFIX(hbrt_ivp::rule::wide_of<LEFT> &w, const LEFT &a, const B &b) {                           \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    hbrt_ivp::rule::accumulate<-1>(w, a, b);                                                                            \
  }
#define HBRT_PRODUCTS(SUFFIX, V, UNSIGNED)                                                                                          \
  HBRT_PRODUCT_OF_SIGNED(SUFFIX, V)                                                                                          \
  HBRT_PRODUCT(UU, SUFFIX, UNSIGNED, UNSIGNED)                                                                                             \
  HBRT_PRODUCT(UU, SUFFIX##U, UNSIGNED, UNSIGNED)                                                                                          \
  HBRT_PRODUCT(US, SUFFIX, UNSIGNED, V)                                                                                             \
  HBRT_PRODUCT(SU, SUFFIX, V, UNSIGNED)
#define HBRT_PRODUCT_OF_SIGNED(SUFFIX, V)                                                                               \
  HBRT_IVP hbrt_ivp::rule::wide_of<V> IVP_MUL##SUFFIX(const V &a, const V &b) {                                         \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    return hbrt_ivp::rule::multiply<hbrt_ivp::rule::wide_of<V>>(a, b);                                                  \
  }                                                                                                                     \
  HBRT_PRODUCT_SUM(A, 1, SUFFIX, V)                                                                                     \
  HBRT_PRODUCT_SUM(S, -1, SUFFIX, V)
#define HBRT_PRODUCT_SUM(OP, SIGN, SUFFIX, V)                                                                                \
  HBRT_IVP void IVP_MUL##OP##SUFFIX(hbrt_ivp::rule::wide_of<V> &w, const V &a, const V &b) {                                 \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    hbrt_ivp::rule::accumulate<SIGN>(w, a, b);                                                                          \
  }                                                                                                                     \
  HBRT_IVP void IVP_MUL##OP##SUFFIX##T(hbrt_ivp::rule::wide_of<V> &w, const V &a, const V &b, hbrt_ivp::vbool<V::size> where) { \
    IVP_MUL##OP##SUFFIX(w, hbrt_ivp::blend(where, a, V(0)), b);                                                              \
  }
HBRT_PRODUCTS(2NX8, xb_vec2Nx8, xb_vec2Nx8U)
HBRT_PRODUCTS(NX16, xb_vecNx16, xb_vecNx16U)
HBRT_PRODUCTS(N_2X32, xb_vecN_2x32v, xb_vecN_2x32Uv)

//! family: Products of 16 and 32 bits
//! 16 lanes of 32 bits with every second 16-bit lane: `_0` the even ones, `_1` the odd ones; `H` shifts the product left by 16. `_0` and then `AH..._1` multiply by 32 bits.
//! IVP_MUL{,US,SU,UU}N_2X16X32_{0,1}(a, b) | a * b | guide, halide, tflm
//! IVP_MUL{,US,SU,UU}AN_2X16X32_{0,1}(&w, a, b) | w + a * b | tflm
//! IVP_MUL{,US,SU,UU}HN_2X16X32_{0,1}(a, b) | a * b * 2^16 | tflm
//! IVP_MUL{,US,SU,UU}AHN_2X16X32_{0,1}(&w, a, b) | w + a * b * 2^16 | guide, tflm
#define HBRT_MIXED(SIGNS, PART, A, B)                                                                                   \
  HBRT_MIXED_PRODUCT(SIGNS, , PART, 0, A, B)                                                                            \
  HBRT_MIXED_PRODUCT(SIGNS, H, PART, 16, A, B)
#define HBRT_MIXED_PRODUCT(SIGNS, H, PART, SHIFT, LEFT, B)                                                                 \
  HBRT_IVP void IVP_MUL##SIGNS##A##H##N_2X16X32_##PART(xb_vecN_2x64w &w, const LEFT &a, const B &b) {                      \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    hbrt_ivp::rule::accumulate_half<PART, SHIFT>(w, a, b);                                                              \
  }                                                                                                                     \
  HBRT_IVP xb_vecN_2x64w IVP_MUL##SIGNS##H##N_2X16X32_##PART(const LEFT &a, const B &b) {                                  \
    xb_vecN_2x64w w(0);                                                                                                 \
    IVP_MUL##SIGNS##A##H##N_2X16X32_##PART(w, a, b);                                                                    \
    return w;                                                                                                           \
  }
HBRT_MIXED(, 0, xb_vecNx16, xb_vecN_2x32v)
HBRT_MIXED(, 1, xb_vecNx16, xb_vecN_2x32v)
HBRT_MIXED(US, 0, xb_vecNx16U, xb_vecN_2x32v)
HBRT_MIXED(US, 1, xb_vecNx16U, xb_vecN_2x32v)
HBRT_MIXED(SU, 0, xb_vecNx16, xb_vecN_2x32Uv)
HBRT_MIXED(SU, 1, xb_vecNx16, xb_vecN_2x32Uv)
HBRT_MIXED(UU, 0, xb_vecNx16U, xb_vecN_2x32Uv)
HBRT_MIXED(UU, 1, xb_vecNx16U, xb_vecN_2x32Uv)

//! family: Pairs and quads of products
//! IVP_MUL{,UU,US}P{2NX8,NX16}(a, b, c, d) | a * b + c * d | halide
//! IVP_MUL{,UU,US}PA{2NX8,NX16}(&w, a, b, c, d) | w + a * b + c * d | halide, tflm
//! IVP_MUL{,UU,US}PS{2NX8,NX16}(&w, a, b, c, d) | w - a * b - c * d | tflm; both signs are assumed
//! IVP_MULUUPDA2NX8(&w, a, b, c, d) | w + a * b - c * d | halide
//! IVP_MULQA2N8XR8(&w, a, b, c, d, r) | w + d * r0 + c * r1 + b * r2 + a * r3, r0 the lowest byte of `r` | halide
//! IVP_MULUUQA2N8XR8(&w, a, b, c, d, r) | the same for unsigned bytes | halide
//! IVP_MULUSQA2N8XR8(&w, a, b, c, d, r) | the same for unsigned lanes and signed coefficients | assumed
//! IVP_DMULQA2N8XR8(&w1, &w0, a, b, c, d, r) | IVP_MULQA2N8XR8 twice: w0 with the lower four bytes of `r`, w1 with the upper four | halide
//! IVP_DMULUUQA2N8XR8(&w1, &w0, a, b, c, d, r) | the same for unsigned bytes | halide
//! IVP_DMULUSQA2N8XR8(&w1, &w0, a, b, c, d, r) | the same for unsigned lanes and signed coefficients | assumed
//! IVP_MUL{,US,UU}PN16XR16(a, b, r) | b * r0 + a * r1, r0 the lower half of `r` | halide; the order is assumed
//! IVP_MULSUPN16XR16(a, b, r) | the same for signed lanes and unsigned coefficients | halide; the order is assumed
//! IVP_MUL{,US}A2N8XR16(&w, a, r) | w + a * r, lanes of 8 bits with a coefficient of 16 | tflm
//! IVP_MUL{,US}PA2N8XR16(&w, a, b, r) | w + b * r0 + a * r1, r0 the lower half of `r` | tflm; the order is assumed
#define HBRT_PAIRS(SIGNS, SUFFIX, A, B)                                                                                      \
  HBRT_IVP void IVP_MUL##SIGNS##PA##SUFFIX(hbrt_ivp::rule::wide_of<A> &w, const A &a, const B &b, const A &c, const B &d) {  \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    hbrt_ivp::rule::accumulate<1>(w, a, b);                                                                             \
    hbrt_ivp::rule::accumulate<1>(w, c, d);                                                                             \
  }                                                                                                                     \
  HBRT_IVP void IVP_MUL##SIGNS##PS##SUFFIX(hbrt_ivp::rule::wide_of<A> &w, const A &a, const B &b, const A &c, const B &d) {  \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    hbrt_ivp::rule::accumulate<-1>(w, a, b);                                                                            \
    hbrt_ivp::rule::accumulate<-1>(w, c, d);                                                                            \
  }                                                                                                                     \
  HBRT_IVP hbrt_ivp::rule::wide_of<A> IVP_MUL##SIGNS##P##SUFFIX(const A &a, const B &b, const A &c, const B &d) {            \
    hbrt_ivp::rule::wide_of<A> w(0);                                                                                    \
    IVP_MUL##SIGNS##PA##SUFFIX(w, a, b, c, d);                                                                               \
    return w;                                                                                                           \
  }
HBRT_PAIRS(, 2NX8, xb_vec2Nx8, xb_vec2Nx8)
HBRT_PAIRS(UU, 2NX8, xb_vec2Nx8U, xb_vec2Nx8U)
HBRT_PAIRS(US, 2NX8, xb_vec2Nx8U, xb_vec2Nx8)
HBRT_PAIRS(, NX16, xb_vecNx16, xb_vecNx16)
HBRT_PAIRS(UU, NX16, xb_vecNx16U, xb_vecNx16U)
HBRT_PAIRS(US, NX16, xb_vecNx16U, xb_vecNx16)
HBRT_IVP void IVP_MULUUPDA2NX8(xb_vec2Nx24 &w, const xb_vec2Nx8U &a, const xb_vec2Nx8U &b, const xb_vec2Nx8U &c, const xb_vec2Nx8U &d) {
  HBRT_CYCLES_COUNT(MUL);
  hbrt_ivp::rule::accumulate<1>(w, a, b);
  hbrt_ivp::rule::accumulate<-1>(w, c, d);
}

#define HBRT_QUADS(SIGNS, V, C)                                                                                         \
  HBRT_IVP void IVP_MUL##SIGNS##QA2N8XR8(xb_vec2Nx24 &w, const V &a, const V &b, const V &c, const V &d, int64_t r) {   \
    using K = hbrt_ivp::vec<C, 64>;                                                                                     \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    hbrt_ivp::rule::accumulate<1>(w, d, K(hbrt_ivp::rule::coefficient<C>(r, 0)));                                       \
    hbrt_ivp::rule::accumulate<1>(w, c, K(hbrt_ivp::rule::coefficient<C>(r, 1)));                                       \
    hbrt_ivp::rule::accumulate<1>(w, b, K(hbrt_ivp::rule::coefficient<C>(r, 2)));                                       \
    hbrt_ivp::rule::accumulate<1>(w, a, K(hbrt_ivp::rule::coefficient<C>(r, 3)));                                       \
  }                                                                                                                     \
  HBRT_IVP void IVP_DMUL##SIGNS##QA2N8XR8(xb_vec2Nx24 &w1, xb_vec2Nx24 &w0, const V &a, const V &b, const V &c, const V &d, int64_t r) { \
    IVP_MUL##SIGNS##QA2N8XR8(w0, a, b, c, d, r);                                                                        \
    IVP_MUL##SIGNS##QA2N8XR8(w1, a, b, c, d, r >> 32);                                                                  \
  }
HBRT_QUADS(, xb_vec2Nx8, int8_t)
HBRT_QUADS(UU, xb_vec2Nx8U, uint8_t)
HBRT_QUADS(US, xb_vec2Nx8U, int8_t)

#define HBRT_SCALAR_PAIR(SIGNS, V, C)                                                                                   \
  HBRT_IVP xb_vecNx48 IVP_MUL##SIGNS##PN16XR16(const V &a, const V &b, int64_t r) {                                     \
    using K = hbrt_ivp::vec<C, 32>;                                                                                     \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    xb_vecNx48 w = hbrt_ivp::rule::multiply<xb_vecNx48>(b, K(hbrt_ivp::rule::coefficient<C>(r, 0)));                    \
    hbrt_ivp::rule::accumulate<1>(w, a, K(hbrt_ivp::rule::coefficient<C>(r, 1)));                                       \
    return w;                                                                                                           \
  }
HBRT_SCALAR_PAIR(, xb_vecNx16, int16_t)
HBRT_SCALAR_PAIR(UU, xb_vecNx16U, uint16_t)
HBRT_SCALAR_PAIR(US, xb_vecNx16U, int16_t)
HBRT_SCALAR_PAIR(SU, xb_vecNx16, uint16_t)

//! IVP_MULI2NX8X16(a, odd, even) | lanes of 8 bits times lanes of 16: lane 2 i by even[i], lane 2 i + 1 by odd[i] | tflm
#define HBRT_BY_16(SIGNS, V)                                                                                            \
  HBRT_IVP void IVP_MUL##SIGNS##A2N8XR16(xb_vec2Nx24 &w, const V &a, int64_t r) {                                       \
    using K = hbrt_ivp::vec<int16_t, 64>;                                                                               \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    hbrt_ivp::rule::accumulate<1>(w, a, K(hbrt_ivp::rule::coefficient<int16_t>(r, 0)));                                 \
  }                                                                                                                     \
  HBRT_IVP void IVP_MUL##SIGNS##PA2N8XR16(xb_vec2Nx24 &w, const V &a, const V &b, int64_t r) {                          \
    using K = hbrt_ivp::vec<int16_t, 64>;                                                                               \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    hbrt_ivp::rule::accumulate<1>(w, b, K(hbrt_ivp::rule::coefficient<int16_t>(r, 0)));                                 \
    hbrt_ivp::rule::accumulate<1>(w, a, K(hbrt_ivp::rule::coefficient<int16_t>(r, 1)));                                 \
  }
HBRT_BY_16(, xb_vec2Nx8)
HBRT_BY_16(US, xb_vec2Nx8U)

HBRT_IVP xb_vec2Nx24 IVP_MULI2NX8X16(const xb_vec2Nx8 &a, const xb_vecNx16 &odd, const xb_vecNx16 &even) {
  HBRT_CYCLES_COUNT(MUL);
  hbrt_ivp::vec<int16_t, 64> factors;
  for (int i = 0; i < 32; ++i) {
    factors.lane[2 * i] = even.lane[i];
    factors.lane[2 * i + 1] = odd.lane[i];
  }
  return hbrt_ivp::rule::multiply<xb_vec2Nx24>(a, factors);
}

//! family: Sums in wide registers
//! IVP_ADDW{2NX8,NX16}(a, b) | a + b | halide, tflm
//! IVP_ADDWA{2NX8,NX16}(&w, a, b) | w + a + b | halide, tflm
//! IVP_SUBW{2NX8,NX16}(a, b) | a - b | tflm
//! IVP_SUBWA{2NX8,NX16}(&w, a, b) | w + a - b | tflm
//! IVP_ADDWU{2NX8,2NX8U,NX16,NX16U}(a, b) | a + b of unsigned lanes | halide, tflm
//! IVP_ADDWUA{2NX8,2NX8U,NX16,NX16U}(&w, a, b) | w + a + b of unsigned lanes | halide, tflm
//! IVP_SUBWU{2NX8,2NX8U,NX16,NX16U}(a, b) | a - b of unsigned lanes | tflm
//! IVP_SUBWUA{2NX8,2NX8U,NX16,NX16U}(&w, a, b) | w + a - b of unsigned lanes | tflm
//! IVP_DECNEGWNX48(&w) | subtracts 1 from negative lanes | halide; inferred from the name
#define HBRT_WIDE_SUMS(U, SUFFIX, V)                                                                                         \
  HBRT_IVP void IVP_ADDW##U##A##SUFFIX(hbrt_ivp::rule::wide_of<V> &w, const V &a, const V &b) {                              \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    hbrt_ivp::rule::accumulate_sum<1>(w, a, b);                                                                         \
  }                                                                                                                     \
  HBRT_IVP hbrt_ivp::rule::wide_of<V> IVP_ADDW##U##SUFFIX(const V &a, const V &b) {                                          \
    hbrt_ivp::rule::wide_of<V> w(0);                                                                                    \
    IVP_ADDW##U##A##SUFFIX(w, a, b);                                                                                         \
    return w;                                                                                                           \
  }                                                                                                                     \
  HBRT_IVP void IVP_SUBW##U##A##SUFFIX(hbrt_ivp::rule::wide_of<V> &w, const V &a, const V &b) {                              \
    HBRT_CYCLES_COUNT(MUL);                                                                                             \
    hbrt_ivp::rule::accumulate_sum<1>(w, a, V(0));                                                                      \
    hbrt_ivp::rule::accumulate_sum<-1>(w, b, V(0));                                                                     \
  }                                                                                                                     \
  HBRT_IVP hbrt_ivp::rule::wide_of<V> IVP_SUBW##U##SUFFIX(const V &a, const V &b) {                                          \
    hbrt_ivp::rule::wide_of<V> w(0);                                                                                    \
    IVP_SUBW##U##A##SUFFIX(w, a, b);                                                                                         \
    return w;                                                                                                           \
  }
HBRT_WIDE_SUMS(, 2NX8, xb_vec2Nx8)
HBRT_WIDE_SUMS(, NX16, xb_vecNx16)
HBRT_WIDE_SUMS(U, 2NX8, xb_vec2Nx8U)
HBRT_WIDE_SUMS(U, 2NX8U, xb_vec2Nx8U)
HBRT_WIDE_SUMS(U, NX16, xb_vecNx16U)
HBRT_WIDE_SUMS(U, NX16U, xb_vecNx16U)
HBRT_IVP void IVP_DECNEGWNX48(xb_vecNx48 &w) {
  HBRT_CYCLES_COUNT(MUL);
  for (int i = 0; i < w.size; ++i) w.add(i, w.value(i) < 0 ? -1 : 0);
}

//! family: Narrow products
//! IVP_MULNX16{,U}PACKL(a, b) | the low 16 bits of a * b | halide, tflm
//! IVP_MULANX16{,U}PACKL(&r, a, b) | r + a * b, wraps | halide, tflm
//! IVP_MULSNX16{,U}PACKL(&r, a, b) | r - a * b, wraps | tflm
//! IVP_MULNX16PACKQ(a, b) | a * b / 2^15, rounded to nearest, ties up, saturates: Q15 times Q15 | tflm; rounding and saturation are assumed
#define HBRT_LOW(SUFFIX, V)                                                                    \
  HBRT_IVP V IVP_MUL##SUFFIX##PACKL(const V &a, const V &b) {                                  \
    HBRT_CYCLES_COUNT(MUL);                                                               \
    return hbrt_ivp::rule::mul(a, b);                                                     \
  }                                                                                       \
  template <class R>                                                                      \
  HBRT_IVP void IVP_MULA##SUFFIX##PACKL(R &r, const V &a, const V &b) {                        \
    HBRT_CYCLES_COUNT(MUL);                                                               \
    r = hbrt_ivp::rule::add(V(r), hbrt_ivp::rule::mul(a, b));                             \
  }                                                                                       \
  template <class R>                                                                      \
  HBRT_IVP void IVP_MULS##SUFFIX##PACKL(R &r, const V &a, const V &b) {                        \
    HBRT_CYCLES_COUNT(MUL);                                                               \
    r = hbrt_ivp::rule::sub(V(r), hbrt_ivp::rule::mul(a, b));                             \
  }
HBRT_LOW(NX16, xb_vecNx16)
HBRT_LOW(NX16U, xb_vecNx16U)
HBRT_IVP xb_vecNx16 IVP_MULNX16PACKQ(const xb_vecNx16 &a, const xb_vecNx16 &b) {
  HBRT_CYCLES_COUNT(MUL);
  xb_vecNx16 r;
  for (int i = 0; i < r.size; ++i) {
    const int32_t x = (static_cast<int32_t>(a.lane[i]) * b.lane[i] + (1 << 14)) >> 15;
    r.lane[i] = static_cast<int16_t>(x > 32767 ? 32767 : x);
  }
  return r;
}

#undef HBRT_LOW
#undef HBRT_WIDE_SUMS
#undef HBRT_BY_16
#undef HBRT_SCALAR_PAIR
#undef HBRT_QUADS
#undef HBRT_PAIRS
#undef HBRT_MIXED_PRODUCT
#undef HBRT_MIXED
#undef HBRT_PRODUCT_SUM
#undef HBRT_PRODUCT_OF_SIGNED
#undef HBRT_PRODUCTS
#undef HBRT_PRODUCT
#endif /* HBRT_IVP_MULTIPLY_H */
