// A trace in Chrome's JSON format: threads and cores as tracks, nested slices, counters, and the flow of a selected task.
"use strict";
const at = id => document.getElementById(id);
const LEFT = innerWidth < 600 ? 96 : 190, ROW = 18, HEAD = 22, RULER = 20, COUNTER = 26;
const isDark = matchMedia("(prefers-color-scheme: dark)");
let tracks = [], flows = new Map(), first = 0, last = 1, view = {from: 0, to: 1}, drawn = [], selected = null, dragged = null;

function time(us) {
  const size = Math.abs(us);
  if (size >= 1e6) return `${(us / 1e6).toFixed(3)} s`;
  if (size >= 1e3) return `${(us / 1e3).toFixed(3)} ms`;
  return size ? `${us.toFixed(size < 10 ? 2 : 1)} µs` : "0";
}

const color = name => `hsl(${[...name].reduce((sum, sign) => (sum * 31 + sign.charCodeAt(0)) % 360, 7)} 50% ${isDark.matches ? 38 : 72}%)`;

// Tracks in the order of their processes and threads, each slice with its depth.
function arrange(events) {
  const processes = new Map(), threads = new Map(), counters = new Map();
  const process = pid => processes.get(pid) || processes.set(pid, {name: `process ${pid}`, order: 0}).get(pid);
  const thread = (pid, tid) => {
    const key = `${pid}/${tid}`;
    if (!threads.has(key)) threads.set(key, {pid, tid, name: `thread ${tid}`, order: 0, slices: [], marks: [], depth: 1});
    return threads.get(key);
  };
  for (const one of events) {
    if (one.ph === "M") {
      const place = one.name.startsWith("process") ? process(one.pid) : thread(one.pid, one.tid);
      if (one.name.endsWith("_name")) place.name = one.args.name; else place.order = one.args.sort_index;
    } else if (one.ph === "X") thread(one.pid, one.tid).slices.push({name: one.name, from: one.ts, to: one.ts + one.dur, args: one.args});
    else if (one.ph === "i") thread(one.pid, one.tid).marks.push({name: one.name, from: one.ts, to: one.ts, args: one.args});
    else if (one.ph === "C") {
      if (!counters.has(one.name)) counters.set(one.name, {pid: one.pid, name: one.name, order: 1e6, points: []});
      counters.get(one.name).points.push([one.ts, one.args.value]);
    } else if ("stf".includes(one.ph)) {
      if (!flows.has(one.id)) flows.set(one.id, []);
      flows.get(one.id).push({pid: one.pid, tid: one.tid, ts: one.ts});
    }
  }
  for (const track of threads.values()) {
    track.slices.sort((one, other) => one.from - other.from || other.to - one.to);
    const open = [];
    for (const slice of track.slices) {
      while (open.length && open[open.length - 1].to <= slice.from) open.pop();
      slice.depth = open.length;
      track.depth = Math.max(track.depth, open.push(slice));
    }
  }
  for (const counter of counters.values()) {
    counter.points.sort((one, other) => one[0] - other[0]);
    counter.most = Math.max(1, ...counter.points.map(point => point[1]));
  }
  for (const path of flows.values()) path.sort((one, other) => one.ts - other.ts);
  const used = [...threads.values()].filter(track => track.slices.length || track.marks.length);
  const order = track => process(track.pid).order;
  tracks = [...used, ...counters.values()].sort((one, other) => order(one) - order(other) || one.pid - other.pid || one.order - other.order);
  let pid = null, top = RULER;
  for (const track of tracks) {
    track.heading = track.pid === pid ? "" : process(pid = track.pid).name;
    top += track.heading ? HEAD : 0;
    track.top = top;
    top += track.points ? COUNTER : track.depth * ROW + 6;
  }
  return top;
}

function draw() {
  const canvas = at("tracks"), scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d"), text = getComputedStyle(document.body).color, sought = at("find").value.toLowerCase();
  pen.scale(scale, scale);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const x = ts => LEFT + (ts - view.from) / (view.to - view.from) * (width - LEFT), span = view.to - view.from;
  const parts = Math.max(1, Math.floor((width - LEFT) / 130));
  pen.fillStyle = text;
  for (let part = 0; part < parts; part++) {
    const ts = view.from + part * span / parts;
    pen.fillText(time(ts - first), x(ts), RULER / 2);
    pen.globalAlpha = 0.12; pen.fillRect(x(ts), RULER, 1, height); pen.globalAlpha = 1;
  }
  drawn = [];
  for (const track of tracks) {
    pen.fillStyle = text;
    if (track.heading) { pen.font = "bold 12px system-ui, sans-serif"; pen.fillText(track.heading, 2, track.top - HEAD / 2); pen.font = "12px system-ui, sans-serif"; }
    pen.save();
    pen.beginPath(); pen.rect(0, track.top, LEFT - 8, 200); pen.clip();
    pen.fillText(track.name, 10, track.top + ROW / 2);
    pen.restore();
    pen.save();
    pen.beginPath(); pen.rect(LEFT, track.top, width - LEFT, track.points ? COUNTER : track.depth * ROW + 4); pen.clip();
    if (track.points) drawCounter(pen, track, x, width);
    else {
      let end = -1;
      for (const slice of track.slices) {
        const left = Math.max(LEFT, x(slice.from)), right = Math.min(width, x(slice.to));
        if (right < LEFT || left > width || (slice.depth === 0 && right < end + 0.3)) continue;  // already covered
        if (slice.depth === 0) end = right;
        box(pen, slice, left, track.top + slice.depth * ROW, Math.max(1, right - left), text, sought);
      }
      for (const mark of track.marks) {
        const place = x(mark.from);
        if (place < LEFT || place > width) continue;
        pen.fillStyle = "#d33";
        pen.fillRect(place - 1, track.top, 3, ROW - 2);
        drawn.push([[place - 3, track.top, 7, ROW], mark, track]);
      }
    }
    pen.restore();
  }
  if (selected) drawFlow(pen, x);
}

function box(pen, slice, left, top, width, text, sought) {
  const isSought = sought && slice.name.toLowerCase().includes(sought);
  pen.globalAlpha = sought && !isSought ? 0.25 : 1;
  pen.fillStyle = color(slice.name);
  pen.fillRect(left, top, width, ROW - 2);
  if (slice === (selected && selected.slice) || (isSought && width > 3)) { pen.strokeStyle = text; pen.strokeRect(left + 0.5, top + 0.5, width - 1, ROW - 3); }
  if (width > 24) {
    pen.save();
    pen.beginPath(); pen.rect(left, top, width - 2, ROW); pen.clip();
    pen.fillStyle = text;
    pen.fillText(slice.name, left + 3, top + ROW / 2);
    pen.restore();
  }
  pen.globalAlpha = 1;
  drawn.push([[left - 1, top, width + 2, ROW], slice, null]);
}

function drawCounter(pen, track, x, width) {
  pen.fillStyle = isDark.matches ? "#6cb0ff88" : "#2670c488";
  track.points.forEach(([ts, value], index) => {
    const left = Math.max(LEFT, x(ts)), next = track.points[index + 1], right = Math.min(width, next ? x(next[0]) : width);
    const height = value / track.most * (COUNTER - 4);
    if (right > left && height) pen.fillRect(left, track.top + COUNTER - 2 - height, Math.max(0.5, right - left), height);
  });
}

// The path of the task whose flow begins or ends in the selected slice.
function drawFlow(pen, x) {
  const {slice, track} = selected;
  for (const path of flows.values()) {
    if (!path.some(step => step.pid === track.pid && step.tid === track.tid && step.ts >= slice.from && step.ts <= slice.to)) continue;
    const points = path.map(step => [x(step.ts), tracks.find(one => one.pid === step.pid && one.tid === step.tid)]).filter(point => point[1]);
    pen.strokeStyle = "#d80";
    pen.lineWidth = 1.5;
    pen.beginPath();
    points.forEach(([place, on], index) => (index ? pen.lineTo(place, on.top + ROW / 2) : pen.moveTo(place, on.top + ROW / 2)));
    pen.stroke();
  }
}

function moveView(from, to) {
  const span = Math.min(last - first, Math.max(0.1, to - from));
  from = Math.min(Math.max(first, from), last - span);
  view = {from, to: from + span};
  draw();
}

function zoom(place, factor) {
  const span = view.to - view.from, center = view.from + Math.max(0, place - LEFT) / (at("tracks").clientWidth - LEFT) * span;
  moveView(center - (center - view.from) * factor, center + (view.to - center) * factor);
}

function hit(event) {
  return drawn.findLast(([[left, top, width, height]]) => event.offsetX >= left && event.offsetX <= left + width && event.offsetY >= top && event.offsetY < top + height);
}

function select(event) {
  const found = hit(event);
  if (!found) return;
  const slice = found[1], track = tracks.find(one => one.slices && (one.slices.includes(slice) || one.marks.includes(slice)));
  selected = {slice, track};
  const rows = {name: slice.name, track: track.name, start: time(slice.from - first), duration: time(slice.to - slice.from), ...slice.args};
  at("selected").replaceChildren(...Object.entries(rows).flatMap(([key, value]) => {
    const term = document.createElement("dt"), meaning = document.createElement("dd");
    term.textContent = key;
    meaning.textContent = value;
    return [term, meaning];
  }));
  draw();
}

async function load() {
  const answer = await fetch("trace.json"), found = await answer.json();
  if (found.error) throw new Error(found.error);
  const timed = found.traceEvents.filter(one => one.ts !== undefined);
  at("tracks").style.height = `${arrange(found.traceEvents)}px`;
  first = timed.reduce((least, one) => Math.min(least, one.ts), Infinity);
  last = timed.reduce((most, one) => Math.max(most, one.ts + (one.dur || 0)), first + 1);
  if (!timed.length) first = 0, last = 1;
  const slices = tracks.reduce((sum, track) => sum + (track.slices ? track.slices.length : 0), 0);
  at("summary").textContent = `${slices} slices on ${tracks.length} tracks, ${time(last - first)}`;
  moveView(first, last);
}

const canvas = at("tracks");
canvas.addEventListener("wheel", event => { event.preventDefault(); zoom(event.offsetX, event.deltaY < 0 ? 0.8 : 1.25); }, {passive: false});
canvas.addEventListener("mousedown", event => { dragged = event.offsetX; });
canvas.addEventListener("mousemove", event => {
  if (dragged !== null) {
    const moved = (dragged - event.offsetX) / (canvas.clientWidth - LEFT) * (view.to - view.from);
    dragged = event.offsetX;
    moveView(view.from + moved, view.to + moved);
  }
  const found = hit(event);
  if (found) at("tip").textContent = `${found[1].name}: ${time(found[1].to - found[1].from)}, from ${time(found[1].from - first)}`;
});
canvas.addEventListener("click", select);
canvas.addEventListener("dblclick", () => moveView(first, last));
window.addEventListener("mouseup", () => { dragged = null; });
window.addEventListener("resize", draw);
window.addEventListener("keydown", event => {
  const [move, factor] = {a: [-0.2, 1], d: [0.2, 1], w: [0, 0.8], s: [0, 1.25], ArrowLeft: [-0.2, 1], ArrowRight: [0.2, 1]}[event.key] || [];
  if (factor === undefined || event.target === at("find")) return;
  const span = view.to - view.from, center = (view.from + view.to) / 2;
  moveView(center + move * span - factor * span / 2, center + move * span + factor * span / 2);
});
at("find").addEventListener("input", draw);
load().catch(error => { at("gone").hidden = false; at("gone").textContent = error.message; at("summary").textContent = ""; });
