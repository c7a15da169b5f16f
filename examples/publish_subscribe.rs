//! Publish and subscribe through a broker elsewhere. It is named by its address; without one the example runs its own.
//!
//! `cargo run -p enroute-examples --bin publish_subscribe -- /ip4/127.0.0.1/tcp/7440`

use enroute_client::connect;
use enroute_filter::{Event, Filter};
use enroute_node::Node;
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (broker, own) = match std::env::args().nth(1) {
        Some(address) => (address.parse()?, None),
        None => {
            let node = Node::builder().listen("/ip4/127.0.0.1/tcp/0".parse()?).start().await?;
            (node.addresses()[0].clone(), Some(node))
        }
    };

    let subscriber = connect(broker.clone()).await?;
    let filter = Filter::parse("kind = 'flight' and dest in ('SFO', 'LAX') and delay >= 60")?;
    let answer = subscriber.subscribe("late to California", filter).await?;
    println!("subscribed: {answer:?}");

    let publisher = connect(broker).await?;
    for (dest, delay) in [("SFO", 75), ("SFO", 5), ("LAX", 60), ("JFK", 90)] {
        let event = Event::builder().attribute("kind", "flight").attribute("dest", dest).attribute("delay", delay);
        publisher.publish(event.build()?).await?;
    }
    for _ in 0..2 {
        let Some(delivery) = subscriber.next().await else { break };
        println!("received {} for {:?}", delivery.event.to_json(), delivery.subscriptions);
    }
    publisher.close().await;
    subscriber.close().await;
    if let Some(node) = own {
        node.shutdown().await;
    }
    Ok(())
}
