# Every name of farms, and its module: hbrt/lazy.py loads a name when it is first used.

from arm_client.farm.farm import Farm as Farm
from arm_client.farm.result import Compared as Compared, Result as Result, Status as Status
