//! The protocol core as its driver sees it.

mod costs;
mod invariants;
mod leases;
mod leaves;
mod transcript;
mod world;
