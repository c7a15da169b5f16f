//! The async runtime of a command, and its end by signal.

use crate::failure::Failure;
use std::future::{Future, pending};
use tokio::runtime::{Builder, Runtime};

/// Runs a broker's or several brokers' work on all cores.
pub(crate) fn multi_thread(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    run(Builder::new_multi_thread().enable_all().build(), work)
}

/// Runs a client's work on this thread.
pub(crate) fn this_thread(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    run(Builder::new_current_thread().enable_all().build(), work)
}

fn run(runtime: std::io::Result<Runtime>, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = runtime.map_err(|error| Failure::new("cannot start the async runtime").because(&error))?;
    let result = runtime.block_on(work);
    // Whatever still blocks, such as a name look-up, does not hold up the end.
    runtime.shutdown_background();
    result
}

/// Resolves at ctrl-C, and at SIGTERM where there is such a thing.
pub(crate) async fn interrupted() {
    tokio::select! {
        result = tokio::signal::ctrl_c() => if result.is_err() {
            // Without a handler the signal ends the process by itself.
            pending::<()>().await;
        },
        () = terminated() => {}
    }
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => {
            signal.recv().await;
        }
        Err(_) => pending().await,
    }
}

#[cfg(not(unix))]
async fn terminated() {
    pending().await
}
