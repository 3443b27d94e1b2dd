"""portrayal mitigate METHOD and portrayal mitigate compare: remedies that train a model"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from portrayal.cli.console import finished, progress, say, show_table
from portrayal.cli.folders import claim, clear, force_option, results_files, subject
from portrayal.cli.options import F, Number, bootstrap_option, names, out_option, seed_option
from portrayal.errors import PortrayalError, need
from portrayal.mitigate.methods import METHODS, Dose
from portrayal.models.device import DEVICES
from portrayal.report import write_page
from portrayal.report.tables.mitigation import tables

_OF_A_STUDY = ("lexicon", "groups", "counterfactuals")
_DOSE = ("weight", "epsilon", "attack_steps", "attack_step_size", "dropout")
_RECIPE = ("steps", "batch_size", "gradient_accumulation", "learning_rate", "mask_probability", "precision")


def _data_options(command: F) -> F:
    for option in reversed(
        (
            click.option(
                "--model",
                default="lab-dual-full",
                show_default=True,
                metavar="NAME",
                help="Where training begins: one of the lab's, a file of ALBEF or TCL, a folder, a ViLT.",
            ),
            click.option(
                "--data",
                metavar="NAME|STUDY",
                help="What is learnt from: a world of the lab (lab-full), or a study with pictures and references. "
                "[default: the world of a model of the lab]",
            ),
            click.option(
                "--manifest",
                type=click.Path(path_type=Path, dir_okay=False, exists=True),
                metavar="FILE",
                help="With a study: pictures of people to measure bias on (see counterbias).",
            ),
            click.option(
                "--counterfactuals",
                type=click.Path(path_type=Path, file_okay=False, exists=True),
                metavar="DIR",
                help="With a study, for image-swap: its pictures under the same names with somebody of the other "
                "group, as an image translator makes them. Some may be missing.",
            ),
            click.option("--tokenizer", metavar="NAME", help="The word pieces of a file of ALBEF or TCL."),
            click.option(
                "--lexicon",
                metavar="NAME",
                help="With a study: a shipped list or a TOML file. [default: gender]",
            ),
            click.option(
                "--groups",
                callback=names,
                metavar="A,B",
                help="Between which two. [default: the lexicon's first two]",
            ),
        )
    ):
        command = option(command)
    return command


def _training_options(command: F) -> F:
    usual = Dose()
    for option in reversed(
        (
            click.option("--steps", type=click.IntRange(min=1), help="Steps of training. [default: 1000]"),
            click.option(
                "--batch-size", type=click.IntRange(min=2), help="Pictures in a step. [default: 256]"
            ),
            click.option(
                "--gradient-accumulation",
                type=click.IntRange(min=1),
                help="Parts that a batch is gone through in. [default: 1]",
            ),
            click.option(
                "--learning-rate",
                type=click.FloatRange(0, min_open=True),
                help="Of learning, at its height. [default: 1e-4; of the lab's models 3e-4]",
            ),
            click.option(
                "--mask-probability",
                type=click.FloatRange(0, 1, min_open=True),
                help="Words hidden. [default: 0.15]",
            ),
            click.option(
                "--precision", type=click.Choice(["float32", "bfloat16"]), help="[default: bfloat16 on a GPU]"
            ),
            click.option(
                "--weight", type=float, help=f"Of telling both pairs the same. [default: {usual.weight:g}]"
            ),
            click.option(
                "--epsilon",
                type=Number(),
                help="How far an attack in training moves a pixel. [default: 8/255]",
            ),
            click.option(
                "--attack-steps", type=click.IntRange(min=1), help=f"Its steps. [default: {usual.steps}]"
            ),
            click.option("--attack-step-size", type=Number(), help="How far each goes. [default: 2/255]"),
            click.option(
                "--dropout", type=float, help=f"What the method dropout drops. [default: {usual.dropout:g}]"
            ),
            click.option(
                "--device",
                type=click.Choice(DEVICES),
                default="auto",
                show_default=True,
                help="Where it runs.",
            ),
        )
    ):
        command = option(command)
    return command


def method_command(name: str) -> click.Command:
    """`portrayal mitigate NAME`"""
    method = METHODS[name]

    @click.command(
        name,
        help=f"{method.about[0].upper()}{method.about[1:]}.\n\nWrites the model with its card. "
        "Interrupted, the same command goes on where it was.",
    )
    @_data_options
    @_training_options
    @seed_option
    @out_option
    def command(model: str, data: str | None, manifest: Path | None, tokenizer: str | None, seed: int, out: Path,
                device: str, **given: Any) -> None:  # fmt: skip
        if manifest is not None:
            raise PortrayalError("A method alone measures nothing: --manifest belongs to `mitigate compare`.")
        need("torch", "neural", "A remedy that trains a model")
        from portrayal.mitigate.training import remedied

        comparison = _comparison(model, data, None, tokenizer, [name], None, False, device, given)
        with progress(name, kept="steps", stages=True) as report_progress:
            remedied(
                comparison.model, comparison.material(), comparison.plan(method, seed), out, comparison.model.device,
                lambda done, of: report_progress(f"{name}: training", done, of),
            )  # fmt: skip
        finished()
        say(f"The model: {out}. Use it as --model {out}")

    return command


@click.command("compare")
@_data_options
@click.option("--methods", callback=names, metavar="A,B", help=f"Of {', '.join(METHODS)}. [default: all]")
@click.option("--seeds", type=click.IntRange(min=1), help="How many trainings of each method. [default: 4]")
@click.option(
    "--quick", is_flag=True, help="Few methods, steps and pictures: minutes, and the numbers are rough."
)
@_training_options
@bootstrap_option
@seed_option
@out_option
@force_option
def compare(
    model: str,
    data: str | None,
    manifest: Path | None,
    tokenizer: str | None,
    methods: list[str] | None,
    seeds: int | None,
    quick: bool,
    bootstrap: int,
    seed: int,
    out: Path,
    device: str,
    force: bool,
    **given: Any,
) -> None:  # fmt: skip
    """Train several methods over several seeds, measure what is left of the bias, and what it costs.

    Writes index.html, results.json, the models and what they said. Every finished training and measurement is kept; the
    same command goes on from there.
    """
    need("torch", "neural", "A remedy that trains a model")
    from portrayal.mitigate.compare import MARKS, MODELS
    from portrayal.mitigate.results import compared

    comparison = _comparison(model, data, manifest, tokenizer, methods, seeds, quick, device, given)
    about = subject({"study": {"digest": comparison.start.rpartition(" ")[2]}, "methods": {}})
    old = claim(out, about, force, beside=(MARKS, MODELS))
    with progress("mitigate compare", kept="steps", stages=True) as report_progress:
        results = compared(comparison, out, seed=seed, n_resamples=bootstrap, progress=report_progress)
    results.save(out)
    page = write_page(results, out)
    clear(old, results_files(out, pictures=bool(results.pictures.height)))
    finished()
    for title, columns, rows in tables(results):
        say()
        say(title, "bold")
        show_table(columns, rows)
    say()
    say(f"The page: {page}. The models: {out / MODELS}")


def _comparison(
    model: str,
    data: str | None,
    manifest: Path | None,
    tokenizer: str | None,
    methods: list[str] | None,
    seeds: int | None,
    quick: bool,
    device: str,
    given: dict[str, Any],
) -> Any:
    from portrayal.mitigate.lab_data import lab_comparison
    from portrayal.mitigate.settings import Choice, world_of

    attack = {"attack_steps": "steps", "attack_step_size": "step_size"}
    dose = {attack.get(name, name): given[name] for name in _DOSE}
    recipe = {name: given[name] for name in _RECIPE}
    choice = Choice(methods, seeds, quick, device, recipe, dose)
    world = world_of(model, data)
    more = {name: given[name] for name in _OF_A_STUDY if given[name] is not None}
    if world is not None:
        if manifest is not None or tokenizer is not None or more:
            raise PortrayalError(
                "The lab has people, words, groups and other pictures of its own: --manifest, --tokenizer, --lexicon, "
                "--groups and --counterfactuals belong to a study."
            )
        return lab_comparison(model, world, choice)
    from portrayal.mitigate.study_data import study_comparison

    return study_comparison(model, Path(str(data)), manifest, choice, tokenizer=tokenizer, **more)


def __getattr__(name: str) -> click.Command:
    """Each method is a command of its own."""
    if name in METHODS:
        return method_command(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
