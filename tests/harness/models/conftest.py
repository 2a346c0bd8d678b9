"""Exact Forney models; files to be read, and the sentences in which they are refused."""

from __future__ import annotations

import tracemalloc

import pytest
from forney_truth import forney_truth

from spinbench.errors import ModelError
from spinbench.models import load
from spinbench.models.files.evid import read_evidence

__all__ = ["forney_truth"]


@pytest.fixture
def write(tmp_path):
    """(name, text or bytes) -> path."""

    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.fixture
def refusal(write):
    """The one sentence in which a file is refused, named first, without taking the memory that it claims."""

    def read(name, content, **options):
        path = write(name, content)
        tracemalloc.start()
        try:
            with pytest.raises(ModelError) as caught:
                (read_evidence if path.suffix == ".evid" else load)(path, **options)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        message = str(caught.value).removeprefix(f"{path.parent}/")
        assert message.startswith(path.stem)
        assert "\n" not in message
        assert peak < 32 * 2**20
        return message

    return read
