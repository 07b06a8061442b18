/** Statuses of hbSys* and hbDNN*. docs/status-codes.md says which numbers are the manual's. */
#ifndef HBRT_DNN_HB_DNN_STATUS_H
#define HBRT_DNN_HB_DNN_STATUS_H

typedef enum {
  /** The call succeeded. */
  HB_DNN_SUCCESS = 0,
  /** The call succeeded. */
  HB_SYS_SUCCESS = 0,
  /** An argument of the DNN call is not valid. */
  HB_DNN_INVALID_ARGUMENT = -6000001,
  /** The model file is damaged or is not a model. */
  HB_DNN_INVALID_MODEL = -6000002,
  /** Too many models are loaded. */
  HB_DNN_MODEL_NUMBER_EXCEED_LIMIT = -6000003,
  /** Invalid packed model handle: unknown, or already released. */
  HB_DNN_INVALID_PACKED_DNN_HANDLE = -6000004,
  /** Invalid model handle: unknown, or already released. */
  HB_DNN_INVALID_DNN_HANDLE = -6000005,
  /** The model file cannot be opened. */
  HB_DNN_CAN_NOT_OPEN_FILE = -6000006,
  /** There is not enough device memory for the model. */
  HB_DNN_OUT_OF_MEMORY = -6000007,
  /** The wait for the model task timed out; the task keeps running. */
  HB_DNN_TIMEOUT = -6000008,
  /** More than 32 model tasks are alive; release some. */
  HB_DNN_TASK_NUM_EXCEED_LIMIT = -6000009,
  /** The chain of small models is too long. */
  HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT = -6000010,
  /** Invalid model task handle: unknown, or already released. */
  HB_DNN_INVALID_TASK_HANDLE = -6000011,
  /** The model task failed while it ran. */
  HB_DNN_RUN_TASK_FAILED = -6000012,
  /** The model is in use and cannot be released. */
  HB_DNN_MODEL_IS_RUNNING = -6000013,
  /** The model does not fit this runtime. */
  HB_DNN_INCOMPATIBLE_MODEL = -6000014,
  /** The DNN calls were made in the wrong order. */
  HB_DNN_API_USE_ERROR = -6000015,
  /** Processes use the DNN runtime incorrectly. */
  HB_DNN_MULTI_PROGRESS_USE_ERROR = -6000016,
  /** An argument of the memory call is not valid: a null pointer, a size of 0, or an unknown flag. */
  HB_SYS_INVALID_ARGUMENT = -6000129,
  /** The DDR has no free range of that size; free some blocks. */
  HB_SYS_OUT_OF_MEMORY = -6000130,
  /** The physical range is not inside one live block, so it cannot be registered. */
  HB_SYS_REGISTER_MEM_FAILED = -6000131,
  /** No live block of this process starts at that physical address: it was never allocated, was freed before, or belongs to another process. */
  HB_SYS_NOT_ALLOCATED = -6000132,
  /** No board is running; start one with 'hbrt start'. */
  HB_SYS_NOT_RUNNING = -6000133,
  /** The daemon of the board died; start it again and attach again. */
  HB_SYS_BOARD_LOST = -6000134,
  /** This process is a fork of the one that attached to the board; attach again in the child. */
  HB_SYS_FORKED = -6000135,
  /** The function is declared, but hbrt has no body for it. */
  HB_SYS_NOT_SUPPORTED = -6000136
} hbDNNStatus;

#endif
