//! What can go wrong for a client.

use enroute_broker::Refusal;
use enroute_wire::{HelloRefused, WireError};

/// Why something a client asked for did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The address is none that can be dialled.
    #[error("cannot dial {address}: {reason}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No broker answers at the address.
    #[error("cannot reach a broker at {address}: {reason} (is it running, and does it listen there?)")]
    Unreachable {
        /// The address.
        address: String,
        /// What the transport says.
        reason: String,
    },
    /// The broker does not take this client.
    #[error("the broker refuses this client: {}", .0.text)]
    HelloRefused(HelloRefused),
    /// The broker has refused a request; nothing has changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A request is beyond the protocol's limits and was not sent.
    #[error("this cannot be sent: {0}")]
    Unsendable(WireError),
    /// The connection is gone. Whether an unanswered request took effect is not known.
    #[error("the connection to the broker is lost: {reason}")]
    Disconnected {
        /// Why.
        reason: String,
    },
    /// The broker does not keep to the protocol.
    #[error("the broker broke the protocol: {reason}")]
    Protocol {
        /// How.
        reason: String,
    },
}

impl ClientError {
    pub(crate) fn disconnected(reason: impl Into<String>) -> ClientError {
        ClientError::Disconnected { reason: reason.into() }
    }

    pub(crate) fn protocol(reason: impl ToString) -> ClientError {
        ClientError::Protocol { reason: reason.to_string() }
    }
}
