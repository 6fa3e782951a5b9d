"""Wait for a person, even for days: the job gives back its slot, survives restarts, and times out.

python examples/human_approval.py [file.db]
"""

from __future__ import annotations

import asyncio
import sys

from ropewalk import App, Context, WaitTimeout, job

drafts: list[str] = []


async def write_draft(topic: str) -> str:
    """Ask the person; as a step this is done once, however often the handler starts again from the top."""
    drafts.append(topic)
    return f"All about {topic}"


@job
async def publish(ctx: Context, topic: str, patience: float) -> str:
    draft = await ctx.step("draft", write_draft, topic)
    try:
        answer = await ctx.wait_for("approval", timeout=patience)
    except WaitTimeout:
        return f"{draft!r} was not approved in time"
    await ctx.sleep(0.1)  # could be hours: nothing runs meanwhile
    return f"{draft!r} published, approved by {answer}"


app = App(f"sqlite:///{sys.argv[1] if len(sys.argv) > 1 else 'approval.db'}", jobs=[publish])


async def main() -> None:
    approved = await app.enqueue(publish("ropes", patience=60))
    ignored = await app.enqueue(publish("knots", patience=0.2))

    async with app.running():
        await ignored.result(timeout=30)  # when this one has timed out, the other one waits as well
        why = await app.why(approved.id)
        print(f"{why.state}: {why.explanation}")

    # Nothing runs now. The signal is kept, and so are the finished steps.
    await app.signal(approved.id, "approval", "Grace")

    async with app.running():
        print(await approved.result(timeout=30))
        print(await ignored.result(timeout=30))
    assert sorted(drafts) == ["knots", "ropes"]


if __name__ == "__main__":
    asyncio.run(main())
