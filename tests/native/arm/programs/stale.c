/* Reads a result without its invalidate; with an argument writes past a block; with two reads a block that is freed. */
#include "row.h"
int main(int n, char **v) {
  Row row; (void)v;
  if (row_make(&row, 1)) return 1;
  hbSysMem out; if (hbSysAllocCachedMem(&out, 16)) return 2;
  memset(out.virAddr, 7, 16);
  hbSysFlushMem(&out, HB_SYS_MEM_CACHE_CLEAN);
  hbDSPTask_t task;
  if (hbDSPRpc(&task, &row.block, &out, &row.ctrl)) return 3;
  if (hbDSPWaitTaskDone(task, 0)) return 4;
  volatile float *o = out.virAddr;
  printf("%g\n", o[1]);   /* stale: no invalidate */
  if (n > 1) ((volatile char *)row.input.virAddr)[17] = 3; /* past the block */
  hbDSPReleaseTask(task);
  hbSysFreeMem(&out);
  row_free(&row);
  if (n > 2) printf("%d\n", ((volatile char *)row.input.virAddr)[0]);
  return 0;
}
