// SPDX-License-Identifier: Apache-2.0

// One of the apps of the measurement `density`: an HTTP server with a data set in memory, for Node.
//   node --max-semi-space-size=2 service.js SLOT; the environment says where it listens and what it loads (see README.md).
'use strict';
const fs = require('fs');
const http = require('http');

const RECORDS = 55000;
const FOUND = 40;
const slot = Number(process.argv[2]);
const sweep = Number(process.env.DENSITY_SWEEP || 0);

process.on('SIGTERM', () => process.exit(0));
const say = (what) => fs.appendFileSync(process.env.DENSITY_STARTS, `${what} ${slot} ${process.pid}\n`);
say('begun');

// A block at a time: what is read is not to be in memory as a whole.
function load(path, count) {
  const file = fs.openSync(path, 'r');
  const block = Buffer.alloc(1 << 16);
  const records = [];
  let rest = '';
  for (let size; records.length < count && (size = fs.readSync(file, block)) > 0; ) {
    const lines = (rest + block.latin1Slice(0, size)).split('\n');
    rest = lines.pop();
    for (const line of lines) if (records.length < count) records.push(JSON.parse(line));
  }
  fs.closeSync(file);
  return records;
}

const records = load(process.env.DENSITY_DATA, RECORDS);

// Once a second a part of the records is looked through for what has expired, as caches do.
let swept = 0;
if (sweep > 0) {
  setInterval(() => {
    const now = process.uptime();
    const end = Math.min(swept + Math.max(1, Math.floor(RECORDS / sweep)), RECORDS);
    for (let index = swept; index < end; index++) {
      if (records[index].expires < now) records[index].expires += 86400;
    }
    swept = end < RECORDS ? end : 0;
  }, 1000);
}

http
  .createServer((request, response) => {
    // As many records as a page of search results has, anywhere in the data set.
    let place = BigInt(request.url.split('=')[1] || 1);
    const found = [];
    for (let count = 0; count < FOUND; count++) {
      place = BigInt.asUintN(64, place * 6364136223846793005n + 1442695040888963407n);
      const record = records[Number((place >> 33n) % BigInt(RECORDS))];
      record.seen += 1;
      found.push(record.name);
    }
    response.setHeader('Connection', 'close');
    response.end(`pid ${process.pid}\n${found.join(' ')}\n`);
  })
  .listen(
    // Whoever launches it may have listened already.
    process.env.LISTEN_PID === String(process.pid)
      ? { fd: 3 }
      : { port: Number(process.env.DENSITY_PORT) + slot, host: '127.0.0.1', backlog: 64 },
    () => say('ready')
  );
