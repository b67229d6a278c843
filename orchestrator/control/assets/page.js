"use strict";
const byId = (id) => document.getElementById(id);
const told = byId("told");

// The key of this login: browsers keep it for this origin alone, port included.
if (location.hash.length > 1) {
  localStorage.setItem("key", location.hash.slice(1));
  history.replaceState(null, "", location.pathname + location.search);
}

function ask(path, more = {}) {
  const headers = { ...more.headers, "X-Toolwright-Key": localStorage.getItem("key") || "" };
  return fetch(path, { ...more, headers });
}

const nameForm = (form) => `${form.closest("details")?.id || ""} ${form.dataset.post}`;
const listInputs = (form) => [...form.querySelectorAll("input:not([type=hidden]), select, textarea")];

function show(name, html) {
  const part = byId(name);
  if (!part) return;
  const open = new Set([...part.querySelectorAll("details[open]")].map((element) => element.id));
  const focus = part.contains(document.activeElement) ? document.activeElement.id : "";
  const typed = new Map([...part.querySelectorAll("form[data-post]")].map(
    (form) => [nameForm(form), listInputs(form).map((input) => input.value)],
  ));
  part.innerHTML = html;
  for (const form of part.querySelectorAll("form[data-post]")) {
    const values = typed.get(nameForm(form)) || [];
    for (const [index, input] of listInputs(form).entries()) input.value = values[index] ?? "";
  }
  for (const element of part.querySelectorAll("details")) element.open = open.has(element.id);
  if (focus && byId(focus)) byId(focus).focus();
  tick();
}

function ago(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.round(seconds / size)} ${unit} ago`;
  }
  return `${Math.max(0, Math.round(seconds))} s ago`;
}

function tick() {
  const now = Date.now() / 1000;
  for (const element of document.querySelectorAll("time[data-at]")) {
    const text = ago(now - Number(element.dataset.at));
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

async function listen() {
  const link = byId("link");
  for (;;) {
    try {
      const answer = await ask(listAddress());
      if (answer.status === 401) {
        link.textContent = "logged out; open it anew with `toolwright control --open`";
        return;
      }
      if (!answer.ok) throw new Error(answer.statusText);
      link.textContent = "live";
      for await (const parts of read(answer)) {
        for (const [name, html] of Object.entries(parts)) show(name, html);
      }
    } catch {
      // It is asked again.
    }
    link.textContent = "not connected";
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
    body.wait = 20;
  }
  if (button.dataset.always) body.always = { until: button.dataset.always };
  if (button.textContent.includes("(PIN)") && !body.pin) {
    told.textContent = "Type your PIN into the field at the top first.";
    byId("pin").focus();
    return;
  }
  if (button.dataset.digest) body.digest = button.dataset.digest;
  button.disabled = true;
  told.textContent = "…";
  try {
    const said = await post(button.dataset.post, body, button.dataset.form);
    told.textContent = said.error || said.told || "Done.";
  } catch {
    told.textContent = "The control plane does not answer.";
  } finally {
    button.disabled = false;
  }
});

// A form that posts: `data-field` are the fields of what it is about, named ones its own.
function collect(form) {
  const body = { by: "page" };
  const fields = {};
  for (const input of form.elements) {
    if (input.dataset.field) {
      if (input.value !== "") fields[input.dataset.field] = input.value;
    } else if (input.name) {
      body[input.name] = input.value;
    }
  }
  if (Object.keys(fields).length) body.fields = fields;
  if (form.dataset.digest) body.digest = form.dataset.digest;
  return body;
}

function answer(output, said) {
  const told = document.createElement("p");
  told.textContent = said.error || said.told || "Done.";
  output.className = said.error || said.failed ? "bad" : "good";
  output.replaceChildren(told);
  if (said.text) {
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

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-post]");
  if (!form) return;
  event.preventDefault();
  const output = form.querySelector("output");
  const button = form.querySelector("button");
  const body = collect(form);
  if (form.dataset.pin !== undefined) {
    body.pin = byId("pin").value;
    if (!body.pin) {
      answer(output, { error: "Type your PIN into the field at the top first." });
      byId("pin").focus();
      return;
    }
  }
  button.disabled = true;
  output.className = "";
  output.textContent = "…";
  try {
    // A secret is sent once and kept nowhere on the page.
    for (const input of form.querySelectorAll("[data-once]")) input.value = "";
    const said = await post(form.dataset.post, body, form.dataset.form);
    answer(output, said);
    if (!form.isConnected) told.textContent = said.error || said.told;
  } catch {
    answer(output, { error: "The control plane does not answer." });
  } finally {
    button.disabled = false;
  }
});

document.addEventListener("input", (event) => {
  // What is typed as a whole is taken instead of fields that would have to be filled.
  if (event.target.name === "whole") event.target.form.noValidate = event.target.value !== "";
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  told.textContent = "Copied.";
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
  done.textContent = "…";
  try {
    const body = Object.fromEntries([...form].filter(([, value]) => value));
    if (body.arguments) body.arguments = parseArguments(body.arguments);
    let job = await post("/do", body, event.target.dataset.form);
    while (job.job && !["done", "failed", "cancelled"].includes(job.state)) {
      done.textContent = `${job.stage || job.state} ${job.message || ""}`;
      const answer = await ask(`/jobs/${job.job}?wait=20&seen=${job.updated}`);
      job = await answer.json();
    }
    const texts = ((job.result || {}).content || []).map((block) => block.text);
    done.textContent = job.error || texts.join("\n") || job.message || job.state;
  } catch (problem) {
    done.textContent = problem.message;
  }
});

listen();
setInterval(tick, 1000);
