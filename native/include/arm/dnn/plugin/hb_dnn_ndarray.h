/**
 * NDArray and TShape: tensors as a layer sees them, with the members used by the DSP guide's softmax (10.2.3.2).
 *
 * Source: https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
 * Emulator: Type, PhyAddr, and all other members except CanonicalAxis, Shape, Size, Reshape, [] and RawData.
 */
#ifndef HBRT_DNN_PLUGIN_HB_DNN_NDARRAY_H
#define HBRT_DNN_PLUGIN_HB_DNN_NDARRAY_H

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hbrt_layer.h"

namespace hobot {
namespace dnn {

/** Sizes of dimensions. */
class TShape {
 public:
  TShape() = default;
  TShape(std::initializer_list<uint32_t> sizes) : sizes_(sizes) {}
  explicit TShape(std::vector<uint32_t> sizes) : sizes_(std::move(sizes)) {}

  uint32_t &operator[](size_t index) { return sizes_.at(index); }
  const uint32_t &operator[](size_t index) const { return sizes_.at(index); }
  size_t size() const { return sizes_.size(); }
  std::vector<uint32_t>::const_iterator begin() const { return sizes_.begin(); }
  std::vector<uint32_t>::const_iterator end() const { return sizes_.end(); }
  bool operator==(const TShape &other) const { return sizes_ == other.sizes_; }

  /** Number of elements. */
  uint32_t Size() const {
    uint32_t count = 1;
    for (uint32_t size : sizes_) count *= size;
    return count;
  }

 private:
  std::vector<uint32_t> sizes_;
};

/** A tensor that a layer reads or writes: a view of memory, never a copy. */
class NDArray {
 public:
  NDArray(void *data, uint64_t phyAddr, int32_t type, TShape shape)
      : data_(static_cast<uint8_t *>(data)), phyAddr_(phyAddr), type_(type), shape_(std::move(shape)) {}

  /** An axis counted from the front: -1 is the last. Throws std::out_of_range if the axis is out of range. */
  uint32_t CanonicalAxis(int32_t axis) const {
    const int32_t count = static_cast<int32_t>(shape_.size());
    if (axis < -count || axis >= count)
      throw std::out_of_range("axis " + std::to_string(axis) + " is out of range for " + std::to_string(count) +
                              " dimensions");
    return static_cast<uint32_t>(axis < 0 ? axis + count : axis);
  }

  const TShape &Shape() const { return shape_; }

  /** Number of elements. */
  uint32_t Size() const { return shape_.Size(); }

  /** The same memory in another shape. Throws std::invalid_argument if the number of elements differs. */
  NDArray Reshape(const TShape &shape) const {
    if (shape.Size() != Size())
      throw std::invalid_argument("a tensor of " + std::to_string(Size()) + " elements cannot be reshaped to " +
                                  std::to_string(shape.Size()));
    return NDArray(data_, phyAddr_, type_, shape);
  }

  /** The sub-array at an index of the first dimension. Throws std::out_of_range if the index is out of range. */
  NDArray operator[](size_t index) const {
    if (!shape_.size() || index >= shape_[0])
      throw std::out_of_range("index " + std::to_string(index) + " is out of range for the first dimension");
    TShape rest(std::vector<uint32_t>(shape_.begin() + 1, shape_.end()));
    const size_t offset = index * rest.Size() * ElementBytes();
    return NDArray(data_ + offset, phyAddr_ ? phyAddr_ + offset : 0, type_, rest);
  }

  void *RawData() const { return data_; }
  template <typename Element>
  Element *Data() const {
    return reinterpret_cast<Element *>(data_);
  }

  /** Physical address of the first element, as expected in parameter structures of DSP ops. */
  uint64_t PhyAddr() const { return phyAddr_; }

  /** hbDNNDataType. */
  int32_t Type() const { return type_; }

  /** Bytes of an element. Throws std::invalid_argument for types whose elements are not whole bytes. */
  size_t ElementBytes() const {
    switch (type_) {
      case HB_DNN_TENSOR_TYPE_S8:
      case HB_DNN_TENSOR_TYPE_U8:
        return 1;
      case HB_DNN_TENSOR_TYPE_F16:
      case HB_DNN_TENSOR_TYPE_S16:
      case HB_DNN_TENSOR_TYPE_U16:
        return 2;
      case HB_DNN_TENSOR_TYPE_F32:
      case HB_DNN_TENSOR_TYPE_S32:
      case HB_DNN_TENSOR_TYPE_U32:
        return 4;
      case HB_DNN_TENSOR_TYPE_F64:
      case HB_DNN_TENSOR_TYPE_S64:
      case HB_DNN_TENSOR_TYPE_U64:
        return 8;
      default:
        throw std::invalid_argument("elements of type " + std::to_string(type_) + " are not whole bytes");
    }
  }

 private:
  uint8_t *data_;
  uint64_t phyAddr_;
  int32_t type_;
  TShape shape_;
};

}  // namespace dnn
}  // namespace hobot

#endif
