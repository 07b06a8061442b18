/** Buffers for devices where a board's kernel has them: /dev/dma_heap, and the dumb buffers of /dev/dri/card0.
 *
 * A program that is linked with this library calls these open(), ioctl() and mmap() before libc's. They do what libc's do;
 * where the host lacks such a device, or keeps it from the program, they stand in for it. A device and a buffer are memfds,
 * which their names tell: so dup(), fork() and other processes need no table. A buffer is coherent: there is no cache to sync.
 *
 * Sources: linux/dma-heap.h and linux/dma-buf.h of the kernel; drm/drm.h and drm/drm_mode.h, which Debian has in libdrm-dev.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define HEAP "hbrt-dma-heap"
#define CARD "hbrt-dri-card"
#define BUFFER "hbrt-buffer"
#define ANY "hbrt-"
/* The function behind this library's of the same name. */
#define NEXT(name)                                                                    \
  ({                                                                                  \
    static void *_Atomic found;                                                       \
    if (!found) found = dlsym(RTLD_NEXT, #name);                                      \
    (__typeof__(&name))found;                                                         \
  })

/* Of drm/drm.h and drm/drm_mode.h. */
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

enum { PAGE = 4096, PITCH = 64 }; /* bytes; Rockchip's driver begins rows at multiples of PITCH */

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

static _Atomic bool is_card_mapped; /* the program asked where to map a dumb buffer */

static int refused(int error) {
  errno = error;
  return -1;
}

/** Whether a descriptor is a memfd whose name begins so. */
static bool is(int fd, const char *name) {
  char link[64], path[32], wanted[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int before = errno;
  const ssize_t length = readlink(path, link, sizeof link);
  errno = before;
  const int count = snprintf(wanted, sizeof wanted, "/memfd:%s", name);
  return length >= count && memcmp(link, wanted, (size_t)count) == 0;
}

/** open() failed on this path: the stand-in, where it is of one of the devices. */
static int opened(const char *path, int flags) {
  if (errno != ENOENT && errno != EACCES) return -1;
  for (size_t at = 0; at < sizeof DEVICES / sizeof *DEVICES; at++)
    if (strcmp(path, DEVICES[at].path) == 0) return memfd_create(DEVICES[at].name, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
  return -1;
}

static int made(uint64_t size, unsigned flags) {
  if (size == 0 || size > INT64_MAX - PAGE) return refused(EINVAL);
  const int fd = memfd_create(BUFFER, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
  if (fd < 0 || ftruncate(fd, (off_t)((size + PAGE - 1) / PAGE * PAGE)) == 0) return fd;
  const int error = errno;
  close(fd);
  return refused(error);
}

static int allocate(struct dma_heap_allocation_data *given) {
  if (given->fd || given->heap_flags || given->fd_flags & ~(unsigned)(O_CLOEXEC | O_ACCMODE)) return refused(EINVAL);
  const int fd = made(given->len, given->fd_flags);
  if (fd < 0) return -1;
  given->fd = (uint32_t)fd;
  given->len = (given->len + PAGE - 1) / PAGE * PAGE;
  return 0;
}

/* A handle of the card is the descriptor that keeps the buffer, plus one: 0 is none. */
static int kept(uint32_t handle) { return handle && is((int)handle - 1, BUFFER) ? (int)handle - 1 : refused(ENOENT); }

static int create(struct dumb *given) {
  if (!given->width || !given->height || !given->bpp || given->bpp > 128) return refused(EINVAL);
  given->pitch = (uint32_t)(((uint64_t)given->width * ((given->bpp + 7) / 8) + PITCH - 1) / PITCH * PITCH);
  given->size = (uint64_t)given->pitch * given->height;
  const int fd = made(given->size, O_CLOEXEC);
  if (fd < 0) return -1;
  given->handle = (uint32_t)fd + 1;
  return 0;
}

static int export_to(struct prime *given) {
  const int fd = kept(given->handle);
  if (fd >= 0) given->fd = fcntl(fd, given->flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  return fd < 0 || given->fd < 0 ? -1 : 0;
}

static int import_from(struct prime *given) {
  if (!is(given->fd, BUFFER)) return refused(EINVAL);
  const int fd = fcntl(given->fd, F_DUPFD_CLOEXEC, 0);
  given->handle = (uint32_t)fd + 1;
  return fd < 0 ? -1 : 0;
}

static int place(struct map *given) {
  if (kept(given->handle) < 0) return -1;
  given->offset = (uint64_t)given->handle * PAGE;
  is_card_mapped = true;
  return 0;
}

static int let_go(uint32_t handle) {
  const int fd = kept(handle);
  return fd < 0 ? -1 : close(fd);
}

static int capability(struct capability *given) {
  given->value = given->name == CAP_DUMB_BUFFER ? 1 : 0;
  if (given->name == CAP_PRIME) given->value = CAN_IMPORT_AND_EXPORT;
  return 0;
}

static int of_card(unsigned long request, void *given) {
  switch (request) {
    case CREATE_DUMB: return create(given);
    case MAP_DUMB: return place(given);
    case DESTROY_DUMB: return let_go(*(uint32_t *)given);
    case GEM_CLOSE: return let_go(((struct close *)given)->handle);
    case PRIME_HANDLE_TO_FD: return export_to(given);
    case PRIME_FD_TO_HANDLE: return import_from(given);
    case GET_CAP: return capability(given);
    default: fprintf(stderr, "hbrt: warning: ioctl %#lx of /dev/dri/card0: only its dumb buffers are emulated.\n", request);
  }
  return refused(EINVAL);
}

/** The request has no meaning for what the descriptor is to the kernel: the answer of what it stands for. */
static int answered(int fd, unsigned long request, void *given) {
  if (request == DMA_HEAP_IOCTL_ALLOC && is(fd, HEAP)) return allocate(given);
  if (request == DMA_BUF_IOCTL_SYNC && is(fd, ANY)) return 0;
  if (_IOC_TYPE(request) == CARD_TYPE && is(fd, CARD)) return of_card(request, given);
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

/* What open() is where a program is built with _FORTIFY_SOURCE. */
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
  if (is_card_mapped && offset >= PAGE && is(fd, CARD)) {
    struct stat of;
    fd = kept((uint32_t)(offset / PAGE));
    offset = 0;
    if (fd < 0 || fstat(fd, &of) < 0 || length > (size_t)of.st_size) return refused(EINVAL), MAP_FAILED;
  }
  return NEXT(mmap64)(address, length, protection, flags, fd, offset);
}

EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  return mmap64(address, length, protection, flags, fd, offset);
}
