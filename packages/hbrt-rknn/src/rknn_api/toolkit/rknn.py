"""``RKNN``: convert a model, simulate it, export it, and run it on the board."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hbrt.models.spec.graph_edits import graph_inputs
from rknn_api.calls import Calls, path_of
from rknn_api.container import Container, read, written
from rknn_api.encryption import encrypted, is_encrypted
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.perf.report import layers_text, measured_text, memory_report
from rknn_api.platforms import CoreMask, Platform, platform_of
from rknn_api.run import plugins
from rknn_api.run.custom_ops import CustomOps
from rknn_api.run.feeds import as_list
from rknn_api.run.runner import Runner
from rknn_api.toolkit import accuracy, codegen, hybrid
from rknn_api.toolkit.build import Built, Prepared, built, prepare, sample_arrays, without_weights
from rknn_api.toolkit.config import Config, read_config
from rknn_api.toolkit.convert import from_pytorch, from_tensorflow, from_tflite
from rknn_api.toolkit.dataset import file_stems
from rknn_api.toolkit.prune import pruned
from rknn_api.toolkit.quantize import biased_by_row, without_ranges
from rknn_api.toolkit.source import load, shapes_of, simplified, with_shapes
from rknn_api.version import API, version_table

if TYPE_CHECKING:
    from onnx import ModelProto

_CONVERT = {
    "load_caffe": "convert it with a converter from Caffe to ONNX",
    "load_darknet": "convert it with a converter from Darknet to ONNX",
}


class _Ready(NamedTuple):
    """A model prepared by init_runtime."""

    runner: Runner
    container: Container
    platform: Platform
    is_board: bool
    cores: tuple[int, ...]
    perf_debug: bool
    eval_mem: bool
    ops: CustomOps

    def close(self) -> None:
        """Release what it holds."""
        self.runner.close()
        self.ops.close()


class RKNN(Calls):
    """One model, from its conversion to its run.

    Calls return 0, or -1 with a message on standard error; ``inference`` returns None if it fails. ``last_error`` has
    the message of the last failure.

    Source: RKNN-Toolkit2 API Reference (2.3.2), RKNN, https://github.com/airockchip/rknn-toolkit2
    Emulator: ``last_error``.
    """

    def __init__(self, verbose: bool = False, verbose_file: str | Path | None = None) -> None:  # noqa: FBT001, FBT002 - theirs
        """Begin; see ``Calls``."""
        super().__init__(verbose, verbose_file)
        self._discard()

    def _discard(self) -> None:
        self._ops = CustomOps()
        self._config: Config | None = None
        self._loaded: ModelProto | None = None
        self._name = "model"
        self._prepared: Prepared | None = None
        self._built: Built | None = None
        self._container: Container | None = None
        self._is_exported = False
        self._ready: _Ready | None = None

    def config(self, **arguments: Any) -> int:
        """Set how to convert the model; call it before a load.

        Args:
            **arguments: mean_values, std_values: a list of numbers for each input, one per channel. quant_img_RGB2BGR,
                quantized_dtype, quantized_algorithm, quantized_method, float_dtype, optimization_level,
                target_platform, custom_string, remove_weight, single_core_mode, model_pruning, dynamic_input,
                sparse_infer, auto_hybrid_cos_thresh, auto_hybrid_euc_thresh; others have no effect.
        """

        def read() -> None:
            self._unbuild()
            self._loaded, self._ops, self._config = None, CustomOps(), None  # they belonged to another configuration
            self._config = read_config(arguments)
            for sentence in self._config.warnings:
                self._log.warning("config", sentence)
            if self._config.dynamic_input:
                shapes = [list(shape) for shape in self._config.dynamic_input[0]]
                self._log.warning(
                    "config",
                    f"dynamic_input: the largest shapes are {shapes}; the dataset, eval_perf and eval_memory use them.",
                )

        return self.call("config", read)

    def reg_custom_op(self, custom_op: Any) -> int:
        """Have an object compute the nodes of an op type; between ``config`` and ``load_onnx``.

        Args:
            custom_op: Has ``op_type``, ``shape_infer(self, node, in_shapes, in_dtypes)`` and
                ``compute(self, node, inputs)``.

        Source: RKNN SDK advanced guide (chapter 5), 5.5.3
        """

        def register() -> None:
            if self._config is None or self._loaded is not None:
                raise invalid_parameter("reg_custom_op must be called between config and load_onnx.")
            self._ops.register(custom_op)

        return self.call("reg_custom_op", register)

    def load_onnx(
        self,
        model: str | Path,
        inputs: Sequence[str] | None = None,
        input_size_list: Sequence[Sequence[int]] | None = None,
        input_initial_val: Sequence[Any] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> int:
        """Read an ONNX model.

        Args:
            model: Path of the file.
            inputs: Values to use as its inputs; its own if None.
            input_size_list: A shape for each of them.
            input_initial_val: Constant arrays for some of them; None for inputs that programs provide.
            outputs: Values to use as its outputs; its own if None.
        """

        def read() -> None:
            path = path_of(model, "model")
            self._load("load_onnx", path, path, inputs, input_size_list, input_initial_val, outputs)

        return self.call("load_onnx", read)

    def load_pytorch(self, model: str | Path, input_size_list: Sequence[Sequence[int]]) -> int:
        """Read a TorchScript model, with torch.

        Args:
            model: Path of a file written by ``torch.jit.save``.
            input_size_list: A shape for each input.
        """
        return self._foreign("load_pytorch", model, lambda path, file: from_pytorch(path, input_size_list, file))

    def load_tensorflow(
        self,
        tf_pb: str | Path,
        inputs: Sequence[str],
        input_size_list: Sequence[Sequence[int]],
        outputs: Sequence[str],
    ) -> int:
        """Read a frozen TensorFlow graph, with tf2onnx.

        Args:
            tf_pb: Path of the file.
            inputs: Names of its inputs.
            input_size_list: A shape for each of them.
            outputs: Names of its outputs.
        """
        return self._foreign(
            "load_tensorflow", tf_pb, lambda path, file: from_tensorflow(path, inputs, input_size_list, outputs, file)
        )

    def load_tflite(self, model: str | Path) -> int:
        """Read a TFLite model, with tf2onnx.

        Args:
            model: Path of the file.
        """
        return self._foreign("load_tflite", model, from_tflite)

    def _foreign(self, call: str, given: str | Path, convert: Callable[[Path, Path], None]) -> int:
        """Load a model of another framework: ``convert`` converts the first file to ONNX in the second."""

        def read() -> None:
            path = path_of(given, "model")
            self._configured()
            with tempfile.TemporaryDirectory(prefix="hbrt-rknn-") as folder:
                file = Path(folder) / f"{path.stem}.onnx"
                convert(path, file)
                self._load(call, path, file)

        return self.call(call, read)

    def _load(
        self,
        call: str,
        path: Path,
        file: Path,
        inputs: Any = None,
        sizes: Any = None,
        values: Any = None,
        ends: Any = None,
    ) -> None:
        """Load an ONNX file under another file's name; see ``load_onnx``."""
        config = self._configured()
        self._unbuild()
        self._loaded = None
        loaded = load(file, inputs, sizes, values, ends, self._ops)
        self._loaded = simplified(with_shapes(loaded, config), self._ops, config.optimization_level)
        if config.model_pruning:
            self._loaded = self._pruned(self._loaded)
        self._name = path.stem
        self._log.info(call, f"{path}: inputs of {[list(one) for one in shapes_of(self._loaded)]}.")

    def _pruned(self, model: ModelProto) -> ModelProto:
        found = pruned(model)
        if found.saved:
            share = found.saved / found.before
            # Printed whether verbose or not, in the guide's format, since the program asks for it.
            self._log.text(f"I model_pruning results:\nI Weight: -{found.saved * 4 / 1e6:.5f} MB (-{share:.1%})")
        return found.model

    def __getattr__(self, name: str) -> Callable[..., int]:
        """The unsupported load methods, which explain the alternative."""
        if name not in _CONVERT:
            raise AttributeError(f"RKNN has no attribute {name!r}.")
        sentence = f"This emulator loads ONNX models; {_CONVERT[name]}, and call load_onnx."
        return lambda *_given, **_named: self._fail(name, RknnError(RknnStatus.RKNN_ERR_FAIL, sentence))

    def build(
        self,
        do_quantization: bool = True,  # noqa: FBT001, FBT002 - theirs
        dataset: str | Path | None = None,
        rknn_batch_size: int | None = None,
        auto_hybrid: bool = False,  # noqa: FBT001, FBT002 - theirs
    ) -> int:
        """Convert the loaded model.

        Args:
            do_quantization: Quantize it; otherwise it stays in real numbers.
            dataset: Text file of samples for quantization.
            rknn_batch_size: Images per run.
            auto_hybrid: Leave layers in real numbers if their loss on the first sample of the dataset exceeds config's
                auto_hybrid_cos_thresh or auto_hybrid_euc_thresh.
        """

        def make() -> None:
            self._unbuild()
            if not isinstance(do_quantization, (bool, int)):
                raise invalid_parameter(f"Invalid do_quantization {do_quantization!r}: must be True or False.")
            prepared = self._prepare()
            batch = _batch(rknn_batch_size)
            ranges = prepared.ranges(dataset) if do_quantization else None
            self._tell_normalized(prepared)
            self._tell_sparse(prepared, is_quantized=do_quantization)
            one = built(prepared, self._name, ranges, batch=batch)
            if auto_hybrid and ranges is not None and dataset is not None:
                one = self._auto_hybrid(prepared, one, dataset, batch)
            self._keep("build", one)

        return self.call("build", make)

    def _auto_hybrid(self, prepared: Prepared, one: Built, dataset: str | Path, batch: int) -> Built:
        """The model again, with the layers with the largest loss in real numbers."""
        if not (lost := hybrid.proposed(prepared, one, dataset, 1)):
            return one
        self._log.info("build", f"auto_hybrid: in real numbers: {', '.join(lost)}.")
        makers = {name: node.name for node in prepared.model.graph.node for name in node.output}
        exclude = [makers[name] for name in lost if name in makers]
        return built(prepared, self._name, one.ranges, batch=batch, exclude=exclude)

    def _keep(self, call: str, one: Built) -> None:
        """Use the built model from now on."""
        self._built, self._container = one, one.container
        is_meant = bool(one.container.metadata.quantized_dtype)
        lost = [f"{name!r}" for name in without_ranges(one.golden, one.ranges)] if is_meant else []
        if lost:
            self._log.warning(
                call,
                f"The layers that read or compute {', '.join(lost[:5])}{', ...' if len(lost) > 5 else ''} stay in real "
                "numbers: values that are not finite on the dataset, or of a type other than float32.",
            )
        if is_meant and (rows := biased_by_row(one.golden)):
            self._log.warning(
                call, f"The Gemm of {', '.join(rows[:5])} stays in real numbers: its bias differs from row to row."
            )
        if is_meant and not any(node.op_type == "DequantizeLinear" for node in one.graph.graph.node):
            self._log.warning(
                call, "Nothing in the model is quantized: none of its float32 operators can be; it runs unchanged."
            )

    def _tell_normalized(self, prepared: Prepared) -> None:
        """Warn about inputs without numbers in mean_values or std_values if others have some."""
        names = [value.name for value in graph_inputs(self._loaded.graph)] if self._loaded else []
        config = prepared.config
        for what, given, effect in (
            ("mean_values", config.mean_values, "nothing is subtracted"),
            ("std_values", config.std_values, "it is not divided"),
        ):
            if given and (lost := names[len(given) :]):
                self._log.warning("build", f"{what} has no numbers for {', '.join(map(repr, lost))}: {effect}.")

    def _tell_sparse(self, prepared: Prepared, *, is_quantized: bool) -> None:
        if prepared.config.sparse is None:
            return
        if not is_quantized:
            self._log.warning("build", "sparse_infer is for quantized models; in real numbers, all layers stay dense.")
            return
        assert prepared.sparse is not None  # noqa: S101 - checked by config
        _, already, masked, dense = prepared.sparse
        mask = f"masked {prepared.config.sparse}" if prepared.config.sparse else "masked"
        names = f": {', '.join(dense[:5])}{', ...' if len(dense) > 5 else ''}" if dense else ""
        self._log.text(
            f"I sparse_infer: of {len(already) + len(masked) + len(dense)} convolutions {len(already)} sparse already, "
            f"{len(masked)} {mask}, {len(dense)} dense{names}"
        )

    def _prepare(self) -> Prepared:
        if self._loaded is None:
            raise RknnError(RknnStatus.RKNN_ERR_FAIL, "No model is loaded; call load_onnx first.")
        self._prepared = prepare(self._loaded, self._configured(), self._ops)
        return self._prepared

    def hybrid_quantization_step1(
        self,
        dataset: str | Path,
        rknn_batch_size: int | None = None,
        proposal: bool = False,  # noqa: FBT001, FBT002 - theirs
        proposal_dataset_size: int = 1,
        custom_hybrid: Sequence[Sequence[str]] | None = None,
    ) -> int:
        """Write the files for ``hybrid_quantization_step2``: NAME.model, NAME.data, NAME.quantization.cfg.

        Args:
            dataset: Text file of samples for quantization.
            rknn_batch_size: Images per run.
            proposal: Propose in the file to keep the layers with the largest loss in real numbers.
            proposal_dataset_size: Number of samples for this decision.
            custom_hybrid: Pairs of values between which layers stay in real numbers.
        """

        def write() -> None:
            if not isinstance(proposal_dataset_size, int):
                raise invalid_parameter(
                    f"Invalid proposal_dataset_size {proposal_dataset_size!r}: must be a number of samples."
                )
            prepared = self._prepare()
            ranges = prepared.ranges(dataset)
            one = built(prepared, self._name, ranges, batch=_batch(rknn_batch_size))
            float_layers = hybrid.between(prepared.model, custom_hybrid or ())
            if proposal:
                float_layers += hybrid.proposed(prepared, one, dataset, proposal_dataset_size)
            for path in hybrid.write(Path(self._name), one, prepared.config, dict.fromkeys(float_layers)):
                self._log.info("hybrid_quantization_step1", f"Wrote {path}.")

        return self.call("hybrid_quantization_step1", write)

    def hybrid_quantization_step2(self, model_input: str, data_input: str, model_quantization_cfg: str) -> int:
        """Convert with the layers named in the file kept in real numbers; see ``hybrid_quantization_step1``.

        Without a call of ``config``, the first step's config is used.
        """

        def make() -> None:
            self._unbuild()
            source = path_of(model_input, "model_input")
            model, stored = hybrid.read(
                source, path_of(data_input, "data_input"), path_of(model_quantization_cfg, "model_quantization_cfg")
            )
            self._config = config = self._config or stored.config
            self._loaded, self._name = model, source.stem
            self._prepared = Prepared(model, model, stored.inputs, config, self._ops)
            one = built(self._prepared, self._name, stored.ranges, batch=stored.batch, exclude=stored.float_layers)
            self._keep("hybrid_quantization_step2", one)

        return self.call("hybrid_quantization_step2", make)

    def export_encrypted_rknn_model(
        self, input_model: str | Path, output_model: str | Path | None = None, crypt_level: int = 1
    ) -> int:
        """Encrypt a model file; the calls that read it stay the same.

        Args:
            input_model: A file from ``export_rknn``.
            output_model: Path of the new file; NAME.crypt.rknn next to the first if None.
            crypt_level: 1, 2 or 3; a higher level takes a program longer to read.

        Source: RKNN SDK advanced guide (chapter 5), 5.9
        Emulator: the key comes from HBRT_RKNN_KEY; without it the file is obscured from viewers but not protected.
        """

        def write() -> None:
            source = path_of(input_model, "input_model")
            data = read(source)
            if is_encrypted(data):
                raise invalid_parameter(f"{source} is already encrypted; pass the file from export_rknn.")
            platform = platform_of(Container.from_bytes(data, f"The model file {source}").metadata.target_platform)
            if not platform.has_general_api:
                raise invalid_parameter(
                    f"{platform.name} does not run encrypted models: only export_rknn writes for it."
                )
            target = (
                source.with_suffix(".crypt.rknn") if output_model is None else path_of(output_model, "output_model")
            )
            written(target, encrypted(data, crypt_level))

        return self.call("export_encrypted_rknn_model", write)

    def export_rknn(self, export_path: str | Path, cpp_gen_cfg: Any = None) -> int:
        """Write the model file, in this emulator's own format.

        Args:
            export_path: Path of the file.
            cpp_gen_cfg: No effect, with a warning: ``codegen`` writes a program.
        """

        def write() -> None:
            if cpp_gen_cfg is not None:
                self._log.warning(
                    "export_rknn", "cpp_gen_cfg has no effect in this emulator: codegen writes a program."
                )
            if self._container is None:
                raise RknnError(RknnStatus.RKNN_ERR_FAIL, "No model is built; call build first.")
            weightless = self._container.metadata.remove_weight and self._built is not None
            container = without_weights(self._container) if weightless else self._container
            container.write(path_of(export_path, "export_path"))
            self._is_exported = True

        return self.call("export_rknn", write)

    def load_rknn(self, path: str | Path) -> int:
        """Read a model file, which only runs on a board: init_runtime then needs a target."""

        def read() -> None:
            self._unbuild()
            self._container = Container.read(path_of(path, "path"))

        return self.call("load_rknn", read)

    def init_runtime(
        self,
        target: str | None = None,
        device_id: str | None = None,
        perf_debug: bool = False,  # noqa: FBT001, FBT002 - theirs
        eval_mem: bool = False,  # noqa: FBT001, FBT002 - theirs
        async_mode: bool = False,  # noqa: FBT001, FBT002 - theirs
        core_mask: int = CoreMask.NPU_CORE_AUTO,
        fallback_prior_device: str = "cpu",
    ) -> int:
        """Make the model ready to run.

        Args:
            target: Chip to emulate; None for the toolkit's simulator.
            device_id: Id of the device; any text selects the board, whose id is in ``list_devices``.
            perf_debug: Let ``eval_perf`` print each layer.
            eval_mem: Let ``eval_memory`` be called.
            async_mode: Have ``inference`` return the outputs of the previous frame, except for the first frame.
            core_mask: NPU cores to run on; only for chips with several.
            fallback_prior_device: "cpu"; "gpu" runs on the CPU as well.
        """

        def make_ready() -> None:
            container = self._container
            if container is None:
                raise RknnError(RknnStatus.RKNN_ERR_FAIL, "There is no model; call build or load_rknn first.")
            if target is None and self._built is None:
                raise invalid_parameter(
                    "A model from load_rknn only runs on a board; call init_runtime with "
                    f"target={container.metadata.target_platform!r}."
                )
            chip = _checked_target(target, device_id, container)
            if fallback_prior_device == "gpu":
                self._log.warning("init_runtime", "No GPU is emulated: what would fall back to it runs on the CPU.")
            elif fallback_prior_device != "cpu":
                raise invalid_parameter(
                    f"Invalid fallback_prior_device {fallback_prior_device!r}: must be 'cpu' or 'gpu'."
                )
            platform = chip or platform_of(container.metadata.target_platform)
            cores = platform.cores_of(core_mask)
            # A batch runs on all cores, unless the mask selects some.
            count = platform.cores if core_mask == CoreMask.NPU_CORE_AUTO else len(cores)
            self._stop()
            ops = self._ops_on(chip, container)
            try:
                runner = Runner(container, ops, count, core_mask if chip is not None else None)
            except RknnError:
                ops.close()
                raise
            if runner.note:
                self._log.warning("init_runtime", runner.note)
            self._before = [] if async_mode else None
            self._ready = _Ready(runner, container, platform, chip is not None, cores, perf_debug, eval_mem, ops)

        return self.call("init_runtime", make_ready)

    def inference(
        self,
        inputs: Any,
        data_format: str | Sequence[str] | None = None,
        inputs_pass_through: Sequence[int] | None = None,
        data_type: str | Sequence[str] | None = None,
    ) -> list[Any] | None:
        """Run the model once.

        Args:
            inputs: Arrays, one for each input, not normalized, or the array of the only input. Four-dimensional arrays
                are NHWC, whatever the layout of the ONNX model; a three-dimensional one is treated as one image, with a
                warning.
            data_format: "nhwc" or "nchw"; or a list of them.
            inputs_pass_through: 1 for an input in the model's stored form, which is not supported.
            data_type: No effect: an array has its own.

        Returns:
            Arrays of the outputs in the layout of the ONNX model; None on failure.
        """
        del data_type
        found: list[Any] = []

        def run() -> None:
            if inputs_pass_through is not None and np.any(inputs_pass_through):
                raise invalid_parameter("inputs_pass_through is for the C API; pass real numbers or pixels here.")
            ready = self._running()
            outputs = ready.runner.run(self._expanded(inputs, ready.container), data_format)
            found.extend(self._in_turn(outputs))

        return found if self.call("inference", run) == 0 else None

    def _expanded(self, inputs: Any, container: Container) -> Any:
        """The inputs; a single image is made a batch of one if the model takes four dimensions."""
        given = as_list(inputs)
        if not isinstance(given, (list, tuple)):
            return given
        whole = list(given)
        for at, (one, info) in enumerate(zip(given, container.metadata.inputs, strict=False)):
            if isinstance(one, np.ndarray) and one.ndim == 3 and len(info.shape) == 4:
                whole[at] = one[None]
                self._log.warning(
                    "inference",
                    f"The dims of input(ndarray) shape {one.shape} is wrong, expect dims is 4! Try expand dims to "
                    f"{whole[at].shape}!",
                )
        return whole

    def eval_perf(self, is_print: bool = True, fix_freq: bool = True, inputs: Any = None) -> str | None:  # noqa: FBT001, FBT002 - theirs
        """Report the model's modeled cost on the chip, and its measured time here.

        Args:
            is_print: Print it.
            fix_freq: No effect: there is no clock to lock.
            inputs: No effect: the cost does not depend on the numbers. Earlier toolkits had it.

        Returns:
            The text: with perf_debug, a table of the layers; None on failure.
        """
        del fix_freq, inputs
        found: list[str] = []

        def evaluate() -> None:
            ready = self._on_board("eval_perf")
            container = ready.container
            text = layers_text(container.proto(), container.metadata, self._ops, ready.platform, ready.cores)
            if not ready.perf_debug:  # only the totals
                text = "\n".join(line for line in text.splitlines() if line.startswith("Total "))
            found.append(f"{text}\n\n{measured_text(ready.runner)}")

        if self.call("eval_perf", evaluate):
            return None
        if is_print:
            self._log.text(found[0])
        return found[0]

    def eval_memory(self, is_print: bool = True) -> dict[str, int] | None:  # noqa: FBT001, FBT002 - theirs
        """Report the memory that the model would need on the chip, as modeled.

        Args:
            is_print: Print it.

        Returns:
            Bytes: weight_memory, internal_memory, other_memory, total_memory; None on failure.
        """
        found: dict[str, int] = {}

        def evaluate() -> None:
            ready = self._on_board("eval_memory")
            if not ready.eval_mem:
                raise invalid_parameter("eval_memory needs init_runtime(eval_mem=True).")
            found.update(memory_report(ready.container, self._ops, ready.platform).as_dict())

        if self.call("eval_memory", evaluate):
            return None
        if is_print:
            lines = [f"{name}: {size / (1 << 20):.2f} MiB ({size} bytes)" for name, size in found.items()]
            self._log.text("\n".join(["Memory on the chip, modeled:", *lines]))
        return found

    def accuracy_analysis(
        self,
        inputs: Sequence[str],
        output_dir: str | Path | None = "./snapshot",
        target: str | None = None,
        device_id: str | None = None,
    ) -> int:
        """Compare the quantized model with the real-number one, layer by layer.

        Args:
            inputs: Paths of a picture or an .npy file for each input.
            output_dir: Folder for error_analysis.txt, golden/ and simulator/ with each layer's outputs: arrays as .npy,
                and their numbers one per line as .txt. None is ./snapshot.
            target: Chip; results come from the simulator, with the custom ops of plug-ins.
            device_id: As for ``init_runtime``.
        """

        def analyze() -> None:
            if self._built is None or self._prepared is None:
                raise RknnError(RknnStatus.RKNN_ERR_FAIL, "There is no built model here; call build first.")
            folder = path_of("./snapshot" if output_dir is None else output_dir, "output_dir")
            chip = _checked_target(target, device_id, self._built.container)
            arrays = sample_arrays(self._prepared, inputs)
            feeds = {
                info.name: array for info, array in zip(self._built.container.metadata.inputs, arrays, strict=True)
            }
            runs = self._ops_on(chip, self._built.container)
            layers, golden, found = accuracy.analyze(self._built.golden, self._built.graph, self._ops, feeds, runs)
            runs.close()
            text = accuracy.table(layers)
            stems = file_stems(golden)
            for name, values in (("golden", golden), ("simulator", found)):
                (folder / name).mkdir(parents=True, exist_ok=True)
                for value, array in values.items():
                    np.save(folder / name / f"{stems[value]}.npy", array)
                    np.savetxt(folder / name / f"{stems[value]}.txt", array.reshape(-1), "%.9g")
            (folder / "error_analysis.txt").write_text(text, encoding="utf-8")
            self._log.text(text)

        return self.call("accuracy_analysis", analyze)

    def codegen(
        self,
        output_path: str | Path,
        inputs: Sequence[str] | None = None,
        overwrite: bool = False,  # noqa: FBT001, FBT002 - theirs
    ) -> int:
        """Write a folder with the model file, and a program in Python and one in C that run it.

        Args:
            output_path: The folder.
            inputs: Paths of a picture or an .npy file for each input: the programs then report their difference from
                the simulator.
            overwrite: Write to an existing folder.
        """

        def write() -> None:
            if self._built is None or self._prepared is None or not self._is_exported:
                raise RknnError(
                    RknnStatus.RKNN_ERR_FAIL, "There is no exported model; call build and export_rknn first."
                )
            folder = path_of(output_path, "output_path")
            if folder.exists() and not overwrite:
                self._log.warning(
                    "codegen", f"{folder} already exists; nothing was written. Call it with overwrite=True."
                )
                return
            arrays = sample_arrays(self._prepared, inputs) if inputs is not None else None
            outputs: list[Any] = []
            if arrays is not None:
                runner = Runner(self._built.container, self._ops)
                outputs = runner.run(arrays, "nchw")
                runner.close()
            codegen.write(folder, self._built.container, arrays, outputs)

        return self.call("codegen", write)

    def get_sdk_version(self) -> str:
        """Versions of the runtime, in the vendor's format."""
        return version_table(*(f"{one}: {API} (emulator)" for one in ("rknn_server", "rknnrt")))

    def release(self) -> None:
        """Release everything; the object can be configured again."""
        self._stop()
        self._log.close()
        self._discard()

    def _unbuild(self) -> None:
        """Drop everything built and prepared, so that a failing call leaves no trace of another model."""
        self._stop()
        self._built = self._prepared = self._container = None
        self._is_exported = False

    def _stop(self) -> None:
        if self._ready is not None:
            self._ready.close()
            self._ready = self._before = None

    def _ops_on(self, chip: Platform | None, container: Container) -> CustomOps:
        """In the simulator, the program's ops; on a board, the plug-ins' ops or, without plug-ins, the classes."""
        names = container.metadata.custom_ops
        if chip is None or not names:
            return self._ops
        ops = CustomOps()
        problems = plugins.add(ops, container)
        for name in (one for one in names if one not in ops and one in self._ops):
            self._log.warning(
                "init_runtime",
                f"No plug-in in {plugins.folder()} has {name!r}, which a board needs: its Python class runs instead. "
                f"{' '.join(problems)}".rstrip(),
            )
            ops.register(self._ops[name])
        return ops

    def _configured(self) -> Config:
        if self._config is None:
            raise RknnError(RknnStatus.RKNN_ERR_FAIL, "The model is not configured; call config first.")
        return self._config

    def _on_board(self, call: str) -> _Ready:
        ready = self._running()
        if not ready.is_board:
            raise invalid_parameter(f"{call} needs a board; call init_runtime with target={ready.platform.name!r}.")
        return ready

    def _running(self) -> _Ready:
        if self._ready is None:
            raise RknnError(RknnStatus.RKNN_ERR_FAIL, "The runtime is not initialized; call init_runtime first.")
        return self._ready


def _batch(given: Any) -> int:
    if given is None:
        return 1
    if not isinstance(given, (int, np.integer)) or given < 1:
        raise invalid_parameter(f"Invalid rknn_batch_size {given!r}: must be a number of images above 0.")
    return int(given)


def _checked_target(target: str | None, device_id: str | None, container: Container) -> Platform | None:
    """The chip to run on; None for the simulator.

    Raises:
        RknnError: RKNN_ERR_TARGET_PLATFORM_UNMATCH: the model is for another chip; RKNN_ERR_PARAM_INVALID: unknown
            chip.
    """
    if not isinstance(device_id, str | None):
        raise invalid_parameter(f"Invalid device_id {device_id!r}: must be a string from list_devices, or None.")
    if target is None:
        return None
    chip = platform_of(str(target))
    made_for = container.metadata.target_platform
    if chip.name != made_for:
        raise RknnError(
            RknnStatus.RKNN_ERR_TARGET_PLATFORM_UNMATCH,
            f"The model is for {made_for}, but the target is {target}; build it with "
            f"config(target_platform={target!r}).",
        )
    return chip
