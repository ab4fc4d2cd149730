// The live page: polls /v1/lanes and draws each turn as a lane; a turn's timeline is read from its
// events. Whatever comes from outside gets into the page as textContent alone, never as markup.

const POLL_MS = 500;
const LANES_MAX = 200;
const LINGER_S = 4; // an ended turn stays where it ran for so long
const ARMED_MS = 4000;
const STEPS = [5, 10, 20, 30, 60, 120, 300]; // seconds between two lines of the axis
const ROW_PX = 24;
const KEPT_EVERY = 512; // events between two states of the answer that are kept for scrubbing
const KEY = "tidegate key";

const $ = (id) => document.getElementById(id);
const now = () => performance.now() / 1000 + clock.skew;
const clock = { skew: Date.now() / 1000 - performance.now() / 1000, drawn: 0, known: false };
const view = { span: 120, width: 0, lanes: new Map(), body: null, sheets: [] };

function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// How things are said

function seconds(s) {
  if (s < 0.95) return `${Math.max(0, s).toFixed(1)} s`;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min ${String(Math.floor(s % 60)).padStart(2, "0")} s`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(s / 86400)} days`;
}

const count = (n) => n.toLocaleString("en");
const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;
const words = (kind) => kind.replaceAll("_", " ");
const short = (id) => id.replace(/^turn_/, "").slice(0, 8);
const time = (s, digits = 0) => {
  const date = new Date(s * 1000);
  const two = (n) => String(n).padStart(2, "0");
  const base = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return digits ? `${base}.${String(date.getMilliseconds()).padStart(3, "0")}` : base;
};

// The daemon

function headers(more = {}) {
  const key = sessionStorage.getItem(KEY);
  return key ? { ...more, authorization: `Bearer ${key}` } : more;
}

async function ask(path, options = {}) {
  // In full, for an address with a user and a key in it makes relative ones impossible.
  const response = await fetch(location.origin + path, { cache: "no-store", ...options, headers: headers(options.headers) });
  if (response.status === 401) {
    const had = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
    showDoor(had ? "This key is not one of the daemon's." : "");
    throw new Locked();
  }
  return response;
}

class Locked extends Error {}

async function problem(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `HTTP ${response.status}`;
  }
}

function showDoor(why) {
  $("house").hidden = true;
  $("door").hidden = false;
  set($("door-why"), why);
  link("wait", "locked");
  $("key").focus();
}

$("door").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("key").value.trim());
  $("key").value = "";
  $("door").hidden = true;
  $("house").hidden = false;
  poll();
});

function link(how, text) {
  $("link").dataset.how = how;
  set($("link"), text);
}

function trouble(text) {
  set($("trouble"), text);
  $("trouble").hidden = !text;
}

let polling = 0;

async function poll() {
  clearTimeout(polling);
  if (document.hidden || !$("door").hidden) return;
  const began = performance.now();
  try {
    const response = await ask(`/v1/lanes?limit=${LANES_MAX}`);
    if (!response.ok) throw new Error(await problem(response));
    const body = await response.json();
    const skew = body.now_s - (began + performance.now()) / 2000;
    // The way there and back takes now longer, now shorter; the axis must not jerk for it.
    clock.skew = clock.known && Math.abs(skew - clock.skew) < 1 ? clock.skew + (skew - clock.skew) * 0.1 : skew;
    clock.known = true;
    view.body = body;
    const daemon = body.daemon;
    link(daemon.draining ? "drain" : "live", daemon.draining ? "draining" : "live");
    trouble(daemon.journal_well ? "" : "The journal cannot be written: no turn is taken on until it can.");
    draw();
  } catch (error) {
    if (error instanceof Locked) return;
    link("gone", "no answer");
    trouble(error instanceof TypeError ? "The daemon does not answer; this page goes on asking." : error.message);
  }
  clearTimeout(polling);
  polling = setTimeout(poll, POLL_MS);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(polling);
  else poll();
});

// What a lane is made of: pieces [class, from, to or null for open, label, title] and marks

function pieces(lane) {
  const found = [];
  let last = lane.created_at;
  for (const [index, attempt] of lane.attempts.entries()) {
    const open = attempt.ended_at_s === null;
    const void_ = attempt.void || attempt.outcome === "superseded";
    const tone = void_ ? "void" : attempt.outcome;
    const title = `attempt ${attempt.number}: ${attempt.failure ? words(attempt.failure) : attempt.outcome}${void_ ? ", superseded" : ""}`;
    const label = lane.attempts.length > 1 || attempt.number > 1 ? String(attempt.number) : "";
    if (attempt.started_at_s > last) found.push([index ? "gap" : "queued", last, attempt.started_at_s, "", index ? "until the retry" : "in the queue"]);
    const first = attempt.first_progress_at_s ?? attempt.ended_at_s;
    const waited = lane.ended_at !== null || first === null || first - attempt.started_at_s > 0.05;
    const silence = open && lane.quiet_since_s !== null ? quiet(lane).part : 0;
    if (waited) found.push(["wait", attempt.started_at_s, first, first === null ? label : "", `${title}; no word yet`, first === null ? silence : 0]);
    if (attempt.first_progress_at_s !== null) found.push([tone, attempt.first_progress_at_s, attempt.ended_at_s, label, title]);
    last = attempt.ended_at_s ?? Infinity;
    if (attempt.last_progress_at_s !== null && silence > 0.04) found.push(["quiet", lane.quiet_since_s, null, "", "silent", silence]);
  }
  const waits = lane.attempts.length > 0 && last !== Infinity && lane.ended_at === null;
  if (waits) found.push(["gap", last, null, "", "until the retry"]);
  if (!lane.attempts.length && lane.ended_at !== null) found.push(["queued", lane.created_at, lane.ended_at, "", "in the queue"]);
  return found;
}

function marks(lane) {
  const found = lane.attempts.filter((each) => each.outcome === "failed" && each.ended_at_s !== null).map((each) => [
    "fence", each.ended_at_s, `attempt ${each.number} fenced: ${words(each.failure ?? "failed")}`,
  ]);
  for (const mark of lane.marks) {
    if (mark.kind === "notice") found.push(["notice", mark.at_s, `notice: ${words(mark.about)}`]);
    if (mark.kind === "superseded") found.push(["took-back", mark.at_s, `attempt ${mark.attempt} superseded`]);
  }
  return found;
}

function quiet(lane) {
  if (lane.quiet_since_s === null) return { s: 0, part: 0 };
  const s = Math.max(0, now() - lane.quiet_since_s);
  return { s, part: lane.quiet_limit_s ? Math.min(1, s / lane.quiet_limit_s) : 0 };
}

function sums(lane) {
  const current = lane.attempts.at(-1);
  const parts = [];
  if (current && current.text_chars) parts.push(many(current.text_chars, "char"));
  else if (current && current.reasoning_chars) parts.push(`${many(current.reasoning_chars, "char")} of reasoning`);
  if (current && current.tools) parts.push(many(current.tools, "tool"));
  // The figures of a turn that did not complete are no sums.
  if (lane.state === "completed" && lane.output_tokens) parts.push(many(lane.output_tokens, "token"));
  return parts.join(" · ");
}

// Drawing: elements are kept by the turn's id and changed in place

class Row {
  constructor(lane) {
    this.id = lane.id;
    this.element = make("li", "lane");
    this.element.dataset.turn = lane.id;
    this.who = make("button", "who");
    this.who.type = "button";
    this.model = make("strong");
    this.where = make("span");
    this.who.append(this.model, this.where);
    this.track = make("div", "track");
    this.track.setAttribute("aria-hidden", "true");
    this.sheet = make("div", "sheet");
    this.track.append(this.sheet);
    this.facts = make("div", "facts");
    this.ring = make("span", "ring");
    this.lines = make("div");
    this.first = make("em");
    this.second = make("span");
    this.lines.append(this.first, this.second);
    this.facts.append(this.ring, this.lines);
    this.stop = stopButton(lane.id);
    this.ago = make("span", "ago");
    this.element.append(this.who, this.track, this.facts, this.stop, this.ago);
    const open = () => openTurn(this.id, this.who);
    this.who.addEventListener("click", open);
    this.track.addEventListener("click", open);
  }

  update(lane, place) {
    const over = place === "ended";
    const state = lane.state;
    this.element.dataset.state = state;
    set(this.model, lane.model || "no model");
    set(this.where, `${lane.endpoint} · ${short(lane.id)}`);
    this.who.title = `${lane.id}, asked by ${lane.api}, wire ${lane.wire}`;
    this.stop.hidden = lane.ended_at !== null;
    this.ago.hidden = !this.stop.hidden;
    this.ring.className = place === "live" && state === "running" ? "ring" : `dot ${state}`;
    const silence = quiet(lane);
    const [first, second] = this.said(lane, silence);
    set(this.first, first);
    set(this.second, second);
    this.second.className = silence.part > 0.75 ? "very-late" : silence.part > 0.4 ? "late" : "";
    this.first.className = "";
    this.ring.style.setProperty("--part", silence.part.toFixed(3));
    this.ring.style.setProperty("--ring", silence.part > 0.75 ? "var(--late)" : silence.part > 0.4 ? "var(--quiet)" : "var(--running)");
    this.who.setAttribute("aria-label", `${lane.model}, ${state}, ${first}, ${second}. Open its timeline`);
    this.element.setAttribute("aria-current", String(timeline?.id === lane.id));
    if (over) {
      const age = now() - lane.ended_at;
      set(this.ago, `${seconds(age)} ago`);
      this.element.style.setProperty("--age", Math.max(0.55, 1 - age / 600).toFixed(2));
    }
    if (place !== "waiting") this.paint(lane, over);
    this.track.hidden = place === "waiting";
  }

  said(lane, silence) {
    if (lane.state === "queued") return [lane.queue_place ? `place ${lane.queue_place}` : "waits for a place", `for ${seconds(now() - lane.created_at)}`];
    if (lane.ended_at !== null) {
      const by = lane.state === "failed" && lane.ended_by ? `failed: ${words(lane.ended_by)}` : lane.state === "interrupted" && lane.ended_by ? `interrupted: ${lane.ended_by}` : lane.state;
      const attempts = lane.attempts.at(-1)?.number > 1 ? many(lane.attempts.at(-1).number, "attempt") : "";
      return [`${by} · ${seconds(lane.ended_at - lane.created_at)}`, [attempts, sums(lane)].filter(Boolean).join(" · ") || "no word"];
    }
    const first = [seconds(now() - lane.created_at), sums(lane)].filter(Boolean).join(" · ");
    const retry = lane.marks.filter((mark) => mark.kind === "retry").at(-1);
    const current = lane.attempts.at(-1);
    if (!current) return [first, "starts"];
    if (current.ended_at_s !== null) {
      const left = retry ? retry.at_s + retry.delay_s - now() : 0;
      return [first, `${words(current.failure ?? "failed")} · retry in ${seconds(Math.max(0, left))}`];
    }
    const which = current.number > 1 ? `attempt ${current.number} · ` : "";
    const limit = `${seconds(silence.s)}${lane.quiet_limit_s ? ` of ${seconds(lane.quiet_limit_s)}` : ""}`;
    if (current.first_progress_at_s === null) return [first, `${which}no word ${limit}`];
    return [first, which + (silence.part > 0.04 ? `silent ${limit}` : "makes progress")];
  }

  paint(lane, over) {
    const width = view.width;
    const from = over ? lane.created_at : clock.drawn - view.span;
    const span = over ? Math.max(0.001, lane.ended_at - lane.created_at) : view.span;
    const x = (t) => ((t - from) / span) * width;
    const beyond = over ? width : width + (width / view.span) * 5;
    const drawn = [];
    if (!over) for (const tick of ticks()) drawn.push(["grid", x(tick), null, "", ""]);
    for (const [name, start, end, label, title, part] of pieces(lane)) {
      const left = x(start);
      const right = end === null ? beyond : x(end);
      if (right > -40) drawn.push([`piece ${name}`, left, Math.max(2, right - left), label, title, part]);
    }
    for (const [name, at, title] of marks(lane)) if (x(at) > -40) drawn.push([`mark ${name}`, x(at), null, "", title]);
    while (this.sheet.children.length > drawn.length) this.sheet.lastChild.remove();
    drawn.forEach(([name, left, wide, label, title, part], index) => {
      let element = this.sheet.children[index];
      if (!element) this.sheet.append((element = make("div")));
      if (element.className !== name) element.className = name;
      const shown = wide === null ? left : Math.max(left, -60);
      element.style.left = `${shown.toFixed(1)}px`;
      element.style.width = wide === null ? "" : `${(wide - (shown - left)).toFixed(1)}px`;
      element.title = title;
      if (part !== undefined) element.style.setProperty("--part", part.toFixed(2));
      const roomy = !over && wide !== null && wide > 14 && label;
      if (!roomy) set(element, "");
      else {
        if (!element.firstElementChild) element.replaceChildren(make("b"));
        set(element.firstElementChild, label);
        element.firstElementChild.style.left = `${Math.max(0, -shown).toFixed(0)}px`;
      }
    });
  }
}

function ticks() {
  const room = STEPS.find((each) => (each / view.span) * view.width > 72);
  const step = room ?? view.span;
  const first = Math.ceil((clock.drawn - view.span) / step) * step;
  return Array.from({ length: Math.ceil(view.span / step) + 2 }, (_, index) => first + index * step);
}

function paintAxis() {
  const sheet = $("axis").firstElementChild;
  const all = ticks();
  while (sheet.children.length < all.length) sheet.append(make("span"));
  while (sheet.children.length > all.length) sheet.lastChild.remove();
  all.forEach((tick, index) => {
    const element = sheet.children[index];
    element.style.left = `${(((tick - clock.drawn + view.span) / view.span) * view.width).toFixed(1)}px`;
    set(element, time(tick));
  });
}

function draw() {
  if (!view.body || $("house").hidden) return;
  clock.drawn = now();
  view.width = $("axis").clientWidth;
  $("house").style.setProperty("--top", `${document.querySelector(".top").offsetHeight}px`);
  const { daemon, lanes } = view.body;
  set($("running"), count(daemon.running));
  set($("queued"), count(daemon.queued));
  set($("workers"), count(daemon.workers));
  set($("uptime"), seconds(daemon.uptime_s));
  $("uptime").title = `tidegate ${daemon.version}`;
  const places = { live: [], waiting: [], ended: [] };
  for (const lane of lanes) {
    const lingers = lane.ended_at !== null && lane.attempts.length && now() - lane.ended_at < LINGER_S;
    places[lane.state === "queued" ? "waiting" : lane.ended_at === null || lingers ? "live" : "ended"].push(lane);
  }
  places.live.sort((a, b) => a.created_at - b.created_at);
  places.waiting.sort((a, b) => (a.queue_place ?? 0) - (b.queue_place ?? 0));
  places.ended.sort((a, b) => b.ended_at - a.ended_at);
  const kept = new Set();
  for (const [place, list] of Object.entries(places)) arrange($(place), list, place, kept);
  for (const [id, row] of view.lanes) {
    if (!kept.has(id)) {
      row.element.remove();
      view.lanes.delete(id);
    }
  }
  $("calm").hidden = places.live.length > 0;
  $("s-waiting").hidden = !places.waiting.length;
  $("s-ended").hidden = !places.ended.length;
  $("more").hidden = !view.body.left_out;
  set($("more"), `and ${many(view.body.left_out, "more turn")} that would not fit; tidegate ps lists them all`);
  view.sheets = [$("axis").firstElementChild, ...places.live.map((lane) => view.lanes.get(lane.id).sheet)];
  paintAxis();
  glide();
  timeline?.head(lanes.find((lane) => lane.id === timeline.id));
}

function arrange(list, lanes, place, kept) {
  lanes.forEach((lane, index) => {
    let row = view.lanes.get(lane.id);
    if (!row) view.lanes.set(lane.id, (row = new Row(lane)));
    kept.add(lane.id);
    const there = list.children[index];
    if (there !== row.element) {
      const focused = row.element.contains(document.activeElement) ? document.activeElement : null;
      list.insertBefore(row.element, there ?? null);
      if (place === "ended") row.sheet.style.transform = "";
      focused?.focus();
    }
    row.update(lane, place);
  });
}

// Between two polls the sheets move on by themselves

function glide() {
  const shift = -((now() - clock.drawn) / view.span) * view.width;
  for (const sheet of view.sheets) sheet.style.transform = `translateX(${shift.toFixed(1)}px)`;
}

const still = matchMedia("(prefers-reduced-motion: reduce)");

function frame() {
  if (!still.matches && !document.hidden && view.body) glide();
  requestAnimationFrame(frame);
}

// Interrupting takes two clicks: the first one arms the button for a moment

function stopButton(id, button = make("button", "stop")) {
  let armed = 0;
  button.type = "button";
  const disarm = () => {
    clearTimeout(armed);
    armed = 0;
    button.classList.remove("armed");
    if (!button.disabled) set(button, "Interrupt");
  };
  button.disarm = disarm;
  disarm();
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    if (!armed) {
      button.classList.add("armed");
      set(button, "Really?");
      armed = setTimeout(disarm, ARMED_MS);
      return;
    }
    button.disabled = true;
    disarm();
    set(button, "Stopping…");
    try {
      const response = await ask(`/v1/turns/${encodeURIComponent(button.dataset.turn)}/interrupt`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ reason: "the live page" }),
      });
      if (!response.ok) throw new Error(await problem(response));
    } catch (error) {
      if (!(error instanceof Locked)) trouble(`The turn could not be interrupted: ${error.message}`);
    }
    button.disabled = false;
    disarm();
    poll();
  });
  button.addEventListener("blur", disarm);
  button.addEventListener("keydown", (event) => event.key === "Escape" && armed && (disarm(), event.stopPropagation()));
  button.dataset.turn = id;
  return button;
}

// The answer as it stood at an offset: folded from the nearest state that was kept

const EMPTY = { text: "", reasoning: "", refusal: "", tools: [], marks: {}, attempt: 0 };

function folded(state, event) {
  const next = { ...state, attempt: Math.max(state.attempt, event.attempt) };
  const toolsWith = (change) => {
    const tools = [...state.tools];
    tools[event.index] = change(tools[event.index] ?? { name: "", arguments: "" });
    return tools;
  };
  switch (event.type) {
    case "attempt.started":
      next.marks = { ...state.marks, [event.attempt]: state };
      break;
    case "text.delta":
      if (!event.choice) next.text += event.text;
      break;
    case "reasoning.delta":
      if (!event.choice) next.reasoning += event.text;
      break;
    case "refusal.delta":
      if (!event.choice) next.refusal += event.text;
      break;
    case "tool_call.delta":
      if (event.choice) break;
      next.tools = toolsWith((tool) => ({
        name: event.name ?? tool.name,
        arguments: event.whole ? event.arguments ?? "" : tool.arguments + (event.arguments ?? ""),
      }));
      break;
    case "attempt.superseded": {
      // All that the attempt has said is void, and the answer is as it was before it.
      const before = state.marks[event.attempt] ?? EMPTY;
      Object.assign(next, { text: before.text, reasoning: before.reasoning, refusal: before.refusal, tools: before.tools });
      for (const [number, mark] of Object.entries(next.marks)) {
        if (Number(number) > event.attempt) next.marks = { ...next.marks, [number]: { ...mark, ...pick(next) } };
      }
      break;
    }
    case "turn.completed":
    case "turn.failed":
    case "turn.interrupted": {
      const { text = "", reasoning = "", refusal = "", tool_calls = [], incomplete_tool_calls = [] } = event.answer;
      Object.assign(next, { text, reasoning, refusal, tools: [...tool_calls, ...incomplete_tool_calls.map((call) => ({ ...call, cut: true }))] });
      break;
    }
  }
  return next;
}

const pick = ({ text, reasoning, refusal, tools }) => ({ text, reasoning, refusal, tools });

// What a row of the list says of an event, and in which tone

function told(event) {
  const failed = (failure) => [words(failure.kind), failure.reason && `(${words(failure.reason)})`, failure.detail && `– ${failure.detail}`].filter(Boolean).join(" ");
  switch (event.type) {
    case "text.delta":
    case "refusal.delta":
      return [shown(event.text), ""];
    case "reasoning.delta":
      return [shown(event.text), "text"];
    case "tool_call.delta":
      return [`${event.name ? `${event.name} ` : ""}${shown(event.arguments ?? "")}`, "text"];
    case "attempt.started":
      return [`attempt ${event.attempt}, token ${event.token ?? 0}`, "warn"];
    case "usage.reported":
      return [`${many(event.usage.input_tokens ?? 0, "token")} in, ${count(event.usage.output_tokens ?? 0)} out`, "text"];
    case "notice":
      return [event.text, "warn"];
    case "retry.scheduled":
      return [`attempt ${event.attempt} fenced: ${failed(event.cause)}; the next one in ${seconds(event.delay_s)}`, "bad"];
    case "attempt.superseded":
      return [`attempt ${event.attempt} is void: ${many(event.retracts, "character")} taken back`, "bad"];
    case "turn.completed":
      return [`complete${event.answer.finish ? `, ${words(event.answer.finish)}` : ""}`, "good"];
    case "turn.failed":
      return [failed(event.error), "bad"];
    case "turn.interrupted":
      return [event.reason || "interrupted", "stop"];
    default:
      return ["", "text"];
  }
}

const shown = (text) => text.replaceAll("\n", "⏎").replaceAll("\t", "⇥");

// A turn's timeline

let timeline = null;

// Says whether an element is to stay at its end while it grows: until somebody scrolls up
function sticky(element) {
  const state = { on: true };
  let before = 0;
  element.addEventListener("scroll", () => {
    const atEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - ROW_PX;
    if (atEnd) state.on = true;
    else if (element.scrollTop < before) state.on = false;
    before = element.scrollTop;
  });
  return state;
}

const stay = { rows: sticky($("rows")), text: sticky($("text")) };

class Timeline {
  constructor(id, opener) {
    this.id = id;
    this.opener = opener;
    this.events = [];
    this.kept = [EMPTY];
    this.last = { offset: -1, state: EMPTY };
    this.at = -1;
    this.following = true;
    this.over = false;
    this.due = false;
    this.abort = new AbortController();
    this.read();
  }

  close() {
    this.abort.abort();
  }

  // Reads the events, and comes back with its cursor whenever the connection is lost.
  async read() {
    let pause = 250;
    while (!this.over && !this.abort.signal.aborted) {
      const before = this.events.length;
      try {
        const response = await ask(`/v1/turns/${encodeURIComponent(this.id)}/events?after=${before - 1}`, { signal: this.abort.signal });
        if (!response.ok) {
          const why = await problem(response);
          if (response.status < 500 && response.status !== 429) return this.end(why);
          throw new Error(why);
        }
        await this.take(response.body);
      } catch (error) {
        if (this.abort.signal.aborted || error instanceof Locked) return;
      }
      pause = this.events.length > before ? 250 : Math.min(5000, pause * 2);
      if (!this.over) {
        this.end("The connection is lost; it is taken up where it was.");
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  async take(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const frames = (rest + value).split("\n\n");
      rest = frames.pop();
      for (const frame of frames) this.frame(frame);
      this.later();
    }
  }

  frame(frame) {
    const fields = {};
    for (const line of frame.split("\n")) {
      const colon = line.indexOf(":");
      if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
    }
    if (fields.event === "daemon.draining") return this.end("The daemon is stopping; the turn may be cut short.");
    if (fields.id === undefined || fields.data === undefined) return;
    const event = JSON.parse(fields.data);
    if (event.offset !== this.events.length) return; // known already
    this.events.push(event);
    if (this.events.length === 1) this.end("");
    if (event.type.startsWith("turn.")) {
      this.over = true;
      this.end("");
    }
  }

  end(text) {
    set($("turn-end"), text);
  }

  state(offset) {
    let { offset: from, state } = this.last;
    if (from > offset) {
      const nearest = Math.min(Math.floor((offset + 1) / KEPT_EVERY), this.kept.length - 1);
      from = nearest * KEPT_EVERY - 1;
      state = this.kept[nearest];
    }
    while (from < offset) {
      from += 1;
      state = folded(state, this.events[from]);
      if ((from + 1) % KEPT_EVERY === 0) this.kept[(from + 1) / KEPT_EVERY] ??= state;
    }
    this.last = { offset, state };
    return state;
  }

  later() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      if (timeline === this) this.draw();
    });
  }

  go(offset, follow = false) {
    this.following = follow;
    this.at = Math.max(0, Math.min(offset, this.events.length - 1));
    this.draw();
    if (!follow) this.reveal(this.at);
  }

  reveal(offset) {
    const rows = $("rows");
    const top = offset * ROW_PX;
    if (top < rows.scrollTop || top + ROW_PX > rows.scrollTop + rows.clientHeight) rows.scrollTop = top - rows.clientHeight / 2;
  }

  draw() {
    const size = this.events.length;
    const rows = $("rows");
    if (this.following) this.at = size - 1;
    const slider = $("slider");
    slider.max = String(Math.max(0, size - 1));
    slider.value = String(Math.max(0, this.at));
    slider.setAttribute("aria-valuetext", `event ${this.at} of ${size - 1}`);
    $("follow").setAttribute("aria-pressed", String(this.following));
    set($("follow"), this.over ? "end" : "live");
    $("rows-all").style.height = `${size * ROW_PX}px`;
    rows.setAttribute("aria-rowcount", String(size));
    this.drawAnswer();
    if (this.following && stay.rows.on) rows.scrollTop = size * ROW_PX;
    this.drawRows();
  }

  drawAnswer() {
    const event = this.events[this.at];
    const state = event ? this.state(this.at) : EMPTY;
    const since = event ? event.at_s - this.events[0].at_s : 0;
    set($("at"), event ? `at event ${this.at} of ${this.events.length - 1} · attempt ${state.attempt} · +${seconds(since)}` : "no event yet");
    const [what, tone] = event ? told(event) : ["", ""];
    set($("said"), tone && tone !== "text" ? what : "");
    $("said").dataset.tone = tone;
    const text = $("text");
    set(text, state.text + state.refusal);
    if (this.following && stay.text.on) text.scrollTop = text.scrollHeight;
    $("thought").hidden = !state.reasoning;
    set($("thought").firstElementChild, `Reasoning, ${many(state.reasoning.length, "character")}`);
    if ($("thought").open) set($("reasoning"), state.reasoning);
    const tools = state.tools.filter(Boolean);
    $("tools").replaceChildren(...tools.map((tool) => {
      const item = make("li", "", "");
      item.append(make("b", "", tool.name), `(${tool.arguments})${tool.cut ? " – cut, so it is no call" : ""}`);
      return item;
    }));
  }

  drawRows() {
    const rows = $("rows");
    const all = $("rows-all");
    const first = Math.max(0, Math.floor(rows.scrollTop / ROW_PX) - 10);
    const last = Math.min(this.events.length, Math.ceil((rows.scrollTop + rows.clientHeight) / ROW_PX) + 10);
    while (all.children.length > Math.max(0, last - first)) all.lastChild.remove();
    for (let offset = first; offset < last; offset += 1) {
      const event = this.events[offset];
      let row = all.children[offset - first];
      if (!row) {
        row = make("div");
        row.setAttribute("role", "row");
        for (let cell = 0; cell < 4; cell += 1) row.append(make("span"));
        for (const cell of row.children) cell.setAttribute("role", "cell");
        all.append(row);
      }
      const [text, tone] = told(event);
      row.style.top = `${offset * ROW_PX}px`;
      row.dataset.offset = String(offset);
      row.setAttribute("aria-rowindex", String(offset + 1));
      row.setAttribute("aria-current", String(offset === this.at));
      set(row.children[0], String(event.offset));
      set(row.children[1], time(event.at_s, 3).slice(0, 10));
      set(row.children[2], event.type);
      set(row.children[3], text);
      row.children[3].dataset.tone = tone;
      row.title = tone ? text : "";
    }
  }

  head(lane) {
    const last = this.events.at(-1);
    const ended = last?.type.startsWith("turn.") ? last.type.slice(5) : null;
    const state = ended ?? lane?.state ?? "running";
    set($("turn-title"), lane?.model || "Turn");
    $("turn-state").dataset.state = state;
    set($("turn-state"), state);
    $("turn-stop").hidden = ended !== null || !lane || lane.ended_at !== null;
    const facts = [this.id];
    if (lane) {
      facts.push(`${lane.endpoint} · ${lane.wire}`);
      facts.push(`${seconds((lane.ended_at ?? now()) - lane.created_at)}`);
      if (lane.input_tokens || lane.output_tokens) facts.push(`${count(lane.input_tokens ?? 0)} tokens in, ${count(lane.output_tokens ?? 0)} out`);
      if (lane.readers) facts.push(many(lane.readers, "reader"));
    }
    set($("turn-facts"), facts.join(" · "));
  }
}

function openTurn(id, opener) {
  if (timeline?.id !== id) {
    timeline?.close();
    for (const list of [$("rows-all"), $("tools")]) list.replaceChildren();
    for (const name of ["text", "reasoning", "turn-end", "turn-title"]) set($(name), "");
    $("thought").open = false;
    stay.rows.on = stay.text.on = true;
    timeline = new Timeline(id, opener);
    $("turn-stop").dataset.turn = id;
    $("turn-stop").disarm();
  }
  $("turn").hidden = false;
  $("house").classList.add("open");
  if (location.hash !== `#${id}`) history.replaceState(null, "", `#${id}`);
  draw();
  timeline.head(view.body?.lanes.find((lane) => lane.id === id));
  timeline.draw();
  $("turn-title").focus();
}

function closeTurn() {
  if (!timeline) return;
  const { opener } = timeline;
  timeline.close();
  timeline = null;
  $("turn").hidden = true;
  $("house").classList.remove("open");
  history.replaceState(null, "", location.pathname);
  draw();
  if (opener?.isConnected) opener.focus();
}

stopButton("", $("turn-stop"));
$("turn-close").addEventListener("click", closeTurn);
$("slider").addEventListener("input", (event) => timeline?.go(Number(event.target.value)));
$("back").addEventListener("click", () => timeline?.go(timeline.at - 1));
$("forth").addEventListener("click", () => timeline?.go(timeline.at + 1));
$("follow").addEventListener("click", () => {
  if (!timeline) return;
  $("rows").scrollTop = $("rows").scrollHeight;
  timeline.go(timeline.events.length - 1, true);
});
$("rows").addEventListener("scroll", () => timeline?.drawRows());
$("rows").addEventListener("click", (event) => {
  const row = event.target.closest("[role=row]");
  if (row) timeline?.go(Number(row.dataset.offset));
});
$("thought").addEventListener("toggle", () => timeline?.drawAnswer());

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeTurn();
  const lane = document.activeElement?.closest?.(".lane");
  if (!lane || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
  const all = [...document.querySelectorAll(".lane .who")];
  const next = all.indexOf(lane.querySelector(".who")) + (event.key === "ArrowDown" ? 1 : -1);
  event.preventDefault();
  all[next]?.focus();
});

for (const button of document.querySelectorAll(".spans button")) {
  button.addEventListener("click", () => {
    view.span = Number(button.dataset.span);
    for (const each of document.querySelectorAll(".spans button")) each.setAttribute("aria-pressed", String(each === button));
    draw();
  });
  button.setAttribute("aria-pressed", String(Number(button.dataset.span) === view.span));
}

addEventListener("resize", draw);
addEventListener("hashchange", () => location.hash.length > 1 && openTurn(decodeURIComponent(location.hash.slice(1))));
poll();
frame();
if (location.hash.length > 1) openTurn(decodeURIComponent(location.hash.slice(1)));
