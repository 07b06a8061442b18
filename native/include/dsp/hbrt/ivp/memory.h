/* Loads and stores: aligned, unaligned (with an alignment register), predicated, and of single elements.
 *
 * A load reads only the bytes that it returns. An unaligned store writes a line of 64 bytes once it is full and holds
 * the rest in its alignment register, as the chip does: what IVP_SAPOS does not flush is lost, on the chip and here. An
 * aligned load or store at an unaligned address ends the program with an error message.
 */
#ifndef HBRT_IVP_MEMORY_H
#define HBRT_IVP_MEMORY_H

#include <hbrt/ivp/lanes.h>

/* Bytes that unaligned stores have yet to write: `count` of them, ending before the address `next`. */
struct valign {
  uint8_t held[64];
  uint32_t count = 0;
  char *next = nullptr;
};

namespace hbrt_ivp {

[[noreturn]] __attribute__((noinline, cold)) inline void misaligned(const char *name, const void *address, unsigned bytes) {
  std::fprintf(stderr, "%s at %p is not aligned to %u bytes: use the unaligned form (IVP_LA..., IVP_SA...) or align the data.\n",
               name, address, bytes);
  std::abort();
}
#define HBRT_ALIGNED(name, address, bytes) \
  (__builtin_expect(reinterpret_cast<uintptr_t>(address) % (bytes) != 0, 0) ? hbrt_ivp::misaligned(name, address, bytes) : (void)0)

HBRT_IVP const char *at(const void *base, intptr_t offset) { return static_cast<const char *>(base) + offset; }
HBRT_IVP char *at(void *base, intptr_t offset) { return static_cast<char *>(base) + offset; }

/* Moves a pointer of any type by bytes. */
template <class P>
HBRT_IVP void advance(P &pointer, intptr_t bytes) {
  pointer = reinterpret_cast<P>(reinterpret_cast<uintptr_t>(pointer) + static_cast<uintptr_t>(bytes));
}

HBRT_IVP int clamped(intptr_t bytes, int most) { return bytes < 0 ? 0 : bytes > most ? most : static_cast<int>(bytes); }

/* A lane as stored in memory: narrower ones lose their high bits, or saturate. */
template <class M, bool SATURATES, class L>
HBRT_IVP M narrowed(L value) {
  if constexpr (SATURATES) {
    constexpr L low = static_cast<L>(std::is_signed_v<M> ? -(1ll << (8 * sizeof(M) - 1)) : 0);
    constexpr L high = static_cast<L>((1ll << (8 * sizeof(M) - std::is_signed_v<M>)) - 1);
    value = value < low ? low : value > high ? high : value;
  }
  return static_cast<M>(value);
}

/* `bytes` bytes of elements M as a vector; lanes beyond them are 0. */
template <class V, class M>
HBRT_IVP V load(const void *address, int bytes = sizeof(M) * V::size) {
  using L = typename V::lane_type;
  V r;
  if constexpr (std::is_same_v<L, M>) {
    if (bytes == sizeof r.lane) {
      std::memcpy(r.lane, address, sizeof r.lane);
      return r;
    }
    r = V(0);
    std::memcpy(r.lane, address, static_cast<size_t>(bytes));
  } else {
    M memory[V::size] = {};
    std::memcpy(memory, address, static_cast<size_t>(bytes));
    for (int i = 0; i < V::size; ++i) r.lane[i] = static_cast<L>(memory[i]);
  }
  return r;
}
template <class V, class M>
HBRT_IVP V load_where(const void *address, vbool<V::size> where) {
  V r(0);
  for (int i = 0; i < V::size; ++i) {
    if (!where[i]) continue;
    M element;
    std::memcpy(&element, at(address, i * static_cast<int>(sizeof(M))), sizeof element);
    r.lane[i] = static_cast<typename V::lane_type>(element);
  }
  return r;
}

template <class M, bool SATURATES, class V>
HBRT_IVP void in_memory(const V &v, M (&memory)[V::size]) {
  for (int i = 0; i < V::size; ++i) memory[i] = narrowed<M, SATURATES>(v.lane[i]);
}
template <class M, bool SATURATES, class V>
HBRT_IVP void store(const V &v, void *address) {
  M memory[V::size];
  in_memory<M, SATURATES>(v, memory);
  std::memcpy(address, memory, sizeof memory);
}
template <class M, bool SATURATES, class V>
HBRT_IVP void store_where(const V &v, void *address, vbool<V::size> where) {
  for (int i = 0; i < V::size; ++i) {
    const M element = narrowed<M, SATURATES>(v.lane[i]);
    if (where[i]) std::memcpy(at(address, i * static_cast<int>(sizeof(M))), &element, sizeof element);
  }
}

/* Write the full lines of the held bytes and `bytes` more; hold the rest. */
__attribute__((noinline)) inline void store_lines(valign &align, char *address, const char *source, int bytes) {
  if (align.next != address) align.count = 0;
  char *const end = address + bytes;
  char *const line = end - reinterpret_cast<uintptr_t>(end) % 64;
  if (line > address - align.count) {
    const size_t direct = static_cast<size_t>(line - address);
    std::memcpy(address - align.count, align.held, align.count);
    std::memcpy(address, source, direct);
    align.count = static_cast<uint32_t>(static_cast<size_t>(bytes) - direct);
    std::memcpy(align.held, source + direct, align.count);
  } else {
    std::memcpy(align.held + align.count, source, static_cast<size_t>(bytes));
    align.count += static_cast<uint32_t>(bytes);
  }
  align.next = end;
}
template <class M, bool SATURATES, class V>
HBRT_IVP void store_unaligned(const V &v, valign &align, void *address, int bytes = sizeof(M) * V::size) {
  M memory[V::size];
  in_memory<M, SATURATES>(v, memory);
  if (align.count == 0 && bytes == 64 && reinterpret_cast<uintptr_t>(address) % 64 == 0)
    std::memcpy(address, memory, sizeof memory);
  else
    store_lines(align, static_cast<char *>(address), reinterpret_cast<const char *>(memory), bytes);
}
inline void flush(valign &align, void *address) {
  if (align.count != 0 && align.next == address) std::memcpy(align.next - align.count, align.held, align.count);
  align.count = 0;
}

}  // namespace hbrt_ivp

//! family: Loads and stores of vectors
//! Elements in memory: `2NX8`, `2NX8U`: 64 of 8 bits; `NX16`, `NX16U` 32 of 16; `N_2X32`, `N_2X32U` 16 of 32; `N_2XF32` 16 floats; `NXF16` 32 of half precision; `NX8S`, `NX8U` 32 of 8 bits in lanes of 16; `N_2X16S`, `N_2X16U` 16 of 16 bits in lanes of 32. A store to elements narrower than the lanes saturates with `S` and takes the low bits with `U`.

#define HBRT_FORMATS(DO)                                   \
  DO(2NX8, xb_vec2Nx8, int8_t, false)                      \
  DO(2NX8U, xb_vec2Nx8U, uint8_t, false)                   \
  DO(NX16, xb_vecNx16, int16_t, false)                     \
  DO(NX16U, xb_vecNx16U, uint16_t, false)                  \
  DO(N_2X32, xb_vecN_2x32v, int32_t, false)                \
  DO(N_2X32U, xb_vecN_2x32Uv, uint32_t, false)             \
  DO(N_2XF32, xb_vecN_2xf32, float, false)                 \
  DO(NXF16, xb_vecNxf16, xb_f16, false)                    \
  DO(NX8S, xb_vecNx16, int8_t, true)                       \
  DO(NX8U, xb_vecNx16, uint8_t, false)                     \
  DO(N_2X16S, xb_vecN_2x32v, int16_t, true)                \
  DO(N_2X16U, xb_vecN_2x32v, uint16_t, false)

//! each: FORMATS = 2NX8,2NX8U,NX16,NX16U,N_2X32,N_2X32U,N_2XF32,NXF16,NX8S,NX8U,N_2X16S,N_2X16U
//! IVP_LV{FORMATS}_{I,X}(p, offset) | the vector at `p` + `offset` bytes, aligned to its size | halide, tflm
//! IVP_LV{FORMATS}_{IP,XP}(&v, &p, step) | loads `v` from `p`, then moves `p` by `step` bytes | halide, tflm
//! IVP_LV{FORMATS}T_{I,X}(p, offset, b) | as without T, but lanes where `b` is clear are 0 and their bytes are not read | assumed
//! IVP_LV{FORMATS}T_{IP,XP}(&v, &p, step, b) | the same, and moves `p` by `step` bytes | assumed
//! IVP_LA{FORMATS}_PP(p) | primes an alignment register for loads from `p`; reads nothing here | guide, halide
//! IVP_LA{FORMATS}_IP(&v, &align, &p) | loads `v` from `p`, which may have any address, and moves `p` past it | guide, halide
//! IVP_LA{FORMATS}_XP(&v, &align, &p, step) | loads `v` from `p`, then moves `p` by `step` bytes | tflm
//! IVP_LAV{FORMATS}_XP(&v, &align, &p, bytes) | loads the first `bytes` bytes, at least 0 and at most a vector, and moves `p` past them; lanes beyond are 0 | guide, tflm; the zeros are assumed
//! IVP_LA{FORMATS}_PPXU(&align, &p, step) | moves `p` by `step` bytes and primes there | tflm; the order is assumed
//! IVP_LAV{FORMATS}_PP(p) | another name for IVP_LA..._PP | tflm
//! IVP_SV{FORMATS}_{I,X}(v, p, offset) | stores `v` at `p` + `offset` bytes, aligned to its size | halide, tflm
//! IVP_SV{FORMATS}_{IP,XP}(v, &p, step) | stores `v` at `p`, then moves `p` by `step` bytes | tflm
//! IVP_SV{FORMATS}{T,F}_{I,X}(v, p, offset, b) | stores the lanes where `b` is set (T) or clear (F) | tflm
//! IVP_SV{FORMATS}{T,F}_{IP,XP}(v, &p, step, b) | the same, and moves `p` by `step` bytes | tflm
//! IVP_SA{FORMATS}_IP(v, &align, &p) | stores `v` at `p`, which may have any address, and moves `p` past it; bytes of an incomplete line wait in `align` | guide, halide
//! IVP_SAV{FORMATS}_XP(v, &align, &p, bytes) | stores the first `bytes` bytes, at least 0 and at most a vector, and moves `p` past them | guide, tflm
//! IVP_SAPOS{FORMATS}_FP(&align, p) | writes the bytes waiting in `align`, which belong before `p` | guide, halide
//! IVP_SAPOS{FORMATS}_FPXP(&align, &p, step) | the same, and moves `p` by `step` bytes | tflm
//! IVP_SA{FORMATS}POS_FP(&align, p) | an older name for IVP_SAPOS | tflm
//! IVP_SAV{FORMATS}POS_FP(&align, p) | an older name for IVP_SAPOS | tflm
#define HBRT_LOADS_AND_STORES(SUFFIX, V, M, S)                                                                             \
  HBRT_IVP V IVP_LV##SUFFIX##_I(const void *p, intptr_t offset) {                                                          \
    HBRT_CYCLES_COUNT(LOAD);                                                                                          \
    const char *address = hbrt_ivp::at(p, offset);                                                                    \
    HBRT_ALIGNED("IVP_LV" #SUFFIX, address, sizeof(M) * V::size);                                                          \
    return hbrt_ivp::load<V, M>(address);                                                                             \
  }                                                                                                                   \
  HBRT_IVP V IVP_LV##SUFFIX##_X(const void *p, intptr_t offset) { return IVP_LV##SUFFIX##_I(p, offset); }                       \
  template <class R, class P>                                                                                         \
  HBRT_IVP void IVP_LV##SUFFIX##_IP(R &v, P &p, intptr_t step) {                                                           \
    v = IVP_LV##SUFFIX##_I(p, 0);                                                                                          \
    hbrt_ivp::advance(p, step);                                                                                       \
  }                                                                                                                   \
  template <class R, class P>                                                                                         \
  HBRT_IVP void IVP_LV##SUFFIX##_XP(R &v, P &p, intptr_t step) {                                                           \
    IVP_LV##SUFFIX##_IP(v, p, step);                                                                                       \
  }                                                                                                                   \
  HBRT_IVP V IVP_LV##SUFFIX##T_I(const void *p, intptr_t offset, hbrt_ivp::vbool<V::size> b) {                             \
    HBRT_CYCLES_COUNT(LOAD);                                                                                          \
    const char *address = hbrt_ivp::at(p, offset);                                                                    \
    HBRT_ALIGNED("IVP_LV" #SUFFIX "T", address, sizeof(M) * V::size);                                                      \
    return hbrt_ivp::load_where<V, M>(address, b);                                                                    \
  }                                                                                                                   \
  HBRT_IVP V IVP_LV##SUFFIX##T_X(const void *p, intptr_t offset, hbrt_ivp::vbool<V::size> b) {                             \
    return IVP_LV##SUFFIX##T_I(p, offset, b);                                                                              \
  }                                                                                                                   \
  template <class R, class P>                                                                                         \
  HBRT_IVP void IVP_LV##SUFFIX##T_IP(R &v, P &p, intptr_t step, hbrt_ivp::vbool<V::size> b) {                              \
    v = IVP_LV##SUFFIX##T_I(p, 0, b);                                                                                      \
    hbrt_ivp::advance(p, step);                                                                                       \
  }                                                                                                                   \
  template <class R, class P>                                                                                         \
  HBRT_IVP void IVP_LV##SUFFIX##T_XP(R &v, P &p, intptr_t step, hbrt_ivp::vbool<V::size> b) {                              \
    IVP_LV##SUFFIX##T_IP(v, p, step, b);                                                                                   \
  }                                                                                                                   \
  HBRT_IVP valign IVP_LA##SUFFIX##_PP(const void *) {                                                                      \
    HBRT_CYCLES_COUNT(LOAD);                                                                                          \
    return {};                                                                                                        \
  }                                                                                                                   \
  template <class R, class P>                                                                                         \
  HBRT_IVP void IVP_LA##SUFFIX##_XP(R &v, valign &, P &p, intptr_t step) {                                                 \
    HBRT_CYCLES_COUNT(LOAD);                                                                                          \
    v = hbrt_ivp::load<V, M>(p);                                                                                      \
    hbrt_ivp::advance(p, step);                                                                                       \
  }                                                                                                                   \
  template <class R, class P>                                                                                         \
  HBRT_IVP void IVP_LA##SUFFIX##_IP(R &v, valign &align, P &p) {                                                           \
    IVP_LA##SUFFIX##_XP(v, align, p, sizeof(M) * V::size);                                                                 \
  }                                                                                                                   \
  template <class R, class P>                                                                                         \
  HBRT_IVP void IVP_LAV##SUFFIX##_XP(R &v, valign &, P &p, intptr_t bytes) {                                               \
    HBRT_CYCLES_COUNT(LOAD);                                                                                          \
    const int n = hbrt_ivp::clamped(bytes, sizeof(M) * V::size);                                                      \
    v = hbrt_ivp::load<V, M>(p, n);                                                                                   \
    hbrt_ivp::advance(p, n);                                                                                          \
  }                                                                                                                   \
  template <class P>                                                                                                  \
  HBRT_IVP void IVP_LA##SUFFIX##_PPXU(valign &align, P &p, intptr_t step) {                                                \
    hbrt_ivp::advance(p, step);                                                                                       \
    align = IVP_LA##SUFFIX##_PP(p);                                                                                        \
  }                                                                                                                   \
  HBRT_IVP void IVP_SV##SUFFIX##_I(const V &v, void *p, intptr_t offset) {                                                 \
    HBRT_CYCLES_COUNT(STORE);                                                                                         \
    char *address = hbrt_ivp::at(p, offset);                                                                          \
    HBRT_ALIGNED("IVP_SV" #SUFFIX, address, sizeof(M) * V::size);                                                          \
    hbrt_ivp::store<M, S>(v, address);                                                                                \
  }                                                                                                                   \
  HBRT_IVP void IVP_SV##SUFFIX##_X(const V &v, void *p, intptr_t offset) { IVP_SV##SUFFIX##_I(v, p, offset); }                  \
  template <class P>                                                                                                  \
  HBRT_IVP void IVP_SV##SUFFIX##_IP(const V &v, P &p, intptr_t step) {                                                     \
    IVP_SV##SUFFIX##_I(v, p, 0);                                                                                           \
    hbrt_ivp::advance(p, step);                                                                                       \
  }                                                                                                                   \
  template <class P>                                                                                                  \
  HBRT_IVP void IVP_SV##SUFFIX##_XP(const V &v, P &p, intptr_t step) {                                                     \
    IVP_SV##SUFFIX##_IP(v, p, step);                                                                                       \
  }                                                                                                                   \
  HBRT_STORES_WHERE(SUFFIX, V, M, S, T, b)                                                                                 \
  HBRT_STORES_WHERE(SUFFIX, V, M, S, F, ~b)                                                                                \
  template <class P>                                                                                                  \
  HBRT_IVP void IVP_SAV##SUFFIX##_XP(const V &v, valign &align, P &p, intptr_t bytes) {                                    \
    HBRT_CYCLES_COUNT(STORE);                                                                                         \
    const int n = hbrt_ivp::clamped(bytes, sizeof(M) * V::size);                                                      \
    hbrt_ivp::store_unaligned<M, S>(v, align, p, n);                                                                  \
    hbrt_ivp::advance(p, n);                                                                                          \
  }                                                                                                                   \
  template <class P>                                                                                                  \
  HBRT_IVP void IVP_SA##SUFFIX##_IP(const V &v, valign &align, P &p) {                                                     \
    IVP_SAV##SUFFIX##_XP(v, align, p, sizeof(M) * V::size);                                                                \
  }                                                                                                                   \
  HBRT_IVP void IVP_SAPOS##SUFFIX##_FP(valign &align, void *p) {                                                           \
    HBRT_CYCLES_COUNT(STORE);                                                                                         \
    hbrt_ivp::flush(align, p);                                                                                        \
  }                                                                                                                   \
  template <class P>                                                                                                  \
  HBRT_IVP void IVP_SAPOS##SUFFIX##_FPXP(valign &align, P &p, intptr_t step) {                                        \
    IVP_SAPOS##SUFFIX##_FP(align, p);                                                                                 \
    hbrt_ivp::advance(p, step);                                                                                       \
  }                                                                                                                   \
  HBRT_IVP valign IVP_LAV##SUFFIX##_PP(const void *p) { return IVP_LA##SUFFIX##_PP(p); }                              \
  HBRT_IVP void IVP_SA##SUFFIX##POS_FP(valign &align, void *p) { IVP_SAPOS##SUFFIX##_FP(align, p); }                            \
  HBRT_IVP void IVP_SAV##SUFFIX##POS_FP(valign &align, void *p) { IVP_SAPOS##SUFFIX##_FP(align, p); }

#define HBRT_STORES_WHERE(SUFFIX, V, M, S, T, WHERE)                                                                       \
  HBRT_IVP void IVP_SV##SUFFIX##T##_I(const V &v, void *p, intptr_t offset, hbrt_ivp::vbool<V::size> b) {                  \
    HBRT_CYCLES_COUNT(STORE);                                                                                         \
    char *address = hbrt_ivp::at(p, offset);                                                                          \
    HBRT_ALIGNED("IVP_SV" #SUFFIX #T, address, sizeof(M) * V::size);                                                       \
    hbrt_ivp::store_where<M, S>(v, address, WHERE);                                                                   \
  }                                                                                                                   \
  HBRT_IVP void IVP_SV##SUFFIX##T##_X(const V &v, void *p, intptr_t offset, hbrt_ivp::vbool<V::size> b) {                  \
    IVP_SV##SUFFIX##T##_I(v, p, offset, b);                                                                                \
  }                                                                                                                   \
  template <class P>                                                                                                  \
  HBRT_IVP void IVP_SV##SUFFIX##T##_IP(const V &v, P &p, intptr_t step, hbrt_ivp::vbool<V::size> b) {                      \
    IVP_SV##SUFFIX##T##_I(v, p, 0, b);                                                                                     \
    hbrt_ivp::advance(p, step);                                                                                       \
  }                                                                                                                   \
  template <class P>                                                                                                  \
  HBRT_IVP void IVP_SV##SUFFIX##T##_XP(const V &v, P &p, intptr_t step, hbrt_ivp::vbool<V::size> b) {                      \
    IVP_SV##SUFFIX##T##_IP(v, p, step, b);                                                                                 \
  }

HBRT_FORMATS(HBRT_LOADS_AND_STORES)

//! IVP_LA_PP(p) | primes an alignment register for loads of any type from `p` | halide
HBRT_IVP valign IVP_LA_PP(const void *) {
  HBRT_CYCLES_COUNT(LOAD);
  return {};
}
//! IVP_ZALIGN() | an alignment register with nothing in it, for stores | guide, halide
HBRT_IVP valign IVP_ZALIGN() {
  HBRT_CYCLES_COUNT(MOVE);
  return {};
}
//! IVP_L2U2NX8{,U}_XP(&v, &p, step) | loads `v` from `p`, which may have any address, then moves `p` by `step` bytes | halide, tflm
#define HBRT_TWO_LOADS(SUFFIX, V)                                     \
  template <class R, class P>                                    \
  HBRT_IVP void IVP_L2U##SUFFIX##_XP(R &v, P &p, intptr_t step) {     \
    HBRT_CYCLES_COUNT(LOAD);                                     \
    v = hbrt_ivp::load<V, V::lane_type>(p);                      \
    hbrt_ivp::advance(p, step);                                  \
  }
HBRT_TWO_LOADS(2NX8, xb_vec2Nx8)
HBRT_TWO_LOADS(2NX8U, xb_vec2Nx8U)

//! family: Loads and stores of one element
//! each: ELEMENTS = 2NX8,2NX8U,NX16,NX16U,N_2X32,N_2X32U,N_2XF32,NXF16,NX8S,NX8U
//! IVP_LS{ELEMENTS}_{I,X}(p, offset) | the element at `p` + `offset` bytes; it fills all lanes of a vector result | tflm; the guide's vecexpf_max needs all lanes
//! IVP_LS{ELEMENTS}_{IP,XP}(&v, &p, step) | the element at `p`, then moves `p` by `step` bytes | tflm
//! IVP_LSR{ELEMENTS}_{I,X}(p, offset) | a vector with the element at `p` + `offset` bytes in each lane | guide, tflm
//! IVP_LSR{ELEMENTS}_{IP,XP}(&v, &p, step) | the same from `p`, then moves `p` by `step` bytes | guide, tflm
//! IVP_SS{ELEMENTS}_{I,X}(v, p, offset) | stores lane 0 at `p` + `offset` bytes | tflm
//! IVP_SS{ELEMENTS}_{IP,XP}(v, &p, step) | stores lane 0 at `p`, then moves `p` by `step` bytes | tflm
#define HBRT_ELEMENTS(SUFFIX, V, M, S)                                                        \
  HBRT_IVP V::lane_type IVP_LS##SUFFIX##_I(const void *p, intptr_t offset) {                  \
    HBRT_CYCLES_COUNT(LOAD);                                                             \
    M element;                                                                           \
    const char *address = hbrt_ivp::at(p, offset);                                       \
    HBRT_ALIGNED("IVP_LS" #SUFFIX, address, sizeof element);                                  \
    std::memcpy(&element, address, sizeof element);                                      \
    return static_cast<V::lane_type>(element);                                           \
  }                                                                                      \
  HBRT_IVP V::lane_type IVP_LS##SUFFIX##_X(const void *p, intptr_t offset) { return IVP_LS##SUFFIX##_I(p, offset); } \
  HBRT_IVP V IVP_LSR##SUFFIX##_I(const void *p, intptr_t offset) { return V(IVP_LS##SUFFIX##_I(p, offset)); } \
  HBRT_IVP V IVP_LSR##SUFFIX##_X(const void *p, intptr_t offset) { return V(IVP_LS##SUFFIX##_I(p, offset)); } \
  HBRT_IVP void IVP_SS##SUFFIX##_I(const V &v, void *p, intptr_t offset) {                    \
    HBRT_CYCLES_COUNT(STORE);                                                            \
    char *address = hbrt_ivp::at(p, offset);                                             \
    const M element = hbrt_ivp::narrowed<M, S>(v.lane[0]);                               \
    HBRT_ALIGNED("IVP_SS" #SUFFIX, address, sizeof element);                                  \
    std::memcpy(address, &element, sizeof element);                                      \
  }                                                                                      \
  HBRT_IVP void IVP_SS##SUFFIX##_X(const V &v, void *p, intptr_t offset) { IVP_SS##SUFFIX##_I(v, p, offset); } \
  HBRT_ELEMENT_STEPS(SUFFIX, V, IP)                                                           \
  HBRT_ELEMENT_STEPS(SUFFIX, V, XP)
#define HBRT_ELEMENT_STEPS(SUFFIX, V, X)                                   \
  template <class R, class P>                                         \
  HBRT_IVP void IVP_LS##SUFFIX##_##X(R &v, P &p, intptr_t step) {          \
    v = IVP_LS##SUFFIX##_I(p, 0);                                          \
    hbrt_ivp::advance(p, step);                                       \
  }                                                                   \
  template <class R, class P>                                         \
  HBRT_IVP void IVP_LSR##SUFFIX##_##X(R &v, P &p, intptr_t step) {         \
    v = IVP_LSR##SUFFIX##_I(p, 0);                                         \
    hbrt_ivp::advance(p, step);                                       \
  }                                                                   \
  template <class P>                                                  \
  HBRT_IVP void IVP_SS##SUFFIX##_##X(const V &v, P &p, intptr_t step) {    \
    IVP_SS##SUFFIX##_I(v, p, 0);                                           \
    hbrt_ivp::advance(p, step);                                       \
  }
HBRT_ELEMENTS(2NX8, xb_vec2Nx8, int8_t, false)
HBRT_ELEMENTS(2NX8U, xb_vec2Nx8U, uint8_t, false)
HBRT_ELEMENTS(NX16, xb_vecNx16, int16_t, false)
HBRT_ELEMENTS(NX16U, xb_vecNx16U, uint16_t, false)
HBRT_ELEMENTS(N_2X32, xb_vecN_2x32v, int32_t, false)
HBRT_ELEMENTS(N_2X32U, xb_vecN_2x32Uv, uint32_t, false)
HBRT_ELEMENTS(N_2XF32, xb_vecN_2xf32, float, false)
HBRT_ELEMENTS(NXF16, xb_vecNxf16, xb_f16, false)
HBRT_ELEMENTS(NX8S, xb_vecNx16, int8_t, true)
HBRT_ELEMENTS(NX8U, xb_vecNx16, uint8_t, false)

//! family: Loads and stores of vector booleans
//! each: BOOLS = 2N,N,N_2
//! IVP_LB{BOOLS}_I(p, offset) | the vector boolean at `p` + `offset` bytes: one bit per lane, 8, 4 or 2 bytes | assumed
//! IVP_SB{BOOLS}_I(b, p, offset) | stores it there | tflm; the layout is assumed
#define HBRT_BOOLS(SUFFIX, B)                                                            \
  HBRT_IVP B IVP_LB##SUFFIX##_I(const void *p, intptr_t offset) {                        \
    HBRT_CYCLES_COUNT(LOAD);                                                        \
    B b;                                                                            \
    std::memcpy(&b, hbrt_ivp::at(p, offset), sizeof b);                             \
    return b;                                                                       \
  }                                                                                 \
  HBRT_IVP void IVP_SB##SUFFIX##_I(B b, void *p, intptr_t offset) {                      \
    HBRT_CYCLES_COUNT(STORE);                                                       \
    std::memcpy(hbrt_ivp::at(p, offset), &b, sizeof b);                             \
  }
HBRT_BOOLS(2N, vbool2N)
HBRT_BOOLS(N, vboolN)
HBRT_BOOLS(N_2, vboolN_2)

#undef HBRT_TWO_LOADS
#undef HBRT_BOOLS
#undef HBRT_ELEMENTS
#undef HBRT_ELEMENT_STEPS
#undef HBRT_STORES_WHERE
#undef HBRT_LOADS_AND_STORES
#undef HBRT_FORMATS
#endif /* HBRT_IVP_MEMORY_H */
