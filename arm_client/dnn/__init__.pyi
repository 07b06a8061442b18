# Every name of the DNN runtime in Python, and its module: hbrt/lazy.py loads a name when it is first used.

from arm_client.dnn.layers.dsp_layer import (
    DspLayer as DspLayer,
)
from arm_client.dnn.layers.layer import (
    Layer as Layer,
    rpc_ctrl as rpc_ctrl,
)
from arm_client.dnn.layers.ndarray import (
    NDArray as NDArray,
    TShape as TShape,
)
from arm_client.dnn.python.easy import (
    Model as Model,
    Tensor as Tensor,
    TensorProperties as TensorProperties,
    load as load,
)
from hbrt.models.run.layer import (
    TensorType as TensorType,
)
from hbrt.models.spec.graph import (
    NodeInfo as NodeInfo,
)

__all__: list[str]
