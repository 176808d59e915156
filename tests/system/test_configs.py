"""Every file in configs/ can be loaded, says what the settings of the experiments are, and survives its own dump."""
import pytest

from conftest import BUILD, ROOT, run

CONFIGS = sorted((ROOT / "configs").glob("*.cfg"))

# From the settings of the authors' artifact, written down here apart from the files.
SETTINGS = {
    "cifar-quick-64w": {"model": "cifar-quick", "batch-size": "100", "lr": "0.001", "momentum": "0.9", "weight-decay": "0.004",
                        "iterations": "4000", "servers": "1"},
    "resnet56-b4096": {"model": "resnet56", "global-batch": "4096", "optimizer": "nesterov", "lr": "0.1", "momentum": "0.9",
                       "weight-decay": "0.0005", "iterations": "64000", "lr-schedule": "multistep:at=32000+48000,factor=0.1",
                       "augment": "flip"},
    "resnet56-b8192": {"model": "resnet56", "global-batch": "8192", "optimizer": "nesterov", "lr": "0.1"},
    "resnet56-lars": {"optimizer": "lars", "lr": "9", "warmup": "iterations=10000,from=1.0", "lr-schedule": "poly:power=2",
                      "weight-decay": "0.0001", "trust-ratio": "0.001"},
    "lenet-mnist": {"model": "lenet", "dataset": "mnist", "batch-size": "100"},
    "quickstart": {"model": "lenet", "dataset": "fashion-mnist"},
}


def check(*arguments, expect=0):
    result = run([BUILD / "bin" / "fluentps-train", "--check-config", *arguments], timeout=30)
    assert result.code == expect, result.text
    return result


def test_all_are_there():
    assert {each.stem for each in CONFIGS} == set(SETTINGS)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_config_loads(tmp_path, path):
    text = check("--config", path).out
    values = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
    for name, value in SETTINGS[path.stem].items():
        assert values[name] == value, name
    dumped = tmp_path / "dumped.cfg"
    dumped.write_text(text)
    assert check("--config", dumped).out == text
    assert path.read_text().startswith("#")


@pytest.mark.parametrize("arguments, expected", [(["--optimizer", "sdg"], "sgd"), (["--sync", "spp:s=3"], "ssp"),
                                                 (["--lr-schedule", "poli"], "poly"), (["--augment", "flop"], "flip"),
                                                 (["--optimizer-at", "moon"], "worker or server"),
                                                 (["--checkpoint-every", "5", "--out", ""], "--checkpoint-dir"),
                                                 (["--checkpoint-every", "5", "--iterations", "5,6"], "same number")])
def test_check_config_finds_mistakes(arguments, expected):
    assert expected in check(*arguments, expect=2).err
