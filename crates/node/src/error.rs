//! What can go wrong with a node.

use libp2p::Multiaddr;
use std::io;
use std::path::PathBuf;

/// Why a node does not start, or what is wrong with what it was told.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// An address cannot be listened at.
    #[error(
        "cannot listen at {address}: {reason} (does another program use the address, is it not one of this machine's, or is it without /tcp/PORT?)"
    )]
    Listen {
        /// The address.
        address: Multiaddr,
        /// What the system or the transport says.
        reason: String,
    },
    /// Another process has the data directory.
    #[error("the data directory {} is in use by another process: stop that one, or choose another directory", .path.display())]
    DataDirInUse {
        /// The directory.
        path: PathBuf,
    },
    /// A file of the data directory cannot be read or written.
    #[error("cannot {action} {}: {source}", .path.display())]
    DataDir {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file of the data directory does not hold what it should.
    #[error("{} is damaged: {reason} (restore it, or remove it to start with a new one)", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Both a key and a data directory with another key were given.
    #[error("the key given is that of {given}, but the one in {} is that of {stored}: give only one of them", .path.display())]
    TwoKeys {
        /// The directory.
        path: PathBuf,
        /// The peer id of the key that was given.
        given: String,
        /// The peer id of the stored key.
        stored: String,
    },
    /// A configuration cannot be read.
    #[error("invalid configuration: {0}")]
    Config(String),
    /// The transports cannot be set up.
    #[error("cannot set up the transports: {0}")]
    Transport(String),
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}
