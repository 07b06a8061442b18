/* A picture goes from memory of a dma-buf heap to a dumb buffer, as programs for boards allocate them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "im2d.h"

#define CHECK(what) \
  if (!(what)) return __LINE__
enum { W = 20, H = 4 };

struct dumb { uint32_t height, width, bpp, flags, handle, pitch; uint64_t size; };
struct map { uint32_t handle, pad; uint64_t offset; };
struct prime { uint32_t handle, flags; int32_t fd; };
#define CREATE_DUMB _IOWR('d', 0xb2, struct dumb)
#define MAP_DUMB _IOWR('d', 0xb3, struct map)
#define DESTROY_DUMB _IOWR('d', 0xb4, uint32_t)
#define HANDLE_TO_FD _IOWR('d', 0x2d, struct prime)
#define FD_TO_HANDLE _IOWR('d', 0x2e, struct prime)

static int refuses(int heap, int card, int buffer) {
  struct dma_heap_allocation_data none = {.fd_flags = O_RDWR}, wrong = {.len = 1, .heap_flags = 1};
  CHECK(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &none) == -1 && errno == EINVAL);
  CHECK(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &wrong) == -1 && errno == EINVAL);
  CHECK(ioctl(buffer, DMA_HEAP_IOCTL_ALLOC, &wrong) == -1 && errno == ENOTTY);
  CHECK(ioctl(heap, DMA_BUF_IOCTL_SYNC, &(struct dma_buf_sync){DMA_BUF_SYNC_RW}) == -1 && errno == ENOTTY);
  CHECK(ioctl(buffer, DMA_BUF_IOCTL_SYNC, &(struct dma_buf_sync){0}) == -1 && errno == EINVAL);
  CHECK(ioctl(buffer, DMA_BUF_IOCTL_SYNC, &(struct dma_buf_sync){0xff00}) == -1 && errno == EINVAL);
  CHECK(ioctl(card, MAP_DUMB, &(struct map){.handle = 77}) == -1 && errno == ENOENT);
  CHECK(ioctl(card, FD_TO_HANDLE, &(struct prime){.fd = heap}) == -1 && errno == EINVAL);
  CHECK(open("/dev/dma_heap/none", O_RDWR) == -1 && errno == ENOENT);
  CHECK(ioctl(card, CREATE_DUMB, &(struct dumb){.width = 0x40000001, .height = 1, .bpp = 32}) == -1 && errno == EINVAL);
  uint32_t taken = (uint32_t)buffer + 1; /* a descriptor of the program is not a handle */
  CHECK(ioctl(card, DESTROY_DUMB, &taken) == -1 && errno == EINVAL && fcntl(buffer, F_GETFD) >= 0);
  struct dma_heap_allocation_data read_only = {.len = 1, .fd_flags = O_CLOEXEC | O_RDONLY};
  CHECK(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &read_only) == 0);
  CHECK(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, (int)read_only.fd, 0) == MAP_FAILED && errno == EACCES);
  return close((int)read_only.fd) == 0 ? 0 : __LINE__;
}

/* What a card holds is released when it is closed, and its handles mean nothing to another card. */
static int cards(int card) {
  struct dumb dumb = {.width = W, .height = H, .bpp = 24}, other = dumb;
  CHECK(ioctl(card, CREATE_DUMB, &dumb) == 0);
  int first = -1;
  for (int at = 0; at < 5; at++) {
    int again = open("/dev/dri/card0", O_RDWR);
    if (first < 0) first = again;
    CHECK(again == first && ioctl(again, DESTROY_DUMB, &dumb.handle) == -1 && errno == EINVAL);
    CHECK(ioctl(again, CREATE_DUMB, &other) == 0 && close(again) == 0);
  }
  struct map one = {.handle = dumb.handle};
  CHECK(ioctl(card, MAP_DUMB, &one) == 0);
  CHECK(mmap(NULL, 1, PROT_READ, MAP_SHARED, card, (off_t)one.offset + 4096) == MAP_FAILED && errno == EINVAL);
  CHECK(mmap(NULL, 1, PROT_READ, MAP_SHARED, card, 0) == MAP_FAILED && errno == EINVAL);
  return ioctl(card, DESTROY_DUMB, &dumb.handle) == 0 ? 0 : __LINE__;
}

int main(void) {
  int heap = open("/dev/dma_heap/system-uncached", O_RDWR | O_CLOEXEC), card = open("/dev/dri/card0", O_RDWR);
  struct dma_heap_allocation_data made = {.len = W * H * 3, .fd_flags = O_CLOEXEC | O_RDWR};
  CHECK(heap >= 0 && card >= 0 && ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &made) == 0 && made.len == W * H * 3);
  uint8_t *from = mmap(NULL, made.len, PROT_READ | PROT_WRITE, MAP_SHARED, (int)made.fd, 0);
  CHECK(from != MAP_FAILED && ioctl((int)made.fd, DMA_BUF_IOCTL_SYNC, &(struct dma_buf_sync){DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW}) == 0);
  for (int at = 0; at < W * H * 3; at++) from[at] = (uint8_t)at;

  struct dumb dumb = {.width = W, .height = H, .bpp = 24};
  CHECK(ioctl(card, CREATE_DUMB, &dumb) == 0 && dumb.pitch == 64 && dumb.size == 64 * H);
  struct map map = {.handle = dumb.handle};
  struct prime prime = {.handle = dumb.handle, .flags = O_CLOEXEC};
  CHECK(ioctl(card, MAP_DUMB, &map) == 0 && ioctl(card, HANDLE_TO_FD, &prime) == 0);
  uint8_t *to = mmap(NULL, dumb.size, PROT_READ | PROT_WRITE, MAP_SHARED, card, (off_t)map.offset);
  CHECK(to != MAP_FAILED && mmap(NULL, 2 * 4096, PROT_READ, MAP_SHARED, card, (off_t)map.offset) == MAP_FAILED);

  im_handle_param_t shape = {W, H, RK_FORMAT_RGB_888};
  rga_buffer_handle_t in = importbuffer_fd((int)made.fd, &shape), out = importbuffer_fd(prime.fd, &shape);
  CHECK(imflip(wrapbuffer_handle(in, W, H, RK_FORMAT_RGB_888), wrapbuffer_handle(out, W, H, RK_FORMAT_RGB_888), IM_HAL_TRANSFORM_FLIP_V) == IM_STATUS_SUCCESS);
  for (int y = 0; y < H; y++) CHECK(memcmp(to + y * W * 3, from + (H - 1 - y) * W * 3, W * 3) == 0);
  CHECK(releasebuffer_handle(in) == IM_STATUS_SUCCESS && releasebuffer_handle(out) == IM_STATUS_SUCCESS);

  pid_t child = fork(); /* the buffer is the same one there */
  if (child == 0) _exit(mmap(to, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, card, (off_t)map.offset) == to ? (to[0] = 99) : 1);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 99 && to[0] == 99);

  struct prime again = {.fd = prime.fd};
  CHECK(ioctl(card, FD_TO_HANDLE, &again) == 0 && again.handle == dumb.handle);
  CHECK(ioctl(card, DESTROY_DUMB, &dumb.handle) == 0 && ioctl(card, DESTROY_DUMB, &dumb.handle) == -1 && to[0] == 99);
  CHECK(ioctl(card, FD_TO_HANDLE, &again) == 0 && again.handle != dumb.handle);
  int line = cards(card);
  if (line) return line;
  return refuses(heap, card, prime.fd);
}
