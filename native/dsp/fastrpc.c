/* FastRPC in an image in C: the op that opens, invokes and closes, by the skeletons that the image has registered.
 *
 * hbrt/fastrpc/message.py has the bytes of a call, and dsp_server/fastrpc.py the same for images in Python. */
#include "runtime.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "AEEStdErr.h"
#include "hb_dsp.h"
#include "remote.h"

enum { COMMAND = 0xfa57, KIND_OPEN = 1, KIND_INVOKE = 2, KIND_CLOSE = 3, KIND_END = 4, MOST_INTERFACES = 64, MOST_ARGUMENTS = 510, MOST_NAME = 128, MOST_URI = 1024 };

struct head {
  uint32_t kind, word;
  uint64_t handle;
  uint32_t count, none;
};

struct argument {
  uint64_t phy_addr, size;
};

struct interface {
  char symbol[MOST_NAME];
  hbrt_fastrpc_invoke invoke;
  int has_handle;
};

struct opened {
  uint64_t handle; /* 0 for a free place */
  const struct interface *interface;
  remote_handle64 object;
};

static struct interface interfaces[MOST_INTERFACES];
static int interface_count;
static struct opened *opened;
static size_t opened_count;
static uint64_t last_handle;

static int refuse(int code, const char *sentence) {
  hb_dsp_log(HB_DSP_LOG_ERROR, "%s", sentence);
  return HBRT_FASTRPC_ON_DSP(code);
}

/* A free place for a handle; NULL when there is no memory. */
static struct opened *place(void) {
  for (size_t at = 0; at < opened_count; ++at)
    if (!opened[at].handle) return &opened[at];
  const size_t more = opened_count ? 2 * opened_count : 16;
  struct opened *grown = realloc(opened, more * sizeof *grown);
  if (!grown) return NULL;
  memset(grown + opened_count, 0, (more - opened_count) * sizeof *grown);
  opened = grown;
  struct opened *found = &opened[opened_count];
  opened_count = more;
  return found;
}

static struct opened *of_handle(uint64_t handle) {
  for (size_t at = 0; handle && at < opened_count; ++at)
    if (opened[at].handle == handle) return &opened[at];
  return NULL;
}

static int open_interface(const struct head *head, uint64_t *answer) {
  char uri[MOST_URI + 1], text[MOST_URI + 256];
  if (head->count > MOST_URI || !answer) return refuse(AEE_ERPC, "The URI of an open is too long, or nothing takes its handle.");
  memcpy(uri, head + 1, head->count);
  uri[head->count] = 0;
  const char *symbol = strchr(uri, '?');
  symbol = symbol ? symbol + 1 : uri;
  const size_t length = strcspn(symbol, "&?");
  const struct interface *found = NULL;
  for (int at = 0; at < interface_count; ++at)
    if (strlen(interfaces[at].symbol) == length && !memcmp(interfaces[at].symbol, symbol, length)) found = &interfaces[at];
  if (!found) {
    int at = snprintf(text, sizeof text, "The image has no interface %.*s; it has", (int)length, symbol);
    for (int one = 0; one < interface_count && at < (int)sizeof text; ++one)
      at += snprintf(text + at, sizeof text - (size_t)at, "%s %s", one ? "," : "", interfaces[one].symbol);
    return refuse(AEE_EUNABLETOLOAD, text);
  }
  remote_handle64 object = 0;
  if (found->has_handle) {
    uint32_t bytes = head->count + 1;
    remote_arg arguments[3] = {{.buf = {&bytes, sizeof bytes}}, {.buf = {uri, bytes}}, {.buf = {&object, sizeof object}}};
    const int code = found->invoke(0, REMOTE_SCALARS_MAKE(0, 2, 1), arguments);
    if (code) return code;
  }
  struct opened *made = place();
  if (!made) return refuse(AEE_ENOMEMORY, "There is no memory for another handle.");
  if (!last_handle) { /* a handle of this core's process before is none of this one */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    last_handle = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  }
  *made = (struct opened){++last_handle, found, object};
  *answer = made->handle;
  return 0;
}

static int invoke(const struct head *head, struct opened *one) {
  remote_arg arguments[MOST_ARGUMENTS];
  const struct argument *given = (const struct argument *)(head + 1);
  const uint32_t count = REMOTE_SCALARS_LENGTH(head->word);
  uint32_t mapped = 0;
  if (head->count != count || REMOTE_SCALARS_INHANDLES(head->word) || REMOTE_SCALARS_OUTHANDLES(head->word))
    return refuse(AEE_EBADPARM, "The scalar word does not name the arguments that came.");
  int code = 0;
  for (; mapped < count; ++mapped) {
    remote_buf *buffer = &arguments[mapped].buf;
    *buffer = (remote_buf){NULL, given[mapped].size};
    if (!given[mapped].size) continue;
    buffer->pv = hb_dsp_mem_map(given[mapped].phy_addr, (int64_t)given[mapped].size);
    if (buffer->pv == MAP_FAILED) {
      code = refuse(AEE_EBADPARM, "An argument is no memory of the caller.");
      break;
    }
  }
  if (!code) code = one->interface->invoke(one->object, head->word, arguments);
  while (mapped--)
    if (given[mapped].size) hb_dsp_mem_unmap((uintptr_t)arguments[mapped].buf.pv);
  return code;
}

static int fastrpc(void *input, void *output, void *tm) {
  (void)tm;
  const struct head *head = input;
  if (!head) return refuse(AEE_ERPC, "The command takes the message of a FastRPC call; use remote_handle64_*.");
  if (head->kind == KIND_OPEN) return open_interface(head, output);
  if (head->kind == KIND_END) raise(SIGKILL);
  if (head->kind != KIND_INVOKE && head->kind != KIND_CLOSE) return refuse(AEE_ERPC, "There is no such kind of message.");
  struct opened *one = of_handle(head->handle);
  if (!one) return refuse(AEE_ENOSUCHHANDLE, "There is no such open handle on this core.");
  if (head->kind == KIND_INVOKE) return invoke(head, one);
  const struct opened closed = *one;
  *one = (struct opened){0};
  return closed.interface->has_handle ? closed.interface->invoke(closed.object, REMOTE_SCALARS_MAKE(1, 0, 0), NULL) : 0;
}

EXPORT int hbrt_fastrpc_register(const char *symbol, hbrt_fastrpc_invoke invoke_function, int has_handle) {
  if (interface_count == MOST_INTERFACES || strlen(symbol) >= MOST_NAME) return AEE_EFAILED;
  struct interface *made = &interfaces[interface_count++];
  snprintf(made->symbol, sizeof made->symbol, "%s", symbol);
  made->invoke = invoke_function;
  made->has_handle = has_handle;
  return interface_count == 1 ? hb_dsp_register_fn(COMMAND, fastrpc, 0) : 0;
}
