// Patterns, operators, conversions and what else has no table: one function for each thing that a test asks.
#include <xtensa/tie/xt_ivpn.h>
#include <xtensa/tie/xt_misc.h>

// Bytes of two vectors, `high` behind `low`, through one pattern. what: 0 a select, 1 the high result of a dual select,
// 2 its low one. lanes: which of the seven types.
#define THROUGH(SUFFIX, V)                                                  \
  {                                                                         \
    V low, high, r1, r0;                                                    \
    memcpy(low.lane, both, 64);                                             \
    memcpy(high.lane, both + 64, 64);                                       \
    if (what == 0) r1 = IVP_SEL##SUFFIX##I(high, low, pattern);             \
    else IVP_DSEL##SUFFIX##I(r1, r0, high, low, pattern);                   \
    memcpy(out, what == 2 ? r0.lane : r1.lane, 64);                         \
    return;                                                                 \
  }
extern "C" void select_bytes(uint8_t *out, const uint8_t *both, int pattern, int what, int lanes) {
  switch (lanes) {
    case 0: THROUGH(2NX8, xb_vec2Nx8)
    case 1: THROUGH(2NX8U, xb_vec2Nx8U)
    case 2: THROUGH(NX16, xb_vecNx16)
    case 3: THROUGH(NX16U, xb_vecNx16U)
    case 4: THROUGH(N_2X32, xb_vecN_2x32v)
    case 5: THROUGH(N_2X32U, xb_vecN_2x32Uv)
    default: THROUGH(N_2XF32, xb_vecN_2xf32)
  }
}
#define SHUFFLED(SUFFIX, V)                      \
  {                                              \
    V v;                                         \
    memcpy(v.lane, in, 64);                      \
    v = IVP_SHFL##SUFFIX##I(v, pattern);         \
    memcpy(out, v.lane, 64);                     \
    return;                                      \
  }
extern "C" void shuffle_bytes(uint8_t *out, const uint8_t *in, int pattern, int lanes) {
  switch (lanes) {
    case 0: SHUFFLED(2NX8, xb_vec2Nx8)
    case 1: SHUFFLED(2NX8U, xb_vec2Nx8U)
    case 2: SHUFFLED(NX16, xb_vecNx16)
    case 3: SHUFFLED(NX16U, xb_vecNx16U)
    case 4: SHUFFLED(N_2X32, xb_vecN_2x32v)
    case 5: SHUFFLED(N_2X32U, xb_vecN_2x32Uv)
    default: SHUFFLED(N_2XF32, xb_vecN_2xf32)
  }
}

// Three vectors of bytes into one stream of pixels, and back.
extern "C" void interleave(uint8_t *pixels, const uint8_t *channels) {
  xb_vec2Nx8U r, g, b, rg1, rg0, out0, out1, out2;
  memcpy(r.lane, channels, 64), memcpy(g.lane, channels + 64, 64), memcpy(b.lane, channels + 128, 64);
  IVP_DSEL2NX8UI(rg1, rg0, g, r, IVP_DSELI_8B_INTERLEAVE_1);
  IVP_DSEL2NX8UI(out1, out0, b, rg0, IVP_DSELI_8B_INTERLEAVE_C3_STEP_0);
  IVP_DSEL2NX8UI_H(out1, out2, b, rg1, IVP_DSELI_8B_INTERLEAVE_C3_STEP_1);
  memcpy(pixels, out0.lane, 64), memcpy(pixels + 64, out1.lane, 64), memcpy(pixels + 128, out2.lane, 64);
}
extern "C" void deinterleave(int8_t *channels, const int8_t *pixels) {
  xb_vec2Nx8 in0, in1, in2, r, g, b, rg1, rg0;
  memcpy(in0.lane, pixels, 64), memcpy(in1.lane, pixels + 64, 64), memcpy(in2.lane, pixels + 128, 64);
  IVP_DSEL2NX8I(b, rg0, in1, in0, IVP_DSELI_8B_DEINTERLEAVE_C3_STEP_0);
  IVP_DSEL2NX8I_H(b, rg1, in2, in1, IVP_DSELI_8B_DEINTERLEAVE_C3_STEP_1);
  IVP_DSEL2NX8I(g, r, rg1, rg0, IVP_DSELI_8B_DEINTERLEAVE_1);
  memcpy(channels, r.lane, 64), memcpy(channels + 64, g.lane, 64), memcpy(channels + 128, b.lane, 64);
}

// Dual quads: two wide registers of 64 lanes, coefficients in eight bytes.
extern "C" void dual_quads(int32_t *w1, int32_t *w0, const uint8_t *abcd, int64_t coefficients, int signs) {
  xb_vec2Nx24 y1 = 0, y0 = 0;
  xb_vec2Nx8 v[4];
  for (int i = 0; i < 4; ++i) memcpy(v[i].lane, abcd + 64 * i, 64);
  if (signs == 0) IVP_DMULQA2N8XR8(y1, y0, v[0], v[1], v[2], v[3], coefficients);
  if (signs == 1) IVP_DMULUUQA2N8XR8(y1, y0, v[0], v[1], v[2], v[3], coefficients);
  if (signs == 2) IVP_DMULUSQA2N8XR8(y1, y0, v[0], v[1], v[2], v[3], coefficients);
  for (int i = 0; i < 64; ++i) w1[i] = y1.value(i), w0[i] = y0.value(i);
}

extern "C" float sum_f32(const float *x, uint16_t where) {
  const xb_vecN_2xf32 v = *(const xb_vecN_2xf32 *)x;
  return where == 0xffff ? IVP_RADDN_2XF32(v) : IVP_RADDN_2XF32T(v, vboolN_2{where});
}

#define CHECK(condition)                     \
  do {                                       \
    if (!(condition)) return #condition;     \
  } while (0)
#define ALL(v, value) \
  for (int i = 0; i < std::decay_t<decltype(v)>::size; ++i) CHECK((v).lane[i] == (value));

// Conversions and operators; the first thing that is not so, or nothing.
extern "C" const char *language() {
  xb_vecNx16 a = -3, b = 5;
  xb_vecNx16U u = a;
  xb_vecN_2x32v w = 7;
  xb_vecN_2xf32 f = 2.75f, g = w;
  ALL(u, 65533)
  ALL(g, 7.0f)
  w = f;
  ALL(w, 2)
  w = 3e9f;
  ALL(w, INT32_MAX)
  w = xb_vecN_2xf32(-1e30f);
  ALL(w, INT32_MIN)
  xb_vec2Nx8U byte = 300;
  ALL(byte, 44)
  xb_vecNx16 c = a + b, d = 2 - b, e = 5;
  ALL(c, 2)
  ALL(d, -3)
  ALL(e, 5)
  c = (a << 8) >> 8;
  ALL(c, -3)
  u = xb_vecNx16U(0xf0f0) >> 4;
  ALL(u, 0x0f0f)
  c = (~a & 6) | (b ^ 1);
  ALL(c, 6)
  c += a, c -= 1;
  ALL(c, 2)
  c = -c;
  ALL(c, -2)
  f = f * 2 - 0.5f;
  ALL(f, 5.0f)
  f = -xb_vecN_2xf32(0.0f);
  CHECK(__builtin_signbit(f.lane[3]));
  const xb_vecNx48 wide = a * b;
  for (int i = 0; i < 32; ++i) CHECK(wide.value(i) == -15);
  const xb_vecN_2x64w large = xb_vecN_2x32v(INT32_MIN) * INT32_MIN;
  for (int i = 0; i < 16; ++i) CHECK(large.value(i) == 1ll << 62);
  const xb_vecN_2x64w largest = xb_vecN_2x32Uv(UINT32_MAX) * UINT32_MAX;
  for (int i = 0; i < 16; ++i) CHECK(static_cast<uint64_t>(largest.value(i)) == 0xfffffffe00000001u);
  const xb_vec2Nx24 small = xb_vec2Nx8U(255) * 255;
  for (int i = 0; i < 64; ++i) CHECK(small.value(i) == 65025);
  vboolN some = (IVP_SEQNX16() < 5) | (30 <= IVP_SEQNX16());
  CHECK(some.bits == 0xc000001fu && (~some).bits == 0x3fffffe0u && (!some ^ some).bits == ~0u && some[30] && !some[29]);
  some &= IVP_SEQNX16() != 2, some |= IVP_SEQNX16() == 9, some ^= IVP_SEQNX16() > 30;
  CHECK(some.bits == 0x4000021bu);
  some = xb_vecNx16U(1) >= IVP_SEQNX16U();
  CHECK(some.bits == 3);
  const xb_vecNx8 in_memory = -7;
  a = in_memory;
  ALL(a, -7)
  union {
    xb_vecNx16 vector;
    int16_t lane[32];
  } both;
  both.vector = IVP_SEQNX16();
  CHECK(both.lane[31] == 31);
  xb_vecNx16 copied;
  memcpy(&copied, &both, sizeof copied);
  ALL(copied - IVP_SEQNX16(), 0)
  unsigned long long bits = 0xffffffff55555555ull;
  CHECK((*((vbool2N *)&bits)).bits == bits && sizeof(vboolN) == 4 && sizeof(vboolN_2) == 2);
  ALL(xb_vecNx16_rtor_xb_vecNx16U(a), 65529)
  ALL(xb_vecN_2x32Uv_rtor_xb_vecN_2x32v(UINT32_MAX), -1)
  CHECK(xb_int16U_rtor_uint16(65535) == 65535);
  return nullptr;
}

// Intrinsics of scalars and lanes that have no table.
extern "C" const char *lanes_and_scalars() {
  ALL(IVP_MOVNX16_FROM8(-1), -1)
  ALL(IVP_MOVNX16_FROM8U(255), 255)
  ALL(IVP_MOVN_2XF32_FROMF32(1.5f), 1.5f)
  CHECK(IVP_MOV16_FROMNX16(IVP_SEQNX16() - 9) == -9);
  CHECK(IVP_MOV32_FROMN_2X32(IVP_SEQN_2X32() - 9) == -9);
  CHECK(IVP_MOV32U_FROMN_2X32U(IVP_SEQN_2X32U() - 9) == 0xfffffff7u);
  const xb_vecN_2x32v v = IVP_SEQN_2X32() - 8;
  CHECK(IVP_EXTRPR64N_2X32(v, 3) == static_cast<int64_t>(0xfffffffffffffffeull));
  CHECK(IVP_EXTRPR64N_2X32(v, 5) == 0x0000000300000002ll);
  CHECK(IVP_DEXTRPRN_2X32(v, v + 16, 9, 2) == 0x000000010000000all);
  CHECK(IVP_DEXTRPRN_2X32(v, v, 0, 15) == static_cast<int64_t>(0xfffffff800000007ull));
  xb_vecNx16 x = 0;
  IVP_INSRNX16(x, 0x12345, 31);
  CHECK(x.lane[31] == 0x2345 && IVP_RADDNX16(x) == 0x2345);
  xb_vecN_2x32Uv y = 0;
  IVP_INSRN_2X32(y, -1, 0);
  CHECK(y.lane[0] == UINT32_MAX && IVP_RADDN_2X32U(y) == UINT32_MAX);
  const xb_vecN_2xf32 f = IVP_MOVN_2XF32_FROMN_2X32(0x3fc00000);
  ALL(f, 1.5f)
  ALL(IVP_MOVNX16_FROMN_2XF32(f) & 0xff00, i % 2 ? 0x3f00 : 0)
  ALL(IVP_MOV2NX8U_FROMN_2XF32(f), i % 4 == 3 ? 0x3f : i % 4 == 2 ? 0xc0 : 0)
  ALL(IVP_MOVN_2XF32_FROM2NX8(IVP_MOV2NX8_FROMN_2XF32(f)), 1.5f)
  ALL(IVP_MOVN_2XF32_FROMNX16U(IVP_MOVNX16U_FROMN_2XF32(f)), 1.5f)
  return nullptr;
}

// Scalar instructions of <xtensa/tie/xt_misc.h>.
extern "C" const char *scalar_instructions() {
  int result = 5;
  XT_MOVLTZ(result, 1, 0);
  XT_MOVEQZ(result, 2, 1);
  XT_MOVGEZ(result, 3, -1);
  XT_MOVNEZ(result, 4, 0);
  CHECK(result == 5);
  XT_MOVLTZ(result, 1, -1);
  CHECK(result == 1);
  XT_MOVEQZ(result, 2, 0);
  CHECK(result == 2);
  XT_MOVGEZ(result, 3, 0);
  CHECK(result == 3);
  XT_MOVNEZ(result, 4, -9);
  CHECK(result == 4);
  CHECK(XT_MIN(-1, 2) == -1 && XT_MAX(-1, 2) == 2 && XT_MINU(-1, 2) == 2 && XT_MAXU(-1, 2) == UINT32_MAX);
  CHECK(XT_NSAU(0) == 32 && XT_NSAU(1) == 31 && XT_NSAU(-1) == 0 && XT_NSA(0) == 31 && XT_NSA(-1) == 31 && XT_NSA(1) == 30);
  CHECK(XT_SEXT(0x80, 7) == -128 && XT_SEXT(0x17f, 7) == 127 && XT_SEXT(0x8000, 15) == -32768);
  CHECK(XT_CLAMPS(300, 7) == 127 && XT_CLAMPS(-300, 7) == -128 && XT_CLAMPS(5, 7) == 5);
  CHECK(XT_SALT(-1, 0) == 1 && XT_SALT(0, 0) == 0 && XT_SALTU(-1, 0) == 0 && XT_SALTU(0, -1) == 1 && XT_ABS(-3) == 3);
  XT_MEMW();
  return nullptr;
}
