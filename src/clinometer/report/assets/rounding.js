"use strict";
// How numbers are written, just as rounding.py writes them.
const rounding = (() => {
  const MISSING = "–";
  const minus = (text) => text.replaceAll("-", "−");
  const plain = (value) => (value === null || value === undefined ? MISSING : value);

  function estimate(value) {
    if (typeof value !== "number") return plain(value);
    if (value === 0) return "0";
    const size = Math.abs(value);
    const sign = value < 0 ? "−" : "";
    if (size >= 100) return sign + Math.floor(size + 0.5);
    if (size < 0.001) return minus(sign + size.toExponential(2));
    return sign + size.toPrecision(3);
  }

  function interval(ends) {
    const [low, high] = ends;
    return low === null && high === null ? MISSING : `[${estimate(low)}, ${estimate(high)}]`;
  }

  function probability(value) {
    if (typeof value !== "number") return plain(value);
    return value < 0.001 ? "<0.001" : value.toFixed(3);
  }

  const count = (value) => value.toLocaleString("en-US");
  const label = (value) => String(plain(value));
  return { estimate, interval, probability, count, label };
})();
