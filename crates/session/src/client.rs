//! The handle.

use crate::inbox::Inbox;
use crate::keeper::{self, Keeper, Request};
use crate::receipts::Ticket;
use crate::requests::{Requests, over};
use crate::{ClientError, NodeStatus, Notice, Options};
use enroute_broker::{BrokerId, Command, EventId, Receipt, Reply};
use enroute_filter::{Event, Filter};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

/// A session with a broker. Cloning gives another handle to the same session; it ends when the last one is dropped, and the
/// broker then forgets its subscriptions and advertisements.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    requests: Arc<Requests>,
    inbox: Arc<Inbox>,
    notices: Mutex<mpsc::Receiver<Notice>>,
    broker: watch::Receiver<BrokerId>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.requests.abandon();
    }
}

/// How far a subscription or an advertisement has got when it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subscribed {
    /// It is in force everywhere: an event published from now on is not missed.
    InForce {
        /// At how many other brokers.
        brokers: u32,
    },
    /// It stands, but these brokers have not acknowledged in time; they will follow.
    Partial {
        /// Who is missing.
        missing: Vec<BrokerId>,
    },
}

/// An event, and why it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The event's id.
    pub id: EventId,
    /// The event.
    pub event: Event,
    /// Names of this client's subscriptions that match, sorted.
    pub subscriptions: Arc<[Arc<str>]>,
}

/// A publication under way: await it for the receipt, or drop it if the receipt does not matter.
pub struct Publication {
    requests: Arc<Requests>,
    /// None when the receipt has been had.
    ticket: Option<Ticket>,
}

impl Client {
    /// Begins a session over the stream that `connect` gives; it is called again for each new connection if
    /// [`Options::reconnect`] says so. Must be called within a tokio runtime, on which the session's task then runs.
    ///
    /// # Errors
    /// What `connect` says, [`ClientError::HelloRefused`], [`ClientError::Protocol`], [`ClientError::Disconnected`].
    pub async fn start<C, F, S>(connect: C, options: Options) -> Result<Client, ClientError>
    where
        C: FnMut() -> F + Send + 'static,
        F: Future<Output = Result<S, ClientError>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let requests = Arc::new(Requests::default());
        let (notice_sender, notices) = mpsc::channel(keeper::NOTICES);
        let inbox = Arc::new(Inbox::new(options.delivery_window));
        let mut keeper = Keeper::new(connect, options, Arc::clone(&inbox), Arc::clone(&requests), notice_sender);
        let connection = keeper.connect().await?;
        let (broker_sender, broker) = watch::channel(connection.broker());
        tokio::spawn(keeper.run(connection, broker_sender));
        Ok(Client { shared: Arc::new(Shared { requests, inbox, notices: Mutex::new(notices), broker }) })
    }

    /// The broker this client is, or was last, connected to.
    pub fn broker(&self) -> BrokerId {
        *self.shared.broker.borrow()
    }

    /// Places a subscription, or replaces the one of that name. Returns when it is in force, or when the wait for others
    /// (10 s) has run out.
    ///
    /// # Errors
    /// [`ClientError::Refused`], [`ClientError::Disconnected`], [`ClientError::Unsendable`].
    pub async fn subscribe(&self, name: &str, filter: Filter) -> Result<Subscribed, ClientError> {
        Subscribed::from_reply(self.command(Command::Subscribe { name: name.into(), filter }).await?)
    }

    /// Withdraws a subscription. Events that were under way may still come.
    ///
    /// # Errors
    /// As [`Client::subscribe`]; refused if there is none of that name.
    pub async fn unsubscribe(&self, name: &str) -> Result<(), ClientError> {
        withdrawn(self.command(Command::Unsubscribe { name: name.into() }).await?)
    }

    /// Says what will be published, or replaces what was said under that name. A client that has said so may publish nothing
    /// else.
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    pub async fn advertise(&self, name: &str, filter: Filter) -> Result<Subscribed, ClientError> {
        Subscribed::from_reply(self.command(Command::Advertise { name: name.into(), filter }).await?)
    }

    /// Withdraws an advertisement.
    ///
    /// # Errors
    /// As [`Client::unsubscribe`].
    pub async fn unadvertise(&self, name: &str) -> Result<(), ClientError> {
        withdrawn(self.command(Command::Unadvertise { name: name.into() }).await?)
    }

    /// Publishes an event; returns when it is on its way to all who want it.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if it is outside this client's advertisements, else as [`Client::subscribe`].
    pub async fn publish(&self, event: Event) -> Result<Receipt, ClientError> {
        self.publish_nowait(event).await?.await
    }

    /// Hands over an event without waiting for its receipt. Waits only while too many receipts are outstanding already, which
    /// makes a loop over this run at the broker's pace. Events are published in the order they are handed over.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`] if the session is over.
    pub async fn publish_nowait(&self, event: Event) -> Result<Publication, ClientError> {
        let ticket = self.shared.requests.publish(event).await?;
        Ok(Publication { requests: Arc::clone(&self.shared.requests), ticket: Some(ticket) })
    }

    /// Waits for the next event; `None` when the session is over. Cancelling the wait loses nothing.
    pub async fn next(&self) -> Option<Delivery> {
        self.shared.inbox.next().await
    }

    /// The next event if it is here already.
    pub fn try_next(&self) -> Option<Delivery> {
        self.shared.inbox.try_next()
    }

    /// Waits for the next thing to know about the connection; `None` when the session is over. Old ones are dropped if nobody
    /// asks. Cancelling the wait loses nothing.
    pub async fn next_notice(&self) -> Option<Notice> {
        self.shared.notices.lock().await.recv().await
    }

    /// How the broker is.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`], [`ClientError::Protocol`].
    pub async fn status(&self) -> Result<NodeStatus, ClientError> {
        serde_json::from_str(&self.status_json().await?).map_err(ClientError::protocol)
    }

    /// As [`Client::status`], in the broker's own words: a newer broker may say more than [`NodeStatus`] holds.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`].
    pub async fn status_json(&self) -> Result<String, ClientError> {
        let (sender, answer) = oneshot::channel();
        self.request(Request::Status { answer: sender }).await?;
        answer.await.map_err(|_| over())?
    }

    /// Ends the session: what was handed over is sent and answered (for which 12 s are left), the broker is told, and every
    /// handle is of no more use. Returns when that is done. Dropping the last handle does the same without the wait.
    pub async fn close(&self) {
        let (sender, done) = oneshot::channel();
        if self.request(Request::Close { done: sender }).await.is_ok() {
            // Either way it is over.
            let _ = done.await;
        }
    }

    async fn command(&self, command: Command) -> Result<Reply, ClientError> {
        let (sender, answer) = oneshot::channel();
        self.request(Request::Command { command, answer: sender }).await?;
        answer.await.map_err(|_| over())?
    }

    async fn request(&self, request: Request) -> Result<(), ClientError> {
        self.shared.requests.put(request).await
    }
}

impl Future for Publication {
    type Output = Result<Receipt, ClientError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(ticket) = self.ticket else { return Poll::Ready(Err(over())) };
        let answer = self.requests.poll(ticket, context);
        if answer.is_ready() {
            self.ticket = None;
        }
        answer
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        self.ticket.into_iter().for_each(|ticket| self.requests.drop_ticket(ticket));
    }
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// The receipt that answers a publication.
pub(crate) fn receipt_of(reply: Reply) -> Result<Receipt, ClientError> {
    match reply {
        Reply::Published(receipt) => Ok(receipt),
        Reply::InForce { .. } | Reply::Partial { .. } | Reply::Withdrawn | Reply::Refused(_) => Err(unexpected(reply)),
    }
}

impl Subscribed {
    pub(crate) fn from_reply(reply: Reply) -> Result<Subscribed, ClientError> {
        match reply {
            Reply::InForce { brokers } => Ok(Subscribed::InForce { brokers }),
            Reply::Partial { missing } => Ok(Subscribed::Partial { missing }),
            Reply::Withdrawn | Reply::Published(_) | Reply::Refused(_) => Err(unexpected(reply)),
        }
    }
}

fn withdrawn(reply: Reply) -> Result<(), ClientError> {
    match reply {
        Reply::Withdrawn => Ok(()),
        Reply::InForce { .. } | Reply::Partial { .. } | Reply::Published(_) | Reply::Refused(_) => {
            Err(unexpected(reply))
        }
    }
}

fn unexpected(reply: Reply) -> ClientError {
    match reply {
        Reply::Refused(refusal) => refusal.into(),
        Reply::InForce { .. } | Reply::Partial { .. } | Reply::Withdrawn | Reply::Published(_) => {
            ClientError::protocol(format!("an answer of the wrong kind: {reply:?}"))
        }
    }
}
