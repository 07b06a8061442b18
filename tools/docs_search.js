// The site's own search, in node: node docs_search.js WORKER.js SEARCH_INDEX.json QUERY... prints a JSON list for each
// query, the page that is found first in front. Messages as the theme sends them: 0 sets the index up, 2 is a query.
const fs = require("fs");
const vm = require("vm");

const [worker, index, ...queries] = process.argv.slice(2);
let receive;
const answers = [];
const scope = {
  console, TextDecoder, URL, Intl, setTimeout,
  location: new URL("http://localhost/assets/javascripts/workers/search.js"),
  addEventListener: (kind, listener) => { if (kind === "message") receive = listener; },
  postMessage: (message) => answers.push(message),
};
scope.self = scope;
scope.globalThis = scope;

async function main() {
  vm.runInNewContext(fs.readFileSync(worker, "utf8"), scope);
  await receive({ data: { type: 0, data: { ...JSON.parse(fs.readFileSync(index, "utf8")), options: { suggest: false } } } });
  for (const query of queries) {
    answers.length = 0;
    await receive({ data: { type: 2, data: query } });
    const groups = answers[0].data.items.map((group) => group[0].location.split("#")[0]);
    console.log(JSON.stringify(groups));
  }
}
main();
