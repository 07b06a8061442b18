// Ways to end: a static object that frees in its destructor, exit in a thread, a return among threads that call.
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "row.h"

struct Owner {
  hbSysMem mem{};
  ~Owner() {
    if (mem.virAddr && hbSysFreeMem(&mem)) std::_Exit(9);
  }
};

static Owner owner;

int main(int, char **arguments) {
  const std::string way = arguments[1];
  if (hbSysAllocMem(&owner.mem, 64)) return 1;
  if (way == "leak") {
    hbSysMem left;
    hbSysAllocMem(&left, 4096);
  } else if (way == "thread") {
    std::thread([] {
      if (row_once(1)) std::_Exit(8);
      std::exit(5);
    }).join();
  } else if (way == "busy") {
    for (int at = 0; at < 4; at++)
      std::thread([] {
        for (;;) row_once(1);
      }).detach();
    usleep(100000);
  } else if (way == "twice") {
    std::atexit([] {
      if (row_once(1)) std::_Exit(7);
    });
  }
  return 0;
}
