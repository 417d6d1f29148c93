"""Integers out of the text of a TU file, at about a nanosecond a byte."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

MAX_DIGITS = 18  # every such number fits an int64


@njit(cache=True, nogil=True)
def parse_rows(text: npt.NDArray[np.uint8], out: npt.NDArray[np.int64]) -> int:
    """Read rows of integers, separated by a comma, blanks or both.

    Parameters
    ----------
    text : (n_bytes,) uint8
        Rows joined by newlines, without one at the end.
    out : (n_columns, n_rows) int64
        Receives the numbers; n_rows is the number of newlines plus one.

    Returns
    -------
    n_read : int
        Rows read. If this is less than n_rows, row ``n_read`` is not ``n_columns`` integers.
    """
    n_columns = out.shape[0]
    size = text.shape[0]
    i = 0
    for row in range(out.shape[1]):
        for column in range(n_columns):
            i = _skip_blanks(text, i)
            if column > 0 and i < size and text[i] == ord(","):
                i = _skip_blanks(text, i + 1)
            negative = i < size and text[i] == ord("-")
            if negative or (i < size and text[i] == ord("+")):
                i += 1
            start = i
            number = np.int64(0)
            while i < size and ord("0") <= text[i] <= ord("9"):
                number = number * 10 + (text[i] - ord("0"))
                i += 1
            if i == start or i - start > MAX_DIGITS or not _is_end_of_number(text, i):
                return row
            out[column, row] = -number if negative else number
        i = _skip_blanks(text, i)
        if i < size and text[i] != ord("\n"):
            return row
        i += 1
    return int(out.shape[1])


@njit(cache=True, nogil=True)
def _skip_blanks(text: npt.NDArray[np.uint8], i: int) -> int:
    while i < text.shape[0] and (
        text[i] == ord(" ") or text[i] == ord("\t") or text[i] == ord("\r")
    ):
        i += 1
    return i


@njit(cache=True, nogil=True)
def _is_end_of_number(text: npt.NDArray[np.uint8], i: int) -> bool:
    if i == text.shape[0]:
        return True
    c = text[i]
    return bool(
        c == ord("\n") or c == ord(",") or c == ord(" ") or c == ord("\r") or c == ord("\t")
    )
