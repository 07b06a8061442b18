"""The runtime's library under the toolkit's name: ``from rknnlite.api.rknn_runtime import RKNNRuntime``."""

from hbrt.native.files import library

__all__ = ["RKNNRuntime"]


class RKNNRuntime:
    """Where the runtime's library is. Programs replace the method to use another library; here there is only one."""

    def _get_rknn_api_lib_path(self) -> str:
        """Path of the library.

        Raises:
            hbrt.native.files.NotBuiltError: it is not built.
        """
        return str(library("librknnrt.so"))
