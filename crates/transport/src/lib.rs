//! Encryption and multiplexing over a byte stream, with few system calls and bounded memory.
//!
//! yamux cuts what is written into frames of 16 KiB and flushes after each, and noise reads 8 KiB at a time: over a bare socket
//! that is a system call for every 16 KiB written, with all that the receiver does each time, and one for every 8 KiB read.
//! [`Multiplexer`] makes larger frames, [`Noise`] puts a [`Gathering`] between noise and the socket, and TLS gathers by
//! itself. Others understand what travels as before.
//!
//! [`Security`] is what nodes and clients use: TLS 1.3 and noise, in the order that suits the processor.

mod gathering;
mod multiplexer;
mod noise;
#[cfg(feature = "tls")]
mod security;
#[cfg(feature = "tls")]
mod tls;

pub use gathering::Gathering;
pub use multiplexer::{Multiplexer, Streams};
pub use noise::Noise;
/// All that connections may be encrypted with: noise alone, without the feature `tls`.
#[cfg(not(feature = "tls"))]
pub use noise::Noise as Security;
#[cfg(feature = "tls")]
pub use security::{Security, SecurityError};
#[cfg(feature = "tls")]
pub use tls::TlsError;
