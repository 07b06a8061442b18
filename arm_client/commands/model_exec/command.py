"""``hrt_model_exec``: inspect, run and measure a model, with the flags of the board's tool.

docs/hrt-model-exec.md lists the flags and the emulator's choices.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arm_client.commands.model_exec.flags import FlagCommand, Numbers, boolean_flag, flag
from hbrt.cli.exits import Exit
from hbrt.cli.group import be_program, mapped_exits
from hbrt.cli.report import Report, is_json, reports
from hbrt.cli.tables import Column, Table, number, show_text

if TYPE_CHECKING:
    from arm_client.commands.model_exec.models import Models
    from arm_client.commands.model_exec.perf import Load
    from arm_client.commands.model_exec.stats import Summary
    from hbrt.dnn_types import hbDNNInferCtrlParam

_LAYERS = (
    Column("LAYER", "node"),
    Column("OP"),
    Column("RESULT", "value"),
    number("COSINE", lambda one: f"{one.cosine:.6f}"),
    number("LARGEST ERROR", lambda one: f"{one.largest_error:.3g}"),
    Column("", lambda one: "differs" * one.differs),
)
model_file = flag(
    "model_file", str, None, "Model files, ONNX, separated by commas.", required=True, metavar="FILE[,FILE...]"
)
model_name = flag("model_name", str, "", "Which model, when there are several.", metavar="NAME")
core_id = flag("core_id", click.IntRange(0, 2), 0, "BPU core: 0 any, 1 core 0, 2 core 1.")
input_file = flag(
    "input_file",
    str,
    "",
    "An input each, separated by commas: jpg and png for pictures, npy, bin, txt for tensors.",
    metavar="FILE[,FILE...]",
)
roi_infer = boolean_flag("roi_infer", "The model has resizer inputs: they take regions of the pictures.")
roi = flag("roi", str, "", "Regions, corners inclusive, in the order of the pictures.", metavar="L,T,R,B[;L,T,R,B...]")
input_valid_shape = flag(
    "input_valid_shape", str, "", "Sizes of inputs with data-dependent sizes.", metavar="N,N,..[;N,N,..]"
)
task_priority = flag("task_priority", click.IntRange(0, 255), 0, "Priority of the tasks, larger first.")
task_timeout = flag("task_timeout", click.IntRange(0), 0, "Time limit of a task in milliseconds; 0 for no limit.")


class _Group(click.Group):
    """The subcommands; failures become a message and an exit code, as for hbrt's verbs."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand."""
        from arm_client.commands.run.pictures import need

        with mapped_exits():
            need("dnn")
            return super().invoke(ctx)


def _print_version(ctx: click.Context, _option: click.Parameter, value: Any) -> None:
    if value and not ctx.resilient_parsing:
        with mapped_exits():
            from arm_client.dnn.capi.api import hbDNNGetVersion

            show_text(hbDNNGetVersion())
        ctx.exit()


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: hrt_model_exec infer --model_file model.onnx --input_file input.bin",
)
@click.option(
    "-v",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version of the DNN runtime.",
)
def group() -> None:
    """Inspect, run and measure a model.

    Flags are written as on the board: --flag=value or --flag value. Exit codes: 0 good; 1 the model or its run failed;
    2 wrong usage; 3 the tool or its environment is broken; 124 a time limit was reached.
    """


@group.command("model_info", cls=FlagCommand, epilog="Example: hrt_model_exec model_info --model_file model.onnx")
@model_file
@model_name
@reports
def model_info(model_file: str, model_name: str) -> Report:
    """Show the models of files: their inputs and outputs, and where each part runs."""
    from arm_client.commands.model_exec.models import Models, document_of, text_of

    models = Models(model_file, are_run=False)
    chosen = [document_of(model) for model in models.chosen(model_name)]
    return Report({"load_ms": models.load_ms, "models": chosen}, models.heading(), *map(text_of, chosen))


@group.command(
    cls=FlagCommand, epilog="Example: hrt_model_exec infer --model_file model.onnx --input_file a.jpg --enable_dump"
)
@model_file
@model_name
@core_id
@input_file
@roi_infer
@roi
@flag("frame_count", click.IntRange(1), 1, "Number of frames to run, all with the same input.")
@flag(
    "dump_intermediate",
    click.IntRange(0, 3),
    0,
    "Write inputs and outputs of every node: 1 as bin, 2 and 3 as bin and txt.",
)
@boolean_flag("enable_dump", "Write the model's inputs and outputs.")
@flag("dump_precision", click.IntRange(0, 60), 9, "Decimals of real numbers in txt files.")
@boolean_flag("hybrid_dequantize_process", "With enable_dump: outputs as real numbers, without padding, in txt files.")
@flag("dump_format", click.Choice(["bin", "txt"]), "bin", "bin: the bytes as in memory; txt: the same as numbers.")
@flag("dump_txt_axis", click.IntRange(0, 8), 4, "Numbers that differ in dimensions from this one on share a line.")
@flag("dump_path", click.Path(file_okay=False, path_type=Path), ".", "Directory that files are written to.")
@boolean_flag("enable_cls_post_process", "Show the five classes of the highest scores in the first output.")
@input_valid_shape
@task_priority
@task_timeout
@reports
def infer(**flags: Any) -> Report:
    """Run an input, and show its time and results."""
    from arm_client.commands.model_exec import infer as run
    from arm_client.commands.model_exec.dump import Dumps
    from arm_client.commands.model_exec.models import Models

    models = Models(flags["model_file"])
    model = models.one(flags["model_name"])
    if model.inputs and not flags["input_file"]:
        raise click.UsageError("Give --input_file, with a file for each input.")
    run.check_axis(flags["dump_txt_axis"], model)
    if flags["hybrid_dequantize_process"] and not flags["enable_dump"]:
        show_text(
            "Nothing is written: --hybrid_dequantize_process sets the format, --enable_dump turns writing on.", err=True
        )
    document = run.infer(
        models.file_of(model),
        model,
        _frame(model, flags),
        flags["frame_count"],
        _control(flags),
        flags["task_timeout"],
        Dumps(*(flags[name] for name in Dumps._fields)),
        classify=flags["enable_cls_post_process"],
    )
    load = f"Load model to DDR cost {models.load_ms:.3f}ms."
    return Report({"load_ms": models.load_ms, **document}, load, run.text_of(document))


@group.command(cls=FlagCommand, epilog="Example: hrt_model_exec perf --model_file model.onnx --thread_num 4")
@model_file
@model_name
@core_id
@input_file
@roi_infer
@roi
@flag("frame_count", click.IntRange(1), 200, "Number of frames to run, all with the same input.")
@flag("perf_time", click.IntRange(0), 0, "How many minutes to run; wins over frame_count.")
@flag("perf_time_in_seconds", click.IntRange(0), 0, "The same in seconds; added to it.")
@flag("thread_num", click.IntRange(1, 32), 1, "Threads: 1 to measure latency, more than 2 to measure throughput.")
@flag("sweep_threads", Numbers(int, 32), None, "Measure with each of these numbers of threads.", metavar="N,N,...")
@flag(
    "sweep_rates",
    Numbers(float, 1_000_000),
    None,
    "Measure with this number of frames due per second; a late frame's latency counts from when it was due.",
    metavar="FPS,FPS,...",
)
@flag("until_spread", click.FloatRange(0), 0, "Run rounds of frame_count frames until the average is known to N %.")
@boolean_flag("all_models", "Run all models of model_file at once, each with thread_num threads.")
@flag(
    "profile_path",
    click.Path(file_okay=False, path_type=Path),
    None,
    "Write profiler.log and profiler.csv, the times of each step, to this directory.",
)
@boolean_flag("enable_warmup", "Run a frame in each thread before the clock starts.", default=True)
@flag("statistic_cycle", click.IntRange(1), 200, "Print a line after this number of frames.")
@input_valid_shape
@task_priority
@task_timeout
@reports
def perf(**flags: Any) -> Report:
    """Run a model repeatedly, on random input by default, and show its latency and frame rate."""
    from arm_client.commands.model_exec.models import Models, modeled_run, modeled_text, plan_of
    from arm_client.commands.model_exec.perf import perf
    from arm_client.commands.model_exec.stats import progress_line, summary_block
    from arm_client.dnn.profile.profiler import StepProfile

    models = Models(flags["model_file"])
    if flags["all_models"] or flags["sweep_threads"] or flags["sweep_rates"]:
        return _sweep(models, flags)
    model = models.one(flags["model_name"])
    frame = _frame(model, flags)
    plan = plan_of(model)
    profile = StepProfile([step.name for step in plan.steps])
    if flags["profile_path"] is not None:
        plan.observer = profile.observe
    load = _load(flags)
    is_text = not is_json()
    if is_text:
        show_text(f"Load model to DDR cost {models.load_ms:.3f}ms.")

    def tell(summary: Summary) -> None:
        if is_text:
            show_text(progress_line(summary))

    (summary,) = perf([(model, frame)], _control(flags), load, on_cycle=tell, started=profile.clear)
    if flags["profile_path"] is not None:
        profile.write(
            flags["profile_path"],
            {"FPS": summary.fps, "average_latency": summary.average},
            {
                "core_id": flags["core_id"],
                "frame_count": summary.frame_count,
                "model_name": model.name,
                "run_time": summary.run_time,
                "thread_num": summary.thread_num,
            },
        )
    modeled = modeled_run(plan.read())
    document = {"model_name": model.name, "core_id": flags["core_id"], "load_ms": models.load_ms}
    return Report(
        document | summary.document() | profile.document() | {"modeled": modeled},
        *([progress_line(summary)] if summary.frame_count % load.cycle else []),
        f"\n{summary_block(summary)}",
        f"\n{modeled_text(modeled)}",
    )


def _load(flags: dict[str, Any]) -> Load:
    from arm_client.commands.model_exec.perf import Load

    seconds = flags["perf_time"] * 60 + flags["perf_time_in_seconds"]
    if seconds and flags["until_spread"]:
        raise click.UsageError("--until_spread runs until it knows enough; leave out --perf_time.")
    return Load(
        frames=flags["frame_count"],
        seconds=seconds,
        threads=flags["thread_num"],
        warms_up=flags["enable_warmup"],
        cycle=flags["statistic_cycle"],
        timeout_ms=flags["task_timeout"],
        spread=flags["until_spread"],
    )


def _sweep(models: Models, flags: dict[str, Any]) -> Report:
    """Measure at several loads, or several models at once."""
    from arm_client.commands.model_exec import sweep

    if flags["profile_path"] is not None:
        raise click.UsageError(
            "--profile_path works with a single measurement: leave out --sweep_threads, --sweep_rates, --all_models."
        )
    chosen = models.chosen(flags["model_name"]) if flags["all_models"] else [models.one(flags["model_name"])]
    targets = [(model, _frame(model, flags)) for model in chosen]
    loads = sweep.loads(_load(flags), flags["sweep_threads"], flags["sweep_rates"])
    points = [*sweep.measure(targets, _control(flags), loads)]
    data = {"load_ms": models.load_ms, "points": [point.document() for point in points]}
    return Report(data, Table(sweep.COLUMNS, points))


@group.command(cls=FlagCommand, epilog="Example: hrt_model_exec compare int8.onnx --against float.onnx --cosine 0.98")
@click.argument("model", metavar="[MODEL]", required=False)
@flag("model_file", str, None, "The model, if it is not named without a flag.", metavar="FILE[,FILE...]")
@model_name
@flag(
    "against",
    click.Path(exists=True, dir_okay=False, path_type=Path),
    None,
    "The reference: an ONNX model that onnxruntime runs, or an npz with values by name.",
    required=True,
    metavar="REF.onnx|REF.npz",
)
@core_id
@input_file
@input_valid_shape
@flag(
    "cosine",
    click.FloatRange(-1, 1),
    None,
    "A layer with a smaller cosine differs; 0.9999, or 0.99 with quantized layers.",
)
@flag(
    "largest_error",
    click.FloatRange(0),
    None,
    "The same for a larger error, as a share of the reference's largest value; 0.001, or likewise no limit.",
)
@task_priority
@task_timeout
@reports
def compare(**flags: Any) -> Report:
    """Compare a model layer by layer with a reference, and name the first layer that differs.

    Layers are matched by the names of their results; names given by onnxruntime's quantizer are recognized. The exit
    code is 1 when one differs. The input is random unless --input_file names one.
    """
    from arm_client.commands.model_exec.compare import compare, limits_for, reference_values
    from arm_client.commands.model_exec.layers import AS_FED, all_values
    from arm_client.commands.model_exec.models import Models

    if flags["model"] and flags["model_file"]:
        raise click.UsageError("Name the model once: as MODEL or by --model_file.")
    models = Models(flags["model"] or flags["model_file"] or "")
    model = models.one(flags["model_name"])
    frame = _frame(model, {**flags, "roi": "", "roi_infer": False})
    values, nodes = all_values(models.file_of(model), model, frame, _control(flags), flags["task_timeout"])
    fed = {name.removesuffix(AS_FED): value for name, value in values.items() if name.endswith(AS_FED)}
    reference = reference_values(flags["against"], fed)
    layers = compare(nodes, values, reference, limits_for(nodes, reference, flags["cosine"], flags["largest_error"]))
    if not layers:
        raise click.UsageError(
            f"{flags['against']} has no value with the name of a layer's result; the model has "
            f"{', '.join(sorted(set(values) - set(fed))[:5])}."
        )
    first = next((one for one in layers if one.differs), None)
    data = {
        "model_name": model.name,
        "against": str(flags["against"]),
        "first": first and first.document(),
        "layers": [one.document() for one in layers],
    }
    text = first.sentence() if first else f"None of {len(layers)} layers differs."
    return Report(data, Table(_LAYERS, layers), text, code=Exit.FAILED if first else Exit.GOOD)


def _frame(model: Any, flags: dict[str, Any]) -> Any:
    from arm_client.commands.model_exec.inputs import frame_of
    from arm_client.session import session
    from hbrt import settings

    settings.check()
    session.default()  # else the first tensor would be refused memory
    return frame_of(model, flags["input_file"], flags["roi"], flags["input_valid_shape"], roi_infer=flags["roi_infer"])


def _control(flags: dict[str, Any]) -> hbDNNInferCtrlParam:
    from arm_client.dnn.python.runner import control

    return control(flags["core_id"], flags["task_priority"])


def main() -> None:
    """Entry of the ``hrt_model_exec`` program, once it is loaded (see hbrt.programs)."""
    be_program(group, "hrt_model_exec")
