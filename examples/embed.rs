//! A broker inside one's own program, and a client of it in the same process.
//!
//! `cargo run -p enroute-examples --bin embed`

use enroute_filter::{Event, Filter};
use enroute_node::Node;
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Other brokers would be named by `.peer(…)`; with `.data_dir(…)` the identity outlives the program.
    let node = Node::builder().listen("/ip4/127.0.0.1/tcp/0".parse()?).start().await?;
    println!("broker {} listens at {}", node.id(), node.addresses()[0]);

    let client = node.client().await?;
    client.subscribe("warm", Filter::parse("kind = 'reading' and celsius > 25")?).await?;
    for celsius in [20, 30] {
        client.publish(Event::builder().attribute("kind", "reading").attribute("celsius", celsius).build()?).await?;
    }
    if let Some(delivery) = client.next().await {
        println!("received {}", delivery.event.to_json());
    }
    client.close().await;
    node.shutdown().await;
    Ok(())
}
