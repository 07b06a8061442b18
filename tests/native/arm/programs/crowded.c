/* A first call with few file descriptors free, and one more with room. argv[1]: how many are free. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hbrt.h"
#include "row.h"

int main(int count, char **arguments) {
  const struct rlimit limit = {64, 64};
  hbSysMem mem;
  int fd = memfd_create("memory", MFD_CLOEXEC), taken[64], at = 0, left = count > 1 ? atoi(arguments[1]) : 0;
  if (ftruncate(fd, 4096) || setrlimit(RLIMIT_NOFILE, &limit)) return 9;
  while ((taken[at] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) at++;
  while (left-- > 0 && at > 0) close(taken[--at]);
  int32_t status = hbrt_register_fd(&mem, fd, 0, 4096);
  if (status) printf("%d %s\n", status, hbrt_last_error());
  while (at > 0) close(taken[--at]);
  if (status && (status = hbrt_register_fd(&mem, fd, 0, 4096))) return 8;
  return hbSysUnregisterMem(&mem) ? 7 : 0;
}
