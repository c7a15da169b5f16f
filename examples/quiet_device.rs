//! A device with a broker of its own, a leaf, that measures all the time, but publishes only what somebody wants to know.
//!
//! `cargo run -p enroute-examples --bin quiet_device`

use enroute_filter::{Event, Filter};
use enroute_node::{Advertisement, Interested, Node};
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let site = Node::builder().listen("/ip4/127.0.0.1/tcp/0".parse()?).start().await?;
    let device = Node::builder().leaf(site.addresses()).start().await?;

    // Having said what it will publish, the device hears only of subscriptions that this could match.
    let readings = device.advertise(Filter::parse("device = 'd1' and celsius is not null")?).await?;
    let mut interest = readings.interest();
    interest.wait_for(|interest| *interest == Interested::No).await?;
    println!("nobody listens: {} published", measure(&device, &readings).await?);

    let office = site.client().await?;
    office.subscribe("hot", Filter::parse("celsius >= 30")?).await?;
    interest.wait_for(|interest| *interest == Interested::Yes).await?;
    println!("the office listens: {} published", measure(&device, &readings).await?);
    for _ in 0..2 {
        let Some(delivery) = office.next().await else { break };
        println!("the office received {}", delivery.event.to_json());
    }
    device.shutdown().await;
    site.shutdown().await;
    Ok(())
}

/// Takes some readings; how many of them were published.
async fn measure(device: &Node, readings: &Advertisement) -> Result<u32, Box<dyn Error>> {
    let mut published = 0;
    for celsius in [21, 26, 31, 36] {
        let reading = Event::builder().attribute("device", "d1").attribute("celsius", celsius).build()?;
        if device.interested(&reading).await != Interested::No {
            readings.publish(reading).await?;
            published += 1;
        }
    }
    Ok(published)
}
