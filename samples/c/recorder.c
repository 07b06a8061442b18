/*
 * Record the calls of an ARM program on a board, for 'hbrt replay' (docs/recording.md has the format).
 *
 *   on the board:  aarch64-linux-gnu-gcc -shared -fPIC -o librecorder.so recorder.c -ldl
 *   here:          hbrt cc -shared -fPIC -o librecorder.so samples/c/recorder.c -ldl
 *   then:          RECORD_INTO=calls LD_PRELOAD=./librecorder.so ./program
 *
 * It sits between the program and the vendor's library. A call's memory consists of its two blocks and every block
 * whose physical address is in the input block, or in a small block found that way.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dsp/hb_dsp.h"

#define MAX_BLOCKS 4096 /* that the program may have at a time */
#define MAX_RANGES 64   /* of a call */
#define SMALL_BYTES 4096 /* blocks up to this size are searched for addresses, too */
#define NEXT(name) ((__typeof__(&name))(uintptr_t)next(#name))

typedef struct block {
  hbSysMem mem;
  int is_cached;
} block;

typedef struct call {
  struct call *next;
  hbDSPTask_t task;
  hbDSPRpcCtrlParam ctrl;
  hbSysMem input, output;
  block ranges[MAX_RANGES];
  int count;
  uint64_t submitted_ns, waited_ns, ended_ns; /* waited_ns: when the program began to wait */
  char name[64];
} call;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block blocks[MAX_BLOCKS];
static call *calls; /* that have not finished */
static unsigned made;

static void *next(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) {
    fprintf(stderr, "recorder: no library after this one defines %s\n", name);
    abort();
  }
  return found;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const char *directory(void) { return getenv("RECORD_INTO"); }

/* Write a whole file, or leave the old one as it was. */
static void save(const char *name, const char *file, const void *bytes, size_t size) {
  char path[4096], part[4100];
  snprintf(path, sizeof path, "%s/%s%s%s", directory(), name, *name ? "/" : "", file);
  snprintf(part, sizeof part, "%s.new", path);
  FILE *out = fopen(part, "wb");
  if (!out || fwrite(bytes, 1, size, out) != size || fclose(out) || rename(part, path))
    fprintf(stderr, "recorder: cannot write %s\n", path);
}

static void begin(void) {
  static const char head[] = "{\"format\": \"hbrt-recording\", \"version\": 1, \"recorder\": \"board\"}\n";
  char path[4096];
  mkdir(directory(), 0777);
  snprintf(path, sizeof path, "%s/calls", directory());
  mkdir(path, 0777);
  save("", "recording.json", head, sizeof head - 1);
}

/* -- memory of the program */

static void add(const hbSysMem *mem, int is_cached) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MAX_BLOCKS; i++)
    if (!blocks[i].mem.memSize) {
      blocks[i] = (block){*mem, is_cached};
      break;
    }
  pthread_mutex_unlock(&lock);
}

static void forget(uint64_t phy) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MAX_BLOCKS; i++)
    if (blocks[i].mem.phyAddr == phy) blocks[i].mem.memSize = 0;
  pthread_mutex_unlock(&lock);
}

int32_t hbSysAllocMem(hbSysMem *mem, uint32_t size) {
  int32_t status = NEXT(hbSysAllocMem)(mem, size);
  if (!status) add(mem, 0);
  return status;
}

int32_t hbSysAllocCachedMem(hbSysMem *mem, uint32_t size) {
  int32_t status = NEXT(hbSysAllocCachedMem)(mem, size);
  if (!status) add(mem, 1);
  return status;
}

int32_t hbSysRegisterMem(hbSysMem *mem) {
  int32_t status = NEXT(hbSysRegisterMem)(mem);
  if (!status) add(mem, 1);
  return status;
}

int32_t hbSysFreeMem(hbSysMem *mem) {
  if (mem) forget(mem->phyAddr);
  return NEXT(hbSysFreeMem)(mem);
}

int32_t hbSysUnregisterMem(hbSysMem *mem) {
  if (mem) forget(mem->phyAddr);
  return NEXT(hbSysUnregisterMem)(mem);
}

/* -- the memory of a call */

static void use(call *one, const block *found) {
  for (int i = 0; i < one->count; i++)
    if (one->ranges[i].mem.phyAddr == found->mem.phyAddr) return;
  if (one->count == MAX_RANGES) {
    fprintf(stderr, "recorder: a call uses more than %d blocks; the rest is omitted\n", MAX_RANGES);
    return;
  }
  one->ranges[one->count++] = *found;
}

/* Add the block that contains an address; does nothing if there is none. */
static void use_address(call *one, uint64_t phy) {
  for (int i = 0; i < MAX_BLOCKS; i++)
    if (blocks[i].mem.memSize && phy - blocks[i].mem.phyAddr < blocks[i].mem.memSize) use(one, &blocks[i]);
}

/* Add the block named by a call, or just its range if the program got the memory in another way. */
static void use_block(call *one, const hbSysMem *mem) {
  if (!mem || !mem->memSize) return;
  int before = one->count;
  use_address(one, mem->phyAddr);
  if (one->count == before) use(one, &(block){*mem, 0});
}

static void search(call *one, const hbSysMem *mem) {
  for (uint32_t at = 0; at + 8 <= mem->memSize; at += 4) {
    uint64_t word;
    memcpy(&word, (const char *)mem->virAddr + at, 8);
    use_address(one, word);
  }
}

static void print(char **at, size_t *left, const char *format, ...) {
  va_list values;
  va_start(values, format);
  int written = vsnprintf(*at, *left, format, values);
  va_end(values);
  if (written > 0 && (size_t)written < *left) {
    *at += written;
    *left -= (size_t)written;
  }
}

/* Write call.json; a call that has not finished has no status. */
static void describe(const call *one, const int32_t *status, const int *has_changed) {
  char text[32768], *at = text, folder[80];
  size_t left = sizeof text;
  print(&at, &left, "{\"cmd\": %d, \"priority\": %d, \"custom_id\": %lld, \"core_mask\": %d, \"submitted_ns\": %llu",
        one->ctrl.rpcCmd, one->ctrl.priority, (long long)one->ctrl.customId, one->ctrl.dspCoreId,
        (unsigned long long)one->submitted_ns);
  if (status)
    print(&at, &left, ", \"status\": %d, \"waited_ns\": %llu, \"ended_ns\": %llu", *status,
          (unsigned long long)one->waited_ns, (unsigned long long)one->ended_ns);
  print(&at, &left, ", \"input\": {\"phy_addr\": %llu, \"size_bytes\": %u}", (unsigned long long)one->input.phyAddr,
        one->input.memSize);
  print(&at, &left, ", \"output\": {\"phy_addr\": %llu, \"size_bytes\": %u}, \"ranges\": [",
        (unsigned long long)one->output.phyAddr, one->output.memSize);
  for (int i = 0; i < one->count; i++) {
    unsigned long long phy = one->ranges[i].mem.phyAddr;
    print(&at, &left, "%s{\"phy_addr\": %llu, \"size_bytes\": %u, \"before\": \"%#llx.before\"", i ? ", " : "", phy,
          one->ranges[i].mem.memSize, phy);
    if (has_changed && has_changed[i]) print(&at, &left, ", \"after\": \"%#llx.after\"", phy);
    print(&at, &left, "}");
  }
  print(&at, &left, "]}\n");
  snprintf(folder, sizeof folder, "calls/%s", one->name);
  save(folder, "call.json", text, strlen(text));
}

static void save_range(const call *one, const hbSysMem *mem, const char *when) {
  char folder[80], file[64];
  snprintf(folder, sizeof folder, "calls/%s", one->name);
  snprintf(file, sizeof file, "%#llx.%s", (unsigned long long)mem->phyAddr, when);
  save(folder, file, mem->virAddr, mem->memSize);
}

static call *begin_call(hbSysMem *input, hbSysMem *output, const hbDSPRpcCtrlParam *ctrl) {
  call *one = calloc(1, sizeof *one);
  if (!one) return NULL;
  pthread_mutex_lock(&lock);
  if (!made) begin();
  snprintf(one->name, sizeof one->name, "board-%d-%06u", getpid(), ++made);
  one->ctrl = *ctrl;
  if (input) one->input = *input;
  if (output) one->output = *output;
  use_block(one, input);
  use_block(one, output);
  if (input) search(one, input);
  for (int i = 0; i < one->count; i++)
    if (one->ranges[i].mem.memSize <= SMALL_BYTES) search(one, &one->ranges[i].mem);
  pthread_mutex_unlock(&lock);

  char path[4096];
  snprintf(path, sizeof path, "%s/calls/%s", directory(), one->name);
  mkdir(path, 0777);
  for (int i = 0; i < one->count; i++) save_range(one, &one->ranges[i].mem, "before");
  describe(one, NULL, NULL);
  return one;
}

/* Whether a range has changed since before the call. */
static int has_changed(const call *one, const hbSysMem *mem) {
  char path[4096];
  int differs = 1;
  snprintf(path, sizeof path, "%s/calls/%s/%#llx.before", directory(), one->name, (unsigned long long)mem->phyAddr);
  FILE *in = fopen(path, "rb");
  char *before = malloc(mem->memSize);
  if (in && before && fread(before, 1, mem->memSize, in) == mem->memSize)
    differs = memcmp(before, mem->virAddr, mem->memSize) != 0;
  free(before);
  if (in) fclose(in);
  return differs;
}

static void end_call(call *one, int32_t status) {
  int changed[MAX_RANGES] = {0};
  for (int i = 0; i < one->count; i++) {
    hbSysMem *mem = &one->ranges[i].mem;
    if (one->ranges[i].is_cached) NEXT(hbSysFlushMem)(mem, HB_SYS_MEM_CACHE_INVALIDATE);
    changed[i] = has_changed(one, mem);
    if (changed[i]) save_range(one, mem, "after");
  }
  describe(one, &status, changed);
  char path[4096], line[256];
  int size = snprintf(line, sizeof line, "{\"call\": \"%s\", \"cmd\": %d, \"status\": %d}\n", one->name,
                      one->ctrl.rpcCmd, status);
  snprintf(path, sizeof path, "%s/index.jsonl", directory());
  int index = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
  if (index < 0 || write(index, line, (size_t)size) != size)
    fprintf(stderr, "recorder: cannot write %s\n", path);
  if (index >= 0) close(index);
  free(one);
}

/* Remove a task's call from the list. */
static call *take(hbDSPTask_t task) {
  pthread_mutex_lock(&lock);
  call **at = &calls;
  while (*at && (*at)->task != task) at = &(*at)->next;
  call *found = *at;
  if (found) *at = found->next;
  pthread_mutex_unlock(&lock);
  return found;
}

/* -- calls */

int32_t hbDSPRpc(hbDSPTask_t *task, hbSysMem *input, hbSysMem *output, hbDSPRpcCtrlParam *ctrl) {
  call *one = directory() && ctrl ? begin_call(input, output, ctrl) : NULL;
  if (one) one->submitted_ns = now_ns(); /* the files are written */
  int32_t status = NEXT(hbDSPRpc)(task, input, output, ctrl);
  if (one) one->ended_ns = now_ns();
  if (one && status) { /* it was rejected: no op ran */
    end_call(one, status);
  } else if (one) {
    one->task = *task;
    pthread_mutex_lock(&lock);
    one->next = calls;
    calls = one;
    pthread_mutex_unlock(&lock);
  }
  return status;
}

int32_t hbDSPWaitTaskDone(hbDSPTask_t task, int32_t timeout) {
  uint64_t waited_ns = now_ns();
  int32_t status = NEXT(hbDSPWaitTaskDone)(task, timeout);
  uint64_t ended_ns = now_ns();
  call *one = status == HB_DSP_TIMEOUT ? NULL : take(task);
  if (one) {
    one->waited_ns = waited_ns;
    one->ended_ns = ended_ns;
    end_call(one, status);
  }
  return status;
}

int32_t hbDSPReleaseTask(hbDSPTask_t task) {
  free(take(task)); /* a task that nobody waited for has no outcome */
  return NEXT(hbDSPReleaseTask)(task);
}
