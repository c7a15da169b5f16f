//! A stream through TLS, written and read in large pieces with few copies.

use crate::gathering::{LITTLE, MUCH, put_off};
use futures::future::poll_fn;
use futures::io::{AsyncRead, AsyncWrite};
use rustls::CommonState;
use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The most that TLS encrypts in one record, and how much longer a record is.
const RECORD: usize = 16 << 10;
const OVERHEAD: usize = 5 + 1 + 16;
/// What is read at a time when much comes, with a record that has come in part.
pub(super) const ROOM: usize = 5 * (RECORD + OVERHEAD);

/// Bytes of which the first have been taken and the last are still to come.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    fn len(&self) -> usize {
        self.end - self.start
    }

    fn filled(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Room for at least so many bytes behind the others.
    fn room(&mut self, least: usize) -> &mut [u8] {
        if self.bytes.len() - self.end < least {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            let length = self.end + least;
            if self.bytes.len() < length {
                // What is long becomes as long as any at once, and is not copied while it grows.
                let length = if length > RECORD { length.max(ROOM) } else { length };
                self.bytes.reserve_exact(length - self.bytes.len());
                self.bytes.resize(length, 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes have come into the room.
    fn came(&mut self, count: usize) {
        self.end += count;
    }

    fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.came(bytes.len());
    }

    /// The first so many are done with.
    fn take(&mut self, count: usize) {
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Holds no memory any more, if it has nothing.
    fn release(&mut self) {
        if self.len() == 0 {
            *self = Buffer::default();
        }
    }
}

/// What rustls knows of a connection.
pub(super) enum Session {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// What is wanted of a session besides what is due.
enum Wish<'a> {
    /// To decrypt to here.
    Read(&'a mut [u8]),
    /// To encrypt this.
    Encrypt(&'a [u8]),
    /// To tell the other side that no more comes.
    Close,
}

/// What a step of a session has come to.
enum Step {
    /// Something that was due.
    Some,
    /// Something that has come is decrypted: so many bytes are where they are wanted, and what has no room there in `arrived`.
    Read(usize),
    /// What was to be written is in `outgoing`.
    Done,
    /// There is nothing to do before more comes.
    Waits,
    /// The other side says no more.
    Over,
}

/// All of a connection but its socket.
struct Records {
    session: Session,
    /// What has come and is still to be decrypted.
    incoming: Buffer,
    /// What has been decrypted before it was wanted.
    arrived: Buffer,
    /// What is to be encrypted, less than a record.
    plain: Vec<u8>,
    /// What has been encrypted and is still to be written.
    outgoing: Buffer,
    /// Whether the other side has said that no more comes.
    is_over: bool,
    failed: Option<rustls::Error>,
}

impl Records {
    /// Does what is due, as decrypting a record that is here; what is wished if nothing is. An error comes again.
    fn step(&mut self, wish: Wish<'_>) -> Result<Step, rustls::Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let step = self.ask(wish);
        if let Err(error) = &step {
            self.failed = Some(error.clone());
            // What tells the other side why. After that rustls is not asked again: it would find another fault in the same bytes.
            while self.state().wants_write() && self.ask(Wish::Read(&mut [])).is_ok() {}
        }
        step
    }

    fn ask(&mut self, wish: Wish<'_>) -> Result<Step, rustls::Error> {
        let Records { session, incoming, arrived, outgoing, .. } = self;
        let (mut discard, step);
        match session {
            Session::Client(session) => {
                let status = session.process_tls_records(incoming.filled());
                discard = status.discard;
                step = take(status.state, &mut discard, wish, arrived, outgoing);
            }
            Session::Server(session) => {
                let status = session.process_tls_records(incoming.filled());
                discard = status.discard;
                step = take(status.state, &mut discard, wish, arrived, outgoing);
            }
        }
        incoming.take(discard);
        self.is_over |= matches!(step, Ok(Step::Over));
        step
    }

    fn encrypt(&mut self, plain: &[u8]) -> Result<(), rustls::Error> {
        loop {
            match self.step(Wish::Encrypt(plain))? {
                Step::Done => return Ok(()),
                Step::Some | Step::Read(_) | Step::Over => {}
                Step::Waits => return Err(rustls::Error::HandshakeNotComplete),
            }
        }
    }

    /// Tells the other side that no more comes, if it can be told.
    fn close(&mut self) -> Result<(), rustls::Error> {
        self.encrypt_rest()?;
        while let Step::Some | Step::Read(_) | Step::Over = self.step(Wish::Close)? {}
        Ok(())
    }

    /// Takes in what is to be written: full records are encrypted, the rest waits.
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), rustls::Error> {
        if !self.plain.is_empty() || bytes.len() < RECORD {
            if self.plain.capacity() == 0 && bytes.len() >= LITTLE {
                self.plain.reserve_exact(RECORD);
            }
            let count = bytes.len().min(RECORD - self.plain.len());
            self.plain.extend_from_slice(&bytes[..count]);
            if self.plain.len() < RECORD {
                return Ok(());
            }
            self.encrypt_rest()?;
            bytes = &bytes[count..];
        }
        let (records, rest) = bytes.split_at(bytes.len() / RECORD * RECORD);
        if !records.is_empty() {
            self.encrypt(records)?;
        }
        self.plain.extend_from_slice(rest);
        Ok(())
    }

    fn encrypt_rest(&mut self) -> Result<(), rustls::Error> {
        if self.plain.is_empty() {
            return Ok(());
        }
        let mut plain = std::mem::take(&mut self.plain);
        self.encrypt(&plain)?;
        plain.clear();
        self.plain = plain;
        Ok(())
    }

    /// What is here, decrypted; nothing if nothing is.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, rustls::Error> {
        let mut count = self.arrived.len().min(into.len());
        into[..count].copy_from_slice(&self.arrived.filled()[..count]);
        self.arrived.take(count);
        while count < into.len() {
            match self.step(Wish::Read(&mut into[count..])) {
                Ok(Step::Read(more)) => count += more,
                Ok(Step::Some | Step::Done) => {}
                Ok(Step::Waits | Step::Over) => break,
                // It comes again.
                Err(_) if count > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    fn waiting(&self) -> usize {
        self.plain.len() + self.outgoing.len()
    }

    fn is_handshaking(&self) -> bool {
        self.state().is_handshaking()
    }

    fn state(&self) -> &CommonState {
        match &self.session {
            Session::Client(session) => session,
            Session::Server(session) => session,
        }
    }
}

/// Handles what rustls has come to; `discard` is how much of what has come is done with.
fn take<Side>(
    state: Result<ConnectionState<'_, '_, Side>, rustls::Error>,
    discard: &mut usize,
    wish: Wish<'_>,
    arrived: &mut Buffer,
    outgoing: &mut Buffer,
) -> Result<Step, rustls::Error> {
    match (state?, wish) {
        (ConnectionState::ReadTraffic(mut traffic), wish) => {
            let (into, mut count) = (if let Wish::Read(into) = wish { into } else { &mut [] }, 0);
            while let Some(record) = traffic.next_record() {
                let record = record?;
                let (wanted, more) = record.payload.split_at(record.payload.len().min(into.len() - count));
                into[count..count + wanted.len()].copy_from_slice(wanted);
                count += wanted.len();
                arrived.put(more);
                *discard += record.discard;
            }
            Ok(Step::Read(count))
        }
        (ConnectionState::EncodeTlsData(mut data), _) => {
            let mut encoded = data.encode(&mut []);
            if let Err(EncodeError::InsufficientSize(size)) = encoded {
                encoded = data.encode(outgoing.room(size.required_size));
            }
            outgoing.came(encoded.map_err(own)?);
            Ok(Step::Some)
        }
        (ConnectionState::TransmitTlsData(data), _) => {
            // It is written before all that comes after it.
            data.done();
            Ok(Step::Some)
        }
        (ConnectionState::WriteTraffic(mut traffic), Wish::Encrypt(plain)) => {
            let length = plain.len() + plain.len().div_ceil(RECORD) * OVERHEAD;
            let mut encrypted = traffic.encrypt(plain, outgoing.room(length));
            if let Err(EncryptError::InsufficientSize(size)) = encrypted {
                encrypted = traffic.encrypt(plain, outgoing.room(size.required_size));
            }
            outgoing.came(encrypted.map_err(own)?);
            Ok(Step::Done)
        }
        (ConnectionState::WriteTraffic(mut traffic), Wish::Close) => {
            let mut queued = traffic.queue_close_notify(&mut []);
            if let Err(EncryptError::InsufficientSize(size)) = queued {
                queued = traffic.queue_close_notify(outgoing.room(size.required_size));
            }
            outgoing.came(queued.map_err(own)?);
            Ok(Step::Done)
        }
        (ConnectionState::WriteTraffic(_), Wish::Read(_))
        | (ConnectionState::BlockedHandshake | ConnectionState::Closed, _) => Ok(Step::Waits),
        (ConnectionState::PeerClosed, _) => Ok(Step::Over),
        (state, _) => Err(rustls::Error::General(format!("unexpected: {state:?}"))),
    }
}

/// What should not be.
fn own(error: impl std::error::Error) -> rustls::Error {
    rustls::Error::General(error.to_string())
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// A stream through TLS.
///
/// It gathers as [`Gathering`](crate::Gathering) does: a flush behind new bytes is put off until the task has done what else it
/// can, or much has come together. Buffers are held only while they have something, or much comes and goes; after much, until
/// a little does, and be it a sign of life.
pub struct Stream<S> {
    stream: S,
    records: Records,
    /// Whether there has been a write since the last flush.
    is_fresh: bool,
    comes_much: bool,
    goes_much: bool,
    is_closing: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream<S> {
    /// Shakes hands.
    pub(super) async fn open(stream: S, session: Session) -> io::Result<Stream<S>> {
        let records = Records {
            session,
            incoming: Buffer::default(),
            arrived: Buffer::default(),
            plain: Vec::new(),
            outgoing: Buffer::default(),
            is_over: false,
            failed: None,
        };
        let mut stream =
            Stream { stream, records, is_fresh: false, comes_much: false, goes_much: false, is_closing: false };
        poll_fn(|context| stream.poll_handshake(context)).await?;
        Ok(stream)
    }

    /// What is known of the connection.
    pub(super) fn state(&self) -> &CommonState {
        self.records.state()
    }

    #[cfg(test)]
    pub(super) fn into_socket(self) -> S {
        self.stream
    }

    /// Bytes of all buffers.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let Records { incoming, arrived, plain, outgoing, .. } = &self.records;
        incoming.bytes.capacity() + arrived.bytes.capacity() + plain.capacity() + outgoing.bytes.capacity()
    }

    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.records.step(Wish::Read(&mut [])) {
                // Whoever says no more with the handshake has said all of it: there may be something to read.
                Ok(Step::Some | Step::Read(_) | Step::Done | Step::Over) => {}
                Ok(Step::Waits) => {
                    ready!(self.poll_drain(context))?;
                    ready!(Pin::new(&mut self.stream).poll_flush(context))?;
                    if !self.records.is_handshaking() {
                        return Poll::Ready(Ok(()));
                    }
                    if ready!(self.poll_fill(context))? == 0 {
                        return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                    }
                }
                Err(error) => {
                    self.tell(context);
                    return Poll::Ready(Err(invalid(error)));
                }
            }
        }
    }

    /// Tells the other side, if it takes it at once, what is wrong.
    fn tell(&mut self, context: &mut Context<'_>) {
        if let Poll::Ready(Ok(())) = self.poll_drain(context) {
            let _ = Pin::new(&mut self.stream).poll_flush(context);
        }
    }

    /// Reads what comes.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let incoming = &mut self.records.incoming;
        if incoming.len() >= ROOM {
            let error = rustls::Error::General("a message in too many pieces".into());
            self.records.failed = Some(error.clone());
            return Poll::Ready(Err(invalid(error)));
        }
        let least = if self.comes_much { ROOM - incoming.len() } else { LITTLE };
        let room = incoming.room(least);
        let length = room.len();
        let Poll::Ready(count) = Pin::new(&mut self.stream).poll_read(context, room) else {
            if !self.comes_much {
                incoming.release();
            }
            return Poll::Pending;
        };
        let count = count?;
        incoming.came(count);
        self.comes_much = count == length || count >= LITTLE;
        Poll::Ready(Ok(count))
    }

    /// Writes all that has been encrypted.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outgoing = &mut self.records.outgoing;
        while outgoing.len() > 0 {
            match ready!(Pin::new(&mut self.stream).poll_write(context, outgoing.filled()))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => outgoing.take(count),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        loop {
            match this.records.read(bytes) {
                Ok(0) if bytes.is_empty() || this.records.is_over => return Poll::Ready(Ok(0)),
                Ok(0) => {
                    if ready!(this.poll_fill(context))? == 0 {
                        return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                    }
                }
                Ok(count) => {
                    if !this.comes_much {
                        this.records.arrived.release();
                        this.records.incoming.release();
                    }
                    return Poll::Ready(Ok(count));
                }
                Err(error) => {
                    this.tell(context);
                    return Poll::Ready(Err(invalid(error)));
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_closing {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let bytes = &bytes[..bytes.len().min(MUCH)];
        if this.records.outgoing.len() > 0 && this.records.waiting() + bytes.len() > MUCH {
            ready!(this.poll_drain(context))?;
        }
        this.records.write(bytes).map_err(invalid)?;
        this.is_fresh = true;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let waiting = this.records.waiting();
        this.goes_much |= waiting >= LITTLE;
        ready!(put_off(&mut this.is_fresh, waiting, context));
        this.records.encrypt_rest().map_err(invalid)?;
        ready!(this.poll_drain(context))?;
        if !std::mem::take(&mut this.goes_much) {
            this.records.plain = Vec::new();
            this.records.outgoing.release();
        }
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !std::mem::replace(&mut this.is_closing, true) {
            // Whoever cannot be told finds out.
            let _ = this.records.close();
        }
        ready!(this.poll_drain(context))?;
        Pin::new(&mut this.stream).poll_close(context)
    }
}
