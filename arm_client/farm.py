"""The module name that programs import for farms of private boards; hbrt-farm provides it."""

import sys

from hbrt.borders import guests

sys.modules[__name__] = guests.load("hbrt.modules", "arm_client.farm", "arm_client.farm", "farm")
