//! The protocol core as its driver sees it.

mod costs;
mod invariants;
mod leases;
mod leaves;
mod letters;
mod merging;
mod scopes;
mod transcript;
mod world;
