"""The YAML front matter of model cards."""

from __future__ import annotations

from collections.abc import Mapping

import yaml


def front_matter(values: Mapping[str, object]) -> str:
    """The values as a YAML document between two lines of dashes, each text on one line.

    >>> print(front_matter({"model-index": [{"name": "oscar", "value": 0.5}]}), end="")
    ---
    model-index:
    - name: oscar
      value: 0.5
    ---
    """
    document = yaml.dump(
        dict(values), Dumper=_OneLineTexts, sort_keys=False, allow_unicode=True, width=float("inf")
    )
    return f"---\n{document}---\n"


class _OneLineTexts(yaml.SafeDumper):
    """Writes texts with line breaks in double quotes, where breaks are escaped: no text can end the front matter."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_OneLineTexts.add_representer(str, _OneLineTexts.represent_text)
