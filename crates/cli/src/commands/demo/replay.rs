//! The clients of the demo: six subscribers, and a publisher at each airport.

use super::network::Network;
use super::scenario::{self, AIRPORTS, BROKERS, END_KIND, Entry, SUBSCRIPTIONS};
use crate::failure::Failure;
use enroute_broker::EventId;
use enroute_client::{Client, ClientError, Delivery, Publication, Subscribed};
use enroute_filter::{Event, Filter, ValueRef};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// Publications of one airport whose receipts are still to come.
const WINDOW: usize = 1024;
/// How long a subscriber waits for the closing events once all is published.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came of a replay.
pub(super) struct Replayed {
    /// Events published, without the closing ones.
    pub(super) published: u64,
    /// Publications that went out before all brokers had said what they want.
    pub(super) incomplete: u64,
    /// What each subscriber got.
    pub(super) received: [Received; SUBSCRIPTIONS.len()],
    /// From the first publication to the last delivery.
    pub(super) took: Duration,
}

/// What a subscriber got.
#[derive(Clone, Copy, Default)]
pub(super) struct Received {
    /// Distinct events that its filter matches.
    pub(super) matching: u64,
    /// Events that it had before.
    pub(super) duplicates: u64,
    /// Events that its filter does not match.
    pub(super) unwanted: u64,
}

/// Lets everybody subscribe, and then the airports publish; returns when all has come, or nothing more comes.
pub(super) async fn replay(
    network: &Network,
    entries: &[Entry],
    filters: &[Filter; SUBSCRIPTIONS.len()],
    speed: Option<f64>,
) -> Result<Replayed, Failure> {
    let mut publishers = Vec::new();
    for airport in AIRPORTS {
        publishers.push(publisher(network, airport, entries, speed).await?);
    }
    let (all_published, published) = watch::channel(false);
    let mut subscribers = JoinSet::new();
    for (index, filter) in filters.iter().enumerate() {
        let subscriber = subscriber(network, index, filter.clone()).await?;
        subscribers.spawn(subscriber.receive(published.clone()));
    }

    let progress = progress(entries.len() as u64);
    let start = Instant::now();
    let mut publishing = JoinSet::new();
    for publisher in publishers {
        publishing.spawn(publisher.publish_all(start, progress.clone()));
    }
    let mut replayed = Replayed { published: 0, incomplete: 0, received: Default::default(), took: Duration::ZERO };
    while let Some(done) = publishing.join_next().await {
        let (published, incomplete) = done.map_err(|error| Failure::new("a publisher").because(&error))??;
        replayed.published += published;
        replayed.incomplete += incomplete;
    }
    progress.finish_and_clear();
    all_published.send_replace(true);
    let mut done = Vec::new();
    while let Some(subscriber) = subscribers.join_next().await {
        done.push(subscriber.map_err(|error| Failure::new("a subscriber").because(&error))?);
    }
    replayed.took = start.elapsed();
    for mut subscriber in done {
        subscriber.take_what_is_left();
        replayed.received[subscriber.index] = subscriber.received;
    }
    Ok(replayed)
}

/// A client that publishes what happens at its airport, and has said so.
struct Publisher {
    client: Client,
    /// When to publish, counted from the start, and what.
    events: Vec<(Duration, Event)>,
    closing: Event,
}

async fn publisher(
    network: &Network,
    airport: usize,
    entries: &[Entry],
    speed: Option<f64>,
) -> Result<Publisher, Failure> {
    let client = network.client(airport).await?;
    let what = crate::filter_text::parse(&format!("origin = '{}'", BROKERS[airport]))?;
    in_force(client.advertise("airport", what).await)?;
    let first = entries.first().map_or(0, |entry| entry.hour.0);
    let due = |entry: &Entry| match speed {
        // Whoever asks for a millionth of real time has to wait; a century is as good as for ever.
        Some(speed) => {
            let seconds = (entry.hour.0 - first) as f64 / 1e9 / speed;
            Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).min(Duration::from_secs(100 * 365 * 86_400))
        }
        None => Duration::ZERO,
    };
    let own = entries.iter().filter(|entry| entry.airport == airport);
    let events = own.map(|entry| (due(entry), entry.event.clone())).collect();
    Ok(Publisher { client, events, closing: scenario::end_of(airport)? })
}

impl Publisher {
    /// Publishes everything; how much, and how much of it before all brokers had said what they want.
    async fn publish_all(self, start: Instant, progress: ProgressBar) -> Result<(u64, u64), Failure> {
        let Publisher { client, events, closing } = self;
        let published = events.len() as u64;
        let mut receipts = Receipts { waiting: VecDeque::new(), incomplete: 0, progress };
        for (due, event) in events {
            if start.elapsed() < due {
                receipts.take_in(0).await?;
                sleep_until(start + due).await;
            }
            receipts.waiting.push_back(client.publish_nowait(event).await.map_err(not_published)?);
            receipts.take_in(WINDOW).await?;
        }
        receipts.take_in(0).await?;
        client.publish(closing).await.map_err(not_published)?;
        client.close().await;
        Ok((published, receipts.incomplete))
    }
}

/// The receipts that a publisher still waits for.
struct Receipts {
    waiting: VecDeque<Publication>,
    incomplete: u64,
    progress: ProgressBar,
}

impl Receipts {
    /// Waits until at most so many are still to come.
    async fn take_in(&mut self, at_most: usize) -> Result<(), Failure> {
        while self.waiting.len() > at_most {
            let Some(publication) = self.waiting.pop_front() else { break };
            let receipt = publication.await.map_err(not_published)?;
            self.incomplete += u64::from(!receipt.complete);
            self.progress.inc(1);
        }
        Ok(())
    }
}

/// A client with a subscription, and another one for the closing events.
struct Subscriber {
    index: usize,
    client: Client,
    filter: Filter,
    seen: BTreeSet<EventId>,
    received: Received,
    closings: usize,
}

async fn subscriber(network: &Network, index: usize, filter: Filter) -> Result<Subscriber, Failure> {
    let client = network.client(SUBSCRIPTIONS[index].0).await?;
    in_force(client.subscribe("what it is for", filter.clone()).await)?;
    let closing = crate::filter_text::parse(&format!("kind = '{END_KIND}'"))?;
    in_force(client.subscribe("the end", closing).await)?;
    let received = Received::default();
    Ok(Subscriber { index, client, filter, seen: BTreeSet::new(), received, closings: 0 })
}

impl Subscriber {
    /// Takes in events until each airport has closed, or nothing comes for long after everything was published.
    async fn receive(mut self, mut published: watch::Receiver<bool>) -> Subscriber {
        let mut patience = pin!(async move {
            // An error means that the publishers have failed: nothing more comes either.
            let _ = published.wait_for(|published| *published).await;
            sleep(PATIENCE).await;
        });
        while self.closings < AIRPORTS.len() {
            tokio::select! {
                Some(delivery) = self.client.next() => self.take(&delivery),
                () = &mut patience => break,
            }
        }
        self
    }

    fn take_what_is_left(&mut self) {
        while let Some(delivery) = self.client.try_next() {
            self.take(&delivery);
        }
    }

    fn take(&mut self, delivery: &Delivery) {
        if !self.seen.insert(delivery.id) {
            self.received.duplicates += 1;
        } else if delivery.event.get("kind") == Some(ValueRef::String(END_KIND)) {
            self.closings += 1;
        } else if self.filter.matches(&delivery.event) {
            self.received.matching += 1;
        } else {
            self.received.unwanted += 1;
        }
    }
}

/// The demo has no use for half a start.
fn in_force(answer: Result<Subscribed, ClientError>) -> Result<(), Failure> {
    match answer {
        Ok(Subscribed::InForce { .. }) => Ok(()),
        Ok(Subscribed::Partial { missing }) => {
            Err(Failure::new(format!("{} brokers have not acknowledged a subscription in time", missing.len())))
        }
        Err(error) => Err(Failure::new("a subscription or advertisement was not placed").because(&error)),
    }
}

fn not_published(error: ClientError) -> Failure {
    Failure::new("an event was not published").because(&error)
}

/// Shown on a terminal only.
fn progress(events: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} events, {per_sec}, {eta} to go");
    ProgressBar::new(events).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
