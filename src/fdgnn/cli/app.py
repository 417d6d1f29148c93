"""The application, how commands declare their options, and how errors are shown."""

from __future__ import annotations

import atexit
import gc
import inspect
import os
import re
import shlex
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from fdgnn._version import __version__
from fdgnn.texts import printable, reason_of

# Of click, or of typer's own copy of it.
_UsageError: Any = typer.BadParameter.__base__
# In the order of the help.
PANELS = {
    "Train and predict": ("fit", "predict", "explain", "serve"),
    "Evaluate": ("evaluate", "compare", "demo"),
    "Reports": ("report", "playground"),
    "Data and models": ("datasets", "stability", "model"),
}
_kept: list[Path] = []  # where the running command keeps what it has finished
_running: dict[str, Any] = {}  # the options of the running command


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    """Show what the option parser rejects, and an interrupt, as all other errors are shown."""
    try:
        yield
    except KeyboardInterrupt as error:
        traceback.clear_frames(error.__traceback__)  # so that generators end, and their pools
        terminated = isinstance(error, _Terminated)
        kept = next((path for path in _kept if path.exists()), None)
        resumes = "" if kept is None else f"; the same command resumes, from {kept}"
        say(f"error: {'terminated by SIGTERM' if terminated else 'interrupted'}{resumes}")
        raise typer.Exit(128 + (signal.SIGTERM if terminated else signal.SIGINT)) from None
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        context = getattr(error, "ctx", None)
        command = "fdgnn" if context is None else context.command_path
        message = " ".join(error.format_message().split()).removesuffix(".")
        listed = "commands" if hasattr(getattr(context, "command", None), "commands") else "options"
        say(f"error: {message.replace('Value error, ', '')}; {command} --help lists all {listed}")
        raise typer.Exit(2) from None


def resumes_from(path: Path) -> None:
    """Register where this command keeps what it has finished, so that an interrupt names it."""
    _kept.append(path)


class _Commands(TyperGroup):
    """Commands by purpose, each with a whole sentence in the help."""

    def make_context(self, *arguments: Any, **others: Any) -> Any:
        """Parse the options before the command."""
        with _errors_in_one_line():
            return super().make_context(*arguments, **others)

    def invoke(self, ctx: Any) -> Any:
        """Parse the options of the command, and run it."""
        with _errors_in_one_line():
            return super().invoke(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands; without rich, which is slow."""
        for panel, names in PANELS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, each.get_short_help_str(limit=1000)) for name, each in commands if each]
            with formatter.section(panel):
                formatter.write_dl(rows)


class _Command(TyperCommand):
    """A command whose options are listed in groups, and whose ``--split`` takes a second word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the two words of ``group COLUMN`` and ``time COLUMN`` after ``--split``."""
        words: list[str] = []
        for word in args:
            asks = words[-2:] in (["--split", "group"], ["--split", "time"])
            asks |= words[-1:] in (["--split=group"], ["--split=time"])
            if asks and not word.startswith("-"):
                words[-1] += f" {word}"
            else:
                words.append(word)
        _running.update({each.name: each for each in self.params if each.opts[0].startswith("-")})
        if "split" in _running:  # columns beside the graphs are read for it
            _running["columns"] = _running["split"]
        return super().parse_args(ctx, words)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options by group."""
        groups: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for each in self.get_params(ctx):
            argument = each.param_type_name == "argument"
            title = "Arguments" if argument else getattr(each, "rich_help_panel", None) or "Options"
            if (record := each.get_help_record(ctx)) is not None:
                groups.setdefault(title, []).append(record)
        for title, rows in groups.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


app = typer.Typer(
    cls=_Commands,
    help="Graph classification and regression on a CPU: untrained encoders, trained readouts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# ---------------------------------------------------------------------- declaring commands


# Names of options that are not those of their parameters.
_NAMES = {
    "id_column": "--id", "smiles_column": "--smiles", "directed": "--directed/--undirected",
    "strict": "--strict", "stereo": "--stereo", "search": "--search/--no-search",
    "n_configurations": "--configurations", "n_estimators": "--initializations",
    "n_units": "--units", "n_layers": "--layers", "n_connections": "--connections",
    "n_projections": "--projections", "effective_spectral_radius": "--spectral-radius",
    "n_iterations": "--iterations",
}  # fmt: skip


@dataclass(frozen=True)
class OptionGroup:
    """Options that a command receives as one object, made of the fields of a class.

    A command has one parameter for them, whose annotation is ``Annotated[type, OptionGroup(...)]``.
    The options have the types, defaults and descriptions of the fields.

    Attributes
    ----------
    kind : type
        A record or dataclass, described in numpydoc form.
    title : str
        Heading in the help.
    names : sequence of str
        The fields that are options.
    """

    kind: type
    title: str
    names: Sequence[str]

    def make(self, given: dict[str, Any]) -> Any:
        """Make the object of the values of its options, which are removed from `given`."""
        values = {name: given.pop(name) for name in self.names}
        fields = signature(self.kind).parameters
        lists = {n: names_in(values[n]) for n in self.names if fields[n].default == ()}
        return self.kind(**values | lists)


def _parameters(what: Any, names: Sequence[str], title: str) -> list[Parameter]:
    """Return a parameter for each option that a function or the fields of a class declare."""
    hints = get_type_hints(what, localns={"Split": Any}, include_extras=True)
    helps, declared, found = described(what)[1], signature(what).parameters, []
    for name in names:
        kind: Any = hints[name]
        default, shown = declared[name].default, helps.get(name, {})
        option: Any = typer.Option(*[_NAMES[name]] if name in _NAMES else [])
        if metadata := getattr(kind, "__metadata__", ()):
            kind, option = kind.__origin__, copy(metadata[0])
        if default == ():
            default, kind = None, list[str] | None
            shown["help"] += " Repeat it, or use commas."
        if default is not None:
            shown["show_default"] = True
        vars(option).update(shown, rich_help_panel=title)
        annotation = Annotated[kind, option]
        found.append(
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    return found


def names_in(given: Sequence[str] | None) -> list[str]:
    """Return the names in an option that may be repeated, and may have commas."""
    return [name.strip() for one in given or () for name in one.split(",") if name.strip()]


def described(what: Any) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the text of a docstring in numpydoc form, and help and default of its parameters."""
    text, *sections = re.split(r"\n\w+\n-{3,}\n", inspect.cleandoc(what.__doc__ or ""))
    found: dict[str, dict[str, Any]] = {}
    for name, kind, lines in re.findall(
        r"^(\w+) : (.*)\n((?: +.*\n?)+)", "\n".join(sections), re.M
    ):
        words = " ".join(lines.split()).replace("``", "'")
        found[name] = {"help": words, "show_default": kind.partition("default=")[2] or True}
    return text.strip(), found


def command(
    example: str, *, of: typer.Typer = app
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes a command of a function.

    Its docstring is the help of the command and, in numpydoc form, of its options. Groups of
    options become single options. The command runs with one thread of BLAS.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        text, epilog = described(function)[0], f"Example: {example}"
        return of.command(cls=_Command, help=text, epilog=epilog)(_expanded(function))

    return register


def _expanded(function: Callable[..., None]) -> Callable[..., None]:
    groups: dict[str, OptionGroup] = {}
    for name, hint in get_type_hints(function, include_extras=True).items():
        metadata = getattr(hint, "__metadata__", ())
        if metadata and isinstance(metadata[0], OptionGroup):
            groups[name] = metadata[0]
    names = list(signature(function).parameters)
    alone = _parameters(function, [name for name in names if name not in groups], "Options")
    declared = {each.name: [each] for each in alone}
    for name, group in groups.items():
        declared[name] = _parameters(group.kind, group.names, group.title)
    parameters = [each for name in names for each in declared[name]]

    @wraps(function)
    def run(**given: Any) -> None:
        from fdgnn.threads import one_blas_thread  # imports NumPy and SciPy

        made = {name: group.make(given) for name, group in groups.items()}
        with one_blas_thread():
            function(**given, **made)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = Signature(parameters)
    return run


def _show_version(wanted: bool) -> None:
    if wanted:
        from fdgnn.installation import compile_kernels
        from fdgnn.kernels import ENGINE

        typer.echo(f"fdgnn {__version__}")
        runs = ", ".join(compile_kernels())
        typer.echo(f"kernels: engine {ENGINE!r} of {runs}; they work on this machine")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def say(text: str, quiet: bool = False) -> None:
    """Print a remark or an error on standard error, unless the command is quiet."""
    if not quiet:
        typer.echo(printable(text), err=True)


def show(text: str) -> None:
    """Print one line of results; what a terminal would obey is escaped."""
    typer.echo(printable(text))


def command_line() -> str:
    """Return the command as the user typed it, for records."""
    return shlex.join(["fdgnn", *sys.argv[1:]])


def name_options(message: str) -> str:
    """Write the running command's options for the parameters of the library in a message.

    The library names a parameter in backticks, as `n_units` or `n_units=0`, or at the beginning of
    the message, as in "n_units=0: expected an integer".
    """
    if message.partition("=")[0] in _running and ": " in message:
        given, _, expected = message.partition(": ")
        message = f"`{given}`: {expected}"
    parts = message.split("`")
    if len(parts) % 2 == 0:  # a backtick of the data
        return message
    for i in range(1, len(parts), 2):
        name, _, value = parts[i].partition("=")
        option = _running.get(name)
        if option is None:
            parts[i] = f"`{parts[i]}`"
        elif value == "False" and option.secondary_opts:
            parts[i] = option.secondary_opts[0]
        else:
            value = "" if option.is_flag else value.strip("'\"")
            parts[i] = f"{max(option.opts, key=len)} {value}".strip()
    return "".join(parts)


def main() -> None:
    """Run the command; errors that a user can fix are one line, without a traceback."""
    from concurrent.futures import BrokenExecutor

    from fdgnn.exceptions import FDGNNError

    _kept.clear()
    _running.clear()
    # Collecting garbage while libraries are imported takes a tenth of the time of `predict`.
    gc.set_threshold(50_000, 20, 100)
    atexit.register(gc.freeze)  # else it is collected again as the interpreter ends
    warnings.showwarning = _show_warning
    _fill_in_closed_streams()
    try:
        with _interruptible():
            get_command(app)(prog_name="fdgnn")
    except BrokenPipeError:  # whoever read our output has seen enough
        pass
    except (FDGNNError, ValueError, OSError) as error:
        say(f"error: {one_line(error)}")
    except MemoryError as error:
        reason = f" ({one_line(error)})" if str(error) else ""
        say(f"error: memory ran out{reason}")
    except BrokenExecutor:
        say(
            "error: a worker process was killed, perhaps because memory ran out; run the same "
            "command again, if need be with fewer processes"
        )
    sys.exit(1)


@contextmanager
def _interruptible() -> Iterator[None]:
    """End worker processes at once on Ctrl-C and SIGTERM, and then the command."""
    if threading.current_thread() is not threading.main_thread():  # which alone handles signals
        yield
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    ours = {each: old for each, old in before.items() if old not in (signal.SIG_IGN, None)}
    for each in ours:
        signal.signal(each, _interrupt)
    woken_by = _pass_signals_to_main_thread() if hasattr(signal, "pthread_kill") else None
    try:
        yield
    finally:
        if woken_by is not None:
            signal.set_wakeup_fd(-1)
            os.close(woken_by)
        for each, old in ours.items():
            signal.signal(each, old)


def _pass_signals_to_main_thread() -> int:
    """Wake the main thread for signals that the system has delivered to another thread.

    Python's handlers run in the main thread, which would wait for its lock or its workers until
    they are done: only a signal of its own interrupts the wait. Return the descriptor to be closed
    at the end.
    """
    _handled.clear()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    main_thread = threading.main_thread().ident
    assert main_thread is not None

    def wake() -> None:
        while received := os.read(reader, 1):
            time.sleep(_SECONDS_TO_HANDLE)
            if received[0] in (signal.SIGINT, signal.SIGTERM) and not _handled.is_set():
                signal.pthread_kill(main_thread, received[0])
        os.close(reader)

    threading.Thread(target=wake, daemon=True).start()
    return writer


_handled = threading.Event()  # a signal that ends the command has reached the main thread
_SECONDS_TO_HANDLE = 0.2


def _interrupt(signum: int, _: object) -> None:
    _handled.set()
    threading.excepthook = lambda _: None  # threads of pools fail as their workers end
    if (workers := sys.modules.get("fdgnn.workers")) is not None:
        if signum == signal.SIGTERM:
            workers.end_for_certain(128 + signum)
        workers.terminate_workers()  # before the command unwinds: pools wait for their workers
    if signum == signal.SIGINT:
        raise KeyboardInterrupt
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` sends it twice
    raise _Terminated


def _fill_in_closed_streams() -> None:
    """Keep the numbers of closed standard streams from files that are opened later.

    Otherwise, what libraries print on standard error would be written into our results.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the smallest number that is free
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    say(f"warning: {' '.join(name_options(str(message)).split())}")


def one_line(error: Exception) -> str:
    """Return the message in one line, with options instead of Python arguments."""
    text = reason_of(error)
    text = text if isinstance(error, OSError) else name_options(text)
    return printable(" ".join(text.split()))
