"""`nvidia-smi` as the real one behaves, from the state file `<root>/smi.json`. Nothing imported.

`gpus`: for each address the cells by field; what is not there is `[N/A]`. `raw` is printed instead
of everything, `message` after the rows, `exit` is the status.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.tools.behaviour import behave

SOUND = {
    "index": "0",
    "gpu_recovery_action": "None",
    "ecc.errors.uncorrected.volatile.total": "0",
    "remapped_rows.pending": "No",
    "remapped_rows.failure": "No",
}


def main(root: Path, arguments: list[str]) -> int:
    said = json.loads((root / "smi.json").read_text())
    behave(said.get("behave", ""), "00000000:52:00.0, 0\n00000000:53:0")
    if "raw" in said:
        sys.stdout.write(said["raw"])
        return int(said.get("exit", 0))
    query = next((each for each in arguments if each.startswith("--query-")), "")
    fields = query.partition("=")[2].split(",")[1:]
    for address, cells in said["gpus"].items():
        known = {**SOUND, **cells}
        print(", ".join([address, *(known.get(each, "[N/A]") for each in fields)]))
    if "message" in said:
        print(said["message"])
    return int(said.get("exit", 0))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
