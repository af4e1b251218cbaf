// Numbers as people read them: the same as web/formats.py.

const THIN = "\u202f";

export function number(value, digits = 3) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -4) {
    const [front, power] = value.toExponential(digits - 1).split("e");
    return `${trimmed(front)} × 10`.replaceAll("-", "−") + raised(Number(power));
  }
  const [whole, rest] = value.toFixed(Math.max(0, digits - 1 - size)).split(".");
  const apart = whole.replace(/\B(?=(\d{3})+$)/g, THIN);
  return (rest === undefined ? apart : trimmed(`${apart}.${rest}`)).replaceAll("-", "−");
}

export function share(value, digits = 1) {
  return `${(100 * value).toFixed(digits)}${THIN}%`.replaceAll("-", "−");
}

function trimmed(text) {
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

function raised(power) {
  return [...String(power)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
}
