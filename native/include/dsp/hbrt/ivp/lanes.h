/* Types of the IVP emulation: vectors, wide accumulators, vector booleans, and the conversions between them.
 *
 * A vector is an array of lanes, aligned as in the register file, so it can be a union member, be copied by memcpy and
 * be read through a pointer. `lanes(v)` presents the same bytes to the compiler as one vector-extension value, which it
 * maps to whatever registers the host has.
 */
#ifndef HBRT_IVP_LANES_H
#define HBRT_IVP_LANES_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include <hbrt/cycles.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "The IVP emulation needs a little-endian host, as the DSP is little-endian."
#endif

#define HBRT_IVP inline __attribute__((always_inline))

namespace hbrt_ivp {

template <class T, class = void>
struct unsigned_of {
  using type = std::make_unsigned_t<T>;
};
template <class T>
struct unsigned_of<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  using type = T;
};

template <class L, int N>
struct native {
  typedef L type __attribute__((vector_size(sizeof(L) * N), may_alias));
};

/* A half-precision number, as in IEEE 754. Computed as float, then rounded to nearest, ties to even. */
struct half {
  uint16_t bits;

  half() = default;
  template <class S, std::enable_if_t<std::is_arithmetic_v<S> || std::is_enum_v<S>, int> = 0>
  HBRT_IVP half(S number) : bits(rounded(static_cast<double>(number))) {}

  HBRT_IVP operator float() const {
    const uint32_t exponent = bits >> 10 & 31u, fraction = bits & 1023u;
    float magnitude = static_cast<float>(fraction) * 0x1p-24f; /* subnormal */
    uint32_t word = exponent == 31 ? 0x7f800000u | fraction << 13 : (exponent + 112) << 23 | fraction << 13;
    if (exponent == 0) std::memcpy(&word, &magnitude, sizeof word);
    word |= (bits & 0x8000u) << 16;
    std::memcpy(&magnitude, &word, sizeof word);
    return magnitude;
  }

  static uint16_t rounded(double number) {
    uint64_t word;
    std::memcpy(&word, &number, sizeof word);
    const uint32_t sign = static_cast<uint32_t>(word >> 48) & 0x8000u;
    const double magnitude = __builtin_fabs(number);
    if (magnitude != magnitude) return static_cast<uint16_t>(sign | 0x7e00u);
    if (magnitude >= 65520) return static_cast<uint16_t>(sign | 0x7c00u); /* halfway to the next number, which does not exist */
    if (magnitude < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<uint32_t>(__builtin_rint(magnitude * 0x1p24)));
    const int exponent = static_cast<int>(word >> 52 & 0x7ff) - 1023;
    const uint32_t fraction = static_cast<uint32_t>(__builtin_rint(__builtin_ldexp(magnitude, 10 - exponent)));
    return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 14) << 10) + fraction)); /* with its leading bit */
  }
};

/* A scalar as a lane: an integer wraps; a float is truncated toward zero and saturates; NaN becomes 0. */
template <class L, class S>
HBRT_IVP L lane_of(S scalar) {
  if constexpr (std::is_same_v<S, half> && !std::is_same_v<L, half>) {
    return lane_of<L>(static_cast<float>(scalar));
  } else if constexpr (std::is_same_v<L, half> || std::is_floating_point_v<L> || !std::is_floating_point_v<S>) {
    return static_cast<L>(scalar);
  } else {
    constexpr double lowest = static_cast<double>(std::is_signed_v<L> ? -(static_cast<int64_t>(1) << (8 * sizeof(L) - 1)) : 0);
    constexpr double above = static_cast<double>(static_cast<uint64_t>(1) << (8 * sizeof(L) - std::is_signed_v<L>));
    const double value = static_cast<double>(scalar);
    if (!(value > lowest)) return value <= lowest ? static_cast<L>(lowest) : static_cast<L>(0);
    return value >= above ? static_cast<L>(static_cast<typename unsigned_of<L>::type>(~0ull) >> std::is_signed_v<L>) : static_cast<L>(value);
  }
}

template <class S>
inline constexpr bool is_scalar = std::is_arithmetic_v<S> || std::is_enum_v<S> || std::is_same_v<S, half>;

/* N lanes of type L. A scalar is broadcast to all lanes. */
template <class L, int N>
struct alignas(sizeof(L) * N < 64 ? sizeof(L) * N : 64) vec {
  using lane_type = L;
  static constexpr int size = N;

  L lane[N];

  vec() = default;

  template <class S, std::enable_if_t<is_scalar<S>, int> = 0>
  HBRT_IVP vec(S scalar) {
    const L value = lane_of<L>(scalar);
    for (int i = 0; i < N; ++i) lane[i] = value;
  }

  /* A vector with as many lanes of another type: between integers of the same width, bits are kept; to and from float,
   * values are converted; narrower lanes, as laid out in memory, are widened. */
  template <class M, std::enable_if_t<!std::is_same_v<M, L> && sizeof(M) <= sizeof(L), int> = 0>
  HBRT_IVP vec(const vec<M, N> &other) {
    for (int i = 0; i < N; ++i) lane[i] = lane_of<L>(other.lane[i]);
  }
};

template <class L, int N>
HBRT_IVP typename native<L, N>::type &lanes(vec<L, N> &v) {
  return *reinterpret_cast<typename native<L, N>::type *>(v.lane);
}
template <class L, int N>
HBRT_IVP const typename native<L, N>::type &lanes(const vec<L, N> &v) {
  return *reinterpret_cast<const typename native<L, N>::type *>(v.lane);
}
/* The same bytes as unsigned lanes, for which wrapping is defined. */
template <class L, int N>
HBRT_IVP const typename native<typename unsigned_of<L>::type, N>::type &bits_of(const vec<L, N> &v) {
  return *reinterpret_cast<const typename native<typename unsigned_of<L>::type, N>::type *>(v.lane);
}
template <class R, class V>
HBRT_IVP R from_native(const V &value) {
  static_assert(sizeof(R) == sizeof(V), "as many bytes");
  R r;
  std::memcpy(r.lane, &value, sizeof value);
  return r;
}

/* The bytes of one vector as another type. */
template <class R, class V>
HBRT_IVP R recast(const V &v) {
  static_assert(sizeof(R) == sizeof(V), "as many bytes");
  R r;
  std::memcpy(static_cast<void *>(&r), &v, sizeof r);
  return r;
}

/* N accumulators of BITS bits. More bits are stored than the register has; `value` returns those of the register. */
template <class L, int N, int BITS>
struct alignas(64) wide {
  static constexpr int size = N, bits = BITS;
  static constexpr int unused = 8 * sizeof(L) - BITS;

  L lane[N];

  wide() = default;

  template <class S, std::enable_if_t<is_scalar<S>, int> = 0>
  HBRT_IVP wide(S scalar) {
    for (int i = 0; i < N; ++i) lane[i] = static_cast<L>(scalar);
  }

  HBRT_IVP L value(int i) const {
    using U = std::make_unsigned_t<L>;
    return static_cast<L>(static_cast<U>(lane[i]) << unused) >> unused;
  }
  /* Adds modulo the width. */
  HBRT_IVP void add(int i, int64_t term) {
    using U = std::make_unsigned_t<L>;
    lane[i] = static_cast<L>(static_cast<U>(lane[i]) + static_cast<U>(term));
  }
};

/* A vector boolean: one bit per lane, lane 0 in bit 0. */
template <int N>
struct vbool {
  using bits_type = std::conditional_t<N == 64, uint64_t, std::conditional_t<N == 32, uint32_t, uint16_t>>;
  static constexpr int size = N;

  bits_type bits;

  HBRT_IVP bool operator[](int i) const { return bits >> i & 1; }
  friend HBRT_IVP vbool operator&(vbool a, vbool b) { return {static_cast<bits_type>(a.bits & b.bits)}; }
  friend HBRT_IVP vbool operator|(vbool a, vbool b) { return {static_cast<bits_type>(a.bits | b.bits)}; }
  friend HBRT_IVP vbool operator^(vbool a, vbool b) { return {static_cast<bits_type>(a.bits ^ b.bits)}; }
  friend HBRT_IVP vbool operator~(vbool a) { return {static_cast<bits_type>(~a.bits)}; }
  friend HBRT_IVP vbool operator!(vbool a) { return ~a; }
  HBRT_IVP vbool &operator&=(vbool b) { return *this = *this & b; }
  HBRT_IVP vbool &operator|=(vbool b) { return *this = *this | b; }
  HBRT_IVP vbool &operator^=(vbool b) { return *this = *this ^ b; }
};

/* Signed lanes of L's width: all bits of a lane are set where the boolean is set. */
template <class L, int N, class M = std::conditional_t<sizeof(L) == 1, int8_t, std::conditional_t<sizeof(L) == 2, int16_t, int32_t>>>
HBRT_IVP vec<M, N> mask_of(vbool<N> b) {
  using bytes = typename native<int8_t, N>::type;
  uint64_t spread[N / 8];
  for (int j = 0; j < N / 8; ++j)
    spread[j] = (static_cast<uint64_t>(b.bits) >> (8 * j) & 0xff) * 0x0101010101010101u & 0x8040201008040201u;
  bytes of_bits;
  std::memcpy(&of_bits, spread, sizeof of_bits);
  const bytes mask = of_bits != 0;
  if constexpr (sizeof(L) == 1) return from_native<vec<M, N>>(mask);
  else return from_native<vec<M, N>>(__builtin_convertvector(mask, typename native<M, N>::type));
}

/* The boolean of a comparison: bit i is set where lane i of the mask is all ones. */
template <int N, class M>
HBRT_IVP vbool<N> vbool_of(const M &mask) {
  using bytes = typename native<int8_t, N>::type;
  bytes narrow;
  if constexpr (sizeof(M) == N) std::memcpy(&narrow, &mask, sizeof narrow);
  else narrow = __builtin_convertvector(mask, bytes);
  uint64_t chunk[N / 8], bits = 0;
  std::memcpy(chunk, &narrow, sizeof chunk);
  for (int j = 0; j < N / 8; ++j)
    bits |= ((chunk[j] & 0x0101010101010101u) * 0x0102040810204080u >> 56) << (8 * j);
  return {static_cast<typename vbool<N>::bits_type>(bits)};
}

/* Lanes of `yes` where the boolean is set, of `no` elsewhere. */
template <class L, int N>
HBRT_IVP vec<L, N> blend(vbool<N> b, const vec<L, N> &yes, const vec<L, N> &no) {
  const auto where = mask_of<L, N>(b);
  using M = std::remove_cv_t<decltype(where)>;
  const M y = recast<M>(yes), n = recast<M>(no);
  return recast<vec<L, N>>(from_native<M>((lanes(y) & lanes(where)) | (lanes(n) & ~lanes(where))));
}

}  // namespace hbrt_ivp

/* The names of the vendor's header. */
using xb_vec2Nx8 = hbrt_ivp::vec<int8_t, 64>;
using xb_vec2Nx8U = hbrt_ivp::vec<uint8_t, 64>;
using xb_vecNx16 = hbrt_ivp::vec<int16_t, 32>;
using xb_vecNx16U = hbrt_ivp::vec<uint16_t, 32>;
using xb_vecN_2x32v = hbrt_ivp::vec<int32_t, 16>;
using xb_vecN_2x32Uv = hbrt_ivp::vec<uint32_t, 16>;
using xb_vecN_2xf32 = hbrt_ivp::vec<float, 16>;
using xb_vecNxf16 = hbrt_ivp::vec<hbrt_ivp::half, 32>;

/* Memory formats of widening loads and narrowing stores. */
using xb_vecNx8 = hbrt_ivp::vec<int8_t, 32>;
using xb_vecNx8U = hbrt_ivp::vec<uint8_t, 32>;
using xb_vecN_2x16 = hbrt_ivp::vec<int16_t, 16>;
using xb_vecN_2x16U = hbrt_ivp::vec<uint16_t, 16>;
using xb_vecN_2xf16 = hbrt_ivp::vec<hbrt_ivp::half, 16>;

using xb_vec2Nx24 = hbrt_ivp::wide<int32_t, 64, 24>;
using xb_vecNx48 = hbrt_ivp::wide<int64_t, 32, 48>;
using xb_vecN_2x64w = hbrt_ivp::wide<int64_t, 16, 64>;

using vbool2N = hbrt_ivp::vbool<64>;
using vboolN = hbrt_ivp::vbool<32>;
using vboolN_2 = hbrt_ivp::vbool<16>;

using xb_int8 = int8_t;
using xb_int8U = uint8_t;
using xb_int16 = int16_t;
using xb_int16U = uint16_t;
using xb_int32v = int32_t;
using xb_int32Uv = uint32_t;
using xb_int32pr = int32_t;
using xb_int64pr = int64_t;
using xb_int24 = int32_t;
using xb_int48 = int64_t;
using xb_int64w = int64_t;
using xb_f16 = hbrt_ivp::half;
using xb_f32 = float;
using xtfloat = float;
typedef float float32_t;

/* The elements read by a gather, until an IVP_GATHERD takes them. */
struct alignas(64) xb_gsr {
  uint32_t lane[64];
};

namespace hbrt_ivp {

/* The type of `a * b`: a wide register for integers, a vector for floats. */
template <class L, int N>
HBRT_IVP auto product(const vec<L, N> &a, const vec<L, N> &b) {
  if constexpr (std::is_floating_point_v<L>) {
    return from_native<vec<L, N>>(lanes(a) * lanes(b));
  } else {
    using R = std::conditional_t<N == 64, xb_vec2Nx24, std::conditional_t<N == 32, xb_vecNx48, xb_vecN_2x64w>>;
    using P = std::conditional_t<sizeof(L) == 4, std::conditional_t<std::is_signed_v<L>, int64_t, uint64_t>, std::conditional_t<std::is_signed_v<L>, int32_t, uint32_t>>;
    R r;
    for (int i = 0; i < N; ++i) r.lane[i] = static_cast<decltype(r.value(0))>(static_cast<P>(a.lane[i]) * static_cast<P>(b.lane[i]));
    return r;
  }
}

#define HBRT_OPERATOR(OP, VIEW)                                                                       \
  template <class L, int N>                                                                           \
  HBRT_IVP vec<L, N> operator OP(const vec<L, N> &a, const vec<L, N> &b) {                            \
    HBRT_CYCLES_COUNT(ALU);                                                                           \
    return from_native<vec<L, N>>(VIEW(a) OP VIEW(b));                                                \
  }                                                                                                   \
  template <class L, int N, class S, std::enable_if_t<is_scalar<S>, int> = 0>                         \
  HBRT_IVP vec<L, N> operator OP(const vec<L, N> &a, S b) {                                           \
    return a OP vec<L, N>(b);                                                                         \
  }                                                                                                   \
  template <class L, int N, class S, std::enable_if_t<is_scalar<S>, int> = 0>                         \
  HBRT_IVP vec<L, N> operator OP(S a, const vec<L, N> &b) {                                           \
    return vec<L, N>(a) OP b;                                                                         \
  }                                                                                                   \
  template <class L, int N, class S>                                                                  \
  HBRT_IVP vec<L, N> &operator OP##=(vec<L, N> &a, const S &b) {                                      \
    return a = a OP vec<L, N>(b);                                                                     \
  }
HBRT_OPERATOR(+, bits_of)
HBRT_OPERATOR(-, bits_of)
HBRT_OPERATOR(&, bits_of)
HBRT_OPERATOR(|, bits_of)
HBRT_OPERATOR(^, bits_of)
#undef HBRT_OPERATOR

template <class L, int N>
HBRT_IVP vec<L, N> operator-(const vec<L, N> &a) {
  HBRT_CYCLES_COUNT(ALU);
  return from_native<vec<L, N>>(-bits_of(a));
}
template <class L, int N>
HBRT_IVP vec<L, N> operator~(const vec<L, N> &a) {
  HBRT_CYCLES_COUNT(ALU);
  return from_native<vec<L, N>>(~bits_of(a));
}
template <class L, int N>
HBRT_IVP auto operator*(const vec<L, N> &a, const vec<L, N> &b) {
  HBRT_CYCLES_COUNT(MUL);
  return product(a, b);
}
template <class L, int N, class S, std::enable_if_t<is_scalar<S>, int> = 0>
HBRT_IVP auto operator*(const vec<L, N> &a, S b) {
  return a * vec<L, N>(b);
}
template <class L, int N, class S, std::enable_if_t<is_scalar<S>, int> = 0>
HBRT_IVP auto operator*(S a, const vec<L, N> &b) {
  return vec<L, N>(a) * b;
}
/* Shifts by a bit count below the lane width. */
template <class L, int N>
HBRT_IVP vec<L, N> operator<<(const vec<L, N> &a, int count) {
  HBRT_CYCLES_COUNT(ALU);
  return from_native<vec<L, N>>(bits_of(a) << static_cast<typename unsigned_of<L>::type>(count));
}
template <class L, int N>
HBRT_IVP vec<L, N> operator>>(const vec<L, N> &a, int count) {
  HBRT_CYCLES_COUNT(ALU);
  return from_native<vec<L, N>>(lanes(a) >> static_cast<L>(count));
}

#define HBRT_COMPARISON(OP)                                                                           \
  template <class L, int N>                                                                           \
  HBRT_IVP vbool<N> operator OP(const vec<L, N> &a, const vec<L, N> &b) {                             \
    HBRT_CYCLES_COUNT(ALU);                                                                           \
    return vbool_of<N>(lanes(a) OP lanes(b));                                                         \
  }                                                                                                   \
  template <class L, int N, class S, std::enable_if_t<is_scalar<S>, int> = 0>                         \
  HBRT_IVP vbool<N> operator OP(const vec<L, N> &a, S b) {                                            \
    return a OP vec<L, N>(b);                                                                         \
  }                                                                                                   \
  template <class L, int N, class S, std::enable_if_t<is_scalar<S>, int> = 0>                         \
  HBRT_IVP vbool<N> operator OP(S a, const vec<L, N> &b) {                                            \
    return vec<L, N>(a) OP b;                                                                         \
  }
HBRT_COMPARISON(<)
HBRT_COMPARISON(<=)
HBRT_COMPARISON(>)
HBRT_COMPARISON(>=)
HBRT_COMPARISON(==)
HBRT_COMPARISON(!=)
#undef HBRT_COMPARISON

}  // namespace hbrt_ivp

#endif /* HBRT_IVP_LANES_H */
