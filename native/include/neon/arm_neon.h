/**
 * NEON intrinsics: the compiler's own on Arm; elsewhere those of SIMDe, whose results are bit-exact where SIMDe
 * documents it.
 *
 * Source: SIMD Everywhere, https://github.com/simd-everywhere/simde
 */
#ifndef HBRT_ARM_NEON_H
#define HBRT_ARM_NEON_H

#pragma GCC system_header

#if defined(__arm__) || defined(__aarch64__)
#include_next <arm_neon.h>
#elif __has_include(<simde/arm/neon.h>)
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/arm/neon.h>
#else
#error "arm_neon.h needs SIMDe on this CPU: install it (Debian, Ubuntu: apt install libsimde-dev), or add -I of a copy."
#endif

#endif
