//! Forwarding, from process to process over loopback: a publisher, a chain of brokers, subscribers; peers do the same work.
//!
//! Every broker and client is a process of its own, driven by lines of JSON over its standard input and output ([`role`]). The
//! systems take turns, case by case and round by round, so that ratios hold on a noisy machine. Processor time and memory are
//! read from `/proc`, which makes this a benchmark for Linux.
//!
//! - [`input`]: the events, and subscriptions of others.
//! - [`role`]: what a process is told and answers, and the loops of publisher and subscriber that all systems share.
//! - [`enroute`], [`stream`]: Enroute, and bare libp2p streams with relays that only copy, which is the ceiling. Zenoh, NATS
//!   and Mosquitto are played by the program in `crates/bench/peers`.
//! - [`process`], [`network`], [`mod@run`], [`report`]: the processes of one measurement, the measurements, the table.

mod command;
pub mod enroute;
pub mod input;
pub mod network;
pub mod process;
pub mod report;
pub mod role;
pub mod run;
pub mod stream;

pub use command::{Options, RoleOptions, play, run};
