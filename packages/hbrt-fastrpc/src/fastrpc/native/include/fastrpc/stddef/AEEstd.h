/* String, memory and number functions, under the names used by Hexagon programs; std_CopyLE, std_CopyBE, std_cleanpath
 * and the functions that search and merge sorted elements are missing.
 *
 * Source: the header of this name in Hexagon SDKs, for names and types, https://github.com/peyer/qcom_hexagon_sdk
 */
#ifndef HBRT_FASTRPC_AEESTD_H
#define HBRT_FASTRPC_AEESTD_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "AEEStdDef.h"
#include "AEEVaList.h"

#define STD_MIN(a, b) ((a) < (b) ? (a) : (b))
#define STD_MAX(a, b) ((a) > (b) ? (a) : (b))
#define STD_CONSTRAIN(val, min, max) (((val) < (min)) ? (min) : ((val) > (max)) ? (max) : (val))
#define STD_BETWEEN(val, minGE, maxLT) \
  ((unsigned long)((unsigned long)(val) - (unsigned long)(minGE)) < (unsigned long)((unsigned long)(maxLT) - (unsigned long)(minGE)))
#define STD_ARRAY_SIZE(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define STD_ARRAY_MEMBER(p, a) (((p) >= (a)) && ((p) < ((a) + STD_ARRAY_SIZE(a))))
#define STD_SIZEOF(x) ((int)sizeof(x))
#define STD_OFFSETOF(type, member) offsetof(type, member)
#define STD_RECOVER_REC(type, member, p) ((type *)(void *)((char *)(void *)(p) - offsetof(type, member)))
#define STD_ZEROAT(p) std_memset((p), 0, (int)sizeof(*(p)))
#define HBRT_STD_BITS(bits) (8 * sizeof((bits)[0]))
#define STD_BIT_SET(bits, ix) ((bits)[(ix) / HBRT_STD_BITS(bits)] |= 1 << ((ix) & (HBRT_STD_BITS(bits) - 1)))
#define STD_BIT_CLEAR(bits, ix) ((bits)[(ix) / HBRT_STD_BITS(bits)] &= ~(1 << ((ix) & (HBRT_STD_BITS(bits) - 1))))
#define STD_BIT_TEST(bits, ix) ((bits)[(ix) / HBRT_STD_BITS(bits)] & (1 << ((ix) & (HBRT_STD_BITS(bits) - 1))))

/* Errors of std_scanul and std_scanull. */
#define STD_NODIGITS 1
#define STD_NEGATIVE 2
#define STD_OVERFLOW 3
#define STD_BADPARAM 4
#define STD_UNDERFLOW 5

#ifdef __cplusplus
extern "C" {
#endif

/* A size for the C library; 0 for a negative one. */
static inline size_t hbrt_std_size(int size) { return size > 0 ? (size_t)size : 0; }

static inline int std_strlen(const char *s) { return (int)strlen(s); }
static inline int std_strcmp(const char *s1, const char *s2) { return strcmp(s1, s2); }
static inline int std_strncmp(const char *s1, const char *s2, int n) { return strncmp(s1, s2, hbrt_std_size(n)); }
static inline int std_stricmp(const char *s1, const char *s2) { return strcasecmp(s1, s2); }
static inline int std_strnicmp(const char *s1, const char *s2, int n) { return strncasecmp(s1, s2, hbrt_std_size(n)); }
static inline char *std_strstr(const char *text, const char *search) { return (char *)strstr(text, search); }
static inline char *std_strchr(const char *s, int c) { return (char *)strchr(s, c); }
static inline char *std_strrchr(const char *s, int c) { return (char *)strrchr(s, c); }
static inline char *std_strchrs(const char *s, const char *chars) { return (char *)strpbrk(s, chars); }
static inline int std_strspn(const char *s, const char *chars) { return (int)strspn(s, chars); }
static inline int std_strcspn(const char *s, const char *chars) { return (int)strcspn(s, chars); }
/* Like std_strchr and std_strchrs, but return the end of the string if nothing is found. */
static inline char *std_strchrend(const char *s, char c) {
  while (*s && *s != c) s++;
  return (char *)s;
}
static inline char *std_strchrsend(const char *s, const char *chars) { return (char *)s + strcspn(s, chars); }
/* Where the suffix begins, or the text after the prefix; NULL if the string does not have it. */
static inline char *std_strends(const char *s, const char *suffix) {
  const size_t length = strlen(s), of_suffix = strlen(suffix);
  return length >= of_suffix && !strcmp(s + length - of_suffix, suffix) ? (char *)s + length - of_suffix : NULL;
}
static inline char *std_striends(const char *s, const char *suffix) {
  const size_t length = strlen(s), of_suffix = strlen(suffix);
  return length >= of_suffix && !strcasecmp(s + length - of_suffix, suffix) ? (char *)s + length - of_suffix : NULL;
}
static inline char *std_strbegins(const char *s, const char *prefix) {
  return strncmp(s, prefix, strlen(prefix)) ? NULL : (char *)s + strlen(prefix);
}
static inline char *std_stribegins(const char *s, const char *prefix) {
  return strncasecmp(s, prefix, strlen(prefix)) ? NULL : (char *)s + strlen(prefix);
}

/* Copy or append as much as fits, with a NUL; returns the length of the untruncated result. */
static inline int std_strlcpy(char *dst, const char *src, int size) {
  const size_t length = strlen(src), room = hbrt_std_size(size);
  if (room) {
    const size_t part = length < room ? length : room - 1;
    memmove(dst, src, part);
    dst[part] = 0;
  }
  return (int)length;
}
static inline int std_strlcat(char *dst, const char *src, int size) {
  size_t length = 0;
  while (length < hbrt_std_size(size) && dst[length]) length++;
  return (int)length + std_strlcpy(dst + length, src, size - (int)length);
}

static inline char std_tolower(char c) { return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c); }
static inline char std_toupper(char c) { return (char)(c >= 'a' && c <= 'z' ? c - 32 : c); }

static inline void *std_memset(void *p, int c, int size) { return memset(p, c, hbrt_std_size(size)); }
static inline void *std_memmove(void *to, const void *from, int size) { return memmove(to, from, hbrt_std_size(size)); }
/* Copy as much as fits; returns the number of bytes copied. */
static inline int std_memsmove(void *dst, int dst_size, const void *src, int src_size) {
  const size_t size = hbrt_std_size(dst_size < src_size ? dst_size : src_size);
  memmove(dst, src, size);
  return (int)size;
}
static inline int std_memscpy(void *dst, int dst_size, const void *src, int src_size) { return std_memsmove(dst, dst_size, src, src_size); }
static inline int std_memcmp(const void *a, const void *b, int size) { return memcmp(a, b, hbrt_std_size(size)); }
static inline void *std_memchr(const void *s, int c, int n) { return (void *)memchr(s, c, hbrt_std_size(n)); }
static inline void *std_memchrend(const void *s, int c, int n) {
  void *found = std_memchr(s, c, n);
  return found ? found : (char *)s + hbrt_std_size(n);
}
static inline void *std_memrchr(const void *s, int c, int n) {
  const unsigned char *at = (const unsigned char *)s;
  while (n-- > 0)
    if (at[n] == (unsigned char)c) return (void *)(at + n);
  return NULL;
}
static inline void *std_memrchrbegin(const void *s, int c, int n) {
  void *found = std_memrchr(s, c, n);
  return found ? found : (void *)s;
}
static inline void *std_memstr(const char *s, const char *search, int n) {
  const int length = (int)strlen(search);
  for (int at = 0; at + length <= n; at++)
    if (!memcmp(s + at, search, (size_t)length)) return (void *)(s + at);
  return NULL;
}

static inline int std_wstrlen(const AECHAR *s) {
  int length = 0;
  while (s[length]) length++;
  return length;
}
static inline int std_wstrncmp(const AECHAR *s1, const AECHAR *s2, int n) {
  for (int at = 0; at < n; at++)
    if (s1[at] != s2[at] || !s1[at]) return (int)s1[at] - (int)s2[at];
  return 0;
}
static inline int std_wstrcmp(const AECHAR *s1, const AECHAR *s2) { return std_wstrncmp(s1, s2, INT_MAX); }
static inline int std_wstrlcpy(AECHAR *dst, const AECHAR *src, int size) {
  const int length = std_wstrlen(src), part = length < size ? length : size - 1;
  if (size > 0) {
    memmove(dst, src, (size_t)part * sizeof *dst);
    dst[part] = 0;
  }
  return length;
}
static inline int std_wstrlcat(AECHAR *dst, const AECHAR *src, int size) {
  int length = 0;
  while (length < size && dst[length]) length++;
  return length + std_wstrlcpy(dst + length, src, size - length);
}
static inline AECHAR *std_wstrchr(const AECHAR *s, AECHAR c) {
  while (*s && *s != c) s++;
  return *s == c ? (AECHAR *)s : NULL;
}
static inline AECHAR *std_wstrrchr(const AECHAR *s, AECHAR c) {
  int at = std_wstrlen(s);
  while (at >= 0 && s[at] != c) at--;
  return at >= 0 ? (AECHAR *)s + at : NULL;
}

static inline char *std_basename(const char *path) {
  const char *slash = strrchr(path, '/');
  return (char *)(slash ? slash + 1 : path);
}
/* Join folder and file with one slash; returns the length of the untruncated result. */
static inline int std_makepath(const char *folder, const char *file, char *dst, int size) {
  const int has_slash = !*folder || folder[strlen(folder) - 1] == '/';
  const int length = std_strlcpy(dst, folder, size);
  if (!has_slash) std_strlcat(dst, "/", size);
  std_strlcat(dst, file + (*file == '/'), size);
  return length + !has_slash + (int)strlen(file + (*file == '/'));
}

/* Parse a number in radix 2 to 36, or in the radix given by its prefix for 0; sets where it ends, and 0 or one of the
 * errors. */
static inline uint64 std_scanull(const char *text, int radix, const char **end, int *error) {
  const char *at = text;
  uint64 value = 0;
  int code = STD_NODIGITS, is_negative = 0;
  if (radix < 0 || radix == 1 || radix > 36) {
    if (end) *end = text;
    if (error) *error = STD_BADPARAM;
    return 0;
  }
  while (*at == ' ' || (*at >= '\t' && *at <= '\r')) at++;
  if (*at == '-' || *at == '+') is_negative = *at++ == '-';
  if ((radix == 0 || radix == 16) && at[0] == '0' && (at[1] | 32) == 'x') radix = 16, at += 2;
  else if (radix == 0) radix = *at == '0' ? 8 : 10;
  for (;; at++) {
    const int digit = *at >= '0' && *at <= '9' ? *at - '0' : (*at | 32) >= 'a' && (*at | 32) <= 'z' ? (*at | 32) - 'a' + 10 : 36;
    if (digit >= radix) break;
    if (code != STD_OVERFLOW) code = value > (MAX_UINT64 - (uint64)digit) / (uint64)radix ? STD_OVERFLOW : 0;
    value = code ? MAX_UINT64 : value * (uint64)radix + (uint64)digit;
  }
  if (!code && is_negative) code = STD_NEGATIVE, value = 0 - value;
  if (end) *end = code == STD_NODIGITS ? text : at;
  if (error) *error = code;
  return code == STD_NODIGITS ? 0 : value;
}
static inline unsigned int std_scanul(const char *text, int radix, const char **end, int *error) {
  int code;
  const uint64 value = std_scanull(text, radix, end, &code);
  const uint64 magnitude = code == STD_NEGATIVE ? 0 - value : value;
  if ((!code || code == STD_NEGATIVE) && magnitude > MAX_UINT32) code = STD_OVERFLOW;
  if (error) *error = code;
  return code == STD_OVERFLOW ? MAX_UINT32 : (unsigned int)value;
}
static inline double std_scand(const char *text, const char **end) {
  char *at;
  const double value = strtod(text, &at);
  if (end) *end = at;
  return value;
}

/* Write as much as fits, with a NUL; returns the length of the untruncated result. */
static inline int std_vstrlprintf(char *dst, int size, const char *format, AEEVaList arguments) {
  return vsnprintf(dst, hbrt_std_size(size), format, arguments);
}
static inline int std_vsnprintf(char *dst, int size, const char *format, AEEVaList arguments) {
  return vsnprintf(dst, hbrt_std_size(size), format, arguments);
}
static inline int std_strlprintf(char *dst, int size, const char *format, ...) {
  AEEVaList arguments;
  AEEVA_START(arguments, format);
  const int length = std_vstrlprintf(dst, size, format, arguments);
  AEEVA_END(arguments);
  return length;
}
static inline int std_snprintf(char *dst, int size, const char *format, ...) {
  AEEVaList arguments;
  AEEVA_START(arguments, format);
  const int length = std_vsnprintf(dst, size, format, arguments);
  AEEVA_END(arguments);
  return length;
}

/* Byte order conversions to and from little-endian and network order; Hexagons and these machines are little-endian. */
static inline unsigned short std_swaps(unsigned short us) { return __builtin_bswap16(us); }
static inline unsigned long std_swapl(unsigned long ul) { return __builtin_bswap32((uint32)ul); }
static inline unsigned short std_letohs(unsigned short us) { return us; }
static inline unsigned short std_htoles(unsigned short us) { return us; }
static inline unsigned long std_letohl(unsigned long ul) { return ul; }
static inline unsigned long std_htolel(unsigned long ul) { return ul; }
static inline unsigned short std_ntohs(unsigned short us) { return std_swaps(us); }
static inline unsigned short std_htons(unsigned short us) { return std_swaps(us); }
static inline unsigned long std_ntohl(unsigned long ul) { return std_swapl(ul); }
static inline unsigned long std_htonl(unsigned long ul) { return std_swapl(ul); }

#ifdef __cplusplus
}
#endif

#endif
