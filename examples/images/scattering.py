"""The scattering transform of images: fixed wavelets and moduli, nothing learned, so nothing to pay for.

Two layers of it (Bruna and Mallat 2013) make features on which small models do well (Tramèr and Boneh 2021).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

SCALES = 2
"""Wavelets are dilated by 1, 2, …, 2**(SCALES - 1), and their moduli averaged over about 2**SCALES pixels."""
ANGLES = 8
WIDTH, FREQUENCY, SLANT = 0.8, 3 * math.pi / 4, 0.5
"""The finest wavelet: its standard deviation in pixels along the wave, its frequency, and how much shorter it is along
the wave than across. The average's standard deviation is WIDTH * 2**(SCALES - 1)."""
FOLDS = 2
"""A sampled function's spectrum is the sum of copies shifted by 2 pi; so many are added on each side."""


class Scattering:
    """Features (images, channels * 81, size/4, size/4) of square images (images, channels, size, size).

    The 81 are the averaged image, 16 averaged moduli of its wavelet coefficients, and 64 of the moduli of those of the
    finer ones' moduli. Images are continued by reflection.
    """

    def __init__(self, size: int, device: torch.device | str = "cpu") -> None:
        self.pad, self.step = 2**SCALES, 2**SCALES
        self.side = -(-size // self.step) * self.step + 2 * self.pad
        self.size, self.more = size, self.side - 2 * self.pad - size
        waves = torch.stack([morlet(self.side, j, k * math.pi / ANGLES) for j in range(SCALES) for k in range(ANGLES)])
        low = gaussian(self.side)
        waves = waves * gain(waves, low)
        self.waves = waves.float().to(device)
        self.average = averaging(self.side, self.pad, self.step).float().to(device)

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """The features, made of some images at a time."""
        some = 1000 if self.waves.is_cuda else 20
        return torch.cat([self._of(part.to(self.waves.device)) for part in images.split(some)])

    def _of(self, images: Tensor) -> Tensor:
        x = functional.pad(images, (self.pad, self.pad + self.more) * 2, mode="reflect")
        first = self._moduli(x, self.waves)
        second = [
            self._moduli(first[:, :, j * ANGLES : (j + 1) * ANGLES], self.waves[(j + 1) * ANGLES :]).flatten(2, 3)
            for j in range(SCALES - 1)
        ]
        every = torch.cat([self._averaged(v) for v in (x[:, :, None], first, *second)], dim=2)
        return every.flatten(1, 2)

    def _moduli(self, x: Tensor, waves: Tensor) -> Tensor:
        """|x * wave| for every wave, in a new dimension before the last two."""
        return torch.fft.ifft2(torch.fft.fft2(x).unsqueeze(-3) * waves).abs()

    def _averaged(self, x: Tensor) -> Tensor:
        return self.average @ x @ self.average.t()


def _frequencies(side: int) -> tuple[Tensor, Tensor]:
    """All frequencies that look like those of the grid: (copies, copies, side, side) each."""
    grid = 2 * math.pi * torch.arange(side, dtype=torch.float64) / side
    shifted = grid + 2 * math.pi * torch.arange(-FOLDS - 1, FOLDS + 1, dtype=torch.float64)[:, None]
    return shifted[:, None, :, None], shifted[None, :, None, :]


def morlet(side: int, scale: int, angle: float) -> Tensor:
    """The spectrum of a Morlet wavelet on a grid of side * side: real, and 0 at frequency 0.

    A plane wave under an elliptic Gaussian, less the multiple of that Gaussian that makes the integral 0.
    """
    along, across = WIDTH * 2**scale, WIDTH * 2**scale / SLANT
    frequency = FREQUENCY / 2**scale
    u, v = _frequencies(side)
    a, b = u * math.cos(angle) + v * math.sin(angle), v * math.cos(angle) - u * math.sin(angle)
    envelope = torch.exp(-((along * a) ** 2 + (across * b) ** 2) / 2).sum((0, 1))
    wave = torch.exp(-((along * (a - frequency)) ** 2 + (across * b) ** 2) / 2).sum((0, 1))
    return wave - wave[0, 0] / envelope[0, 0] * envelope


def gaussian(side: int) -> Tensor:
    """The spectrum of the average."""
    u, v = _frequencies(side)
    spread = WIDTH * 2 ** (SCALES - 1)
    found = torch.exp(-(spread**2) * (u**2 + v**2) / 2).sum((0, 1))
    return found / found[0, 0]


def gain(waves: Tensor, low: Tensor) -> float:
    """The largest factor of the wavelets at which no frequency is amplified: then scattering shortens distances."""
    mirrored = torch.roll(waves.flip(1, 2), (1, 1), (1, 2))
    power = (waves**2 + mirrored**2).sum(0) / 2
    return math.sqrt(float(((1 - low**2)[power > 0] / power[power > 0]).clamp(min=0).min()))


def averaging(side: int, pad: int, step: int) -> Tensor:
    """The matrix that averages one dimension of a padded image around every step-th pixel of the image itself."""
    offsets = torch.arange(side, dtype=torch.float64)
    centres = torch.arange(pad, side - pad, step, dtype=torch.float64)
    away = (offsets - centres[:, None] + side / 2) % side - side / 2
    found = torch.exp(-((away / (WIDTH * 2 ** (SCALES - 1))) ** 2) / 2)
    return found / found.sum(1, keepdim=True)
