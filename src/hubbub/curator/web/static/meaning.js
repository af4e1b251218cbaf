// Redraws the page on what epsilon means as its sliders move.

import { number, share } from "./formats.js";
import { countError, meanError, posterior, samplingError, tradeoff } from "./laws.js";

const STEPS = 61;
const FALSE_ALARMS = 0.05;
const form = document.getElementById("controls");
const fields = Object.fromEntries(["epsilon", "delta", "prior", "people"].map((n) => [n, form.elements[n]]));

let resting;

function evenly(low, high, count = STEPS) {
  return Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1));
}

// Where values lie in a chart, from the axes its figure declares.
function scales(id) {
  const { left, right, top, bottom, x, y } = document.getElementById(id).dataset;
  const scale = (axis, from, to) => {
    const [low, high, kind] = axis.split(" ");
    const at = kind === "log" ? Math.log : (v) => v;
    return (value) => {
      const kept = Math.min(Math.max(value, Number(low)), Number(high));
      return from + ((at(kept) - at(Number(low))) / (at(Number(high)) - at(Number(low)))) * (to - from);
    };
  };
  return [scale(x, Number(left), Number(right)), scale(y, Number(bottom), Number(top))];
}

function draw(chart, id, points, closed = false) {
  const [across, down] = scales(chart);
  const path = points.map(([x, y]) => `${across(x).toFixed(2)} ${down(y).toFixed(2)}`).join("L");
  document.getElementById(id).setAttribute("d", `M${path}${closed ? "Z" : ""}`);
}

function mark(chart, id, x, y) {
  const [across, down] = scales(chart);
  const circle = document.getElementById(id);
  circle.setAttribute("cx", across(x).toFixed(2));
  circle.setAttribute("cy", down(y).toFixed(2));
}

function say(id, text) {
  const output = document.getElementById(`say-${id}`);
  if (output.textContent !== text) output.textContent = text;
}

function show() {
  if (!form.checkValidity()) return;
  const [epsilon, delta, prior, people] = Object.values(fields).map((field) => Number(field.value));
  const [least, most] = posterior(epsilon, prior);
  const shares = evenly(0, 1);
  const high = shares.map((p) => [p, posterior(epsilon, p)[1]]);
  const low = shares.map((p) => [p, posterior(epsilon, p)[0]]);
  draw("posterior", "posterior-high", high);
  draw("posterior", "posterior-low", low);
  draw("posterior", "posterior-band", [...high, ...low.reverse()], true);
  mark("posterior", "posterior-least", prior, least);
  mark("posterior", "posterior-most", prior, most);
  say("prior", share(prior));
  say("least", share(least));
  say("most", share(most));
  say("factor", number(Math.exp(epsilon)));
  say("delta", number(delta));
  document.getElementById("about-delta").hidden = delta === 0;

  const curve = shares.map((a) => [a, tradeoff(epsilon, delta, a)]);
  draw("tradeoff", "tradeoff-curve", curve);
  draw("tradeoff", "tradeoff-area", [[0, 0], ...curve], true);
  mark("tradeoff", "tradeoff-mark", FALSE_ALARMS, tradeoff(epsilon, delta, FALSE_ALARMS));
  say("misses", share(tradeoff(epsilon, delta, FALSE_ALARMS)));

  const [cheapest, dearest] = [Number(fields.epsilon.min), Number(fields.epsilon.max)];
  const prices = evenly(Math.log(cheapest), Math.log(dearest), 2 * STEPS - 1).map(Math.exp);
  draw("error", "error-curve", prices.map((e) => [e, countError(e)]));
  draw("error", "error-sampling", [cheapest, dearest].map((e) => [e, samplingError(people)]));
  mark("error", "error-mark", epsilon, countError(epsilon));
  say("count", number(countError(epsilon)));
  say("people", number(people, 9));
  say("relative", share(countError(epsilon) / people, 2));
  say("mean", number(meanError(epsilon, people), 2));
  say("sampling", number(samplingError(people), 2));
  summarise(
    `At ε ${fields.epsilon.value}, a belief of ${share(prior)} can become ${share(least)} to ${share(most)}, ` +
      `a test must miss ${share(tradeoff(epsilon, delta, FALSE_ALARMS))}, and a count is within ±${countError(epsilon)}.`,
  );
}

// One sentence for screen readers, once the slider rests.
function summarise(sentence) {
  const summary = document.getElementById("summary");
  clearTimeout(resting);
  resting = setTimeout(() => {
    summary.textContent = sentence;
  }, 700);
}

const toField = {
  log: (v) => Number((10 ** v).toPrecision(2)),
  "log-or-zero": (v) => (v < -12 ? 0 : Number((10 ** v).toPrecision(1))),
  plain: (v) => v,
};
const toSlider = {
  log: (v) => Math.log10(v),
  "log-or-zero": (v) => (v > 0 ? Math.log10(v) : -12.1),
  plain: (v) => v,
};

for (const slider of form.querySelectorAll("input[type=range]")) {
  const field = fields[slider.dataset.for];
  const scale = slider.dataset.scale;
  const follow = () => {
    slider.value = toSlider[scale](Number(field.value));
    slider.setAttribute("aria-valuetext", field.value);
  };
  slider.hidden = false;
  slider.addEventListener("input", () => {
    field.value = toField[scale](Number(slider.value));
    slider.setAttribute("aria-valuetext", field.value);
    show();
  });
  field.addEventListener("input", () => {
    follow();
    show();
  });
  follow();
}
document.getElementById("show").hidden = true;
form.addEventListener("submit", (event) => {
  event.preventDefault();
  show();
});
show();
