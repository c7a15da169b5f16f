//! A small device: a leaf broker on one thread and over TCP, which tells its readings only while somebody wants to know.
//!
//! `cargo build --profile edge --no-default-features -p enroute-examples --bin edge` makes it small (without TLS, as noise is
//! encryption enough); `examples/edge-size.sh` measures it.
//! `target/edge/edge /ip4/127.0.0.1/tcp/7440` runs it below a broker, or below the first of several that can be had.

use enroute_filter::{Event, Filter};
use enroute_node::{Interested, Multiaddr, Node};
use std::error::Error;
use std::time::Duration;
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let uplinks = std::env::args().skip(1).map(|address| address.parse()).collect::<Result<Vec<Multiaddr>, _>>()?;
    if uplinks.is_empty() {
        return Err("usage: edge MULTIADDR...".into());
    }
    let device = Node::builder().leaf(uplinks).start().await?;
    println!("leaf broker {}", device.id());

    let readings = device.advertise(Filter::parse("device = 'd1' and celsius is not null")?).await?;
    let mut interest = readings.interest();
    for celsius in (20..40).cycle() {
        // As long as nobody wants to know, nothing is measured, and nothing wakes up here.
        if *interest.borrow_and_update() == Interested::No {
            println!("nobody wants to know");
            interest.wait_for(|interest| *interest != Interested::No).await?;
        }
        let reading = Event::builder().attribute("device", "d1").attribute("celsius", celsius).build()?;
        readings.publish(reading).await?;
        sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}
