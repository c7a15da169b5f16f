//! What is going to be published, and whether anybody wants it.

use crate::event_loop::ControlInput;
use crate::{Client, ClientError, Interested, Node, Publication};
use enroute_broker::Receipt;
use enroute_filter::{Event, Filter};
use tokio::sync::{oneshot, watch};

/// The name of the advertisement in its session, where it is the only one.
const NAME: &str = "advertisement";

/// An advertisement of its own session with the node, made by [`Node::advertise`]: it says what will be published, publishes it, and
/// tells whether anybody wants it. Withdrawn when it is dropped.
pub struct Advertisement {
    client: Client,
    interest: watch::Receiver<Interested>,
}

impl Advertisement {
    /// Whether anybody wants what is advertised, or some of it: follow it to be woken when that changes. While it is
    /// [`Interested::No`] there is no need to make an event; [`Interested::Unknown`] is no reason not to. It ends when the
    /// node stops.
    ///
    /// ```no_run
    /// # async fn example(node: enroute_node::Node) -> Result<(), Box<dyn std::error::Error>> {
    /// # use enroute_node::Interested;
    /// # async fn measure() -> enroute_filter::Event { enroute_filter::Event::builder().build().expect("an event") }
    /// let readings = node.advertise("device = 'd1' AND celsius IS NOT NULL".parse()?).await?;
    /// let mut interest = readings.interest();
    /// // Sleeps as long as nobody wants to know.
    /// while interest.wait_for(|interest| *interest != Interested::No).await.is_ok() {
    ///     readings.publish(measure().await).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn interest(&self) -> watch::Receiver<Interested> {
        self.interest.clone()
    }

    /// As [`Client::publish`].
    ///
    /// # Errors
    /// [`ClientError::Refused`] if the event is not what is advertised, else as [`Client::publish`].
    pub async fn publish(&self, event: Event) -> Result<Receipt, ClientError> {
        self.client.publish(event).await
    }

    /// As [`Client::publish_nowait`].
    ///
    /// # Errors
    /// As [`Client::publish_nowait`].
    pub async fn publish_nowait(&self, event: Event) -> Result<Publication, ClientError> {
        self.client.publish_nowait(event).await
    }
}

impl Node {
    /// Says what will be published, and follows whether anybody wants it. Returns when the network is ready for it, or when the
    /// wait for others (10 s) has run out.
    ///
    /// # Errors
    /// As [`Node::client`] and [`Client::advertise`].
    pub async fn advertise(&self, filter: Filter) -> Result<Advertisement, ClientError> {
        let client = self.client().await?;
        client.advertise(NAME, filter.clone()).await?;
        let (sender, mut interest) = watch::channel(Interested::Unknown);
        let stopped = || ClientError::Disconnected { reason: "the node has stopped".into() };
        self.context.control.send(ControlInput::Watch { filter, interest: sender }).await.map_err(|_| stopped())?;
        interest.changed().await.map_err(|_| stopped())?;
        Ok(Advertisement { client, interest })
    }

    /// Whether anybody wants an event, should it be published here now: a client of this broker, or anybody beyond. It is known
    /// only of what is advertised; and a leaf broker without an uplink does not know. Costs what matching the event costs.
    pub async fn interested(&self, event: &Event) -> Interested {
        let (answer, interested) = oneshot::channel();
        let question = ControlInput::Interested { event: event.clone(), answer };
        match self.context.control.send(question).await {
            Ok(()) => interested.await.unwrap_or(Interested::Unknown),
            Err(_) => Interested::Unknown,
        }
    }
}
