//! NATS with its own client library for Rust, as an application would use it.

use crate::Failure;
use crate::role::{Meter, STAMP, Sender, moment_of, serve_subscriber, tell_ready};
use async_nats::{Client, ConnectOptions};
use bytes::Bytes;
use futures::StreamExt;
use std::sync::Arc;
use tokio::runtime::Runtime;

const SUBJECT: &str = "bench.x";
/// Messages that may wait for a subscriber: the library drops what is more, and none is to be lost.
const WAITING: usize = 1 << 22;

fn connect(runtime: &Runtime, address: &str) -> Result<Client, Failure> {
    Ok(runtime.block_on(ConnectOptions::new().subscription_capacity(WAITING).connect(address))?)
}

pub(crate) struct Publisher {
    runtime: Runtime,
    client: Client,
    message: Vec<u8>,
}

impl Publisher {
    pub(crate) fn connect(address: &str, body: usize) -> Result<Publisher, Failure> {
        let runtime = Runtime::new()?;
        let client = connect(&runtime, address)?;
        tell_ready("");
        Ok(Publisher { runtime, client, message: vec![0; body.max(STAMP)] })
    }
}

impl Sender for Publisher {
    fn send(&mut self, moments: &[u64]) {
        let Publisher { runtime, client, message } = self;
        runtime.block_on(async {
            for moment in moments {
                message[..STAMP].copy_from_slice(&moment.to_le_bytes());
                let message = Bytes::copy_from_slice(message);
                client.publish(SUBJECT, message).await.expect("the connection lives");
            }
        });
    }

    fn finish(&mut self) {
        self.runtime.block_on(self.client.flush()).expect("the connection lives");
    }
}

pub(crate) fn subscribe(address: &str, connections: usize) -> Result<(), Failure> {
    let runtime = Runtime::new()?;
    let meter = Arc::new(Meter::default());
    for _ in 0..connections {
        let client = connect(&runtime, address)?;
        let mut subscriber = runtime.block_on(client.subscribe(SUBJECT))?;
        runtime.block_on(client.flush())?;
        let counting = Arc::clone(&meter);
        runtime.spawn(async move {
            // Kept open.
            let _client = client;
            while let Some(message) = subscriber.next().await {
                counting.take(&[moment_of(&message.payload)]);
            }
        });
    }
    tell_ready("");
    serve_subscriber(&meter);
    Ok(())
}
