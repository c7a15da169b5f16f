//! Keeps a session alive: connects, remembers what stands, and places it again after a loss.

use crate::client::receipt_of;
use crate::connection::Connection;
use crate::inbox::Inbox;
use crate::pending::Pending;
use crate::receipts::Ticket;
use crate::requests::{Requests, Taker};
use crate::{ClientError, Subscribed};
use enroute_broker::{BrokerId, Command, Reply};
use enroute_filter::{Event, Filter};
use enroute_wire::{ServerFrame, SlowSubscriber};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};

/// Notices that are kept for an application that does not ask for them.
pub(crate) const NOTICES: usize = 1024;

/// Longest waits between tries of a hello; they double. Chance decides how much of them is waited, which spreads those that
/// have lost theirs to each other.
const FIRST_HELLO: Duration = Duration::from_millis(20);
const LAST_HELLO: Duration = Duration::from_secs(6);
/// Waits between tries of a connection; they double.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(2);

/// How a session behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the broker does when this client takes deliveries more slowly than they come; the broker's default if `None`.
    pub slow_subscriber: Option<SlowSubscriber>,
    /// Whether to connect again after a loss, and to place advertisements and subscriptions again. Default: no.
    pub reconnect: bool,
    /// Deliveries that may wait in the session for the application. Default: 4,096.
    pub delivery_window: usize,
    /// Name and version of the software, told to the broker.
    pub software: String,
}

impl Default for Options {
    fn default() -> Options {
        let software = concat!("enroute-session ", env!("CARGO_PKG_VERSION")).to_owned();
        Options { slow_subscriber: None, reconnect: false, delivery_window: 4_096, software }
    }
}

/// Something to know about a session's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The connection is lost. Requests that were not answered have failed; what is asked meanwhile fails too.
    Disconnected {
        /// Why.
        reason: String,
    },
    /// There is a connection again; advertisements and subscriptions are being placed.
    Reconnected {
        /// To this broker.
        broker: BrokerId,
    },
    /// A subscription has been placed again; events published between the loss and this may have been missed.
    Resubscribed {
        /// Its name.
        name: Arc<str>,
        /// As [`Client::subscribe`](crate::Client::subscribe).
        result: Result<Subscribed, ClientError>,
    },
    /// An advertisement has been made again.
    Readvertised {
        /// Its name.
        name: Arc<str>,
        /// As [`Client::advertise`](crate::Client::advertise).
        result: Result<Subscribed, ClientError>,
    },
}

/// What the handle asks of the task.
pub(crate) enum Request {
    Command {
        command: Command,
        answer: oneshot::Sender<Result<Reply, ClientError>>,
    },
    /// A command that stood before the connection was lost.
    Again {
        command: Command,
    },
    Publish {
        event: Event,
        ticket: Ticket,
    },
    Status {
        answer: oneshot::Sender<Result<String, ClientError>>,
    },
    Close {
        done: oneshot::Sender<()>,
    },
}

impl Request {
    /// Who waits for the answer. Nobody if it is the last request, whose `done` is told by being dropped.
    pub(crate) fn into_waiter(self) -> Option<Waiter> {
        match self {
            Request::Command { command, answer } => Some(Waiter::Command { command, answer: Some(answer) }),
            Request::Again { command } => Some(Waiter::Command { command, answer: None }),
            Request::Publish { event: _, ticket } => Some(Waiter::Publish { ticket }),
            Request::Status { answer } => Some(Waiter::Status { answer }),
            Request::Close { done: _ } => None,
        }
    }
}

/// Who waits for an answer.
pub(crate) enum Waiter {
    /// Nobody but the notices, if there is no `answer`.
    Command {
        command: Command,
        answer: Option<oneshot::Sender<Result<Reply, ClientError>>>,
    },
    Publish {
        ticket: Ticket,
    },
    Status {
        answer: oneshot::Sender<Result<String, ClientError>>,
    },
}

impl Waiter {
    /// Answers with an error. Whoever has stopped waiting does not mind.
    pub(crate) fn fail(self, requests: &Requests, error: ClientError) {
        match self {
            Waiter::Publish { ticket } => requests.answer(&mut vec![(ticket, Err(error))]),
            Waiter::Command { answer: Some(answer), .. } => {
                let _ = answer.send(Err(error));
            }
            Waiter::Status { answer } => {
                let _ = answer.send(Err(error));
            }
            Waiter::Command { answer: None, .. } => {}
        }
    }
}

/// The session's task.
pub(crate) struct Keeper<C> {
    connect: C,
    options: Options,
    inbox: Arc<Inbox>,
    requests: Taker,
    notices: mpsc::Sender<Notice>,
    standing: Standing,
}

/// What the broker has acknowledged, by name.
#[derive(Default)]
struct Standing {
    advertisements: BTreeMap<Arc<str>, Filter>,
    subscriptions: BTreeMap<Arc<str>, Filter>,
}

impl<C, F, S> Keeper<C>
where
    C: FnMut() -> F + Send + 'static,
    F: Future<Output = Result<S, ClientError>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    pub(crate) fn new(
        connect: C,
        options: Options,
        inbox: Arc<Inbox>,
        requests: Arc<Requests>,
        notices: mpsc::Sender<Notice>,
    ) -> Keeper<C> {
        Keeper { connect, options, inbox, requests: Taker(requests), notices, standing: Standing::default() }
    }

    /// A connection. A stream that ends before the hello is answered is tried again: a broker to which many come at once
    /// loses some without a word.
    pub(crate) async fn connect(&mut self) -> Result<Connection<S>, ClientError> {
        let mut wait = FIRST_HELLO;
        loop {
            match Connection::open((self.connect)().await?, &self.options).await {
                Err(ClientError::Disconnected { reason }) if wait <= LAST_HELLO => {
                    tracing::debug!(reason, "the hello was not answered");
                }
                result => return result,
            }
            tokio::time::sleep(wait.mul_f64(rand::random::<f64>())).await; // sleep: before trying again
            wait *= 2;
        }
    }

    /// Runs the session to its end.
    pub(crate) async fn run(mut self, mut connection: Connection<S>, broker: watch::Sender<BrokerId>) {
        let mut first = VecDeque::new();
        loop {
            let pending = Pending::new(connection.max_requests(), first);
            let Keeper { standing, notices, requests: Taker(requests), inbox, .. } = &mut self;
            let on_reply = |waiter, frame| standing.on_reply(waiter, frame, requests, notices);
            let result = connection.run(requests, &pending, inbox, on_reply).await;
            let error = result.as_ref().err().cloned();
            let error = error.unwrap_or_else(|| ClientError::disconnected("the session was closed"));
            for waiter in pending.abandoned() {
                waiter.fail(requests, error.clone());
            }
            tracing::debug!(%error, "connection of a session ended");
            if result.is_ok() {
                break;
            }
            self.notify(Notice::Disconnected { reason: error.to_string() });
            if !self.options.reconnect {
                break;
            }
            let Some(next) = self.reconnect(&error).await else { break };
            connection = next;
            broker.send_replace(connection.broker());
            self.notify(Notice::Reconnected { broker: connection.broker() });
            first = self.standing.again();
        }
        self.inbox.end();
    }

    /// Tries until there is a connection, or nobody wants one any more. Requests fail meanwhile.
    async fn reconnect(&mut self, lost: &ClientError) -> Option<Connection<S>> {
        let mut wait = FIRST_RETRY;
        loop {
            let Keeper { connect, options, requests, .. } = self;
            let attempt = async {
                tokio::time::sleep(jittered(wait)).await; // sleep: before trying again
                Connection::open(connect().await?, options).await
            };
            tokio::select! {
                result = attempt => match result {
                    Ok(connection) => return Some(connection),
                    Err(error) => tracing::debug!(%error, "no connection yet"),
                },
                () = refuse_requests(&requests.0, lost) => return None,
            }
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    fn notify(&self, notice: Notice) {
        notify(&self.notices, notice);
    }
}

/// Half of a wait is left to chance, so that a crowd does not come back as a crowd.
fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + 0.5 * rand::random::<f64>())
}

/// Answers requests with an error; returns when the session is to be closed.
async fn refuse_requests(requests: &Requests, error: &ClientError) {
    let mut taken = VecDeque::new();
    while requests.take(&mut taken).await {
        for request in taken.drain(..) {
            match request.into_waiter() {
                Some(waiter) => waiter.fail(requests, error.clone()),
                None => return,
            }
        }
    }
}

impl Standing {
    /// Passes an answer on, and remembers what it means.
    fn on_reply(&mut self, waiter: Waiter, frame: ServerFrame, requests: &Requests, notices: &mpsc::Sender<Notice>) {
        match (waiter, frame) {
            (Waiter::Command { command, answer }, ServerFrame::Reply { reply, .. }) => {
                self.remember(&command, &reply);
                match answer {
                    Some(answer) => drop(answer.send(Ok(reply))),
                    None => again_notice(command, reply).into_iter().for_each(|notice| notify(notices, notice)),
                }
            }
            (Waiter::Publish { ticket }, ServerFrame::Reply { reply, .. }) => {
                requests.answer(&mut vec![(ticket, receipt_of(reply))]);
            }
            (Waiter::Status { answer }, ServerFrame::Status { json, .. }) => drop(answer.send(Ok(json))),
            (waiter, _) => waiter.fail(requests, ClientError::protocol("an answer of the wrong kind")),
        }
    }

    fn remember(&mut self, command: &Command, reply: &Reply) {
        let placed = matches!(reply, Reply::InForce { .. } | Reply::Partial { .. });
        let gone = matches!(reply, Reply::Withdrawn);
        match command {
            Command::Subscribe { name, filter } if placed => {
                self.subscriptions.insert(Arc::clone(name), filter.clone());
            }
            Command::Advertise { name, filter } if placed => {
                self.advertisements.insert(Arc::clone(name), filter.clone());
            }
            Command::Unsubscribe { name } if gone => {
                self.subscriptions.remove(name);
            }
            Command::Unadvertise { name } if gone => {
                self.advertisements.remove(name);
            }
            Command::Subscribe { .. }
            | Command::Advertise { .. }
            | Command::Unsubscribe { .. }
            | Command::Unadvertise { .. } => {}
        }
    }

    /// Everything that stood, advertisements first.
    fn again(&self) -> VecDeque<Request> {
        let advertise =
            |(name, filter): (&Arc<str>, &Filter)| Command::Advertise { name: name.clone(), filter: filter.clone() };
        let subscribe =
            |(name, filter): (&Arc<str>, &Filter)| Command::Subscribe { name: name.clone(), filter: filter.clone() };
        let commands = self.advertisements.iter().map(advertise).chain(self.subscriptions.iter().map(subscribe));
        commands.map(|command| Request::Again { command }).collect()
    }
}

fn again_notice(command: Command, reply: Reply) -> Option<Notice> {
    let result = Subscribed::from_reply(reply);
    match command {
        Command::Subscribe { name, .. } => Some(Notice::Resubscribed { name, result }),
        Command::Advertise { name, .. } => Some(Notice::Readvertised { name, result }),
        Command::Unsubscribe { .. } | Command::Unadvertise { .. } => None,
    }
}

/// Notices that nobody asks for are dropped when there are too many.
fn notify(notices: &mpsc::Sender<Notice>, notice: Notice) {
    let _ = notices.try_send(notice);
}
