"""Paints charts in a process of its own: one that the library cannot draw ends this process, not its caller's.

Run as a script. It reads one JSON document per line, {"spec": …, "form": "png" or "svg", "scale": …}, and answers
each with a byte (0: painted, 1: not), eight bytes of length, and the picture or the reason.
"""

from __future__ import annotations

import json
import sys

import vl_convert


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin.buffer:
        task = json.loads(line)
        try:
            if task["form"] == "svg":
                answer, code = str(vl_convert.vegalite_to_svg(task["spec"], allowed_base_urls=[])).encode(), 0
            else:
                picture = vl_convert.vegalite_to_png(task["spec"], scale=task["scale"], allowed_base_urls=[])
                answer, code = bytes(picture), 0
        except Exception as error:  # the library raises ValueError, and whatever V8 throws
            answer, code = str(error).encode("utf-8", "replace"), 1
        sys.stdout.buffer.write(bytes([code]) + len(answer).to_bytes(8, "big") + answer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
