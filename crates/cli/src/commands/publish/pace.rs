//! At most so many events a second.

use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// What may be made up for after a delay: more than the timer's grain, so that a high rate is reached, but no burst.
const SLACK: Duration = Duration::from_millis(10);

/// When the next event may go.
pub(super) struct Pace {
    period: Duration,
    next: Instant,
}

impl Pace {
    /// `rate` events a second.
    pub(super) fn new(rate: f64) -> Pace {
        // A rate that small means never; a day between events is as good.
        let period = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX).min(Duration::from_secs(86_400));
        Pace { period, next: Instant::now() }
    }

    /// Waits until an event may go.
    pub(super) async fn wait(&self) {
        sleep_until(self.next).await;
    }

    /// An event goes.
    pub(super) fn advance(&mut self) {
        let earliest = Instant::now().checked_sub(SLACK).unwrap_or(self.next);
        self.next = self.next.max(earliest) + self.period;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn time_for(pace: &mut Pace, events: u32) -> Duration {
        let start = Instant::now();
        for _ in 0..events {
            pace.wait().await;
            pace.advance();
        }
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_is_kept_low_and_high() {
        assert_eq!(time_for(&mut Pace::new(2.0), 5).await, Duration::from_secs(2));
        let took = time_for(&mut Pace::new(100_000.0), 100_000).await;
        assert!((Duration::from_millis(980)..=Duration::from_millis(1010)).contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_is_not_made_up_for() {
        let mut pace = Pace::new(10.0);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(time_for(&mut pace, 11).await >= Duration::from_millis(980));
    }
}
