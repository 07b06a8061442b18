"""Many private boards that take items in turn, by the name that programs import: it is of hbrt-farm."""

import sys

from hbrt.borders import guests

sys.modules[__name__] = guests.load("hbrt.modules", "arm_client.farm", "arm_client.farm", "farm")
