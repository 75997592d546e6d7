"""Which steps are recorded for the profiler."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qflock.errors import ConfigurationError


@dataclass(frozen=True)
class StepRange:
    """Steps from `first` to `last`, both counted from 1 and both included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> StepRange:
        """From "first,last".

        Raises:
            ConfigurationError: If the text is anything else.

        Example:
            >>> StepRange.parse("10,20")
            StepRange(first=10, last=20)
        """
        match = re.fullmatch(r"\s*(\d+)\s*,\s*(\d+)\s*", text)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise ConfigurationError(
                f"Option --profile must be FIRST,LAST with 1 <= FIRST <= LAST, for instance 10,20, but is {text!r}"
            )
        return cls(int(match[1]), int(match[2]))
