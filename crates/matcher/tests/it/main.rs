//! All engines against the naive scan, and against a table of named cases; and what they take.

mod allocation;
mod cases;
mod chance;
mod engine;
mod inputs;
mod large;
mod memory;
mod model;
mod random;
mod workloads;
