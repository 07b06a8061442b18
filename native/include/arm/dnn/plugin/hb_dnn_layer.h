/**
 * Layer: an operator implemented by a program.
 *
 * Source: Forward as in the DSP guide, 10.2.3.2;
 * https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
 * Emulator: SetUp, InferShape, Attributes, TensorType; the manual's are not public.
 */
#ifndef HBRT_DNN_PLUGIN_HB_DNN_LAYER_H
#define HBRT_DNN_PLUGIN_HB_DNN_LAYER_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "hb_dnn_ndarray.h"

namespace hobot {
namespace dnn {

/** The attributes set by a model's node. */
class Attributes {
 public:
  Attributes(const hbrtAttribute *first, int32_t count) : first_(first), count_(count) {}

  bool Has(const std::string &name) const { return Find(name) != nullptr; }

  /** Integers; `missing` if the node does not set the attribute. Throws std::invalid_argument for another type. */
  std::vector<int64_t> Integers(const std::string &name, std::vector<int64_t> missing = {}) const {
    const hbrtAttribute *found = Find(name);
    if (!found) return missing;
    if (found->text || found->realCount) throw std::invalid_argument("attribute " + name + " must be integers");
    return std::vector<int64_t>(found->integers, found->integers + found->integerCount);
  }

  int64_t Integer(const std::string &name, int64_t missing) const { return One(name, Integers(name, {missing})); }

  /** Floating-point numbers. Otherwise as Integers. */
  std::vector<double> Reals(const std::string &name, std::vector<double> missing = {}) const {
    const hbrtAttribute *found = Find(name);
    if (!found) return missing;
    if (found->text) throw std::invalid_argument("attribute " + name + " must be numbers");
    if (!found->realCount) return std::vector<double>(found->integers, found->integers + found->integerCount);
    return std::vector<double>(found->reals, found->reals + found->realCount);
  }

  double Real(const std::string &name, double missing) const { return One(name, Reals(name, {missing})); }

  /** A string. Otherwise as Integers. */
  std::string Text(const std::string &name, const std::string &missing = "") const {
    const hbrtAttribute *found = Find(name);
    if (!found) return missing;
    if (!found->text) throw std::invalid_argument("attribute " + name + " must be a string");
    return found->text;
  }

 private:
  const hbrtAttribute *Find(const std::string &name) const {
    for (int32_t at = 0; at < count_; ++at)
      if (name == first_[at].name) return &first_[at];
    return nullptr;
  }

  template <typename Number>
  static Number One(const std::string &name, const std::vector<Number> &values) {
    if (values.size() != 1) throw std::invalid_argument("attribute " + name + " must be a single number");
    return values[0];
  }

  const hbrtAttribute *first_;
  int32_t count_;
};

/** Shape and type of a tensor; -1 for a data-dependent size. */
struct TensorType {
  std::vector<int64_t> shape;
  int32_t type = HB_DNN_TENSOR_TYPE_F32;
  bool isLeftOut = false;
};

/**
 * One node that a program runs itself. Each node gets one object for each task that runs concurrently, so objects share
 * no state. If a method throws or returns a value other than 0, the task fails with its message.
 */
class Layer {
 public:
  Layer() = default;
  Layer(const Layer &) = delete;
  Layer &operator=(const Layer &) = delete;
  virtual ~Layer() = default;

  /** Receive the node's attributes; called once, before everything else. */
  virtual int32_t SetUp(const Attributes &) { return 0; }

  /** Shapes and types of the outputs; by default, every output has those of the first input. */
  virtual int32_t InferShape(const std::vector<TensorType> &bottom, std::vector<TensorType> &top) {
    for (TensorType &one : top) one = bottom.at(0);
    return 0;
  }

  /** Compute the outputs from the inputs; NULL stands for an omitted one. Write `topBlobs` in place. */
  virtual int32_t Forward(const std::vector<NDArray *> &bottomBlobs, std::vector<NDArray *> &topBlobs,
                          const hbDNNInferCtrlParam *inferCtrlParam) = 0;
};

}  // namespace dnn
}  // namespace hobot

#endif
