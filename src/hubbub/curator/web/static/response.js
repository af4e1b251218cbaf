// Randomised response in the respondent's own browser, exactly: the same algorithm, on the same integers, as
// hubbub.mechanisms.RandomizedResponse. Whole numbers are BigInts of any size; no floating point takes part.
//
// U is a uniform number in [0, 1) of which ever more bits are revealed, 64 at a time. An answer is kept if U < p, where
// p = 1 / (1 + (categories - 1) e**-epsilon) is enclosed between integers that every operation rounds outwards. Where
// the bits known so far do not settle the comparison, more bits of the same U are drawn: nothing is truncated.

const WORD = 64n;
const GUARD = 32n; // bits by which p is enclosed more narrowly than U is known

// [low, high] with low <= 2**bits e**-(numerator/denominator) <= high, for an exponent >= 0.
export function expMinus(numerator, denominator, bits) {
  const one = 1n << bits;
  if (numerator === 0n) return [one, one];
  if (numerator > bits * denominator) return [0n, 1n];
  const halvings = BigInt((numerator / denominator).toString(2).length) + 8n;
  const work = bits + 2n * halvings + 8n;
  const scale = denominator << halvings;
  let termLow = 1n << work;
  let [termHigh, low, high] = [termLow, termLow, termLow];
  for (let n = 1n, falling = true; termHigh > 1n; n += 1n, falling = !falling) {
    termLow = (termLow * numerator) / (scale * n);
    termHigh = up(termHigh * numerator, scale * n);
    if (falling) [low, high] = [low - termHigh, high - termLow];
    else [low, high] = [low + termLow, high + termHigh];
  }
  [low, high] = [low - 1n, high + 1n];
  for (let i = 0n; i < halvings; i += 1n) [low, high] = [(low * low) >> work, up(high * high, 1n << work)];
  const shift = 1n << (work - bits);
  const top = up(high, shift);
  return [low / shift, top < one ? top : one];
}

// [low, high] around 2**bits p.
export function keepEnclosure(numerator, denominator, categories, bits) {
  const one = 1n << bits;
  const others = BigInt(categories - 1);
  const [low, high] = expMinus(numerator, denominator, bits);
  return [(one << bits) / (one + others * high), up(one << bits, one + others * low)];
}

// Whether U < p, where words are the bits of U in order.
export function keeps(numerator, denominator, categories, nextWord) {
  let [prefix, known] = [nextWord(), WORD];
  for (;;) {
    const [low, high] = keepEnclosure(numerator, denominator, categories, known + GUARD);
    if ((prefix + 1n) << GUARD <= low) return true;
    if (prefix << GUARD >= high) return false;
    [prefix, known] = [(prefix << WORD) | nextWord(), known + WORD];
  }
}

// A uniform whole number below a bound, from the first bits of a word, redrawn while too large.
export function below(bound, nextWord) {
  const length = bound > 1 ? BigInt((bound - 1).toString(2).length) : 0n;
  if (length === 0n) return 0;
  for (;;) {
    const value = nextWord() >> (WORD - length);
    if (value < BigInt(bound)) return Number(value);
  }
}

// What chance decides for one question, before and independently of any answer. epsilon is [numerator, denominator].
export function throwCoins([numerator, denominator], categories, nextWord = secureWord) {
  const shift = below(categories - 1, nextWord);
  return { shift, keep: keeps(numerator, denominator, categories, nextWord) };
}

// What is sent for an answer.
export function report(answer, coins, categories) {
  return coins.keep ? answer : (answer + 1 + coins.shift) % categories;
}

// A decimal such as "0.25" as [numerator, denominator].
export function decimal(text) {
  const [whole, part = ""] = text.split(".");
  return [BigInt(whole + part), 10n ** BigInt(part.length)];
}

const pool = new BigUint64Array(64);
let left = 0;

// 64 random bits from the browser's cryptographic generator; each is used once.
export function secureWord() {
  if (left === 0) {
    crypto.getRandomValues(pool);
    left = pool.length;
  }
  left -= 1;
  const word = pool[left];
  pool[left] = 0n;
  return word;
}

export function secureName() {
  return [secureWord(), secureWord()].map((word) => word.toString(16).padStart(16, "0")).join("");
}

function up(numerator, denominator) {
  return (numerator + denominator - 1n) / denominator;
}
