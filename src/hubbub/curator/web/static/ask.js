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

form.addEventListener("input", (event) => {
  for (const [field, way] of [["epsilon", "epsilon"], ["error", "error"]])
    if (event.target.name === field) form.querySelector(`[name=pay][value=${way}]`).checked = true;
  clearTimeout(timer);
  timer = setTimeout(explain, PAUSE);
});
