// pg-boss: jobs fetched in batches, polled as often as it allows.

import PgBoss from "pg-boss";

import { TEXT } from "./payload.mjs";

const QUEUE = "bench";
const BATCH = 500;
const POLL_SECONDS = 0.5;

export function make(url, board) {
  let boss = null;
  const opened = async () => {
    if (boss === null) {
      boss = new PgBoss({ connectionString: url, max: 20, supervise: false, schedule: false });
      boss.on("error", (error) => console.error(error));
      await boss.start();
    }
    return boss;
  };

  return {
    async install() {
      await (await opened()).createQueue(QUEUE);
    },
    async submit(number) {
      await (await opened()).send(QUEUE, { number, text: TEXT });
    },
    async submitMany(numbers) {
      await (await opened()).insert(numbers.map((number) => ({ name: QUEUE, data: { number, text: TEXT } })));
    },
    async go() {
      const options = { batchSize: BATCH, pollingIntervalSeconds: POLL_SECONDS };
      await (await opened()).work(QUEUE, options, async (jobs) => {
        for (const job of jobs) board.mark(job.data.number);
      });
    },
    async stop() {
      await boss.offWork(QUEUE);
    },
    async close() {
      await boss?.stop({ graceful: true, wait: true });
    },
  };
}
