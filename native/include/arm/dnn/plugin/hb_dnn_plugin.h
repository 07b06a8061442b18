/**
 * hbDNNRegisterLayerCreator: have a Layer run the nodes of an op type, including in models that are already loaded.
 *
 * Source: BPU SDK API manual (J5 OE 1.1.77), 9.2.3.6;
 * https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
 * Emulator: the creator, a function without arguments that returns a new layer.
 */
#ifndef HBRT_DNN_PLUGIN_HB_DNN_PLUGIN_H
#define HBRT_DNN_PLUGIN_HB_DNN_PLUGIN_H

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "hb_dnn_layer.h"

/** Returns a new layer, which the runtime deletes. */
typedef hobot::dnn::Layer *(*hbDNNLayerCreator)();

namespace hobot {
namespace dnn {
namespace hbrt {

inline std::string &Why() {
  thread_local std::string text;
  return text;
}

/** Run code that may throw. No exception may escape, because the callers are in C. */
template <typename Result, typename Call>
Result Guarded(Result failed, Call call) {
  try {
    Why().clear();
    return call();
  } catch (const std::exception &error) {
    Why() = error.what();
  } catch (...) {
    Why() = "it threw an object that is not a std::exception";
  }
  return failed;
}

inline TensorType TypeOf(const hbrtArray &array) {
  TensorType type;
  type.isLeftOut = array.numDimensions < 0;
  type.type = array.type;
  if (!type.isLeftOut) type.shape.assign(array.shape, array.shape + array.numDimensions);
  return type;
}

/** Views of arrays, with NULL for omitted ones. */
class Blobs {
 public:
  Blobs(const hbrtArray *arrays, int32_t count) {
    for (int32_t at = 0; at < count; ++at) {
      const hbrtArray &one = arrays[at];
      if (one.numDimensions < 0) {
        all.push_back(nullptr);
        continue;
      }
      TShape shape(std::vector<uint32_t>(one.shape, one.shape + one.numDimensions));
      kept_.emplace_back(new NDArray(one.data, one.phyAddr, one.type, shape));
      all.push_back(kept_.back().get());
    }
  }
  std::vector<NDArray *> all;

 private:
  std::vector<std::unique_ptr<NDArray>> kept_;
};

inline void *Create(void *context) {
  return Guarded<void *>(nullptr, [&]() -> void * {
    hbDNNLayerCreator creator;
    std::memcpy(&creator, &context, sizeof creator);
    return creator();
  });
}

inline void Destroy(void *layer) { delete static_cast<Layer *>(layer); }

inline int32_t SetUp(void *layer, const hbrtAttribute *attributes, int32_t count) {
  return Guarded<int32_t>(-1, [&] { return static_cast<Layer *>(layer)->SetUp(Attributes(attributes, count)); });
}

inline int32_t InferShape(void *layer, const hbrtArray *bottom, int32_t bottomCount, hbrtArray *top,
                          int32_t topCount) {
  return Guarded<int32_t>(-1, [&] {
    std::vector<TensorType> in, out(static_cast<size_t>(topCount));
    for (int32_t at = 0; at < bottomCount; ++at) in.push_back(TypeOf(bottom[at]));
    if (int32_t status = static_cast<Layer *>(layer)->InferShape(in, out)) return status;
    for (int32_t at = 0; at < topCount; ++at) {
      const TensorType &type = out.at(static_cast<size_t>(at));
      if (type.shape.size() > HB_DNN_TENSOR_MAX_DIMENSIONS)
        throw std::length_error("an output has more than 8 dimensions");
      top[at].type = type.type;
      top[at].numDimensions = static_cast<int32_t>(type.shape.size());
      for (size_t dimension = 0; dimension < type.shape.size(); ++dimension)
        top[at].shape[dimension] = type.shape[dimension];
    }
    return 0;
  });
}

inline int32_t Forward(void *layer, const hbrtArray *bottom, int32_t bottomCount, const hbrtArray *top,
                       int32_t topCount, const hbDNNInferCtrlParam *ctrl) {
  return Guarded<int32_t>(-1, [&] {
    Blobs in(bottom, bottomCount), out(top, topCount);
    return static_cast<Layer *>(layer)->Forward(in.all, out.all, ctrl);
  });
}

inline const char *LastWhy() { return Why().empty() ? nullptr : Why().c_str(); }

}  // namespace hbrt
}  // namespace dnn
}  // namespace hobot

/** Returns 0; HB_DNN_INVALID_ARGUMENT if the type name is invalid, or the creator is NULL. */
inline int32_t hbDNNRegisterLayerCreator(const char *layerType, hbDNNLayerCreator layerCreator) {
  namespace functions = hobot::dnn::hbrt;
  const hbrtLayer layer = {functions::Create,     functions::Destroy, functions::SetUp,
                           functions::InferShape, functions::Forward, functions::LastWhy};
  void *context;
  static_assert(sizeof context == sizeof layerCreator, "a function pointer fits an address");
  std::memcpy(&context, &layerCreator, sizeof context);
  return hbrt_register_layer(layerType, layerCreator ? &layer : nullptr, context);
}

#endif
