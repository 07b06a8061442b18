/* Arithmetic, logic and comparison of vectors, lane by lane. */
#ifndef HBRT_IVP_ARITHMETIC_H
#define HBRT_IVP_ARITHMETIC_H

#include <hbrt/ivp/lanes.h>

namespace hbrt_ivp::rule {

template <class V>
HBRT_IVP V add(const V &a, const V &b) {
  return from_native<V>(bits_of(a) + bits_of(b));
}
template <class V>
HBRT_IVP V sub(const V &a, const V &b) {
  return from_native<V>(bits_of(a) - bits_of(b));
}
template <class V>
HBRT_IVP V mul(const V &a, const V &b) {
  return from_native<V>(bits_of(a) * bits_of(b));
}
template <class V>
HBRT_IVP V and_(const V &a, const V &b) {
  return from_native<V>(bits_of(a) & bits_of(b));
}
template <class V>
HBRT_IVP V or_(const V &a, const V &b) {
  return from_native<V>(bits_of(a) | bits_of(b));
}
template <class V>
HBRT_IVP V xor_(const V &a, const V &b) {
  return from_native<V>(bits_of(a) ^ bits_of(b));
}
template <class V>
HBRT_IVP V neg(const V &a) {
  return from_native<V>(-bits_of(a));
}
/* The sum if it fits, otherwise the bound that it exceeds. Signed lanes. */
template <class V, class M>
HBRT_IVP V saturated(const V &wrapped, const V &a, const M &overflow) {
  using L = typename V::lane_type;
  const auto bound = (lanes(a) >> (8 * sizeof(L) - 1)) ^ static_cast<L>(std::make_unsigned_t<L>(~0u) >> 1);
  return from_native<V>((bound & overflow) | (lanes(wrapped) & ~overflow));
}
template <class V>
HBRT_IVP V adds(const V &a, const V &b) {
  const V sum = add(a, b);
  return saturated(sum, a, (~(lanes(a) ^ lanes(b)) & (lanes(a) ^ lanes(sum))) < 0);
}
template <class V>
HBRT_IVP V subs(const V &a, const V &b) {
  const V difference = sub(a, b);
  return saturated(difference, a, ((lanes(a) ^ lanes(b)) & (lanes(a) ^ lanes(difference))) < 0);
}
template <class V>
HBRT_IVP V negs(const V &a) {
  return subs(V(0), a);
}
template <class V>
HBRT_IVP V max(const V &a, const V &b) {
  V r;
  for (int i = 0; i < V::size; ++i) r.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
  return r;
}
template <class V>
HBRT_IVP V min(const V &a, const V &b) {
  V r;
  for (int i = 0; i < V::size; ++i) r.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
  return r;
}
/* A float maximum that propagates NaN: neither comparison holds for it. */
template <class V>
HBRT_IVP V max_or_nan(const V &a, const V &b) {
  V r;
  for (int i = 0; i < V::size; ++i) {
    const float x = a.lane[i], y = b.lane[i];
    r.lane[i] = x > y ? x : y >= x ? y : x + y;
  }
  return r;
}
template <class V>
HBRT_IVP V min_or_nan(const V &a, const V &b) {
  V r;
  for (int i = 0; i < V::size; ++i) {
    const float x = a.lane[i], y = b.lane[i];
    r.lane[i] = x < y ? x : y <= x ? y : x + y;
  }
  return r;
}
/* The number if one of the two is NaN, as in IEEE 754's maxNum. */
template <class V>
HBRT_IVP V max_number(const V &a, const V &b) {
  V r;
  for (int i = 0; i < V::size; ++i) r.lane[i] = a.lane[i] > b.lane[i] || b.lane[i] != b.lane[i] ? a.lane[i] : b.lane[i];
  return r;
}
template <class V>
HBRT_IVP V min_number(const V &a, const V &b) {
  V r;
  for (int i = 0; i < V::size; ++i) r.lane[i] = a.lane[i] < b.lane[i] || b.lane[i] != b.lane[i] ? a.lane[i] : b.lane[i];
  return r;
}
template <class V>
HBRT_IVP V abs(const V &a) {
  const auto sign = lanes(a) >> (8 * sizeof(typename V::lane_type) - 1);
  return sub(from_native<V>(lanes(a) ^ sign), from_native<V>(sign));
}
template <class V>
HBRT_IVP V abssub(const V &a, const V &b) {
  return sub(max(a, b), min(a, b));
}
template <class V>
HBRT_IVP V avg(const V &a, const V &b) {
  return add(from_native<V>(lanes(a) & lanes(b)), from_native<V>((lanes(a) ^ lanes(b)) >> 1));
}
template <class V>
HBRT_IVP V avgr(const V &a, const V &b) {
  return sub(from_native<V>(lanes(a) | lanes(b)), from_native<V>((lanes(a) ^ lanes(b)) >> 1));
}
/* `b` with the sign of `a`: 0 where `a` is 0, negated where `a` is negative. */
template <class V>
HBRT_IVP V mulsgn(const V &a, const V &b) {
  const auto negative = lanes(a) < 0, some = lanes(a) != 0;
  const V turned = sub(from_native<V>(lanes(b) ^ negative), from_native<V>(negative));
  return from_native<V>(lanes(turned) & some);
}
template <class V>
HBRT_IVP V leading_zeros(const V &a) {
  constexpr int bits = 8 * sizeof(typename V::lane_type);
  V r;
  for (int i = 0; i < V::size; ++i) {
    const auto x = static_cast<uint32_t>(static_cast<std::make_unsigned_t<typename V::lane_type>>(a.lane[i]));
    r.lane[i] = static_cast<typename V::lane_type>(x == 0 ? bits : __builtin_clz(x) - (32 - bits));
  }
  return r;
}
/* How far a lane can shift left and keep its sign. */
template <class V>
HBRT_IVP V redundant_signs(const V &a) {
  constexpr int bits = 8 * sizeof(typename V::lane_type);
  V r;
  for (int i = 0; i < V::size; ++i) r.lane[i] = static_cast<typename V::lane_type>(__builtin_clrsb(a.lane[i]) - (32 - bits));
  return r;
}
template <class V>
HBRT_IVP V population(const V &a) {
  V r;
  for (int i = 0; i < V::size; ++i)
    r.lane[i] = static_cast<typename V::lane_type>(__builtin_popcount(static_cast<std::make_unsigned_t<typename V::lane_type>>(a.lane[i])));
  return r;
}

}  // namespace hbrt_ivp::rule

/* One operation with its predicated forms: T writes the lanes where the boolean is set, F those where it is clear. */
#define HBRT_BINARY(NAME, SUFFIX, V, RULE)                                                                           \
  HBRT_IVP V IVP_##NAME##SUFFIX(const V &a, const V &b) {                                                            \
    HBRT_CYCLES_COUNT(ALU);                                                                                     \
    return hbrt_ivp::rule::RULE(a, b);                                                                          \
  }                                                                                                             \
  template <class R>                                                                                            \
  HBRT_IVP void IVP_##NAME##SUFFIX##T(R &r, const V &a, const V &b, hbrt_ivp::vbool<V::size> where) {                \
    r = hbrt_ivp::blend(where, IVP_##NAME##SUFFIX(a, b), V(r));                                                      \
  }                                                                                                             \
  template <class R>                                                                                            \
  HBRT_IVP void IVP_##NAME##SUFFIX##F(R &r, const V &a, const V &b, hbrt_ivp::vbool<V::size> where) {                \
    r = hbrt_ivp::blend(~where, IVP_##NAME##SUFFIX(a, b), V(r));                                                     \
  }
#define HBRT_UNARY(NAME, SUFFIX, V, RULE)                                                                            \
  HBRT_IVP V IVP_##NAME##SUFFIX(const V &a) {                                                                        \
    HBRT_CYCLES_COUNT(ALU);                                                                                     \
    return hbrt_ivp::rule::RULE(a);                                                                             \
  }                                                                                                             \
  template <class R>                                                                                            \
  HBRT_IVP void IVP_##NAME##SUFFIX##T(R &r, const V &a, hbrt_ivp::vbool<V::size> where) {                            \
    r = hbrt_ivp::blend(where, IVP_##NAME##SUFFIX(a), V(r));                                                         \
  }                                                                                                             \
  template <class R>                                                                                            \
  HBRT_IVP void IVP_##NAME##SUFFIX##F(R &r, const V &a, hbrt_ivp::vbool<V::size> where) {                            \
    r = hbrt_ivp::blend(~where, IVP_##NAME##SUFFIX(a), V(r));                                                        \
  }
#define HBRT_OF_SIGNED(DO, NAME, RULE)     \
  DO(NAME, 2NX8, xb_vec2Nx8, RULE)         \
  DO(NAME, NX16, xb_vecNx16, RULE)         \
  DO(NAME, N_2X32, xb_vecN_2x32v, RULE)
#define HBRT_OF_UNSIGNED(DO, NAME, RULE)   \
  DO(NAME, 2NX8U, xb_vec2Nx8U, RULE)       \
  DO(NAME, NX16U, xb_vecNx16U, RULE)       \
  DO(NAME, N_2X32U, xb_vecN_2x32Uv, RULE)
#define HBRT_OF_INTEGERS(DO, NAME, RULE)   \
  HBRT_OF_SIGNED(DO, NAME, RULE)           \
  HBRT_OF_UNSIGNED(DO, NAME, RULE)
/* The names of unsigned operations exist with and without the U after the type. */
#define HBRT_OF_U_NAMES(DO, NAME, RULE)    \
  HBRT_OF_UNSIGNED(DO, NAME, RULE)         \
  DO(NAME, 2NX8, xb_vec2Nx8U, RULE)        \
  DO(NAME, NX16, xb_vecNx16U, RULE)        \
  DO(NAME, N_2X32, xb_vecN_2x32Uv, RULE)

//! family: Arithmetic
//! Forms: no suffix returns the result; `T` and `F` take `&r` first and a vector boolean last, and write the lanes of `r` where it is set (T) or clear (F).
//! each: SIGNED = 2NX8,NX16,N_2X32
//! each: INTEGERS = 2NX8,2NX8U,NX16,NX16U,N_2X32,N_2X32U
//! IVP_ADD{INTEGERS}{,T,F}(a, b) | a + b, wraps | halide, tflm
//! IVP_SUB{INTEGERS}{,T,F}(a, b) | a - b, wraps | halide, tflm
//! IVP_NEG{SIGNED}{,T,F}(a) | -a, wraps | tflm
//! IVP_ABS{SIGNED}{,T,F}(a) | the magnitude of a, wraps for the lowest value | halide; the wrap is assumed
//! IVP_ADDSNX16{,T,F}(a, b) | a + b, saturates | halide
//! IVP_SUBSNX16{,T,F}(a, b) | a - b, saturates | halide
//! IVP_NEGSNX16{,T,F}(a) | -a, saturates | tflm
//! IVP_MAX{SIGNED}{,T,F}(a, b) | the larger one | halide
//! IVP_MIN{SIGNED}{,T,F}(a, b) | the smaller one | halide
//! IVP_MAXU{INTEGERS}{,T,F}(a, b) | the larger one, for unsigned lanes | halide
//! IVP_MINU{INTEGERS}{,T,F}(a, b) | the smaller one, for unsigned lanes | halide
//! IVP_ABSSUB{SIGNED}{,T,F}(a, b) | the distance between a and b, as unsigned bits | halide
//! IVP_ABSSUBU{INTEGERS}{,T,F}(a, b) | the distance between unsigned lanes | halide
//! IVP_AVG{2NX8,NX16}{,T,F}(a, b) | (a + b) / 2, toward minus infinity, without overflow | halide
//! IVP_AVGU{2NX8,2NX8U,NX16,NX16U}{,T,F}(a, b) | the same for unsigned lanes | halide
//! IVP_AVGR{2NX8,NX16}{,T,F}(a, b) | (a + b + 1) / 2, toward minus infinity, without overflow | halide
//! IVP_AVGRU{2NX8,2NX8U,NX16,NX16U}{,T,F}(a, b) | the same for unsigned lanes | halide
//! IVP_MULSGN{NX16,N_2X32}{,T,F}(a, b) | b with the sign of a, and 0 where a is 0 | tflm; the 0 is assumed
//! IVP_NSAU{NX16,NX16U,N_2X32,N_2X32U}{,T,F}(a) | the number of leading zeros | halide
//! IVP_NSA{NX16,N_2X32}{,T,F}(a) | how far a lane can shift left and keep its sign | tflm; assumed for 0 and -1: all bits but one
//! IVP_POPC{2NX8,2NX8U}{,T,F}(a) | the number of set bits | halide
HBRT_OF_INTEGERS(HBRT_BINARY, ADD, add)
HBRT_OF_INTEGERS(HBRT_BINARY, SUB, sub)
HBRT_OF_SIGNED(HBRT_UNARY, NEG, neg)
HBRT_OF_SIGNED(HBRT_UNARY, ABS, abs)
HBRT_BINARY(ADDS, NX16, xb_vecNx16, adds)
HBRT_BINARY(SUBS, NX16, xb_vecNx16, subs)
HBRT_UNARY(NEGS, NX16, xb_vecNx16, negs)
HBRT_OF_SIGNED(HBRT_BINARY, MAX, max)
HBRT_OF_SIGNED(HBRT_BINARY, MIN, min)
HBRT_OF_U_NAMES(HBRT_BINARY, MAXU, max)
HBRT_OF_U_NAMES(HBRT_BINARY, MINU, min)
HBRT_OF_SIGNED(HBRT_BINARY, ABSSUB, abssub)
HBRT_OF_U_NAMES(HBRT_BINARY, ABSSUBU, abssub)
HBRT_BINARY(AVG, 2NX8, xb_vec2Nx8, avg)
HBRT_BINARY(AVG, NX16, xb_vecNx16, avg)
HBRT_BINARY(AVGU, 2NX8, xb_vec2Nx8U, avg)
HBRT_BINARY(AVGU, 2NX8U, xb_vec2Nx8U, avg)
HBRT_BINARY(AVGU, NX16, xb_vecNx16U, avg)
HBRT_BINARY(AVGU, NX16U, xb_vecNx16U, avg)
HBRT_BINARY(AVGR, 2NX8, xb_vec2Nx8, avgr)
HBRT_BINARY(AVGR, NX16, xb_vecNx16, avgr)
HBRT_BINARY(AVGRU, 2NX8, xb_vec2Nx8U, avgr)
HBRT_BINARY(AVGRU, 2NX8U, xb_vec2Nx8U, avgr)
HBRT_BINARY(AVGRU, NX16, xb_vecNx16U, avgr)
HBRT_BINARY(AVGRU, NX16U, xb_vecNx16U, avgr)
HBRT_BINARY(MULSGN, NX16, xb_vecNx16, mulsgn)
HBRT_BINARY(MULSGN, N_2X32, xb_vecN_2x32v, mulsgn)
HBRT_UNARY(NSAU, NX16, xb_vecNx16, leading_zeros)
HBRT_UNARY(NSAU, NX16U, xb_vecNx16U, leading_zeros)
HBRT_UNARY(NSAU, N_2X32, xb_vecN_2x32v, leading_zeros)
HBRT_UNARY(NSAU, N_2X32U, xb_vecN_2x32Uv, leading_zeros)
HBRT_UNARY(NSA, NX16, xb_vecNx16, redundant_signs)
HBRT_UNARY(NSA, N_2X32, xb_vecN_2x32v, redundant_signs)
HBRT_UNARY(POPC, 2NX8, xb_vec2Nx8, population)
HBRT_UNARY(POPC, 2NX8U, xb_vec2Nx8U, population)

//! family: Logic
//! IVP_AND{INTEGERS}{,T,F}(a, b) | a and b, bit by bit | tflm
//! IVP_OR{INTEGERS}{,T,F}(a, b) | a or b | tflm
//! IVP_XOR{INTEGERS}{,T,F}(a, b) | either a or b | tflm
//! IVP_NOT{INTEGERS}(a) | the complement of a | tflm
HBRT_OF_INTEGERS(HBRT_BINARY, AND, and_)
HBRT_OF_INTEGERS(HBRT_BINARY, OR, or_)
HBRT_OF_INTEGERS(HBRT_BINARY, XOR, xor_)
#define HBRT_NOT(NAME, SUFFIX, V, RULE) \
  HBRT_IVP V IVP_##NAME##SUFFIX(const V &a) { return ~a; }
HBRT_OF_INTEGERS(HBRT_NOT, NOT, )

//! family: Comparisons
//! A comparison returns a vector boolean, whose bit i belongs to lane i.
//! IVP_LT{SIGNED}(a, b) | a < b | halide, tflm
//! IVP_LE{SIGNED}(a, b) | a <= b | halide, tflm
//! IVP_GT{SIGNED}(a, b) | a > b | halide, tflm
//! IVP_GE{SIGNED}(a, b) | a >= b | halide, tflm
//! IVP_LTU{INTEGERS}(a, b) | a < b of unsigned lanes | halide, tflm
//! IVP_LEU{INTEGERS}(a, b) | a <= b of unsigned lanes | halide, tflm
//! IVP_GTU{INTEGERS}(a, b) | a > b of unsigned lanes | halide, tflm
//! IVP_GEU{INTEGERS}(a, b) | a >= b of unsigned lanes | halide, tflm
//! IVP_EQ{INTEGERS}(a, b) | a == b | halide, tflm
//! IVP_NEQ{INTEGERS}(a, b) | a != b | halide, tflm
//! IVP_EQU{2NX8U,NX16U,N_2X32U}(a, b) | a == b | halide
#define HBRT_COMPARE(NAME, SUFFIX, V, OP) \
  HBRT_IVP hbrt_ivp::vbool<V::size> IVP_##NAME##SUFFIX(const V &a, const V &b) { return a OP b; }
HBRT_OF_SIGNED(HBRT_COMPARE, LT, <)
HBRT_OF_SIGNED(HBRT_COMPARE, LE, <=)
HBRT_OF_SIGNED(HBRT_COMPARE, GT, >)
HBRT_OF_SIGNED(HBRT_COMPARE, GE, >=)
HBRT_OF_U_NAMES(HBRT_COMPARE, LTU, <)
HBRT_OF_U_NAMES(HBRT_COMPARE, LEU, <=)
HBRT_OF_U_NAMES(HBRT_COMPARE, GTU, >)
HBRT_OF_U_NAMES(HBRT_COMPARE, GEU, >=)
HBRT_OF_INTEGERS(HBRT_COMPARE, EQ, ==)
HBRT_OF_INTEGERS(HBRT_COMPARE, NEQ, !=)
HBRT_OF_UNSIGNED(HBRT_COMPARE, EQU, ==)

//! family: Vector booleans
//! IVP_AND{B2N,BN,BN_2}(a, b) | a and b | halide, tflm
//! IVP_OR{B2N,BN,BN_2}(a, b) | a or b | halide, tflm
//! IVP_XOR{B2N,BN,BN_2}(a, b) | either a or b | assumed
//! IVP_NOT{B2N,BN,BN_2}(a) | the complement of a | halide, tflm
//! IVP_LTR{2N,N,N_2}(count) | the lanes below `count`: none if it is 0 or less, all if it is past the last | tflm
//! IVP_LTRS{2N,N,N_2}(count) | the same for a signed count | guide
//! IVP_LTR{2N,N,N_2}I(count) | the same for a constant | tflm
//! IVP_JOINB{N,N_2}(high, low) | the boolean of twice as many lanes, `low` in the lower half | halide
//! IVP_EXTRACTBL{2N,N}(b) | the lower half | halide
//! IVP_EXTRACTBH{2N,N}(b) | the upper half | halide
//! IVP_EXTRACTB{2N,N}(&high, &low, b) | both halves | tflm
//! IVP_EXTBI{2NX8,NX16,N_2X32}(v, bit) | that bit of each lane | halide
//! IVP_INJBI{2NX8,NX16,N_2X32}(&v, b, bit) | writes `b` into that bit of each lane | halide
#define HBRT_BOOLEANS(SUFFIX, N)                                                                                        \
  HBRT_IVP hbrt_ivp::vbool<N> IVP_ANDB##SUFFIX(hbrt_ivp::vbool<N> a, hbrt_ivp::vbool<N> b) {                            \
    HBRT_CYCLES_COUNT(MOVE);                                                                                       \
    return a & b;                                                                                                  \
  }                                                                                                                \
  HBRT_IVP hbrt_ivp::vbool<N> IVP_ORB##SUFFIX(hbrt_ivp::vbool<N> a, hbrt_ivp::vbool<N> b) {                             \
    HBRT_CYCLES_COUNT(MOVE);                                                                                       \
    return a | b;                                                                                                  \
  }                                                                                                                \
  HBRT_IVP hbrt_ivp::vbool<N> IVP_XORB##SUFFIX(hbrt_ivp::vbool<N> a, hbrt_ivp::vbool<N> b) {                            \
    HBRT_CYCLES_COUNT(MOVE);                                                                                       \
    return a ^ b;                                                                                                  \
  }                                                                                                                \
  HBRT_IVP hbrt_ivp::vbool<N> IVP_NOTB##SUFFIX(hbrt_ivp::vbool<N> a) {                                                  \
    HBRT_CYCLES_COUNT(MOVE);                                                                                       \
    return ~a;                                                                                                     \
  }                                                                                                                \
  HBRT_IVP hbrt_ivp::vbool<N> IVP_LTR##SUFFIX(int count) {                                                              \
    using bits_type = hbrt_ivp::vbool<N>::bits_type;                                                               \
    HBRT_CYCLES_COUNT(MOVE);                                                                                       \
    if (count <= 0) return {0};                                                                                    \
    return {static_cast<bits_type>(static_cast<bits_type>(~bits_type(0)) >> (count >= N ? 0 : N - count))};        \
  }                                                                                                                \
  HBRT_IVP hbrt_ivp::vbool<N> IVP_LTRS##SUFFIX(int count) { return IVP_LTR##SUFFIX(count); }                                 \
  HBRT_IVP hbrt_ivp::vbool<N> IVP_LTR##SUFFIX##I(int count) { return IVP_LTR##SUFFIX(count); }
HBRT_BOOLEANS(2N, 64)
HBRT_BOOLEANS(N, 32)
HBRT_BOOLEANS(N_2, 16)

#define HBRT_HALVES(JOINED, SUFFIX, WHOLE, HALF)                                                                        \
  HBRT_IVP WHOLE IVP_JOINB##SUFFIX(HALF high, HALF low) {                                                               \
    HBRT_CYCLES_COUNT(MOVE);                                                                                       \
    return {static_cast<WHOLE::bits_type>(static_cast<WHOLE::bits_type>(high.bits) << HALF::size | low.bits)};     \
  }                                                                                                                \
  HBRT_IVP HALF IVP_EXTRACTBL##JOINED(WHOLE b) {                                                                   \
    HBRT_CYCLES_COUNT(MOVE);                                                                                       \
    return {static_cast<HALF::bits_type>(b.bits)};                                                                 \
  }                                                                                                                \
  HBRT_IVP HALF IVP_EXTRACTBH##JOINED(WHOLE b) {                                                                   \
    HBRT_CYCLES_COUNT(MOVE);                                                                                       \
    return {static_cast<HALF::bits_type>(b.bits >> HALF::size)};                                                   \
  }                                                                                                                \
  HBRT_IVP void IVP_EXTRACTB##JOINED(HALF &high, HALF &low, WHOLE b) {                                             \
    high = IVP_EXTRACTBH##JOINED(b);                                                                               \
    low = IVP_EXTRACTBL##JOINED(b);                                                                                \
  }
HBRT_HALVES(2N, N, vbool2N, vboolN)
HBRT_HALVES(N, N_2, vboolN, vboolN_2)

#define HBRT_BIT(SUFFIX, V)                                                                                             \
  HBRT_IVP hbrt_ivp::vbool<V::size> IVP_EXTBI##SUFFIX(const V &v, int bit) {                                            \
    return (v & V(static_cast<V::lane_type>(1u << bit))) != V(0);                                                  \
  }                                                                                                                \
  template <class R>                                                                                               \
  HBRT_IVP void IVP_INJBI##SUFFIX(R &v, hbrt_ivp::vbool<V::size> b, int bit) {                                          \
    const V old = v, one = V(static_cast<V::lane_type>(1u << bit));                                                \
    v = hbrt_ivp::blend(b, old | one, old & ~one);                                                                 \
  }
HBRT_BIT(2NX8, xb_vec2Nx8)
HBRT_BIT(NX16, xb_vecNx16)
HBRT_BIT(N_2X32, xb_vecN_2x32v)

namespace hbrt_ivp::rule {

/* Rounds toward zero. Division by 0 gives a quotient with all bits set, and the dividend as the remainder; a quotient
 * that is too large wraps. */
template <class L>
HBRT_IVP void divide(L a, L b, L &quotient, L &remainder) {
  if (b == 0) {
    quotient = static_cast<L>(-1);
    remainder = a;
    return;
  }
  const int64_t wide_quotient = static_cast<int64_t>(a) / static_cast<int64_t>(b);
  quotient = static_cast<L>(wide_quotient);
  remainder = static_cast<L>(static_cast<int64_t>(a) - wide_quotient * static_cast<int64_t>(b));
}

}  // namespace hbrt_ivp::rule

//! family: Integer division
//! Rounds toward zero. Division by 0 gives a quotient with all bits set, and the dividend as the remainder (assumed).
//! IVP_DIVN_2X32X16{,U}(&quotient, &remainder, a, b, part) | 32 bits divided by the even (part 0) or odd (part 1) 16-bit lanes | halide, tflm
//! IVP_QUONX16{,U}(a, b) | the 16-bit quotient | tflm
//! IVP_REMNX16{,U}(a, b) | the 16-bit remainder | assumed
#define HBRT_DIVIDE(U, V, H)                                                                                       \
  template <class Q, class R>                                                                                      \
  HBRT_IVP void IVP_DIVN_2X32X16##U(Q &quotient, R &remainder, const V &a, const H &b, int part) {                 \
    HBRT_CYCLES_COUNT(DIVIDE);                                                                                     \
    V q, r;                                                                                                        \
    for (int i = 0; i < V::size; ++i)                                                                              \
      hbrt_ivp::rule::divide<V::lane_type>(a.lane[i], b.lane[2 * i + (part & 1)], q.lane[i], r.lane[i]);           \
    quotient = q;                                                                                                  \
    remainder = r;                                                                                                 \
  }                                                                                                                \
  HBRT_IVP H IVP_QUONX16##U(const H &a, const H &b) {                                                              \
    HBRT_CYCLES_COUNT(DIVIDE);                                                                                     \
    H q, r;                                                                                                        \
    for (int i = 0; i < H::size; ++i) hbrt_ivp::rule::divide(a.lane[i], b.lane[i], q.lane[i], r.lane[i]);          \
    return q;                                                                                                      \
  }                                                                                                                \
  HBRT_IVP H IVP_REMNX16##U(const H &a, const H &b) {                                                              \
    HBRT_CYCLES_COUNT(DIVIDE);                                                                                     \
    H q, r;                                                                                                        \
    for (int i = 0; i < H::size; ++i) hbrt_ivp::rule::divide(a.lane[i], b.lane[i], q.lane[i], r.lane[i]);          \
    return r;                                                                                                      \
  }
HBRT_DIVIDE(, xb_vecN_2x32v, xb_vecNx16)
HBRT_DIVIDE(U, xb_vecN_2x32Uv, xb_vecNx16U)

#undef HBRT_DIVIDE
#undef HBRT_BIT
#undef HBRT_HALVES
#undef HBRT_BOOLEANS
#undef HBRT_COMPARE
#undef HBRT_NOT
#endif /* HBRT_IVP_ARITHMETIC_H */
