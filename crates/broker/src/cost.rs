//! What a link costs: the round trips that its driver measures, made into powers of two that load does not move.
//!
//! Of the round trips of the last minute the shortest counts: what is longer was held up by load, not by the way. Its
//! milliseconds to the nearest power of two are the cost, so that small differences decide nothing. Once given, a cost stays
//! until the measure is one and a half powers of two away from it, and of all links of a broker one changes in ten minutes
//! at most: routes follow lasting changes and nothing else. In its first minute a link's cost may fall at any time, since a
//! first measurement may have been held up, and nothing makes a round trip shorter than the way is.

use crate::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// How long a round trip counts.
const WINDOW: Duration = Duration::from_secs(60);

/// Round trips are kept by the shortest in each span of so many microseconds: that bounds how many there are.
const SPAN: u64 = 1_000_000;

/// The cost of a link is at most 2 to the power of this.
const MAX_LEVEL: u32 = 16;

/// Of the links of one broker one may change its cost in this time.
pub(crate) const DAMPING: Duration = Duration::from_secs(600);

/// The cost of one link at this end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// The cost before anything is measured.
    unmeasured: u32,
    measured: Option<Measured>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Measured {
    /// The cost is 2 to the power of this.
    level: u32,
    /// Of the first round trip.
    since: Time,
    /// Of the last minute: the moment and the microseconds, both growing, so that the first is the shortest.
    shortest: VecDeque<(Time, u64)>,
}

/// What a round trip did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The cost is what it was.
    Same,
    /// The cost is known, or known better: a young link.
    Known,
    /// The cost of a link that has been in use for some time is another one.
    Changed,
}

impl Cost {
    /// A link that costs this until a round trip is measured.
    pub(crate) fn new(unmeasured: u32) -> Cost {
        Cost { unmeasured: unmeasured.max(1), measured: None }
    }

    /// At least 1.
    pub(crate) fn get(&self) -> u32 {
        self.measured.as_ref().map_or(self.unmeasured, |measured| 1 << measured.level)
    }

    /// The shortest round trip that still counts, in microseconds.
    pub(crate) fn round_trip(&self) -> Option<u64> {
        self.measured.as_ref()?.shortest.front().map(|&(_, microseconds)| microseconds)
    }

    /// Takes in a round trip; the cost of a link that is no longer young changes only if it may.
    pub(crate) fn measure(&mut self, round_trip: Duration, now: Time, may_change: bool) -> Effect {
        let microseconds = u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX);
        let Some(measured) = &mut self.measured else {
            let shortest = VecDeque::from([(now, microseconds)]);
            self.measured = Some(Measured { level: nearest(microseconds), since: now, shortest });
            return Effect::Known;
        };
        let shortest = measured.take(microseconds, now);
        let young = now.since(measured.since) < WINDOW;
        if young && nearest(shortest) < measured.level {
            measured.level = nearest(shortest);
            return Effect::Known;
        }
        if !young && may_change && is_far(shortest, measured.level) {
            measured.level = nearest(shortest);
            return Effect::Changed;
        }
        Effect::Same
    }
}

impl Measured {
    /// Takes in a round trip and returns the shortest that counts.
    fn take(&mut self, microseconds: u64, now: Time) -> u64 {
        while self.shortest.front().is_some_and(|&(at, _)| now.since(at) >= WINDOW) {
            self.shortest.pop_front();
        }
        while self.shortest.back().is_some_and(|&(_, longer)| longer >= microseconds) {
            self.shortest.pop_back();
        }
        // A longer one in the span of the last is no news before that one is forgotten, about then.
        if self.shortest.back().is_none_or(|&(at, _)| at.0 / SPAN != now.0 / SPAN) {
            self.shortest.push_back((now, microseconds));
        }
        self.shortest.front().map_or(microseconds, |&(_, shortest)| shortest)
    }
}

/// The cost that this round trip would give a link.
pub fn cost_of(round_trip: Duration) -> u32 {
    1 << nearest(u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX))
}

/// The level whose milliseconds are nearest, as factors go.
fn nearest(microseconds: u64) -> u32 {
    (0..MAX_LEVEL).find(|&level| !reaches(microseconds, 2 * level + 1)).unwrap_or(MAX_LEVEL)
}

/// Whether one and a half levels or more lie between a round trip and a level, within what levels there are.
fn is_far(microseconds: u64, level: u32) -> bool {
    let above = level < MAX_LEVEL && reaches(microseconds, 2 * level + 3);
    let below = level > 0 && !reaches(microseconds.saturating_mul(4), 2 * level + 1);
    above || below
}

/// Whether this is at least as long as the square root of 2, to the power of `half_levels`, milliseconds.
fn reaches(microseconds: u64, half_levels: u32) -> bool {
    let squared = u128::from(microseconds) * u128::from(microseconds);
    squared >= 1_000_000u128 << half_levels
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn ms(milliseconds: f64) -> Duration {
        Duration::from_secs_f64(milliseconds / 1_000.0)
    }

    #[test]
    fn the_nearest_power_of_two_as_factors_go() {
        let table = [
            (0.0, 1),
            (0.2, 1),
            (1.0, 1),
            (1.41, 1),
            (1.42, 2),
            (2.8, 2),
            (2.9, 4),
            (10.0, 8),
            (11.4, 16),
            (100.0, 128),
            (90.0, 64),
            (60_000.0, 1 << 16),
            (1e9, 1 << 16),
        ];
        for (milliseconds, cost) in table {
            assert_eq!(cost_of(ms(milliseconds)), cost, "{milliseconds} ms");
        }
        assert_eq!(cost_of(Duration::MAX), 1 << 16);
    }

    #[test]
    fn a_link_costs_what_it_is_said_to_until_it_is_measured() {
        let mut cost = Cost::new(0);
        assert_eq!((cost.get(), cost.round_trip()), (1, None));
        assert_eq!(Cost::new(7).get(), 7);
        assert_eq!(
            cost.measure(ms(20.0), Time(5), false),
            Effect::Known,
            "the first one counts, whatever else has changed"
        );
        assert_eq!((cost.get(), cost.round_trip()), (16, Some(20_000)));
    }

    #[test]
    fn a_young_link_may_come_to_cost_less_and_not_more() {
        let mut cost = Cost::new(1);
        cost.measure(ms(40.0), Time(0), false);
        assert_eq!(cost.measure(ms(500.0), Time(SECOND), true), Effect::Same);
        assert_eq!(cost.measure(ms(20.0), Time(2 * SECOND), false), Effect::Known);
        assert_eq!(cost.measure(ms(19.0), Time(3 * SECOND), false), Effect::Same);
        assert_eq!(cost.get(), 16);
    }

    #[test]
    fn only_what_is_far_from_the_cost_changes_it_and_only_when_it_may() {
        // One round trip a minute: each is the only one that counts.
        for (milliseconds, changed) in [(8.0, 8), (22.5, 8), (22.7, 32), (40.0, 32), (2.9, 8), (2.8, 2), (0.1, 1)] {
            let mut cost = Cost::new(1);
            cost.measure(ms(8.0), Time(0), true);
            assert_eq!(cost.measure(ms(milliseconds), Time(60 * SECOND), false), Effect::Same, "it may not");
            let effect = cost.measure(ms(milliseconds), Time(120 * SECOND), true);
            assert_eq!((cost.get(), effect == Effect::Changed), (changed, changed != 8), "{milliseconds} ms");
        }
    }

    #[test]
    fn the_ends_of_the_scale_stay_where_they_are() {
        for (first, then) in [(0.1, 0.001), (0.001, 1.2), (1e6, 1e9), (1e9, 60_000.0)] {
            let mut cost = Cost::new(1);
            cost.measure(ms(first), Time(0), true);
            assert_eq!(cost.measure(ms(then), Time(60 * SECOND), true), Effect::Same, "{first} ms, then {then}");
        }
    }

    #[test]
    fn slow_ones_count_only_when_there_is_no_other_for_a_minute() {
        let mut cost = Cost::new(1);
        let mut at = |second: u64, milliseconds| cost.measure(ms(milliseconds), Time(second * SECOND), true);
        for second in (0..120).step_by(15) {
            at(second, 2.0);
        }
        for second in (120..165).step_by(1) {
            assert_eq!(at(second, 400.0), Effect::Same, "at {second} s");
        }
        assert_eq!(at(165, 400.0), Effect::Changed, "a minute has gone by without a fast one");
    }

    #[test]
    fn what_is_kept_is_bounded_however_often_it_is_measured() {
        let mut cost = Cost::new(1);
        for step in 0..1_000_000u64 {
            cost.measure(Duration::from_micros(step), Time(step * 200), true);
        }
        let kept = cost.measured.as_ref().map_or(0, |measured| measured.shortest.len());
        assert!(kept <= 61, "{kept}");
        // The truth: the shortest of the last minute, to a second's grain.
        let last = 999_999 * 200;
        let shortest = cost.round_trip().unwrap();
        let expected = (last - WINDOW.as_micros() as u64) / 200;
        assert!((expected..=expected + SPAN / 200).contains(&shortest), "{shortest} {expected}");
    }
}
