"""Count words in many files at once: one job for each file, exact totals, and progress meanwhile.

python examples/map_reduce.py [file.db]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from ropewalk import App, Context, Result, job

FILES, WORDS = 40, 250


@job
def count_words(ctx: Context, path: str) -> Result[int, int]:
    """Count the words of a file, in a thread; the store adds up the sums exactly, whenever a job completes."""
    return ctx.result(len(Path(path).read_text().split()), append="sum")


@job
def count_all(ctx: Context, folder: str) -> Result[None, int]:
    return ctx.queue(*(count_words(str(path)) for path in sorted(Path(folder).iterdir())))


app = App(f"sqlite:///{sys.argv[1] if len(sys.argv) > 1 else 'words.db'}", jobs=[count_words, count_all])


async def watch(group_id: str) -> None:
    done = -1
    while True:
        group = await app.group(group_id)
        if group.completed != done:
            done = group.completed
            total = group.open + group.completed + group.failed
            print(f"[{'#' * (20 * done // total):20}] {done}/{total} jobs")
        if group.closed_at is not None:
            return
        await asyncio.sleep(0.05)


async def main(folder: str) -> None:
    async with app.running(concurrency=4):
        handle = await app.enqueue(count_all(folder))
        watching = asyncio.create_task(watch(handle.group_id))
        total = await handle.group(timeout=30)
        await watching
    assert total == FILES * WORDS
    print(f"{total} words in {FILES} files")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as texts:
        for number in range(FILES):
            Path(texts, f"{number:03}.txt").write_text("word " * WORDS)
        asyncio.run(main(texts))
