// BullMQ on Node: `peer.mjs COMMAND URL [NUMBER]`, the commands of ../harness.py.
// The setting is its concurrency. Process and Python share CLOCK_MONOTONIC.

import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { createRequire } from 'node:module';

// Its packages live in a cache beside the repository, not beside this file.
const { Queue, Worker } = createRequire(`${process.env.PEER_MODULES}/`)('bullmq');

const DATA = 'x'.repeat(89);
const BATCH = 1000;
const GAPS_MS = [20, 60];
const REPORT_MS = 20;

const [command, url, number] = process.argv.slice(2);
const { hostname, port } = new URL(url);
const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null };
const now = () => process.hrtime.bigint();
const say = (document) => process.stdout.write(`${JSON.stringify(document)}\n`);

async function enqueue(jobs) {
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  const began = performance.now();
  for (let start = 0; start < jobs; start += BATCH) {
    const count = Math.min(BATCH, jobs - start);
    await queue.addBulk(Array.from({ length: count }, () => ({ name: 'noop', data: { data: DATA } })));
  }
  say(jobs / ((performance.now() - began) / 1000));
}

async function singles(jobs) {
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  const [least, most] = GAPS_MS;
  for (let sent = 0; sent < jobs; sent += 1) {
    await pause(least + Math.random() * (most - least));
    await queue.add('noop', { data: DATA, sent_ns: now().toString() });
  }
  say(jobs);
}

async function inARow(jobs) {
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  await queue.add('noop', { data: DATA });
  const began = performance.now();
  for (let sent = 0; sent < jobs; sent += 1) await queue.add('noop', { data: DATA });
  say([jobs / ((performance.now() - began) / 1000), null]);
}

async function work(concurrency) {
  let done = 0;
  let said = 0;
  let last = 0n;
  let pickups = [];
  const handler = async (job) => {
    last = now();
    done += 1;
    if (job.data.sent_ns) pickups.push(Number(last - BigInt(job.data.sent_ns)) / 1e6);
  };
  const worker = new Worker('bench', handler, { connection, concurrency, autorun: false });
  await worker.waitUntilReady();
  say({ ready: true });
  await new Promise((resolve) => createInterface({ input: process.stdin }).once('line', resolve));
  setInterval(() => {
    if (done === said) return;
    said = done;
    say({ done, last_ns: Number(last), pickups });
    pickups = [];
  }, REPORT_MS);
  await worker.run();
}

const commands = { setup: async () => say(null), enqueue, singles, in_a_row: inARow, work };
await commands[command](Number(number));
if (command !== 'work') process.exit(0);
