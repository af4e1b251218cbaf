// Shows empty questions one at a time.

const blocks = [...document.querySelectorAll("[data-block]")];
const more = document.getElementById("more");

function offer() {
  more.hidden = blocks.every((block) => !block.hidden);
}

blocks.forEach((block, i) => {
  block.hidden = i > 0 && !("filled" in block.dataset);
});
more.addEventListener("click", () => {
  const next = blocks.find((block) => block.hidden);
  next.hidden = false;
  next.querySelector("input").focus();
  offer();
});
offer();
document.getElementById("plan")?.focus();
