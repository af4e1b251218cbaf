// The formulas of the page on what epsilon means; tests compare each with hubbub's own.

export function posterior(epsilon, prior) {
  const factor = Math.exp(-epsilon);
  return [
    (prior * factor) / (prior * factor + (1 - prior)),
    prior / (prior + (1 - prior) * factor),
  ];
}

export function tradeoff(epsilon, delta, falseAlarms) {
  const grown = Math.exp(epsilon);
  return Math.max(0, 1 - delta - grown * falseAlarms, (1 - delta - falseAlarms) / grown);
}

// The least k with P(|noise| > k) = 2 q**(k+1) / (1 + q) at most 1 - confidence, where q = e**-epsilon.
export function countError(epsilon, confidence = 0.95) {
  const q = Math.exp(-epsilon);
  const beyond = (k) => (2 * Math.pow(q, k + 1)) / (1 + q);
  let k = Math.max(0, Math.ceil(Math.log(((1 - confidence) * (1 + q)) / 2) / -epsilon - 1) - 1);
  while (beyond(k) > 1 - confidence) k += 1;
  return k;
}

// The mean of n values between 0 and 1, n public.
export function meanError(epsilon, people, confidence = 0.95) {
  return -Math.log(1 - confidence) / epsilon / people;
}

export function samplingError(people) {
  return (1.96 * Math.sqrt(people)) / 2;
}
