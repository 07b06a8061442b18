/** Statuses of hbDSP*: names and numbers are the emulator's choice. */
#ifndef HBRT_DSP_HB_DSP_STATUS_H
#define HBRT_DSP_HB_DSP_STATUS_H

typedef enum {
  /** The call succeeded. */
  HB_DSP_SUCCESS = 0,
  /** An argument of the RPC is not valid: a null pointer or a bad value. */
  HB_DSP_INVALID_ARGUMENT = -6000257,
  /** dspCoreId names a core that this board does not have. */
  HB_DSP_INVALID_CORE = -6000258,
  /** The priority is outside 0..255. */
  HB_DSP_INVALID_PRIORITY = -6000259,
  /** A physical range is not inside one live block; was a virtual address passed, or the block freed? */
  HB_DSP_INVALID_ADDRESS = -6000260,
  /** An RPC block does not start at a multiple of 8 bytes. */
  HB_DSP_UNALIGNED_ADDRESS = -6000261,
  /** Every task slot is in use; release finished tasks with hbDSPReleaseTask. */
  HB_DSP_TASK_NUM_EXCEED_LIMIT = -6000262,
  /** The value is not a task handle. */
  HB_DSP_INVALID_TASK_HANDLE = -6000263,
  /** The task handle was already released. */
  HB_DSP_TASK_RELEASED = -6000264,
  /** The task handle belongs to another process or another attachment. */
  HB_DSP_FOREIGN_TASK_HANDLE = -6000265,
  /** The wait timed out; the task keeps running and can be waited for again. */
  HB_DSP_TIMEOUT = -6000266,
  /** No op is registered for the command; see 'hbrt ops'. */
  HB_DSP_UNKNOWN_COMMAND = -6000267,
  /** The op raised an exception; the task's text has its traceback, or its sentence. */
  HB_DSP_RUN_TASK_FAILED = -6000268,
  /** The task was cancelled before a core claimed it. */
  HB_DSP_TASK_CANCELLED = -6000269,
  /** The core died while it ran the task; other tasks continue. */
  HB_DSP_CORE_LOST = -6000270,
  /** The op exceeded its time limit; its core was restarted. */
  HB_DSP_WATCHDOG = -6000271,
  /** No board is running; start one with 'hbrt start'. */
  HB_DSP_NOT_RUNNING = -6000272,
  /** The daemon of the board died; start it again and attach again. */
  HB_DSP_BOARD_LOST = -6000273,
  /** This process is a fork of the one that attached to the board; attach again in the child. */
  HB_DSP_FORKED = -6000274,
  /** A TCM bank has no free range of that size. */
  HB_DSP_OUT_OF_TCM = -6000275,
  /** Only the owner of the block or task may make this request. */
  HB_DSP_PERMISSION = -6000276,
  /** The relay that carried the task died, or cannot be reached; the board keeps running, and the next call starts or finds a new one. */
  HB_DSP_RELAY_LOST = -6000277,
  /** The op could not map a physical range; it is not inside one live block. */
  HB_ERR_MMAP_FAILED = -6000300
} hbDSPStatus;

#endif
