/* Two eventfds and a page, as eventfd_echo.py: `eventfd_echo serve SOCKET`, or a client, `eventfd_echo SOCKET`. */
#include "orders.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FDS = 3, PAGE = 4096 };

typedef struct {
  uint8_t *page;
  int asked, answered;
} line;

static line mine;

static void wait_for(int bell) {
  uint64_t rings;
  if (read(bell, &rings, sizeof rings) != sizeof rings) fail("read", bell);
}

static void ring(int bell) {
  static const uint64_t once = 1;
  if (write(bell, &once, sizeof once) != sizeof once) fail("write", bell);
}

static void ask(int n, const uint8_t *request) {
  (void)n; /* one call at a time */
  memcpy(mine.page, request, PAYLOAD);
  ring(mine.asked);
}

static void take(int n, uint8_t *reply) {
  (void)n;
  wait_for(mine.answered);
  memcpy(reply, mine.page + PAYLOAD, PAYLOAD);
}

static void *serve_line(void *served) {
  line *it = served;
  for (;;) {
    wait_for(it->asked);
    memcpy(it->page + PAYLOAD, it->page, PAYLOAD);
    ring(it->answered);
  }
  return NULL;
}

static uint8_t *map_page(int memory) {
  void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (page == MAP_FAILED) fail("mmap", memory);
  return page;
}

/* Send three descriptors, or receive them. */
static void pass(int connection, int *fds, int is_sent) {
  char byte = 0, room[CMSG_SPACE(FDS * sizeof(int))] = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  if (is_sent) {
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(FDS * sizeof(int));
    memcpy(CMSG_DATA(head), fds, FDS * sizeof(int));
  }
  if ((is_sent ? sendmsg(connection, &message, 0) : recvmsg(connection, &message, 0)) != 1) fail("descriptors", is_sent);
  if (!is_sent) memcpy(fds, CMSG_DATA(head), FDS * sizeof(int));
}

static void serve(int listener) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (listen(listener, 32) != 0) fail("listen", listener);
  puts("ready");
  fflush(stdout);
  for (;;) {
    int fds[FDS], connection = accept(listener, NULL, NULL);
    line *it = malloc(sizeof *it);
    pthread_t thread;
    if (connection < 0 || it == NULL) fail("accept", connection);
    pass(connection, fds, 0);
    *it = (line){map_page(fds[0]), fds[1], fds[2]};
    pthread_create(&thread, NULL, serve_line, it);
    close(connection);
  }
}

int main(int argc, char **argv) {
  int is_server = argc == 3, connection = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  snprintf(at.sun_path, sizeof at.sun_path, "%s", argv[argc - 1]);
  if (is_server) {
    if (bind(connection, (struct sockaddr *)&at, sizeof at) != 0) fail("bind", connection);
    serve(connection);
  }
  if (connect(connection, (struct sockaddr *)&at, sizeof at) != 0) fail("connect", connection);
  int memory = memfd_create("echo", 0);
  if (memory < 0 || ftruncate(memory, PAGE) != 0) fail("memfd", memory);
  mine = (line){map_page(memory), eventfd(0, 0), eventfd(0, 0)};
  pass(connection, (int[]){memory, mine.asked, mine.answered}, 1);
  call(0);
  return obey();
}
