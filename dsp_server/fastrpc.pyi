from fastrpc.dsp.skeleton import (
    Aee as Aee,
    AeeError as AeeError,
    Arguments as Arguments,
    DspQueue as DspQueue,
    Implementation as Implementation,
    Skeleton as Skeleton,
    register_interface as register_interface,
)
