// Ops in C++: objects, exceptions, streams and threads.
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "hb_dsp.h"

namespace {

int destroyed;

struct Counted {
  ~Counted() { ++destroyed; }
};

enum Way { COUNT, MISTAKE, THROW, CATCH, STREAM, THREAD, MISTAKE_IN_THREAD };

int wait_wrongly() {
  Counted inner;
  return idma_desc_done(idma_copy_desc(nullptr, nullptr, 1, 0));
}

int behave(void *input, void *output, void *tm) {
  Counted outer;
  switch (*static_cast<int *>(input)) {
    case MISTAKE:
      return wait_wrongly();
    case THROW:
      throw std::runtime_error("no such row");
    case CATCH:
      try {
        throw std::runtime_error("row 5");
      } catch (const std::exception &error) {
        std::cout << "caught " << error.what() << std::endl;
      }
      return -9;
    case STREAM:
      std::cout << "row " << 3 << " is odd" << std::endl;
      std::cerr << "scale " << 0.5 << "\n";
      return -8;
    case THREAD: {
      void *tile = nullptr;
      std::thread([&] { tile = xvAllocateBuffer(static_cast<xvTileManager *>(tm), 64, XV_MEM_BANK_COLOR_1, 64); }).join();
      return xvFreeBuffer(static_cast<xvTileManager *>(tm), tile);
    }
    case MISTAKE_IN_THREAD:
      std::thread([] { idma_desc_done(idma_copy_desc(nullptr, nullptr, 1, 0)); }).join();
      return 0;
    default:
      std::memcpy(output, &destroyed, sizeof destroyed);
      destroyed = 0;
      return 0;
  }
}

}  // namespace

int main() {
  hb_dsp_env_init();
  hb_dsp_register_fn(0x1000, behave, 0);
  hb_dsp_start();
}
