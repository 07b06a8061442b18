# Every name of farms, and its module: hbrt/lazy.py loads a name when it is first used.

from hbrt_farm.farm import Farm as Farm
from hbrt_farm.result import Compared as Compared, Result as Result, Status as Status
