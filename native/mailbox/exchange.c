/* Control requests over a lease's packet connection; docs/mailbox.md describes the packets.
 *
 * A signal handler may raise between two Python bytecodes, so the caller may be gone when the answer arrives. So a
 * request is sent whole or not at all, `is_sent` says which, and its answer stays here until someone takes it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "mailbox.h"

enum { FREE, TAKEN, AWAITED }; /* values of `turn` */
enum { PACKET_BYTES = 1 << 16 };
static const uint64_t MAX_ANSWER_BYTES = 1u << 26;

typedef struct {
    uint64_t bytes, number;
} head;

typedef struct answer {
    struct answer *next;
    uint64_t number, bytes, come_bytes;
    uint32_t readers; /* threads between hbrt_answer and hbrt_answer_end */
    uint8_t message[];
} answer;

struct hbrt_lease {
    int fd;
    struct stat file; /* what `fd` is, since a program may close all descriptors and reuse their numbers */
    uint32_t turn; /* futex: one thread sends or receives at a time */
    uint32_t inside; /* threads in hbrt_exchange */
    uint32_t is_closed;
    answer *coming; /* partly received; belongs to the thread whose turn it is */
    uint8_t packet[PACKET_BYTES];
    pthread_mutex_t lock; /* protects the answers */
    answer *answers;
};

hbrt_lease *hbrt_lease_new(int fd) {
    /* Mapped, not allocated: a C program's leak checker cannot see Python's pointers to it. */
    hbrt_lease *lease = mmap(NULL, sizeof *lease, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lease == MAP_FAILED) return NULL;
    lease->fd = fd;
    fstat(fd, &lease->file);
    pthread_mutex_init(&lease->lock, NULL);
    return lease;
}

void hbrt_lease_free(hbrt_lease *lease) {
    for (answer *next, *one = lease->answers; one != NULL; one = next) {
        next = one->next;
        free(one);
    }
    free(lease->coming);
    pthread_mutex_destroy(&lease->lock);
    munmap(lease, sizeof *lease);
}

int hbrt_lease_is_open(const hbrt_lease *lease) {
    struct stat now;
    return lease != NULL && !fstat(lease->fd, &now) && now.st_ino == lease->file.st_ino && now.st_dev == lease->file.st_dev;
}

static int take_turn(hbrt_lease *lease, int64_t deadline_ns) {
    uint32_t is_free = FREE;
    if (__atomic_compare_exchange_n(&lease->turn, &is_free, TAKEN, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return 1;
    struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    while (__atomic_exchange_n(&lease->turn, AWAITED, __ATOMIC_ACQUIRE) != FREE) {
        long slept = syscall(SYS_futex, &lease->turn, FUTEX_WAIT_BITSET_PRIVATE, AWAITED, deadline_ns < 0 ? NULL : &until, NULL,
                             FUTEX_BITSET_MATCH_ANY);
        if (slept < 0 && errno == EINTR) return HBRT_INTERRUPTED;
        if (slept < 0 && errno == ETIMEDOUT) return HBRT_TIMEOUT;
    }
    return 1;
}

static void end_turn(hbrt_lease *lease) {
    if (__atomic_exchange_n(&lease->turn, FREE, __ATOMIC_RELEASE) == AWAITED)
        syscall(SYS_futex, &lease->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void hbrt_lease_close(hbrt_lease *lease) {
    struct timespec moment = {0, 50000};
    __atomic_store_n(&lease->is_closed, 1, __ATOMIC_SEQ_CST); /* the number of the file may soon be another one's */
    if (hbrt_lease_is_open(lease)) shutdown(lease->fd, SHUT_RDWR); /* makes threads that are sending or waiting return */
    while (__atomic_load_n(&lease->inside, __ATOMIC_SEQ_CST)) nanosleep(&moment, NULL);
}

/* Wait for an event on the connection. Returns 1, HBRT_TIMEOUT or HBRT_INTERRUPTED. */
static int await(const hbrt_lease *lease, short event, int64_t deadline_ns) {
    int64_t left = deadline_ns - (int64_t)hbrt_now_ns();
    if (left < 0) left = 0;
    struct timespec patience = {left / 1000000000, left % 1000000000};
    struct pollfd connection = {lease->fd, event, 0};
    int ready = ppoll(&connection, 1, deadline_ns < 0 ? NULL : &patience, NULL);
    return ready > 0 ? 1 : ready == 0 ? HBRT_TIMEOUT : HBRT_INTERRUPTED;
}

static int send_request(hbrt_lease *lease, uint64_t number, const void *request, uint64_t bytes, int *is_sent,
                        int64_t deadline_ns) {
    head first = {bytes, number};
    struct iovec parts[2] = {{&first, sizeof first}, {(void *)request, bytes}};
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 2};
    while (!*is_sent) {
        if (sendmsg(lease->fd, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
            *is_sent = 1;
        } else if (errno == EAGAIN) {
            int found = await(lease, POLLOUT, deadline_ns);
            if (found < 0) return found;
        } else if (errno != EINTR) {
            return HBRT_GONE;
        }
    }
    return 1;
}

/* The answer to a request; call it with the lock held. */
static answer *find(const hbrt_lease *lease, uint64_t number) {
    answer *one = lease->answers;
    while (one != NULL && one->number != number) one = one->next;
    return one;
}

static int has_come(hbrt_lease *lease, uint64_t number) {
    pthread_mutex_lock(&lease->lock);
    int is_there = find(lease, number) != NULL;
    pthread_mutex_unlock(&lease->lock);
    return is_there;
}

/* Store a packet; 0 if it cannot belong to an answer. */
static int keep(hbrt_lease *lease, uint64_t size) {
    const uint8_t *from = lease->packet;
    answer *one = lease->coming;
    if (one == NULL) {
        head first;
        if (size < sizeof first) return 0;
        memcpy(&first, from, sizeof first);
        from += sizeof first, size -= sizeof first;
        if (first.bytes > MAX_ANSWER_BYTES || (one = malloc(sizeof *one + first.bytes)) == NULL) return 0;
        *one = (answer){.number = first.number, .bytes = first.bytes};
        lease->coming = one;
    }
    if (size > one->bytes - one->come_bytes) return 0;
    memcpy(one->message + one->come_bytes, from, size);
    one->come_bytes += size;
    if (one->come_bytes < one->bytes) return 1;
    lease->coming = NULL;
    if (!one->number) { /* nobody waits for it */
        free(one);
        return 1;
    }
    pthread_mutex_lock(&lease->lock);
    one->next = lease->answers;
    lease->answers = one;
    pthread_mutex_unlock(&lease->lock);
    return 1;
}

static int exchange(hbrt_lease *lease, uint64_t number, const void *request, uint64_t bytes, int *is_sent,
                    int64_t timeout_ns) {
    int64_t deadline_ns = timeout_ns < 0 ? -1 : (int64_t)hbrt_now_ns() + timeout_ns;
    int found = take_turn(lease, deadline_ns);
    if (found < 0) return found;
    found = hbrt_lease_is_open(lease) ? send_request(lease, number, request, bytes, is_sent, deadline_ns) : HBRT_GONE;
    while (found > 0 && number && !has_come(lease, number)) {
        found = await(lease, POLLIN, deadline_ns);
        if (found < 0) break;
        ssize_t size = recv(lease->fd, lease->packet, sizeof lease->packet, MSG_DONTWAIT);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (size <= 0 || !keep(lease, (uint64_t)size)) found = HBRT_GONE;
    }
    end_turn(lease);
    return found;
}

int hbrt_exchange(hbrt_lease *lease, uint64_t number, const void *request, uint64_t bytes, int *is_sent, int64_t timeout_ns) {
    if (lease == NULL) return HBRT_GONE;
    __atomic_add_fetch(&lease->inside, 1, __ATOMIC_SEQ_CST);
    int found = HBRT_GONE;
    if (!__atomic_load_n(&lease->is_closed, __ATOMIC_SEQ_CST))
        found = exchange(lease, number, request, bytes, is_sent, timeout_ns);
    __atomic_sub_fetch(&lease->inside, 1, __ATOMIC_RELEASE);
    return found;
}

const void *hbrt_answer(hbrt_lease *lease, uint64_t number, uint64_t *bytes) {
    pthread_mutex_lock(&lease->lock);
    answer *one = find(lease, number);
    if (one != NULL) one->readers++;
    pthread_mutex_unlock(&lease->lock);
    if (one == NULL) return NULL;
    *bytes = one->bytes;
    return one->message;
}

void hbrt_answer_end(hbrt_lease *lease, const void *message) {
    answer *one = (answer *)((uintptr_t)message - offsetof(answer, message));
    pthread_mutex_lock(&lease->lock);
    int is_last = --one->readers == 0;
    if (is_last) {
        answer **at = &lease->answers;
        while (*at != one) at = &(*at)->next;
        *at = one->next;
    }
    pthread_mutex_unlock(&lease->lock);
    if (is_last) free(one);
}
