"use strict";
const byId = (id) => document.getElementById(id);
const told = byId("told");

function tell(text, isBad = false) {
  told.textContent = text;
  told.className = isBad ? "bad" : "";
}

// The key of this login: browsers keep it for this origin alone, port included. Other fragments,
// such as that of the skip link, are places on the page.
if (location.pathname === "/" && /^#[\w-]{32}$/.test(location.hash)) {
  localStorage.setItem("key", location.hash.slice(1));
  history.replaceState(null, "", location.pathname + location.search);
}

function ask(path, more = {}) {
  const headers = { ...more.headers, "X-Toolwright-Key": localStorage.getItem("key") || "" };
  return fetch(path, { ...more, headers });
}

const isTyped = (input) => !["hidden", "radio", "checkbox"].includes(input.type);
const listInputs = (form) => [...form.querySelectorAll("input, select, textarea")];
const nameForm = (form) => {
  const about = [...form.querySelectorAll("input[type=hidden]")].map((each) => each.value);
  return [form.dataset.post, form.closest("details")?.id, ...about].join(" ");
};

// What a person has typed, chosen and opened in a part, and where the cursor is, by names that the
// part has anew after it was replaced.
function remember(part) {
  const forms = new Map();
  let focus = null;
  for (const form of part.querySelectorAll("form[data-post]")) {
    const inputs = listInputs(form);
    forms.set(nameForm(form), inputs.map((each) => [each.value, each.checked]));
    const index = inputs.indexOf(document.activeElement);
    if (index >= 0) {
      const { selectionStart, selectionEnd } = inputs[index];
      focus = { form: nameForm(form), index, selectionStart, selectionEnd };
    }
  }
  const active = part.contains(document.activeElement) ? document.activeElement : null;
  if (active && !focus) {
    const folded = active.tagName === "SUMMARY" ? active.parentElement.id : "";
    focus = { id: active.id, folded, href: active.getAttribute("href") };
  }
  // The page opens and closes the others, such as a run that has ended.
  const opened = new Map(
    [...part.querySelectorAll("details[id]")]
      .filter((each) => each.dataset.chosen || String(each.open) !== each.dataset.begun)
      .map((each) => [each.id, each.open]),
  );
  const reasons = new Map(
    [...part.querySelectorAll("[data-reason]")].map((each) => [each.id, each.value]),
  );
  return { forms, focus, opened, reasons };
}

function restore(part, { forms, focus, opened, reasons }) {
  for (const form of part.querySelectorAll("form[data-post]")) {
    const values = forms.get(nameForm(form)) || [];
    for (const [index, input] of listInputs(form).entries()) {
      if (!values[index]) continue;
      if (isTyped(input)) [input.value] = values[index];
      else if (input.type !== "hidden") [, input.checked] = values[index];
    }
  }
  for (const element of part.querySelectorAll("details[id]")) {
    element.dataset.begun = String(element.open);
    if (!opened.has(element.id)) continue;
    element.dataset.chosen = "yes";
    element.open = opened.get(element.id);
  }
  for (const input of part.querySelectorAll("[data-reason]")) {
    input.value = reasons.get(input.id) || "";
  }
  if (!focus) return;
  if (focus.form) {
    const form = [...part.querySelectorAll("form[data-post]")].find(
      (each) => nameForm(each) === focus.form,
    );
    const input = form && listInputs(form)[focus.index];
    input?.focus();
    if (input && focus.selectionStart !== null && input.setSelectionRange) {
      input.setSelectionRange(focus.selectionStart, focus.selectionEnd);
    }
  } else if (focus.folded) {
    byId(focus.folded)?.querySelector("summary").focus();
  } else if (focus.id) {
    byId(focus.id)?.focus();
  } else if (focus.href) {
    part.querySelector(`a[href="${CSS.escape(focus.href)}"]`)?.focus();
  }
}

// What happened is listed newest first. While a pointer is on such a list, or text of it is
// selected, its rows stay where they are: the list as it is by then is kept until they are gone.
const held = new Map();

function isInHand(part) {
  if (part.dataset.acted || !part.querySelector("table[data-events]")) return false;
  const selected = getSelection();
  if (!selected.isCollapsed && selected.containsNode(part, true)) return true;
  return document.hasFocus() && part.matches(":hover") && matchMedia("(hover: hover)").matches;
}

function release() {
  for (const [name, html] of held) show(name, html);
}

for (const kind of ["pointerover", "pointerout", "selectionchange"]) {
  document.addEventListener(kind, release);
}
window.addEventListener("blur", release);

// Who acts in a list wants to see what comes of it.
function markActed(element) {
  const part = element.closest("main > section");
  if (part) part.dataset.acted = "yes";
}

function tellLink(text) {
  byId("link").textContent = held.size ? "paused while you read" : text;
}

function show(name, html) {
  const part = byId(name);
  if (!part) return;
  if (isInHand(part)) {
    held.set(name, html);
    tellLink("live");
    return;
  }
  if (held.delete(name)) tellLink("live");
  delete part.dataset.acted;
  const kept = remember(part);
  const before = listCards(part);
  const isWatched = part.matches(":hover");
  part.innerHTML = html;
  arrange(part, before, isWatched);
  restore(part, kept);
  lockDecisions();
  tick();
}

const listCards = (part) => [...part.querySelectorAll("[data-card]")];
// What went wrong with a decision, by the card that still waits.
const refusals = new Map();
let isDeciding = false;

// No card slides under a pointer that is about to click: those that were shown keep their order, new
// ones come below, and one that was decided here stays until the person hides it or leaves. One that
// ended elsewhere stays while the pointer is over the list.
function arrange(part, before, isWatched) {
  const list = part.querySelector("[data-cards]");
  if (!list) return;
  const fresh = new Map(listCards(part).map((each) => [each.dataset.card, each]));
  const placed = [];
  for (const card of before) {
    const now = fresh.get(card.dataset.card);
    fresh.delete(card.dataset.card);
    const isSame = !now || now.dataset.about === card.dataset.about;
    if (!now && isWatched && !card.dataset.state) {
      mark(card, "gone", "It does not wait any more: it was decided elsewhere or its time is over.");
    }
    const stays = card.dataset.state && isSame && (now || isWatched || card.dataset.state !== "gone");
    if (stays) placed.push(card);
    else if (now) placed.push(now);
  }
  list.replaceChildren(...placed, ...fresh.values());
  for (const card of listCards(list)) {
    const refusal = refusals.get(card.dataset.card);
    if (refusal && !card.dataset.state) sayOn(card, refusal, "bad");
  }
}

function sayOn(card, text, kind) {
  const output = card.querySelector(".outcome");
  output.textContent = text;
  output.className = `outcome ${kind}`;
}

// Instead of its buttons a card says how it stands, in the same place and as high.
function mark(card, state, text, kind = "") {
  const decide = card.querySelector(".decide");
  if (decide && !card.dataset.state) decide.style.minHeight = `${decide.offsetHeight}px`;
  card.dataset.state = state;
  sayOn(card, text, kind);
  if (state !== "decided") return;
  const hide = document.createElement("button");
  hide.type = "button";
  hide.className = "quiet small hide";
  hide.dataset.hide = "";
  hide.textContent = "Hide";
  card.querySelector(".outcome").append(" ", hide);
}

function unmark(card, text) {
  delete card.dataset.state;
  card.querySelector(".decide")?.style.removeProperty("min-height");
  refusals.set(card.dataset.card, text);
  sayOn(card, text, "bad");
}

// One decision at a time.
function lockDecisions() {
  for (const button of document.querySelectorAll("[data-card] button[data-post]")) {
    button.disabled = isDeciding;
  }
}

function renderDecision(card, said) {
  const told = (said.told || said.state || "done").replace(`${card.dataset.card}: `, "");
  return told[0].toUpperCase() + told.slice(1) + (/[.!?]$/.test(told) ? "" : ".");
}

async function decide(card, button, body) {
  isDeciding = true;
  refusals.delete(card.dataset.card);
  mark(card, "sending", body.decision === "reject" ? "Rejecting…" : "Sending…");
  lockDecisions();
  try {
    const said = await post(button.dataset.post, body, button.dataset.form);
    if (said.error) unmark(card, said.error);
    else {
      const isBad = ["failed", "unknown"].includes(said.state);
      mark(card, "decided", renderDecision(card, said), isBad ? "bad" : "good");
    }
  } catch {
    unmark(card, "The control plane does not answer. Look under Decided whether it was taken.");
  } finally {
    isDeciding = false;
    lockDecisions();
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-hide]");
  if (!button) return;
  // The next card comes up under the pointer: without the PIN a second click decides nothing.
  byId("pin").value = "";
  button.closest("[data-card]").remove();
});

document.addEventListener("pointerover", (event) => {
  for (const card of document.querySelectorAll('[data-state="gone"]')) {
    if (!card.closest("section").contains(event.target)) card.remove();
  }
});

function ago(seconds) {
  const far = Math.abs(seconds);
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([each]) => far >= each) || [
    1,
    "s",
  ];
  const told = `${Math.round(far / size)} ${unit}`;
  return seconds < -0.5 ? `in ${told}` : `${told} ago`;
}

// The time of day, with the day where it is another one.
function clock(moment, now) {
  const time = `${moment.getHours()}:${String(moment.getMinutes()).padStart(2, "0")}`;
  if (moment.toDateString() === now.toDateString()) return time;
  return `${moment.toLocaleDateString("en", { day: "numeric", month: "short" })} ${time}`;
}

function tick() {
  const now = Date.now() / 1000;
  for (const element of document.querySelectorAll("time[data-at]")) {
    const text = ago(now - Number(element.dataset.at));
    if (!element.title) element.title = element.textContent;
    if (element.textContent !== text) element.textContent = text;
  }
  for (const element of document.querySelectorAll("time[data-clock]")) {
    const text = clock(new Date(1000 * Number(element.dataset.clock)), new Date());
    if (element.textContent !== text) element.textContent = text;
  }
}

async function* read(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      if (event.startsWith("data: ")) yield JSON.parse(event.slice(6));
    }
  }
}

function listAddress() {
  const asked = new URLSearchParams(location.search);
  asked.set("room", document.body.dataset.room);
  asked.set("name", document.body.dataset.name);
  return `/events?${asked}`;
}

// Nothing can be seen or done without a log-in, so nothing of it stays on the screen.
function end(reason) {
  const said = document.createElement("p");
  said.textContent = reason;
  byId("main").replaceChildren(said);
  byId("freeze").replaceChildren();
  byId("link").textContent = "logged out";
  tell("");
}

async function listen() {
  for (;;) {
    try {
      const answer = await ask(listAddress());
      if (answer.status === 401) {
        end("You are logged out. Open the page anew with `toolwright control --open`.");
        return;
      }
      if (!answer.ok) throw new Error(answer.statusText);
      tellLink("live");
      for await (const parts of read(answer)) {
        for (const [name, html] of Object.entries(parts)) show(name, html);
      }
    } catch {
      // It is asked again.
    }
    held.clear();
    tellLink("not connected");
    await new Promise((again) => setTimeout(again, 2000));
  }
}

async function post(path, body, form) {
  const answer = await ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Toolwright-Form": form },
    body: JSON.stringify(body),
  });
  return answer.json();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-post]");
  if (!button) return;
  const body = { pin: byId("pin").value, by: "page" };
  if (button.dataset.decision) {
    body.decision = button.dataset.decision;
    const reason = button.closest("article")?.querySelector("[data-reason]")?.value;
    if (reason && body.decision === "reject") body.reason = reason;
    body.wait = 20;
  }
  if (button.dataset.always) body.always = { until: button.dataset.always };
  if (button.dataset.pin !== undefined && !body.pin) {
    tell("Type your PIN into the field at the top first.", true);
    byId("pin").focus();
    return;
  }
  for (const name of ["digest", "host", "source"]) {
    if (button.dataset[name]) body[name] = button.dataset[name];
  }
  markActed(button);
  const card = button.closest("[data-card]");
  if (card && isDeciding) return;
  // A PIN is typed for one decision.
  if (button.dataset.pin !== undefined) byId("pin").value = "";
  tell("");
  if (card) {
    await decide(card, button, body);
    return;
  }
  button.disabled = true;
  tell("Sending…");
  try {
    const said = await post(button.dataset.post, body, button.dataset.form);
    tell(said.error || said.told || "Done.", Boolean(said.error));
    if (said.ended) end(said.told);
  } catch {
    tell("The control plane does not answer.", true);
  } finally {
    button.disabled = false;
  }
});

// A form that posts: `data-field` are the fields of what it is about, named ones its own.
function collect(form, pressed) {
  const body = { by: "page" };
  const fields = {};
  for (const input of form.elements) {
    if (input.type === "radio" && !input.checked) continue;
    if (input.tagName === "BUTTON") continue;
    if (input.dataset.field) {
      if (input.value !== "") fields[input.dataset.field] = input.value;
    } else if (input.name) {
      body[input.name] = input.value;
    }
  }
  // The button that was pressed goes before a field of the same name.
  if (pressed?.name) body[pressed.name] = pressed.value;
  if (Object.keys(fields).length) body.fields = fields;
  if (form.dataset.digest) body.digest = form.dataset.digest;
  return body;
}

// What is wrong with a field stands at the field, and the first of them gets the cursor.
function markFields(form, problems) {
  for (const each of form.querySelectorAll(".problem")) each.remove();
  for (const each of form.querySelectorAll("[aria-invalid]")) each.removeAttribute("aria-invalid");
  const marked = [];
  for (const [name, reason] of Object.entries(problems)) {
    const input = listInputs(form).find((each) => (each.dataset.field || each.name) === name);
    if (!input) continue;
    const note = document.createElement("small");
    note.className = "problem";
    note.textContent = reason;
    input.after(note);
    input.setAttribute("aria-invalid", "true");
    const folded = input.closest("details:not([open])");
    if (folded) folded.open = true;
    marked.push(input);
  }
  marked[0]?.focus();
  return marked.length > 0 && marked.length === Object.keys(problems).length;
}

function answer(output, said) {
  const told = document.createElement("p");
  told.textContent = said.error || said.told || "Done.";
  output.className = said.error || said.failed ? "bad" : "good";
  output.replaceChildren(told);
  if (said.html) {
    // The control plane made it as it makes every part: strangers' text in it is escaped.
    const shown = document.createElement("div");
    shown.innerHTML = said.html;
    output.append(shown);
  } else if (said.text) {
    const text = document.createElement("pre");
    text.textContent = said.text;
    output.append(text);
  }
  if (said.link) {
    const link = document.createElement("a");
    link.href = said.link.href;
    link.textContent = said.link.label;
    output.append(link);
  }
}

// A form that adds something is empty after that, also where its part was replaced meanwhile.
function clear(form) {
  const same = (each) => each.isConnected && nameForm(each) === nameForm(form);
  [form, ...document.querySelectorAll("form[data-clear]")].find(same)?.reset();
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-post]");
  if (!form) return;
  event.preventDefault();
  markActed(form);
  const output = form.querySelector("output");
  const button = event.submitter || form.querySelector("button");
  const body = collect(form, button);
  if (form.dataset.pin !== undefined) {
    body.pin = byId("pin").value;
    if (!body.pin) {
      answer(output, { error: "Type your PIN into the field at the top first." });
      byId("pin").focus();
      return;
    }
  }
  tell("");
  button.disabled = true;
  // Who answers a run wants to see what comes of it.
  const run = form.closest("details[id]");
  if (run) run.dataset.chosen = "yes";
  output.className = "";
  output.textContent = "Sending…";
  try {
    // A secret is sent once and kept nowhere on the page.
    for (const input of form.querySelectorAll("[data-once]")) input.value = "";
    const said = await post(form.dataset.post, body, form.dataset.form);
    // A PIN is typed for one thing that is done; a wrong field is no reason to type it again.
    if (form.dataset.pin !== undefined && !said.problems) byId("pin").value = "";
    const isMarked = markFields(form, said.problems || {});
    answer(output, isMarked ? { error: "Nothing was done. Look at the marked fields." } : said);
    if (!said.error && form.dataset.clear !== undefined) clear(form);
    // What was changed is shown anew, sooner or later, maybe without this form.
    const stays = said.error || said.html || said.link;
    if (!stays || !form.isConnected) tell(said.error || said.told || "Done.", Boolean(said.error));
  } catch {
    answer(output, { error: "The control plane does not answer." });
  } finally {
    button.disabled = false;
  }
});

told.addEventListener("click", () => tell(""));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") tell("");
});

document.addEventListener("input", (event) => {
  // What is typed as a whole is taken instead of fields that would have to be filled.
  if (event.target.name === "whole") event.target.form.noValidate = event.target.value !== "";
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  tell("Copied.");
});

function parseArguments(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('The arguments are no JSON object, such as {"name": "example.org"}.');
  }
}

byId("do")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  const done = byId("done");
  done.textContent = "Sending…";
  try {
    const body = Object.fromEntries([...form].filter(([, value]) => value));
    if (body.arguments) body.arguments = parseArguments(body.arguments);
    const job = await post("/do", body, event.target.dataset.form);
    done.textContent = job.error || "It is the first of the thread below.";
    if (!job.error) event.target.reset();
  } catch (problem) {
    done.textContent = problem.message;
  }
});

listen();
setInterval(tick, 1000);
