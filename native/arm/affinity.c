/** sched_setaffinity for programs that name cores of their chip, such as CPUs 4 to 7 of a phone, on a host with two. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/** Whether a mask is not empty and contains none of this host's CPUs. */
static int is_elsewhere(size_t size, const cpu_set_t *mask) {
  const long here = sysconf(_SC_NPROCESSORS_CONF);
  for (long cpu = 0; cpu < here; cpu++)
    if (CPU_ISSET_S((size_t)cpu, size, mask)) return 0;
  return CPU_COUNT_S(size, mask) > 0;
}

/** Like libc's (sched_setaffinity(2)), but CPUs that this host lacks are accepted without effect, with one warning. */
EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *mask) {
  static atomic_flag is_said = ATOMIC_FLAG_INIT;
  if (syscall(SYS_sched_setaffinity, pid, size, mask) == 0) return 0;
  if (errno != EINVAL || !is_elsewhere(size, mask)) return -1;
  if (!atomic_flag_test_and_set(&is_said))
    fprintf(stderr, "hbrt: warning: sched_setaffinity: none of the requested CPUs exists on this host, which has %ld: no effect.\n",
            sysconf(_SC_NPROCESSORS_CONF));
  return 0;
}
