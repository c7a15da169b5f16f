//! `enroute sub`: print what matches.

use crate::connection::{BrokerOption, say_goodbye, subscribe_all, tell_notices};
use crate::failure::Failure;
use crate::output::{Output, reader_gone};
use crate::runtime::{Interrupts, this_thread};
use crate::{arguments, filter_text};
use clap::Args;
use data_encoding::BASE64;
use enroute_client::{Client, Delivery};
use enroute_filter::Event;
use serde::Serialize;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// The options.
#[derive(Args)]
pub(crate) struct Options {
    /// What to print; of several filters each is a subscription of its own, called 1, 2, …
    #[arg(value_name = "FILTER", required = true)]
    filters: Vec<String>,
    #[command(flatten)]
    broker: BrokerOption,
    /// Print {"id":…,"subscriptions":[…],"attributes":{…},"payload":"…"} instead of the attributes alone
    ///
    /// A payload that is not UTF-8 stands in base64 under "payload_base64" instead.
    #[arg(long)]
    full: bool,
    /// Stop after this many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Stop after this time, such as 10s; that is a failure if --count is not reached by then
    #[arg(long, value_name = "DURATION", value_parser = arguments::duration)]
    timeout: Option<Duration>,
}

/// One run of the command.
struct Subscriber {
    client: Client,
    output: Output,
    full: bool,
    /// How many events are still to come; none if there is no bound.
    remaining: Option<u64>,
}

/// An event as `--full` shows it.
#[derive(Serialize)]
struct Full<'a> {
    id: String,
    subscriptions: &'a [Arc<str>],
    attributes: &'a Event,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let filters = filter_text::parse_all(&options.filters)?;
    this_thread(async {
        let mut interrupts = Interrupts::new()?;
        let client = interrupts.cut_short(options.broker.connect_for_good()).await?;
        let mut subscriber = Subscriber { client, output: Output::new(), full: options.full, remaining: options.count };
        let work = async {
            subscribe_all(&subscriber.client, filters).await?;
            subscriber.print_all().await
        };
        let ended = tokio::select! {
            result = work => Some(result),
            () = interrupts.next() => Some(Err(Failure::Interrupted)),
            () = reader_gone() => Some(Err(Failure::BrokenPipe)),
            () = after(options.timeout) => None,
        };
        let result = ended.unwrap_or_else(|| subscriber.timed_out(options.count));
        subscriber.finish().await?;
        match result {
            // Who asks for no number has all that came.
            Err(Failure::Interrupted) if options.count.is_none() => Ok(()),
            other => other,
        }
    })
}

impl Subscriber {
    /// Prints events until there are enough. What has come is flushed before more is waited for.
    async fn print_all(&mut self) -> Result<(), Failure> {
        loop {
            while self.remaining != Some(0) {
                let Some(delivery) = self.client.try_next() else { break };
                self.print(&delivery)?;
            }
            self.output.flush()?;
            if self.remaining == Some(0) {
                return Ok(());
            }
            tokio::select! {
                delivery = self.client.next() => match delivery {
                    Some(delivery) => self.print(&delivery)?,
                    None => return Err(Failure::new("the session with the broker is over")),
                },
                () = tell_notices(&self.client) => {}
            }
        }
    }

    fn print(&mut self, delivery: &Delivery) -> Result<(), Failure> {
        self.remaining = self.remaining.map(|remaining| remaining - 1);
        if !self.full {
            return self.output.json(&delivery.event);
        }
        let bytes = delivery.event.payload();
        let payload = std::str::from_utf8(&bytes).ok();
        self.output.json(&Full {
            id: delivery.id.to_string(),
            subscriptions: &delivery.subscriptions,
            attributes: &delivery.event,
            payload,
            payload_base64: payload.is_none().then(|| BASE64.encode(&bytes)),
        })
    }

    /// The time is up.
    fn timed_out(&self, count: Option<u64>) -> Result<(), Failure> {
        match (count, self.remaining) {
            (Some(count), Some(remaining)) if remaining > 0 => {
                Err(Failure::new(format!("the time is up after {} of {count} events", count - remaining)))
            }
            _ => Ok(()),
        }
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        say_goodbye(&self.client).await;
        self.output.flush()
    }
}

async fn after(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => pending().await,
    }
}
