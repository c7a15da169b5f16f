//! What the crate promises, seen from outside.

mod january;
mod json;
mod language;
mod properties;
