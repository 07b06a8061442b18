/* Affinity to CPUs that the host lacks, to one that it has, and to none. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static void set(const char *which, int first, int count) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (int cpu = first; cpu < first + count; cpu++) CPU_SET(cpu, &mask);
  const int result = sched_setaffinity(0, sizeof mask, &mask);
  printf("%s %d %s\n", which, result, result ? strerror(errno) : "");
}

int main(void) {
  set("missing", 1000, 4);
  set("missing", 1000, 4);
  set("none", 0, 0);
  set("first", 0, 1);
  return 0;
}
