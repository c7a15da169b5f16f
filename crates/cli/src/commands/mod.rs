//! The commands, one a file.

pub(crate) mod advertise;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod filter;
pub(crate) mod key;
pub(crate) mod publish;
pub(crate) mod run;
pub(crate) mod status;
pub(crate) mod subscribe;
