//! A device with a broker of its own that measures all the time, but publishes only what somebody wants to know.
//!
//! `cargo run -p enroute-examples --bin quiet_device`

use enroute_filter::{Event, Filter};
use enroute_node::{Client, Node};
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let anywhere = "/ip4/127.0.0.1/tcp/0";
    let site = Node::builder().listen(anywhere.parse()?).start().await?;
    let device = Node::builder().listen(anywhere.parse()?).peer(site.addresses()[0].clone()).start().await?;

    // Having said what it will publish, the device hears only of subscriptions that this could match.
    let sensor = device.client().await?;
    sensor.advertise("readings", Filter::parse("device = 'd1' and celsius is not null")?).await?;
    println!("nobody listens: {} published", measure(&sensor).await?);

    let office = site.client().await?;
    office.subscribe("hot", Filter::parse("celsius >= 30")?).await?;
    println!("the office listens: {} published", measure(&sensor).await?);
    for _ in 0..2 {
        let Some(delivery) = office.next().await else { break };
        println!("the office received {}", delivery.event.to_json());
    }
    device.shutdown().await;
    site.shutdown().await;
    Ok(())
}

/// Takes some readings; how many of them were published.
async fn measure(sensor: &Client) -> Result<u32, Box<dyn Error>> {
    let worth_telling = Filter::parse("celsius >= 25")?;
    // Filters of other brokers that could match what this one's clients publish.
    let interest: u64 = sensor.status().await?.broker.brokers.iter().map(|broker| broker.interest).sum();
    let mut published = 0;
    for celsius in [21, 26, 31, 36] {
        let reading = Event::builder().attribute("device", "d1").attribute("celsius", celsius).build()?;
        if interest > 0 && worth_telling.matches(&reading) {
            sensor.publish(reading).await?;
            published += 1;
        }
    }
    Ok(published)
}
