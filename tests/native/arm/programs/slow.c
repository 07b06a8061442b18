/* One call of the command 0x1000. */
#include "row.h"

int main(void) {
  Row row;
  if (row_make(&row, 1)) return 1;
  row.ctrl.rpcCmd = 0x1000;
  return row_call(&row) == HB_DSP_CORE_LOST ? 7 : 1;
}
