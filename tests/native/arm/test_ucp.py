"""Programs of the S series: hbUCP, and hbDNN by the path hobot/."""

from pathlib import Path

import pytest

from hbrt.native.files import include_dir
from hbrt.samples_dir import samples_dir
from hbrt.status import Status
from tests.native.arm.conftest import Compile, Run, cc
from tools.stand_in import write_model

HEADERS = sorted(path.relative_to(include_dir("ucp")).as_posix() for path in include_dir("ucp").rglob("*.h"))


@pytest.mark.parametrize("standard", ["c11", "c++11"])
def test_every_header_compiles_alone(compiled: Compile, tmp_path: Path, standard: str) -> None:
    suffix = "c" if standard == "c11" else "cc"
    for number, name in enumerate(HEADERS):
        (tmp_path / f"alone{number}.{suffix}").write_text(f'#include "{name}"\ntypedef int used{number};\n')
    main = tmp_path / f"main.{suffix}"
    main.write_text("int main(void) { return 0; }\n")
    others = [str(tmp_path / f"alone{number}.{suffix}") for number in range(len(HEADERS))]
    compiled(str(main), *others, f"-std={standard}", "-Wshadow")


def test_both_generations_in_one_file_are_refused(compiled: Compile, tmp_path: Path) -> None:
    del compiled
    (tmp_path / "both.c").write_text('#include "dnn/hb_dnn.h"\n#include "hobot/dnn/hb_dnn.h"\n')
    answer = cc("-fsyntax-only", "both.c", cwd=tmp_path)
    assert "not both: their structures differ" in answer.stderr


def test_the_boards_folder_of_headers_chooses_the_series(compiled: Compile, tmp_path: Path) -> None:
    del compiled
    (tmp_path / "program.cc").write_text(
        '#include "dnn/hb_dnn.h"\n#include "hb_sys.h"\n'
        "int used(hbDNNTensor *tensor, hbSysMem *mem) { return hbUCPFree(&tensor->sysMem) + hbUCPFree(mem); }\n"
    )
    assert cc("-c", "-I/usr/include/hobot", "program.cc", cwd=tmp_path).returncode == 0
    assert cc("-c", "program.cc", cwd=tmp_path).returncode != 0  # by which the first series is meant


def test_a_picture_is_two_inputs_and_tasks_are_submitted(compiled: Compile, run: Run, tmp_path: Path) -> None:
    net = tmp_path / "net.hbm"
    write_model(net, [{"shape": [1, 3, 16, 24], "type": "nv12", "name": "data"}], [{"shape": [1, 3]}])
    answer = run(compiled("ucp.cc", "-std=c++11"), net, HBRT_CHECK="all")
    assert (answer.returncode, answer.stderr.count("ERROR")) == (0, 3), answer.stderr  # two releases, and an index
    assert answer.stdout.splitlines() == [
        "data_y 16 x 24 x 1 of type 3, strides -1 1",
        "data_uv 8 x 12 x 2 of type 3, strides -1 2",
        "refused 1 1",
        *["again 1", "released 1", "output 2 12 7"] * 2,
        "127.000 128.000 129.000",
        "S100 1 cores, no input 1",
    ]


def test_strides_of_an_input_are_the_padded_or_the_dense_ones(compiled: Compile, run: Run) -> None:
    answer = run(compiled("ucp_strides.c"), samples_dir() / "dnn" / "digits_int8.onnx", HBRT_CHECK="all")
    assert answer.stdout.splitlines() == ["1 0 0 equal 1", "refused 1"], answer.stderr
    assert "the strides of the input image are neither" in answer.stderr


def test_an_op_runs_on_the_core_that_was_named(compiled: Compile, run: Run) -> None:
    answer = run(compiled("ucp_dsp.c"), HBRT_CHECK="all")
    mapped = f"{int(Status.HB_SYS_REGISTER_MEM_FAILED)} 0 1"
    assert answer.stdout.splitlines() == [mapped, "0 1 0 0 0", "0.032 0.087 0.237 0.644"], answer.stderr
    assert "is outside DDR" in answer.stderr
    assert "backend is 0x1, which names no DSP core: use HB_UCP_DSP_CORE_ANY." in answer.stderr
    assert "leak" not in answer.stderr
