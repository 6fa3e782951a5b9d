"""`python -m benchmarks.growth`: fill, measure every case in interleaved rounds, show. `--finished` for less."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from benchmarks import machine, report, server
from benchmarks.growth import table
from benchmarks.growth.cases import Plan, measure
from benchmarks.growth.table import Results
from benchmarks.harness import Teller
from benchmarks.subjects.subject import StoreName

PAGE: Final = Path(__file__).parents[1] / "GROWTH.md"
STORES: Final[tuple[StoreName, ...]] = ("postgres", "sqlite")
QUICK: Final = Plan(rounds=1, jobs=500, finished=1_000)


def main(arguments: list[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    plan = _plan(asked)
    facts = machine.look(plan.directory)
    print(facts)
    results = asyncio.run(_measure(asked.only or list(STORES), plan, _tell))
    print("\n".join(report.aligned([table.HEADINGS, *table.rows(results)])))
    if asked.json is not None:
        asked.json.write_text(_as_json(results, facts, plan) + "\n")
    if asked.write:
        PAGE.write_text(_page(results, facts, plan))
    return 0


def _plan(asked: argparse.Namespace) -> Plan:
    plan = QUICK if asked.quick else Plan()
    named = {name: value for name in ("rounds", "jobs", "finished") if (value := getattr(asked, name)) is not None}
    return dataclasses.replace(plan, directory=asked.directory, **named)


async def _measure(stores: list[StoreName], plan: Plan, told: Teller) -> Results:
    results: Results = {}
    for store in stores:
        with server.started() if store == "postgres" else nullcontext() as running:
            results[store] = await measure(store, plan, running, told)
    return results


def _as_json(results: Results, facts: machine.Machine, plan: Plan) -> str:
    return json.dumps(
        {
            "machine": facts.as_dict(),
            "rounds": plan.rounds,
            "jobs": plan.jobs,
            "finished": plan.finished,
            "results": {
                store: {
                    case: {
                        "runs": [dataclasses.asdict(drained) for drained in rounds],
                        "of_empty": table.ratios(case, cases),
                    }
                    for case, rounds in cases.items()
                }
                for store, cases in results.items()
            },
        },
        indent=2,
    )


def _page(results: Results, facts: machine.Machine, plan: Plan) -> str:
    finished = f"{plan.finished:,}".replace(",", " ")
    jobs = f"{plan.jobs:,}".replace(",", " ")
    return (
        "# Growth: what lies around\n\n"
        f"Written by `python -m benchmarks.growth --write`: {jobs} jobs drained by one worker process, medians of "
        f"{plan.rounds}\ninterleaved rounds on one machine ({facts}).\n"
        f"Ratios are to the empty store, and at most {table.TIMES_MAX} is asked of them.\n\n"
        f"{report.markdown([table.HEADINGS, *table.rows(results)])}\n"
        "- **empty** nothing but these jobs\n"
        f"- **finished** {finished} finished jobs are there, submitted and worked off by the same queue\n"
        "- **held** a transaction is open from before the jobs were submitted, its snapshot taken "
        "(PostgreSQL: repeatable read, with an id)\n\n"
        "Server CPU is that of all of PostgreSQL's processes, autovacuum included, while draining.\n"
    )


def _tell(line: str) -> None:
    print(line.replace(",", " "), file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description="What lies around, and its cost.")
    parser.add_argument("--quick", action="store_true", help="one small round: a smoke run, not a measurement")
    parser.add_argument("--only", nargs="+", choices=STORES, metavar="STORE", help="postgres, sqlite (both)")
    parser.add_argument("--finished", type=int, help="finished jobs to have there (1 000 000)")
    parser.add_argument("--jobs", type=int, help="jobs drained in each round (100 000)")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (3)")
    parser.add_argument("--directory", type=Path, help="where files are put (the system's temporary directory)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--write", action="store_true", help="write benchmarks/GROWTH.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
