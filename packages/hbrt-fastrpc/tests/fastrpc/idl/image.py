"""The interfaces of all.idl, in Python."""

import numpy as np
from all_skel import AllSkel, PlainSkel

from dsp_server import hb_dsp_env_init, hb_dsp_start
from fastrpc.wire.aee import AeeError


class All(AllSkel):
    def forward(self, input_buf, weight_buf, output_buf, svd_unit, hidden_unit):
        total = int(input_buf.sum()) + int(weight_buf.sum()) + svd_unit * hidden_unit
        output_buf[:] = [(total + at) % 256 for at in range(len(output_buf))]

    def values(self, a, b, c, d, e, f, g, h, i, m):
        return float(a) + b + c + d + e + float(f) + g + h + i + m

    def strings(self, s):
        return s

    def pairs(self, p, q, many, back):
        q.x += 1
        for at in range(len(back)):
            back[at : at + 1] = np.frombuffer(bytes(p), back.dtype)
            if at < len(many):
                back[at]["a"] = many[at]
        one = type(p).from_buffer_copy(bytes(p))
        one.id = len(many)
        return q, one

    def scale(self, v, k):
        v *= k
        return k + 1

    def nothing(self):
        pass

    def later(self, v, add, sums):
        sums[:] = v + add


class Plain(PlainSkel):
    def add(self, a, b):
        return a + b

    def fail(self, code):
        raise AeeError(code)


def main():
    hb_dsp_env_init()
    All.register()
    Plain.register()
    hb_dsp_start()
