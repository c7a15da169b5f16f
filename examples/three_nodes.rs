//! Three brokers: what is published at one of them reaches a subscriber at another, and nobody else. Each knows the address of one
//! other; further links they make by themselves.
//!
//! `cargo run -p enroute-examples --bin three_nodes`

use enroute_filter::{Event, Filter};
use enroute_node::Node;
use std::error::Error;
use std::time::Duration;
use tokio::time::sleep;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let anywhere = "/ip4/127.0.0.1/tcp/0";
    let east = Node::builder().listen(anywhere.parse()?).start().await?;
    let middle = Node::builder().listen(anywhere.parse()?).peer(east.addresses()[0].clone()).start().await?;
    let west = Node::builder().listen(anywhere.parse()?).peer(middle.addresses()[0].clone()).start().await?;

    // Links come up by themselves, soon.
    while west.status().await?.broker.brokers.iter().filter(|broker| broker.distance > 0).count() < 2 {
        sleep(Duration::from_millis(10)).await;
    }

    // The answer comes when every broker in reach knows: nothing that is published from then on is missed.
    let subscriber = west.client().await?;
    subscriber.subscribe("large", Filter::parse("magnitude >= 5")?).await?;

    let publisher = east.client().await?;
    for magnitude in [3.5, 6.1] {
        let event = Event::builder().attribute("kind", "earthquake").attribute("magnitude", magnitude).build()?;
        let receipt = publisher.publish(event).await?;
        println!("magnitude {magnitude}: sent to {} brokers", receipt.destinations);
    }
    if let Some(delivery) = subscriber.next().await {
        println!("west received {}", delivery.event.to_json());
    }
    for node in [west, middle, east] {
        node.shutdown().await;
    }
    Ok(())
}
