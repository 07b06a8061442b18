# Every name of the DNN runtime in Python, and its module: hbrt/lazy.py loads a name when it is first used.

from arm_client.dnn.dsp_layer import (
    DspLayer as DspLayer,
)
from arm_client.dnn.easy import (
    Model as Model,
    Tensor as Tensor,
    TensorProperties as TensorProperties,
    load as load,
)
from arm_client.dnn.graph import (
    NodeInfo as NodeInfo,
)
from arm_client.dnn.layers import (
    Layer as Layer,
    TensorType as TensorType,
    rpc_ctrl as rpc_ctrl,
)
from arm_client.dnn.ndarray import (
    NDArray as NDArray,
    TShape as TShape,
)

__all__: list[str]
