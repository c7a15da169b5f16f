//! Clients: sessions with real brokers, and what comes over them.

use crate::oracle::Oracle;
use enroute_client::{Builder, Client, ClientError, Keypair, Multiaddr};
use enroute_filter::Filter;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// The oracle, which all that happens is told.
#[derive(Clone, Default)]
pub(crate) struct Books(Arc<Mutex<Oracle>>);

impl Books {
    /// The oracle, at a new moment.
    pub(crate) fn with<T>(&self, note: impl FnOnce(&mut Oracle) -> T) -> T {
        let mut oracle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        oracle.book.tick();
        note(&mut oracle)
    }

    /// Something is wrong.
    pub(crate) fn complain(&self, complaint: String) {
        self.with(|oracle| oracle.book.complain(complaint));
    }
}

/// A client, through all its connections.
pub(crate) struct Person {
    pub(crate) name: String,
    /// The broker it belongs to.
    pub(crate) home: usize,
    pub(crate) session: Option<Session>,
    /// How many sessions it has had.
    pub(crate) sessions: u64,
    /// What it wants to stand, by name.
    pub(crate) subscriptions: BTreeMap<String, Filter>,
    pub(crate) advertisements: BTreeMap<String, Filter>,
}

/// A connection.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The peer id that the broker knows it by.
    pub(crate) peer_id: String,
    received: Arc<AtomicU64>,
    reading: JoinHandle<()>,
}

impl Session {
    /// Connects a client, by its number, and reads what comes.
    pub(crate) async fn open(address: Multiaddr, books: Books, number: (usize, u64)) -> Result<Session, ClientError> {
        let keypair = Keypair::generate_ed25519();
        let peer_id = keypair.public().to_peer_id().to_string();
        let client = Builder::new(address).keypair(keypair).connect().await?;
        let received = Arc::new(AtomicU64::new(0));
        let reading = tokio::spawn({
            let (client, received) = (client.clone(), Arc::clone(&received));
            async move {
                while let Some(delivery) = client.next().await {
                    books.with(|oracle| oracle.delivered(number.0, number.1, &delivery.event, &delivery.subscriptions));
                    received.fetch_add(1, Ordering::Release);
                }
            }
        });
        Ok(Session { client, peer_id, received, reading })
    }

    /// Deliveries so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// Closes it, if the broker has not, and waits until all that came is noted down.
    pub(crate) async fn end(self) {
        self.client.close().await;
        // It ends with the session.
        let _ = self.reading.await;
    }
}
