/* Calls, and again when its input has ended; then writes to a pipe without a reader, which ends it. */
#include <signal.h>
#include <unistd.h>

#include "row.h"

/* Whether SIGPIPE ends this thread, as it did when the program began. */
static int ends_by_pipe(void) {
  struct sigaction action;
  sigset_t blocked;
  sigaction(SIGPIPE, NULL, &action);
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  return action.sa_handler == SIG_DFL && !sigismember(&blocked, SIGPIPE);
}

int main(void) {
  Row row;
  int ends[2];
  if (!ends_by_pipe() || row_make(&row, 1) || !ends_by_pipe()) return 1;
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  const int32_t status = hbSysAllocMem(&row.output, 16);
  printf("%d %d\n", status, ends_by_pipe());
  fflush(stdout);
  if (pipe(ends) || close(ends[0])) return 2;
  return write(ends[1], "", 1) < 0 ? 3 : 4;
}
