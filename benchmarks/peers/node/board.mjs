// Where handlers leave their mark, as benchmarks/board.py: the start of each job and how many a worker started.
// Node maps no files, so marks are gathered and written every few milliseconds, in runs of neighbours: a write a job
// would cost more than the job. The count is written after the marks it counts.

import { closeSync, openSync, writeSync } from "node:fs";

const WORKERS_MAX = 8;
const CELL = 8;
const FLUSH_MS = 2;

export class Board {
  #marks = new Map();
  #handled = 0n;
  #timer = null;

  constructor(path, worker) {
    this.file = openSync(path, "r+");
    this.worker = worker;
  }

  mark(number) {
    this.#marks.set(number, process.hrtime.bigint());
    this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS);
  }

  flush() {
    clearTimeout(this.#timer);
    this.#timer = null;
    const numbers = [...this.#marks.keys()].sort((a, b) => a - b);
    for (let from = 0; from < numbers.length; ) {
      let to = from + 1;
      while (to < numbers.length && numbers[to] === numbers[to - 1] + 1) to += 1;
      const run = BigInt64Array.from(numbers.slice(from, to), (number) => this.#marks.get(number));
      writeSync(this.file, run, 0, run.byteLength, (WORKERS_MAX + numbers[from]) * CELL);
      from = to;
    }
    this.#handled += BigInt(this.#marks.size);
    this.#marks.clear();
    writeSync(this.file, BigInt64Array.of(this.#handled), 0, CELL, this.worker * CELL);
  }

  close() {
    if (this.#timer !== null) this.flush();
    closeSync(this.file);
  }
}
