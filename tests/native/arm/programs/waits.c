/* Calls until a call fails, and says with what: for a board that goes away, or a signal that ends the program. */
#include <signal.h>
#include <stdlib.h>

#include "row.h"

static void count(int number) { (void)number; }

int main(int arguments_count, char **arguments) {
  if (arguments_count > 1 && !strcmp(arguments[1], "handled")) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count;
    sigaction(SIGUSR1, &action, NULL);
  }
  Row row;
  int32_t status = row_make(&row, 1);
  puts("ready");
  fflush(stdout);
  while (!status) status = row_call(&row);
  printf("%d\n", status);
  return 3;
}
