"""What can be said of GPUs on a machine without one; with one, tests/gpu/run_all.sh."""
import subprocess

import pytest

from conftest import BUILD, ROOT, MPI_ENVIRONMENT, environment, mpirun, run

QUICK = ["--model", "quadratic", "--iterations", 5]
CUDA = BUILD if BUILD.name == "cuda" else BUILD / "cuda"

needs_cuda_build = pytest.mark.skipif(not (CUDA / "bin" / "fluentps-train").exists(),
                                      reason="there is no build with CUDA (nvcc, make check-cuda-build)")


def has_gpu():
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(BUILD.name == "cuda", reason="this is a build with CUDA")
@pytest.mark.parametrize("transfer", ["auto", "direct", "staged"])
def test_a_build_without_cuda_says_how_to_get_one(tmp_path, transfer):
    result = mpirun(2, "--out", tmp_path / "out", *QUICK, "--gpu-transfer", transfer, expect=2)
    assert len(result.sentences()) == 1 and "build with make CUDA=1" in result.sentences()[0]
    assert not (tmp_path / "out").exists()


def test_an_unknown_transfer_is_refused(tmp_path):
    result = mpirun(2, "--out", tmp_path / "out", *QUICK, "--gpu-transfer", "stagd", expect=2)
    assert "stagd" in result.sentences()[0] and "off, auto, direct or staged" in result.sentences()[0]


def test_cuda_stays_in_its_room():
    for path in [*ROOT.glob("src/**/*"), *ROOT.glob("include/**/*")]:
        if path.suffix not in (".cpp", ".hpp", ".cu") or path.parent.name == "gpu":
            continue
        text = path.read_text()
        assert "#include <cuda" not in text and "#include <nccl" not in text, path


@needs_cuda_build
@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
def test_the_cuda_build_without_a_driver_says_what_is_missing(tmp_path):
    program = CUDA / "bin" / "fluentps-train"
    result = run(["mpirun", "-np", 2, program, "--out", tmp_path / "out", *QUICK, "--gpu-transfer", "auto"], MPI_ENVIRONMENT, 60)
    assert result.code == 2 and len(result.sentences()) == 1, result.text
    assert "no NVIDIA driver" in result.sentences()[0] and "--gpu-transfer off" in result.sentences()[0]
    # Without GPUs asked for it is the same program.
    assert run(["mpirun", "-np", 2, program, "--out", tmp_path / "out", *QUICK], MPI_ENVIRONMENT, 60).code == 0


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
def test_the_gpu_checks_are_skipped_where_there_is_no_gpu():
    result = subprocess.run(["tests/gpu/run_all.sh"], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "There is no GPU on this machine" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("0 passed, 0 failed, ")
