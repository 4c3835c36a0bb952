// The script of the page. It paints pictures on a canvas, moves in tables by keys, and tells of new readings. All text
// goes through textContent. The layout of a picture is the server's: this only fills rectangles.
"use strict";

const $ = (id) => document.getElementById(id);
const live = $("live");
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** say has a screen reader say a text. */
function say(text) { live.textContent = text; }

/** decode reads the columns that Picture.WriteWire writes. */
function decode(buffer) {
  const view = new DataView(buffer);
  const size = view.getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  let at = 4 + size;
  const n = head.boxes, m = head.parts;
  const two = (count) => {
    const column = new Uint16Array(buffer.slice(at, at + 2 * count));
    at += 2 * count;
    return column;
  };
  const one = (count) => {
    const column = new Uint8Array(buffer, at, count);
    at += count;
    return column;
  };
  const p = {head, x: two(n), y: two(n), w: two(n), h: two(n), role: one(n), pattern: one(n), level: one(n), edge: one(n), count: two(n)};
  p.share = one(m);
  p.group = two(m);
  p.first = new Uint32Array(n + 1);
  for (let i = 0; i < n; i++) p.first[i + 1] = p.first[i] + p.count[i];
  return p;
}

/** Painter paints a picture on a canvas, magnified and moved. */
class Painter {
  constructor(box) {
    this.box = box;
    this.canvas = document.createElement("canvas");
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    const zoom = document.createElement("div");
    zoom.className = "zoom";
    for (const [text, title, act] of [["+", "Magnify", () => this.magnify(1.5)], ["−", "Reduce", () => this.magnify(1 / 1.5)], ["1:1", "Whole", () => this.whole()]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.tabIndex = -1;
      button.textContent = text;
      button.title = title;
      button.addEventListener("click", act);
      zoom.append(button);
    }
    box.append(this.canvas, zoom, this.tip);
    this.scale = 1;
    this.dx = this.dy = 0;
    this.chosen = "";
    this.frames = [];
    this.listen();
  }

  listen() {
    const c = this.canvas;
    c.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey && this.scale === 1) return; // the page scrolls
      e.preventDefault();
      this.magnify(Math.exp(-e.deltaY / 300), e.offsetX, e.offsetY);
    }, {passive: false});
    c.addEventListener("pointerdown", (e) => { this.drag = {x: e.clientX, y: e.clientY, moved: false}; c.setPointerCapture(e.pointerId); });
    c.addEventListener("pointermove", (e) => {
      if (this.drag) {
        const dx = e.clientX - this.drag.x, dy = e.clientY - this.drag.y;
        if (this.drag.moved || Math.hypot(dx, dy) > 3) {
          this.drag = {x: e.clientX, y: e.clientY, moved: true};
          this.move(dx, dy);
        }
        return;
      }
      this.point(e.offsetX, e.offsetY);
    });
    c.addEventListener("pointerup", (e) => {
      if (this.drag && !this.drag.moved) this.choose(e.offsetX, e.offsetY);
      this.drag = null;
    });
    c.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    new ResizeObserver(() => this.resize()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.colors());
  }

  async load(src) {
    const width = Math.max(280, Math.round(this.box.clientWidth));
    const at = new URL(src, location.href);
    at.searchParams.set("w", width);
    const answer = await fetch(at);
    if (!answer.ok) throw new Error(await answer.text());
    this.picture = decode(await answer.arrayBuffer());
    this.colors();
    this.resize(true);
    performance.mark("painted");
  }

  colors() {
    if (!this.picture) return;
    const style = getComputedStyle(document.documentElement);
    this.fill = this.picture.head.roles.map((r) => style.getPropertyValue("--" + r));
    this.on = this.picture.head.roles.map((r) => style.getPropertyValue("--on-" + r));
    this.font = style.fontFamily;
    this.ask();
  }

  /** resize gives the canvas the size of its box. That clears it: it is painted at once, not in the next frame. */
  resize(fresh = false) {
    if (!this.picture) return;
    const ratio = devicePixelRatio || 1, width = this.box.clientWidth;
    if (!fresh && width === this.width && ratio === this.ratio) return;
    this.width = width;
    this.ratio = ratio;
    this.base = width / this.picture.head.width;
    const height = Math.ceil(this.picture.head.height * this.base);
    this.canvas.style.height = height + "px";
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.paint();
  }

  /** ask paints once in the next frame, however often it is asked. */
  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      const began = performance.now();
      this.paint();
      this.frames.push(performance.now() - began);
      if (this.frames.length > 1000) this.frames.shift();
    });
  }

  magnify(by, x = this.box.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const next = Math.min(40, Math.max(1, this.scale * by));
    by = next / this.scale;
    this.scale = next;
    this.dx = x - (x - this.dx) * by;
    this.dy = y - (y - this.dy) * by;
    this.move(0, 0);
  }

  move(dx, dy) {
    const w = this.box.clientWidth, h = this.canvas.clientHeight;
    this.dx = Math.min(0, Math.max(w - w * this.scale, this.dx + dx));
    this.dy = Math.min(0, Math.max(h - h * this.scale, this.dy + dy));
    this.canvas.style.touchAction = this.scale > 1 ? "none" : "pan-y";
    this.ask();
  }

  whole() { this.scale = 1; this.dx = this.dy = 0; this.move(0, 0); }

  /** paint fills what is in sight, by color. */
  paint() {
    const p = this.picture, g = this.canvas.getContext("2d"), k = this.base * this.scale;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.fillStyle = this.fill[0];
    g.fillRect(0, 0, this.canvas.width, this.canvas.height);
    g.setTransform(k * this.ratio, 0, 0, k * this.ratio, this.dx * this.ratio, this.dy * this.ratio);
    const left = -this.dx / k, top = -this.dy / k, right = left + this.box.clientWidth / k, bottom = top + this.canvas.clientHeight / k;
    const seen = [], byRole = new Map();
    for (let i = 0; i < p.head.boxes; i++) {
      if (p.x[i] + p.w[i] < left || p.x[i] > right || p.y[i] + p.h[i] < top || p.y[i] > bottom) continue;
      seen.push(i);
    }
    const add = (role, x, y, w, h) => {
      let list = byRole.get(role);
      if (!list) byRole.set(role, list = []);
      list.push(x, y, w, h);
    };
    const flush = () => {
      for (const [role, list] of byRole) {
        g.fillStyle = this.fill[role];
        for (let j = 0; j < list.length; j += 4) g.fillRect(list[j], list[j + 1], list[j + 2], list[j + 3]);
      }
      byRole.clear();
    };
    const empty = p.head.roles.indexOf("empty");
    for (const i of seen) {
      const h = p.level[i] ? Math.max(1, Math.floor((p.h[i] * p.level[i] + 127) / 255)) : 0;
      if (p.level[i] < 255) add(empty, p.x[i], p.y[i], p.w[i], p.h[i] - h);
      if (h) add(p.role[i], p.x[i], p.y[i] + p.h[i] - h, p.w[i], h);
    }
    flush();
    for (const i of seen) {
      if (p.w[i] * k >= 24 && p.count[i]) this.parts(i, add, empty, k);
    }
    flush();
    for (const i of seen) {
      if (p.pattern[i] && p.level[i]) this.hatch(g, i, k);
      if (p.edge[i]) this.outline(g, i, this.fill[p.edge[i] - 1], 2 / this.scale);
      if (this.chosen && p.head.rows[i] === this.chosen) this.outline(g, i, this.fill[p.head.roles.indexOf("ink")], 3 / k);
    }
    for (const l of p.head.labels) {
      g.font = (l.bold ? "600 " : "") + l.size + "px " + this.font;
      g.textAlign = ["left", "center", "right"][l.anchor];
      g.fillStyle = (l.on ? this.on : this.fill)[l.role];
      g.fillText(l.text, l.x, l.y);
    }
  }

  /** parts paints the pods of a box: by workload, or as gaps between them. */
  parts(i, add, empty, k) {
    const p = this.picture;
    let sum = 0;
    for (let j = p.first[i]; j < p.first[i + 1]; j++) {
      const from = p.y[i] + p.h[i] - sum * p.h[i] / 255;
      sum += p.share[j];
      const to = Math.max(p.y[i], p.y[i] + p.h[i] - sum * p.h[i] / 255), h = from - to;
      if (h * k < 1) continue;
      if (p.head.byGroup) add(p.head.groups[p.group[j]].role, p.x[i], to, p.w[i], h - 0.6 / k);
      else if (h * k > 3) add(empty, p.x[i], to, p.w[i], 0.8 / k);
    }
  }

  hatch(g, i, k) {
    const p = this.picture, h = Math.floor((p.h[i] * p.level[i] + 127) / 255), y = p.y[i] + p.h[i] - h;
    g.save();
    g.beginPath();
    g.rect(p.x[i], y, p.w[i], h);
    g.clip();
    g.strokeStyle = "rgba(255,255,255,.55)";
    g.lineWidth = 1 / k;
    g.beginPath();
    for (let d = -h; d < p.w[i]; d += 5 / Math.max(1, k)) { g.moveTo(p.x[i] + d, y + h); g.lineTo(p.x[i] + d + h, y); }
    g.stroke();
    g.restore();
  }

  outline(g, i, color, width) {
    const p = this.picture;
    g.strokeStyle = color;
    g.lineWidth = width;
    g.strokeRect(p.x[i] + width / 2, p.y[i] + width / 2, p.w[i] - width, p.h[i] - width);
  }

  /** at returns the box at a point of the canvas, -1 for none. */
  at(x, y) {
    const p = this.picture, k = this.base * this.scale;
    x = (x - this.dx) / k;
    y = (y - this.dy) / k;
    for (let i = p.head.boxes - 1; i >= 0; i--) {
      if (x >= p.x[i] && x < p.x[i] + p.w[i] && y >= p.y[i] && y < p.y[i] + p.h[i]) return i;
    }
    return -1;
  }

  point(x, y) {
    const i = this.picture ? this.at(x, y) : -1;
    this.tip.hidden = i < 0 || !this.picture.head.titles[i];
    if (this.tip.hidden) return;
    this.tip.textContent = this.picture.head.titles[i] + this.partAt(i, y);
    const left = Math.min(x + 14, Math.max(0, this.box.clientWidth - this.tip.offsetWidth - 4));
    this.tip.style.setProperty("left", left + "px");
    this.tip.style.setProperty("top", Math.min(y + 14, Math.max(0, this.canvas.clientHeight - this.tip.offsetHeight - 4)) + "px");
  }

  /** partAt returns the workload of the pod at a height. */
  partAt(i, y) {
    const p = this.picture, at = (p.y[i] + p.h[i] - (y - this.dy) / (this.base * this.scale)) / p.h[i] * 255;
    if (p.w[i] * this.base * this.scale < 24) return "";
    let sum = 0;
    for (let j = p.first[i]; j < p.first[i + 1]; j++) {
      sum += p.share[j];
      if (at < sum) return " · " + p.head.groups[p.group[j]].name;
    }
    return "";
  }

  choose(x, y) {
    const i = this.at(x, y);
    if (i < 0 || !this.picture.head.rows[i]) return;
    const row = this.picture.head.rows[i];
    this.highlight(row);
    const line = rows().find((r) => r.dataset.row === row);
    if (line) { focusRow(line); return; }
    const here = new URL(location.href);
    if (here.pathname !== "/fleet") return;
    here.searchParams.set("node", row);
    here.searchParams.delete("pod");
    location.assign(here);
  }

  highlight(row) {
    this.chosen = row;
    if (this.picture) this.ask();
  }
}

// The picture.
let painter = null;
function paint() {
  const box = $("canvas"), inline = $("inline");
  if (!box) { painter = null; return; }
  box.hidden = false;
  if (inline) inline.hidden = true;
  if (painter?.box !== box) {
    painter = new Painter(box);
    window.karpenterPainter = painter; // for the browser tests: frame times, and the boxes
    painter.highlight(box.dataset.chosen);
  }
  performance.clearMarks("painted");
  painter.load(box.dataset.src).catch((error) => {
    box.hidden = true;
    if (inline) inline.hidden = false;
    notice("The picture cannot be loaded: " + error.message, "");
  });
}

// The table: arrow keys move, Enter follows the link of the row.
const main = $("main");
const rows = () => [...$("grid")?.tBodies[0].rows ?? []];
function focusRow(row, options) {
  for (const other of rows()) other.tabIndex = -1;
  row.tabIndex = 0;
  row.focus(options);
}
main.addEventListener("focusin", (e) => {
  const row = e.target.closest("#grid tbody tr");
  if (!row) return;
  painter?.highlight(row.dataset.row);
  say([...row.cells].slice(0, 4).map((c) => c.textContent).join(", "));
});
main.addEventListener("keydown", (e) => {
  const row = e.target.closest("#grid tbody tr");
  if (!row || e.altKey || e.ctrlKey || e.metaKey) return;
  const list = rows(), i = list.indexOf(row);
  const to = {ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: list.length - 1, PageDown: i + 10, PageUp: i - 10}[e.key];
  if (e.key === "Enter") {
    row.querySelector("a")?.click();
  } else if (to === undefined) {
    return;
  } else if (to >= list.length && i === list.length - 1 && $("next")) {
    $("next").click();
  } else if (to < 0 && i === 0 && $("previous")) {
    $("previous").click();
  } else {
    focusRow(list[Math.min(list.length - 1, Math.max(0, to))]);
  }
  e.preventDefault();
});

// A slash goes to the filter.
document.addEventListener("keydown", (e) => {
  if (e.key !== "/" || !$("filter") || e.altKey || e.ctrlKey || e.metaKey || e.target.matches("input,textarea,select")) return;
  e.preventDefault();
  $("filter").focus();
});

// Choices apply at once; the button is for readers without the script. The manifest of a what-if follows the choice of the
// pool.
main.addEventListener("change", (e) => {
  if (e.target.closest("#controls")) $("controls").requestSubmit();
  if (e.target.id !== "pool") return;
  const manifest = [...document.querySelectorAll("template[data-pool]")].find((t) => t.dataset.pool === e.target.value);
  if (manifest) $("yaml").value = manifest.content.textContent;
});

// The steps of a plan.
let pending = null, timer = 0;
async function showStep() {
  const range = $("scrubber").elements.step, here = new URL(location.href), src = new URL($("canvas").dataset.src, location.href);
  here.searchParams.set("step", range.value);
  history.replaceState(null, "", here);
  src.searchParams.set("step", range.value);
  $("canvas").dataset.src = src;
  if (pending) { pending.again = true; return; }
  pending = {again: false};
  try {
    await painter.load(src);
    const row = rows().find((r) => r.dataset.row === String(Number(range.value)));
    $("said").textContent = row ? "Step " + [...row.cells].map((c) => c.textContent).slice(0, 5).join(" · ") + " pods moved · saves " + row.cells[5].textContent + " USD an hour" :
      Number(range.value) === 0 ? "Today" : "Step " + range.value;
  } finally {
    const again = pending.again;
    pending = null;
    if (again) showStep();
  }
}
function stop() { clearInterval(timer); timer = 0; if ($("play")) $("play").textContent = "Play"; }
main.addEventListener("input", (e) => { if (e.target.closest("#scrubber")) showStep(); });
main.addEventListener("click", (e) => {
  if (e.target.id !== "play") return;
  if (timer) { stop(); return; }
  const range = $("scrubber").elements.step;
  if (range.value === range.max) range.value = 0;
  e.target.textContent = "Pause";
  timer = setInterval(() => {
    if (range.value === range.max) { stop(); return; }
    range.value = Number(range.value) + 1;
    showStep();
  }, 900);
});

// The cost is filled in when it is computed.
const cost = $("cost");
async function fillCost(tries) {
  const answer = await fetch("/cost");
  if (!answer.ok) {
    if (tries > 0) setTimeout(() => fillCost(tries - 1), 1000);
    return;
  }
  const {facts} = await answer.json();
  cost.replaceChildren(...facts.map((f) => {
    const div = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
    const b = document.createElement("b"), small = document.createElement("small");
    dt.textContent = f.Name;
    b.textContent = f.Value;
    small.textContent = f.Note;
    dd.append(b, " ", small);
    div.append(dt, dd);
    return div;
  }));
  cost.dataset.ready = "true";
}
if (cost.dataset.ready === "false") fillCost(60);

/** notice shows a line with a link that reloads. */
function notice(text, action) {
  const at = $("notice");
  at.replaceChildren(text + " ");
  if (action) {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = action;
    at.append(link);
  }
  at.hidden = false;
}

/** busy says that the reader is doing something that a new page would interrupt. */
function busy() {
  return timer > 0 || !getSelection().isCollapsed || painter?.drag || document.activeElement.matches("main :is(input:not([type=range]),select,textarea)");
}

/** update puts a newer page of this address in the place of this one. What is focused, chosen, opened and in sight stays. */
function update() {
  clearTimeout(due);
  if (document.hidden) return;
  if (busy()) { due = setTimeout(update, 1000); return; }
  const here = location.href, r = new XMLHttpRequest();
  r.open("GET", here);
  r.responseType = "document"; // the browser parses it, and runs nothing of it
  r.addEventListener("load", () => {
    if (r.status === 401) location.reload();
    else if (r.response && here === location.href && !busy()) replace(r.response);
    else due = setTimeout(update, 1000);
  });
  r.addEventListener("error", () => notice("The program that serves this page has ended.", "Try again"));
  r.send();
}

let due = 0, asked = 0, took = 0; // asked is when the reading was first asked for, in milliseconds of the page
function replace(next) {
  const newer = next.body.dataset.number !== document.body.dataset.number;
  if (newer) asked = performance.now();
  const at = document.activeElement, row = at.closest?.("#grid tbody tr")?.dataset.row, id = at.id, scroll = scrollY, box = $("canvas");
  const open = [...document.querySelectorAll("details[open][id]")].map((d) => d.id), across = document.querySelector(".sheet")?.scrollLeft;
  const place = next.getElementById("canvas");
  if (box && place) {
    box.dataset.src = place.dataset.src;
    place.replaceWith(box);
  }
  main.replaceChildren(...next.getElementById("main").childNodes);
  main.dataset.waiting = next.getElementById("main").dataset.waiting;
  $("at").replaceChildren(...next.getElementById("at").childNodes);
  if (newer) $("stale").textContent = next.getElementById("stale").textContent; // else the stream knows better
  if (next.getElementById("cost").dataset.ready === "true") $("cost").replaceChildren(...next.getElementById("cost").childNodes);
  else fillCost(60);
  document.body.dataset.number = next.body.dataset.number;
  for (const name of open) $(name)?.setAttribute("open", "");
  const line = row && rows().find((r) => r.dataset.row === row);
  if (line) focusRow(line, {preventScroll: true});
  else if (id) $(id)?.focus({preventScroll: true});
  if (across) document.querySelector(".sheet").scrollLeft = across;
  begin(); // which hides what the script replaces: the height is known then
  scrollTo(0, scroll);
}

/** begin has the parts of a page work that has come. A page that is not complete is asked for again. */
function begin() {
  paint();
  if ($("controls")) $("controls").querySelector("button").hidden = true;
  if ($("play")) $("play").hidden = calm.matches;
  if (main.dataset.waiting === "true") due = setTimeout(update, 1000);
  else took = performance.now() - asked; // how long the view took, in milliseconds
}
begin();

// A stream tells of new readings while the page is in sight; without one nothing is read.
let stream = null;
function follow() {
  if (document.hidden) {
    stream?.close();
    stream = null;
    return;
  }
  if (main.dataset.waiting === "true") update();
  if (stream || document.body.dataset.live !== "true") return;
  stream = new EventSource("/events");
  stream.addEventListener("reading", (e) => {
    $("stale").textContent = "";
    if (Number(e.data) <= Number(document.body.dataset.number)) return;
    if (document.body.dataset.follow === "true" && took < 10000) update();
    else notice(took < 10000 ? "There is a newer reading of the cluster." : "There is a newer reading. This view took " + Math.round(took / 1000) + " s, so it is not computed again by itself.", "Show it");
  });
  stream.addEventListener("trouble", (e) => { $("stale").textContent = e.data; });
}
document.addEventListener("visibilitychange", follow);
follow();
