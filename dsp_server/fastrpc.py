"""FastRPC's DSP side under the name that images import; it is part of the distribution hbrt-fastrpc."""

import sys

from hbrt.borders import guests

sys.modules[__name__] = guests.load("hbrt.skeletons", "fastrpc", "An image that imports dsp_server.fastrpc", "fastrpc")
