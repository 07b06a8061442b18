/** Device buffers as a board's kernel provides them: /dev/dma_heap, and the dumb buffers of /dev/dri/card0.
 *
 * A program linked with this library calls these open(), ioctl() and mmap() before libc's. They act like libc's; if the
 * host lacks such a device, or denies access to it, they emulate it. A device and a buffer are memfds, recognized by
 * their names, so dup(), fork() and other processes need no table. Each card has one table of handles. Buffers are
 * coherent: there is no cache to sync.
 *
 * Sources: the kernel's linux/dma-heap.h and linux/dma-buf.h; drm/drm.h and drm/drm_mode.h from Debian's libdrm-dev.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* open() and open64() are two functions here */
#undef _TIME_BITS
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define HEAP "hbrt-dma-heap"
#define CARD "hbrt-dri-card"
#define BUFFER "hbrt-buffer"
/* The next function with the same name as this library's; looked up before main(), since a signal handler may call it
 * first. */
#define NEXT(name) ((__typeof__(&name))next_of(&next_##name, #name))
static void *_Atomic next_open, *_Atomic next_open64, *_Atomic next_ioctl, *_Atomic next_mmap64;

static void *next_of(void *_Atomic *found, const char *name) {
  if (!*found) *found = dlsym(RTLD_NEXT, name);
  return *found;
}

__attribute__((constructor)) static void find_all(void) {
  (void)NEXT(open), (void)NEXT(open64), (void)NEXT(ioctl), (void)NEXT(mmap64);
}

/* From drm/drm.h and drm/drm_mode.h. */
struct dumb {
  uint32_t height, width, bpp, flags, handle, pitch;
  uint64_t size;
};
struct map {
  uint32_t handle, pad;
  uint64_t offset;
};
struct prime {
  uint32_t handle, flags;
  int32_t fd;
};
struct capability {
  uint64_t name, value;
};
struct close {
  uint32_t handle, pad;
};
#define CARD_TYPE 'd'
#define GEM_CLOSE _IOW(CARD_TYPE, 0x09, struct close)
#define GET_CAP _IOWR(CARD_TYPE, 0x0c, struct capability)
#define PRIME_HANDLE_TO_FD _IOWR(CARD_TYPE, 0x2d, struct prime)
#define PRIME_FD_TO_HANDLE _IOWR(CARD_TYPE, 0x2e, struct prime)
#define CREATE_DUMB _IOWR(CARD_TYPE, 0xb2, struct dumb)
#define MAP_DUMB _IOWR(CARD_TYPE, 0xb3, struct map)
#define DESTROY_DUMB _IOWR(CARD_TYPE, 0xb4, uint32_t)
enum { CAP_DUMB_BUFFER = 1, CAP_PRIME = 5, CAN_IMPORT_AND_EXPORT = 3 };

enum { PAGE = 4096, PITCH = 64 }; /* bytes; Rockchip's driver aligns rows to multiples of PITCH */
enum { MAX_HANDLES = 4096, HANDLE_SHIFT = 32 }; /* mmap offset of a buffer: its handle, shifted above any size */

static const struct {
  const char *path, *name;
} DEVICES[] = {
    {"/dev/dma_heap/system", HEAP},
    {"/dev/dma_heap/system-dma32", HEAP},
    {"/dev/dma_heap/system-uncached", HEAP},
    {"/dev/dma_heap/system-uncached-dma32", HEAP},
    {"/dev/dma_heap/cma", HEAP},
    {"/dev/dma_heap/cma-uncached", HEAP},
    {"/dev/rk_dma_heap/rk-dma-heap-cma", HEAP},
    {"/dev/dri/card0", CARD},
};

/* A handle of a card and its buffer. Handles are never reused. */
typedef struct {
  uint32_t handle; /* 0: unused */
  int fd;
  ino_t card, buffer;
} kept;
static kept table[MAX_HANDLES];
static uint32_t last_handle;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool is_card_mapped; /* the program requested the mmap offset of a dumb buffer */

static int refused(int error) {
  errno = error;
  return -1;
}

/** Whether a descriptor is a memfd whose name has this prefix. */
static bool is(int fd, const char *name) {
  char link[64], path[32], wanted[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int before = errno;
  const ssize_t length = readlink(path, link, sizeof link);
  errno = before;
  const int count = snprintf(wanted, sizeof wanted, "/memfd:%s", name);
  return length >= count && memcmp(link, wanted, (size_t)count) == 0;
}

static ino_t inode(int fd) {
  struct stat of;
  return fstat(fd, &of) == 0 ? of.st_ino : 0;
}

/** Drop a handle, and close its descriptor if it still belongs to its buffer. */
static void drop(kept *one) {
  if (inode(one->fd) == one->buffer) close(one->fd);
  one->handle = 0;
}

/** Drop the handles of closed cards, as a kernel does on close. */
static void sweep(void) {
  bool is_open[MAX_HANDLES] = {false};
  DIR *all = opendir("/proc/self/fd");
  if (all == NULL) return;
  pthread_mutex_lock(&table_lock);
  for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
    const int fd = atoi(entry->d_name);
    const ino_t card = is(fd, CARD) ? inode(fd) : 0;
    for (int at = 0; card && at < MAX_HANDLES; at++) is_open[at] |= table[at].card == card;
  }
  for (int at = 0; at < MAX_HANDLES; at++)
    if (table[at].handle && !is_open[at]) drop(&table[at]);
  pthread_mutex_unlock(&table_lock);
  closedir(all);
}

/** open() failed on this path: return the emulation if it is one of the devices. */
static int opened(const char *path, int flags) {
  if (errno != ENOENT && errno != EACCES && errno != EPERM) return -1;
  for (size_t at = 0; at < sizeof DEVICES / sizeof *DEVICES; at++) {
    if (strcmp(path, DEVICES[at].path) != 0) continue;
    if (strcmp(DEVICES[at].name, CARD) == 0) sweep();
    return memfd_create(DEVICES[at].name, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
  }
  return -1;
}

/** Open a memfd for reading, writing or both, instead of or in addition to the given descriptor. */
static int opened_as(int fd, unsigned flags) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return NEXT(open)(path, (int)(flags & (O_ACCMODE | O_CLOEXEC)));
}

static int made(uint64_t size) {
  if (size == 0 || size > INT64_MAX - PAGE) return refused(EINVAL);
  const int fd = memfd_create(BUFFER, MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, (off_t)((size + PAGE - 1) / PAGE * PAGE)) == 0) return fd;
  const int error = errno;
  close(fd);
  return refused(error);
}

static int allocate(struct dma_heap_allocation_data *given) {
  if (given->fd || given->heap_flags || given->fd_flags & ~(unsigned)(O_CLOEXEC | O_ACCMODE)) return refused(EINVAL);
  const int memory = made(given->len);
  if (memory < 0) return -1;
  const int fd = opened_as(memory, given->fd_flags), error = errno;
  close(memory);
  if (fd < 0) return refused(error);
  given->fd = (uint32_t)fd;
  return 0;
}

static int sync_of(const struct dma_buf_sync *given) {
  return given->flags & ~(uint64_t)DMA_BUF_SYNC_VALID_FLAGS_MASK || !(given->flags & DMA_BUF_SYNC_RW) ? refused(EINVAL) : 0;
}

/* The caller of these must hold the lock. */
static kept *of_handle(ino_t card, uint32_t handle) {
  for (kept *one = table; one < table + MAX_HANDLES; one++)
    if (handle && one->handle == handle && one->card == card) return one;
  return NULL;
}

static kept *of_buffer(ino_t card, ino_t buffer) {
  for (kept *one = table; one < table + MAX_HANDLES; one++)
    if (one->handle && one->card == card && one->buffer == buffer) return one;
  return NULL;
}

/** Store a buffer under a new handle; the table then owns the descriptor. */
static uint32_t keep(ino_t card, int fd) {
  for (kept *one = table; one < table + MAX_HANDLES; one++) {
    if (one->handle) continue;
    *one = (kept){++last_handle, fd, card, inode(fd)};
    return one->handle;
  }
  close(fd);
  errno = ENOSPC;
  return 0;
}

static int create(ino_t card, struct dumb *given) {
  const uint64_t pitch = ((uint64_t)given->width * ((given->bpp + 7) / 8) + PITCH - 1) / PITCH * PITCH;
  if (!given->width || !given->height || !given->bpp || given->bpp > 128 || pitch > UINT32_MAX) return refused(EINVAL);
  const int fd = made(pitch * given->height);
  if (fd < 0) return -1;
  given->handle = keep(card, fd);
  given->pitch = (uint32_t)pitch;
  given->size = pitch * given->height;
  return given->handle ? 0 : -1;
}

static int export_to(ino_t card, struct prime *given) {
  const kept *found = of_handle(card, given->handle);
  if (!found) return refused(ENOENT);
  given->fd = opened_as(found->fd, given->flags | O_RDWR); /* devices write there, regardless of what the program may do */
  return given->fd < 0 ? -1 : 0;
}

static int import_from(ino_t card, struct prime *given) {
  if (!is(given->fd, BUFFER)) return refused(EINVAL);
  const kept *known = of_buffer(card, inode(given->fd));
  const int fd = known ? -1 : opened_as(given->fd, O_RDWR | O_CLOEXEC);
  given->handle = known ? known->handle : fd < 0 ? 0 : keep(card, fd);
  return given->handle ? 0 : -1;
}

static int place(ino_t card, struct map *given) {
  if (!of_handle(card, given->handle)) return refused(ENOENT);
  given->offset = (uint64_t)given->handle << HANDLE_SHIFT;
  is_card_mapped = true;
  return 0;
}

static int let_go(ino_t card, uint32_t handle) {
  kept *found = of_handle(card, handle);
  if (!found) return refused(EINVAL);
  drop(found);
  return 0;
}

static int capability(struct capability *given) {
  given->value = given->name == CAP_DUMB_BUFFER ? 1 : 0;
  if (given->name == CAP_PRIME) given->value = CAN_IMPORT_AND_EXPORT;
  return 0;
}

static int of_card(ino_t card, unsigned long request, void *given) {
  switch (request) {
    case CREATE_DUMB: return create(card, given);
    case MAP_DUMB: return place(card, given);
    case DESTROY_DUMB: return let_go(card, *(uint32_t *)given);
    case GEM_CLOSE: return let_go(card, ((struct close *)given)->handle);
    case PRIME_HANDLE_TO_FD: return export_to(card, given);
    case PRIME_FD_TO_HANDLE: return import_from(card, given);
    case GET_CAP: return capability(given);
    default: fprintf(stderr, "hbrt: warning: ioctl %#lx of /dev/dri/card0: only its dumb buffers are emulated.\n", request);
  }
  return refused(EINVAL);
}

/** The request has no meaning for the real descriptor: answer for the device that it emulates. */
static int answered(int fd, unsigned long request, void *given) {
  if (request == DMA_HEAP_IOCTL_ALLOC && is(fd, HEAP)) return allocate(given);
  if (request == DMA_BUF_IOCTL_SYNC && is(fd, BUFFER)) return sync_of(given);
  if (_IOC_TYPE(request) != CARD_TYPE || !is(fd, CARD)) return -1;
  pthread_mutex_lock(&table_lock);
  const int answer = of_card(inode(fd), request, given), error = errno;
  pthread_mutex_unlock(&table_lock);
  errno = error;
  return answer;
}

/** Map a buffer given by its offset in a card, whole or from its start. */
static void *mapped(void *address, size_t length, int protection, int flags, int card, uint64_t offset) {
  struct stat of = {0};
  void *at = MAP_FAILED;
  pthread_mutex_lock(&table_lock); /* until it is mapped: another thread may destroy the buffer */
  const kept *found = of_handle(inode(card), (uint32_t)(offset >> HANDLE_SHIFT));
  errno = EINVAL;
  if (found && !(uint32_t)offset && fstat(found->fd, &of) == 0 && length <= (size_t)of.st_size)
    at = NEXT(mmap64)(address, length, protection, flags, found->fd, 0);
  pthread_mutex_unlock(&table_lock);
  return at;
}

/** Where the block of a descriptor begins in the board's DDR: at the position of one opened for a block, which has
 * O_NONBLOCK as its mark. 0 for other files, the board's own descriptor among them: its position is anywhere. No block is
 * at the DDR's start: -1, with a message, for a program that moved the position there. */
static off64_t begin_of(int fd) {
  const int before = errno;
  const bool is_block = fd >= 0 && fcntl(fd, F_GETFL) & O_NONBLOCK && is(fd, "hbrt-ddr");
  const off64_t at = is_block ? lseek64(fd, 0, SEEK_CUR) : 0;
  errno = before;
  if (!is_block || at > 0) return at;
  fprintf(stderr, "hbrt: mmap: The descriptor %d was moved to 0 by lseek(); leave it where rknn_create_mem() put it.\n", fd);
  errno = EINVAL;
  return -1;
}

static mode_t mode_of(int flags, va_list *arguments) {
  return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(*arguments, mode_t) : 0;
}

#define OPEN(name)                                                       \
  EXPORT int name(const char *path, int flags, ...) {                    \
    va_list arguments;                                                   \
    va_start(arguments, flags);                                          \
    const mode_t mode = mode_of(flags, &arguments);                      \
    va_end(arguments);                                                   \
    const int fd = NEXT(name)(path, flags, mode);                        \
    return fd < 0 ? opened(path, flags) : fd;                            \
  }
OPEN(open)
OPEN(open64)

/* The name of open() in programs built with _FORTIFY_SOURCE. */
EXPORT int __open_2(const char *path, int flags) { return open(path, flags); }
EXPORT int __open64_2(const char *path, int flags) { return open64(path, flags); }

EXPORT int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void *given = va_arg(arguments, void *);
  va_end(arguments);
  const int answer = NEXT(ioctl)(fd, request, given);
  return answer == -1 && errno == ENOTTY ? answered(fd, request, given) : answer;
}

EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
  if (is_card_mapped && is(fd, CARD)) return mapped(address, length, protection, flags, fd, (uint64_t)offset);
  const off64_t begin = begin_of(fd);
  return begin < 0 ? MAP_FAILED : NEXT(mmap64)(address, length, protection, flags, fd, offset + begin);
}

EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  return mmap64(address, length, protection, flags, fd, offset);
}
