//! The protocol core as its driver sees it.

mod invariants;
mod transcript;
mod world;
