// Fetches the page again every few seconds and shows new results, while the survey is open and the page is looked at.

const PAUSE = 3000;

async function renew() {
  const results = document.getElementById("results");
  if (results.dataset.live !== "yes") return;
  if (document.visibilityState === "visible") {
    const answer = await fetch(location.pathname, { credentials: "same-origin" }).catch(() => null);
    if (answer?.ok) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("results");
      if (fresh && fresh.innerHTML !== results.innerHTML) {
        results.replaceWith(document.adoptNode(fresh));
        document.getElementById("news").textContent = `${document.getElementById("answers").textContent} answers so far`;
      }
    }
  }
  setTimeout(renew, PAUSE);
}

setTimeout(renew, PAUSE);
