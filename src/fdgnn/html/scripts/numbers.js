// Numbers as people read them.

// A number with so many digits that count.
export const written = (value, digits = 5) => `${value < 0 ? "−" : ""}${Number(Math.abs(value).toPrecision(digits))}`;

// A number with its sign, and a minus that is as wide as a plus.
export const signed = (value, digits = 3) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
