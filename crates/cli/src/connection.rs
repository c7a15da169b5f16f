//! The session of a command with a broker.

use crate::arguments;
use crate::commands::run::DEFAULT_LISTEN;
use crate::failure::Failure;
use crate::output::tell;
use clap::Args;
use enroute_client::{Builder, Client, ClientError, Multiaddr, Notice, Subscribed};
use enroute_filter::Filter;
use std::time::Duration;
use tokio::time::timeout;

/// How long the end of a session may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// Which broker to talk to.
#[derive(Args)]
pub(crate) struct BrokerOption {
    /// The broker's address, with or without /p2p/ID
    #[arg(
        long,
        value_name = "MULTIADDR",
        env = "ENROUTE_BROKER",
        default_value = DEFAULT_LISTEN,
        value_parser = arguments::address
    )]
    broker: Multiaddr,
}

impl BrokerOption {
    /// A session that ends with its connection.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        self.session(false).await
    }

    /// A session that connects again whenever its connection is lost, and restores what it had asked for.
    pub(crate) async fn connect_for_good(&self) -> Result<Client, Failure> {
        self.session(true).await
    }

    async fn session(&self, reconnect: bool) -> Result<Client, Failure> {
        let software = concat!("enroute ", env!("CARGO_PKG_VERSION"));
        let builder = Builder::new(self.broker.clone()).software(software).reconnect(reconnect);
        builder.connect().await.map_err(|error| no_broker(&error))
    }
}

fn no_broker(error: &ClientError) -> Failure {
    Failure::new("no broker to talk to")
        .because(error)
        .hint("`enroute run` starts one; --broker or ENROUTE_BROKER names another")
}

/// Ends a session in good order, if the broker lets it.
pub(crate) async fn say_goodbye(client: &Client) {
    // If not, it sees the connection end.
    let _ = timeout(GOODBYE, client.close()).await;
}

/// Makes advertisements, called 1, 2, …, and says how far each has got.
pub(crate) async fn advertise_all(client: &Client, filters: Vec<Filter>) -> Result<(), Failure> {
    for (name, filter) in (1u64..).zip(filters) {
        let answer = client.advertise(&name.to_string(), filter).await;
        let answer = answer.map_err(|error| Failure::new("the advertisement was not made").because(&error))?;
        tell(format_args!("advertisement {}", progress(&answer)));
    }
    Ok(())
}

/// Places subscriptions, called 1, 2, …, and says how far each has got.
pub(crate) async fn subscribe_all(client: &Client, filters: Vec<Filter>) -> Result<(), Failure> {
    for (name, filter) in (1u64..).zip(filters) {
        let answer = client.subscribe(&name.to_string(), filter).await;
        let answer = answer.map_err(|error| Failure::new("the subscription was not placed").because(&error))?;
        tell(format_args!("subscription {}", progress(&answer)));
    }
    Ok(())
}

/// How far it has got, in words.
fn progress(answer: &Subscribed) -> String {
    match answer {
        Subscribed::InForce { brokers: 1 } => "in force at 1 broker besides its own".to_owned(),
        Subscribed::InForce { brokers } => format!("in force at {brokers} brokers besides its own"),
        Subscribed::Partial { missing } => {
            let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
            format!("not in force yet: no answer from {}; they will follow", missing.join(", "))
        }
    }
}

/// Says what happens to the connection, until the session is over.
pub(crate) async fn tell_notices(client: &Client) {
    while let Some(notice) = client.next_notice().await {
        tell(describe(&notice));
    }
}

/// What has happened to the connection, in words.
fn describe(notice: &Notice) -> String {
    let answer = |result: &Result<_, _>| match result {
        Ok(answer) => progress(answer),
        Err(error) => format!("refused: {error}"),
    };
    match notice {
        Notice::Disconnected { reason } => format!("{reason}; trying again"),
        Notice::Reconnected { broker } => format!("connected again, to broker {broker}"),
        Notice::Resubscribed { name, result } => format!("subscription {name} {}", answer(result)),
        Notice::Readvertised { name, result } => format!("advertisement {name} {}", answer(result)),
    }
}
