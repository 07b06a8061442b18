/* VERIFY and VERIFYC: if a condition does not hold, set `nErr` and jump to the function's label `bail`.
 *
 * Source: the header of this name in Hexagon SDKs, for names, https://github.com/peyer/qcom_hexagon_sdk
 */
#ifndef VERIFY_H
#define VERIFY_H

#ifdef VERIFY_PRINT_ERROR
#include <stdio.h>
#define VERIFY_EPRINTF(...) (printf("%s:%d:", __FILE__, __LINE__), printf(__VA_ARGS__), printf("\n"))
#else
#define VERIFY_EPRINTF(...) (void)0
#endif
#ifdef VERIFY_PRINT_INFO
#include <stdio.h>
#define VERIFY_IPRINTF(...) (printf("%s:%d:", __FILE__, __LINE__), printf(__VA_ARGS__), printf("\n"))
#else
#define VERIFY_IPRINTF(...) (void)0
#endif

#ifndef VERIFYC
#define VERIFYC(val, err_code)                   \
  do {                                           \
    VERIFY_IPRINTF(":info: calling: %s", #val);  \
    if (0 == (val)) {                            \
      nErr = err_code;                           \
      VERIFY_EPRINTF(":error: %d: %s", nErr, #val); \
      goto bail;                                 \
    }                                            \
    VERIFY_IPRINTF(":info: passed: %s", #val);   \
  } while (0)
#endif
#ifndef VERIFY
#define VERIFY(val) VERIFYC(val, nErr ? nErr : -1)
#endif

#endif
