//! What clients ask of their brokers, and how the answers are taken down.

use crate::RealError;
use crate::client::Books;
use crate::run::Run;
use enroute_client::{Client, ClientError, Subscribed};
use enroute_filter::{Event, Filter, ValueRef};
use enroute_netsim::{ScenarioError, read_event};
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

    /// The session of a client, while it has one.
    fn session(&self, client: usize) -> Option<Client> {
        self.people[client].session.as_ref().map(|session| session.client.clone())
    }

    pub(crate) async fn subscribe(&mut self, client: usize, name: &str, filter: Filter) {
        self.people[client].subscriptions.insert(name.to_owned(), filter.clone());
        let Some(session) = self.session(client) else { return };
        let number = self.books.with(|oracle| oracle.book.subscribe(client, name.into(), filter.clone()));
        let (books, name) = (self.books.clone(), name.to_owned());
        self.ask(async move {
            match books.answer("subscription", &name, session.subscribe(&name, filter).await) {
                Some(Subscribed::InForce { .. }) => books.with(|oracle| oracle.book.in_force(number)),
                Some(Subscribed::Partial { .. }) => books.with(|oracle| oracle.partial += 1),
                None => {}
            }
        })
        .await;
    }

    pub(crate) async fn unsubscribe(&mut self, client: usize, name: &str) {
        let known = self.people[client].subscriptions.remove(name).is_some();
        let Some(session) = self.session(client).filter(|_| known) else { return };
        self.books.with(|oracle| oracle.book.withdraw(client, name));
        let (books, name) = (self.books.clone(), name.to_owned());
        self.ask(async move {
            if let Some(()) = books.answer("withdrawal", &name, session.unsubscribe(&name).await) {
                books.with(|oracle| oracle.book.withdrawn(client, &name));
            }
        })
        .await;
    }

    pub(crate) async fn advertise(&mut self, client: usize, name: &str, filter: Filter) {
        self.people[client].advertisements.insert(name.to_owned(), filter.clone());
        let Some(session) = self.session(client) else { return };
        let (books, name) = (self.books.clone(), name.to_owned());
        self.ask(async move {
            books.answer("advertisement", &name, session.advertise(&name, filter).await);
        })
        .await;
    }

    pub(crate) async fn unadvertise(&mut self, client: usize, name: &str) {
        let known = self.people[client].advertisements.remove(name).is_some();
        let Some(session) = self.session(client).filter(|_| known) else { return };
        let (books, name) = (self.books.clone(), name.to_owned());
        self.ask(async move {
            books.answer("withdrawal of advertisement", &name, session.unadvertise(&name).await);
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
        let event = event.map(|line| read_event(&line)).transpose()?;
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
                other => oracle.book.complain(format!("an answer that does not fit publication {number}: {other:?}")),
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

impl Books {
    /// What a request came to; nothing if the connection or the broker has gone before the answer. Complains of refusals.
    fn answer<T>(&self, what: &str, name: &str, answer: Result<T, ClientError>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(ClientError::Disconnected { .. }) => None,
            Err(error) => {
                self.complain(format!("{what} {name}: {error}"));
                None
            }
        }
    }
}
