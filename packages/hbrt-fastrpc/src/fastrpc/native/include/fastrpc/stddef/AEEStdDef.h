/* Types used by FastRPC programs and images.
 *
 * Source: qualcomm/fastrpc, AEEStdDef.h and generated headers, for names, https://github.com/qualcomm/fastrpc
 */
#ifndef HBRT_FASTRPC_AEESTDDEF_H
#define HBRT_FASTRPC_AEESTDDEF_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int AEEResult;
typedef uint32_t AEEUID, AEEIID, AEECLSID, AEEPRIVID;
typedef uint16_t AECHAR, _wchar_t;

typedef int8_t int8, int1;
typedef int16_t int16, int2;
typedef int32_t int32, int4;
typedef uint8_t uint8, uint1, byte;
typedef uint16_t uint16, uint2;
typedef uint32_t uint32, uint4;
#ifdef __cplusplus /* in C++, a pointer to another type of the same size is an error: programs have long long */
typedef long long int64;
typedef unsigned long long uint64;
#else
typedef int64_t int64;
typedef uint64_t uint64;
#endif
typedef bool boolean;

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

#define MIN_INT8 INT8_MIN
#define MAX_INT8 INT8_MAX
#define MAX_UINT8 UINT8_MAX
#define MIN_INT16 INT16_MIN
#define MAX_INT16 INT16_MAX
#define MAX_UINT16 UINT16_MAX
#define MIN_INT32 INT32_MIN
#define MAX_INT32 INT32_MAX
#define MAX_UINT32 UINT32_MAX
#define MIN_INT64 INT64_MIN
#define MAX_INT64 INT64_MAX
#define MAX_UINT64 UINT64_MAX
#define MIN_AECHAR 0
#define MAX_AECHAR 0xffff

#ifndef CDECL
#define CDECL
#endif
#ifndef __STR__
#define __STR__(x) #x
#endif
#ifndef __TOSTR__
#define __TOSTR__(x) __STR__(x)
#endif
#ifndef __FILE_LINE__
#define __FILE_LINE__ __FILE__ ":" __TOSTR__(__LINE__)
#endif

/* Elements of string sequences. */
#if !defined(__QAIC_STRING1_OBJECT_DEFINED__) && !defined(__STRING1_OBJECT__)
#define __QAIC_STRING1_OBJECT_DEFINED__
#define __STRING1_OBJECT__
typedef struct _cstring1_s {
  char *data;
  int dataLen; /* including the NUL */
} _cstring1_t;
typedef struct _wstring1_s {
  _wchar_t *data;
  int dataLen;
} _wstring1_t;
#endif

/* Emulator: the number of characters of a wide string, including the NUL. */
static inline uint32_t hbrt_wide_length(const _wchar_t *text) {
  uint32_t length = 0;
  while (text[length++]) {
  }
  return length;
}

#endif
