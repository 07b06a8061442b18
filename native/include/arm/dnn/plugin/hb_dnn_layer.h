/**
 * Layer: an operator that a program brings.
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

/** The attributes that a model's node sets. */
class Attributes {
 public:
  Attributes(const hbrtAttribute *first, int32_t count) : first_(first), count_(count) {}

  bool Has(const std::string &name) const { return Find(name) != nullptr; }

  /** Whole numbers; `missing` when the node does not set it. Throws std::invalid_argument for another kind. */
  std::vector<int64_t> Integers(const std::string &name, std::vector<int64_t> missing = {}) const {
    const hbrtAttribute *found = Find(name);
    if (!found) return missing;
    if (found->text || found->realCount) throw std::invalid_argument("the attribute " + name + " has no whole numbers");
    return std::vector<int64_t>(found->integers, found->integers + found->integerCount);
  }

  int64_t Integer(const std::string &name, int64_t missing) const { return One(name, Integers(name, {missing})); }

  /** Numbers. As Integers. */
  std::vector<double> Reals(const std::string &name, std::vector<double> missing = {}) const {
    const hbrtAttribute *found = Find(name);
    if (!found) return missing;
    if (found->text) throw std::invalid_argument("the attribute " + name + " is text");
    if (!found->realCount) return std::vector<double>(found->integers, found->integers + found->integerCount);
    return std::vector<double>(found->reals, found->reals + found->realCount);
  }

  double Real(const std::string &name, double missing) const { return One(name, Reals(name, {missing})); }

  /** Text. As Integers. */
  std::string Text(const std::string &name, const std::string &missing = "") const {
    const hbrtAttribute *found = Find(name);
    if (!found) return missing;
    if (!found->text) throw std::invalid_argument("the attribute " + name + " is no text");
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
    if (values.size() != 1) throw std::invalid_argument("the attribute " + name + " is not one number");
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
 * One node that a program runs itself. One object is made for each node and each task that runs at the same time, so
 * what it keeps is its own. What a method throws, or a value other than 0, fails with its text.
 */
class Layer {
 public:
  Layer() = default;
  Layer(const Layer &) = delete;
  Layer &operator=(const Layer &) = delete;
  virtual ~Layer() = default;

  /** Take the node's attributes; called once, before all else. */
  virtual int32_t SetUp(const Attributes &) { return 0; }

  /** Shapes and types of the outputs; by default those of the first input for every output. */
  virtual int32_t InferShape(const std::vector<TensorType> &bottom, std::vector<TensorType> &top) {
    for (TensorType &one : top) one = bottom.at(0);
    return 0;
  }

  /** Compute the outputs from the inputs; NULL stands for one that is left out. Write `topBlobs` in place. */
  virtual int32_t Forward(const std::vector<NDArray *> &bottomBlobs, std::vector<NDArray *> &topBlobs,
                          const hbDNNInferCtrlParam *inferCtrlParam) = 0;
};

}  // namespace dnn
}  // namespace hobot

#endif
