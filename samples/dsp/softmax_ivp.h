// The four steps of a softmax, with intrinsics: rows of any length, at any address.
//
// Names and arguments are the guide's (DSP development guide (J5 OE), 10.2.3.3.2).
#ifndef SOFTMAX_IVP_H
#define SOFTMAX_IVP_H

#include <hbrt/dsp_math.h>
#include <xtensa/tie/xt_ivpn.h>

static const int VECTOR_BYTES = IVP_N_2 * sizeof(float32_t);

// The largest number.
static float32_t vecmaxf(const float32_t *x, int count) {
  const xb_vecN_2xf32 *restrict in = (const xb_vecN_2xf32 *)x;
  valign align = IVP_LAN_2XF32_PP(in);
  xb_vecN_2xf32 most = minus_inff_.f, v, other;
  for (int n = 0; n < count / IVP_N_2; n++) {
    IVP_LAN_2XF32_IP(v, align, in);
    most = IVP_MAXN_2XF32(most, v);
  }
  const int tail = count % IVP_N_2;
  IVP_LAVN_2XF32_XP(v, align, in, tail * sizeof(float32_t));
  IVP_MAXN_2XF32T(most, v, most, IVP_LTRSN_2(tail));
  other = IVP_SELN_2XF32I(most, most, IVP_SELI_32B_ROTATE_RIGHT_8);
  most = IVP_MAXN_2XF32(most, other);
  other = IVP_SELN_2XF32I(most, most, IVP_SELI_32B_ROTATE_RIGHT_4);
  most = IVP_MAXN_2XF32(most, other);
  other = IVP_SELN_2XF32I(most, most, IVP_SELI_32B_ROTATE_RIGHT_2);
  most = IVP_MAXN_2XF32(most, other);
  other = IVP_SELN_2XF32I(most, most, IVP_SELI_32B_ROTATE_RIGHT_1);
  return IVP_MOVF32_FROMN_2XF32(IVP_MAXN_2XF32(most, other));
}

// 2^(x / ln 2): the integer part of the power goes into the exponent in two halves, the fraction into a polynomial.
static xb_vecN_2xf32 power_of_e(xb_vecN_2xf32 x) {
  const vboolN_2 unordered = IVP_UEQN_2XF32(x, plus_inff.f), too_large = IVP_ULEN_2XF32(expfminmax[1].f, x);
  const xb_vecN_2xf32 given = x;
  x = IVP_MAXN_2XF32(IVP_MOVN_2XF32T(127.0f, x, IVP_ORBN_2(too_large, IVP_UNN_2XF32(x, x))), -128.0f);
  const xb_vecNx16 factor = IVP_MOVNX16_FROMN_2X32(IVP_LSN_2X32_I(&invln2_Q30, 0));
  const xb_vecN_2x32v fixed = IVP_TRUNCN_2XF32(x, 24);
  xb_vecN_2x64w power = IVP_MULN_2X16X32_0(factor, fixed);
  IVP_MULAHN_2X16X32_1(power, factor, fixed);
  xb_vecN_2x32v fraction = IVP_SRLIN_2X32U(IVP_PACKVRNRN_2X64W(power, 22), 1);
  xb_vecN_2x32v whole = IVP_ADDN_2X32(IVP_SRLIN_2X32(IVP_PACKHN_2X64W(power), 22), 254);
  x = IVP_MOVN_2XF32T(given, IVP_FLOATN_2X32(fraction, 31), unordered);
  const xtfloat *restrict table = expftblf;
  xb_vecN_2xf32 sum, next;
  IVP_LSRN_2XF32_IP(sum, table, sizeof(float32_t));
  for (int degree = 5; degree >= 0; degree--) {
    IVP_LSRN_2XF32_XP(next, table, (int)sizeof(float32_t));
    IVP_MULAN_2XF32(next, x, sum);
    sum = next;
  }
  const xb_vecN_2x32v half = IVP_SRLIN_2X32(whole, 1);
  whole = IVP_SUBN_2X32(whole, half);
  sum = IVP_MULN_2XF32(sum, IVP_MOVN_2XF32_FROMN_2X32(IVP_SLLIN_2X32(half, 23)));
  return IVP_MULN_2XF32(sum, IVP_MOVN_2XF32_FROMN_2X32(IVP_SLLIN_2X32(whole, 23)));
}

// e^(x - less).
static void vecexpf_max(float32_t *out, const float32_t *x, int count, float32_t less) {
  const xb_vecN_2xf32 *restrict in = (const xb_vecN_2xf32 *)x;
  xb_vecN_2xf32 *restrict to = (xb_vecN_2xf32 *)out;
  valign align_in = IVP_LAN_2XF32_PP(in), align_out = IVP_ZALIGN();
  xb_vecN_2xf32 v;
  for (int left = count * (int)sizeof(float32_t); left > 0; left -= VECTOR_BYTES) {
    IVP_LAVN_2XF32_XP(v, align_in, in, left);
    IVP_SAVN_2XF32_XP(power_of_e(IVP_SUBN_2XF32(v, less)), align_out, to, left);
  }
  IVP_SAPOSN_2XF32_FP(align_out, to);
}

// The sum.
static float32_t vecsum(const float32_t *x, int count) {
  const xb_vecN_2xf32 *restrict in = (const xb_vecN_2xf32 *)x;
  valign align = IVP_LAN_2XF32_PP(in);
  xb_vecN_2xf32 sum = 0.f, v;
  for (int n = 0; n < count >> 4; n++) {
    IVP_LAN_2XF32_IP(v, align, in);
    sum = IVP_ADDN_2XF32(sum, v);
  }
  const int tail = count & (IVP_N_2 - 1);
  IVP_LAVN_2XF32_XP(v, align, in, tail * sizeof(float32_t));
  IVP_ADDN_2XF32T(sum, v, sum, IVP_LTRSN_2(tail));
  return IVP_RADDN_2XF32(sum);
}

// x * factor.
static void vecmul(float32_t *out, const float32_t *x, float32_t factor, int count) {
  const xb_vecN_2xf32 *restrict in = (const xb_vecN_2xf32 *)x;
  xb_vecN_2xf32 *restrict to = (xb_vecN_2xf32 *)out;
  valign align_in = IVP_LAN_2XF32_PP(in), align_out = IVP_ZALIGN();
  xb_vecN_2xf32 v, factors;
  factors = factor;
  for (int n = 0; n < count / IVP_N_2; n++) {
    IVP_LAN_2XF32_IP(v, align_in, in);
    v = IVP_MULN_2XF32(v, factors);
    IVP_SAN_2XF32_IP(v, align_out, to);
  }
  const int tail = count % IVP_N_2 * (int)sizeof(float32_t);
  IVP_LAVN_2XF32_XP(v, align_in, in, tail);
  v = IVP_MULN_2XF32(v, factors);
  IVP_SAVN_2XF32_XP(v, align_out, to, tail);
  IVP_SAPOSN_2XF32_FP(align_out, to);
}

#endif  // SOFTMAX_IVP_H
