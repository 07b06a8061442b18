// The guide's DSPSoftmax (10.2.3.2) as a plugin: a static object registers it; and a layer with an attribute.
#include <cstring>
#include <iostream>
#include <vector>

#include "dnn/hb_dnn.h"
#include "dnn/plugin/hb_dnn_layer.h"
#include "dnn/plugin/hb_dnn_plugin.h"
#include "dsp/hb_dsp.h"

using hobot::dnn::Attributes;
using hobot::dnn::Layer;
using hobot::dnn::NDArray;
using hobot::dnn::TShape;

namespace {

typedef struct {
  int data_size;
  uint64_t input;
} hbDSPSoftmaxParam;

class DSPSoftmax : public Layer {
 public:
  int32_t SetUp(const Attributes &attributes) override {
    axis_ = static_cast<int32_t>(attributes.Integer("axis", -1));
    return 0;
  }

  int32_t Forward(const std::vector<NDArray *> &bottomBlobs, std::vector<NDArray *> &topBlobs,
                  const hbDNNInferCtrlParam *inferCtrlParam) override {
    const NDArray *data = bottomBlobs[0];
    NDArray *out = topBlobs[0];
    const uint32_t axis = data->CanonicalAxis(axis_);
    uint32_t N = 1U;
    for (uint32_t index = 0U; index < axis; ++index) N *= data->Shape()[index];
    uint32_t D = data->Size() / N;
    TShape s2 = TShape{N, D};
    auto data_tmp = data->Reshape(s2);
    auto out_tmp = out->Reshape(s2);
    hbSysMem input_mem, output_mem, hb_in_mem;
    const int data_size = static_cast<int>(D * sizeof(float));
    if (hbSysAllocMem(&input_mem, data_size) != 0) return -1;
    if (hbSysAllocMem(&output_mem, data_size) != 0) return -1;
    if (hbSysAllocMem(&hb_in_mem, sizeof(hbDSPSoftmaxParam)) != 0) return -1;
    hbDSPRpcCtrlParam param;
    HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&param);
    param.rpcCmd = HB_DSP_RPC_CMD_NN_SOFTMAX;
    param.priority = inferCtrlParam->priority;
    for (uint32_t i = 0U; i < out_tmp.Shape()[0U]; ++i) {
      std::memcpy(input_mem.virAddr, data_tmp[i].RawData(), data_size);
      hbDSPSoftmaxParam *ptr = (hbDSPSoftmaxParam *)(hb_in_mem.virAddr);
      ptr->data_size = data_size;
      ptr->input = input_mem.phyAddr;
      hbDSPTask_t task;
      if (hbDSPRpc(&task, &hb_in_mem, &output_mem, &param) != 0) return -1;
      if (hbDSPWaitTaskDone(task, 0) != 0) return -1;
      if (hbDSPReleaseTask(task) != 0) return -1;
      std::memcpy(out_tmp[i].RawData(), output_mem.virAddr, data_size);
    }
    hbSysFreeMem(&input_mem);
    hbSysFreeMem(&output_mem);
    hbSysFreeMem(&hb_in_mem);
    std::cerr << "DSPSoftmax " << N << "x" << D << " " << (data->PhyAddr() ? "device" : "host") << "\n";
    return 0;
  }

 private:
  int32_t axis_ = -1;
};

// y = x + by, of an op type that ONNX lacks; a row of x longer than 8 is too long for it.
class Shift : public Layer {
 public:
  int32_t SetUp(const Attributes &attributes) override {
    by_ = static_cast<float>(attributes.Real("by", 0));
    if (attributes.Text("mode", "plain") != "plain") throw std::invalid_argument("the only mode is plain");
    return 0;
  }

  int32_t Forward(const std::vector<NDArray *> &bottomBlobs, std::vector<NDArray *> &topBlobs,
                  const hbDNNInferCtrlParam *) override {
    if ((*bottomBlobs[0])[0].Size() > 8) throw std::length_error("a row is too long");
    for (uint32_t at = 0; at < bottomBlobs[0]->Size(); ++at)
      topBlobs[0]->Data<float>()[at] = bottomBlobs[0]->Data<float>()[at] + by_;
    return 0;
  }

 private:
  float by_ = 0;
};

Layer *DSPSoftmax_layer_creator() { return new DSPSoftmax; }
Layer *Shift_layer_creator() { return new Shift; }

struct Registration {
  Registration() {
    if (hbDNNRegisterLayerCreator("Softmax", DSPSoftmax_layer_creator) != 0) std::abort();
    if (hbDNNRegisterLayerCreator("Shift", Shift_layer_creator) != 0) std::abort();
    if (hbDNNRegisterLayerCreator("Shift", nullptr) != HB_DNN_INVALID_ARGUMENT) std::abort();
    if (hbDNNRegisterLayerCreator(nullptr, Shift_layer_creator) != HB_DNN_INVALID_ARGUMENT) std::abort();
  }
};

Registration registration;

}  // namespace
