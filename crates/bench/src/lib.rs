//! Measures the matching engine beside the systems of the literature, on workloads that anyone can draw again, and whole
//! networks beside others' ([`forward`]).
//!
//! - [`workload`]: seeded subscriptions and events.
//! - [`contender`]: the engines, and one peer ([`atree`]).
//! - [`measure`] and [`report`]: one run of some engines on one workload.
//! - [`churn`]: one engine whose subscriptions come and go.
//! - [`covering`] and [`merging`]: the covering forest, and what is announced of its roots.
//! - [`leaves`]: what goes over the uplinks of leaf brokers, by what they announce.
//! - [`paper`]: the papers' experiments.
//! - [`forward`]: events through brokers that are processes of their own.
//! - [`allocation`], [`clock`], [`machine`], [`random`]: what measuring and drawing need.

pub mod allocation;
#[cfg(feature = "a-tree")]
pub mod atree;
pub mod churn;
pub mod clock;
pub mod contender;
pub mod covering;
pub mod forward;
pub mod leaves;
pub mod machine;
pub mod measure;
pub mod merging;
pub mod paper;
pub mod random;
pub mod report;
pub mod workload;
