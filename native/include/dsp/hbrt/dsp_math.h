/* The tables that the guide's vecmaxf and vecexpf_max take from the vendor's dsp_math library.
 *
 * Source: DSP development guide (J5 OE), 10.2.3.3.2, for the names, and for vecexpf_max's evaluation scheme of the
 * polynomial. The coefficients are our own fit: 2^x on [0, 1], degree 6, exact at both ends, relative error 1.4e-8 in
 * single precision.
 */
#ifndef HBRT_DSP_MATH_H
#define HBRT_DSP_MATH_H

#include <stdint.h>

#define HBRT_TABLE static const __attribute__((unused, aligned(64)))

union ufloat32uint32 {
  uint32_t u;
  float f;
};

HBRT_TABLE union ufloat32uint32 plus_inff = {0x7f800000};
HBRT_TABLE union ufloat32uint32 minus_inff_ = {0xff800000};

/* Between these arguments, expf is neither 0 nor infinite: -103.2789 and 88.72284. */
HBRT_TABLE union ufloat32uint32 expfminmax[2] = {{0xc2ce8ed0}, {0x42b17218}};

/* 1 / ln(2) with 30 fractional bits. */
HBRT_TABLE int32_t invln2_Q30 = 1549082005;

/* 2^x on [0, 1]: the coefficients of x^6 to x^0. */
HBRT_TABLE float expftblf[7] = {2.1715024e-4f, 1.2440877e-3f, 9.678064e-3f, 5.5484153e-2f, 2.4022952e-1f, 6.93147e-1f, 1.0f};

#undef HBRT_TABLE
#endif /* HBRT_DSP_MATH_H */
