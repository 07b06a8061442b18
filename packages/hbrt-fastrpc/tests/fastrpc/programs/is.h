/* The assertion that the programs of this folder use. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define IS(expression, expected)                                                                     \
  do {                                                                                               \
    long long found = (long long)(expression);                                                       \
    if (found != (long long)(expected)) {                                                            \
      printf("%d: %s is %lld, not %lld\n", __LINE__, #expression, found, (long long)(expected));     \
      exit(1);                                                                                       \
    }                                                                                                \
  } while (0)

static void wait_for(_Atomic int *number, int least) {
  for (int tried = 0; *number < least && tried < 60000; tried++) nanosleep(&(struct timespec){0, 1000000}, NULL);
  IS(*number >= least, 1);
}
