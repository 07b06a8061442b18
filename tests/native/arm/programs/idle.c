/* Allocates, and ends when its input does: it calls nothing more of a board that may be gone meanwhile. */
#include "row.h"

int main(void) {
  Row row;
  if (row_make(&row, 1)) return 1;
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 7;
}
