// The input of every measured job, as benchmarks/payload.py.

export const TEXT = "a payload of a hundred bytes or so, as a small job usually carries around";
