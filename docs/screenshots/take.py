"""Takes the pictures of docs/operating.md: a demo, a headless Chromium, the Temporal UI.

    apt-get install chromium && uv run python docs/screenshots/take.py [--nodes 8]

The demo (with these arguments) runs its script; then one more GPU breaks for good, so that somebody
is asked for. The browser is driven by the DevTools protocol over the websocket client that is there
anyway.
"""

import asyncio
import base64
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp

from simulator.hardware.machine import Machine
from simulator.hardware.nature import DEAD, Nature, Symptoms

HERE = Path(__file__).parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
WIDTH = 1400
OPEN = "WorkflowType = 'node-remediation' AND ExecutionStatus = 'Running'"
CONTAINED = Nature(
    name="contained-memory",
    lines=("NVRM: Xid (PCI:{bdf}): 94, pid=7194, name=python3, Ch 00000010",),
    cures=frozenset(),
    symptoms=Symptoms(uncorrected=1),
)
"""A memory error that hurts one process: the policy lets jobs stay for a while."""
COLUMNS = ("Status", "Node", "Fault", "Step", "DueAt", "Pool", "Rack", "Start")
LONGEST_DEMO = 900
LONGEST_PAGE = 120
STILL = 4
BOX = """below => {
    const main = document.querySelector('main').getBoundingClientRect();
    const heads = [...document.querySelectorAll('main h2')];
    const head = below && heads.find(each => each.innerText.trim().startsWith(below));
    const top = head ? head.getBoundingClientRect().top - 20 : main.top;
    return JSON.stringify({x: main.x, y: top, width: main.width, height: main.bottom - top});
}"""
"""A script: where the main part of a page is."""
SMALLEST, LARGEST = 10_000, 200_000


@dataclass(frozen=True)
class Stage:
    """Where a running demo is."""

    ui: str
    machines: Path
    environment: Mapping[str, str]


class Browser:
    """One tab of a headless browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._calls = 0

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call the DevTools protocol."""
        self._calls += 1
        await self._socket.send_json({"id": self._calls, "method": method, "params": arguments})
        async for message in self._socket:
            answer = json.loads(message.data)
            if answer.get("id") == self._calls:
                return answer.get("result")
        raise SystemExit("the browser is gone")

    async def evaluate(self, script: str) -> Any:
        """What a script on the page answers."""
        answer = await self.call("Runtime.evaluate", expression=script, returnByValue=True)
        return answer.get("result", {}).get("value")

    async def open(self, url: str, drawn: str, height: int) -> None:
        """Open a page and wait until this script on it is true."""
        size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.call("Emulation.setDeviceMetricsOverride", **size)
        await self.call("Emulation.setScrollbarsHidden", hidden=True)
        await self.call("Page.navigate", url=url)
        async with asyncio.timeout(LONGEST_PAGE):
            while not await self.evaluate(drawn):  # noqa: ASYNC110 - a page says nothing when drawn
                await asyncio.sleep(0.3)

    async def picture(self, name: str, below: str = "", height: int = 0) -> None:
        """Keep the page's main part, once several pictures in a row are the same.

        `below`: only from the heading with this text on; `height`: only so far.
        """
        box = json.loads(await self.evaluate(f"({BOX})({below!r})"))
        clip = {**box, "height": height or box["height"], "scale": 1}
        last, same = b"", 0
        for _ in range(60):
            shot = await self.call("Page.captureScreenshot", format="png", clip=clip)
            data = base64.b64decode(shot["data"])
            same = same + 1 if data == last else 0
            last = data
            if same >= STILL:
                break
            await asyncio.sleep(0.7)
        if not SMALLEST < len(last) < LARGEST:
            raise SystemExit(f"{name}: {len(last)} bytes is no picture for a page")
        (HERE / name).write_bytes(last)
        say(f"{name}: {len(last) // 1000} kB")


async def main() -> None:
    """Take all of them."""
    async with demo() as stage, browser() as tab:
        runs = await incidents(stage, "--all")
        repaired = next(each for each in runs if "reboot" in each["stages"])
        struck = [each["node"] for each in runs if each is not repaired]
        for node, nature in zip(struck, (DEAD, CONTAINED), strict=False):
            Machine(stage.machines / node).strike(2, nature)
        waiting = await handed_off(stage)
        await take(tab, stage, repaired, waiting)


async def take(
    tab: Browser, stage: Stage, repaired: Mapping[str, Any], waiting: Mapping[str, Any]
) -> None:
    """The list, the card and details of one run, the timeline of another."""
    base = f"{stage.ui}/namespaces/gpumend/workflows"
    await tab.open(base, shows("Workflows"), 600)
    columns = json.dumps({"gpumend": [{"label": each} for each in COLUMNS]})
    await tab.evaluate(f"localStorage.setItem('namespace-workflow-table-columns', {columns!r})")
    await tab.open(f"{base}?{urlencode({'query': OPEN})}", shows(waiting["node"]), 640)
    await tab.picture("list.png")
    await tab.open(
        f"{run_page(base, waiting)}/user-metadata", "!!document.querySelector('iframe')", 1150
    )
    await tab.picture("card.png")
    await tab.open(f"{run_page(base, repaired)}/timeline", shows("reboot"), 2000)
    await tab.picture("timeline.png", below="Timeline", height=900)


def shows(words: str) -> str:
    """A script that is true when a page shows these words."""
    return f"(document.body.innerText || '').includes({words!r})"


def run_page(base: str, run: Mapping[str, Any]) -> str:
    """Where the UI shows a run."""
    return f"{base}/{quote(run['workflow_id'], safe='')}/{run['run_id']}"


async def handed_off(stage: Stage) -> Mapping[str, Any]:
    """The incident that waits for a person, once it does."""
    async with asyncio.timeout(LONGEST_DEMO):
        while True:
            found = await incidents(stage, "--step", "hand-off")
            if found:
                return found[0]
            await asyncio.sleep(2)


async def incidents(stage: Stage, *flags: str) -> list[dict[str, Any]]:
    """`gpumend incidents`."""
    process = await asyncio.create_subprocess_exec(
        *command("incidents", "--json", *flags),
        env={**os.environ, **stage.environment},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    found: list[dict[str, Any]] = json.loads(out)
    return found


@asynccontextmanager
async def demo() -> AsyncIterator[Stage]:
    """A demo that has run its script and is left running."""
    process = await asyncio.create_subprocess_exec(
        *command("demo", "--keep", *sys.argv[1:]), stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(LONGEST_DEMO):
            yield await stage_of(process)
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def stage_of(process: asyncio.subprocess.Process) -> Stage:
    """What the demo says at its end."""
    assert process.stdout
    ui, environment = "", {"GPUMEND_CLUSTER": "demo"}
    async for line in process.stdout:
        words = line.decode().split()
        sys.stderr.write(line.decode())
        environment |= dict(
            each.split("=", 1) for each in words if "=" in each and "export" in words
        )
        if words[:2] == ["Temporal", "UI"]:
            ui = words[2]
        if words[:1] == ["logs"]:
            return Stage(ui, Path(words[1]).parent / "machines", environment)
    raise SystemExit("the demo ended without saying where it is")


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A browser with a profile of its own, gone afterwards."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit("no browser: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program,
            *FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port = await port_of(Path(profile) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    tabs = await answer.json()
                url = next(each for each in tabs if each["type"] == "page")["webSocketDebuggerUrl"]
                async with session.ws_connect(url, max_msg_size=0) as socket:
                    yield Browser(socket)
        finally:
            process.terminate()
            await process.wait()


async def port_of(file: Path) -> str:
    """The port that the browser chose, once it has said so."""
    async with asyncio.timeout(LONGEST_PAGE):
        while not (words := read(file)):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return words[0]


def read(file: Path) -> list[str]:
    """The words of a file; none while it is not there."""
    return file.read_text().split() if file.exists() else []


def command(*words: str) -> tuple[str, ...]:
    """A command of ours with this interpreter."""
    return (sys.executable, "-m", "console.main", *words)


def say(text: str) -> None:
    """To whoever runs this."""
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    asyncio.run(main())
