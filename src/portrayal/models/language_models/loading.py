"""Finding and loading a pretrained causal model: by name, in a folder, or in a GGUF file."""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from portrayal.errors import PortrayalError, need
from portrayal.files import content_digest

PURPOSE = "A language model"
GGUF = ".gguf"
_VERSION = 1  # to be raised when the same model would give other numbers


def looks_back(model: Any, device: str) -> bool:
    """Whether what it says of a token stays the same, whatever follows."""
    torch = need("torch", "neural", PURPOSE)
    with torch.inference_mode():
        said = model(input_ids=torch.tensor([[0, 1, 2], [0, 1, 3]], device=device), use_cache=False).logits
    before, at = ((said[0, some] - said[1, some]).abs().max() for some in (slice(2), slice(2, 3)))
    return bool(before <= 1e-3 * at)


def where(name: str) -> dict[str, str]:
    """As Transformers wants to be told: the folder and the file, where it is a file."""
    path = Path(name)
    if path.suffix != GGUF:
        return {"pretrained_model_name_or_path": name}
    need("gguf", "neural", PURPOSE)
    need("accelerate", "neural", PURPOSE)
    return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}


@contextlib.contextmanager
def loading(name: str) -> Iterator[None]:
    """Without progress bars, and with one sentence where it fails."""
    logging = need("transformers", "neural", PURPOSE).utils.logging
    logging.disable_progress_bar()
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # reading GGUF shows a bar that cannot be turned off
            yield
    except (OSError, ValueError, ImportError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise PortrayalError(
            f"The language model '{name}' could not be loaded: it is neither a folder with a model, nor a .gguf "
            f"file, nor could it be had from the Hugging Face hub. ({first})"
        ) from error


def content(name: str) -> str:
    """A digest of the files, since a path does not say what is in it; of a name, with the version at the hub."""
    path = Path(name)
    if path.suffix == GGUF and not path.is_file():
        raise FileNotFoundError("there is no such file")
    if path.exists():
        found = content_digest(path)
    else:
        config = need("transformers", "neural", PURPOSE).AutoConfig.from_pretrained(name)
        found = f"{name} {getattr(config, '_commit_hash', None)}"
    return hashlib.blake2b(f"{_VERSION} {found}".encode(), digest_size=16).hexdigest()
