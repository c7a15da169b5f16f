//! Standard output for results, standard error for people.

use crate::failure::Failure;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, BufWriter, Write};

/// Buffered standard output whose errors are [`Failure`]s; a reader that has gone away is no error in the end.
pub(crate) struct Output {
    writer: BufWriter<io::Stdout>,
}

impl Output {
    pub(crate) fn new() -> Output {
        Output { writer: BufWriter::with_capacity(64 << 10, io::stdout()) }
    }

    /// Writes a line; it may stay in the buffer.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<(), Failure> {
        writeln!(self.writer, "{line}").map_err(|error| Failure::output(&error))
    }

    /// Writes a value as one line of JSON; it may stay in the buffer.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        match serde_json::to_writer(&mut self.writer, value) {
            Ok(()) => self.line(""),
            Err(error) => Err(Failure::output(&error.into())),
        }
    }

    /// Hands everything over.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(|error| Failure::output(&error))
    }
}

/// Resolves when whoever reads standard output has gone away, as `head` does: a program that waits for something to write would
/// not notice before it comes. Never resolves where there is no telling, as with a file.
#[cfg(unix)]
pub(crate) async fn reader_gone() {
    use std::os::fd::AsFd;
    use tokio::io::Interest;
    use tokio::net::unix::pipe::Sender;

    // Unchecked: as it is not written to here, it need not be a pipe, and stays as blocking as it is.
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    if let Ok(stdout) = stdout.and_then(Sender::from_owned_fd_unchecked)
        && stdout.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

#[cfg(not(unix))]
pub(crate) async fn reader_gone() {
    std::future::pending().await
}

/// Says something on standard error. If nobody listens there, so be it.
pub(crate) fn tell(message: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{message}");
}
