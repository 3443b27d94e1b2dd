"""Find and load a pretrained causal model: by name, in a folder, or in a GGUF file."""

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
_VERSION = 1  # increase when the scores of the same model change


def is_causal(model: Any, device: str) -> bool:
    """Return whether the prediction of a token is independent of later tokens."""
    torch = need("torch", "neural", PURPOSE)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([[0, 1, 2], [0, 1, 3]], device=device), use_cache=False).logits
    earlier_difference, last_difference = (
        (logits[0, positions] - logits[1, positions]).abs().max() for positions in (slice(2), slice(2, 3))
    )
    return bool(earlier_difference <= 1e-3 * last_difference)


def from_pretrained_arguments(name: str) -> dict[str, str]:
    """Return the arguments of `from_pretrained`: the folder and the file, where it is a file."""
    path = Path(name)
    if path.suffix != GGUF:
        return {"pretrained_model_name_or_path": name}
    need("gguf", "neural", PURPOSE)
    need("accelerate", "neural", PURPOSE)
    return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}


@contextlib.contextmanager
def load_errors(name: str) -> Iterator[None]:
    """Suppress progress bars, and raise one sentence if loading fails."""
    logging = need("transformers", "neural", PURPOSE).utils.logging
    logging.disable_progress_bar()
    try:
        # Reading GGUF shows a progress bar that cannot be turned off.
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    except (OSError, ValueError, ImportError) as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise PortrayalError(
            f"The language model '{name}' could not be loaded: it is not a folder with a model or a .gguf "
            f"file, and could not be loaded from the Hugging Face hub. ({first_line})"
        ) from error


def model_digest(name: str) -> str:
    """Return a digest of the files, since a path does not identify them; of a name, with its revision at the hub."""
    path = Path(name)
    if path.suffix == GGUF and not path.is_file():
        raise FileNotFoundError("there is no such file")
    if path.exists():
        content = content_digest(path)
    else:
        config = need("transformers", "neural", PURPOSE).AutoConfig.from_pretrained(name)
        content = f"{name} {getattr(config, '_commit_hash', None)}"
    return hashlib.blake2b(f"{_VERSION} {content}".encode(), digest_size=16).hexdigest()
