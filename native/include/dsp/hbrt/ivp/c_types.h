/* The register types for C: their size and alignment, so that C can declare, copy and pass them by pointer. */
#ifndef HBRT_IVP_C_TYPES_H
#define HBRT_IVP_C_TYPES_H

#include <stdint.h>

#include <hbrt/cycles.h>
#include <hbrt/ivp/patterns.h>

#define HBRT_VECTOR(name, lane_type, lanes)                             \
  typedef struct {                                                      \
    lane_type lane[lanes];                                              \
  } __attribute__((aligned(sizeof(lane_type) * (lanes) < 64 ? sizeof(lane_type) * (lanes) : 64))) name
HBRT_VECTOR(xb_vec2Nx8, int8_t, 64);
HBRT_VECTOR(xb_vec2Nx8U, uint8_t, 64);
HBRT_VECTOR(xb_vecNx16, int16_t, 32);
HBRT_VECTOR(xb_vecNx16U, uint16_t, 32);
HBRT_VECTOR(xb_vecN_2x32v, int32_t, 16);
HBRT_VECTOR(xb_vecN_2x32Uv, uint32_t, 16);
HBRT_VECTOR(xb_vecN_2xf32, float, 16);
typedef struct {
  uint16_t bits;
} xb_f16;
HBRT_VECTOR(xb_vecNxf16, xb_f16, 32);
HBRT_VECTOR(xb_vecN_2xf16, xb_f16, 16);
HBRT_VECTOR(xb_vecNx8, int8_t, 32);
HBRT_VECTOR(xb_vecNx8U, uint8_t, 32);
HBRT_VECTOR(xb_vecN_2x16, int16_t, 16);
HBRT_VECTOR(xb_vecN_2x16U, uint16_t, 16);
HBRT_VECTOR(xb_vec2Nx24, int32_t, 64);
HBRT_VECTOR(xb_vecNx48, int64_t, 32);
HBRT_VECTOR(xb_vecN_2x64w, int64_t, 16);
HBRT_VECTOR(xb_gsr, uint32_t, 64);
#undef HBRT_VECTOR

typedef struct {
  uint64_t bits;
} vbool2N;
typedef struct {
  uint32_t bits;
} vboolN;
typedef struct {
  uint16_t bits;
} vboolN_2;

typedef struct {
  uint8_t held[64];
  uint32_t count;
  char *next;
} valign;

typedef int8_t xb_int8;
typedef uint8_t xb_int8U;
typedef int16_t xb_int16;
typedef uint16_t xb_int16U;
typedef int32_t xb_int32v;
typedef uint32_t xb_int32Uv;
typedef int32_t xb_int32pr;
typedef int64_t xb_int64pr;
typedef int32_t xb_int24;
typedef int64_t xb_int48;
typedef int64_t xb_int64w;
typedef float xb_f32;
typedef float xtfloat;
typedef float float32_t;

#endif /* HBRT_IVP_C_TYPES_H */
