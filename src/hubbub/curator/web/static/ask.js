// Explains the question while it is written: sends the form as the Explain button would, and shows the new price.

const PAUSE = 400;
const form = document.getElementById("ask");
let timer = 0;
let running = null;

async function explain() {
  running?.abort();
  running = new AbortController();
  const body = new URLSearchParams(new FormData(form));
  body.set("step", "explain");
  try {
    const answer = await fetch(form.action, { method: "POST", body, credentials: "same-origin", signal: running.signal });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("price");
    if (!fresh) return;
    const open = document.querySelector("#price details")?.open;
    document.getElementById("price").replaceWith(document.adoptNode(fresh));
    if (open) document.querySelector("#price details")?.setAttribute("open", "");
    document.getElementById("news").textContent = fresh.dataset.say;
  } catch {
    // a newer question overtook this one, or the server is out of reach: the price seen last stays, and is checked
  }
}

function written(field) {
  if (field.name === "epsilon" || field.name === "error") form.querySelector(`[name=pay][value=${field.name}]`).checked = true;
  clearTimeout(timer);
  timer = setTimeout(explain, PAUSE);
}

function changed(field) {
  if (field.options) return [...field.options].some((option) => option.selected !== option.defaultSelected);
  return field.type === "radio" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
}

form.addEventListener("input", (event) => written(event.target));

// what was written before this script ran, or was put back by the browser, is priced too
addEventListener("pageshow", () => [...form.elements].filter(changed).forEach(written));
