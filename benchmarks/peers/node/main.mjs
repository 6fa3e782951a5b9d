// A process of a peer: node main.mjs NAME URL BOARD INDEX. See benchmarks/peers/process.py for the orders.

import { createInterface } from "node:readline";

import { Board } from "./board.mjs";
import { make as graphile } from "./graphile.mjs";
import { submit } from "./pace.mjs";
import { make as pgboss } from "./pgboss.mjs";

const MAKE = {
  "graphile-worker-local": (url, board) => graphile(url, board, { local: true }),
  "graphile-worker": (url, board) => graphile(url, board, { local: false }),
  "pg-boss": pgboss,
};

const [name, url, path, index] = process.argv.slice(2);
const board = new Board(path, Number(index));
const queue = MAKE[name](url, board);
const answer = (line) => process.stdout.write(`${line}\n`);

answer("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [order, ...rest] = line.trim().split(" ");
  if (order === "install") {
    await queue.install();
    answer("install");
  } else if (order === "submit") {
    const [pace, start, stop] = rest;
    answer(JSON.stringify(await submit(queue, pace, Number(start), Number(stop))));
  } else if (order === "go") {
    await queue.go();
  } else if (order === "stop") {
    await queue.stop();
    answer("stop");
  } else {
    break;
  }
}
await queue.close();
board.close();
process.exit(0);
