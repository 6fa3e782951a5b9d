// How jobs are handed in, as benchmarks/pace.py: one after another, by a hundred at once, in batches, or a while apart.

import { setTimeout as wait } from "node:timers/promises";

const CALLERS = 100;
const BATCH = 1000;
const APART_MS = 20;

export async function submit(queue, pace, start, stop) {
  const began = process.hrtime.bigint();
  const asked_ns = [];
  switch (pace) {
    case "one":
      for (let number = start; number < stop; number += 1) await queue.submit(number);
      break;
    case "hundred": {
      let next = start;
      const caller = async () => {
        while (next < stop) await queue.submit(next++);
      };
      await Promise.all(Array.from({ length: CALLERS }, caller));
      break;
    }
    case "bulk":
      for (let from = start; from < stop; from += BATCH) await queue.submitMany(range(from, Math.min(from + BATCH, stop)));
      break;
    case "apart":
      for (let number = start; number < stop; number += 1) {
        await wait(APART_MS);
        asked_ns.push(Number(process.hrtime.bigint()));
        await queue.submit(number);
      }
      break;
    default:
      throw new Error(`pace ${pace} is unknown`);
  }
  return { seconds: Number(process.hrtime.bigint() - began) / 1e9, asked_ns };
}

function range(start, stop) {
  return Array.from({ length: stop - start }, (_, index) => start + index);
}
