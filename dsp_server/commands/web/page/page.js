"use strict";
const INTERVAL_MS = 1000;
const at = id => document.getElementById(id);

function node(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function time(ns) {
  if (ns >= 1e9) return `${(ns / 1e9).toFixed(2)} s`;
  if (ns >= 1e6) return `${(ns / 1e6).toFixed(2)} ms`;
  return `${(ns / 1e3).toFixed(1)} µs`;
}

// What an op's modeled cycles were spent on.
function split(op) {
  if (!op.modeled_cycles) return "charged no cycles";
  const share = (part, whole) => `${Math.round(100 * part / whole)}%`;
  const parts = ["vector", "scalar", "ddr", "wait"].filter(name => op[`modeled_${name}`])
    .map(name => `${name} ${share(op[`modeled_${name}`], op.modeled_cycles)}`);
  const dma = op.modeled_dma;
  if (dma) parts.push(`DMA ${time(dma * op.modeled_ns / op.modeled_cycles)}, ${share(op.modeled_overlap, dma)} of it hidden`);
  const what = parts.length ? `: ${parts.join(", ")}` : "";
  return `${op.modeled_is_estimated ? "~" : ""}${time(op.modeled_ns)} modeled for the board${what}`;
}

const hex = number => "0x" + number.toString(16);
const isDark = matchMedia("(prefers-color-scheme: dark)");
const color = key => `hsl(${[...String(key)].reduce((sum, sign) => (sum * 31 + sign.charCodeAt(0)) % 360, 7)} 55% ${isDark.matches ? 62 : 45}%)`;

// Which column each table is sorted by, and in which direction: a click on a heading chooses.
const sorts = {};

// The value that a number is sorted by, in bytes or seconds where it has a unit.
const SIZES = {KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, "µs": 1e-6, ms: 1e-3, min: 60, h: 3600, d: 86400};
function size(text) {
  const found = /([\d.,]+)\s*([^\s\d]*)/.exec(text);
  return found ? parseFloat(found[1].replaceAll(",", "")) * (SIZES[found[2]] || 1) : -1;
}

function table(id, {columns, rows, empty}) {
  const body = document.createDocumentFragment();
  const head = node("tr");
  const sort = sorts[id];
  const focused = [...at(id).querySelectorAll("th button")].indexOf(document.activeElement);
  columns.forEach(({heading, is_number: isNumber}, number) => {
    const isChosen = sort && sort.column === number;
    const cell = node("th", "", isNumber ? "number" : "");
    const button = node("button", heading + (isChosen ? (sort.way > 0 ? " ▲" : " ▼") : ""));
    cell.scope = "col";
    cell.ariaSort = isChosen ? (sort.way > 0 ? "ascending" : "descending") : "none";
    button.addEventListener("click", () => {
      sorts[id] = {column: number, way: isChosen ? -sort.way : isNumber ? -1 : 1};
      table(id, {columns, rows, empty});
    });
    cell.append(button);
    head.append(cell);
  });
  body.append(head);
  const compare = (one, other) => columns[sort.column].is_number ? size(one) - size(other) : one.localeCompare(other);
  for (const row of sort ? [...rows].sort((a, b) => sort.way * compare(a[sort.column], b[sort.column])) : rows) {
    const line = node("tr");
    row.forEach((text, number) => line.append(node("td", text, columns[number].is_number ? "number" : "")));
    body.append(line);
  }
  if (!rows.length) {
    const line = node("tr"), cell = node("td", empty, "empty");
    cell.colSpan = columns.length;
    line.append(cell);
    body.append(line);
  }
  at(id).replaceChildren(body);
  if (focused >= 0) head.children[focused].firstChild.focus({preventScroll: true});
}

// An op that takes FAR_BEYOND times its command's median, or MOST_SECONDS if there is none, is shown as hung.
const FAR_BEYOND = 100, MOST_SECONDS = 10, medians = new Map();
const command = task => task.kind === "dsp" ? hex(task.cmd) : "model", key = task => `${command(task)} ${task.name}`;
function isLate(runs) {
  const median = medians.get(key(runs));
  return runs.age_s > (median ? Math.max(1, FAR_BEYOND * median / 1e9) : MOST_SECONDS);
}

function showCores(cores) {
  at("cores").replaceChildren(...cores.map(core => {
    const runs = core.runs, late = runs && isLate(runs);
    const isGood = !late && (["ok", "busy"].includes(core.health) || core.state === "offline");
    const card = node("div", undefined, isGood ? "core" : "core hung"), head = node("div");
    card.dataset.core = core.core;
    const health = core.health === core.state ? core.state : `${core.state}, ${core.health}`;
    head.append(node("b", `core ${core.core}`), node("span", late ? `${health}, may hang` : health, isGood ? "healthy" : "ill"));
    const load = node("div", undefined, "load"), part = node("i");
    part.style.width = `${Math.round(core.busy * 100)}%`;
    load.append(part);
    card.append(head, load, node("div", `${Math.round(core.busy * 100)}% busy, ${core.tasks_per_s.toFixed(0)} tasks/s`));
    if (runs) {
      const median = medians.get(key(runs)), times = median ? `, ${Math.round(runs.age_s * 1e9 / median)} times its median` : "";
      card.append(node("div", `runs ${runs.name || command(runs)} for ${time(runs.age_s * 1e9)}${late ? times : ""}`, late ? "ill" : ""));
    }
    card.append(node("div", core.last ? `last ${core.last.name || command(core.last)}: ${split(core.last)}` : "", "last"));
    for (const [bank, used] of core.tcm.entries()) {
      const cells = node("div", undefined, "cells"), line = node("div", undefined, "tcm");
      cells.append(...[...used].map(sign => node("i", undefined, sign === "." ? "" : "used")));
      const count = [...used].filter(sign => sign !== ".").length;
      line.append(node("span", `TCM ${bank}`), cells, node("span", `${count * 2} of ${used.length * 2} KiB`));
      card.append(line);
    }
    return card;
  }));
}

// The visible part of the timeline, in seconds: the wheel zooms, dragging pans, a double click shows everything.
let drawn = [], shown = null, view = {from: 0, to: 0}, dragged = null;
function showTimeline(timeline, cores) {
  shown = {timeline, cores};
  if (!view.to) view = {from: 0, to: timeline.seconds};
  const canvas = at("timeline"), scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, row = 28, height = Math.max(1, cores.length) * row + 22;
  canvas.style.height = `${height}px`;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = "12px system-ui, sans-serif";
  const style = getComputedStyle(document.body);
  const left = 60, span = view.to - view.from, perNs = (width - left) / (span * 1e9);
  const start = timeline.end_ns - (timeline.seconds - view.from) * 1e9;
  for (let part = 0; part <= 5; part++) {
    const second = timeline.seconds - view.from - part * span / 5, x = left + part * (width - left) / 5;
    const text = second < 1e-9 ? "now" : span < 0.01 ? `-${(second * 1e3).toFixed(2)} ms` : `-${second.toFixed(span < 5 ? 2 : 0)} s`;
    pen.fillStyle = "#8884";
    pen.fillRect(Math.min(x, width - 1), 0, 1, height - 18);
    pen.fillStyle = style.color;
    pen.textAlign = part === 0 ? "left" : part === 5 ? "right" : "center";
    if (width > 600 || part % 5 === 0) pen.fillText(text, x, height - 4);
  }
  pen.textAlign = "left";
  cores.forEach((core, line) => pen.fillText(`core ${core.core}`, 4, line * row + 18));
  drawn = [];
  const names = new Map();
  const running = cores.filter(core => core.runs).map(core => ({...core.runs, core: core.core, state: "running",
    started_ns: timeline.end_ns - core.runs.age_s * 1e9, ended_ns: timeline.end_ns, late: isLate(core.runs)}));
  for (const task of [...timeline.tasks, ...running]) {
    const line = cores.findIndex(core => core.core === task.core);
    if (line < 0 || !task.started_ns) continue;
    const first = Math.max(left, left + (task.started_ns - start) * perNs);
    const last = Math.min(width, left + (task.ended_ns - start) * perNs);
    if (last < left || first > width) continue;
    const box = [first, line * row + 4, Math.max(1, last - first), row - 8], name = task.name || command(task);
    const isBad = task.late || !["done", "running"].includes(task.state);
    pen.fillStyle = isBad ? "#d33" : color(name);
    pen.fillRect(...box);
    names.set(isBad ? "failed or hung" : name, pen.fillStyle);
    drawn.push([box, task]);
  }
  at("legend").replaceChildren(...[...names].sort().map(([name, fill]) => {
    const entry = node("span"), mark = node("i");
    mark.style.background = fill;
    entry.append(mark, name);
    return entry;
  }));
}

function moveView(from, to) {
  const seconds = shown.timeline.seconds, span = Math.min(seconds, Math.max(1e-5, to - from));
  from = Math.min(Math.max(0, from), seconds - span);
  view = {from, to: from + span};
  showTimeline(shown.timeline, shown.cores);
}

function zoom(event) {
  if (!shown) return;
  event.preventDefault();
  const span = view.to - view.from, width = at("timeline").clientWidth - 60;
  const center = view.from + Math.max(0, event.offsetX - 60) / width * span, factor = event.deltaY < 0 ? 0.8 : 1.25;
  moveView(center - (center - view.from) * factor, center + (view.to - center) * factor);
}

function press(event) {
  const span = view.to - view.from, center = (view.from + view.to) / 2;
  const [move, factor] = {ArrowLeft: [-0.2, 1], ArrowRight: [0.2, 1], "+": [0, 0.8], "-": [0, 1.25]}[event.key] || [];
  if (!shown || factor === undefined) return;
  event.preventDefault();
  moveView(center + move * span - factor * span / 2, center + move * span + factor * span / 2);
}

function pan(event) {
  if (dragged === null || !shown) return;
  const span = view.to - view.from, moved = (dragged - event.offsetX) / (at("timeline").clientWidth - 60) * span;
  dragged = event.offsetX;
  moveView(view.from + moved, view.to + moved);
}

function showTip(event) {
  const x = event.offsetX, y = event.offsetY;
  const hit = drawn.findLast(([[left, top, width, height]]) => x >= left - 2 && x <= left + width + 2 && y >= top && y <= top + height);
  if (!hit) { at("tip").textContent = ""; return; }
  const task = hit[1], modeled = task.modeled_ns ? `; modeled for the board ${time(task.modeled_ns)}` : "";
  const of = task.program || task.pid;
  at("tip").textContent = `${task.name || command(task)}${of ? ` of ${of}` : ""}: ${task.state}, ran ${time(task.ended_ns - task.started_ns)}${modeled}`;
}

function showMap(blocks) {
  at("map").replaceChildren(...blocks.map(block => {
    const part = node("i"), owner = block.program || block.client;
    part.style.flex = `${block.size_bytes} 0 0`;
    part.style.background = color(owner);
    part.title = `${hex(block.phy_addr)}, ${block.size_bytes.toLocaleString("en-US")} bytes, ${owner}`;
    return part;
  }));
}

function show(board) {
  document.title = `hbrt: ${board.board}`;
  at("name").textContent = board.board;
  at("gone").hidden = !board.gone;
  at("gone").textContent = board.gone || "";
  const log = at("log"), follows = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  log.textContent = board.log;
  if (follows) log.scrollTop = log.scrollHeight;
  document.body.dataset.board = board.gone ? "gone" : "running";
  if (board.gone) return;
  at("summary").textContent = `${board.state}; ${board.calls_per_s.toFixed(0)} tasks/s; ${board.running} running, ${board.ready} ready; image ${board.image}`;
  for (const row of board.commands) medians.set(key(row), row.ran_p50_ns);
  showCores(board.cores);
  showTimeline(board.timeline, board.cores);
  for (const [id, shown] of Object.entries(board.tables)) table(id, shown);
  at("memory").textContent = board.memory_text;
  showMap(board.blocks);
  at("findings").replaceChildren(...board.findings.map(found => {
    const line = node("li");
    line.append(node("b", `${found.kind} `), node("span", found.text + (found.count > 1 ? ` (${found.count} times)` : "")));
    return line;
  }));
}

async function askForWaits() {
  const button = at("ask"), place = at("waits");
  button.disabled = true;
  try {
    const found = await (await fetch("waits.json")).json();
    if (found.error) { place.replaceChildren(node("p", found.error)); return; }
    if (!found.chains.length) { place.replaceChildren(node("p", "No tasks are queued or running.")); return; }
    place.replaceChildren(...found.chains.map(chain => {
      const line = node("div", undefined, `chain ${chain.verdict}`);
      line.append(node("div", chain.text, "text"));
      return line;
    }));
  } catch (error) {
    place.replaceChildren(node("p", `hbrt web does not answer: ${error.message}`));
  } finally {
    button.disabled = false;
  }
}

async function look() {
  try {
    show(await (await fetch("board.json")).json());
  } catch (error) {
    at("gone").hidden = false;
    at("gone").textContent = `hbrt web does not answer: ${error.message}`;
    document.body.dataset.board = "unknown";
  }
  setTimeout(look, INTERVAL_MS);
}

at("ask").addEventListener("click", askForWaits);
at("timeline").addEventListener("mousemove", showTip);
at("timeline").addEventListener("wheel", zoom, {passive: false});
at("timeline").addEventListener("mousedown", event => { dragged = event.offsetX; });
at("timeline").addEventListener("mousemove", pan);
at("timeline").addEventListener("keydown", press);
at("timeline").addEventListener("dblclick", () => shown && moveView(0, shown.timeline.seconds));
window.addEventListener("mouseup", () => { dragged = null; });
look();
