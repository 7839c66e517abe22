"""Linux kernels as programs, for Linux hosts of Firstlight (GPL-2.0-only; see COPYING and SOURCE.txt)."""

from pathlib import Path

KERNELS = Path(__file__).resolve().parent / "kernels"
"""A directory for each kernel, as in Firstlight's cache."""
