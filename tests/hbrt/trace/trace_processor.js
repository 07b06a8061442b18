// Perfetto's trace processor, which is WebAssembly made for a worker of a browser, in node: its messages on standard
// input and output. Argument: the folder with engine_bundle.js and the .wasm files.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = process.argv[2];
const node = process;
const answers = {
  postMessage(bytes) {
    for (let at = 0; at < bytes.length; ) at += fs.writeSync(1, bytes, at);
  },
};
globalThis.self = globalThis;
globalThis.location = { href: `file://${folder}/engine_bundle.js` };
globalThis.WorkerGlobalScope = function () {};
globalThis.importScripts = () => {};
globalThis.XMLHttpRequest = class {
  open(_, name) {
    this.file = path.join(folder, path.basename(name));
  }
  send() {
    this.status = 200;
    this.response = new Uint8Array(fs.readFileSync(this.file)).buffer;
  }
};
for (const name of ["log", "info", "warn", "error"]) console[name] = (...words) => node.stderr.write(`${words.join(" ")}\n`);
globalThis.process = undefined; // else it takes node for what it is
vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"));
globalThis.process = node;
globalThis.onmessage({ data: answers });
// A promise that is due before makes it ready.
setImmediate(() => node.stdin.on("data", (chunk) => answers.onmessage({ data: new Uint8Array(chunk) })));
