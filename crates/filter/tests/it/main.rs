//! What the crate promises, seen from outside.

mod january;
mod language;
mod properties;
