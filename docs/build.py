"""Make the parts of the documentation that the code already knows: `make docs`. A test keeps them true."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from pathlib import Path

import click

from portrayal.cli.list_ import dial_rows
from portrayal.cli.main import COMMANDS, cli
from portrayal.lab.curves import read_curves
from portrayal.lab.curves.tables import SUMMARY, details, findings, summary
from portrayal.lab.curves.write import chart_file
from portrayal.lexicon import shipped_lexicons
from portrayal.lexicon.entities import entity_names
from portrayal.lexicon.harms import demeaning_words, in_context
from portrayal.lexicon.identity import identity_words
from portrayal.metrics import CARDS, METRICS
from portrayal.mitigate.captions import CARD as REMEDY
from portrayal.mitigate.card import CARD as MITIGATION

HERE = Path(__file__).parent
MADE = "<!-- Made by `make docs`; edit the code it is made from. -->\n"


def metrics() -> str:
    parts = ["# Metrics\n", MADE]
    for card in (*CARDS.values(), MITIGATION, REMEDY):
        parts += [f"## {card.name}\n", f"*{card.title}.* {card.question}\n", f"**Formula.** {card.formula}\n"]
        more = f" With {', '.join(card.uses)} it says more." if card.uses else ""
        parts += [f"**Range.** {card.range}\n", f"**Needs.** {', '.join(card.needs)}.{more}\n"]
        lines = ["| term | what it is | unit | better | ideal |", "|---|---|---|---|---|"]
        for term in card.terms:
            ideal = "" if term.ideal is None else f"{term.ideal:g}"
            lines.append(f"| `{term.name}` | {term.meaning} | {term.unit} | {term.better or ''} | {ideal} |")
        parts.append("\n".join(lines) + "\n")
        sized = ", ".join(f"`{term.name}`" for term in card.terms if term.depends_on_n)
        if sized:
            parts.append(f"**Depends on how many images there are.** {sized}: compare equally many.\n")
        for part in card.parts:
            lines = [f"- {line}" for line in (*part.origin, *part.caveats)]
            parts += [f"### {part.term}\n", f"{part.rule}\n", "\n".join(lines) + "\n"]
        parts.append("**What it cannot say.**\n")
        parts += ["\n".join(f"- {caveat}" for caveat in card.caveats) + "\n"]
        follows = ", ".join(f"`{term}` follows `{dial}`" for term, dial in card.responds_to.items())
        if follows:
            parts.append(f"**In the lab.** {follows} ([curves](curves.md)).\n")
        parts.append(f"**Source.** {card.paper}\n")
    return "\n".join(parts)


_READING = """## Who is mentioned

All metrics find mentions of people and groups with the same rules (`portrayal.lexicon.non_mentions`, `.negation`). A
listed word is no mention in these contexts:

- in a phrase for a thing: *man made*, *passenger train*, *men's restroom*;
- before the thing or the animal that it modifies: *cowboy hat*, *queen size bed*, *male lion*, *lady bug*;
- in a statue, a doll or a sculpture: *a statue of a man*. A painting, photo or poster of a person does mention them;
- if the caption says that nobody is there: *no people*, *without a person*, *does not show a man or a woman*,
  *neither a man nor a woman*, *people are not visible*. Negated actions and clothes do not count as absence: *a man
  with no shirt*, *no helmet on the woman* and *a man not wearing a helmet* mention them.

A lexicon with `as_listed = true` skips these rules. `gender-lic` and `man-woman` do, for comparison with published
counts. The rules do not affect masks: a mask hides the words of a list in every context.

The rules were tested on 144 sentences written for this purpose (`tests/lexicon/mentions.tsv`; 82 of them mention
nobody). Precision and recall are 1.00 there, both for mentions of people and for the groups named. The author of
the rules wrote the sentences too, so these numbers are optimistic. On real captions (175,076 distinct captions of
COCO val2014, human and of eight systems; 174,748 of Flickr30k and Conceptual Captions) the rule for absence removed
49 mentions. One person checked them: 44 are right, 2 are wrong (*no protection football guy*), and 3 deny what
a person is (*I am no chef*). Missed absences in real captions were not counted.

Negation applies to people only: *no cars* still names a car.
"""


def _short(words: Sequence[str]) -> str:
    """Words as a list, ages in years summed up: a list has hundreds of them."""
    kept = [word for word in words if "year" not in word]
    years = [int(age[0]) for word in words if "year" in word and (age := re.match(r"\d+", word))]
    return ", ".join(kept if not years else [*kept, f"ages in years from {min(years)} to {max(years)}"])


def lexicons() -> str:
    parts = ["# Lexicons\n", MADE, _READING]
    for lexicon in shipped_lexicons():
        parts += [f"## {lexicon.name}\n", f"{lexicon.note}\n"]
        parts += [
            f"Version {lexicon.version}, licence {lexicon.licence}, language {lexicon.language}. {lexicon.source}\n"
        ]
        if lexicon.aliases:
            parts += [f"Other names of the attribute: {', '.join(lexicon.aliases)}.\n"]
        for group, words in lexicon.groups.items():
            parts.append(f"- **{group}**: {', '.join(words)}")
        for what, words in (
            *(
                (
                    f"also names {group}, not masked",
                    [word for word in lexicon.naming_words[group] if word not in words],
                )
                for group, words in lexicon.groups.items()
            ),
            ("neutral", lexicon.neutral),
            ("masked, names no group", lexicon.mask_also),
            ("only before a word for a person", lexicon.before_person),
            *((f"labels that mean {group}", names) for group, names in lexicon.group_aliases.items()),
        ):
            if words:
                parts.append(f"- {what}: {_short(words)}")
        parts.append("")
    parts += ["## Words for social groups, entities and harms\n", _harm_lists()]
    return "\n".join(parts)


def _harm_lists() -> str:
    """Lists of `harms`: what they are and how long, not the words; those that demean are not printed."""
    insults, pairs, entities = demeaning_words(), in_context(), entity_names()
    lines = [
        "Lists of the metric `harms`, in `src/portrayal/lexicon/words`. Your own lists replace them.\n",
        "| list | words | note |",
        "|---|---|---|",
    ]
    for axis, lexicon in identity_words().lexicons.items():
        words = sum(len(words) for words in lexicon.groups.values())
        lines.append(f"| {axis} ({lexicon.label}) | {words:,} | {lexicon.note} {lexicon.source} |")
    lines += [
        f"| named entities ({entities.label}) | | WordNet's names and Portrayal's own list. |",
        f"| demeaning ({insults.label}) | {len(insults.levels):,} | From WordNet's senses; not printed here. |",
        f"| demeaning in context ({pairs.label}) | {len(pairs):,} pairs | Groups and words; not printed here. |",
    ]
    return "\n".join(lines) + "\n"


def commands() -> str:
    parts = ["# Commands\n", MADE, "```text", _help(cli, "portrayal"), "```\n"]
    for name, (module, _) in COMMANDS.items():
        command = importlib.import_module(f"portrayal.cli.{module}").command
        parts += [f"## portrayal {name}\n", "```text", _help(command, f"portrayal {name}"), "```\n"]
        for part, made in _inner(name, command).items():
            parts += [
                f"### portrayal {name} {part}\n",
                "```text",
                _help(made, f"portrayal {name} {part}"),
                "```\n",
            ]
    for metric in METRICS:
        group = importlib.import_module("portrayal.cli.score").command
        parts += [f"## portrayal score {metric}\n", "```text"]
        made = group.get_command(click.Context(group), metric)
        parts += [_help(made, f"portrayal score {metric}"), "```\n"]
    return "\n".join(parts)


def _inner(name: str, command: click.Command) -> dict[str, click.Command]:
    """The commands of a group; those of metrics come by themselves."""
    if not isinstance(command, click.Group) or name == "score":
        return {}
    context = click.Context(command)
    names = command.commands or command.list_commands(context)  # loaded when they are called
    found = {part: command.get_command(context, part) for part in names}
    return {part: made for part, made in found.items() if made is not None}


def dials() -> str:
    head = ["| dial | of | range | default | what it turns | at 0 |", "|---|---|---|---|---|---|"]
    rows = [f"| `{row[0]}` | " + " | ".join(row[1:]) + " |" for row in dial_rows()]
    about = "A dial per group takes one number, or `female=0.2,male=0.1`; a group that is not named gets 0.\n"
    return "\n".join(["# Dials of the lab\n", MADE, about, *head, *rows]) + "\n"


def curves() -> str:
    made = read_curves(HERE / "curves" / "curves.json")
    studies = max(curve.false_positive_rate.studies for curve in made if curve.false_positive_rate)
    parts = ["# Response curves\n", MADE]
    parts.append(
        "Every metric held against the truth of [the lab](lab.md), which explains the columns. "
        f"False alarms are over {studies} studies of {made[0].study_scenes:,} images. "
        "`make curves` makes these numbers anew.\n"
    )
    parts += ["| " + " | ".join(SUMMARY) + " |", "|---" * len(SUMMARY) + "|"]
    parts += ["| " + " | ".join(row) + " |" for row in summary(made)]
    for curve in made:
        parts += [
            f"\n## {curve.name}\n",
            f"![{curve.name} against {curve.dial}](curves/charts/{chart_file(curve)})\n",
        ]
        parts += [f"- {finding}" for finding in findings(curve)]
        for title, head, body in details(curve):
            parts += [
                f"\n<details><summary>{title}</summary>\n",
                "| " + " | ".join(head) + " |",
                "|---" * len(head) + "|",
            ]
            parts += ["| " + " | ".join(row) + " |" for row in body] + ["\n</details>"]
    return "\n".join(parts) + "\n"


def _help(command: click.Command, name: str) -> str:
    settings = cli.context_settings  # a command that was run before has them; one that was not must too
    return command.get_help(
        click.Context(command, info_name=name, terminal_width=100, max_content_width=100, **settings)
    )


PAGES = {
    "metrics.md": metrics,
    "lexicons.md": lexicons,
    "commands.md": commands,
    "dials.md": dials,
    "curves.md": curves,
}


if __name__ == "__main__":
    for name, make in PAGES.items():
        (HERE / name).write_text(make(), encoding="utf-8")
