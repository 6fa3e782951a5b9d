// graphile-worker: as it comes, or with the local queue and batched completions its documentation recommends for load.

import { Logger, makeWorkerUtils, run } from "graphile-worker";

import { TEXT } from "./payload.mjs";

const CONCURRENCY = 24;
const QUIET = new Logger(() => () => {});
const LOCAL = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };

export function make(url, board, { local }) {
  const connection = { connectionString: url, logger: QUIET };
  let utils = null;
  let runner = null;
  const opened = async () => (utils ??= await makeWorkerUtils({ ...connection, maxPoolSize: CONCURRENCY + 1 }));

  return {
    async install() {
      await (await opened()).migrate();
    },
    async submit(number) {
      await (await opened()).addJob("work", { number, text: TEXT });
    },
    async submitMany(numbers) {
      const specs = numbers.map((number) => ({ identifier: "work", payload: { number, text: TEXT } }));
      await (await opened()).addJobs(specs);
    },
    async go() {
      runner = await run({
        preset: {
          worker: {
            ...connection,
            concurrentJobs: CONCURRENCY,
            maxPoolSize: CONCURRENCY + 1,
            ...(local ? LOCAL : {}),
          },
        },
        noHandleSignals: true,
        taskList: { work: (payload) => board.mark(payload.number) },
      });
    },
    async stop() {
      await runner?.stop();
      runner = null;
    },
    async close() {
      await utils?.release();
    },
  };
}
