/* iceoryx2's events and a page, as eventfd_echo.c: `iceoryx2_echo ROOT PREFIX` serves, `iceoryx2_echo ROOT PREFIX INDEX`
 * is a client. Files lie in ROOT, and names in /dev/shm begin with PREFIX.
 *
 * An event is only a doorbell: what is asked and answered is counted in the page. One that finds its listener's queue of
 * datagrams full (/proc/sys/net/unix/max_dgram_qlen) is lost, which many clients of one listener come to.
 */
#include "orders.h"

#include <fcntl.h>
#include <iox2/iceoryx2.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { CLIENTS = 32, NODES = 40 };

typedef struct {
  uint8_t request[PAYLOAD], reply[PAYLOAD];
  atomic_uint asked, answered;
} slot;

static iox2_node_h node;
static iox2_listener_h listener;
static iox2_notifier_h server;
static slot *mine;

static void check(const char *what, int status) {
  if (status != IOX2_OK) fail(what, status);
}

static void join(const char *root, const char *prefix) {
  iox2_config_h config;
  iox2_node_builder_h builder = iox2_node_builder_new(NULL);
  iox2_set_log_level(iox2_log_level_e_ERROR);
  check("config", iox2_config_default(NULL, &config));
  check("root", iox2_config_global_set_root_path(&config, root));
  check("prefix", iox2_config_global_set_prefix(&config, prefix));
  iox2_node_builder_set_config(&builder, &config);
  iox2_node_builder_set_signal_handling_mode(&builder, iox2_signal_handling_mode_e_DISABLED);
  check("node", iox2_node_builder_create(builder, NULL, iox2_service_type_e_IPC, &node));
}

static iox2_port_factory_event_h events_of(const char *name) {
  iox2_service_name_h service_name;
  iox2_port_factory_event_h events;
  check(name, iox2_service_name_new(NULL, name, strlen(name), &service_name));
  iox2_service_builder_h plain = iox2_node_service_builder(&node, NULL, iox2_cast_service_name_ptr(service_name));
  iox2_service_builder_event_h builder = iox2_service_builder_event(plain);
  iox2_service_builder_event_set_max_notifiers(&builder, CLIENTS);
  iox2_service_builder_event_set_max_nodes(&builder, NODES);
  check(name, iox2_service_builder_event_open_or_create(builder, NULL, &events));
  return events;
}

static iox2_notifier_h notifier_of(const char *name) {
  iox2_notifier_h made;
  iox2_port_factory_event_h events = events_of(name);
  check(name, iox2_port_factory_notifier_builder_create(iox2_port_factory_event_notifier_builder(&events, NULL), NULL, &made));
  return made;
}

static void listen_as(const char *name) {
  iox2_port_factory_event_h events = events_of(name);
  check(name,
        iox2_port_factory_listener_builder_create(iox2_port_factory_event_listener_builder(&events, NULL), NULL, &listener));
}

static slot *map_slots(const char *prefix) {
  char name[64];
  snprintf(name, sizeof name, "/%sslots", prefix);
  int memory = shm_open(name, O_RDWR | O_CREAT, 0600);
  if (memory < 0 || ftruncate(memory, CLIENTS * sizeof(slot)) != 0) fail(name, memory);
  void *slots = mmap(NULL, CLIENTS * sizeof(slot), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (slots == MAP_FAILED) fail("mmap", memory);
  return slots;
}

static void wait_for_event(void) {
  iox2_event_id_t event;
  bool is_there;
  check("wait", iox2_listener_blocking_wait_one(&listener, &event, &is_there));
}

static void notify(iox2_notifier_h whom) { check("notify", iox2_notifier_notify(&whom, NULL)); }

static int is_answered(slot *it) { return atomic_load(&it->answered) == atomic_load(&it->asked); }

static void ask(int n, const uint8_t *request) {
  (void)n; /* one call at a time */
  memcpy(mine->request, request, PAYLOAD);
  atomic_fetch_add(&mine->asked, 1);
  notify(server);
}

static void take(int n, uint8_t *reply) {
  (void)n;
  do wait_for_event();
  while (!is_answered(mine));
  memcpy(reply, mine->reply, PAYLOAD);
}

static const char *client_name(size_t index) {
  static char name[32];
  snprintf(name, sizeof name, "client/%zu", index);
  return name;
}

static void serve(slot *slots) {
  static iox2_notifier_h clients[CLIENTS];
  listen_as("server");
  puts("ready");
  fflush(stdout);
  for (;; wait_for_event()) {
    for (size_t at = 0; at < CLIENTS; at++) {
      if (is_answered(&slots[at])) continue;
      memcpy(slots[at].reply, slots[at].request, PAYLOAD);
      atomic_fetch_add(&slots[at].answered, 1);
      if (clients[at] == NULL) clients[at] = notifier_of(client_name(at));
      notify(clients[at]);
    }
  }
}

int main(int argc, char **argv) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  join(argv[1], argv[2]);
  slot *slots = map_slots(argv[2]);
  if (argc == 3) serve(slots);
  size_t index = strtoul(argv[3], NULL, 10);
  mine = &slots[index];
  listen_as(client_name(index));
  server = notifier_of("server");
  call(0);
  return obey();
}
