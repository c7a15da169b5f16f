//! Enroute's roles.

use crate::allocation;
use crate::forward::input::{Events, foreign, moment_in, wanted};
use crate::forward::role::{Command, Meter, Sender, answer, commands, serve_publisher, serve_subscriber, tell_ready};
use enroute_client::{Builder, Client, SlowSubscriber};
use enroute_node::{FullLink, Node, NodeConfig};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime;

type Failure = Box<dyn Error + Send + Sync>;

/// Requests of the foreign client under way at a time.
const WINDOW: usize = 512;

/// Runs a broker until the standard input ends.
///
/// # Errors
/// If it does not start.
pub fn serve_broker(port: u16, upstream: Option<&str>) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    let node = runtime.block_on(start_broker(port, upstream))?;
    tell_ready(&node.addresses()[0].to_string());
    for command in commands() {
        if let Command::Allocations = command {
            answer(&allocation::blocks());
        }
    }
    runtime.block_on(node.shutdown());
    Ok(())
}

async fn start_broker(port: u16, upstream: Option<&str>) -> Result<Node, Failure> {
    // The publisher is held up rather than its events dropped: so are those of the peers.
    let slow_subscriber = SlowSubscriber::PushBack;
    let config = NodeConfig { slow_subscriber, full_link: FullLink::PushBack, mesh: false, ..NodeConfig::default() };
    let builder = Node::builder().config(config).listen(format!("/ip4/127.0.0.1/tcp/{port}").parse()?);
    let builder = match upstream {
        Some(address) => builder.peer(address.parse()?),
        None => builder,
    };
    Ok(builder.start().await?)
}

/// Publishes as told.
///
/// # Errors
/// If it cannot connect.
pub fn publish(address: &str, body: usize) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let client = runtime.block_on(enroute_client::connect(address.parse()?))?;
    tell_ready("");
    serve_publisher(&mut Publisher { runtime, client, events: Events::new(body) });
    Ok(())
}

struct Publisher {
    runtime: runtime::Runtime,
    client: Client,
    events: Events,
}

impl Sender for Publisher {
    fn send(&mut self, moments: &[u64]) {
        self.runtime.block_on(async {
            for &moment in moments {
                self.client.publish_nowait(self.events.next(moment)).await.expect("the session lives");
            }
        });
    }

    /// The runtime's own timers know milliseconds only, and would send what is due in two at a time.
    fn pass(&mut self, time: Duration) {
        let slept = self.runtime.spawn_blocking(move || std::thread::sleep(time)); // sleep: paces the publisher
        self.runtime.block_on(slept).expect("a sleep does not panic");
    }

    /// Status is asked behind the last event.
    fn finish(&mut self) {
        self.runtime.block_on(self.client.status()).expect("the session lives");
    }
}

/// Subscribes and counts.
///
/// # Errors
/// If it cannot connect or subscribe.
pub fn subscribe(address: &str, connections: usize) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let meter = Arc::new(Meter::default());
    let clients = runtime.block_on(async {
        let mut clients = Vec::new();
        for _ in 0..connections {
            let client = Builder::new(address.parse()?).connect().await?;
            client.subscribe("all", wanted()).await?;
            clients.push(client);
        }
        Ok::<_, Failure>(clients)
    })?;
    for client in clients {
        runtime.spawn(count(client, Arc::clone(&meter)));
    }
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    tell_ready("");
    serve_subscriber(&meter);
    Ok(())
}

async fn count(client: Client, meter: Arc<Meter>) {
    let mut moments = Vec::new();
    while let Some(delivery) = client.next().await {
        moments.push(moment_in(&delivery.event));
        while let Some(delivery) = client.try_next() {
            moments.push(moment_in(&delivery.event));
        }
        meter.take(&moments);
        moments.clear();
    }
}

/// Places subscriptions of others, and keeps them until the standard input ends.
///
/// # Errors
/// If it cannot connect or subscribe.
pub fn subscribe_foreign(address: &str, subscriptions: usize) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = enroute_client::connect(address.parse()?).await?;
        let mut placing = tokio::task::JoinSet::new();
        for (number, filter) in foreign(subscriptions).enumerate() {
            if placing.len() == WINDOW {
                placing.join_next().await.transpose()?.transpose()?;
            }
            let client = client.clone();
            placing.spawn(async move { client.subscribe(&number.to_string(), filter).await });
        }
        while let Some(placed) = placing.join_next().await {
            placed??;
        }
        let reading = tokio::spawn(async move { while client.next().await.is_some() {} });
        tell_ready("");
        tokio::task::spawn_blocking(|| commands::<Command>().for_each(drop)).await?;
        reading.abort();
        Ok(())
    })
}
