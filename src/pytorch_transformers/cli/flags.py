"""Flags as the TensorFlow programs take them, for the scripts that keep their names."""

import re
from collections.abc import Collection, Sequence


def as_switches(arguments: Sequence[str], names: Collection[str]) -> list[str]:
    """Rewrite flags that are true or false in the form of the commands here: `--name` or `--no_name`.

    Args:
        arguments: Of a command line; `--name=true`, `--name=False`, `--noname` and so on are rewritten.
        names: The flags that are true or false.
    """
    of = "|".join(names)
    given = re.compile(rf"--?({of})=(?:(true|t|1|yes|y)|false|f|0|no|n)", re.IGNORECASE)
    found = []
    for argument in arguments:
        if negative := re.fullmatch(rf"--?no({of})", argument):
            found.append(f"--no_{negative[1]}")
        elif value := given.fullmatch(argument):
            found.append(f"--{value[1]}" if value[2] else f"--no_{value[1]}")
        else:
            found.append(argument)
    return found
