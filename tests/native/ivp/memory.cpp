// Loads and stores at any address and of any length, each in a block of exactly the bytes that it may touch.
// Built with the address sanitizer: a byte next to them ends the program. It prints how many it has checked.
#include <cstdio>
#include <memory>
#include <xtensa/tie/xt_ivpn.h>

static long checked = 0;
#define CHECK(condition, ...)                                                   \
  do {                                                                          \
    ++checked;                                                                  \
    if (!(condition)) {                                                         \
      std::printf("line %d: %s\n", __LINE__, #condition);                       \
      std::printf(__VA_ARGS__);                                                 \
      std::printf("\n");                                                        \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

static uint8_t byte_at(int i) { return static_cast<uint8_t>(i * 37 + 11); }

// A block that ends where the heap's block ends, with `offset` bytes in front, so that a byte behind it is seen.
struct tight {
  std::unique_ptr<uint8_t[]> memory;
  uint8_t *begin;
  tight(int offset, int bytes) : memory(new uint8_t[static_cast<size_t>(offset + bytes)]), begin(memory.get() + offset) {
    for (int i = 0; i < bytes; ++i) begin[i] = byte_at(i);
  }
};

template <class V, class M>
static void same(const V &v, const uint8_t *memory, int bytes, const char *name) {
  for (int i = 0; i < V::size; ++i) {
    M element{};
    if ((i + 1) * static_cast<int>(sizeof(M)) <= bytes) std::memcpy(&element, memory + i * sizeof(M), sizeof(M));
    const auto want = static_cast<typename V::lane_type>(element);
    CHECK(std::memcmp(&v.lane[i], &want, sizeof want) == 0, "%s: lane %d of %d bytes", name, i, bytes);
  }
}

// The lanes with an odd number.
static vbool2N odd_of(hbrt_ivp::vbool<64>) { return {0xaaaaaaaaaaaaaaaaull}; }
static vboolN odd_of(hbrt_ivp::vbool<32>) { return {0xaaaaaaaau}; }
static vboolN_2 odd_of(hbrt_ivp::vbool<16>) { return {0xaaaau}; }
#define ODD_LANES(size) odd_of(hbrt_ivp::vbool<size>{0})

#define LOADS(F, V, M)                                                                                        \
  static void loads_##F() {                                                                                   \
    const int whole = sizeof(M) * V::size;                                                                    \
    for (int offset = 0; offset < 64; offset += 1 + offset % 5) {                                             \
      for (int bytes = -3; bytes <= whole + 2; bytes += bytes < 0 ? 1 : static_cast<int>(sizeof(M))) {        \
        const int touched = bytes < 0 ? 0 : bytes > whole ? whole : bytes;                                    \
        tight memory(offset, touched);                                                                        \
        const V *restrict p = (const V *)memory.begin;                                                        \
        valign align = IVP_LA##F##_PP(p);                                                                     \
        V v(1);                                                                                               \
        IVP_LAV##F##_XP(v, align, p, bytes);                                                                  \
        same<V, M>(v, memory.begin, touched, "IVP_LAV" #F "_XP");                                             \
        CHECK((const uint8_t *)p == memory.begin + touched, "IVP_LAV" #F "_XP moves by %d", bytes);           \
      }                                                                                                       \
      tight memory(offset, whole);                                                                            \
      V v(1);                                                                                                 \
      const V *p = (const V *)memory.begin;                                                                   \
      valign align = IVP_LA_PP(p);                                                                            \
      IVP_LA##F##_IP(v, align, p);                                                                            \
      same<V, M>(v, memory.begin, whole, "IVP_LA" #F "_IP");                                                  \
      CHECK((const uint8_t *)p == memory.begin + whole, "IVP_LA" #F "_IP moves");                             \
      p = (const V *)memory.begin;                                                                            \
      IVP_LA##F##_XP(v, align, p, -24);                                                                       \
      same<V, M>(v, memory.begin, whole, "IVP_LA" #F "_XP");                                                  \
      CHECK((const uint8_t *)p == memory.begin - 24, "IVP_LA" #F "_XP moves");                                \
      IVP_LA##F##_PPXU(align, p, 24);                                                                         \
      align = IVP_LAV##F##_PP(p);                                                                             \
      CHECK((const uint8_t *)p == memory.begin, "IVP_LA" #F "_PPXU moves");                                   \
    }                                                                                                         \
    alignas(64) uint8_t aligned[192];                                                                         \
    for (int i = 0; i < 192; ++i) aligned[i] = byte_at(i);                                                    \
    same<V, M>(IVP_LV##F##_I(aligned, 64), aligned + 64, whole, "IVP_LV" #F "_I");                            \
    same<V, M>(IVP_LV##F##_X(aligned, 128), aligned + 128, whole, "IVP_LV" #F "_X");                          \
    const V *p = (const V *)aligned;                                                                          \
    V v;                                                                                                      \
    IVP_LV##F##_IP(v, p, 128);                                                                                \
    same<V, M>(v, aligned, whole, "IVP_LV" #F "_IP");                                                         \
    IVP_LV##F##_XP(v, p, -64);                                                                                \
    same<V, M>(v, aligned + 128, whole, "IVP_LV" #F "_XP");                                                   \
    CHECK((const uint8_t *)p == aligned + 64, "IVP_LV" #F "_XP moves");                                       \
    const auto odd = ODD_LANES(V::size);                                                                   \
    V masked;                                                                                                 \
    const V full = IVP_LV##F##_I(aligned, 0), none = 0;                                                       \
    for (int form = 0; form < 4; ++form) {                                                                    \
      p = (const V *)aligned;                                                                                 \
      if (form == 0) masked = IVP_LV##F##T_I(p, 0, odd);                                                      \
      if (form == 1) masked = IVP_LV##F##T_X(p, 0, odd);                                                      \
      if (form == 2) IVP_LV##F##T_IP(masked, p, 64, odd);                                                     \
      if (form == 3) IVP_LV##F##T_XP(masked, p, 64, odd);                                                     \
      for (int i = 0; i < V::size; ++i)                                                                       \
        CHECK(std::memcmp(&masked.lane[i], odd[i] ? &full.lane[i] : &none.lane[i], sizeof v.lane[i]) == 0, \
              "IVP_LV" #F "T form %d lane %d", form, i);                                                      \
      CHECK((const uint8_t *)p == aligned + (form < 2 ? 0 : 64), "IVP_LV" #F "T form %d moves", form);        \
    }                                                                                                         \
  }

template <class V, class M, bool SATURATES>
static M stored(typename V::lane_type value) {
  if (!SATURATES) return static_cast<M>(value);
  const long long x = static_cast<long long>(value), high = (1ll << (8 * sizeof(M) - 1)) - 1;
  return static_cast<M>(x > high ? high : x < -high - 1 ? -high - 1 : x);
}
template <class V>
static V pattern_of(int seed) {
  V v;
  uint8_t raw[sizeof v.lane];
  for (unsigned i = 0; i < sizeof raw; ++i) raw[i] = static_cast<uint8_t>(i * 151 + seed * 7 + (i % 3 ? 0 : 0x80));
  std::memcpy(v.lane, raw, sizeof raw);
  return v;
}

#define STORES(F, V, M, S)                                                                                    \
  static void stores_##F() {                                                                                  \
    const int whole = sizeof(M) * V::size;                                                                    \
    for (int offset = 0; offset < 130; offset += 1 + offset % 7) {                                            \
      /* A stream of three vectors and a tail, in a block of exactly its bytes. */                            \
      for (int tail = 0; tail <= whole; tail += sizeof(M) * (1 + tail % 3)) {                                 \
        const int bytes = 3 * whole + tail;                                                                   \
        tight memory(offset, bytes);                                                                          \
        V *restrict p = (V *)memory.begin;                                                                    \
        valign align = IVP_ZALIGN();                                                                          \
        for (int n = 0; n < 3; ++n) IVP_SA##F##_IP(pattern_of<V>(n), align, p);                               \
        IVP_SAV##F##_XP(pattern_of<V>(3), align, p, tail);                                                    \
        IVP_SAV##F##_XP(pattern_of<V>(4), align, p, -1);                                                      \
        CHECK((uint8_t *)p == memory.begin + bytes, "IVP_SAV" #F "_XP moves");                                \
        if (tail % 3 == 0) IVP_SAPOS##F##_FP(align, p);                                                       \
        else if (tail % 3 == 1) IVP_SA##F##POS_FP(align, p);                                                  \
        else IVP_SAV##F##POS_FP(align, p);                                                                    \
        for (int i = 0; i < bytes / static_cast<int>(sizeof(M)); ++i) {                                       \
          const M want = stored<V, M, S>(pattern_of<V>(i / V::size).lane[i % V::size]);                       \
          CHECK(std::memcmp(memory.begin + i * sizeof(M), &want, sizeof want) == 0, "IVP_SA" #F ": element %d at %d", i, offset); \
        }                                                                                                     \
      }                                                                                                       \
    }                                                                                                         \
    alignas(64) uint8_t aligned[192] = {};                                                                    \
    const V v = pattern_of<V>(9);                                                                             \
    const auto odd = ODD_LANES(V::size);                                                                   \
    for (int form = 0; form < 12; ++form) {                                                                   \
      std::memset(aligned, 0x5a, sizeof aligned);                                                             \
      V *p = (V *)aligned;                                                                                    \
      switch (form) {                                                                                         \
        case 0: IVP_SV##F##_I(v, p, 64); break;                                                               \
        case 1: IVP_SV##F##_X(v, p, 64); break;                                                               \
        case 2: p = (V *)(aligned + 64); IVP_SV##F##_IP(v, p, 64); break;                                     \
        case 3: p = (V *)(aligned + 64); IVP_SV##F##_XP(v, p, -64); break;                                    \
        case 4: IVP_SV##F##T_I(v, p, 64, odd); break;                                                         \
        case 5: IVP_SV##F##T_X(v, p, 64, odd); break;                                                         \
        case 6: p = (V *)(aligned + 64); IVP_SV##F##T_IP(v, p, 64, odd); break;                               \
        case 7: p = (V *)(aligned + 64); IVP_SV##F##T_XP(v, p, -64, odd); break;                              \
        case 8: IVP_SV##F##F_I(v, p, 64, odd); break;                                                         \
        case 9: IVP_SV##F##F_X(v, p, 64, odd); break;                                                         \
        case 10: p = (V *)(aligned + 64); IVP_SV##F##F_IP(v, p, 64, odd); break;                              \
        default: p = (V *)(aligned + 64); IVP_SV##F##F_XP(v, p, -64, odd); break;                             \
      }                                                                                                       \
      const int moved = form % 4 < 2 ? 0 : form % 4 == 2 ? 128 : 0;                                           \
      CHECK((uint8_t *)p == aligned + moved, "IVP_SV" #F " form %d moves", form);                             \
      for (int i = 0; i < 192; ++i) {                                                                         \
        const int lane = (i - 64) / static_cast<int>(sizeof(M)), within = (i - 64) % static_cast<int>(sizeof(M)); \
        const bool written = i >= 64 && lane < V::size && (form < 4 || odd[lane] == (form < 8));              \
        uint8_t want = 0x5a;                                                                                  \
        if (written) {                                                                                        \
          const M element = stored<V, M, S>(v.lane[lane]);                                                    \
          std::memcpy(&want, reinterpret_cast<const uint8_t *>(&element) + within, 1);                        \
        }                                                                                                     \
        CHECK(aligned[i] == want, "IVP_SV" #F " form %d byte %d", form, i);                                   \
      }                                                                                                       \
    }                                                                                                         \
  }

#define ELEMENTS(F, V, M, S)                                                                                  \
  static void elements_##F() {                                                                                \
    tight memory(0, 3 * sizeof(M));                                                                           \
    M *const all = reinterpret_cast<M *>(memory.begin);                                                       \
    const M second = all[1];                                                                                  \
    const V filled(static_cast<V::lane_type>(second));                                                        \
    const auto lane = static_cast<V::lane_type>(second);                                                      \
    V v;                                                                                                      \
    for (int form = 0; form < 8; ++form) {                                                                    \
      const M *restrict p = form % 4 < 2 ? all : all + 1;                                                     \
      const int size = sizeof(M);                                                                             \
      V::lane_type one = 0;                                                                                   \
      switch (form) {                                                                                         \
        case 0: one = IVP_LS##F##_I(p, size); v = one; break;                                                 \
        case 1: one = IVP_LS##F##_X(p, size); v = one; break;                                                 \
        case 2: IVP_LS##F##_IP(one, p, size); v = one; break;                                                 \
        case 3: IVP_LS##F##_XP(v, p, -size); one = v.lane[0]; break;                                          \
        case 4: v = IVP_LSR##F##_I(p, size); one = v.lane[5]; break;                                          \
        case 5: v = IVP_LSR##F##_X(p, size); one = v.lane[5]; break;                                          \
        case 6: IVP_LSR##F##_IP(v, p, size); one = v.lane[5]; break;                                          \
        default: IVP_LSR##F##_XP(v, p, -size); one = v.lane[5]; break;                                        \
      }                                                                                                       \
      CHECK(std::memcmp(&one, &lane, sizeof one) == 0, "IVP_LS" #F " form %d", form);                         \
      CHECK(std::memcmp(v.lane, filled.lane, sizeof v.lane) == 0, "IVP_LS" #F " form %d lanes", form);        \
      CHECK(p == all + (form % 4 == 2 ? 2 : 0), "IVP_LS" #F " form %d moves", form);                          \
    }                                                                                                         \
    const V big = pattern_of<V>(3);                                                                           \
    const M want = stored<V, M, S>(big.lane[0]);                                                              \
    for (int form = 0; form < 4; ++form) {                                                                    \
      std::memset(all, 0x5a, 3 * sizeof(M));                                                                  \
      const M untouched = all[0];                                                                             \
      M *p = form < 2 ? all : all + 1;                                                                        \
      if (form == 0) IVP_SS##F##_I(big, p, sizeof(M));                                                        \
      if (form == 1) IVP_SS##F##_X(big, p, sizeof(M));                                                        \
      if (form == 2) IVP_SS##F##_IP(big, p, sizeof(M));                                                       \
      if (form == 3) IVP_SS##F##_XP(big, p, -static_cast<int>(sizeof(M)));                                    \
      CHECK(std::memcmp(&all[1], &want, sizeof want) == 0, "IVP_SS" #F " form %d", form);                     \
      CHECK(std::memcmp(&all[0], &untouched, sizeof want) == 0, "IVP_SS" #F " form %d before", form);         \
      CHECK(std::memcmp(&all[2], &untouched, sizeof want) == 0, "IVP_SS" #F " form %d behind", form);         \
      CHECK(p == all + (form == 2 ? 2 : 0), "IVP_SS" #F " form %d moves", form);                              \
    }                                                                                                         \
  }

#define GATHERS(F, V, M, O)                                                                                   \
  static void gathers_##F() {                                                                                 \
    const int bytes = 512;                                                                                    \
    tight memory(0, bytes);                                                                                   \
    const auto odd = ODD_LANES(V::size);                                                                   \
    O offsets, wild;                                                                                          \
    for (int i = 0; i < V::size; ++i) {                                                                       \
      offsets.lane[i] = static_cast<O::lane_type>(i == 0 ? bytes - sizeof(M) : (i * 97 + 5) % (bytes - sizeof(M))); \
      wild.lane[i] = odd[i] ? offsets.lane[i] : static_cast<O::lane_type>(60000);                             \
    }                                                                                                         \
    const V all = IVP_GATHERD##F(IVP_GATHERA##F(memory.begin, offsets)), again = IVP_GATHER##F(memory.begin, offsets); \
    const V some = IVP_GATHERD##F(IVP_GATHERA##F##T(memory.begin, wild, odd)), twice = IVP_GATHER##F##T(memory.begin, wild, odd); \
    for (int i = 0; i < V::size; ++i) {                                                                       \
      M element;                                                                                              \
      std::memcpy(&element, memory.begin + offsets.lane[i], sizeof element);                                  \
      const auto want = static_cast<V::lane_type>(element), none = odd[i] ? want : V::lane_type(0);           \
      CHECK(std::memcmp(&all.lane[i], &want, sizeof want) == 0, "IVP_GATHERA" #F " lane %d", i);              \
      CHECK(std::memcmp(&again.lane[i], &want, sizeof want) == 0, "IVP_GATHER" #F " lane %d", i);             \
      CHECK(std::memcmp(&some.lane[i], &none, sizeof want) == 0, "IVP_GATHERA" #F "T lane %d", i);            \
      CHECK(std::memcmp(&twice.lane[i], &none, sizeof want) == 0, "IVP_GATHER" #F "T lane %d", i);            \
    }                                                                                                         \
    const V v = pattern_of<V>(5);                                                                             \
    for (int i = 0; i < V::size; ++i) offsets.lane[i] = static_cast<O::lane_type>(i < 2 ? 0 : 8 * i);         \
    IVP_SCATTER##F(v, memory.begin, offsets);                                                                 \
    IVP_SCATTERW();                                                                                           \
    for (int i = 1; i < V::size; ++i) { /* lanes 0 and 1 share an address: the higher one stays */            \
      const M want = stored<V, M, false>(v.lane[i]);                                                          \
      CHECK(std::memcmp(memory.begin + offsets.lane[i], &want, sizeof want) == 0, "IVP_SCATTER" #F " lane %d", i); \
    }                                                                                                         \
    tight other(0, bytes);                                                                                    \
    for (int i = 0; i < V::size; ++i) wild.lane[i] = odd[i] ? static_cast<O::lane_type>(8 * i) : static_cast<O::lane_type>(60000); \
    IVP_SCATTER##F##T(v, other.begin, wild, odd);                                                             \
    for (int i = 0; i < V::size; ++i) {                                                                       \
      M want = stored<V, M, false>(v.lane[i]);                                                                \
      if (!odd[i])                                                                                            \
        for (unsigned k = 0; k < sizeof want; ++k) reinterpret_cast<uint8_t *>(&want)[k] = byte_at(8 * i + static_cast<int>(k)); \
      CHECK(std::memcmp(other.begin + 8 * i, &want, sizeof want) == 0, "IVP_SCATTER" #F "T lane %d", i);      \
    }                                                                                                         \
  }

#define FORMATS(DO_LOAD, DO_STORE)                               \
  FORMAT(DO_LOAD, DO_STORE, 2NX8, xb_vec2Nx8, int8_t, false)     \
  FORMAT(DO_LOAD, DO_STORE, 2NX8U, xb_vec2Nx8U, uint8_t, false)  \
  FORMAT(DO_LOAD, DO_STORE, NX16, xb_vecNx16, int16_t, false)    \
  FORMAT(DO_LOAD, DO_STORE, NX16U, xb_vecNx16U, uint16_t, false) \
  FORMAT(DO_LOAD, DO_STORE, N_2X32, xb_vecN_2x32v, int32_t, false)   \
  FORMAT(DO_LOAD, DO_STORE, N_2X32U, xb_vecN_2x32Uv, uint32_t, false) \
  FORMAT(DO_LOAD, DO_STORE, N_2XF32, xb_vecN_2xf32, float, false)    \
  FORMAT(DO_LOAD, DO_STORE, NXF16, xb_vecNxf16, xb_f16, false)       \
  FORMAT(DO_LOAD, DO_STORE, NX8S, xb_vecNx16, int8_t, true)      \
  FORMAT(DO_LOAD, DO_STORE, NX8U, xb_vecNx16, uint8_t, false)    \
  FORMAT(DO_LOAD, DO_STORE, N_2X16S, xb_vecN_2x32v, int16_t, true)   \
  FORMAT(DO_LOAD, DO_STORE, N_2X16U, xb_vecN_2x32v, uint16_t, false)
#define FORMAT(DO_LOAD, DO_STORE, F, V, M, S) DO_LOAD(F, V, M) DO_STORE(F, V, M, S)
FORMATS(LOADS, STORES)

ELEMENTS(2NX8, xb_vec2Nx8, int8_t, false)
ELEMENTS(2NX8U, xb_vec2Nx8U, uint8_t, false)
ELEMENTS(NX16, xb_vecNx16, int16_t, false)
ELEMENTS(NX16U, xb_vecNx16U, uint16_t, false)
ELEMENTS(N_2X32, xb_vecN_2x32v, int32_t, false)
ELEMENTS(N_2X32U, xb_vecN_2x32Uv, uint32_t, false)
ELEMENTS(N_2XF32, xb_vecN_2xf32, float, false)
ELEMENTS(NXF16, xb_vecNxf16, xb_f16, false)
ELEMENTS(NX8S, xb_vecNx16, int8_t, true)
ELEMENTS(NX8U, xb_vecNx16, uint8_t, false)

GATHERS(NX8S, xb_vecNx16, int8_t, xb_vecNx16U)
GATHERS(NX8U, xb_vecNx16U, uint8_t, xb_vecNx16U)
GATHERS(NX16, xb_vecNx16, int16_t, xb_vecNx16U)
GATHERS(NX16U, xb_vecNx16U, uint16_t, xb_vecNx16U)
GATHERS(N_2X32, xb_vecN_2x32v, int32_t, xb_vecN_2x32Uv)
GATHERS(N_2X32U, xb_vecN_2x32Uv, uint32_t, xb_vecN_2x32Uv)
GATHERS(N_2XF32, xb_vecN_2xf32, float, xb_vecN_2x32Uv)
GATHERS(NXF16, xb_vecNxf16, xb_f16, xb_vecNx16U)

static void scatter_halves() {
  const xb_vec2Nx8 v = pattern_of<xb_vec2Nx8>(1);
  xb_vecNx16U offsets;
  for (int i = 0; i < 32; ++i) offsets.lane[i] = static_cast<uint16_t>(31 - i);
  const vbool2N odd{0xaaaaaaaaaaaaaaaaull};
  int8_t low[32], high[32], some[32] = {}, others[32] = {};
  IVP_SCATTER2NX8_L(v, low, offsets);
  IVP_SCATTER2NX8_H(v, high, offsets);
  const xb_vec2Nx8 again = IVP_GATHERD2NX8_L(IVP_GATHERANX8S(low, offsets));
  xb_vec2Nx8U back = IVP_GATHERD2NX8U_L(IVP_GATHERANX8U(low, offsets));
  IVP_GATHERD2NX8U_H(back, IVP_GATHERANX8U(high, offsets));
  xb_vec2Nx8 signed_back = again;
  IVP_GATHERD2NX8_H(signed_back, IVP_GATHERANX8S(high, offsets));
  CHECK(std::memcmp(signed_back.lane, back.lane, 64) == 0, "IVP_GATHERD2NX8_H");
  IVP_SCATTER2NX8UT_L(v, some, offsets, odd);
  IVP_SCATTER2NX8T_H(v, others, offsets, odd);
  for (int i = 0; i < 32; ++i) {
    CHECK(low[31 - i] == v.lane[i] && high[31 - i] == v.lane[32 + i], "IVP_SCATTER2NX8 lane %d", i);
    CHECK(back.lane[i] == static_cast<uint8_t>(v.lane[i]) && back.lane[32 + i] == static_cast<uint8_t>(v.lane[32 + i]), "IVP_GATHERD2NX8 lane %d", i);
    CHECK(again.lane[i] == v.lane[i] && again.lane[32 + i] == 0, "IVP_GATHERD2NX8_L lane %d", i);
    CHECK(some[31 - i] == (i % 2 ? v.lane[i] : 0) && others[31 - i] == (i % 2 ? v.lane[32 + i] : 0), "IVP_SCATTER2NX8T lane %d", i);
  }
}

// What is not flushed is lost; a stream that continues elsewhere loses it too, and nothing lands next to the two streams.
static void lost_without_a_flush() {
  uint8_t memory[256];
  std::memset(memory, 0x5a, sizeof memory);
  uint8_t *const start = memory + (64 - reinterpret_cast<uintptr_t>(memory) % 64) % 64 + 10;
  xb_vec2Nx8 *p = (xb_vec2Nx8 *)start;
  valign align = IVP_ZALIGN();
  IVP_SA2NX8_IP(xb_vec2Nx8(1), align, p);
  for (int i = 0; i < 54; ++i) CHECK(start[i] == 1, "the full line, byte %d", i);
  for (int i = 54; i < 100; ++i) CHECK(start[i] == 0x5a, "behind the full line, byte %d", i);
  p = (xb_vec2Nx8 *)(start + 90);
  IVP_SAV2NX8_XP(xb_vec2Nx8(2), align, p, 5);
  IVP_SAPOS2NX8_FPXP(align, p, 3);
  CHECK((uint8_t *)p == start + 98, "IVP_SAPOS2NX8_FPXP moves");
  for (int i = 54; i < 100; ++i) CHECK(start[i] == (i >= 90 && i < 95 ? 2 : 0x5a), "after the second stream, byte %d", i);
  p = (xb_vec2Nx8 *)(start + 120);
  IVP_SAV2NX8_XP(xb_vec2Nx8(3), align, p, 2);
  IVP_SAPOS2NX8_FP(align, start + 100);
  CHECK(start[120] == 0x5a && start[98] == 0x5a, "a flush elsewhere");
}

static void any_address() {
  for (int offset = 0; offset < 64; ++offset) {
    tight memory(offset, 64);
    const xb_vec2Nx8U *p = (const xb_vec2Nx8U *)memory.begin;
    xb_vec2Nx8U v;
    xb_vec2Nx8 w;
    IVP_L2U2NX8U_XP(v, p, 7);
    same<xb_vec2Nx8U, uint8_t>(v, memory.begin, 64, "IVP_L2U2NX8U_XP");
    CHECK((const uint8_t *)p == memory.begin + 7, "IVP_L2U2NX8U_XP moves");
    p = (const xb_vec2Nx8U *)memory.begin;
    IVP_L2U2NX8_XP(w, p, 0);
    same<xb_vec2Nx8, int8_t>(w, memory.begin, 64, "IVP_L2U2NX8_XP");
  }
}

static void booleans() {
  uint64_t memory[2] = {0, 0};
  IVP_SB2N_I(vbool2N{0x123456789abcdef0ull}, memory, 8);
  CHECK(memory[0] == 0 && memory[1] == 0x123456789abcdef0ull && IVP_LB2N_I(memory, 8).bits == memory[1], "vbool2N");
  IVP_SBN_I(vboolN{0x89abcdefu}, memory, 4);
  CHECK(memory[0] == 0x89abcdef00000000ull && IVP_LBN_I(memory, 4).bits == 0x89abcdefu, "vboolN");
  IVP_SBN_2_I(vboolN_2{0x1234u}, memory, 2);
  CHECK(memory[0] == 0x89abcdef12340000ull && IVP_LBN_2_I(memory, 2).bits == 0x1234u, "vboolN_2");
}

// What the sanitizer must see, so that its silence on the rest means something; and an address that an aligned load refuses.
static int mistake(const char *which) {
  if (*which == 'f') { // far: the last element inside, three outside, of which one lane is not read
    static int32_t words[40000] = {};
    words[16383] = 1, words[30000] = 2;
    xb_vecN_2x32Uv offsets = 4 * 16383;
    xb_vecN_2x32v v = IVP_GATHERN_2X32(words, offsets);
    offsets.lane[3] = offsets.lane[5] = 4 * 30000;
    v = IVP_GATHERN_2X32T(words, offsets, vboolN_2{0xffd7});
    v = IVP_GATHERN_2X32(words, offsets);
    IVP_SCATTERN_2X32(v, words, offsets);
    return v.lane[0] == 1 && v.lane[5] == 2 ? 0 : 1;
  }
  tight memory(0, 127);
  const xb_vec2Nx8 *p = (const xb_vec2Nx8 *)(memory.begin + 64);
  valign align;
  xb_vec2Nx8 v = 0;
  if (*which == 'b') IVP_LA2NX8_IP(v, align, p);
  if (*which == 'm') v = IVP_LV2NX8_I(memory.begin, (65 - reinterpret_cast<uintptr_t>(memory.begin) % 64) % 64);
  return IVP_MOVAV8(v) & 1;
}

int main(int count, char **arguments) {
  if (count > 1) return mistake(arguments[1]);
#define CALL_LOADS(F, V, M) loads_##F();
#define CALL_STORES(F, V, M, S) stores_##F();
  FORMATS(CALL_LOADS, CALL_STORES)
  elements_2NX8(), elements_2NX8U(), elements_NX16(), elements_NX16U(), elements_N_2X32(), elements_N_2X32U(), elements_N_2XF32(), elements_NXF16();
  elements_NX8S(), elements_NX8U();
  gathers_NX8S(), gathers_NX8U(), gathers_NX16(), gathers_NX16U(), gathers_N_2X32(), gathers_N_2X32U(), gathers_N_2XF32(), gathers_NXF16();
  scatter_halves();
  lost_without_a_flush();
  any_address();
  booleans();
  std::printf("%ld\n", checked);
}
