//! All engines against the naive scan, and against a table of named cases.

mod cases;
mod chance;
mod churn;
mod engine;
mod inputs;
mod large;
mod random;
