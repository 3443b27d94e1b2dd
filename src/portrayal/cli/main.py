"""The command `portrayal`: one file per command, loaded when it is called."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import Any, NoReturn

import click

from portrayal import __version__
from portrayal.cli.console import errors, finished, show_cursor, stopped
from portrayal.cli.interrupts import EXIT_CODE, end_soon
from portrayal.documents import is_unicode
from portrayal.errors import PortrayalError, shown, unknown_name

# name -> (module, one line of help); the line stands here so that --help loads no command.
COMMANDS = {
    "demo": ("demo", "Make a small study with planted bias, audit it, and write the page."),
    "import": ("import_", "Make a study from files you have."),
    "check-study": ("check_study", "Say what is in a study, what is wrong with it, and what it allows."),
    "caption": ("caption", "Write captions of pictures with a model."),
    "objects": ("objects", "Find the objects in pictures with one model or several."),
    "fill-mask": ("fill_mask", "Fill the mask of a text with a vision-language model, picture by picture."),
    "audit": ("audit", "Run every metric a study allows and write the page."),
    "score": ("score", "Run one metric."),
    "counterbias": ("counterbias", "Change only the person, and see what a vision-language model says."),
    "mitigate": ("mitigate", "Apply a remedy, and measure before and after."),
    "ask": ("ask", "Score one sentence, and show what the score is made of."),
    "compare": ("compare", "Compare two audits, or two systems of one, in pairs."),
    "gate": ("gate", "Check results against rules; exit code 1 when one is broken."),
    "report": ("report", "Write the page again from a results file."),
    "view": ("view", "Look at results and all of their evidence in a browser."),
    "vl-bias": (
        "vl_bias",
        "Make and check manifests for CounterBias: pictures, groups, activities, occupations.",
    ),
    "lab": ("lab", "Make studies whose bias is known, and hold metrics against it."),
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
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may know few letters
    end_soon(_stopped)
    sys.exit(run())


def run(arguments: list[str] | None = None) -> int:
    finished()  # of a command that ran before in this process
    if _said.locked():
        _said.release()
    unusable = [one for one in (sys.argv[1:] if arguments is None else arguments) if not is_unicode(one)]
    if unusable:
        errors(f"Expected names in Unicode, found {shown(unusable[0])}: rename the file or folder.")
        return 2
    try:
        code: Any = cli.main(args=arguments, prog_name="portrayal", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except PortrayalError as error:
        errors(str(error))
        return 2
    except BrokenPipeError:  # the reader went away, as in `portrayal ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (RecursionError, UnicodeEncodeError) as error:  # of text that came in by a way nobody thought of
        errors(f"Something in the input cannot be used ({type(error).__name__}: {error}).")
        return 2
    except MemoryError:
        errors("There is not enough memory for this; ask for less at once.")
        return 2
    except OSError as error:
        errors(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
        return 2
    except (KeyboardInterrupt, click.Abort):
        _stopped()
        return EXIT_CODE


_said = threading.Lock()  # by the command that ends, or by the thread that ends it: whoever is first


def _stopped() -> None:
    if _said.acquire(blocking=False):
        show_cursor()
        errors(stopped())
