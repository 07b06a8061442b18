/* <xtensa/tie/xt_ivpn.h>: the vector intrinsics of a Vision P6, emulated on the host.
 *
 * C++17: types, operators and intrinsics. C: the constants, and types that can be declared and copied; a file that
 * calls intrinsics must be compiled as C++ (g++ -x c++). docs/ivp.md lists each intrinsic with its meaning and its
 * source.
 *
 * Source: DSP development guide (J5 OE), 10.2.3.3.2, for the intrinsics of its softmax; Halide's Xtensa back end
 * (https://github.com/halide/Halide/tree/xtensa-codegen/src) and https://github.com/foss-xtensa/tflmlib_vision for the
 * names, argument order and meaning of the others.
 */
#ifndef HBRT_XTENSA_XT_IVPN_H
#define HBRT_XTENSA_XT_IVPN_H

#include <xtensa/config/core-isa.h>

/* Lanes of a vector: N of 16 bits, twice as many of 8, half as many of 32. */
#define IVP_SIMD_WIDTH XCHAL_IVPN_SIMD_WIDTH
#define IVP_N XCHAL_IVPN_SIMD_WIDTH
#define IVP_N_2 (XCHAL_IVPN_SIMD_WIDTH / 2)
#define IVP_2N (XCHAL_IVPN_SIMD_WIDTH * 2)
#define LOG2_IVP_SIMD_WIDTH 5

#ifdef __cplusplus

#if __cplusplus < 201703L
#error "<xtensa/tie/xt_ivpn.h> needs C++17: compile with -std=c++17 or -std=gnu++17."
#endif
#ifndef restrict
#define restrict __restrict
#endif

#include <hbrt/ivp/lanes.h>
#include <hbrt/ivp/memory.h>
#include <hbrt/ivp/arithmetic.h>
#include <hbrt/ivp/float.h>
#include <hbrt/ivp/half.h>
#include <hbrt/ivp/shift.h>
#include <hbrt/ivp/multiply.h>
#include <hbrt/ivp/pack.h>
#include <hbrt/ivp/patterns.h>
#include <hbrt/ivp/select.h>
#include <hbrt/ivp/move.h>
#include <hbrt/ivp/reduce.h>
#include <hbrt/ivp/gather.h>
#include <hbrt/ivp/names.h>

#else
#include <hbrt/ivp/c_types.h>
#endif

#endif /* HBRT_XTENSA_XT_IVPN_H */
