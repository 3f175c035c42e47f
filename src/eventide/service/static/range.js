// The range of an axis that a few extreme values do not own.

const [FEW, REACH] = [0.05, 1.5]; // this part at each end counts as few; they are extreme beyond so many times the rest

// From the least to the most of all values that are not extreme; null where none is.
export function robustRange(values) {
  const sorted = Float64Array.from(values.filter((value) => value !== null && Number.isFinite(value))).sort();
  if (!sorted.length) return null;
  const at = (part) => sorted[Math.round(part * (sorted.length - 1))];
  const [least, most] = [sorted[0], sorted[sorted.length - 1]];
  const [low, high] = [Math.min(0, at(FEW)), at(1 - FEW)];
  const reach = REACH * (high - low);
  if (!reach || (least >= low - reach && most <= high + reach)) return null;
  const kept = sorted.filter((value) => value >= low - reach && value <= high + reach);
  return [Math.min(0, kept[0]), kept[kept.length - 1]];
}
