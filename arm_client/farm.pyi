from hbrt_farm import (
    Compared as Compared,
    Farm as Farm,
    Result as Result,
    Status as Status,
)
