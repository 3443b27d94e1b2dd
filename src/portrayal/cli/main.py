"""The command `portrayal`: one file per command, loaded when it is called."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import Any, NoReturn

import click

from portrayal import __version__
from portrayal.cli.console import clear_interrupt_message, interrupt_message, print_error, show_cursor
from portrayal.cli.interrupts import EXIT_CODE, exit_on_signals
from portrayal.documents import is_unicode
from portrayal.errors import PortrayalError, shown, unknown_name

# name -> (module, one line of help); the help is here so that --help loads no command.
COMMANDS = {
    "demo": ("demo", "Audit a small simulated study with planted bias: a first look at the page."),
    "import": ("import_", "Import your captions, references and labels as a study."),
    "check-study": ("check_study", "Validate a study, and list the metrics that it allows."),
    "caption": ("caption", "Caption images with a model."),
    "objects": ("objects", "Detect objects in images with one or several models."),
    "fill-mask": ("fill_mask", "Fill the [MASK] of a text with a vision-language model, for each image."),
    "audit": ("audit", "Run every metric that a study allows, and write the page."),
    "score": ("score", "Run one metric."),
    "counterbias": ("counterbias", "Measure vision-language bias: change only the person in image and text."),
    "mitigate": ("mitigate", "Mitigate bias, and measure before and after."),
    "ask": ("ask", "Compute the Gender Score of one sentence, step by step."),
    "compare": ("compare", "Test the differences between two audits, or two systems of one."),
    "gate": ("gate", "Check results against rules; exit code 1 if a rule fails."),
    "report": ("report", "Write the page again from a results file."),
    "view": ("view", "Browse results and all of their evidence in a browser."),
    "vl-bias": ("vl_bias", "Create and check image manifests for CounterBias (VL-Bias, PAIRS)."),
    "lab": ("lab", "Simulate studies with known bias, and validate metrics against it."),
    "list": ("list_", "List metrics, models, lexicons, importers or dials."),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            raise unknown_name("command", cmd_name, COMMANDS)
        module = importlib.import_module(f"portrayal.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="portrayal")
def cli() -> None:
    """Audit how image captioners and vision-language models portray people."""


def main() -> NoReturn:
    """Run a command. Exit codes: 0 done, 1 a gate failed, 2 bad usage or input, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # the terminal's encoding may lack characters
    exit_on_signals(_print_stopped)
    sys.exit(run())


def run(arguments: list[str] | None = None) -> int:
    clear_interrupt_message()  # left by a command that ran before in this process
    if _stop_printed.locked():
        _stop_printed.release()
    not_unicode = [
        argument
        for argument in (sys.argv[1:] if arguments is None else arguments)
        if not is_unicode(argument)
    ]
    if not_unicode:
        print_error(f"Expected names in Unicode, found {shown(not_unicode[0])}: rename the file or folder.")
        return 2
    try:
        code: Any = cli.main(args=arguments, prog_name="portrayal", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as exit_request:
        return exit_request.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except PortrayalError as error:
        print_error(str(error))
        return 2
    except BrokenPipeError:  # the reader closed the pipe, as in `portrayal ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (RecursionError, UnicodeEncodeError) as error:  # input text that no earlier check caught
        print_error(f"Something in the input cannot be used ({type(error).__name__}: {error}).")
        return 2
    except MemoryError:
        print_error("Out of memory; run on less data at once.")
        return 2
    except OSError as error:
        print_error(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
        return 2
    except (KeyboardInterrupt, click.Abort):
        _print_stopped()
        return EXIT_CODE


# Taken by the first of the command that ends and the thread that ends it, so that the message is printed once.
_stop_printed = threading.Lock()


def _print_stopped() -> None:
    if _stop_printed.acquire(blocking=False):
        show_cursor()
        print_error(interrupt_message())
