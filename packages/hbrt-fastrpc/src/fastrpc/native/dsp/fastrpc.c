/* FastRPC in an image in C: the op that opens, invokes and closes, using the skeletons registered by the image.
 *
 * fastrpc/wire/message.py defines a call's bytes; fastrpc/dsp/skeleton.py is the counterpart for images in Python. */
#include "fastrpc.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "AEEStdErr.h"
#include "hb_dsp.h"
#include "remote.h"

enum { COMMAND = 0xfa57, KIND_OPEN = 1, KIND_INVOKE = 2, KIND_CLOSE = 3, KIND_END = 4, KIND_WAKE = 5, MAX_INTERFACES = 64, MAX_ARGUMENTS = 510, MAX_NAME = 128, MAX_URI = 1024, MAX_CLIENTS = 1024 };

struct head {
  uint32_t kind, word;
  uint64_t handle;
  uint32_t count, limit_kib;
};

/* A row of the program's descriptor table, see fastrpc/wire/message.py. */
struct descriptor {
  int32_t fd;
  uint32_t is_used;
  uint64_t phy_addr, size;
};
enum { PAGE = 4096, TABLE_BYTES = 1 << 14 };

struct argument {
  uint64_t phy_addr, size;
};

struct interface {
  char symbol[MAX_NAME];
  hbrt_fastrpc_invoke invoke;
  int has_handle;
};

struct opened {
  uint64_t handle; /* 0 if the entry is free */
  const struct interface *interface;
  remote_handle64 object;
  uint32_t client, pid; /* of the program that opened it */
  uint64_t limit_bytes;
};

static int64_t used_bytes[MAX_CLIENTS]; /* what a limited program's objects have allocated */
static int is_limited;
static struct interface interfaces[MAX_INTERFACES];
static int interface_count;
static struct opened *opened;
static size_t opened_count;
static uint64_t last_handle;
static _Atomic uint64_t table_addr; /* of the program that sent the latest invocation */

struct mapping { /* from HAP_mmap_get */
  int fd, users;
  void *address;
  uint64_t phy_addr, size;
};
static struct mapping mappings[256];
static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;

int hbrt_fastrpc_refuse(int code, const char *sentence) {
  hb_dsp_log(HB_DSP_LOG_ERROR, "%s", sentence);
  return HBRT_FASTRPC_ON_DSP(code);
}

/* A free entry for a handle; NULL without memory. */
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

/* Bytes of the process that count toward RLIMIT_DATA. */
static int64_t data_bytes(void) {
  char text[128] = "";
  long long data = 0;
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  if (read(fd, text, sizeof text - 1) > 0 && sscanf(text, "%*s %*s %*s %*s %*s %lld", &data) != 1) data = 0;
  close(fd);
  return data * sysconf(_SC_PAGESIZE);
}

static void limit(rlim_t bytes) {
  struct rlimit now;
  if (getrlimit(RLIMIT_DATA, &now)) return;
  now.rlim_cur = bytes < now.rlim_max ? bytes : now.rlim_max;
  is_limited = !setrlimit(RLIMIT_DATA, &now) && bytes != RLIM_INFINITY;
}

static void unlimit(void) {
  if (is_limited) limit(RLIM_INFINITY);
}

/* Call a skeleton, limiting its memory to what its program has left. */
static int call(const struct opened *one, uint32_t word, remote_arg *arguments, remote_handle64 object) {
  if (!one->limit_bytes || one->client >= MAX_CLIENTS) return one->interface->invoke(object, word, arguments);
  hbrt_dsp_at_end = unlimit; /* a call that ends the op leaves the limit set */
  const int64_t before = data_bytes(), left = (int64_t)one->limit_bytes - used_bytes[one->client];
  limit((rlim_t)(before + (left > 0 ? left : 0)));
  const int code = one->interface->invoke(object, word, arguments);
  unlimit();
  used_bytes[one->client] += data_bytes() - before;
  return code;
}

static int close_object(struct opened *one) {
  const struct opened closed = *one;
  *one = (struct opened){0};
  return closed.interface->has_handle ? closed.interface->invoke(closed.object, REMOTE_SCALARS_MAKE(1, 0, 0), NULL) : 0;
}

/* Close what ended programs have left open. */
static void forget_ended(void) {
  for (size_t at = 0; at < opened_count; ++at) {
    if (!opened[at].handle || (uint32_t)hbrt_dsp_client((int32_t)opened[at].client) == opened[at].pid) continue;
    const uint32_t client = opened[at].client;
    hbrt_dspqueue_forget(client);
    if (client < MAX_CLIENTS) used_bytes[client] = 0;
    close_object(&opened[at]);
  }
}

/* Copy the part of a message after its header, which the program can change at any time: 1; 0 if the task's input is
 * shorter. */
static int copy_rest(void *rest, uint64_t bytes, const void *input, uint64_t input_bytes) {
  if (input_bytes - sizeof(struct head) < bytes) return 0;
  memcpy(rest, (const struct head *)input + 1, bytes);
  return 1;
}

/* MAJOR.MINOR.PATCH as one number; an omitted part is 0. -1 for other text. */
static long version_of(const char *text) {
  long all = 0;
  for (int at = 0; at < 3; ++at) {
    long one = 0;
    const char *end = text;
    while (*end >= '0' && *end <= '9' && one <= 999) one = one * 10 + *end++ - '0';
    if (one > 999 || (end == text && (!at || *text == '.'))) return -1;
    all = all * 1000 + one;
    text = end + (*end == '.' && at < 2);
  }
  return *text && *text != '&' ? -1 : all;
}

EXPORT int hbrt_fastrpc_is_newer(const char *uri, const char *version) {
  const char *found = strstr(uri, "&_idlver=");
  const long asked = found ? version_of(found + strlen("&_idlver=")) : -1;
  const int is_newer = asked < 0 || asked > version_of(version);
  if (is_newer) hb_dsp_log(HB_DSP_LOG_ERROR, "The skeleton has version %s of its IDL file, but the URI '%s' requires a newer one or names none; build both from the same file.", version, uri);
  return is_newer;
}

static int open_interface(const struct head *head, const void *input, const struct frame *task, void *answer) {
  char uri[MAX_URI + 1], text[MAX_URI + 256];
  if (head->count > MAX_URI || task->output_bytes < sizeof(uint64_t) || !copy_rest(uri, head->count, input, task->input_bytes))
    return hbrt_fastrpc_refuse(AEE_ERPC, "An open must have a URI of at most 1024 bytes as input, and 8 bytes of output for the handle.");
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
    return hbrt_fastrpc_refuse(AEE_EUNABLETOLOAD, text);
  }
  forget_ended();
  const uint64_t program = hbrt_dsp_client(-1);
  struct opened mine = {0, found, 0, (uint32_t)(program >> 32), (uint32_t)program, (uint64_t)head->limit_kib << 10};
  remote_handle64 object = 0;
  if (found->has_handle) {
    uint32_t bytes = head->count + 1;
    remote_arg arguments[3] = {{.buf = {&bytes, sizeof bytes}}, {.buf = {uri, bytes}}, {.buf = {&object, sizeof object}}};
    const int code = call(&mine, REMOTE_SCALARS_MAKE(0, 2, 1), arguments, 0);
    if (code) return code;
  }
  struct opened *made = place();
  if (!made) return hbrt_fastrpc_refuse(AEE_ENOMEMORY, "Out of memory for another handle.");
  if (!last_handle) { /* so that handles of this core's previous process are invalid here */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    last_handle = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  }
  mine.handle = ++last_handle;
  mine.object = object;
  *made = mine;
  memcpy(answer, &made->handle, sizeof made->handle);
  return 0;
}

static int invoke(const struct head *head, const void *input, uint64_t input_bytes, struct opened *one) {
  remote_arg arguments[MAX_ARGUMENTS];
  struct argument given[MAX_ARGUMENTS];
  const uint32_t count = REMOTE_SCALARS_LENGTH(head->word);
  uint32_t mapped = 0;
  const uint32_t buffers = REMOTE_SCALARS_INBUFS(head->word) + REMOTE_SCALARS_OUTBUFS(head->word);
  if (head->count != count || count > MAX_ARGUMENTS || REMOTE_SCALARS_OUTHANDLES(head->word) ||
      !copy_rest(given, count * sizeof *given, input, input_bytes))
    return hbrt_fastrpc_refuse(AEE_EBADPARM, "The scalar word does not match the arguments.");
  if (one->interface->has_handle && REMOTE_SCALARS_METHOD(head->word) < 2)
    return hbrt_fastrpc_refuse(AEE_EUNSUPPORTED, "Methods 0 and 1 of an interface with handles are reserved for open and close.");
  int code = 0;
  table_addr = (uint64_t)head->limit_kib * PAGE;
  for (uint32_t at = buffers; at < count; ++at) arguments[at] = (remote_arg){.h64 = given[at].phy_addr};
  for (; mapped < buffers; ++mapped) {
    remote_buf *buffer = &arguments[mapped].buf;
    *buffer = (remote_buf){NULL, given[mapped].size};
    if (!given[mapped].size) continue;
    buffer->pv = hb_dsp_mem_map(given[mapped].phy_addr, (int64_t)given[mapped].size);
    if (buffer->pv == MAP_FAILED) {
      code = hbrt_fastrpc_refuse(AEE_EBADPARM, "An argument is not in the caller's memory.");
      break;
    }
  }
  if (!code) {
    const struct opened mine = *one; /* an urgent call inside this one may move the table */
    code = call(&mine, head->word, arguments, mine.object);
  }
  while (mapped--)
    if (given[mapped].size) hb_dsp_mem_unmap((uintptr_t)arguments[mapped].buf.pv);
  return code;
}

static int fastrpc(void *input, void *output, void *tm) {
  (void)tm;
  const struct frame *task = hbrt_dsp_frame;
  struct head head;
  if (task->input_bytes < sizeof head) return hbrt_fastrpc_refuse(AEE_ERPC, "The command expects a FastRPC message; use remote_handle64_*.");
  memcpy(&head, input, sizeof head);
  if (head.kind == KIND_OPEN) return open_interface(&head, input, task, output);
  if (head.kind == KIND_END) raise(SIGKILL);
  if (head.kind == KIND_WAKE) return hbrt_dspqueue_serve(head.handle, hbrt_dsp_task_client());
  if (head.kind != KIND_INVOKE && head.kind != KIND_CLOSE) return hbrt_fastrpc_refuse(AEE_ERPC, "Unknown message kind.");
  struct opened *one = of_handle(head.handle);
  if (!one || one->client != hbrt_dsp_task_client())
    return hbrt_fastrpc_refuse(AEE_ENOSUCHHANDLE, "Unknown handle: this program has not opened it on this core.");
  return head.kind == KIND_INVOKE ? invoke(&head, input, task->input_bytes, one) : close_object(one);
}

static int (*offered[MAX_INTERFACES])(void);
static int offered_count;

EXPORT int hbrt_fastrpc_main(void) {
  int code = hb_dsp_env_init();
  for (int at = 0; !code && at < offered_count; ++at) code = offered[at]();
  return code ? code : hb_dsp_start();
}

EXPORT void hbrt_fastrpc_offer(int (*register_interface)(void)) {
  hbrt_dsp_offered_main = hbrt_fastrpc_main;
  for (int at = 0; at < offered_count; ++at)
    if (offered[at] == register_interface) return;
  if (offered_count < MAX_INTERFACES) offered[offered_count++] = register_interface;
}

/* The memory behind a descriptor of the program that sent the latest invocation; 0, or -1 if there is none. */
static int find_descriptor(int fd, struct descriptor *found) {
  const uint64_t at = table_addr;
  const struct descriptor *table = at ? hb_dsp_mem_map(at, TABLE_BYTES) : MAP_FAILED;
  if (table == MAP_FAILED) return -1;
  int code = -1;
  for (size_t row = 0; code && row < TABLE_BYTES / sizeof *table; ++row)
    if (*found = table[row], found->is_used == 1 && found->fd == fd) code = 0;
  hb_dsp_mem_unmap((uintptr_t)table);
  return code;
}

EXPORT int adsp_mmap_fd_getinfo(int fd, uint32_t *len) {
  struct descriptor found;
  if (!len || find_descriptor(fd, &found)) return -1;
  *len = found.size > UINT32_MAX ? UINT32_MAX : (uint32_t)found.size;
  return 0;
}

/* A descriptor that refers to different memory by now is mapped again. */
EXPORT int HAP_mmap_get(int fd, void **vaddr, uint64_t *paddr) {
  struct descriptor found;
  if (find_descriptor(fd, &found)) return AEE_ENOSUCHMAP;
  void *address = hb_dsp_mem_map(found.phy_addr, (int64_t)found.size); /* an earlier one may belong to another program */
  if (address == MAP_FAILED) return AEE_ENOSUCHMAP;
  int code = AEE_ENOMEMORY;
  pthread_mutex_lock(&mappings_lock);
  struct mapping *place = NULL;
  for (size_t at = 0; at < sizeof mappings / sizeof *mappings; ++at) {
    struct mapping *one = &mappings[at];
    if (one->users && one->fd == fd && one->phy_addr == found.phy_addr && one->size == found.size) {
      place = one;
      break;
    }
    if (!one->users && !place) place = one;
  }
  if (!place || place->users) hb_dsp_mem_unmap((uintptr_t)address);
  else *place = (struct mapping){fd, 0, address, found.phy_addr, found.size};
  if (place) {
    ++place->users;
    if (vaddr) *vaddr = place->address;
    if (paddr) *paddr = place->phy_addr;
    code = 0;
  }
  pthread_mutex_unlock(&mappings_lock);
  return code;
}

EXPORT int HAP_mmap_put(int fd) {
  int code = AEE_ENOSUCHMAP;
  pthread_mutex_lock(&mappings_lock);
  for (size_t at = 0; code && at < sizeof mappings / sizeof *mappings; ++at) {
    struct mapping *one = &mappings[at];
    if (!one->users || one->fd != fd) continue;
    if (!--one->users) hb_dsp_mem_unmap((uintptr_t)one->address);
    code = 0;
  }
  pthread_mutex_unlock(&mappings_lock);
  return code;
}

EXPORT int hbrt_fastrpc_register(const char *symbol, hbrt_fastrpc_invoke invoke_function, int has_handle) {
  if (interface_count == MAX_INTERFACES || strlen(symbol) >= MAX_NAME) return AEE_EFAILED;
  struct interface *made = &interfaces[interface_count++];
  snprintf(made->symbol, sizeof made->symbol, "%s", symbol);
  made->invoke = invoke_function;
  made->has_handle = has_handle;
  return interface_count == 1 ? hb_dsp_register_fn(COMMAND, fastrpc, 0) : 0;
}
