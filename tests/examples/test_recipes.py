"""The scattering transform keeps its promises, and the recipes run from end to end on made-up pictures."""

import importlib
import json
import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

EXAMPLES = Path(__file__).parents[2] / "examples" / "images"


@pytest.fixture(autouse=True)
def _examples(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def imported(name):
    return importlib.import_module(name)


def pictures(rows, size, channels=1, judges=200):
    """Stripes whose direction and colour tell the class, with some noise."""
    generator = torch.Generator().manual_seed(5)
    y = torch.arange(rows) % 10
    angle = y * math.pi / 10
    u = torch.arange(size, dtype=torch.float32)
    phase = torch.rand(rows, generator=generator) * 6
    wave = angle.cos()[:, None, None] * u[:, None] + angle.sin()[:, None, None] * u + phase[:, None, None]
    x = 0.5 + 0.4 * wave.sin()[:, None] + 0.05 * torch.randn(rows, channels, size, size, generator=generator)
    return imported("pictures").Pictures(x[:-judges], y[:-judges], x[-judges:], y[-judges:])


@pytest.mark.parametrize(("size", "channels", "shape"), [(28, 1, (3, 81, 7, 7)), (32, 3, (3, 243, 8, 8))])
def test_scattering_has_the_promised_shape_and_no_gradient(size, channels, shape):
    x = torch.rand(3, channels, size, size, requires_grad=True)
    found = imported("scattering").Scattering(size)(x)
    assert found.shape == shape
    assert not found.requires_grad


def test_wavelets_ignore_constants_and_together_amplify_no_frequency():
    scattering = imported("scattering")
    made = scattering.Scattering(28)
    waves, low = made.waves.double(), scattering.gaussian(made.side)
    assert waves[:, 0, 0].abs().max() < 1e-6
    mirrored = torch.roll(waves.flip(1, 2), (1, 1), (1, 2))
    power = low**2 + (waves**2 + mirrored**2).sum(0) / 2
    assert power.max() == pytest.approx(1, abs=1e-5)
    found = made(torch.full((1, 1, 28, 28), 0.7))
    assert found[0, 0].sub(0.7).abs().max() < 1e-5
    assert found[0, 1:].abs().max() < 1e-5


def test_scattering_does_not_add_energy_and_hardly_feels_small_shifts():
    x = pictures(210, 36).x
    made = imported("scattering").Scattering(28)
    one, other, far = made(x[..., 4:-4, 4:-4]), made(x[..., 4:-4, 5:-3]), made(x.flip(-1)[..., 4:-4, 4:-4])
    padded = torch.nn.functional.pad(x[..., 4:-4, 4:-4], (4,) * 4, mode="reflect")
    assert (16 * one.square().sum((1, 2, 3)) <= padded.square().sum((1, 2, 3))).all()
    moved = (x[..., 4:-4, 4:-4] - x[..., 4:-4, 5:-3]).norm() / x[..., 4:-4, 4:-4].norm()
    assert (one - other).norm() / one.norm() < moved / 2
    assert (one - far).norm() > 2 * (one - other).norm()


def test_the_averaging_matrix_is_the_averages_spectrum():
    scattering = imported("scattering")
    x = torch.rand(36, 36, dtype=torch.float64)
    matrix = scattering.averaging(36, 4, 4)
    by_spectrum = torch.fft.ifft2(torch.fft.fft2(x) * scattering.gaussian(36)).real[4:-4:4, 4:-4:4]
    torch.testing.assert_close(matrix @ x @ matrix.t(), by_spectrum, atol=1e-6, rtol=0)


def said(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def judged(lines, epsilon):
    assert all(line["spent"] <= line["epsilon"] for line in lines if "spent" in line)
    return next(line["mean"] for line in lines if line.get("summary") and line["epsilon"] == epsilon)


def test_private_images_on_made_up_pictures(capsys):
    recipe = imported("training").Recipe(batch=300, epochs=20, step=0.5, average=0.9)
    imported("private_images").learn(
        pictures(700, 28), recipe, groups=27, epsilons=[8.0], runs=2, device="cpu", data_set="stripes"
    )
    lines = said(capsys)
    assert judged(lines, 8.0) > 60
    assert judged(lines, None) > 90


def test_pate_images_on_made_up_pictures(capsys, monkeypatch):
    pate_images = imported("pate_images")
    monkeypatch.setattr(pate_images, "HELD_BACK", 50)
    data = pictures(1600, 28, judges=250)
    labels = torch.cat([data.y, data.judged_y])
    features = torch.randn(1600, pate_images.COMPONENTS) / 10
    features[:, :10] += torch.nn.functional.one_hot(labels, 10)
    rows = torch.cat([features, torch.cat([data.x, data.judged_x]).flatten(1)], dim=1).numpy()
    pate_images.learn(
        rows[:-250], data.y.numpy(), rows[-250:], data.judged_y.numpy(),
        student=pate_images.PictureStudent(surest=(0.8, 1.0), epochs=2),
        teachers=60, epsilon=8.0, sigma=10, splits=2, jobs=1, data_set="stripes",
    )  # fmt: skip
    lines = said(capsys)
    assert judged(lines, 8.0) >= 0  # stripes that are turned look like other classes
    assert all(line["labels right"] > 80 for line in lines[:2])
    assert [line["answers"] for line in lines[:2]] == [lines[0]["answers"]] * 2


def test_pate_images_components_are_those_of_public_pictures():
    pate_images = imported("pate_images")
    public, private = torch.randn(300, 260), torch.randn(40, 260)
    made, shown = pate_images.components(private, public)
    assert made.shape == (40, 200)
    assert (shown**2).sum(1).mean() == pytest.approx(1, rel=1e-3)
    again, _ = pate_images.components(private[:5], public)
    torch.testing.assert_close(torch.as_tensor(again), torch.as_tensor(made[:5]))


def adult(path, rows):
    generator, names = torch.Generator().manual_seed(rows), ["age: continuous."]
    words = {k: [f"w{k}a", f"w{k}b"] for k in (1, 3, 5, 6, 7, 8, 9, 13)}
    names += [f"c{k}: {', '.join(words[k])}." if k in words else f"c{k}: continuous." for k in range(1, 14)]
    (path / "adult.names").write_text("| about\n>50K, <=50K.\n" + "\n".join(names) + "\n")
    lines = []
    for k in range(rows):
        years = int(torch.randint(1, 16, (1,), generator=generator))
        cells = [words[c][k % 2] if c in words else str(years) for c in range(14)]
        lines.append(", ".join([*cells, ">50K" if years > 8 else "<=50K"]))
    return "\n".join(lines).encode()


def test_adult_on_made_up_people(capsys, monkeypatch, tmp_path):
    import gzip

    monkeypatch.syspath_prepend(str(EXAMPLES.parent / "people"))
    recipe = imported("adult_pate")
    monkeypatch.setattr(recipe, "HELD_BACK", 100)
    for name in ("adult.data.gz", "adult.test.gz"):
        (tmp_path / name).write_bytes(gzip.compress(adult(tmp_path, 600)))
    given = ["adult_pate", "--data", str(tmp_path), "--runs", "1", "--teachers", "30", "--jobs", "1", "--sigma", "15"]
    monkeypatch.setattr("sys.argv", [*given, "--epsilon", "3"])
    recipe.main()
    assert judged(said(capsys), 3.0) > 60


def test_private_cifar_on_made_up_pictures(capsys):
    recipe = imported("training").Recipe(batch=50, epochs=2, step=0.2, average=0.9)
    imported("private_cifar").learn(pictures(150, 32, 3, 50), recipe, epsilons=[8.0], runs=1, device="cpu", width=4)
    lines = said(capsys)
    assert judged(lines, None) > 15
    assert judged(lines, 8.0) >= 0


def test_pretrain_public_on_made_up_weights(capsys):
    pretrain = imported("pretrain_public")
    weights = made_up_weights(pretrain)
    backbone = pretrain.Backbone("efficientnet_lite0", weights)
    recipe = imported("training").Recipe(batch=50, epochs=10, step=0.5, average=0.9)
    pretrain.learn(pictures(150, 32, 3, 50), backbone, recipe, size=32, epsilons=[8.0], runs=1, network="made up")
    assert judged(said(capsys), 8.0) >= 0


def test_layers_of_backbones_are_convolutions_with_frozen_normalisation():
    pretrain = imported("pretrain_public")
    weights = made_up_weights(pretrain)
    x = torch.rand(2, 3, 16, 16)
    layer = pretrain.Backbone("efficientnet_lite0", weights).first
    convolved = torch.nn.functional.conv2d(
        torch.nn.functional.pad(x, (0, 1, 0, 1)), weights["_conv_stem.weight"], None, 2
    )
    norm = [weights[f"_bn0.{name}"] for name in ("running_mean", "running_var", "weight", "bias")]
    expected = torch.nn.functional.batch_norm(convolved, *norm, eps=1e-3).clamp(0, 6)
    torch.testing.assert_close(layer(x), expected)


def made_up_weights(pretrain):
    """Random weights with the names of EfficientNet-Lite0, all channels 4."""
    torch.manual_seed(2)
    weights = {}

    def add(convolution, norm, out, into, kernel):
        weights[f"{convolution}.weight"] = torch.randn(out, into, kernel, kernel) / (into * kernel**2) ** 0.5
        for name in ("weight", "running_var"):
            weights[f"{norm}.{name}"] = 0.5 + torch.rand(out)
        for name in ("bias", "running_mean"):
            weights[f"{norm}.{name}"] = torch.randn(out) / 4

    add("_conv_stem", "_bn0", 4, 3, 3)
    for i in range(len(pretrain.STRIDES["efficientnet_lite0"])):
        name = f"_blocks.{i}"
        if i:
            add(f"{name}._expand_conv", f"{name}._bn0", 4, 4, 1)
        add(f"{name}._depthwise_conv", f"{name}._bn1", 4, 1, 3)
        add(f"{name}._project_conv", f"{name}._bn2", 4, 4, 1)
    add("_conv_head", "_bn1", 64, 4, 1)
    return weights
