//! The async runtime of a command, and its end by signal.

use crate::failure::Failure;
use std::future::Future;
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

/// ctrl-C, and SIGTERM where there is such a thing. From the moment this is made until the end of the process they do not end it
/// by themselves any more.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
}

impl Interrupts {
    /// To be made within a runtime, before anything that should end in good order.
    pub(crate) fn new() -> Result<Interrupts, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let failed = |error| Failure::new("cannot handle signals").because(&error);
            let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
            let terminate = signal(SignalKind::terminate()).map_err(failed)?;
            Ok(Interrupts { signals: [interrupt, terminate] })
        }
        #[cfg(not(unix))]
        Ok(Interrupts {})
    }

    /// Does something unless one comes.
    pub(crate) async fn cut_short<T>(&mut self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            result = work => result,
            () = self.next() => Err(Failure::Interrupted),
        }
    }

    /// Resolves at the next one. Cancelling the wait loses none.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }

    /// Resolves at the next one.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
