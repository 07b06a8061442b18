/* The core's configuration: a Vision P6 with 32 lanes of 16 bits and the single-precision vector unit.
 *
 * Source: DSP development guide (J5 OE), 10.2.1, for Vision P6, 512-bit SIMD and 64-byte loads. The names are those
 * used by public sources (Halide's Xtensa back end, foss-xtensa/tflmlib_vision).
 */
#ifndef HBRT_XTENSA_CORE_ISA_H
#define HBRT_XTENSA_CORE_ISA_H

#define XCHAL_HAVE_VISION 1
#define XCHAL_VISION_TYPE 6
#define XCHAL_VISION_SIMD16 32
#define XCHAL_IVPN_SIMD_WIDTH 32
#define XCHAL_HAVE_VISION_SP_VFPU 1
#ifndef XCHAL_HAVE_VISION_HP_VFPU /* half precision is emulated; whether the chip has it is not public */
#define XCHAL_HAVE_VISION_HP_VFPU 0
#endif
#define XCHAL_HAVE_SUPERGATHER 1
#define XCHAL_HAVE_PDX 0
#define XCHAL_DATA_WIDTH 64
#define XCHAL_HAVE_LE 1
#define XCHAL_HAVE_BE 0

#endif /* HBRT_XTENSA_CORE_ISA_H */
