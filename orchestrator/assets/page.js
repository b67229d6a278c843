"use strict";
const live = document.getElementById("live");
const told = document.getElementById("told");

async function refresh() {
  try {
    const answer = await fetch("/live");
    const text = await answer.text();
    if (answer.ok && text !== live.dataset.shown) {
      live.innerHTML = text;
      live.dataset.shown = text;
    }
  } catch {
    told.textContent = "The control plane does not answer.";
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-post]");
  if (!button) return;
  const body = { pin: document.getElementById("pin").value, by: "page" };
  if (button.dataset.decision) body.decision = button.dataset.decision;
  const answer = await fetch(button.dataset.post, { method: "POST", body: JSON.stringify(body) });
  const said = await answer.json();
  told.textContent = said.error || JSON.stringify(said);
  await refresh();
});

refresh();
setInterval(refresh, 1000);
