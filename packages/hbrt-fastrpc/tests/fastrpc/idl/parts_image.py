"""The interface of parts.idl, in Python."""

from parts_skel import PartsSkel

from dsp_server import hb_dsp_env_init, hb_dsp_start
from dsp_server.fastrpc import Aee, AeeError


class Parts(PartsSkel):
    last = 0

    def join(self, many, sizes, copies):
        sizes[: len(many)] = [len(one) for one in many][: len(sizes)]
        for one, copy in zip(many, copies, strict=False):
            if len(copy) >= len(one):
                copy[: len(one)] = one

    def names(self, prefix, given, found):
        for at, one in enumerate(given[: len(found)]):
            found[at] = prefix + one
        return len(given)

    def store(self, given, back):
        back.id, back.sum = given.id + 1, -given.sum
        total = given.sum + given.id
        for one in given.items:
            total += int(one.data.sum()) + int(one.weight) + one.kind + len(one.name)
        for one, other in zip(given.items, back.items, strict=False):
            other.kind, other.weight, other.name = one.kind, one.weight * 2, f"<{one.name}>"
            other.data[:] = one.kind
        return total

    def weigh(self, boxes):
        return sum(box.id * int(one.weight) for box in boxes for one in box.items)

    def words(self, given, found, peer):
        if not peer:
            raise AeeError(Aee.AEE_EINVHANDLE)
        for one, other in zip(given, found, strict=False):
            other[: len(one)] = [*one[-2::-1], 0]

    def vectors(self, v, row, text):
        row += 1
        return [2 * one for one in v], len(text)

    def attach(self, memory, value):
        raise AeeError(Aee.AEE_EUNSUPPORTED)

    def note(self, n):
        self.last = n

    def noted(self):
        raise AeeError(self.last)


def main():
    hb_dsp_env_init()
    Parts.register()
    hb_dsp_start()
