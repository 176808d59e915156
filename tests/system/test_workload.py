"""What is trained does not depend on how the work is split: over workers, over batches, between worker and server."""
import numpy
import pytest

from conftest import flat, mpirun, only_run, ranks_of

IMAGES = "synthetic:images=2000,test=100,channels=3,size=32"


def train(tmp_path, name, ranks, *arguments, servers=1):
    """Returns the final weights and the loss of each global batch, which is the mean over the workers' parts."""
    file = tmp_path / f"{name}.h5"
    mpirun(ranks, "--servers", servers, "--sync", "bsp", "--out", tmp_path / name, "--save-weights", file, *arguments)
    losses = [worker["iterations"]["loss"] for worker in ranks_of(only_run(tmp_path / name), "worker")]
    return flat(file), numpy.mean(losses, axis=0)


def test_the_loss_curve_does_not_depend_on_the_number_of_workers(tmp_path, clean_after):
    common = ["--model", "cifar-quick", "--dataset", IMAGES, "--augment", "flip+crop", "--global-batch", 64, "--iterations", 30,
              "--optimizer", "momentum", "--lr", 0.01, "--weight-decay", 0.004]
    _, one = train(tmp_path, "one", 2, *common)
    assert one[0] > one[-1] + 0.1, "nothing was learnt"
    for workers in (2, 4):
        _, several = train(tmp_path, f"w{workers}", workers + 1, *common)
        assert numpy.abs(several - one).max() < 1e-3


def test_the_global_batch_may_be_accumulated(tmp_path, clean_after):
    common = ["--model", "softmax", "--iterations", 20, "--global-batch", 240, "--optimizer", "momentum", "--lr", 0.02, "--eval-images", 100]
    whole, loss = train(tmp_path, "whole", 4, *common)
    parts, loss_of_parts = train(tmp_path, "parts", 3, *common, "--grad-accumulate", 4)
    assert numpy.abs(parts - whole).max() < 1e-5 < numpy.abs(whole).max()
    assert numpy.abs(loss - loss_of_parts).max() < 1e-4


# softmax has no kinks by which rounding would grow. lars on the worker takes the norm of its own gradient, on the server that of the mean: the same thing for one worker only.
@pytest.mark.parametrize("optimizer, workers", [("sgd", 3), ("momentum", 3), ("nesterov", 3), ("lars", 1), ("adam", 1)])
def test_optimizer_on_worker_or_server(tmp_path, clean_after, optimizer, workers):
    lr = {"lars": 1, "adam": 0.001}.get(optimizer, 0.02)
    common = ["--model", "softmax", "--dataset", "synthetic:images=1000,test=100", "--batch-size", 16, "--iterations", 20, "--optimizer",
              optimizer, "--lr", lr, "--lr-schedule", "multistep:at=10,factor=0.5", "--weight-decay", 0.001, "--slicing", "tensor"]
    worker, _ = train(tmp_path, "worker", workers + 2, *common, servers=2)
    server, _ = train(tmp_path, "server", workers + 2, *common, "--optimizer-at", "server", servers=2)
    assert numpy.abs(worker - server).max() < 1e-5 < numpy.abs(worker).max()


def test_lars_on_servers_that_share_a_layer_is_refused(tmp_path):
    result = mpirun(4, "--servers", 2, "--model", "softmax", "--iterations", 5, "--optimizer", "lars", "--optimizer-at", "server",
                    "--out", tmp_path / "out", expect=2)
    assert "--slicing tensor" in result.err and len(result.sentences()) == 1
    assert not (tmp_path / "out").exists()


def test_clipping_bounds_the_step(tmp_path, clean_after):
    common = ["--model", "softmax", "--iterations", 1, "--optimizer", "sgd", "--eval-images", 100]
    start, _ = train(tmp_path, "start", 2, *common, "--lr", 1e-9)
    clipped, _ = train(tmp_path, "clipped", 2, *common, "--lr", 1, "--clip-norm", 0.01)
    free, _ = train(tmp_path, "free", 2, *common, "--lr", 1)
    assert abs(numpy.linalg.norm(clipped - start) - 0.01) < 1e-4
    assert numpy.linalg.norm(free - start) > 0.1
