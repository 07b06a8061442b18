/* The calls of dspqueue.h, limits of process domains, and handles of a program that has died, on plain_image.c. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "AEEStdErr.h"
#include "dspqueue.h"
#include "hbrt_skeleton.h"
#include "remote.h"
#include "rpcmem.h"
#include "is.h"

static _Atomic int packets, errors, error_code;

static remote_handle64 opened(int session) {
  char uri[160];
  remote_handle64 handle;
  snprintf(uri, sizeof uri, "file:///libplain_skel.so?plain_skel_handle_invoke&_modver=1.0%s&_session=%d", CDSP_DOMAIN, session);
  IS(remote_handle64_open(uri, &handle), 0);
  return handle;
}

static int32_t objects(remote_handle64 handle) {
  int32_t count = -1;
  remote_arg back = {.buf = {&count, sizeof count}};
  IS(remote_handle64_invoke(handle, REMOTE_SCALARS_MAKE(11, 0, 1), &back), 0);
  return count;
}

static int with_number(remote_handle64 handle, int method, uint64_t number) {
  remote_arg given = {.buf = {&number, sizeof number}};
  return remote_handle64_invoke(handle, REMOTE_SCALARS_MAKE(method, 1, 0), &given);
}

static void take(dspqueue_t queue, AEEResult error, void *context) {
  uint8_t text[64];
  uint32_t flags, count, length;
  IS(error == 0 && context == &packets, 1);
  while (!dspqueue_read_noblock(queue, &flags, 0, &count, NULL, sizeof text, &length, text)) {
    IS(length == 2 && text[1] == 'p', 1);
    packets++;
  }
}

static void failed(dspqueue_t queue, AEEResult error, void *context) {
  IS(queue != NULL && context == &packets, 1);
  error_code = error;
  errors++;
}

static void reading(remote_handle64 handle) {
  dspqueue_t queue;
  uint64_t id, value;
  uint8_t text[64];
  uint32_t flags, count, length;
  IS(dspqueue_create(CDSP_DOMAIN_ID, 0, 17 << 20, 0, NULL, NULL, NULL, &queue), AEE_EBADPARM);
  IS(dspqueue_create(CDSP_DOMAIN_ID, 0, 0, 0, NULL, NULL, NULL, NULL), AEE_EBADPARM);
  IS(dspqueue_create(CDSP_DOMAIN_ID, 0, 0, 0, NULL, NULL, NULL, &queue), 0);
  IS(dspqueue_export(queue, &id), 0);
  IS(with_number(handle, 8, id), 0);
  IS(with_number(handle, 8, id), HBRT_FASTRPC_ON_DSP(AEE_EITEMBUSY));
  IS(dspqueue_read_noblock(queue, &flags, 0, &count, NULL, sizeof text, &length, text), AEE_EWOULDBLOCK);
  IS(dspqueue_read(queue, &flags, 0, &count, NULL, sizeof text, &length, text, 2000), AEE_EEXPIRED);
  for (int at = 0; at < 300; at++) { /* round the rings several times */
    uint8_t message[200] = {(uint8_t)at};
    IS(dspqueue_write(queue, 0, 0, NULL, sizeof message, message, DSPQUEUE_TIMEOUT_NONE), 0);
    uint8_t back[200];
    IS(dspqueue_peek(queue, &flags, &count, &length, DSPQUEUE_TIMEOUT_NONE), 0);
    IS(flags == DSPQUEUE_PACKET_FLAG_MESSAGE && count == 0 && length == 200, 1);
    IS(dspqueue_read_noblock(queue, &flags, 0, &count, NULL, 100, &length, back), AEE_EBADPARM);
    IS(dspqueue_read(queue, &flags, 0, &count, NULL, sizeof back, &length, back, DSPQUEUE_TIMEOUT_NONE), 0);
    IS(back[199], (uint8_t)at);
  }
  char *memory = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 8192);
  struct dspqueue_buffer buffer = {.fd = (uint32_t)rpcmem_to_fd(memory), .offset = 16, .size = 8}, back[2];
  IS(dspqueue_write_noblock(queue, 0, 1, &buffer, 0, NULL), AEE_ENOSUCHMAP);
  IS(fastrpc_mmap(CDSP_DOMAIN_ID, (int)buffer.fd, memory, 0, 8192, FASTRPC_MAP_FD), 0);
  IS(dspqueue_write(queue, 0, 1, &buffer, 0, NULL, 0), 0);
  IS(dspqueue_read(queue, &flags, 2, &count, back, sizeof text, &length, text, DSPQUEUE_TIMEOUT_NONE), 0);
  IS(flags == DSPQUEUE_PACKET_FLAG_BUFFERS && count == 1 && length == 0, 1);
  IS(back[0].fd == buffer.fd && back[0].offset == 16 && back[0].size == 8 && back[0].ptr == memory + 16, 1);
  IS(memory[16], 1);
  buffer.flags = DSPQUEUE_BUFFER_FLAG_REF | DSPQUEUE_BUFFER_FLAG_DEREF;
  IS(dspqueue_write_noblock(queue, 0, 1, &buffer, 0, NULL), AEE_EBADPARM);
  IS(dspqueue_write_noblock(queue, 0, 1, NULL, 0, NULL), AEE_EBADPARM);
  IS(dspqueue_write_noblock(queue, 1u << 16, 0, NULL, 0, NULL), AEE_EBADPARM);
  IS(dspqueue_write_early_wakeup_noblock(queue, 100, 0), 0);
  for (int stat = DSPQUEUE_STAT_READ_QUEUE_PACKETS; stat <= DSPQUEUE_STAT_SIGNALING_PERF; stat++)
    IS(dspqueue_get_stat(queue, (enum dspqueue_stat)stat, &value), 0);
  IS(value, DSPQUEUE_SIGNALING_PERF_OPTIMIZED_SIGNALING);
  IS(dspqueue_get_stat(queue, (enum dspqueue_stat)9, &value), AEE_EBADPARM);
  IS(dspqueue_close(queue), AEE_ERPC);
  IS(remote_handle64_invoke(handle, REMOTE_SCALARS_MAKE(9, 0, 0), NULL), 0);
  IS(dspqueue_close(queue), 0);
  IS(dspqueue_close(queue), AEE_EBADPARM);
  IS(fastrpc_munmap(CDSP_DOMAIN_ID, rpcmem_to_fd(memory), memory, 8192), 0);
  rpcmem_free(memory);
}

static void calling(remote_handle64 handle) {
  dspqueue_t queue;
  uint64_t id;
  IS(dspqueue_create(CDSP_DOMAIN_ID, 0, 0, 1024, take, failed, &packets, &queue), 0);
  IS(dspqueue_export(queue, &id), 0);
  IS(with_number(handle, 8, id), 0);
  for (int at = 0; at < 100; at++)
    IS(dspqueue_write(queue, 0, 0, NULL, 2, (const uint8_t *)"p?", DSPQUEUE_TIMEOUT_NONE), 0);
  wait_for(&packets, 100);
  IS(dspqueue_read(queue, NULL, 0, NULL, NULL, 0, NULL, NULL, 1), AEE_EBADSTATE);
  IS(errors, 0);
  IS(remote_handle64_invoke(handle, REMOTE_SCALARS_MAKE(9, 0, 0), NULL), 0);
  IS(dspqueue_close(queue), 0);
}

static void limits(void) {
  struct remote_rpc_control_unsigned_module one = {CDSP_DOMAIN_ID + 8, 1};
  IS(remote_session_control(DSPRPC_CONTROL_UNSIGNED_MODULE, &one, sizeof one), 0);
  struct remote_rpc_pd_initmem_size size = {CDSP_DOMAIN_ID + 8, 8 << 20};
  IS(remote_session_control(FASTRPC_PD_INITMEM_SIZE, &size, sizeof size), AEE_EUNSUPPORTED);
  remote_handle64 handle = opened(1);
  IS(with_number(handle, 10, 3), 0);
  IS(with_number(handle, 10, 3), HBRT_FASTRPC_ON_DSP(AEE_ENOMEMORY));
  IS(with_number(handle, 10, 1), 0);
  IS(remote_handle64_close(handle), 0);
  one.enable = 0;
  IS(remote_session_control(DSPRPC_CONTROL_UNSIGNED_MODULE, &one, sizeof one), 0);
  handle = opened(1); /* nothing was asked for */
  IS(with_number(handle, 10, 100), 0);
  IS(remote_handle64_close(handle), 0);
}

static void deaths(const char *program, remote_handle64 handle) {
  IS(objects(handle), 1);
  pid_t child = fork();
  if (!child) execl(program, program, "die", (char *)NULL);
  int status;
  IS(waitpid(child, &status, 0), child);
  IS(WIFSIGNALED(status), 1);
  nanosleep(&(struct timespec){1, 0}, NULL);
  remote_handle64 other = opened(0); /* the next open sweeps */
  IS(objects(handle), 2);
  IS(remote_handle64_close(other), 0);
}

int main(int count, char **arguments) {
  remote_handle64 handle = opened(0);
  if (count > 1) {
    opened(0);
    kill(getpid(), 9);
  }
  reading(handle);
  calling(handle);
  limits();
  deaths(arguments[0], handle);
  dspqueue_t queue;
  uint64_t id;
  IS(dspqueue_create(CDSP_DOMAIN_ID, 0, 0, 0, NULL, failed, &packets, &queue), 0);
  IS(dspqueue_export(queue, &id), 0);
  IS(dspqueue_write_noblock(queue, 0, 0, NULL, 1, (const uint8_t *)"x"), 0); /* not imported yet */
  wait_for(&errors, 1);
  IS(error_code != 0, 1);
  IS(dspqueue_close(queue), 0);
  IS(remote_handle64_close(handle), 0);
  puts("all is well");
  return 0;
}
