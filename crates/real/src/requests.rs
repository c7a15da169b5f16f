//! What clients ask of their brokers, and how the answers are taken down.

use crate::RealError;
use crate::client::Books;
use crate::run::Run;
use enroute_client::{ClientError, Subscribed};
use enroute_filter::{Event, Filter, JsonReader, ValueRef};
use enroute_netsim::ScenarioError;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Gaps shorter than this are made up for later: timers are no finer.
const SHORTEST_GAP: Duration = Duration::from_millis(2);

impl Run {
    /// Makes a request in its turn, without waiting for the answer: polled once, it has its place in the session's queue.
    async fn ask(&mut self, request: impl Future<Output = ()> + Send + 'static) {
        let mut request = Box::pin(request);
        if futures::poll!(&mut request).is_pending() {
            self.asked.spawn(request);
        }
    }

    pub(crate) async fn subscribe(&mut self, client: usize, name: &str, filter: Filter) {
        let person = &mut self.people[client];
        person.subscriptions.insert(name.to_owned(), filter.clone());
        let Some(session) = person.session.as_ref().map(|session| session.client.clone()) else { return };
        let number = self.books.with(|oracle| oracle.subscribe(client, name, filter.clone()));
        let (books, name) = (self.books.clone(), name.to_owned());
        self.ask(async move {
            let answer = session.subscribe(&name, filter).await;
            books.with(|oracle| match answer {
                Ok(Subscribed::InForce { .. }) => oracle.in_force(number),
                Ok(Subscribed::Partial { .. }) => oracle.partial += 1,
                Err(ClientError::Disconnected { .. }) => {}
                Err(error) => oracle.complain(format!("subscription {name}: {error}")),
            });
        })
        .await;
    }

    pub(crate) async fn unsubscribe(&mut self, client: usize, name: &str) {
        let person = &mut self.people[client];
        if person.subscriptions.remove(name).is_none() {
            return;
        }
        let Some(session) = person.session.as_ref().map(|session| session.client.clone()) else { return };
        self.books.with(|oracle| oracle.withdraw(client, name));
        let (books, name) = (self.books.clone(), name.to_owned());
        self.ask(async move {
            let answer = session.unsubscribe(&name).await;
            books.with(|oracle| match answer {
                Ok(()) => oracle.withdrawn(client, &name),
                Err(ClientError::Disconnected { .. }) => {}
                Err(error) => oracle.complain(format!("withdrawal of {name}: {error}")),
            });
        })
        .await;
    }

    pub(crate) async fn advertise(&mut self, client: usize, name: &str, filter: Filter) {
        let person = &mut self.people[client];
        person.advertisements.insert(name.to_owned(), filter.clone());
        let Some(session) = person.session.as_ref().map(|session| session.client.clone()) else { return };
        let (books, name) = (self.books.clone(), name.to_owned());
        self.ask(async move {
            let answer = session.advertise(&name, filter).await.map(drop);
            complain_of(&books, "advertisement", &name, answer);
        })
        .await;
    }

    pub(crate) async fn unadvertise(&mut self, client: usize, name: &str) {
        let person = &mut self.people[client];
        if person.advertisements.remove(name).is_none() {
            return;
        }
        let Some(session) = person.session.as_ref().map(|session| session.client.clone()) else { return };
        let (books, name) = (self.books.clone(), name.to_owned());
        self.ask(async move {
            let answer = session.unadvertise(&name).await;
            complain_of(&books, "withdrawal of advertisement", &name, answer);
        })
        .await;
    }

    pub(crate) async fn publish_some(
        &mut self,
        client: Option<String>,
        event: Option<String>,
        count: u64,
        gap_us: u64,
    ) -> Result<(), RealError> {
        let client = client.map(|name| self.client(&name)).transpose()?;
        let read = |line: String| JsonReader::default().read(&line).map(|(event, _)| event);
        let event = event.map(read).transpose().map_err(|error| ScenarioError::Event(error.to_string()))?;
        if self.people.is_empty() {
            return Err(ScenarioError::NoClients.into());
        }
        let mut pace = Pace::new(gap_us);
        for _ in 0..count {
            self.turn = (self.turn + 1) % self.people.len();
            let event = event.clone().unwrap_or_else(|| self.traffic.event());
            self.publish(client.unwrap_or(self.turn), &event).await;
            pace.wait().await;
        }
        Ok(())
    }

    pub(crate) async fn replay(
        &mut self,
        events: &[Event],
        by: &str,
        clients: &BTreeMap<String, String>,
        gap_us: u64,
    ) -> Result<(), RealError> {
        let mut pace = Pace::new(gap_us);
        for event in events {
            let value = match event.get(by) {
                Some(ValueRef::String(value)) => value,
                Some(_) | None => "",
            };
            let unknown = || ScenarioError::UnknownClient { name: format!("{by} = {value}") };
            let client = self.client(clients.get(value).ok_or_else(unknown)?)?;
            self.publish(client, event).await;
            pace.wait().await;
        }
        Ok(())
    }

    /// Publishes an event; nothing happens while the client is away.
    async fn publish(&mut self, client: usize, event: &Event) {
        let person = &self.people[client];
        let Some(session) = &person.session else { return };
        let (number, event) = self.books.with(|oracle| oracle.publish(client, event));
        let advertised = &person.advertisements;
        let allowed = advertised.is_empty() || advertised.values().any(|filter| filter.matches(&event));
        // Waits only while too many receipts are outstanding.
        let Ok(publication) = session.client.publish_nowait(event).await else { return };
        let books = self.books.clone();
        self.asked.spawn(async move {
            let answer = publication.await;
            books.with(|oracle| match answer {
                Ok(receipt) if allowed => oracle.answered(number, receipt.complete),
                Err(ClientError::Refused(_)) if !allowed => oracle.refused(number),
                Err(ClientError::Disconnected { .. }) => {}
                other => oracle.complain(format!("an answer that does not fit publication {number}: {other:?}")),
            });
        });
        // Those that are answered make room.
        while self.asked.try_join_next().is_some() {}
    }
}

/// Times of publications: a gap between two of them, on average.
struct Pace {
    gap: Duration,
    due: Instant,
}

impl Pace {
    fn new(gap_us: u64) -> Pace {
        Pace { gap: Duration::from_micros(gap_us), due: Instant::now() }
    }

    async fn wait(&mut self) {
        self.due += self.gap;
        if self.due > Instant::now() + SHORTEST_GAP {
            sleep_until(self.due).await;
        }
    }
}

fn complain_of(books: &Books, what: &str, name: &str, answer: Result<(), ClientError>) {
    match answer {
        Ok(()) | Err(ClientError::Disconnected { .. }) => {}
        Err(error) => books.with(|oracle| oracle.complain(format!("{what} {name}: {error}"))),
    }
}
