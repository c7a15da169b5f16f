//! All systems against the naive scan, and against the table of named cases that the engines of `enroute-matcher`
//! answer.

mod cases;
#[path = "../../../matcher/tests/it/inputs.rs"]
mod inputs;
mod large;
mod random;
