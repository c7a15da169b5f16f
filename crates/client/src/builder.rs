//! How a client finds its broker.

use crate::connector::Connector;
use enroute_session::{Client, ClientError, Options, SlowSubscriber};
use libp2p::Multiaddr;
use libp2p::identity::Keypair;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Connects to the broker at an address, with or without `/p2p/ID` at its end; with it, nobody else is accepted there.
///
/// # Errors
/// As [`Builder::connect`].
pub async fn connect(address: Multiaddr) -> Result<Client, ClientError> {
    Builder::new(address).connect().await
}

/// Describes a client's connection.
#[derive(Clone, Debug)]
pub struct Builder {
    address: Multiaddr,
    keypair: Option<Keypair>,
    options: Options,
}

impl Builder {
    /// A client of the broker at an address.
    pub fn new(address: Multiaddr) -> Builder {
        let software = concat!("enroute-client ", env!("CARGO_PKG_VERSION")).to_owned();
        Builder { address, keypair: None, options: Options { software, ..Options::default() } }
    }

    /// Uses a key instead of a new one, so that the broker sees the same peer id each time.
    #[must_use]
    pub fn keypair(mut self, keypair: Keypair) -> Builder {
        self.keypair = Some(keypair);
        self
    }

    /// Connects again after a loss and places advertisements and subscriptions again; [`Client::next_notice`] tells of it.
    #[must_use]
    pub fn reconnect(mut self, reconnect: bool) -> Builder {
        self.options.reconnect = reconnect;
        self
    }

    /// What the broker does when this client takes deliveries more slowly than they come.
    #[must_use]
    pub fn slow_subscriber(mut self, policy: SlowSubscriber) -> Builder {
        self.options.slow_subscriber = Some(policy);
        self
    }

    /// Deliveries that may wait in this process. Default: 4,096.
    #[must_use]
    pub fn delivery_window(mut self, deliveries: usize) -> Builder {
        self.options.delivery_window = deliveries;
        self
    }

    /// Name and version of the software, told to the broker.
    #[must_use]
    pub fn software(mut self, software: impl Into<String>) -> Builder {
        self.options.software = software.into();
        self
    }

    /// Connects, on the current tokio runtime.
    ///
    /// # Errors
    /// [`ClientError::Address`], [`ClientError::Unreachable`], [`ClientError::HelloRefused`], [`ClientError::Protocol`],
    /// [`ClientError::Disconnected`].
    pub async fn connect(self) -> Result<Client, ClientError> {
        let keypair = self.keypair.unwrap_or_else(Keypair::generate_ed25519);
        let connector = Arc::new(Mutex::new(Connector::new(keypair, self.address)?));
        let connect = move || {
            let connector = Arc::clone(&connector);
            async move { connector.lock().await.connect().await }
        };
        Client::start(connect, self.options).await
    }
}
