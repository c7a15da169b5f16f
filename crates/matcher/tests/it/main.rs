//! All engines against the naive scan, and against a table of named cases; and what they take.

mod allocation;
mod boundaries;
mod cases;
mod chance;
mod engine;
mod inputs;
mod large;
mod memory;
mod model;
mod patterns;
mod random;
mod sizes;
mod threads;
mod workloads;
