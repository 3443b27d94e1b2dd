"""portrayal mitigate METHOD and portrayal mitigate compare: mitigation methods that train a model"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from portrayal.cli.console import clear_interrupt_message, echo, print_table, progress
from portrayal.cli.folders import claim_folder, force_option, remove_stale, results_files, results_subject
from portrayal.cli.options import F, Number, bootstrap_option, comma_separated, out_option, seed_option
from portrayal.errors import PortrayalError, need
from portrayal.mitigate.methods import METHODS, Hyperparameters
from portrayal.models.device import DEVICES
from portrayal.report import write_page
from portrayal.report.tables.methods import summary_tables

_STUDY_OPTIONS = ("lexicon", "groups", "counterfactuals")
_METHOD_OPTIONS = ("weight", "epsilon", "attack_steps", "attack_step_size", "dropout")
_TRAINING_OPTIONS = (
    "steps",
    "batch_size",
    "gradient_accumulation",
    "learning_rate",
    "mask_probability",
    "precision",
)


def _data_options(command: F) -> F:
    for option in reversed(
        (
            click.option(
                "--model",
                default="lab-dual-full",
                show_default=True,
                metavar="NAME",
                help="Initial model: one of the lab's, a checkpoint file of ALBEF or TCL, a folder, or the Hugging "
                "Face name of a ViLT.",
            ),
            click.option(
                "--data",
                metavar="NAME|STUDY",
                help="Training data: a world of the lab (lab-full), or a study with images and references. "
                "[default: the world of the lab's model]",
            ),
            click.option(
                "--manifest",
                type=click.Path(path_type=Path, dir_okay=False, exists=True),
                metavar="FILE",
                help="With a study: manifest of the images on which bias is measured (see counterbias).",
            ),
            click.option(
                "--counterfactuals",
                type=click.Path(path_type=Path, file_okay=False, exists=True),
                metavar="DIR",
                help="With a study, for image-swap: folder of counterfactual images under the same file names, with a "
                "person of the other group (from an image translation model). Some may be missing.",
            ),
            click.option(
                "--tokenizer",
                metavar="NAME",
                help="Tokenizer of an ALBEF or TCL checkpoint file: a Hugging Face name or a folder.",
            ),
            click.option(
                "--lexicon",
                metavar="NAME",
                help="With a study: lexicon of group words, a shipped one or a TOML file. [default: gender]",
            ),
            click.option(
                "--groups",
                callback=comma_separated,
                metavar="A,B",
                help="The two groups to compare. [default: the lexicon's first two]",
            ),
        )
    ):
        command = option(command)
    return command


def _training_options(command: F) -> F:
    defaults = Hyperparameters()
    for option in reversed(
        (
            click.option(
                "--steps", type=click.IntRange(min=1), help="Number of training steps. [default: 1000]"
            ),
            click.option(
                "--batch-size", type=click.IntRange(min=2), help="Images per training step. [default: 256]"
            ),
            click.option(
                "--gradient-accumulation",
                type=click.IntRange(min=1),
                help="Number of micro-batches per training step. [default: 1]",
            ),
            click.option(
                "--learning-rate",
                type=click.FloatRange(0, min_open=True),
                help="Peak learning rate. [default: 1e-4; for the lab's models 3e-4]",
            ),
            click.option(
                "--mask-probability",
                type=click.FloatRange(0, 1, min_open=True),
                help="Probability that a word is masked in training. [default: 0.15]",
            ),
            click.option(
                "--precision",
                type=click.Choice(["float32", "bfloat16"]),
                help="Floating-point precision. [default: bfloat16 on a GPU, else float32]",
            ),
            click.option(
                "--weight",
                type=float,
                help="Weight of the consistency loss (KL divergence between the original and the counterfactual pair). "
                f"[default: {defaults.weight:g}]",
            ),
            click.option(
                "--epsilon",
                type=Number(),
                help="Budget of the attack in training: largest change of a pixel. [default: 8/255]",
            ),
            click.option(
                "--attack-steps",
                type=click.IntRange(min=1),
                help=f"Number of attack steps. [default: {defaults.steps}]",
            ),
            click.option(
                "--attack-step-size", type=Number(), help="Size of an attack step. [default: 2/255]"
            ),
            click.option(
                "--dropout",
                type=float,
                help=f"Dropout probability of the method dropout. [default: {defaults.dropout:g}]",
            ),
            click.option(
                "--device",
                type=click.Choice(DEVICES),
                default="auto",
                show_default=True,
                help="Device for training; auto: a GPU if there is one.",
            ),
        )
    ):
        command = option(command)
    return command


def method_command(name: str) -> click.Command:
    """Return the command `portrayal mitigate NAME`."""
    method = METHODS[name]

    @click.command(
        name,
        help=f"{method.description[0].upper()}{method.description[1:]}.\n\nWrites the model with its card. "
        "Progress is checkpointed; run the same command again to resume.",
    )
    @_data_options
    @_training_options
    @seed_option
    @out_option
    def command(model: str, data: str | None, manifest: Path | None, tokenizer: str | None, seed: int, out: Path,
                device: str, **given: Any) -> None:  # fmt: skip
        if manifest is not None:
            raise PortrayalError(
                "A single method measures nothing: --manifest belongs to `mitigate compare`."
            )
        need("torch", "neural", "A mitigation method that trains a model")
        from portrayal.mitigate.training import train_mitigated

        comparison = _comparison(model, data, None, tokenizer, [name], None, False, device, given)
        with progress(name, unit="steps", stages=True) as report_progress:
            train_mitigated(
                comparison.model,
                comparison.training_data(),
                comparison.plan(method, seed),
                out,
                comparison.model.device,
                lambda done, of: report_progress(f"{name}: training", done, of),
            )
        clear_interrupt_message()
        echo(f"The model: {out}. Use it as --model {out}")

    return command


@click.command("compare")
@_data_options
@click.option(
    "--methods",
    callback=comma_separated,
    metavar="A,B",
    help=f"Methods to compare, of {', '.join(METHODS)}. [default: all]",
)
@click.option("--seeds", type=click.IntRange(min=1), help="Number of training runs per method. [default: 4]")
@click.option(
    "--quick", is_flag=True, help="Use few methods, steps and images: takes minutes, with rough numbers."
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
    """Train with several methods and seeds, and measure the remaining bias and the cost.

    Writes index.html, results.json, the models and their predictions. Progress is checkpointed; run the same command
    again to resume.
    """
    need("torch", "neural", "A mitigation method that trains a model")
    from portrayal.mitigate.compare import MODELS, SCORES
    from portrayal.mitigate.results import compare_methods

    comparison = _comparison(model, data, manifest, tokenizer, methods, seeds, quick, device, given)
    subject = results_subject({"study": {"digest": comparison.start.rpartition(" ")[2]}, "methods": {}})
    stale = claim_folder(out, subject, force, allowed=(SCORES, MODELS))
    with progress("mitigate compare", unit="steps", stages=True) as report_progress:
        results = compare_methods(comparison, out, seed=seed, n_resamples=bootstrap, progress=report_progress)
    results.save(out)
    page = write_page(results, out)
    remove_stale(stale, results_files(out, with_images=bool(results.thumbnails.height)))
    clear_interrupt_message()
    for title, columns, rows in summary_tables(results):
        echo()
        echo(title, "bold")
        print_table(columns, rows)
    echo()
    echo(f"The page: {page}. The models: {out / MODELS}")


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
    from portrayal.mitigate.settings import ComparisonOptions, training_world

    renamed = {"attack_steps": "steps", "attack_step_size": "step_size"}
    hyperparameters = {renamed.get(name, name): given[name] for name in _METHOD_OPTIONS}
    recipe = {name: given[name] for name in _TRAINING_OPTIONS}
    choice = ComparisonOptions(methods, seeds, quick, device, recipe, hyperparameters)
    world = training_world(model, data)
    study_options = {name: given[name] for name in _STUDY_OPTIONS if given[name] is not None}
    if world is not None:
        if manifest is not None or tokenizer is not None or study_options:
            raise PortrayalError(
                "The lab has its own images, words, groups and counterfactuals: --manifest, --tokenizer, --lexicon, "
                "--groups and --counterfactuals belong to a study."
            )
        return lab_comparison(model, world, choice)
    from portrayal.mitigate.study_data import study_comparison

    return study_comparison(model, Path(str(data)), manifest, choice, tokenizer=tokenizer, **study_options)


def __getattr__(name: str) -> click.Command:
    """Return the command of a method: each method is a command of its own."""
    if name in METHODS:
        return method_command(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
